"""Which pair of neighbours attacks all rounds: the changed record is one and the same in each of them.

Where records differ (strata, norms), the attack on one round is the largest of several pairs' curves. Composing that
largest curve would be false: no record reaches it in two rounds. So the rounds are composed for one kind of record at a
time, and the largest result counts. Parts that list different kinds (other strata, other norms) have no attack
together: nothing says which kinds can be the same record.
"""

from collections.abc import Sequence
from typing import Any

from ..core.guarantee import Part
from ..core.profile import Profile

_ALL = 4  # so many kinds are all tried; of more, the two that look strongest
_SMALL = 1e-6


def attacks_in_rounds(parts: Sequence[Part]) -> tuple[tuple[Profile, ...], ...]:
    """One profile per part, for each kind of record worth trying; empty when there is no attack."""
    if any(part.lower is None for part in parts):
        return ()
    listed = [dict(part.attacks) for part in parts if part.attacks]
    if any(kinds.keys() != listed[0].keys() for kinds in listed):
        return ()
    kinds: list[Any] = list(listed[0]) if listed else [None]
    choices = {kind: tuple(p for part in parts if (p := _of_kind(part, kind)) is not None) for kind in kinds}
    if len(kinds) > _ALL:
        by_distance = max(kinds, key=lambda kind: sum(_distance(parts, choices[kind])))
        by_reach = max(kinds, key=lambda kind: sum(p.epsilon(_SMALL) for p in choices[kind]))
        kinds = list(dict.fromkeys((by_distance, by_reach)))
    return tuple(choices[kind] for kind in kinds)


def _of_kind(part: Part, kind: Any) -> Profile | None:
    return dict(part.attacks)[kind] if part.attacks else part.lower


def _distance(parts: Sequence[Part], profiles: Sequence[Profile]) -> list[float]:
    return [part.steps * float(p.delta(0.0)) for part, p in zip(parts, profiles, strict=True)]
