"""Rényi divergences: from a profile, from a mechanism, from a guarantee, and back to a profile.

With P, Q the two laws and alpha > 1 the order, D_alpha = log E_Q[(P/Q)^alpha] / (alpha - 1), and for every pair

    E_Q[(P/Q)^alpha] = 1 + alpha (alpha - 1) * integral over eps >= 0 of
                       e^((alpha-1) eps) delta_PQ(eps) + e^(-alpha eps) delta_QP(eps)

(Sason & Verdú 2016, integral of hockey sticks; the part below e^0 is the other direction's). delta is convex in
e^eps, so the chord between two points of any upper bound is above the truth: sums of chords are upper bounds.

Where a curve ends in a flat tail (the mass that a loss distribution cuts off, the delta of a black box) there is no
divergence. `renyi_with_cut` then cuts where the tail starts: P' = min(P, e^cut Q) has lost at most delta(cut) of its
mass, and the integral up to the cut bounds its moment. Losses and lost masses add up: docs/ledger.md, Thm 2.

Back: D_alpha <= tau gives delta(eps) <= e^((alpha-1)(tau-eps)) (1-1/alpha)^(alpha-1) / alpha for every eps
(Canonne, Kamath & Steinke 2020, Prop. 12), and delta(0) <= sqrt(tau/2) (Pinsker, since KL <= D_alpha).
"""

import math
from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from ..core.curves import group
from ..core.guarantee import Guarantee
from ..core.mechanism import ONE, Change, Mechanism
from ..core.neighbors import Neighbors, check_relation
from ..core.profile import Curve, Profile
from ..errors import Infeasible
from ..mechanisms.black_box import BlackBox
from ..mechanisms.gaussian import Gaussian
from ..numerics.log_domain import FloatArray, log1mexp, log_sum
from ..numerics.roots import first_at_most
from ..numerics.rounding import number_up
from ..validation import in_range, nonnegative, positive
from .joint import Joint

_FAR = 1e300
_TABLES_END = 1e6  # no curve falls again after this
_FINE = 2**16  # chords where the integrand is large
_NEGLIGIBLE = 60.0  # e^-60 of the largest value
_SUMMED = 1e-11  # relative rounding of the sums, generously
_NODES, _WEIGHTS = (0.5 * (x + s) for x, s in zip(np.polynomial.legendre.leggauss(6), (1.0, 0.0), strict=True))


def check_order(order: float) -> None:
    """Orders for which all of this holds in doubles."""
    in_range(1, 1e4, open_ends=True, order=order)


def renyi_of_profile(profile: Profile, order: float) -> float:
    """An upper bound on D_order in both directions, `inf` where the tail of the profile does not allow one.

    >>> from privamp import Laplace, Neighbors
    >>> round(renyi_of_profile(Laplace(1.0).profile(Neighbors.ADD_REMOVE), 2.0), 6)
    0.619124
    """
    check_order(order)
    if profile.largest_loss == 0.0:
        return 0.0
    profile = profile.rounded_up()
    return _bound([(profile.forward, profile.backward), (profile.backward, profile.forward)], order)


def renyi_with_cut(profile: Profile, order: float) -> tuple[float, float]:
    """(D_order, mass cut off): nothing is cut off where the divergence is finite."""
    whole = renyi_of_profile(profile, order)
    if math.isfinite(whole):
        return whole, 0.0
    profile = profile.rounded_up()
    floor = float(profile.log_delta(_TABLES_END))
    if floor > -1.0:
        return math.inf, 1.0
    cut = first_at_most(profile.log_delta, max(floor + 1e-6, -_NEGLIGIBLE), limit=_TABLES_END)
    forward, backward = (Curve(curve.log_delta, cut) for curve in (profile.forward, profile.backward))
    loss = _bound([(forward, profile.backward), (backward, profile.forward)], order)
    return loss, number_up(float(profile.delta(cut)))


