"""Totals and means of every stratum from one sample on a cluster, at the privacy cost of one sum.

A record lies in one stratum, so all strata's sums together move by no more than its own row when it comes or goes. Each
sum is multiplied with the public number 1/rate of its stratum, after the noise.
"""

import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from ..core.design import Design
from ..core.ledger import BudgetLike
from ..core.release import Release
from ..engines.spark_sample import SparkSample
from ..engines.spark_totals import Exact
from ..errors import InvalidInput
from ..mechanisms.fixed_point import ExactLaplace
from ..validation import one_of

Name = str | int


def estimate_strata(
    sample: SparkSample,
    column: str,
    mechanism: Exact,
    *,
    by: str | None = None,
    strata: Sequence[Name] | None = None,
    statistic: str = "total",
    population: Mapping[Name, float] | None = None,
    budget: BudgetLike | None = None,
) -> dict[Name, Release]:
    """One estimate per stratum of the column `by`; values are clipped to +-`mechanism.sensitivity`.

    By default the column is the one that the draw read as the stratum (`reads={"stratum": "region"}`).

    `strata` is the public list of strata, those of a stratified design by default. A mean divides by the public number
    of records of a stratum: that of `WithoutReplacement`, or given by `population`. With a `budget` this is the
    sample's only release, and it is charged before it is made; the key is that of the draw.
    """
    one_of(("total", "mean"), statistic=statistic)
    design, by = sample.design, sample.stratum_column if by is None else by
    parts: dict[Any, Design] = dict(design.parts)
    names = tuple(strata) if strata is not None else tuple(parts)
    factors = [_factor(parts.get(name, design), name) for name in names]
    if statistic == "mean":
        factors = [f / _records(parts.get(name), name, population) for f, name in zip(factors, names, strict=True)]
    if budget is not None:
        sample._planned([mechanism], budget, "estimates by stratum")
    sums = np.asarray(sample.release_sum(mechanism, column, by=by, groups=names))
    privacy = sample.guarantee()
    noise = math.sqrt(2.0) * mechanism.scale if isinstance(mechanism, ExactLaplace) else mechanism.sigma
    law = "laplace" if isinstance(mechanism, ExactLaplace) else "gaussian"
    return {
        name: Release(
            float(total) * factor, noise * factor, None, privacy, law, details={"resolution": mechanism.grid * factor}
        )
        for name, total, factor in zip(names, sums, factors, strict=True)
    }


def _factor(design: Design, name: Name) -> float:
    """One over the chance of a record, where it is the same for all of the stratum; 1 where rows have weights."""
    if design.weighing_rule is not None:
        return 1.0
    if design.weight is not None:
        return design.weight
    raise InvalidInput(
        "estimates need designs with one public weight for all records, such as Poisson, WithoutReplacement and "
        f"ClusterSampling, or weights of an importance rule, got {type(design).__name__} in stratum {name!r} instead; "
        "release its sum and weight it yourself"
    )


def _records(design: Design | None, name: Name, population: Mapping[Name, float] | None) -> float:
    if population is not None and name in population:
        return float(population[name])
    if design is not None and design.natural.kind == "replace-one" and design.public_size is not None:
        return float(design.public_size)
    raise InvalidInput(f"a mean needs the public number of records of every stratum; give population={{{name!r}: …}}")
