"""Exact laws of draws from a small multiset of units, as fractions."""

from collections.abc import Iterator, Sequence
from fractions import Fraction
from itertools import product
from math import comb, factorial, prod

from ..core.design import Units


def with_replacement(units: Units, draws: int) -> Iterator[tuple[Units, Fraction]]:
    """`draws` independent picks of one entry of `units`."""
    values, counts = _tally(units)
    for kept in _compositions(draws, [draws] * len(values)):
        ways = factorial(draws) // prod(factorial(k) for k in kept)
        weight = Fraction(ways * prod(c**k for c, k in zip(counts, kept, strict=True)), len(units) ** draws)
        yield _spread(values, kept), weight


def without_replacement(units: Units, draws: int) -> Iterator[tuple[Units, Fraction]]:
    """`draws` of the entries of `units`, all sets of entries equally likely."""
    values, counts = _tally(units)
    for kept in _compositions(draws, counts):
        ways = prod(comb(c, k) for c, k in zip(counts, kept, strict=True))
        yield _spread(values, kept), Fraction(ways, comb(len(units), draws))


def _tally(units: Units) -> tuple[list[int], list[int]]:
    values = sorted(set(units))
    return values, [units.count(v) for v in values]


def _spread(values: Sequence[int], kept: Sequence[int]) -> Units:
    return tuple(v for v, k in zip(values, kept, strict=True) for _ in range(k))


def _compositions(total: int, caps: Sequence[int]) -> Iterator[tuple[int, ...]]:
    """All ways to write `total` as a sum of parts, part i at most caps[i]."""
    if not caps:
        if total == 0:
            yield ()
        return
    for head in product(*(range(min(cap, total) + 1) for cap in caps[:-1])):
        last = total - sum(head)
        if 0 <= last <= caps[-1]:
            yield (*head, last)
