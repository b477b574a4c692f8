"""Conversions of a guarantee, rounded up: Rényi divergence of one order, zCDP, Gaussian DP.

Each is found for one step of every part and added up over the fresh draws: divergences and rho add, mu adds in squares
(Mironov 2017, Prop. 1; Bun & Steinke 2016, Lemma 2.3; Dong, Roth & Su 2022, Cor. 3.3).

mu: the release is mu-GDP when delta(eps) <= delta_mu(eps) for all eps >= 0 in both directions, delta_mu being
Gaussian noise's own curve. Between two points of a grid delta lies below its chord, as a function of alpha = e^eps,
and delta_mu above its tangents at the two points; the chord is compared with the tangents. The points are 1.0005
times apart, and as much may mu be too large. The grid ends at 1e12; losses beyond must be less likely than e^-1e6,
and are left out.

Poisson and simple random sampling with the noise's own relation: reveal the others' coins, or draws. Both laws are then
mixtures whose parts are neighbours or equal, with equal weights, so that by joint convexity delta is at most the
unsampled one's at every epsilon. Gaussian noise of mu = sensitivity/sigma keeps this mu under them.

rho: mu-GDP implies mu^2/2-zCDP. For pure epsilon also epsilon^2/2 (Bun & Steinke 2016, Prop. 3.3), or the supremum over
all orders of D_order/order: (order - 1) D_order is convex in the order, so that between two orders it is below its
chord, whose ratio to order (order - 1) has its largest value at an end or at a root of a quadratic; D_order is at most
epsilon, and does not fall with the order.
"""

import math

import numpy as np

from ..core.guarantee import Guarantee, Part
from ..core.neighbors import Neighbors
from ..core.profile import Curve, Profile
from ..core.weighting import Coins, Subset
from ..mechanisms.gaussian import Gaussian
from ..numerics.log_domain import FloatArray, log_mills_gap, log_normal_tail
from ..numerics.roots import halved
from ..numerics.rounding import number_up
from .renyi import renyi_of_guarantee, renyi_of_profile

_GRID = np.concatenate([[0.0], np.geomspace(1e-9, 1e-4, 100), np.geomspace(1e-4, 1e12, 74_000)[1:]])
_ORDERS = (1.02, 1.1, 1.25, 1.5, 2.0, 2.6, 3.5, 5.0, 7.0, 10.0, 16.0, 32.0, 64.0, 256.0)
_MOST = 1e6  # no mu beyond this is worth a number
_SAFE = 1e-10
_NEVER = -1e6


def renyi(guarantee: Guarantee, order: float) -> float:
    """D_order in both directions; `inf` where the profile's tail has none."""
    loss, lost = renyi_of_guarantee(guarantee, order)
    return loss if lost == 0.0 else math.inf


def gdp(guarantee: Guarantee) -> float:
    """mu of all parts together."""
    squares = [part.steps * min(_mu(part.upper), _unsampled(part)) ** 2 for part in guarantee.parts]
    return number_up(math.sqrt(math.fsum(squares)))


def zcdp(guarantee: Guarantee) -> float:
    """rho of all parts together."""
    rhos = [part.steps * min(_rho(part.upper), 0.5 * _unsampled(part) ** 2) for part in guarantee.parts]
    return number_up(math.fsum(rhos))


def _unsampled(part: Part) -> float:
    """mu of Gaussian noise on all the data, where sampling cannot raise it; else `inf`."""
    claim = part.claim
    if claim is None or part.rounds != 1 or claim.neighbors.records != 1 or type(claim.mechanism) is not Gaussian:
        return math.inf
    kind = claim.neighbors.kind
    chances = claim.design.equal_chances
    is_covered = isinstance(chances, Coins) or (isinstance(chances, Subset) and kind == Neighbors.REPLACE_ONE.kind)
    if not is_covered or kind != claim.mechanism.neighbors.kind:
        return math.inf
    return float(claim.mechanism.sensitivity / claim.mechanism.sigma) * (1.0 + 1e-15)


