"""Clusters whose members are kept by coins, with one-dimensional noise, along a chain of sample sizes.

Exchange the changed cluster for another one. What differs is x others of the changed cluster (c - 1 coins of
probability r, if it is drawn: q) or y members of the other one (c' coins, 1 - q). Samples with x and x + 1, or y and y
+ 1, can be drawn nested, and x = 0 and y = 0 are the same sample: one chain of sizes, from x = c - 1 down to 0 and on
to y = c', with the record in addition to any x, by its coin (core/size_paths.py). Theorem and proof: docs/transport.md,
Thm 11.

The attacks are sums in which the changed cluster's members count 1 up to a number of them, and each other cluster's
members -1 up to another number: the sum then reveals little about clusters that are drawn in both cases.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from ..core.curves import out_and_in
from ..core.line_attack import Places, best_of
from ..core.mechanism import Mechanism
from ..core.neighbors import Neighbors
from ..core.profile import Profile
from ..core.size_paths import Ladder, bounded
from ..core.theorem import Theorem
from ..errors import NoTheorem
from ..numerics.count_laws import binomial_chance
from ..numerics.log_domain import FloatArray
from .kept_sizes import has_a_grid, trimmed

AR, RO = Neighbors.ADD_REMOVE, Neighbors.REPLACE_ONE
PAGE = "docs/transport.md, Thm 11"
_MOST = 500  # members of a cluster
_COUNTED = ((1, 0), (2, 0), (3, 0), (4, 0), (2, 1), (4, 1), (_MOST, 1))  # members of its own and of other clusters
_LARGEST_SUM = 500  # positions of a sum that are considered
_FEWEST = 4  # members: the exact verifier, which asks for sums in smaller cases, does not know truncated counts


def sizes_of(chance: float, rate: float, caps: Sequence[tuple[int, int]], kind: str) -> Ladder:
    """One pair for every (cap of the changed cluster, cap of the one it is exchanged for)."""
    rows = [_row(chance, rate, own, other) for own, other in caps]
    width = max(inside.size for inside, _ in rows)
    inside, out = (
        np.stack([np.pad(part, (0, width - part.size)) for part in parts]) for parts in zip(*rows, strict=True)
    )
    with_it, without = rate * inside, (1.0 - rate) * inside + out
    if kind == RO.kind:
        return Ladder(with_it, without, with_it, without)
    return Ladder(with_it, without, np.zeros(inside.shape), inside + out)


def _row(chance: float, rate: float, own: int, other: int) -> tuple[FloatArray, FloatArray]:
    """Probabilities along the chain if the changed cluster is drawn, and if the other one is."""
    inside, out = np.zeros(own + other), np.zeros(own + other)
    inside[:own] = chance * binomial_chance(np.arange(own - 1, -1, -1), own - 1, rate)
    out[own - 1 :] = (1.0 - chance) * binomial_chance(np.arange(other + 1), other, rate)
    return inside, out


def caps_of(design: Any) -> list[tuple[int, int]]:
    """The largest caps of the changed cluster and of another one; no other one if all clusters are drawn."""
    first, *rest = sorted(design.caps, reverse=True)
    if not rest or design.share == 1.0:
        return [(first, 0)]
    return list(dict.fromkeys([(first, rest[0]), (rest[0], first)]))


def _bound(design: Any, mechanism: Mechanism, kind: str) -> Profile:
    if design.second_size or design.second_stage is None or design.trim:
        raise NoTheorem("this theorem is about members kept by coins, without trimming")
    if not design.rate or not min(caps := [own for own, _ in caps_of(design)]):
        raise NoTheorem("a rate or a cap of 0 keeps no record")
    if max(caps) > _MOST:
        raise NoTheorem(f"clusters of at most {_MOST} members are followed member by member")
    found = bounded(trimmed(sizes_of(design.share, design.rate, caps_of(design), kind)), mechanism)
    return found.symmetrised() if kind == RO.kind else found


def _one_more(design: Any, mechanism: Mechanism, neighbors: Neighbors) -> Profile:
    return _bound(design, mechanism, AR.kind)


def _inside(design: Any, mechanism: Mechanism, neighbors: Neighbors) -> Profile:
    return _bound(design, mechanism, RO.kind)


def _moved(design: Any, mechanism: Mechanism, neighbors: Neighbors) -> Profile:
    return out_and_in(_bound(design, mechanism, AR.kind))


def _is_gaussian(mechanism: Mechanism) -> bool:
    return has_a_grid(mechanism) and mechanism.is_gaussian


def _is_other(mechanism: Mechanism) -> bool:
    return has_a_grid(mechanism) and not mechanism.is_gaussian


def _theorems(applies: Callable[[Mechanism], bool], *, searches: bool) -> tuple[Theorem, ...]:
    what = (
        ("one record more", AR.kind, _one_more, "anywhere"),
        ("one record replaced inside its cluster", RO.kind, _inside, "within cluster"),
        ("one record replaced", RO.kind, _moved, "anywhere"),
    )
    return tuple(
        Theorem(
            f"Clusters, members by coins, {name}, sizes along a chain", PAGE, AR.kind, kind, False, bound, applies,
            scope=scope, searches=searches,
        )
        for name, kind, bound, scope in what
    )  # fmt: skip


THEOREMS = (*_theorems(_is_gaussian, searches=False), *_theorems(_is_other, searches=True))


def seen(design: Any, mechanism: Mechanism, neighbors: Neighbors) -> dict[str, Profile]:
    """The sums that are best at some deltas, from clusters of `_FEWEST` members on."""
    cap, after = max(design.caps), 0.0 if neighbors.kind == AR.kind else -1.0
    if cap < _FEWEST or not 0.0 < design.rate < 1.0:
        return {}
    tried: dict[str, Profile] = {}
    for own, other in dict.fromkeys((min(a, cap - 1), min(b, cap)) for a, b in _COUNTED):
        if other and (len(set(design.caps)) > 1 or design.chosen * other > _LARGEST_SUM):
            continue
        attack = mechanism.on_a_line(*counted(design, own, other, after))
        if attack is not None:
            tried[f"{own} with it, {other} of each other cluster"] = attack
    return best_of(tried)


def counted(design: Any, own: int, other: int, after: float) -> tuple[Places, Places]:
    """The position of the sum: 1 for the record (`after` for the new one) and for up to `own` others of its cluster,
    -1 for up to `other` members of every other cluster.
    """
    cap, q, r = max(design.caps), design.share, design.rate
    each = _up_to(binomial_chance(np.arange(cap + 1), cap, r), other)
    beside = np.ones(1)
    for _ in range(design.chosen - 1):
        beside = np.convolve(beside, each)
    out, mates = np.convolve(beside, each), _up_to(binomial_chance(np.arange(cap), cap - 1, r), own)
    rest = {-float(s): (1.0 - q) * float(p) for s, p in enumerate(out)} if q < 1.0 else {}
    drawn: dict[float, float] = {}
    for x, p in enumerate(mates):
        for s, often in enumerate(beside):
            drawn[float(x - s)] = drawn.get(float(x - s), 0.0) + q * float(p * often)
    return _with(rest, drawn, r, 1.0), _with(rest, drawn, r, after)


def _up_to(law: FloatArray, most: int) -> FloatArray:
    """The law of the minimum of a number and `most`."""
    return np.append(law[:most], np.sum(law[most:])) if most < law.size - 1 else law


def _with(rest: Mapping[float, float], drawn: Mapping[float, float], rate: float, own: float) -> Places:
    """The record is kept with probability `rate` if its cluster is drawn, and counts `own`."""
    found = dict(rest)
    for place, chance in drawn.items():
        for at, part in ((place + own, rate), (place, 1.0 - rate)):
            found[at] = found.get(at, 0.0) + chance * part
    return found
