"""The guarantee of one block of rounds of which each record joins one: random allocation, both sides.

Theorems and proofs: docs/schedules/balls_in_bins.md. The sums are worked out when first asked for.
"""

from collections.abc import Callable
from functools import cache

import numpy as np

from ..core.claim import Claim
from ..core.curves import group
from ..core.guarantee import Guarantee, Lower, Part
from ..core.mechanism import Mechanism
from ..core.multiplicity import Multiplicity
from ..core.neighbors import Neighbors
from ..core.profile import Curve, Profile
from ..core.schedule import OneOf
from ..errors import NoTheorem
from ..numerics.log_domain import FloatArray
from .composition import Composition
from .convex_order import POINTS, one_of_many
from .some_of_many import some_of_many

ALLOCATION = (
    "Random allocation, the mean of independent likelihood ratios in the convex order [add-remove → add-remove] "
    "(docs/schedules/balls_in_bins.md, Thm 1 and 2)"
)


def allocation(mechanism: Mechanism, block: OneOf, neighbors: Neighbors, points: int = POINTS) -> Guarantee:
    """The guarantee of `block` rounds of `mechanism` if each record joins one of them, on a grid of so many points."""
    if neighbors.kind != "add-remove":
        raise NoTheorem(
            "no theorem covers balls in bins under replace-one; use neighbors=Neighbors.ADD_REMOVE "
            "(replacing a record is removing one and adding another)"
        )
    mechanism.check_scope("anywhere")
    one = mechanism.profile(Neighbors.ADD_REMOVE).rounded_up()
    attack = mechanism.mixture(Neighbors.ADD_REMOVE, Multiplicity.certain())
    upper = group(_lazily(one, block.rounds, points, upper=True), neighbors.records).rounded_up()
    lower = _lazily(attack.rounded_down(), block.rounds, points, upper=False).rounded_down() if attack else None
    parts = (Part(upper, lower, claim=Claim(mechanism, block, neighbors)),)
    reason = ALLOCATION if neighbors.records == 1 else f"{ALLOCATION}, then group privacy"
    return Guarantee(
        neighbors=neighbors,
        upper=upper,
        reasons=lambda: (reason,),
        assumes=mechanism.assumes,
        parts=parts,
        lower=Lower(lower) if lower else None,
    )


def allocation_attack(mechanism: Mechanism, times: int, rounds: int, epochs: int) -> Lower | None:
    """What an adversary reaches under add/remove when each record joins `times` of `rounds` rounds in each epoch."""
    attack = mechanism.mixture(Neighbors.ADD_REMOVE, Multiplicity.certain())
    if attack is None:
        return None
    one = _called(lambda: some_of_many(attack.rounded_down(), times, rounds), attack).rounded_down()
    lower = one if epochs == 1 else Composition((Part(one, one, epochs),)).lower
    return Lower(lower) if lower else None


def _lazily(one: Profile, rounds: int, points: int, *, upper: bool) -> Profile:
    return _called(lambda: one_of_many(one, rounds, upper=upper, points=points), one)


def _called(make: Callable[[], Profile], one: Profile) -> Profile:
    """What `make` returns, made when first asked for; its losses are no larger than those of `one`."""
    whole = cache(make)

    def forward(epsilon: FloatArray) -> FloatArray:
        return np.asarray(whole().forward(epsilon))

    def backward(epsilon: FloatArray) -> FloatArray:
        return np.asarray(whole().backward(epsilon))

    return Profile(Curve(forward, one.forward.largest_loss), Curve(backward, one.backward.largest_loss))
