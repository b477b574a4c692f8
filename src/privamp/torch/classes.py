"""Batches balanced over classes: a public rate for every class (`ClassRates`), drawn by the class of each record.

Sums are divided by the expected batch, the sum of rate times the public number of records over the classes. A record's
rate is a function of the record alone, so the guarantee is that of the largest rate (`designs/class_rates.py`).
"""

from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np

from ..core.design import Answers
from ..designs.class_rates import COLUMN
from ..errors import InvalidInput
from ..validation import whole


def class_column(sampler: Any, classes: Iterable[Any] | None) -> dict[str, Any]:
    """The column that the sampler reads; none for other samplers."""
    if (_rates(sampler) is not None) != (classes is not None):
        raise InvalidInput(
            "sampler=PoissonPPS.by_class(...) needs classes=, the class of every record"
            if classes is None
            else f"classes= is for sampler=PoissonPPS.by_class(...), got {type(sampler).__name__} instead; omit it"
        )
    if classes is None:
        return {}
    if isinstance(classes, Mapping):
        raise InvalidInput("classes must be one per record, in the order of the data set, got a mapping; give a list")
    if isinstance(classes, np.ndarray):
        return {COLUMN: classes}
    # not as an array: one label of another type would change all others
    return {COLUMN: classes.tolist() if hasattr(classes, "tolist") else list(classes)}


def expected_batch(sampler: Any, population: Any) -> tuple[int | None, float | None]:
    """The public number of records and, for rates by class, the expected size of a batch."""
    rates = _rates(sampler)
    if not isinstance(population, Mapping):
        if rates is not None:
            raise InvalidInput(
                "population must give a public (rough) number of records for every class, such as {0: 900, 1: 100}, "
                f"with {type(sampler).__name__}"
            )
        return population, None
    if rates is None:
        raise InvalidInput("population by class is for sampler=PoissonPPS.by_class(...); give one public number")
    if set(population) != set(rates):
        raise InvalidInput(f"population must name the classes of the sampler, {', '.join(map(repr, rates))}")
    for name, count in population.items():
        whole(1, **{f"the population of class {name!r}": count})
    expected = sum(rate * population[name] for name, rate in rates.items())
    if expected <= 0:
        raise InvalidInput("every class has rate 0, so no record is ever drawn; raise a rate")
    return sum(int(count) for count in population.values()), expected


def _rates(sampler: Any) -> Mapping[Any, float] | None:
    return sampler.rates_by_class if isinstance(sampler, Answers) else None
