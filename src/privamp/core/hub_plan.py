"""Transport through a hub: components of both data sets by their distance, in records, from one usual sample.

P's component c and Q's component c' are c + c' records apart (c, c' >= 0). With X_d(l) the log of the gamma at which
the slope -H_d'(gamma) has the log odds l, the plan

    pi = p_c w_c',  rho = q_c' p_c A_c / M,  log A_c = X_c(l),  w_c' proportional to q_c' e^(X_c'(-l)),  M = sum p_c A_c

is feasible for every l, and best where M = alpha sum q_c' e^(X_c'(-l)). Where groups of the mechanism's records
compose exactly (noise along a line), its value is H_alpha between sum p_c M(c) and sum q_c' M(-c'), with nothing
lost. Two independent parts of a sample, each with a hub, have a hub: laws are convolved. Proof: docs/transport.md,
Thm 7.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache

import numpy as np
from numpy.typing import NDArray

from ..numerics.log_domain import FloatArray, as_floats, log_sum
from ..numerics.roots import bisected
from .direct_plan import Slopes, Stakes, direct_curve
from .profile import Curve

_OFF = 1e-12  # relative: chances are computed to well within it
_PIECE = 4000  # epsilons worked on together


@dataclass(frozen=True)
class Hub:
    """Laws of the distance from the usual sample, in records: with the record, and without it."""

    p: Mapping[int, float]
    q: Mapping[int, float]

    @classmethod
    def kept(cls, chance: float, apart: int = 1) -> "Hub":
        """A record that is drawn with this probability and then moves the sample by `records` records."""
        return cls({0: 1.0 - chance, apart: chance}, {0: 1.0})

    @property
    def turned(self) -> "Hub":
        """The same with the two data sets in the other order."""
        return Hub(self.q, self.p)

    def beside(self, other: "Hub") -> "Hub":
        """Two independent parts of one sample."""
        return Hub(_convolved(self.p, other.p), _convolved(self.q, other.q))


def _convolved(one: Mapping[int, float], other: Mapping[int, float]) -> dict[int, float]:
    found: dict[int, float] = {}
    for a, chance in one.items():
        for b, often in other.items():
            found[a + b] = found.get(a + b, 0.0) + chance * often
    return found


def hub_curve(hub: Hub, stakes: Stakes) -> Curve:
    """log of the bound on H_alpha(P||Q), alpha >= 1."""
    (here, p), (there, q) = (_arrays(law) for law in (hub.p, hub.q))
    far = here[:, None] + there[None, :]
    direct = direct_curve(p, q, far, stakes)
    return _through(hub, stakes) if direct is None else direct


def _through(hub: Hub, stakes: Stakes) -> Curve:
    (here, p), (there, q) = (_arrays(law) for law in (hub.p, hub.q))
    far = here[:, None] + there[None, :]
    table = cache(lambda: Slopes(np.unique(far[far > 0]), stakes))

    def piece(epsilon: FloatArray) -> FloatArray:
        if not np.any(far > 0):
            return np.full(epsilon.shape, -np.inf)
        log_a, log_b = _balanced(table(), (here, p), (there, q), epsilon)
        log_w = _shares(log_b + np.log(q)[:, None] + epsilon, log_sum(log_a + np.log(p)[:, None]), there[0] == 0)
        log_m = log_sum(np.log(p)[:, None] + log_a)
        log_pi = np.log(p)[:, None, None] + _OFF + log_w[None, :, :]
        gamma = epsilon - 2 * _OFF + np.log(q)[None, :, None] + log_a[:, None, :] - log_m - log_w[None, :, :]
        with np.errstate(invalid="ignore"):
            terms = np.where(np.isfinite(log_pi), log_pi + stakes(far[:, :, None], gamma), -np.inf)
        return np.minimum(log_sum(terms.reshape(-1, epsilon.size)), 0.0)

    def log_delta(epsilon: FloatArray) -> FloatArray:
        flat, step = np.ravel(epsilon), max(_PIECE // far.size, 1) * 8
        found = [piece(flat[i : i + step]) for i in range(0, flat.size, step)]
        return np.concatenate(found or [flat]).reshape(np.shape(epsilon))

    return Curve(log_delta)


def _arrays(law: Mapping[int, float]) -> tuple[FloatArray, FloatArray]:
    kept = sorted((d, chance) for d, chance in law.items() if chance > 0.0)
    return as_floats([d for d, _ in kept]), as_floats([chance for _, chance in kept])


def _balanced(
    table: Slopes, rows: tuple[FloatArray, FloatArray], columns: tuple[FloatArray, FloatArray], epsilon: FloatArray
) -> tuple[FloatArray, FloatArray]:
    """log A (I, E) and X_c'(-l) (J, E) at the log odds l where both sides of the plan are as large."""
    (here, p), (there, q), far = rows, columns, np.full(epsilon.size, table.farthest)

    def is_above(logit: FloatArray) -> NDArray[np.bool_]:
        left = log_sum(np.log(p)[:, None] + table.log_gammas(here, logit))
        right = epsilon + log_sum(np.log(q)[:, None] + table.log_gammas(there, -logit))
        return np.asarray(left <= right)

    _, high = bisected(is_above, -far, far, until=lambda low, high: bool(np.max(high - low, initial=0.0) <= 1e-9))
    return table.log_gammas(here, high), table.log_gammas(there, -high)


def _shares(log_mass: FloatArray, log_m: FloatArray, has_usual: bool) -> FloatArray:
    """log w (J, E): q_c' alpha e^X/M; the usual component takes a little less, and the others what is left."""
    log_w = log_mass - log_sum(log_mass)
    if not has_usual:
        return log_w
    usual = np.minimum(log_mass[0] - log_m - 8 * _OFF, 0.0)
    if log_mass.shape[0] == 1:
        return np.zeros_like(log_mass)
    with np.errstate(divide="ignore"):
        left = np.log(-np.expm1(usual))
    rest = log_mass[1:] - log_sum(log_mass[1:]) + left
    return np.concatenate([usual[None, :], rest])
