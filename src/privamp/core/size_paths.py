"""Bounds and attacks where the sample is known by its size: the record in or out, and s others drawn.

Given s, the others are a uniform subset, so the chance x_s of an event when s others and not the record are drawn, and
y_s when the record is there too, obey the mechanism's trade-off function T(x) = min over gamma of delta_1(log gamma) +
gamma x: x_{s+1} <= T(x_s), x_s <= T(x_{s+1}), y_s <= T(x_s), and y'_s >= T^{-1}(x_s) for the record of Q.

Theorem. With c_s = p_out - alpha q_out, b_s = p_in, e_s = alpha q_in (chances of s others and the record out of, or in,
the sample of P and of Q), for all u_s, d_s >= 0 and 0 <= B'_s <= B_s,

    H_alpha(P||Q) <= sum_s (B_s - B'_s) H_{-A_s/(B_s - B'_s)} + B'_s H^2_{e_s/B'_s},

A_s = c_s - u_s - d_{s-1}, B_s = b_s + u_{s-1} + d_s, H the mechanism's divergence one record apart, H^2 two apart; a
negative order counts as H_gamma = 1 - gamma, or, where A_s > 0, the two terms are A_s H_{e'/A_s} + B_s H^2_{(e_s -
e')/B_s} with any part e' of e_s. For noise on a line the best numbers make it an equation: x_s = G(f_s), G the noise's
distribution function, f a sequence with steps of at most 1, and the sum f_s (+1 with the record) is the attack.
Proof: docs/transport.md, Thm 9.

The best f maximises a concave function of the x_s along a chain: one pass backward over slopes, one forward. It need
not be exact: any u, d and B' give a bound, any f an attack.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache

import numpy as np
from numpy.typing import NDArray

from ..numerics.convex_table import OUTWARD, Table
from ..numerics.log_domain import FloatArray, as_floats, log_expm1, log_sum
from .direct_plan import Stakes
from .line_attack import Places
from .mechanism import Mechanism
from .profile import Curve, Profile
from .transport import stakes_of

IntArray = NDArray[np.intp]

_OFF = 1e-10  # relative: chances are computed to well within it
_FINE, _HIGHEST = 16.0, 4.0  # points per unit of noise, and where events are looked for, in units of noise
_LOWEST = {True: -12.0, False: -45.0}  # Gaussian noise, and others with heavier tails
_EPSILONS = np.concatenate([np.linspace(0.0, 0.1, 13), np.geomspace(0.1, 60.0, 133)[1:]])
_TOGETHER, _COARSE, _EVERY = 48, 4.0, 2  # more pairs are looked at first with fewer points and epsilons
_APART, _ROUNDS = 12, 6  # then so many of them as finely as the rest, so often
_NOTHING = -120.0  # a log of delta below which nothing is computed
_ORDERS, _SPACE = np.linspace(-10.0, 30.0, 8001), 0.005  # log gamma of the table of divergences
_PIECE, _MOST, _FEW = 400_000, 40_000, 20_000  # numbers worked on together; where most epsilons are not needed
_TARGETS = (1e-3, 1e-6)  # deltas for which attacks are made


@dataclass(frozen=True, slots=True)
class Ladder:
    """Chances by the number of others drawn, shape (N, S): N pairs of data sets, the record in and out of P and Q."""

    p_in: FloatArray
    p_out: FloatArray
    q_in: FloatArray
    q_out: FloatArray
    left: float = 0.0  # chance of what is left out, of P and of Q at most

    @property
    def turned(self) -> "Ladder":
        """The same with the two data sets in the other order."""
        return Ladder(self.q_in, self.q_out, self.p_in, self.p_out, self.left)

    def some(self, which: slice | Sequence[int] | IntArray) -> "Ladder":
        """Some of the pairs."""
        return Ladder(self.p_in[which], self.p_out[which], self.q_in[which], self.q_out[which], self.left)


@dataclass(frozen=True, slots=True)
class _Line:
    """Places of events on the noise's line, one record being `step` points: slopes of T there and one record before."""

    place: FloatArray
    step: int
    slope: FloatArray
    before: FloatArray


