"""Attacks on a shared rate: a sum of the changed record and of how far every stratum's size is from the usual one.

n records, `size` of them drawn at the rate r = size/n, and strata whose shares of n are whole at r: without the record
every stratum's size is certain. One record more lowers the rate to r' = size/(n+1). Its own stratum of N others has the
mean (N+1)r', whole part k and fraction g, and others of M records lose one with chance M(r - r'):

    own stratum   k + 1 drawn: 1 record from the usual sample, with the record or not;
                  k drawn, with the record: 2 away, without it: 0
    every other   1 away with chance M(r - r')

A function of the sample that counts all of these has steps of at most one per record. Moved from one stratum to
another: the same for the stratum it leaves and, with the other sign, for the one it enters, at one rate r. Built from
`fewest` records on: the exact verifier, which asks for sums in smaller cases, does not know such functions.
"""

import math
from collections.abc import Mapping
from fractions import Fraction
from math import gcd

from ..core.line_attack import Places
from ..core.neighbors import Neighbors

Law = Mapping[float, float]
_MOST_STRATA = 200  # whose sizes are added up one by one


def sizes_seen(size: int, at_least: int, strata: int, kind: str, fewest: int = 20) -> dict[str, tuple[Places, Places]]:
    """Places of the sum in the smallest population, or nothing where its shares are not whole."""
    n = at_least
    if gcd(n, size) < strata or size >= n or n < fewest or strata > _MOST_STRATA:
        return {}
    pieces, unit = gcd(n, size), n // gcd(n, size)  # a stratum of `unit` records, or of several times as many, is whole
    own = max(min(pieces // 10, pieces - strata + 1), 1)
    if kind == Neighbors.REPLACE_ONE.kind:
        half = (pieces - 1) // 2  # pieces of the two strata; who is left over is in a third one, the same in both
        if not half or (strata == 2 and n - 1 > 2 * half * unit):
            return {}
        leaves = _own(unit * half, Fraction(size, n))
        return {"moved": (leaves, {-place: chance for place, chance in leaves.items()})}
    law: Law = _own(unit * own, Fraction(size, n + 1))
    fall = Fraction(size, n) - Fraction(size, n + 1)
    left = pieces - own
    for stratum in range(strata - 1):
        records = unit * (left // (strata - 1) + (stratum < left % (strata - 1)))
        chance = float(records * fall)
        law = _sum(law, {1.0: chance, 0.0: 1.0 - chance})
    return {"sizes seen": (dict(law), {0.0: 1.0})}


def _own(others: int, rate: Fraction) -> dict[float, float]:
    """Records from the usual sample in the stratum of the changed record."""
    mean = (others + 1) * rate
    usual = math.floor(mean)
    more = mean - usual
    inside = Fraction(usual, others + 1)
    return {2.0: float((1 - more) * inside), 1.0: float(more), 0.0: float((1 - more) * (1 - inside))}


def _sum(first: Law, second: Law) -> Law:
    found: dict[float, float] = {}
    for one, p in first.items():
        for other, q in second.items():
            found[one + other] = found.get(one + other, 0.0) + p * q
    return found


def weighted_event(p: Places, q: Places, epsilon: float) -> float:
    """The loss of an event with weight e^(epsilon place): an epsilon-DP mechanism on sums of steps of one allows it."""
    highest = max(*p, *q)
    top, bottom = (
        math.fsum(chance * math.exp(epsilon * (place - highest)) for place, chance in law.items()) for law in (p, q)
    )
    return math.log(top / bottom) if top > 0.0 and bottom > 0.0 else 0.0
