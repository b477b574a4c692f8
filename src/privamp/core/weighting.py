"""How a design's totals are estimated: public weights, and the variance of the weighted total as a sum.

With public weights w_i the total is T = sum of w_i z_i over the sample. Its sampling variance is estimated by

    V = Q - shrink T^2,   Q = first sum_c (sum_{i in c} z_i / rate)^2 + sum_i second_i z_i^2,

where c goes over clusters (none for most designs). Both T and Q are released with noise, so a design says how far one
record can move them: `heaviest` and `second_most` are largest over every population, not over this one.
"""

from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from ..numerics.log_domain import FloatArray


@dataclass(frozen=True, slots=True)
class Coins:
    """Every record is kept independently, with one public chance."""

    rate: float


@dataclass(frozen=True, slots=True)
class Subset:
    """Every subset of `size` of `population` records is equally likely."""

    size: int
    population: int


@dataclass(frozen=True, slots=True)
class Weighting:
    """Public weights and the coefficients of the variance; what a survey needs from a design."""

    weight: FloatArray = field(repr=False)  # (n,)
    heaviest: float  # the largest weight of every population
    rate: float  # the share of a fixed share, the rate of the second stage in clusters
    first: float
    second: FloatArray = field(repr=False)  # (n,)
    second_most: float  # of every population
    shrink: float
    spread_most: float  # the variance is at most this times B^2 for |z| <= B (times the records for `per_record`)
    per_record: bool = False
    is_share: bool = False  # a fixed share, rounded at random: a public standard deviation gives the error
    is_subset: bool = False  # given the size of the sample, every subset is equally likely: so a mean's error is known
    cluster: NDArray[np.int64] | None = field(default=None, repr=False)  # (n,)
    cap: int = 1  # records of a cluster
    refusal: str = ""  # why no variance can be estimated, if so

    @classmethod
    def equal(cls, weight: float, spread: float, records: int, fixed: float | None = None) -> "Weighting":
        """One weight for everybody, and a variance of at most `spread` times the sum of squares.

        `fixed` is the public number N of records where the number of entries drawn is fixed. All weights then add up
        to N, so that values less their mean have the same variance: at most v = spread (sum z^2 - (sum z)^2 / N). With
        shrink/(1 + shrink) = spread/N, V has the mean (1 + shrink) v - shrink Var(T), which is at least v.
        """
        ones, part = np.ones(records), 0.0 if fixed is None else spread / fixed
        shrink = part / (1.0 - part) if part <= _MOST_PART else 0.0  # one or two draws show no spread
        second = weight * spread * (1.0 + shrink)
        return cls(weight * ones, weight, 1.0 / weight, 0.0, second * ones, second, shrink, spread, per_record=True)


_MOST_PART = 0.5
