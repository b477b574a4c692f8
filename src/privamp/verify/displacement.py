"""How far two values before noise lie apart, in units of the sensitivity their mechanism declares.

Differences are exact (whole numbers and doubles are fractions) and added up with one rounding.
"""

import math
from collections.abc import Iterator
from fractions import Fraction
from typing import Any

import numpy as np

from ..accounting.joint import Joint
from ..core.mechanism import Mechanism
from ..mechanisms.augmented_rows import AugmentedRows
from ..mechanisms.cell_counts import CellCounts
from ..mechanisms.discrete_gaussian import DiscreteGaussian
from ..mechanisms.fixed_point import ExactGaussian, ExactLaplace, GridUnits
from ..mechanisms.gaussian import Gaussian
from ..mechanisms.per_stratum import PerStratum
from ..mechanisms.sum_and_count import SumAndCount

MARGIN = 1.0 + 2.0**-50  # every profile rounds up by more than this


def displacement(mechanism: Mechanism, one: Any, other: Any) -> float:
    """||one - other|| / sensitivity in the mechanism's own norm; for several mechanisms, the largest."""
    if isinstance(mechanism, Joint):
        return max(displacement(m, a, b) for m, a, b in zip(mechanism.mechanisms, one, other, strict=True))
    if isinstance(mechanism, SumAndCount):
        return _sums_and_counts(mechanism, one, other)
    if isinstance(mechanism, AugmentedRows):
        return _distance(mechanism.noise, one, other) / mechanism.longest(mechanism.radius)
    if isinstance(mechanism, PerStratum):
        return _distance(mechanism.noise, one, other) / max(size for _, size in mechanism.sensitivities)
    if isinstance(one, CellCounts):
        return one.distance(other) / float(getattr(mechanism, "sensitivity", 1.0))
    sensitivity = getattr(mechanism, "sensitivity", None)
    if sensitivity is None:  # hides any change of its value by definition
        return float(any(_differences(one, other)))
    return _distance(mechanism, one, other) / float(sensitivity)


def norm_of(mechanism: Mechanism) -> float:
    """The p of the norm a mechanism's sensitivity is stated in."""
    p = getattr(mechanism, "p", None)
    if p is not None:
        return float(p)
    return 2.0 if isinstance(mechanism, (Gaussian, DiscreteGaussian)) else 1.0


def _distance(mechanism: Mechanism, one: Any, other: Any) -> float:
    distance = _norm(_differences(one, other), norm_of(mechanism))
    if isinstance(mechanism, (ExactLaplace, ExactGaussian)) and isinstance(one, GridUnits):
        return distance * mechanism.grid
    return distance


def _sums_and_counts(mechanism: SumAndCount, one: Any, other: Any) -> float:
    """The whole influence of the change against that of the longest record."""
    influence = mechanism.influence
    sums, counts = (_norm(_differences(a, b), influence.p) for a, b in zip(one, other, strict=True))
    if influence.kind == "pure":
        counts = _norm(_differences(one[1], other[1]), 1.0)
        moved = influence.per_record * counts + influence.per_norm * sums
    else:
        moved = math.hypot(influence.per_record * counts, influence.per_norm * sums)
    return moved / float(influence.at(mechanism.sums.sensitivity))


def _differences(one: Any, other: Any) -> Iterator[float]:
    """The entries that differ, each exact before its one rounding; infinite where there is no number."""
    a, b = np.asarray(one), np.asarray(other)
    if a.shape != b.shape:
        yield math.inf
        return
    same = (a == b) | ((a != a) & (b != b))
    for x, y in zip(a[~same].tolist(), b[~same].tolist(), strict=True):
        try:
            yield abs(float(Fraction(x) - Fraction(y)))
        except (OverflowError, ValueError, TypeError):
            yield math.inf


def _norm(parts: Iterator[float], p: float) -> float:
    sizes = list(parts)
    top = max(sizes, default=0.0)
    if top == 0.0 or math.isinf(top) or math.isinf(p):
        return top
    if p == 1.0:
        return math.fsum(sizes)
    return float(top * math.fsum((size / top) ** p for size in sizes) ** (1.0 / p))
