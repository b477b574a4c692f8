"""Influence: how far one record moves a release, in units of the noise.

A record of norm u that enters a sum with weight w moves the output by w·u. Measured in units of the noise:

    pure      the log density moves by at most c(u) w,  c(u) = per_record + per_norm u
    gaussian  the mean moves by s(u) w standard deviations,  s(u)² = per_record² + (per_norm u)²

`per_record` is there for releases that also count records. A pure influence bounds the whole curve: the log
density is c-Lipschitz in w, so delta(eps) <= [1 - e^((eps - c w)/2)]+ for eps >= 0, Laplace noise's own.
"""

import math
from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike

from ..errors import NoTheorem
from ..numerics.log_domain import FloatArray, as_floats
from ..numerics.row_norms import clipped as clipped
from ..numerics.row_norms import norms as norms
from ..validation import in_range, nonnegative, one_of, whole

_UP = 1.0 + 2.0**-49  # eight units in the last place: more than every rounding on the way
_SLACK = 1.0 + 2.0**-51  # an influence this much larger is still covered by that margin


@dataclass(frozen=True, slots=True)
class Influence:
    """Influence of a record of p-norm u and weight 1.

    That is per_record + per_norm u. For `kind` "pure" it is a privacy loss (epsilon of the record's contribution), for
    "gaussian" a shift in standard deviations. `p` is the norm. `is_exact` says that some record reaches the Laplace or
    Gaussian curve of this size, so that attacks may use it.

    >>> float(Influence("pure", per_record=0.1, per_norm=0.02).repeated(10).at(20.0).round(9))
    5.0
    """

    kind: Literal["pure", "gaussian"]
    per_record: float
    per_norm: float
    p: float = 2.0
    is_exact: bool = False  # some record reaches the Laplace (pure) or Gaussian curve itself, not only its bound

    def __post_init__(self) -> None:
        one_of(("pure", "gaussian"), kind=self.kind)
        nonnegative(per_record=self.per_record, per_norm=self.per_norm)
        in_range(1, math.inf, p=self.p)

    @classmethod
    def total(cls, parts: Iterable["Influence"]) -> "Influence":
        """Several releases from one sample: pure influences add up, Gaussian ones add in squares."""
        parts = tuple(parts)
        first = parts[0]
        if any((part.kind, part.p) != (first.kind, first.p) for part in parts):
            raise NoTheorem(
                "influences can be added only if they have one kind and one norm; certify the releases separately"
            )
        if len(parts) == 1:
            return first
        return first._summed([part.per_record for part in parts], [part.per_norm for part in parts])

    def __add__(self, other: "Influence") -> "Influence":
        return Influence.total((self, other))

    def repeated(self, times: int) -> "Influence":
        """The influence on `times` releases from one sample."""
        whole(1, times=times)
        if times == 1:
            return self
        return self._summed([self.per_record], [self.per_norm], times)

    def _summed(self, per_record: list[float], per_norm: list[float], times: int = 1) -> "Influence":
        """fsum rounds once, so that T equal parts and `repeated(T)` are the same number."""
        if self.kind == "pure":
            record, norm = times * math.fsum(per_record), times * math.fsum(per_norm)
        else:
            record, norm = (math.sqrt(times * math.fsum(x * x for x in part)) for part in (per_record, per_norm))
        # Gaussian releases together are one Gaussian; Laplace ones are not one Laplace
        return replace(self, per_record=record, per_norm=norm, is_exact=self.is_exact and self.kind == "gaussian")

    def at(self, norms: ArrayLike) -> FloatArray:
        """c(u) or s(u), rounded up."""
        u = as_floats(norms)
        if self.kind == "pure":
            return (self.per_record + self.per_norm * u) * _UP
        return np.hypot(self.per_record, self.per_norm * u) * _UP

    def norm_at(self, value: float) -> float:
        """The largest norm whose influence is at most `value`; inf when the norm does not matter."""
        value = value / _UP
        if value < self.per_record:
            return -math.inf
        if self.per_norm == 0.0:
            return math.inf
        left = value - self.per_record if self.kind == "pure" else math.sqrt(value**2 - self.per_record**2)
        return left / self.per_norm * (1.0 - 2.0**-49)

    def in_l2(self, dimension: int | None) -> "Influence":
        """The same for vectors measured by their l2 norm: ||x||_p <= d^(1/p - 1/2) ||x||_2 for p < 2."""
        if self.p >= 2.0:
            return replace(self, p=2.0)
        if dimension is None:
            raise NoTheorem(
                f"an influence in the {self.p:g}-norm needs the dimension to be bounded by the 2-norm; give dimension=…"
            )
        return replace(self, p=2.0, per_norm=self.per_norm * dimension ** (1.0 / self.p - 0.5) * _SLACK)

    def is_covered_by(self, other: "Influence") -> bool:
        """Whether no record has more influence here than there (||x||_p falls as p grows)."""
        return (
            self.kind == other.kind
            and self.p >= other.p
            and self.per_record <= other.per_record * _SLACK
            and self.per_norm <= other.per_norm * _SLACK
        )
