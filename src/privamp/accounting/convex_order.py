"""Sums of independent likelihood ratios on a grid, above or below the truth in the convex order.

Each record joins one of t rounds, at random. Under the law Q without the record, the likelihood ratio of the whole
run is L = (W_1 + ... + W_t)/t, where W_i is the ratio of round i, so that

    delta_PQ(eps) = E[(L - e^eps)+],    delta_QP(eps) = E[(1 - e^eps L)+]

are expectations of convex functions of L. Replacing any part of a law by a mean-preserving spread raises them all;
replacing part of a law by its mean lowers them all; and both carry over to sums of independent terms. So W is put on
the grid e^(j interval), sums are formed by doubling, and the mass of every sum is split between the two grid points
beside it. Moved there, it has the mean it had: an upper bound. Left where it is, and all that was given to one grid
point replaced by its mean: a lower bound. Both errors are of second order in the interval. Proof:
docs/schedules/balls_in_bins.md, Thm 1 and 2.

On a geometric grid the sum of e^(i h) and e^(j h) lies at i + log(1 + e^((j-i) h))/h: how it is split depends on j - i
alone, so that adding two laws takes one short convolution for each of the log(2)/h places it may land in.
"""

import math
from dataclasses import dataclass, replace
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from ..core.curves import discrete_curve, pure_curve
from ..core.profile import Curve, Profile
from ..numerics.log_domain import FloatArray
from ..validation import whole
from .discretize import loss_laws, reach

POINTS = 6000  # of the grid, about
_COARSEST, _FINEST = 0.25, 2e-6  # intervals; a doubling moves a law by log(2)/interval points
_NEGLIGIBLE = 1e-26  # mass at the low end, or mean at the high end, that is moved to zero or to infinity
_LARGEST = 300.0  # of the losses of one round
_UNIT = 2.0**-53
_VALUES = 1e-13  # relative error of a grid value and of the point that its two shares stand for, generously


@dataclass(frozen=True, slots=True)
class Places:
    """Where e^0 + e^(d interval) lies for d = nearest, nearest + 1, ..., 0: at `place`, and `share` of the way on."""

    nearest: int
    place: NDArray[np.int64]
    share: FloatArray


@lru_cache(maxsize=64)
def places(interval: float, farthest: int) -> Places:
    """The offsets d >= -farthest for which the sum lies beyond the first cell; below `nearest` it lies inside of it."""
    nearest = max(math.floor(math.log(math.expm1(interval)) / interval) + 1, -farthest)
    small = np.exp(np.arange(nearest, 1) * interval)
    place = np.floor(np.log1p(small) / interval).astype(np.int64)
    share = (small - np.expm1(place * interval)) / (np.exp(place * interval) * math.expm1(interval))
    return Places(nearest, place, np.clip(share, 0.0, 1.0))


@dataclass(frozen=True, slots=True)
class Law:
    """A non-negative random variable: `mass[i]` at grid point first + i with first moment `moment[i]`, `zero` at 0.

    `infinite` is the part of the mean that lies at infinity (mass of P where Q has none); `error` bounds the relative
    error of every mass and moment.
    """

    upper: bool
    interval: float
    first: int
    mass: FloatArray
    moment: FloatArray
    zero: float
    infinite: float
    error: float = 8.0 * _UNIT
    sums: int = 0  # how many times it was put back on the grid

    @property
    def last(self) -> int:
        """Index of the last grid point."""
        return self.first + self.mass.size - 1

    @property
    def values(self) -> FloatArray:
        """The likelihood ratios at the grid's points."""
        return np.asarray(np.exp((self.first + np.arange(self.mass.size)) * self.interval))


def add(a: Law, b: Law) -> Law:
    """The sum of independent values of `a` and `b`, back on the grid and without its negligible ends."""
    first = min(a.first, b.first)
    size = max(a.last, b.last) + math.ceil(math.log(2.0) / a.interval) + 3 - first
    out = Law(
        upper=a.upper,
        interval=a.interval,
        first=first,
        mass=np.zeros(size),
        moment=np.zeros(size),
        zero=a.zero * b.zero,
        infinite=a.infinite + b.infinite,
        error=a.error + b.error + 4.0 * _UNIT * (a.mass.size + b.mass.size + 8.0),
        sums=max(a.sums, b.sums) + 1,
    )
    _add_smaller(out, a, b, ties=True)
    _add_smaller(out, b, a, ties=False)
    return _trimmed(replace(out, moment=out.mass * out.values) if a.upper else out)