@dataclass(frozen=True, slots=True)
class Chords:
    """H one and two records apart as a table in log gamma: it is convex in gamma and falls, so chords are above it."""

    values: dict[int, FloatArray]

    @classmethod
    def of(cls, stakes: Stakes) -> "Chords":
        """At every point of the table."""
        return cls({d: np.minimum(np.exp(stakes(as_floats(float(d)), _ORDERS)) * (1.0 + 1e-9), 1.0) for d in (1, 2)})

    def at(self, apart: int, order: FloatArray) -> FloatArray:
        """An upper bound at gamma = e^order, 1 before the first point and the last value after the last."""
        known, inside = self.values[apart], np.clip(np.nan_to_num(order), _ORDERS[0], _ORDERS[-1])
        left = np.minimum(((inside - _ORDERS[0]) / _SPACE).astype(np.intp), _ORDERS.size - 2)
        share = np.expm1(inside - _ORDERS[left]) / np.expm1(_SPACE)
        chord = known[left] + np.clip(share * (1.0 - 1e-9) - 1e-9, 0.0, 1.0) * (known[left + 1] - known[left])
        return np.where(order < _ORDERS[0], 1.0, chord)


def is_on_a_line(mechanism: Mechanism) -> bool:
    """Noise added to a number, stated for add/remove."""
    return mechanism.neighbors.kind == "add-remove" and mechanism.line_step > 0.0


def bounded(ladder: Ladder, mechanism: Mechanism) -> Profile:
    """The largest bound over all pairs, both directions."""
    forward = _curve(ladder, mechanism)
    return Profile(forward, forward if ladder.p_in is ladder.q_in else _curve(ladder.turned, mechanism))


def _curve(ladder: Ladder, mechanism: Mechanism) -> Curve:
    """Chords between some epsilons: delta is convex in alpha."""

    @cache
    def table() -> Table:
        bounds = _largest(ladder, mechanism)
        bounds = np.logaddexp(bounds, math.log(ladder.left) if ladder.left > 0.0 else -math.inf)
        return Table(log_expm1(_EPSILONS) + OUTWARD, np.minimum(np.minimum.accumulate(bounds), 0.0))

    return Curve(lambda epsilon: table().log_delta(epsilon))


def paths(ladder: Ladder, mechanism: Mechanism, epsilons: Sequence[float] = ()) -> dict[str, tuple[Places, Places]]:
    """Places of the sums that are nearly worst at some deltas, or at these epsilons, both directions."""
    line, stakes, found = _line_of(mechanism, _FINE), Chords.of(stakes_of(mechanism)), {}
    few = ladder.some(_spread(np.arange(ladder.p_in.shape[0])))
    for name, one in (("one more", few), ("one less", few.turned)):
        for number, (which, epsilon) in enumerate(_aims(one, line, stakes, epsilons)):
            p, q = _places(one.some([which]), line, epsilon)
            found[f"{name}, {number}"] = (p, q) if one is few else (q, p)
        if ladder.p_in is ladder.q_in:
            break
    return found


