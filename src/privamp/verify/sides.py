"""Both directions of a claim, and the sentence for the one that failed.

A profile has a curve per direction, and composition uses both: a curve that is too low in the smaller direction would
pass a check of the maximum and be false after many rounds. Under replace-one the two data sets have no order, so there
both curves must cover both directions.
"""

import numpy as np

from ..core.neighbors import Kind, Neighbors
from ..core.profile import Profile
from ..numerics.log_domain import FloatArray

WORDS: dict[Kind, tuple[str, str]] = {
    "add-remove": ("D(with the record ‖ without it)", "D(without the record ‖ with it)"),
    "replace-one": ("D(one data set ‖ the other)", "D(the other data set ‖ the one)"),
}


def largest_losses(claimed: Profile, out: Neighbors) -> FloatArray:
    """The claimed pure loss in each direction, shape (2,)."""
    return _both(np.array([claimed.forward.largest_loss, claimed.backward.largest_loss]), out)


def deltas(claimed: Profile, epsilons: FloatArray, out: Neighbors) -> FloatArray:
    """The claimed delta in each direction, shape (2, n).

    Below 0 it is 1 - e^epsilon + e^epsilon delta(-epsilon) of the other direction.
    """
    there, back = (np.exp(curve(np.abs(epsilons))) for curve in (claimed.forward, claimed.backward))
    a = np.exp(epsilons)
    negative = np.stack([1.0 - a + a * back, 1.0 - a + a * there])
    return _both(np.where(epsilons >= 0.0, np.stack([there, back]), negative), out)


def failed(claims: FloatArray, truths: FloatArray, slack: float, out: Neighbors) -> str | None:
    """None when every claim covers its truth, shape (2,); else the direction in which it is farthest off."""
    if np.all(claims >= truths - slack):
        return None
    worst = int(np.argmax(truths - np.minimum(claims, np.finfo(float).max)))
    return f"the UPPER bound of {WORDS[out.kind][worst]}, {claims[worst]:.9g}, is below the truth {truths[worst]:.9g}"


def _both(values: FloatArray, out: Neighbors) -> FloatArray:
    return values if out.kind == "add-remove" else np.broadcast_to(values.max(axis=0), values.shape)
