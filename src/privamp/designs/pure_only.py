"""Checks and answers of designs whose theorems are only about pure mechanisms."""

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


def replaced_profile(loss: float, mechanism: Mechanism) -> Profile:
    """The same for one record replaced, where who is drawn does not depend on which record it is.

    Given who is drawn, the samples differ in that record at most, so the result is no worse than without sampling:
    the curve of two add/remove steps, below that of the loss 2 epsilon and, at a small epsilon, of smaller ones.
    """
    return Profile.minimum([upper_profile(loss), mechanism.profile(Neighbors.REPLACE_ONE)])


def lower_profile(loss: float) -> Profile:
    """The curve of an event that has this loss, moved down by more than its rounding."""
    return rare_event(loss * (1.0 - _MARGIN))


def is_black_box(mechanism: Mechanism, neighbors: Neighbors) -> bool:
    """Whether only its add/remove epsilon is known, so that the worst event of any such mechanism is an attack."""
    return mechanism.any_event and mechanism.neighbors.kind == "add-remove" and neighbors.records == 1
