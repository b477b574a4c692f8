"""Curves used everywhere: the worst pure and approximate pairs, discrete losses, and groups of records."""

import math
from functools import cache

import numpy as np

from ..numerics.log_domain import FloatArray, as_floats, log1mexp, log_diff, log_expm1, log_sum
from .chains import chain_curve, steps_curve
from .profile import Curve, Profile

_FOLLOWED = 512  # records up to which a chain is followed step by step
_OFF = 2e-15  # relative error of a logarithm after a few operations, generously


def pure_curve(epsilon: float, *, is_certain: bool = False) -> Curve:
    """The largest curve of any epsilon-DP pair, randomised response's: (e^eps0 - e^eps)/(1 + e^eps0)."""

    def log_delta(at: FloatArray) -> FloatArray:
        gap = np.minimum(at - epsilon, 0.0)
        return log1mexp(gap) - float(np.logaddexp(0.0, -epsilon))

    return Curve(log_delta, epsilon, is_certain)


def directed_curve(own: float, other: float) -> Curve:
    """The largest curve of D(P||Q) between laws with P <= e^own Q and Q <= e^other P (inf: nothing is known there).

    p (1 - e^(eps - own)), p = (1 - e^-other)/(1 - e^-(own + other)), reached by two outcomes; docs/theory.md, Lemma 6.
    With equal ends it is `pure_curve`; one direction's end alone gives 1 - e^(eps - own).
    """
    if own <= 0.0 or other <= 0.0:  # one of two probabilities nowhere above the other: they are equal
        return Curve(lambda at: np.full_like(at, -np.inf), 0.0)
    log_p = float(log1mexp(-other) - log1mexp(-own - other))
    return Curve(lambda at: log1mexp(np.minimum(at - own, 0.0)) + log_p, own)


def approx_curve(epsilon: float, delta: float) -> Curve:
    """The largest curve of any (epsilon, delta)-DP pair: delta is lost, the rest is pure."""
    if delta == 0.0:
        return pure_curve(epsilon)
    pure = pure_curve(epsilon)

    def log_delta(at: FloatArray) -> FloatArray:
        if delta == 1.0:
            return np.zeros_like(at)
        return np.logaddexp(math.log(delta), math.log1p(-delta) + pure(at))

    return Curve(log_delta)


def discrete_curve(losses: FloatArray, log_p: FloatArray, log_infinite: float = -math.inf) -> Curve:
    """The curve of a discrete loss law: outcome i has loss losses[i] with log probability log_p[i] under P.

    delta(eps) = sum over losses above eps of p (1 - e^(eps - loss)), summed from the far end as positive
    pieces (e^loss_{i+1} - e^loss_i) * Q(loss > loss_i), so that nothing cancels however small it is.
    """
    order = np.argsort(losses)
    loss, lp = as_floats(losses)[order], as_floats(log_p)[order]
    keep = np.isfinite(lp)
    loss, lp = loss[keep], lp[keep]
    if loss.size == 0:
        nothing = log_infinite == -math.inf
        return Curve(lambda at: np.full_like(at, log_infinite), 0.0 if nothing else math.inf)
    # log_v[i] = log Q-mass of outcomes i.., the slope of delta just below losses[i] (in e^eps)
    log_v = np.logaddexp.accumulate((lp - loss)[::-1])[::-1]
    step = log_v[1:] + log_diff(loss[1:], loss[:-1])  # delta(losses[i]) - delta(losses[i+1])
    at_losses = np.concatenate([np.logaddexp.accumulate(step[::-1])[::-1], [-np.inf]])

    def log_delta(at: FloatArray) -> FloatArray:
        i = np.searchsorted(loss, at, side="right")  # first loss above `at`
        inside = i < loss.size
        j = np.minimum(i, loss.size - 1)
        piece = log_v[j] + log_diff(np.maximum(loss[j], at), at)
        finite = np.where(inside, np.logaddexp(piece, at_losses[j]), -np.inf)
        return np.logaddexp(finite, log_infinite)

    largest = float(loss[-1]) if log_infinite == -math.inf else math.inf
    return Curve(log_delta, max(largest, 0.0))


def pair_profile(log_p: FloatArray, log_q: FloatArray) -> Profile:
    """Both directions of two discrete laws given outcome by outcome as log probabilities.

    Losses are differences of the logarithms; when those are large and the losses are known in closed
    form, `discrete_curve` keeps more digits.
    """
    return Profile(_pair_curve(log_p, log_q), _pair_curve(log_q, log_p))


