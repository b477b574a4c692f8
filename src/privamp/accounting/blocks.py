"""Rounds that are followed one by one become a block, which composes further and is recomputed from its claim."""

from dataclasses import replace
from functools import cache
from typing import TYPE_CHECKING

from ..core.guarantee import Part
from ..core.profile import Profile
from ..core.schedule import Followed
from .gaussian_rounds import ROUNDS as ROUNDS
from .gaussian_rounds import is_feasible, rounds_of, rounds_profile

if TYPE_CHECKING:
    from .composition import Composition

QUADRATURE = "a quadrature is as exact as its finer and coarser rule agree (rounds followed one by one)"
_DEEPEST, _SHORTER = 1e-9, 0.88  # the window of losses reaches to so much of where the composed bound has this delta


def can_be_followed(part: Part) -> bool:
    """Whether `followed` would gain something: several rounds of a kind that it knows."""
    return rounds_of(part.claim) is not None and is_feasible(part.steps)


def followed(part: Part, alone: "Composition") -> Part:
    """All steps of the part as one block, where its rounds are known; `alone` is their plain composition."""
    kind = rounds_of(part.claim)
    if kind is None or part.claim is None or not can_be_followed(part):
        return part
    plain, attack = alone.upper, alone.lower

    @cache
    def reach() -> float:
        return max(_SHORTER * plain.epsilon(_DEEPEST), 1e-6)

    upper = rounds_profile(kind, part.steps, reach, upper=True).rounded_up()
    lower = rounds_profile(kind, part.steps, reach, upper=False).rounded_down()
    claim = replace(part.claim, design=Followed(part.claim.design, part.steps))
    best = Profile.maximum([attack, lower]) if attack else lower
    attacks = (("plain", attack), ("followed", lower)) if attack else ()  # two pairs: only one of them goes on
    return Part(Profile.minimum([plain, upper]), best, claim=claim, rounds=part.steps, attacks=attacks)
