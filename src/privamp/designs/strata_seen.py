"""Attacks on a shared rate: a sum of the changed record and of how far every stratum's size is from the usual one.

n records, `size` of them drawn at the rate r = size/n, and strata whose shares of n are whole at r: without the record
every stratum's size is certain. One added record lowers the rate to r' = size/(n+1). Its own stratum of N others has
the mean (N+1)r', whole part k and fraction g, and others of M records lose one with probability M(r - r'):

    own stratum   k + 1 drawn: 1 record from the usual sample, with the record or not;
                  k drawn, with the record: 2 away, without it: 0
    every other   1 away with probability M(r - r')

A function of the sample that counts all of these changes by at most one per record. Moved from one stratum to
another, at one rate r: moved_sums.py. Built from
`fewest` records on: the exact verifier, which asks for sums in smaller cases, does not know such functions.
"""

import math
from collections.abc import Mapping
from fractions import Fraction
from itertools import product
from math import gcd

from ..core.neighbors import Neighbors
from .moved_sums import Scene, between, of_share

Law = Mapping[float, float]
_MOST_STRATA = 200  # strata whose sizes are summed one by one


def sizes_seen(size: int, at_least: int, strata: int, kind: str, fewest: int = 20) -> dict[str, Scene]:
    """Positions of the sum in the smallest population; none if its shares are not whole."""
    n = at_least
    if gcd(n, size) < strata or size >= n or n < fewest or strata > _MOST_STRATA:
        return {}
    pieces, unit = gcd(n, size), n // gcd(n, size)  # a stratum of `unit` records, or of several times as many, is whole
    own = max(min(pieces // 10, pieces - strata + 1), 1)
    if kind == Neighbors.REPLACE_ONE.kind:
        return _moves(Fraction(size, n), unit, pieces, strata)
    law: Law = _own(unit * own, Fraction(size, n + 1))
    fall = Fraction(size, n) - Fraction(size, n + 1)
    left = pieces - own
    for stratum in range(strata - 1):
        records = unit * (left // (strata - 1) + (stratum < left % (strata - 1)))
        chance = float(records * fall)
        law = _sum(law, {1.0: chance, 0.0: 1.0 - chance})
    return {"sizes seen": (dict(law), {0.0: 1.0})}


def _moves(rate: Fraction, unit: int, pieces: int, strata: int) -> dict[str, Scene]:
    """A move out of one of two strata into the other. The remaining records are in a third one, the same in both.

    A stratum is whole without the record, or with it (carried: it has one record less); one of each fill a population.
    """
    first, second, found = pieces // 2, pieces - pieces // 2, {}
    for kinds in product(("whole", "carried, one sign", "carried, two signs"), repeat=2):
        are_whole = [kind == "whole" for kind in kinds]
        sizes = [(pieces - 1) // 2] * 2 if all(are_whole) else [first, second]
        records = [unit * size - (not whole) for size, whole in zip(sizes, are_whole, strict=True)]
        left = unit * pieces - 1 - sum(records)  # of all records except the one that moves
        if min(sizes) > 0 and (left == 0 or strata > 2):
            out, into = (of_share(float(rate), _own(n, rate))[kind] for n, kind in zip(records, kinds, strict=True))
            found[f"moved, {kinds[0]} to {kinds[1]}"] = between(out, into)
    return found


def _own(others: int, rate: Fraction) -> dict[float, float]:
    """Distance from the usual sample in the stratum of the changed record."""
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
