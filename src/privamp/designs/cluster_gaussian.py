"""Whole clusters under Gaussian noise: one centre compared with several that all lie on one side of it.

With q the chance that the changed cluster is drawn, and pi_h that the others are drawn instead (1 - q in all), for
alpha >= 1 and distances along a line in units of sigma,

    delta(eps) = integral [q phi(t) - alpha q phi(t + b) - (alpha - 1) sum_h pi_h phi(t + e_h)]+.

The bracket is positive right of one point x. There q phi(x) is the sum of the others, so every term is positive:

    delta = alpha q phi(x+b) [M(x) - M(x+b)] + (alpha - 1) sum_h pi_h phi(x+e_h) [M(x) - M(x+e_h)],  M the Mills ratio.

The right side falls in x: its slope is q Pr[N > x] times that of the sum over q phi(x). So at a point that is surely
not right of x it is no less than delta, and x is found from the left (`_threshold`).

With theta the add/remove sensitivity over sigma and D_h = (c_i - 1 + c_h) theta, c the caps: one record more has
b = theta, e = theta + D; one record less b = theta, e = D; replaced inside its cluster b = 2 theta, e = theta + D.
Exact for equal caps and for one cluster with public probabilities. Proof: docs/designs/cluster.md, Thm 8.
"""

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from ..core.curves import out_and_in
from ..core.mechanism import Mechanism
from ..core.neighbors import Neighbors
from ..core.profile import Curve, Profile
from ..core.theorem import Theorem
from ..errors import NoTheorem
from ..numerics.log_domain import FloatArray, as_floats, log_expm1, log_mills_gap, log_sum
from ..numerics.roots import NumericalFailure
from .shared_copies import gaussian_shift

AR, RO = Neighbors.ADD_REMOVE, Neighbors.REPLACE_ONE
_ROUNDS = 200
_MARGIN = 4 * 2.0**-52  # of a logarithm, for every unit of what is added up in it
_PAGE = "docs/designs/cluster.md, Thm 8"

InEach = Callable[[Any, Mechanism, Callable[..., Profile]], Profile]
Bound = Callable[[Any, Mechanism, Neighbors], Profile]
"""(design, mechanism, added or replaced) -> the profile over the clusters that the changed record may be in."""


def one_against_several(chance: float, near: float, others: Sequence[tuple[float, float]]) -> Curve:
    """The curve for b = near and the (pi_h, e_h) of the others."""
    shift = as_floats([near, *(e for _, e in others)])  # shape (1 + H,)
    with np.errstate(divide="ignore"):
        log_pi = np.log(as_floats([p for p, _ in others])) - math.log(chance)

    def weights(epsilon: FloatArray) -> FloatArray:
        """log of the coefficients over q, shape (E, 1 + H)."""
        with np.errstate(divide="ignore"):
            return np.concatenate([epsilon[:, None], log_expm1(epsilon)[:, None] + log_pi], axis=1)

    def log_delta(epsilon: FloatArray) -> FloatArray:
        flat = np.ravel(as_floats(epsilon))
        log_w = weights(flat) - 0.5 * shift * shift
        x = _threshold(log_w, shift)[:, None]
        terms = log_w - shift * x + log_mills_gap(x, shift)
        return np.asarray(math.log(chance) + log_sum(terms, axis=1)).reshape(np.shape(epsilon))

    return Curve(log_delta)


def _threshold(log_w: FloatArray, shift: FloatArray) -> FloatArray:
    """A point at or left of where the terms w e^(-shift x) add up to 1, left of it by a few roundings of their sum.

    The logarithm of the sum is convex and falls, so Newton from the left comes up to the point where it is two margins;
    a margin is more than the sum and x are rounded by, so that within one of it the true sum is still at least 1.
    """
    x: FloatArray = np.max(log_w / shift, axis=1)
    for _ in range(_ROUNDS):
        terms = log_w - shift * x[:, None]
        above = log_sum(terms, axis=1)
        share = np.exp(terms - above[:, None])
        size = np.where(share > 0.0, np.abs(log_w) + np.abs(shift * x[:, None]), 0.0)
        margin = _MARGIN * (1.0 + shift.size + np.max(size, axis=1))
        off = above - 2.0 * margin
        if np.all(np.abs(off) <= margin):
            return x
        x = np.where(np.abs(off) <= margin, x, x + off / np.sum(share * shift, axis=1))
    raise NumericalFailure("the threshold of several Gaussian densities did not converge")


def is_covered_by_gaussian(mechanism: Mechanism) -> bool:
    """Whether it is Gaussian noise or post-processing of it, so that theorems about Gaussian noise are used."""
    covering = mechanism.covering
    return mechanism.is_gaussian or (covering is not None and covering.is_gaussian and mechanism.is_covered_exactly)


def add_remove_shift(mechanism: Mechanism) -> float:
    """theta of Gaussian noise stated for add/remove, or NoTheorem."""
    if not mechanism.is_gaussian:
        raise NoTheorem("this theorem is about Gaussian noise")
    mechanism.profile(AR)  # refuses what is stated for replace-one only
    return 0.5 * gaussian_shift(mechanism)


def added(theta: float, chance: float, others: Sequence[tuple[float, float]]) -> Profile:
    """One record more; others are (pi_h, c_i - 1 + c_h)."""
    far = [(p, (steps + 1) * theta) for p, steps in others]
    back = [(p, steps * theta) for p, steps in others]
    return Profile(one_against_several(chance, theta, far), one_against_several(chance, theta, back))


def replaced(theta: float, chance: float, others: Sequence[tuple[float, float]]) -> Profile:
    """One record replaced inside its cluster."""
    far = [(p, (steps + 1) * theta) for p, steps in others]
    return Profile.symmetric(one_against_several(chance, 2.0 * theta, far))


def theorems(subject: str, in_each: InEach) -> tuple[Theorem, ...]:
    """The three statements about a design of whole clusters."""

    def one_more(design: Any, mechanism: Mechanism, neighbors: Neighbors) -> Profile:
        return in_each(design, mechanism, added)

    def inside(design: Any, mechanism: Mechanism, neighbors: Neighbors) -> Profile:
        return in_each(design, mechanism, replaced)

    return three_statements(subject, _PAGE, one_more, inside, are_tight=True)


def three_statements(of: str, page: str, one_more: Bound, inside: Bound, *, are_tight: bool) -> tuple[Theorem, ...]:
    """One record more, one replaced inside its cluster, and one that moves, which follows from the first."""

    def elsewhere(design: Any, mechanism: Mechanism, neighbors: Neighbors) -> Profile:
        return out_and_in(one_more(design, mechanism, neighbors))

    return (
        Theorem(f"{of}, one record more, Gaussian", page, AR.kind, AR.kind, are_tight, one_more, _is_gaussian),
        Theorem(
            f"{of}, one record replaced inside its cluster, Gaussian", page, AR.kind, RO.kind, are_tight, inside,
            _is_gaussian, scope="within cluster",
        ),
        Theorem(f"{of}, one record replaced, Gaussian", page, AR.kind, RO.kind, False, elsewhere, _is_gaussian),
    )  # fmt: skip


def _is_gaussian(mechanism: Mechanism) -> bool:
    return mechanism.is_gaussian
