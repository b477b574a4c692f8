"""What designs with theorems for pure mechanisms alone ask of a mechanism, and what they answer."""

import math

from ..core.curves import pure_curve, rare_event
from ..core.mechanism import Mechanism
from ..core.neighbors import Neighbors
from ..core.profile import Profile
from ..errors import PURE_ONLY, NoTheorem

_MARGIN = 1e-13  # relative: closed forms are computed to well within it


def pure_epsilon(mechanism: Mechanism, neighbors: Neighbors) -> float:
    """The pure epsilon under a relation, or NoTheorem."""
    loss = mechanism.profile(neighbors).largest_loss
    if math.isfinite(loss):
        return loss
    raise NoTheorem(
        f"{PURE_ONLY}, and {type(mechanism).__name__} has no finite epsilon at delta 0; use "
        "Laplace or discrete Laplace noise, or draw by Poisson or WithoutReplacement"
    )


def upper_profile(loss: float) -> Profile:
    """The curve of a pure loss, moved up by more than its rounding."""
    return Profile.symmetric(pure_curve(loss * (1.0 + _MARGIN)))


def lower_profile(loss: float) -> Profile:
    """The curve of an event that has this loss, moved down by more than its rounding."""
    return rare_event(loss * (1.0 - _MARGIN))


def is_black_box(mechanism: Mechanism, neighbors: Neighbors) -> bool:
    """Whether only its add/remove epsilon is known, so that the worst event of any such mechanism is an attack."""
    return mechanism.any_event and mechanism.neighbors.kind == "add-remove" and neighbors.records == 1
