"""Both directions of P = sum_u p_u N(u theta, 1) against Q = N(0, 1), exact; and the replace-one pair.

The loss L(t) = log sum_u p_u e^(u theta t - u^2 theta^2/2) increases, so {L > eps} is a half line and its end
t decides. With w_u = p_u e^(u theta t - u^2 theta^2/2) and sum w_u = e^L(t) in place of e^(+-eps) every term
is positive (M the Mills ratio, phi the density), and nothing cancels:

    delta_PQ(eps) = sum_{u>=1} p_u phi(t - u theta) [M(t - u theta) - M(t)],            L(t) = eps
    delta_QP(eps) = e^eps phi(t) sum_{u>=1} w_u [M(-t) - M(-t + u theta)],              L(t) = -eps

L falls to log p_0 on the left, so delta_QP is 0 from eps = -log p_0 on. The root is found in G(t) = log
sum_{u>=1} w_u = log(e^L - p_0): convex with slope at least theta, so Newton's method from the right comes
down on it without overshooting, however small p_1 is.

Over many epsilons most counts u do not matter: taking them as no appearance moves D(P||Q) by at most their mass and
D(Q||P) by e^eps times that. Where this is below 1e-20 of the smallest delta in question they are left out.
"""

import math
from collections.abc import Callable
from copy import copy

import numpy as np

from ..core.multiplicity import Multiplicity
from ..core.profile import Curve, Profile
from ..numerics.log_domain import FloatArray, as_floats, log1mexp, log_diff, log_expm1, log_mills_gap, log_sum
from ..numerics.roots import NumericalFailure

_ROUNDS = 200
_AT_ONCE, _FEW = 4096, 64  # epsilons worked on together; too few for leaving out counts to save time
_ENTRIES, _CACHED = 2_000_000, 100_000  # of a piece; of one array, which stays in a processor's cache
_NOTHING = -46.0  # log of a relative change below double precision


class GaussianMixture:
    """The components with u >= 1, and their total."""

    __slots__ = ("log_eta", "log_p", "log_p0", "shift")

    def __init__(self, shift: FloatArray, log_p: FloatArray, log_p0: float) -> None:
        self.shift = shift  # u theta, rising, shape (U,)
        self.log_eta = min(float(log_sum(log_p)), 0.0)  # log of sum_{u>=1} p_u
        self.log_p: FloatArray = log_p - self.log_eta  # given u >= 1, shape (U,)
        self.log_p0 = log_p0

    def without(self, log_mass: float) -> "GaussianMixture":
        """The largest counts, of total mass e^log_mass at most, taken as no appearance."""
        tails = self.log_eta + np.logaddexp.accumulate(self.log_p[::-1])[::-1]
        kept, few = max(int(np.sum(tails > log_mass)), 1), copy(self)
        few.shift, few.log_p = self.shift[:kept], self.log_p[:kept]
        return few

    def log_ratio(self, t: FloatArray) -> FloatArray:
        """log w_u/eta at t, shape (t, U)."""
        return self.log_p + self.shift * (t[:, None] - 0.5 * self.shift)

    def log_target(self, y: FloatArray) -> FloatArray:
        """log (e^y - p_0)/eta: what sum_{u>=1} w_u/eta must reach; -inf when nothing is left."""
        with np.errstate(divide="ignore"):
            above = np.logaddexp(0.0, log_expm1(np.maximum(y, 0.0)) - self.log_eta)
            below = log1mexp(np.minimum(log1mexp(y) - self.log_eta, 0.0))
            far_below = log_diff(np.maximum(y, self.log_p0), self.log_p0) - self.log_eta
        return np.where(y >= 0.0, above, np.where(y > -1.0, below, far_below))

    def threshold(self, target: FloatArray) -> FloatArray:
        """t with sum_{u>=1} w_u/eta = e^target."""
        # where one term alone reaches the target: right of the root
        t: FloatArray = np.min((target[:, None] - self.log_p) / self.shift + 0.5 * self.shift, axis=1)
        for _ in range(_ROUNDS):
            terms = self.log_ratio(t)
            top = np.max(terms, axis=1)
            weights = np.exp(terms - top[:, None])
            total = np.sum(weights, axis=1)
            above = top + np.log(total) - target
            step = above * total / (weights @ self.shift)
            t = t - step
            close = np.abs(above) <= 1e-11 * (1.0 + np.abs(target))  # this step squares it
            if np.all(close | (np.abs(step) <= 4e-15 * (np.abs(t) + 1.0 / self.shift[-1]))):
                return self._polished(t, target)
        raise NumericalFailure("the Gaussian mixture's threshold did not converge")

    def _polished(self, t: FloatArray, target: FloatArray) -> FloatArray:
        """Two more steps where every ratio is near 1, with the digits of e^target - 1 that the sum lost."""
        exponent = self.shift * (t[:, None] - 0.5 * self.shift)
        near = np.max(np.abs(exponent), axis=1) < 0.5
        for _ in range(2 if np.any(near) else 0):
            exponent = self.shift * (t[near, None] - 0.5 * self.shift)
            p = np.exp(self.log_p)
            above = np.log1p(np.expm1(exponent) @ p) - target[near]
            t[near] -= above * (np.exp(exponent) @ p) / (np.exp(exponent) @ (p * self.shift))
        return t

    def log_forward(self, epsilon: FloatArray) -> FloatArray:
        """log delta_PQ."""
        t = self.threshold(self.log_target(epsilon))[:, None]
        return self.log_eta + log_sum(self.log_p + log_mills_gap(t - self.shift, self.shift), axis=1)

    def log_backward(self, epsilon: FloatArray) -> FloatArray:
        """log delta_QP, zero from -log p_0 on."""
        out, target = np.full_like(epsilon, -np.inf), self.log_target(-epsilon)
        live = np.isfinite(target) & (-epsilon > self.log_p0)
        t = self.threshold(target[live])
        ratio = self.log_ratio(t)
        ratio += (target[live] - log_sum(ratio, axis=1))[:, None]  # large exponents lose digits together
        terms = ratio + log_mills_gap(-t[:, None], self.shift)
        out[live] = self.log_eta + epsilon[live] + log_sum(terms, axis=1)
        return out


