"""Neyman allocation on private data: how far one record can change it, and the privacy loss of that.

Neyman draws m_h proportional to A_h = sqrt(N_h SS_h), SS_h the sum of squares around the mean of stratum h. Replacing
one record within stratum i changes SS_i by at most R_i^2 (N_i - 1)/N_i, so A_i by at most R_i sqrt(N_i - 1) (reached
when all other values agree), and before rounding

    m_i changes by  m d T/((T + A_i)(T + A_i + d)),   T = sum of the other A_h,   d the change of A_i,

the L1 distance of the two allocations is twice that. Every draw more or less in a stratum is a record more or less in
the sample: a mechanism that is eps-DP under add/remove loses exactly (a = e^eps, changed stratum i)

    ||m - m'||_1 eps + log(1 + (min(m_i, m'_i)/N_i)(a^2 - 1)).

With no public bound on the A_h nothing smaller than the whole sample is safe: use public standard deviations or
method="minimax". Proof: docs/allocation.md.
"""

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

import numpy as np

from ..errors import InvalidInput
from ..numerics.log_domain import FloatArray, log_mix
from ..validation import one_of, positive, whole
from .allocation import Stratum

Sizes = dict[str | int, int]


@dataclass(frozen=True, slots=True)
class NeymanChange:
    """The largest change that one replaced record of one stratum can cause."""

    stratum: str | int
    spread_change: float  # of A_i = sqrt(N_i SS_i)
    size_change: float  # of m_i, before rounding
    distance: float  # L1, before rounding: twice that
    before: Sizes  # rounded
    after: Sizes
    rounded_distance: int  # L1 of the rounded allocations
    epsilon: float  # lost on that pair by an epsilon-DP mechanism on the sample


def allocation_loss(
    before: Mapping[str | int, int], after: Mapping[str | int, int], changed: Stratum, epsilon: float
) -> float:
    """The exact loss between two populations that differ in one record of `changed` and are allocated differently.

    >>> round(allocation_loss({"a": 10, "b": 5}, {"a": 9, "b": 6}, Stratum("b", 100, 1.0), 0.1), 4)
    0.211
    """
    positive(epsilon=epsilon)
    if set(before) != set(after) or changed.name not in before:
        raise InvalidInput("both allocations must name the same strata, and the changed stratum among them")
    for sizes in (before, after):
        for size in sizes.values():
            whole(0, size=size)
    distance = sum(abs(before[name] - after[name]) for name in before)
    kept = min(before[changed.name], after[changed.name])
    if kept > changed.population:
        raise InvalidInput(
            f"stratum {changed.name!r} has {changed.population} records, fewer than the {kept} to be drawn"
        )
    return distance * epsilon + float(log_mix(kept / changed.population, 2.0 * epsilon))


def neyman_sensitivity(
    strata: Iterable[Stratum], size: int, epsilon: float, rounding: str = "nearest"
) -> tuple[NeymanChange, ...]:
    """For every stratum, the worst replacement at these standard deviations, before and after rounding.

    The standard deviations are those of the population in question (this is an analysis, not a release). `rounding` is
    "nearest" (largest remainder, sizes add up) or "ceil" (as in SD's example, whose sizes add up to more).
    """
    cells = tuple(strata)
    if not cells or len({h.name for h in cells}) < len(cells):
        raise InvalidInput("strata must be a list of at least one Stratum, each named once")
    if any(h.sd is None for h in cells):
        raise InvalidInput("neyman_sensitivity needs the sd of every stratum")
    whole(1, size=size)
    positive(epsilon=epsilon)
    one_of(("nearest", "ceil"), rounding=rounding)
    A = np.array([math.sqrt(h.population * (h.population - 1)) * float(h.sd or 0.0) for h in cells])
    if not A.sum() > 0:
        raise InvalidInput("at least one stratum needs an sd above 0, got none instead")
    return tuple(_worst(cells, A, i, size, epsilon, rounding) for i in range(len(cells)))


def _worst(cells: tuple[Stratum, ...], A: FloatArray, i: int, size: int, epsilon: float, rounding: str) -> NeymanChange:
    """Raise the spread of stratum i as far as one record can, or lower it: whichever moves more."""
    reach = cells[i].range ** 2 * (cells[i].population - 1)  # of A_i squared
    found = []
    for square in (A[i] ** 2 + reach, max(A[i] ** 2 - reach, 0.0)):
        other = A.copy()
        other[i] = math.sqrt(square)
        if other.sum() > 0:
            found.append(_pair(cells, A, other, i, size, epsilon, rounding))
    return max(found, key=lambda change: change.epsilon)


def _pair(
    cells: tuple[Stratum, ...], A: FloatArray, other: FloatArray, i: int, size: int, epsilon: float, rounding: str
) -> NeymanChange:
    names, shares = [h.name for h in cells], (A / A.sum() * size, other / other.sum() * size)
    before, after = (dict(zip(names, _rounded(m, size, rounding), strict=True)) for m in shares)
    rest = float(A.sum() - A[i])
    d = abs(float(other[i] - A[i]))
    least = rest + min(float(A[i]), float(other[i]))
    moved = size * d * rest / (least * (least + d)) if least > 0 else 0.0 if rest == 0 else float(size)
    capped = [{n: min(m, h.population) for (n, m), h in zip(s.items(), cells, strict=True)} for s in (before, after)]
    loss = allocation_loss(capped[0], capped[1], cells[i], epsilon)
    distance = sum(abs(before[n] - after[n]) for n in names)
    return NeymanChange(names[i], d, moved, 2.0 * moved, before, after, distance, loss)


def _rounded(sizes: FloatArray, total: int, rounding: str) -> list[int]:
    if rounding == "ceil":
        return [int(x) for x in np.ceil(sizes - 1e-9)]
    low = np.floor(sizes + 1e-9)
    rest = np.argsort(low - sizes, kind="stable")[: int(total - low.sum())]
    low[rest] += 1.0
    return [int(x) for x in low]