def _aims(ladder: Ladder, line: _Line, stakes: Chords, epsilons: Sequence[float]) -> list[tuple[int, float]]:
    """Pairs and epsilons to attack at: where the bound is a public delta, for the pair of the largest epsilon."""
    last = ladder.p_in.shape[0] - 1
    if epsilons:
        return [(which, epsilon) for which in sorted({0, last // 2, last}) for epsilon in epsilons]
    bounds = _bounds(ladder, line, stakes, _EPSILONS, math.log(min(_TARGETS)), _FEW)
    at = [np.argmax(bounds <= np.log(target), axis=0) for target in _TARGETS]
    return [(int(np.argmax(one)), float(_EPSILONS[np.max(one)])) for one in at]


def _largest(ladder: Ladder, mechanism: Mechanism) -> FloatArray:
    """log of the largest bound over all pairs at every epsilon of the table.

    Many pairs are evaluated coarsely first, at some epsilons with chords between; then, a few times, those that are the
    largest somewhere are evaluated again.
    """
    stakes, fine = Chords.of(stakes_of(mechanism)), _line_of(mechanism, _FINE)
    pairs = np.arange(ladder.p_in.shape[0])
    if pairs.size <= _TOGETHER:
        return as_floats(np.max(_bounds(ladder, fine, stakes, _EPSILONS), axis=1))
    some = np.append(np.arange(0, _EPSILONS.size - 1, _EVERY), _EPSILONS.size - 1)
    first = np.minimum.accumulate(_bounds(ladder, _line_of(mechanism, _COARSE), stakes, _EPSILONS[some]))
    log_x, at, is_known = log_expm1(_EPSILONS[some]) + OUTWARD, log_expm1(_EPSILONS), np.zeros(pairs.size, dtype=bool)
    found = np.stack([Table(log_x, one).at(at) for one in first.T], axis=1) + OUTWARD
    for _ in range(_ROUNDS):
        is_seen = np.max(found, axis=1) > _NOTHING
        worst = np.unique(np.argmax(found[is_seen], axis=1))
        worst = _spread(worst[~is_known[worst]])
        if not worst.size:
            break
        again = _bounds(ladder.some(worst), fine, stakes, _EPSILONS)
        found[:, worst], is_known[worst] = np.minimum(found[:, worst], again), True
    return as_floats(np.max(found, axis=1))


def _bounds(
    ladder: Ladder, line: _Line, stakes: Chords, epsilons: FloatArray, nothing: float = _NOTHING, piece: int = _PIECE
) -> FloatArray:
    """log of the bound at these epsilons for every pair, shape (E, N), each by its best sequences.

    Piece by piece: once all bounds are below `nothing` they are no larger at larger epsilons.
    """
    pairs, sizes = ladder.p_in.shape
    step, found = max(piece // (sizes * pairs), 1), np.zeros((0, pairs))
    for start in range(0, epsilons.size, step):
        here = epsilons[start : start + step]
        found = np.vstack([found, _log_bounds(ladder, line, stakes, here, _best_paths(ladder, line, here))])
        if np.max(found[-1]) < nothing:
            break
    return np.vstack([found, np.repeat(found[-1:], epsilons.size - found.shape[0], axis=0)])


def _spread(pairs: IntArray) -> IntArray:
    """Some of them, the first and the last among them."""
    chosen: IntArray = pairs[np.unique(np.linspace(0, pairs.size - 1, min(pairs.size, _APART)).astype(np.intp))]
    return chosen


def _line_of(mechanism: Mechanism, fine: float) -> _Line:
    unit = 1.0 / float(mechanism.line_step)
    step = max(int(np.ceil(fine / unit)), 1)
    first, last = _LOWEST[mechanism.is_gaussian] * unit - 2.0, _HIGHEST * unit
    place = np.arange(int(first * step), int(last * step) + 1) / step
    slope, before = (mechanism.log_slope(at) for at in (place, place - 1.0))
    assert slope is not None
    assert before is not None
    return _Line(place, step, np.exp(slope), np.exp(before))


Coefficients = tuple[FloatArray, FloatArray, FloatArray]  # c, b and e of the theorem, each (rows, S)


def _coefficients(ladder: Ladder, epsilon: FloatArray) -> Coefficients:
    """A row for every epsilon and pair; rounded outward."""
    alpha, sizes = np.exp(epsilon)[:, None, None], ladder.p_in.shape[1]
    c = ladder.p_out * (1.0 + _OFF) - alpha * ladder.q_out * (1.0 - _OFF)
    b = np.broadcast_to(ladder.p_in * (1.0 + _OFF), c.shape)
    e = alpha * ladder.q_in * (1.0 - _OFF)
    return c.reshape(-1, sizes), b.reshape(-1, sizes), e.reshape(-1, sizes)


def _log_bounds(ladder: Ladder, line: _Line, stakes: Chords, epsilons: FloatArray, sequences: IntArray) -> FloatArray:
    """log of the bound at these epsilons for every pair, shape (E, N), by the sequences of each."""
    pairs, sizes = ladder.p_in.shape
    found = _evaluated(*_coefficients(ladder, epsilons), sequences.reshape(-1, sizes), line, stakes)
    return found.reshape(-1, pairs)


def _best_paths(ladder: Ladder, line: _Line, epsilons: FloatArray) -> IntArray:
    """The best sequences at these epsilons for every pair, shape (E, N, S)."""
    pairs, sizes = ladder.p_in.shape
    step = max(_MOST // (pairs * line.place.size), 1)
    pieces = [epsilons[start : start + step] for start in range(0, epsilons.size, step)]
    return np.vstack([_best_path(*_coefficients(ladder, at), line) for at in pieces]).reshape(-1, pairs, sizes)


def _evaluated(c: FloatArray, b: FloatArray, e: FloatArray, at: IntArray, line: _Line, stakes: Chords) -> FloatArray:
    """log of the bound with the prices u and d that suit the sequences at these points, one for every row."""
    up, down = _prices(c, b, e, at, line)
    a = c - up - _after(down)
    a = a + 8.0 * 2.0**-52 * (np.abs(c) + up + _after(down))
    held = (b + _after(up) + down) * (1.0 + 1e-15)
    is_gain, before = a > 0.0, line.before[at]
    near = np.where(is_gain, np.minimum(a * before, e), 0.0)  # of e, against x_s itself
    twice = np.where(is_gain, held, np.minimum(e / (line.slope[at] * before), held))
    once = np.where(is_gain, a, np.maximum(held - twice, 0.0) + held * 1e-15)
    terms = [_log_term(np.where(is_gain, near, -a), once, 1, stakes)]
    if np.any(e > 0.0) or np.any(is_gain):
        terms.append(_log_term(np.maximum(e * (1.0 - 1e-15) - near, 0.0), twice, 2, stakes))
    return log_sum(np.hstack(terms), axis=1)


def _after(prices: FloatArray) -> FloatArray:
    """The price of the step before."""
    return np.hstack([np.zeros((prices.shape[0], 1)), prices[:, :-1]])


def _prices(c: FloatArray, b: FloatArray, e: FloatArray, at: IntArray, line: _Line) -> tuple[FloatArray, FloatArray]:
    """u and d, shape (rows, S), the last of them 0: slopes of the best value beyond every step that is a whole one."""
    slope, before = line.slope[at], line.before[at]
    own, moved = c + b * slope - e / before, np.diff(at, axis=1)
    up, down = np.zeros(c.shape), np.zeros(c.shape)
    value = own[:, -1]
    for s in range(c.shape[1] - 2, -1, -1):
        down[:, s] = np.where(moved[:, s] == line.step, np.maximum(value, 0.0), 0.0)
        up[:, s] = np.where(moved[:, s] == -line.step, np.maximum(-value, 0.0) / before[:, s], 0.0)
        value = own[:, s] + slope[:, s] * down[:, s] - up[:, s]
    return up, down


def _log_term(less: FloatArray, held: FloatArray, apart: int, stakes: Chords) -> FloatArray:
    """log of held H_{less/held}, at a negative order held - less."""
    with np.errstate(divide="ignore", invalid="ignore"):
        order = np.log(less) - np.log(held)
        inside = np.where(held > 0, held * stakes.at(apart, order), 0.0)
        return as_floats(np.log(np.where(less > 0, inside, np.maximum(held - less, 0.0))))


def _best_path(c: FloatArray, b: FloatArray, e: FloatArray, line: _Line) -> IntArray:
    """Points of the best sequence f, shape (rows, S)."""
    tops, last = _tops(c, b, e, line), line.place.size - 1
    at = [np.minimum(tops[:, 0], last)]
    for top in tops.T[1:]:
        low, high = np.maximum(at[-1] - line.step, 0), np.minimum(at[-1] + line.step, last)
        at.append(np.clip(top, low, high))
    return np.stack(at, axis=1)


def _tops(c: FloatArray, b: FloatArray, e: FloatArray, line: _Line) -> IntArray:
    """How many places there are at which the best value from s on has a positive slope in x_s, shape (rows, S).

    Arrays of shape (places, rows): a step of one record is then a part of the memory, not of every row.
    """
    k, shape, found = line.step, (line.place.size, c.shape[0]), np.empty(c.shape, dtype=np.intp)
    slope, fall, has_e = line.slope[:, None], 1.0 / line.before[:, None], np.any(e, axis=0)
    now, beyond, before = np.empty(shape), np.zeros(shape), np.empty(shape)
    for s in range(c.shape[1] - 1, -1, -1):
        np.multiply(slope, b[:, s], out=now)
        now += c[:, s]
        if has_e[s]:
            now -= np.multiply(fall, e[:, s], out=before)
        now += beyond
        found[:, s] = np.add.reduce((now > 0).view(np.uint8), axis=0, dtype=np.intp)
        np.maximum(now[k:], 0.0, out=beyond[:-k])  # one record further, the last place's value beyond the end
        beyond[-k:] = np.maximum(now[-1:], 0.0)
        np.minimum(now[:-k], 0.0, out=before[k:])
        before[:k] = np.minimum(now[:1], 0.0)
        beyond *= slope
        before *= fall
        beyond += before
    return found


def _places(ladder: Ladder, line: _Line, epsilon: float) -> tuple[Places, Places]:
    """Where the sum of the best path lies with which chance, for one pair."""
    at = _best_path(*_coefficients(ladder, as_floats([epsilon])), line)[0]
    f = as_floats((at - at[0] + line.step // 2) // line.step)  # whole steps of at most one, rounded as whole numbers
    return _law(f, ladder.p_out[0], f + 1.0, ladder.p_in[0]), _law(f, ladder.q_out[0], f - 1.0, ladder.q_in[0])


def _law(out: FloatArray, p_out: FloatArray, inside: FloatArray, p_in: FloatArray) -> Places:
    found: dict[float, float] = {}
    for place, chance in zip([*out.tolist(), *inside.tolist()], [*p_out.tolist(), *p_in.tolist()], strict=True):
        found[place] = found.get(place, 0.0) + chance
    return found
