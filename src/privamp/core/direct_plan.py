"""Transport without a program: pairs that are not apart are matched first, and one component is left on one side.

Let i and j be not apart: as much of p_i as alpha q_j allows goes there and costs nothing. If one row is left, of mass
m, against columns of masses w_j = alpha q_j less what is spent, the plan is any pi_j >= 0 with sum m, at the cost of
sum_j pi_j H_j(w_j/pi_j); if one column of mass w is left against rows m_i, any gamma_i with sum_i m_i gamma_i = w, at
the cost of sum_i m_i H_i(gamma_i). The second is smallest where all H_i have one slope, -H_i'(gamma_i) = v; the first
is the second with pi_j/w_j for gamma_j, by the identity H_gamma(P||Q) = 1 - gamma + gamma H_{1/gamma}(Q||P). Slopes are
read off a table, and what is evaluated is scaled to meet the constraint: an inaccurate table makes the bound looser,
never wrong. Proof: docs/transport.md, Thm 1.
"""

from collections.abc import Callable
from functools import cache

import numpy as np
from numpy.typing import NDArray

from ..numerics.log_domain import FloatArray, as_floats, log1mexp, log_diff, log_sum
from ..numerics.roots import bisected
from .profile import Curve

Stakes = Callable[[FloatArray, FloatArray], FloatArray]  # log H of distances and epsilons of any sign, by broadcasting
Places = NDArray[np.intp]
_OFF = 1e-12  # relative: chances of components are computed to well within it
_FARTHEST, _POINTS = 80.0, 8001  # of the table of log gamma
_LEAST = -700.0
_PIECE = 50_000  # epsilons times components worked on together


