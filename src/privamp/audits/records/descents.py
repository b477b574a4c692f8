"""Gradient descent: linear and logistic regression, adversarial rows and labels."""

from collections.abc import Iterator
from functools import partial
from typing import Any

import numpy as np
from scipy.special import expit

from ...core.population import Population
from ...designs.poisson import Poisson
from ...sgd import Descent, PrivateLinear, PrivateLogistic
from ...testing import seeded_key
from ...verify.hard_pairs import ADD_REMOVE, ODD, REPLACE, HardRecord, hard_numbers, hard_rows, odd_rows, pairs_of
from ...verify.one_record import Pair
from .audit import RecordAudit

COLUMNS, CLIP = 3, 0.75
Row = tuple[Any, Any]  # features, label


def _fit(model: Any, data: list[Row]) -> Any:
    one = model(Poisson(0.9), population=30, clip=CLIP, steps=3, sigma=0.5)
    rows = [list(row) for row, _ in data] if data else np.zeros((0, COLUMNS))
    one.fit(rows, [label for _, label in data], key=seeded_key(14))
    return one.coef_, one.intercept_, one.sigma_, one.guarantee_.assumes


def _pairs(random: np.random.Generator) -> Iterator[Pair]:
    hard = [HardRecord(what, (row, 1.0)) for what, row in (*hard_rows(COLUMNS, CLIP), *odd_rows(COLUMNS))]
    hard += [HardRecord(f"label: {what}", ([0.5] * COLUMNS, label)) for what, label in (*hard_numbers(), *ODD)]
    for size in (0, 1, 2, 20):
        rows: list[Row] = [(random.standard_normal(COLUMNS), float(random.random() < 0.5)) for _ in range(size)]
        yield from pairs_of(rows, hard, changes=ADD_REMOVE, places=[size])
        yield from pairs_of(rows, hard, changes=REPLACE)


def _audit(model: Any) -> RecordAudit:
    what = f"{model.__name__} on Poisson samples, three steps"
    return RecordAudit(f"descent, {model.__name__}", what, partial(_fit, model), _pairs)


JOBS = (partial(_audit, PrivateLinear), partial(_audit, PrivateLogistic))


def _numbers(data: list[Row]) -> tuple[Any, Any]:
    numeric = [(row, y) for row, y in data if all(isinstance(x, (int, float)) for x in (*row, y))]
    return np.array([row for row, _ in numeric], float).reshape(-1, COLUMNS), np.array([y for _, y in numeric], float)


def _labels_refused(data: list[Row]) -> Any:
    """Labels other than 0 and 1 stop the fit."""
    if not np.all(np.isin(_numbers(data)[1], (0, 1))):
        raise ValueError("y must hold the labels 0 and 1 only")
    return _fit(PrivateLogistic, data)


def _clipped_together(data: list[Row]) -> Any:
    """The sum of a batch is clipped to its size, not each gradient to the clip."""
    x, y = (np.nan_to_num(part, posinf=9.0, neginf=-9.0) for part in _numbers(data))

    def summed(parameters: Any, rows: Any, counts: Any) -> Any:
        total = (expit(np.clip(x[rows] @ parameters, -9, 9)) - y[rows]) @ np.clip(x[rows], -9.0, 9.0)
        return total * min(1.0, CLIP * max(len(rows), 1) / max(float(np.linalg.norm(total)), 1e-9))

    descent = Descent(design=Poisson(0.9), clip=CLIP, population=30, steps=1, sigma=0.5)
    return descent.run(summed, np.zeros(COLUMNS), Population(len(x)), seeded_key(14)).parameters


def labels_refused() -> RecordAudit:
    """An error that reveals one label."""
    return RecordAudit("descent, labels refused", "a fit that refuses labels out of range", _labels_refused, _pairs)


def clipped_together() -> RecordAudit:
    """Gradients that are clipped as a batch."""
    return RecordAudit("descent, clipped together", "gradients that are clipped as a batch", _clipped_together, _pairs)


PLANTED = (labels_refused, clipped_together)