Direction = Callable[[GaussianMixture, FloatArray], FloatArray]


def gaussian_mixture(theta: float, law: Multiplicity) -> Profile:
    """The exact profile of the pair; P's tail counts as no appearance."""
    if theta == 0.0 or not np.any(np.isfinite(law.log_p)):
        return Profile.symmetric(Curve(lambda at: np.full_like(at, -np.inf), 0.0))
    live = np.isfinite(law.log_p)
    none = float(np.logaddexp(law.log_none, law.log_tail))
    return _profile(GaussianMixture(law.counts[live] * theta, law.log_p[live], none))


def moved_gaussians(shifts: FloatArray, chances: FloatArray) -> Profile:
    """The exact profile of (sum_i p_i N(shift_i) + the rest N(0), N(0)); positive shifts in rising order."""
    if shifts.size == 0:
        return Profile.symmetric(Curve(lambda at: np.full_like(at, -np.inf), 0.0))
    rest = math.fsum([1.0, *(-chances)])
    return _profile(GaussianMixture(shifts, np.log(chances), math.log(rest) if rest > 0.0 else -math.inf))


def _profile(mixture: GaussianMixture) -> Profile:
    forward = Curve(lambda at: _in_pieces(mixture, GaussianMixture.log_forward, at))
    backward = Curve(lambda at: _in_pieces(mixture, GaussianMixture.log_backward, at), -min(mixture.log_p0, 0.0))
    return Profile(forward, backward)


def _in_pieces(mixture: GaussianMixture, curve: Direction, at: FloatArray) -> FloatArray:
    """The curve at any number of epsilons, each piece with the counts that matter to its smallest delta."""
    flat = as_floats(at).ravel()
    step = min(_AT_ONCE, max(_ENTRIES // mixture.shift.size, 1))
    pieces = [_piece(mixture, curve, flat[i : i + step]) for i in range(0, flat.size, step)]
    return np.concatenate(pieces).reshape(np.shape(at)) if pieces else np.zeros(np.shape(at))


def _piece(mixture: GaussianMixture, curve: Direction, epsilon: FloatArray) -> FloatArray:
    if epsilon.size > _FEW:
        last = np.max(epsilon, keepdims=True)
        mixture = mixture.without(float((curve(mixture, last) - last)[0]) + _NOTHING)
    rows = max(_CACHED // mixture.shift.size, 1)
    return np.concatenate([curve(mixture, epsilon[i : i + rows]) for i in range(0, epsilon.size, rows)])


def opposite_gaussians(theta: float, chance: float) -> Profile:
    """The exact profile of ((1-q)N(0) + qN(theta), (1-q)N(0) + qN(-theta)); both directions are equal.

    With a = e^eps and k = e^(-theta^2/2) the threshold z = e^(t theta) solves
    q k z^2 - (1-q)(a-1) z - a q k = 0, so log z = eps/2 + asinh(X), X = (1-q) sinh(eps/2)/(q k).
    There q phi(t-theta) = (1-q)(a-1) phi(t) + a q phi(t+theta), which turns delta into positive terms:

        delta = (1-q)(a-1) phi(t) [M(t-theta) - M(t)] + a q phi(t+theta) [M(t-theta) - M(t+theta)].
    """
    if chance == 0.0 or theta == 0.0:
        return Profile.symmetric(Curve(lambda at: np.full_like(at, -np.inf), 0.0))
    log_q, log_rest = math.log(chance), math.log1p(-chance) if chance < 1.0 else -math.inf

    def log_delta(epsilon: FloatArray) -> FloatArray:
        with np.errstate(divide="ignore"):
            log_sinh = log_expm1(epsilon) - 0.5 * epsilon - math.log(2.0)
            log_x = log_rest - log_q + 0.5 * theta * theta + log_sinh
        t = (0.5 * epsilon + _asinh_exp(log_x)) / theta
        stay = log_rest + log_expm1(epsilon) + log_mills_gap(t - theta, theta) - theta * (t - 0.5 * theta)
        move = log_q + epsilon + log_mills_gap(t - theta, 2.0 * theta) - 2.0 * theta * t
        return np.logaddexp(stay, move)

    return Profile.symmetric(Curve(log_delta))


def _asinh_exp(log_x: FloatArray) -> FloatArray:
    """asinh(e^log_x) without overflow."""
    return np.where(log_x < 40.0, np.arcsinh(np.exp(np.minimum(log_x, 40.0))), log_x + math.log(2.0))
