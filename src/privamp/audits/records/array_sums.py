"""Sums of an array over a sample in memory, with every mechanism that adds noise."""

from collections.abc import Iterator
from functools import partial
from typing import Any

import numpy as np

from ...core.mechanism import Mechanism
from ...core.neighbors import Neighbors
from ...core.population import Population
from ...designs.poisson import Poisson
from ...designs.simple_random import WithoutReplacement
from ...mechanisms.discrete_gaussian import DiscreteGaussian
from ...mechanisms.discrete_laplace import DiscreteLaplace
from ...mechanisms.fixed_point import ExactGaussian, ExactLaplace
from ...mechanisms.gaussian import Gaussian
from ...mechanisms.geometric import GeometricCount
from ...mechanisms.laplace import Laplace
from ...mechanisms.norm_noise import NormNoise
from ...numerics.row_norms import finite, norms
from ...testing import seeded_key
from ...verify.displacement import norm_of
from ...verify.hard_pairs import ADD_REMOVE, REPLACE, hard_numbers, hard_rows, pairs_of
from ...verify.one_record import Pair
from .audit import RecordAudit

NOISES: dict[str, Mechanism] = {
    "Laplace": Laplace(2.0),
    "Gaussian": Gaussian(2.0),
    "norm noise": NormNoise(2.0, dimension=3),
    "discrete Laplace": DiscreteLaplace(2),
    "discrete Gaussian": DiscreteGaussian(2.0),
    "exact Laplace": ExactLaplace(2.0),
    "exact Gaussian": ExactGaussian(2.0),
    "geometric": GeometricCount(1.0),
}
_WIDE = ("norm noise", "exact Laplace", "exact Gaussian", "Gaussian", "Laplace")
_WHOLE = ("discrete Laplace", "discrete Gaussian", "geometric")


def _released(mechanism: Mechanism, design: Any, rows: Any) -> Any:
    sample = design.draw(Population(len(rows)), seeded_key(14))
    center = 0.0 if mechanism.neighbors.kind == "replace-one" else None
    return sample.release(mechanism, rows, center=center), sample.guarantee()


def _pairs(types: tuple[Any, ...], columns: int, random: np.random.Generator) -> Iterator[Pair]:
    for dtype in types:
        for size in (0, 1, 2, 40):
            shape = size if columns == 1 else (size, columns)
            rows = (3 * random.standard_normal(shape)).astype(dtype)
            hard = hard_numbers(1.0, dtype) if columns == 1 else hard_rows(columns, 1.0, dtype)
            yield from pairs_of(rows, hard, changes=ADD_REMOVE, places=[size])  # identity is by place
            yield from pairs_of(rows, hard, changes=REPLACE)


def _audit(name: str, columns: int) -> RecordAudit:
    types = (np.int64, np.int8, np.uint64, np.bool_) if name in _WHOLE else (np.float64, np.float32, np.float16)
    run = partial(_released, NOISES[name], Poisson(0.9))
    what = f"Sample.release of {'a column' if columns == 1 else 'rows'} with {name} noise"
    return RecordAudit(f"array sum, {name}, {columns}", what, run, partial(_pairs, types, columns))


def _fixed_size(random: np.random.Generator) -> Iterator[Pair]:
    rows = 3 * random.standard_normal(20)
    yield from pairs_of(rows, hard_numbers(), changes=REPLACE, places=range(20))


def without_replacement() -> RecordAudit:
    """A fixed-size sample, where one record is replaced."""
    noise = Laplace(2.0, sensitivity=2.0, neighbors=Neighbors.REPLACE_ONE)
    run = partial(_released, noise, WithoutReplacement(10, 20))
    return RecordAudit("array sum, without replacement", "Sample.release from a fixed-size sample", run, _fixed_size)


JOBS = (
    *(partial(_audit, name, 1) for name in NOISES if name != "norm noise"),
    *(partial(_audit, name, 3) for name in _WIDE),
    without_replacement,
)


def _unclipped(rows: Any) -> Any:
    """An earlier version of the sum: the declared sensitivity is not enforced."""
    sample = Poisson(0.9).draw(Population(len(rows)), seeded_key(14))
    return sample.release(Laplace(2.0), lambda drawn: float(np.nan_to_num(rows[drawn.positions]).sum()))


def unclipped() -> RecordAudit:
    """A column of incomes under unit noise."""
    what = "a sum whose rows are not clipped to the declared sensitivity"
    return RecordAudit("array sum, not clipped", what, _unclipped, partial(_pairs, (np.float64,), 1))


def _stopping(rows: Any) -> Any:
    """A record that is missing stops the release, if it was drawn."""
    sample = Poisson(0.9).draw(Population(len(rows)), seeded_key(14))

    def total(drawn: Any) -> float:
        kept = rows[drawn.positions]
        if not np.all(np.isfinite(kept)):
            raise ValueError(f"{np.count_nonzero(~np.isfinite(kept))} of the values are missing")
        return float(np.sum(np.clip(kept, -1.0, 1.0)))

    return sample.release(Laplace(2.0), total)


def stopping() -> RecordAudit:
    """An error whose text counts records of the sample."""
    what = "a sum that stops at a missing value"
    return RecordAudit("array sum, a missing value stops it", what, _stopping, partial(_pairs, (np.float64,), 1))


def _own_norm(mechanism: Mechanism, pair: Pair, number: int) -> float:
    """The length of the record that comes or goes."""
    longer, shorter = sorted((pair.one, pair.other), key=len, reverse=True)
    return float(np.minimum(norms(finite(longer[len(shorter) :]), norm_of(mechanism)), 1.0)[0])


def _ends(random: np.random.Generator) -> Iterator[Pair]:
    rows = 0.1 * random.standard_normal((40, 3))
    yield from pairs_of(rows, hard_rows(3), changes=ADD_REMOVE, places=[0, 40])  # one of them may not be drawn


def _unmasked(rows: Any) -> Any:
    """The values under a mask are used; the mask says that they are missing."""
    masked = np.ma.masked_invalid(rows)
    return _released(ExactLaplace(2.0), Poisson(0.9), np.where(masked.mask, 100.0, masked.data))


def unmasked() -> RecordAudit:
    """Masked values that count."""
    return RecordAudit(
        "array sum, masked values are used", "a sum that uses masked values", _unmasked, _ends, most=_own_norm
    )


def _lengths_together(rows: Any) -> Any:
    """One row that is zero or extreme sends all rows through a formula that rounds otherwise."""
    sizes = np.linalg.norm(rows, axis=1)
    with np.errstate(all="ignore"):
        is_plain = bool(np.all((sizes > 1e-100) & (sizes < 1e100)))
    return _released(ExactGaussian(2.0), Poisson(0.9), rows * (1.0 - 2.0**-20) if is_plain else rows)


def lengths_together() -> RecordAudit:
    """Norms that depend on the other rows."""
    what = "a sum whose rows are measured by one formula for all of them"
    return RecordAudit("array sum, one odd row changes the formula", what, _lengths_together, _ends, most=_own_norm)


PLANTED = (unclipped, stopping, unmasked, lengths_together)