def direct_curve(p: FloatArray, q: FloatArray, apart: FloatArray, stakes: Stakes) -> Curve | None:
    """log of the bound on H_alpha(P||Q) for alpha >= 1, or None where more than one component is left on both sides."""
    plan = _Matched(p, q, apart, stakes)
    if not plan.is_enough:
        return None

    def log_delta(epsilon: FloatArray) -> FloatArray:
        flat = np.ravel(epsilon)
        step = max(_PIECE // (p.size + q.size), 1)
        found = [plan.log_delta(flat[i : i + step]) for i in range(0, flat.size, step)]
        return np.concatenate(found or [flat]).reshape(np.shape(epsilon))

    return Curve(log_delta)


class _Matched:
    """The pairs that are not apart, and what is left of rows and columns at every alpha."""

    def __init__(self, p: FloatArray, q: FloatArray, apart: FloatArray, stakes: Stakes) -> None:
        self.p, self.q, self.apart, self.stakes = p * (1.0 + _OFF), q * (1.0 - _OFF), apart, stakes
        self.i, self.j = np.nonzero(apart == 0)
        is_matching = np.unique(self.i).size == self.i.size and np.unique(self.j).size == self.j.size
        with np.errstate(divide="ignore"):
            turns = np.log(p[self.i] / q[self.j]) if is_matching else np.zeros(0)
        tried = np.maximum(np.concatenate([[0.0, 1.0], turns - 1e-6, turns + 1e-6]), 0.0)
        self.is_enough = is_matching and not np.any(np.isnan(apart)) and self._leaves_one(tried)
        self.table = cache(lambda: Slopes(np.unique(apart[apart > 0]), stakes))

    def left(self, epsilon: FloatArray) -> tuple[FloatArray, FloatArray, FloatArray]:
        """Masses of the rows (I, E), of the columns times alpha (J, E), and what is counted as lost (E,)."""
        alpha = np.exp(np.minimum(epsilon, 700.0))
        rows = np.repeat(self.p[:, None], epsilon.size, axis=1)
        columns = self.q[:, None] * alpha
        gap = rows[self.i] - columns[self.j]
        tiny = (gap > 0.0) & (gap <= 4 * _OFF * rows[self.i])  # only by rounding
        lost = np.sum(np.where(tiny, gap, 0.0), axis=0)
        rows[self.i], columns[self.j] = np.where(tiny, 0.0, np.maximum(gap, 0.0)), np.maximum(-gap, 0.0)
        return rows, columns, lost

    def _leaves_one(self, epsilon: FloatArray) -> bool:
        rows, columns, _ = self.left(epsilon)
        return bool(np.all((np.sum(rows > 0, axis=0) <= 1) | (np.sum(columns > 0, axis=0) == 1)))

    def log_delta(self, epsilon: FloatArray) -> FloatArray:
        """log of the bound."""
        rows, columns, lost = self.left(epsilon)
        with np.errstate(divide="ignore"):
            found = np.log(lost)
        kinds, which = np.unique(np.concatenate([rows > 0, columns > 0]).T, axis=0, return_inverse=True)
        for kind, name in enumerate(kinds):
            at = np.ravel(which) == kind
            i, j = np.flatnonzero(name[: self.p.size]), np.flatnonzero(name[self.p.size :])
            if i.size:
                found[at] = np.logaddexp(found[at], self._cost(i, j, rows[:, at], columns[:, at]))
        return np.minimum(found, 0.0)

    def _cost(self, i: Places, j: Places, rows: FloatArray, columns: FloatArray) -> FloatArray:
        if i.size > 1 != j.size:  # cannot be reached: `is_enough` looked at every case
            return np.zeros(rows.shape[1])
        if j.size == 0:
            return as_floats(np.log(np.sum(rows[i], axis=0)))
        if i.size == 1:
            far, mass = self.apart[i[0], j][:, None], np.log(columns[j])
            inner = self.table().scaled(far, mass, np.log(rows[i[0]]))
            near = far[:, 0] == np.min(far)  # far columns may cost more than they are worth, where slopes are 0
            alone = np.log(rows[i[0]]) - log_sum(mass[near])
            nearest = np.log(rows[i[0]]) + self.stakes(far[near][:1, 0], -alone)
            return as_floats(np.minimum(log_sum(mass + inner + self.stakes(far, -inner)), nearest))
        far, mass = self.apart[i, j[0]][:, None], np.log(rows[i])
        return log_sum(mass + self.stakes(far, self.table().scaled(far, mass, np.log(columns[j[0]]))))


class Slopes:
    """log gamma of every distance at slopes that all distances share, falling: (distances, points)."""

    def __init__(self, distances: FloatArray, stakes: Stakes) -> None:
        x = np.sinh(np.linspace(0.0, np.arcsinh(_FARTHEST / 0.05), _POINTS // 2 + 1)) * 0.05
        both, logits = np.concatenate([-x[:0:-1], x]), [_logit_slopes(d, x, stakes) for d in distances.tolist()]
        wanted = np.unique(np.concatenate(logits))[::-1]
        wanted = wanted[:: max(wanted.size // _POINTS, 1)]
        self.distances, self.points, self.logits = distances, wanted.size, wanted
        self.log_gamma = np.stack([np.interp(-wanted, -logit, both) for logit in logits])

    @property
    def farthest(self) -> float:
        """Of the log odds of slopes, in either direction."""
        return float(max(-self.logits[-1], self.logits[0]))

    def log_gammas(self, distances: FloatArray, logit: FloatArray) -> FloatArray:
        """log gamma (K, E) of distances at slopes of these log odds; 0 for the distance 0."""
        rows = [np.zeros(logit.size) if d == 0 else
                np.interp(-logit, -self.logits, self.log_gamma[int(np.searchsorted(self.distances, d))])
                for d in distances.tolist()]  # fmt: skip
        return np.stack(rows)

    def scaled(self, far: FloatArray, mass: FloatArray, target: FloatArray) -> FloatArray:
        """log gamma (K, E), all of one slope, with sum of e^(mass + log gamma) = e^target."""
        if far.shape[0] == 1:
            return as_floats((target - mass[0])[None, :])
        rows = self.log_gamma[np.searchsorted(self.distances, far[:, 0])]
        low, high = self._between(lambda at: log_sum(mass + rows[:, at]), target)
        start, end = (log_sum(mass + rows[:, at]) for at in (low, high))
        with np.errstate(divide="ignore", invalid="ignore"):
            share = np.clip(np.nan_to_num((target - start) / (end - start)), 0.0, 1.0)
        found = rows[:, low] + share * (rows[:, high] - rows[:, low])
        return as_floats(found + (target - log_sum(mass + found)))

    def at_most(self, far: FloatArray, mass: FloatArray, floor: FloatArray, target: FloatArray) -> FloatArray:
        """log gamma (K, E), none below its floor and else of one slope, with sum of e^(mass + log gamma) <= e^target.

        The floors themselves must fit.
        """
        rows = self.log_gamma[np.searchsorted(self.distances, far[:, 0])]
        low, _ = self._between(lambda at: log_sum(mass + np.maximum(rows[:, at], floor)), target)
        return as_floats(np.maximum(np.where(low > 0, rows[:, low], -np.inf), floor))

    def _between(self, total: Callable[[Places], FloatArray], target: FloatArray) -> tuple[Places, Places]:
        """Neighbouring points of the table, the total at the first of which is below the target (or it is point 0)."""
        low, _ = bisected(
            lambda at: total(at.astype(np.intp)) >= target,
            np.zeros(target.size),
            np.full(target.size, float(self.points - 1)),
            until=lambda low, high: bool(np.max(high - low, initial=0.0) <= 0.5),
        )
        first = low.astype(np.intp)
        return first, np.minimum(first + 1, self.points - 1)


def _logit_slopes(distance: float, x: FloatArray, stakes: Stakes) -> FloatArray:
    """log(v/(1-v)), v = -H' at gamma = e^x, for x from -_FARTHEST to _FARTHEST, falling."""
    with np.errstate(invalid="ignore", divide="ignore"):
        h = stakes(as_floats([distance])[:, None], x[None, :])[0]
        between = log_diff(h[:-1], np.minimum(h[1:], h[:-1])) - log_diff(x[1:], x[:-1])
    log_v = np.minimum(np.maximum(np.append(between, between[-1]), _LEAST), -1e-300)
    log_u = np.minimum(np.maximum(np.logaddexp(h, x + log_v), _LEAST), -1e-300)  # 1 - v at -x
    left, right = log1mexp(log_u) - log_u, log_v - log1mexp(log_v)
    logit = np.concatenate([left[:0:-1], right])
    return as_floats(np.minimum.accumulate(logit) - 1e-9 * np.arange(logit.size))