def _add_smaller(out: Law, big: Law, small: Law, *, ties: bool) -> None:
    """All sums of a value of `big` and a value of `small` at a lower grid point (or at the same, with `ties`)."""
    at = places(big.interval, max(big.last - small.first, 1))
    _add_far(out, big, small, at)
    begin, spare = 0, np.zeros(1 - at.nearest)  # windows may reach beyond the ends
    small = replace(
        small,
        first=small.first - spare.size,
        mass=np.concatenate([spare, small.mass, spare]),
        moment=np.concatenate([spare, small.moment, spare]),
    )
    for end in (np.flatnonzero(np.diff(at.place, append=at.place[-1] + 1)) + 1).tolist():
        _add_place(out, big, small, at, begin, end if ties or end < at.place.size else end - 1)
        begin = end


def _add_place(out: Law, big: Law, small: Law, at: Places, begin: int, end: int) -> None:
    """The differences of grid points whose sums land between the same two: one convolution for each of the two."""
    least, most, spare = at.nearest + begin, at.nearest + end - 1, 1 - at.nearest
    low, high = max(big.first, small.first + spare - most), min(big.last, small.last - spare - least)
    if end <= begin or low > high:
        return
    i, j = slice(low - big.first, high - big.first + 1), slice(low + least - small.first, high + most + 1 - small.first)
    mass, moment, landing = big.mass[i], big.moment[i], int(at.place[begin]) - out.first
    for shift, share in ((0, 1.0 - at.share[begin:end]), (1, at.share[begin:end])):
        target = slice(low + landing + shift, high + landing + shift + 1)
        near = np.correlate(small.mass[j], share, "valid")
        out.mass[target] += mass * near
        if not out.upper:
            out.moment[target] += moment * near + mass * np.correlate(small.moment[j], share, "valid")


def _add_far(out: Law, big: Law, small: Law, at: Places) -> None:
    """Values so much smaller that the sum stays between the grid point of `big` and the next, zero among them."""
    count = np.clip(np.arange(big.first, big.last + 1) + at.nearest - small.first, 0, small.mass.size)
    mass = np.append(0.0, np.cumsum(small.mass))[count] + small.zero
    moment = np.append(0.0, np.cumsum(small.moment))[count]
    on = np.minimum(moment / (big.values * math.expm1(big.interval)), mass)  # the share that goes one point on
    for shift, share in ((0, mass - on), (1, on)):
        target = slice(big.first + shift - out.first, big.last + shift - out.first + 1)
        out.mass[target] += big.mass * share
        if not out.upper:  # their mean stands for all of them
            mean = np.divide(moment, mass, out=np.zeros_like(mass), where=mass > 0)
            out.moment[target] += share * (big.moment + big.mass * mean)


def _trimmed(law: Law) -> Law:
    """Without ends of negligible mass (low) or moment (high).

    Above the truth, the low end is split between zero and the first point that is kept, and what the high end has more
    than the last point goes to infinity. Below it, they are put together with the first and the last point.
    """
    low = int(np.searchsorted(np.cumsum(law.mass), _NEGLIGIBLE))
    beyond = np.cumsum(law.moment[::-1])
    high = max(law.mass.size - 1 - int(np.searchsorted(beyond, _NEGLIGIBLE * beyond[-1])), 0)
    low = min(low, high)
    mass, moment = law.mass[low : high + 1].copy(), law.moment[low : high + 1].copy()
    below, above = float(np.sum(law.mass[:low])), float(np.sum(law.mass[high + 1 :]))
    zero, infinite = law.zero, law.infinite
    if law.upper:
        up = min(float(np.sum(law.moment[:low])) / math.exp((law.first + low) * law.interval), below)
        zero, mass[0], mass[-1] = zero + (below - up), mass[0] + up, mass[-1] + above
        infinite += float(np.sum(law.mass[high + 1 :] * (law.values[high + 1 :] - law.values[high])))
        moment = mass * law.values[low : high + 1]
    else:
        mass[0], moment[0] = mass[0] + below, moment[0] + float(np.sum(law.moment[:low]))
        mass[-1], moment[-1] = mass[-1] + above, moment[-1] + float(np.sum(law.moment[high + 1 :]))
    return replace(law, first=law.first + low, mass=mass, moment=moment, zero=zero, infinite=infinite)