def _mu(profile: Profile) -> float:
    """The smallest mu whose curve is above both directions, from above."""
    if profile.largest_loss == 0.0:
        return 0.0
    values = [_values(c) for c in ((profile.forward,) if profile.is_symmetric else (profile.forward, profile.backward))]
    low, high = 0.0, 1.0

    def suffices(mu: float) -> bool:
        return all(_is_above(mu, log_delta) for log_delta in values)

    while not suffices(high):
        low, high = high, 2.0 * high
        if high > _MOST:
            return math.inf
    return halved(suffices, low, high, until=lambda low, high: high - low <= 1e-6 * high)[1]


def _values(curve: Curve) -> FloatArray:
    with np.errstate(over="ignore", invalid="ignore"):
        return np.asarray(curve(_GRID))


def _is_above(mu: float, log_delta: FloatArray) -> bool:
    """Whether delta_mu is above the chords of the curve."""
    with np.errstate(all="ignore"):
        own = np.asarray(log_mills_gap(_GRID / mu - 0.5 * mu, np.full_like(_GRID, mu))) - _SAFE
        if np.any(np.isnan(own)):
            return False
        # everything in units of delta_mu at the left point, alpha in units of the left one
        a, b = own[:-1], own[1:]
        slope_a, slope_b = (log_normal_tail(e / mu + 0.5 * mu) + _GRID[:-1] - a for e in (_GRID[:-1], _GRID[1:]))
        width = np.expm1(np.diff(_GRID))
        left, right, far = np.exp(log_delta[:-1] - a), np.exp(log_delta[1:] - a), np.exp(b - a)
        sa, sb = np.exp(slope_a) * (1.0 + _SAFE), np.exp(slope_b)
        cross = np.clip((1.0 - far - sb * width) / np.maximum(sa - sb, 1e-300), 0.0, width)
        lowest = np.maximum(1.0 - sa * cross, far + sb * (width - cross)) - _SAFE
        chord = left + (right - left) * cross / width
        second = (chord <= lowest) & (left <= 1.0) & (right <= far)
        first = log_delta[:-1] <= b  # delta does not grow: enough without tangents
        nothing = np.isneginf(log_delta[:-1])
    return bool(np.all(first | second | nothing)) and bool(log_delta[-1] < _NEVER)


def _rho(profile: Profile) -> float:
    end = profile.largest_loss
    if end == 0.0:
        return 0.0
    by_gdp = 0.5 * _mu(profile) ** 2
    if math.isinf(end):
        return number_up(by_gdp)
    return number_up(min(by_gdp, 0.5 * end * end, _over_orders(profile, end)))


def _over_orders(profile: Profile, end: float) -> float:
    """The supremum of D_order/order for a pure profile."""
    losses = [min(renyi_of_profile(profile, order), end) for order in _ORDERS]
    highest = max(losses[0], end / _ORDERS[-1])  # orders next to 1, and beyond the last
    for a, b, loss_a, loss_b in zip(_ORDERS[:-1], _ORDERS[1:], losses[:-1], losses[1:], strict=True):
        highest = max(highest, _chord_ratio(a, b, (a - 1.0) * loss_a, (b - 1.0) * loss_b))
    return highest * (1.0 + 1e-12)


def _chord_ratio(a: float, b: float, at_a: float, at_b: float) -> float:
    """The largest value on [a, b] of the chord's (p + q x)/(x (x - 1)): at an end, or where q x^2 + 2 p x - p = 0."""
    q = (at_b - at_a) / (b - a)
    p = at_a - q * a
    roots = np.roots([q, 2.0 * p, -p]) if q != 0.0 else np.asarray([0.5])
    inside = [float(r.real) for r in roots if abs(r.imag) < 1e-9 and a < r.real < b]
    return max((p + q * x) / (x * (x - 1.0)) for x in (a, b, *inside))
