"""A record that leaves one stratum and enters another: how far both samples are from a usual one.

The strata are drawn independently. P has the first stratum with the record and the second without it, Q the reverse,
and distances from the usual sample add up over strata (core/hub_plan.py). Proof: docs/transport.md, Thm 7.
"""

from collections.abc import Sequence
from itertools import combinations_with_replacement

from ..core.hub_plan import Hub


def between(out: Hub, into: Hub) -> Hub:
    """From a stratum with the first components to one with the second."""
    return out.beside(into.turned)


def moved(worst: Sequence[Hub]) -> list[Hub]:
    """Between two strata of one design; the opposite direction of a move is a move the other way."""
    return [between(one, other) for one, other in combinations_with_replacement(worst, 2)]