def _refined(law: Law, points: int) -> Law:
    """On a grid twice as fine while that has at most `points` points: the more terms, the narrower their mean."""
    while 2 * law.mass.size <= points and law.interval >= 2.0 * _FINEST:
        mass, moment = np.zeros((2, 2 * law.mass.size))
        mass[::2], moment[::2] = law.mass, law.moment
        law = replace(law, interval=0.5 * law.interval, first=2 * law.first, mass=mass, moment=moment)
    return law


def one_of_many(profile: Profile, rounds: int, *, upper: bool = True, points: int = POINTS) -> Profile:
    """Both directions when a record joins one of `rounds` rounds, each with this profile: above or below the truth.

    >>> from privamp import Gaussian, Neighbors
    >>> bound = one_of_many(Gaussian(1.0).profile(Neighbors.ADD_REMOVE), 100)
    >>> f"{bound.epsilon(1e-6):.3f}"
    '0.858'
    """
    whole(1, rounds=rounds)
    if rounds == 1 or profile.largest_loss == 0.0:
        return profile
    if reach(profile) > _LARGEST:  # ratios beyond the doubles: the mean of several is less spread than one of them
        return profile if upper else Profile.symmetric(pure_curve(0.0))
    return _profile(_sum(profile, rounds, points, upper=upper), rounds, profile)


def _sum(profile: Profile, rounds: int, points: int, *, upper: bool) -> Law:
    """The sum of `rounds` ratios: from the first binary digit on, double, and add one where the digit is 1."""
    interval = min(max(2.0 * reach(profile) / points, _FINEST), _COARSEST)
    total = one = _ratio(profile, interval, upper=upper)
    for digit in bin(rounds)[3:]:
        total = _refined(add(total, total), points)
        if digit == "1":
            if one.interval != total.interval:
                one = _ratio(profile, total.interval, upper=upper)
            total = _refined(add(total, one), points)
    return total


def _ratio(profile: Profile, interval: float, *, upper: bool) -> Law:
    """The likelihood ratio of one round under Q, from the law of its loss under P."""
    law, other = loss_laws(profile, interval, upper=upper)
    mass = law.mass * np.exp(-law.losses)
    return _trimmed(Law(upper, law.interval, law.first, mass, law.mass, other.infinite, law.infinite))


def _profile(law: Law, rounds: int, one: Profile) -> Profile:
    """The two curves of the mean of the ratios; its error is taken off or added on."""
    with np.errstate(divide="ignore", invalid="ignore"):
        live = law.mass > 0
        loss = np.log(law.moment[live] / law.mass[live]) - math.log(rounds)
        log_p, log_q = np.log(law.moment[live]) - math.log(rounds), np.log(law.mass[live])
        forward = discrete_curve(loss, log_p, float(np.log(law.infinite / rounds)))
        backward = discrete_curve(-loss, log_q, float(np.log(law.zero)))
    slack = (law.sums + 1) * _VALUES
    return Profile(
        _widened(forward, slack, law.error, one.forward.largest_loss, upper=law.upper),
        _widened(backward, slack, law.error, one.backward.largest_loss, upper=law.upper),
    )


def _widened(curve: Curve, slack: float, error: float, most: float, *, upper: bool) -> Curve:
    sign = 1.0 if upper else -1.0

    def log_delta(epsilon: FloatArray) -> FloatArray:
        return curve(np.maximum(epsilon - sign * slack, 0.0)) + sign * (error + slack)

    return Curve(log_delta, min(curve.largest_loss + sign * slack, most))