def _bound(directions: list[tuple[Curve, Curve]], order: float) -> float:
    with np.errstate(invalid="ignore", over="ignore"):  # curves are asked as far out as 1e300
        log_excess = max(_log_excess(one, other, order) for one, other in dict.fromkeys(directions))
    bound = float(np.logaddexp(0.0, log_excess)) / (order - 1.0)
    return number_up(min(bound * (1.0 + _SUMMED), max(one.largest_loss for one, _ in directions)))


def _log_excess(one: Curve, other: Curve, order: float) -> float:
    """log of E_Q[(P/Q)^order] - 1."""
    parts = [_integral(one, order - 1.0), _integral(other, -order)]
    return math.log(order) + math.log(order - 1.0) + float(log_sum(np.asarray(parts))) + _SUMMED


def _integral(curve: Curve, slope: float) -> float:
    """log of an upper bound on the integral of e^(slope eps) delta(eps) over eps >= 0, by chords in e^eps."""
    if curve.largest_loss == 0.0:
        return -math.inf
    at = _grid(curve, slope)
    log_delta = curve(at)
    if log_delta[-1] + slope * at[-1] > -_NEGLIGIBLE:  # still not falling fast enough at 1e300
        return math.inf
    a, h = at[:-1], np.diff(at)
    left, right = log_delta[:-1], log_delta[1:]
    flat = left + _log_exponential(slope, h)  # delta never grows: its left value bounds the whole interval
    short = (abs(slope) * h <= 1.0) & (h <= 1.0)
    piece = flat.copy()
    if np.any(short):
        piece[short] = np.minimum(flat[short], _chord(left[short], right[short], h[short], slope))
    return float(log_sum(slope * a + piece))


def _log_exponential(slope: float, h: FloatArray) -> FloatArray:
    """log of the integral of e^(slope s) over 0 <= s <= h."""
    size = abs(slope) * h
    return max(slope, 0.0) * h + log1mexp(-size) - math.log(abs(slope))


def _chord(left: FloatArray, right: FloatArray, h: FloatArray, slope: float) -> FloatArray:
    """log of the integral of e^(slope s) times the chord from e^left to e^right, linear in e^s."""
    s = h[:, None] * _NODES
    share = np.expm1(s) / np.expm1(h)[:, None]  # how far along the chord
    growth = np.exp(slope * s)
    near, far = ((growth * part) @ _WEIGHTS for part in (1.0 - share, share))
    return np.asarray(np.log(h) + np.logaddexp(left + np.log(near), right + np.log(far)))


def _grid(curve: Curve, slope: float) -> FloatArray:
    """From 0 to where delta vanishes: fine where the integrand is large, wider and wider behind."""
    end = min(curve.largest_loss, _FAR)
    scan = np.minimum(np.geomspace(1e-12, _FAR, 14_000), end)
    height = curve(scan) + slope * scan + np.log(scan)
    large = scan[height > np.max(height) - _NEGLIGIBLE]
    top = min(float(large[-1]) * 1.06, end) if large.size else end
    inside = np.concatenate([np.linspace(0.0, top, _FINE), np.geomspace(1e-9 * top, top, 20_000)])
    step = 1.0 / (1.0 + abs(slope))
    growing = top + step * np.expm1(0.01 * np.arange(69_500)) / 0.01
    return np.unique(np.minimum(np.concatenate([inside, growing, [end]]), end))


@lru_cache(maxsize=1024)
def renyi_of_mechanism(mechanism: Mechanism, order: float, neighbors: Neighbors) -> tuple[float, float]:
    """(D_order, mass cut off) of one release; exact for Gaussian noise, added up for several on the same data."""
    check_order(order)
    mechanism.check_scope(neighbors.scope)
    if isinstance(mechanism, Joint):
        return _added([(renyi_of_mechanism(m, order, neighbors), 1) for m in mechanism.mechanisms])
    if isinstance(mechanism, RenyiDP) and mechanism.order >= order and neighbors == mechanism.neighbors:
        return mechanism.loss, mechanism.lost  # D grows with the order
    if isinstance(mechanism, Gaussian):
        shift = mechanism.sensitivity / mechanism.sigma * mechanism.records_apart(neighbors) * neighbors.records
        return number_up(0.5 * order * shift * shift), 0.0
    return renyi_with_cut(group(mechanism.profile(neighbors.per_record), neighbors.records), order)


