"""Attacks on a record that moves from one stratum to another: sums that depend on both strata.

A scene is the law of a function of one stratum's sample with the record and without it; the function changes by at
most one per record. The sum takes the scene of the stratum that the record leaves and, with the other sign, the scene
of the one that the other record enters: P is with the first and without the second, Q the reverse.

A share r of the records, rounded at random, where the number of others is large:

    whole     r times the others is whole: 0, 1 or 2 records from the usual sample, with (1-r)^2, r, r(1-r), against 0
    carried   with the record r times all is whole: K records, K - 1 or K without it. Counted by the record and by the
              K-th of the others, with one sign (always 1, against 0 or 1) or with two (1 or -1, against 0 or -1).
"""

import math
from collections.abc import Iterable, Mapping, Sequence
from itertools import combinations_with_replacement
from typing import Any

from ..core.hub_plan import Hub
from ..core.line_attack import Places, best_of
from ..core.mechanism import Mechanism
from ..core.profile import Profile
from ..errors import NoTheorem
from .pure_only import lower_profile, pure_epsilon

Scene = tuple[Places, Places]  # with the record, without it
_MOST_KINDS = 3  # of strata that are paired with each other
_LARGEST = 100.0  # epsilon: events of black boxes are considered up to this value


def of_share(rate: float, whole: Places | None = None) -> dict[str, Scene]:
    """The scenes of a share; `whole` if the number of others is not large."""
    law = whole or {2.0: rate * (1.0 - rate), 1.0: rate, 0.0: (1.0 - rate) ** 2}
    return {
        "whole": (law, {0.0: 1.0}),
        "carried, one sign": ({1.0: 1.0}, {0.0: rate, 1.0: 1.0 - rate}),
        "carried, two signs": ({1.0: rate, -1.0: 1.0 - rate}, {0.0: rate, -1.0: 1.0 - rate}),
    }


def between(out: Scene, into: Scene) -> Scene:
    """The law of the sum over both strata, before and after the move."""
    return _joined(out[0], into[1]), _joined(out[1], into[0])


def _joined(one: Places, other: Places) -> Places:
    found: dict[float, float] = {}
    for a, p in one.items():
        for b, q in other.items():
            found[a - b] = found.get(a - b, 0.0) + p * q
    return found


def of_strata(parts: Iterable[tuple[Any, int]]) -> dict[str, Scene]:
    """Sums for every two strata, from the designs and their numbers of strata; none if there are many kinds."""
    kinds = [(part, scenes_of(part), times) for part, times in parts]
    if len(kinds) > _MOST_KINDS:
        return {}
    found = {}
    for (i, one), (j, other) in combinations_with_replacement(enumerate(kinds), 2):
        if i == j and one[2] < 2:
            continue
        for name, out in one[1].items():
            for label, into in other[1].items():
                found[f"moved from {i} ({name}) to {j} ({label})"] = between(out, into)
    return found


def scenes_of(part: Any) -> dict[str, Scene]:
    """The scenes of one stratum; none for shares rounded by a rule or of few records."""
    if hasattr(part, "how"):
        return of_share(float(part.share)) if part.how == "random" and part.at_most is None and part.share else {}
    try:
        hubs: Sequence[Any] = part.components()
    except NoTheorem:
        return {}
    if len(hubs) > 1 or set(hubs[0].q) != {0}:
        return {}
    return {"kept": ({float(c): p for c, p in hubs[0].p.items()}, {0.0: 1.0})}


def best(scenes: Mapping[str, Scene], mechanism: Mechanism) -> dict[str, Profile]:
    """Those that are best at some deltas."""
    tried = {name: mechanism.on_a_line(*scene) for name, scene in scenes.items()}
    known = {name: attack for name, attack in tried.items() if attack is not None}
    return best_of(known)


def largest_loss(hubs: Iterable[Hub], epsilon: float) -> float:
    """An upper bound for every event of an epsilon-DP mechanism, by distances from a usual sample, in both orders."""
    if epsilon > _LARGEST:
        raise NoTheorem(f"events of black boxes are considered up to epsilon {_LARGEST:g}")
    ways = [one for hub in hubs for one in (hub, hub.turned)]
    laws = [({float(c): x for c, x in one.p.items()}, {-float(c): x for c, x in one.q.items()}) for one in ways]
    return max(weighted_event(p, q, epsilon) for p, q in laws) * (1.0 + 1e-12)


def worst_event(scenes: Iterable[Scene], mechanism: Mechanism, kind: Any) -> Profile | None:
    """For a black box: the largest loss of an event weighted by the sum, in both orders."""
    epsilon = pure_epsilon(mechanism, kind)
    if epsilon > _LARGEST:
        return None
    ways = [pair for p, q in scenes for pair in ((p, q), (_turned(q), _turned(p)))]
    return lower_profile(max((weighted_event(p, q, epsilon) for p, q in ways), default=0.0)) if ways else None


def _turned(law: Places) -> Places:
    return {-place: chance for place, chance in law.items()}


def weighted_event(p: Places, q: Places, epsilon: float) -> float:
    """The loss of an event with weight e^(epsilon place): an epsilon-DP mechanism on sums of steps of one allows it."""
    highest = max(*p, *q)
    top, bottom = (
        math.fsum(chance * math.exp(epsilon * (place - highest)) for place, chance in law.items()) for law in (p, q)
    )
    return math.log(top / bottom) if top > 0.0 and bottom > 0.0 else 0.0