def pair_attack(log_p: FloatArray, log_q: FloatArray) -> Profile:
    """A lower bound on `pair_profile` in spite of rounding: a loss is a difference of logarithms that may be large."""
    logs = np.concatenate([log_p[np.isfinite(log_p)], log_q[np.isfinite(log_q)]])
    off = _OFF * (1.0 + float(np.max(np.abs(logs), initial=0.0)))
    exact = pair_profile(log_p, log_q)
    return Profile(_farther(exact.forward, off), _farther(exact.backward, off))


def _farther(curve: Curve, off: float) -> Curve:
    return Curve(lambda at: curve(at + off), max(curve.largest_loss - off, 0.0))


def _pair_curve(log_p: FloatArray, log_q: FloatArray) -> Curve:
    both = np.isfinite(log_p) & np.isfinite(log_q)
    only = np.isfinite(log_p) & ~np.isfinite(log_q)
    infinite = float(log_sum(log_p[only])) if np.any(only) else -math.inf
    return discrete_curve(log_p[both] - log_q[both], log_p[both], infinite)


def group(profile: Profile, records: int) -> Profile:
    """Groups of records: the iterated trade-off function (chains.py), capped by the pure bounds."""
    if records == 1 or profile.largest_loss == 0.0:
        return profile
    forward = _group_curve(profile.forward, profile.backward, records)
    both = profile.is_symmetric
    return Profile(forward, forward if both else _group_curve(profile.backward, profile.forward, records))


def _group_curve(own: Curve, other: Curve, records: int) -> Curve:
    end, curves = records * own.largest_loss, [_closed_group(own, records)]
    if records <= _FOLLOWED:
        curves.append(chain_curve(own, other, records))
    if math.isfinite(end):
        curves.append(directed_curve(end, records * other.largest_loss))
    return Curve(lambda at: np.minimum.reduce([curve(at) for curve in curves]), end)


def out_and_in(one: Profile) -> Profile:
    """A record leaves at one place and another one enters elsewhere: one step of each direction, at most."""
    if one.largest_loss == 0.0:
        return one
    end = one.forward.largest_loss + one.backward.largest_loss
    curves = [steps_curve([(one.backward, one.forward), (one.forward, one.backward)])]
    if math.isfinite(end):
        curves.append(directed_curve(end, end))
    return Profile.symmetric(Curve(lambda at: np.minimum.reduce([curve(at) for curve in curves]), end))


_CANDIDATES = np.append(0.0, np.geomspace(1e-3, 1e3, 241))


def _closed_group(curve: Curve, j: int) -> Curve:
    """delta_j(eps) <= (e^eps - 1)/(e^(eps/j) - 1) * delta(eps/j): the least value of the bound up to each eps.

    delta_j never grows with eps, though the bound may.
    """

    def bound(at: FloatArray) -> FloatArray:
        with np.errstate(invalid="ignore"):
            factor = np.where(at > 0, log_expm1(at) - log_expm1(at / j), math.log(j))
        return np.minimum(factor + curve(at / j), 0.0)

    @cache
    def least_so_far() -> tuple[FloatArray, FloatArray]:
        """Some points, the place of the least value among them, and the least value up to each."""
        grid = _CANDIDATES
        points = [grid]
        for _ in range(4):  # any points are sound; one near the least value is tight
            least = int(np.argmin(bound(grid)))
            grid = np.linspace(grid[max(least - 1, 0)], grid[min(least + 1, grid.size - 1)], 65)
            points.append(grid)
        at = np.unique(np.concatenate(points))
        return at, np.minimum.accumulate(bound(at))

    def log_delta(at: FloatArray) -> FloatArray:
        points, least = least_so_far()
        return np.minimum(bound(at), least[np.searchsorted(points, np.maximum(at, 0.0), side="right") - 1])

    return Curve(log_delta, j * curve.largest_loss)


def rare_event(loss: float) -> Profile:
    """A pair with one rare event that is e^loss times as likely under either law: a pure lower bound."""
    log_likely, log_rare = -600.0, -600.0 - loss
    log_rest = float(np.log1p(-np.exp(log_likely) - np.exp(log_rare)))
    losses, log_p = np.array([loss, -loss, 0.0]), np.array([log_likely, log_rare, log_rest])
    return Profile.symmetric(discrete_curve(losses, log_p))