def renyi_of_guarantee(guarantee: Guarantee, order: float) -> tuple[float, float]:
    """(D_order, mass cut off) of a release that is already certified: its fresh draws add up."""
    return _added([(renyi_with_cut(part.upper, order), part.steps) for part in guarantee.parts])


def _added(costs: list[tuple[tuple[float, float], int]]) -> tuple[float, float]:
    loss, lost = (math.fsum(times * cost[i] for cost, times in costs) for i in (0, 1))
    return number_up(loss), number_up(lost)


def renyi_curve(order: float, loss: float, lost: float = 0.0) -> Curve:
    """The profile that D_order <= loss implies, up to a lost mass, in either direction."""
    log_factor = (order - 1.0) * math.log1p(-1.0 / order) - math.log(order)
    kl = loss + 2.0 * order / (order - 1.0) * lost  # of the rest, made whole again
    log_pinsker = 0.5 * math.log(0.5 * kl) if kl > 0 and lost < 0.5 else 0.0 if kl > 0 else -math.inf
    log_lost = math.log(lost) if lost > 0 else -math.inf

    def log_delta(epsilon: FloatArray) -> FloatArray:
        implied = np.minimum((order - 1.0) * (loss - epsilon) + log_factor, log_pinsker)
        return np.asarray(np.logaddexp(log_lost, implied))

    return Curve(log_delta, 0.0 if kl == 0.0 else math.inf)


def loss_within(order: float, epsilon: float, delta: float) -> float:
    """The largest D_order that implies (epsilon, delta)-DP; Infeasible when not even 0 would do by this order."""
    check_order(order)
    nonnegative(epsilon=epsilon)
    in_range(0, 1, open_ends=True, delta=delta)
    loss = epsilon + (math.log(delta) + math.log(order)) / (order - 1.0) - math.log1p(-1.0 / order)
    loss -= 5e-12 * (1.0 - math.log(delta)) / (order - 1.0) + 1e-14 * (1.0 + epsilon)  # rounded up it still fits
    if loss <= 0.0:
        raise Infeasible(
            f"nothing fits into epsilon {epsilon:g} at delta {delta:g} by Rényi order {order:g}; "
            "use another order (best_order finds one), a larger epsilon or delta, or the basic rule"
        )
    return loss


def best_order(epsilon: float, delta: float) -> float:
    """The order into which the most Gaussian noise fits: the loss allowed, over the order, is largest.

    >>> best_order(3.0, 1e-6)
    8.94
    """
    positive(epsilon=epsilon)
    in_range(0, 1, open_ends=True, delta=delta)
    orders = 1.0 + np.geomspace(1e-3, 5e3, 4000)
    allowed = epsilon + (math.log(delta) + np.log(orders)) / (orders - 1.0) - np.log1p(-1.0 / orders)
    best = float(orders[int(np.argmax(allowed / orders))])
    rounded = float(f"{best:.3g}") if best > 1.01 else best
    loss_within(rounded, epsilon, delta)  # says so when nothing fits
    return rounded


@dataclass(frozen=True, slots=True)
class RenyiDP(BlackBox):
    """Any mechanism whose Rényi divergence of one order is at most `loss` in both directions, up to a lost mass."""

    order: float
    loss: float
    lost: float = 0.0
    neighbors: Neighbors = Neighbors.ADD_REMOVE

    def __post_init__(self) -> None:
        check_order(self.order)
        nonnegative(loss=self.loss)
        in_range(0, 1, lost=self.lost)
        check_relation(self.neighbors)

    def profile(self, neighbors: Neighbors, change: Change = ONE) -> Profile:
        """What the one order implies, symmetric; groups by the black-box bound."""
        one = Profile.symmetric(renyi_curve(float(self.order), float(self.loss), float(self.lost)))
        return group(one, self._records(neighbors, change))
