"""Transport: one bound for designs whose samples fall into secret components, and for every mechanism.

Let P = sum_i p_i P_i and Q = sum_j q_j Q_j be the releases on two neighbouring data sets, i and j running over any
secret partition of what was drawn (sizes, chosen clusters, the record in or out), and let the samples behind P_i and
Q_j be drawn together so that at most d_ij records are added or removed between them.

Theorem (transport). For all weights pi, rho >= 0 with sum_j pi_ij >= p_i and sum_i rho_ij <= q_j, and all alpha >= 0,

    H_alpha(P||Q) <= sum_ij pi_ij H_{alpha rho_ij/pi_ij}(P_i||Q_j),

each term at most delta_d(log(alpha rho/pi)), the mechanism's profile for d records (d = 0: [1 - alpha rho/pi]+).
Pairs that are left out need no distance. *Any* plan (pi, rho) certifies. The right side is jointly convex in pi and
alpha rho, so a linear program with cutting planes finds a good plan at each of some alphas, and in between the plans
are mixed, pi and alpha rho linearly in alpha. Before a plan is evaluated its rows are scaled up and its columns down:
the solver's tolerance can make the bound looser, never wrong. Proof: docs/transport.md.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np

from ..errors import NoTheorem
from ..numerics.log_domain import FloatArray, as_floats, log1mexp, log_sum
from .direct_plan import Stakes, direct_curve
from .hub_plan import Hub, hub_curve
from .mechanism import Change, Mechanism
from .neighbors import Neighbors
from .profile import Curve, Profile

AR = Neighbors.ADD_REMOVE
# epsilons that plans are made for
ANCHORS = (0.0, 0.05, 0.12, 0.25, 0.5, 0.75, 1.0, 1.5, 2.0, 3.0, 5.0, 9.0)
_OFF = 1e-10  # relative: chances of components are computed to well within it
_ROUNDS, _CLOSE = 6, 1e-3  # of cutting planes, until the program is so close to its plan
_SHIFTS = np.array([-12.0, -6.0, -3.0, -1.5, -0.7, -0.3, -0.1, 0.0, 0.1, 0.3, 0.7, 1.5, 3.0, 6.0])  # first cuts
_EASY, _DELICATE = 1.0, 1e-7  # larger epsilons and smaller bounds are solved less well, from the plan before
_NOTHING = 1e-30  # a delta too small to solve a program for
_FEWEST = 1e-15  # weights below it are left to other pairs
_PIECE = 200_000  # numbers worked on together


@dataclass(frozen=True, slots=True)
class Components:
    """What may be drawn from two neighbouring data sets: chances p (I,) and q (J,), and how far apart (I, J).

    A distance that is nan says that the pair is not to be used.
    """

    p: FloatArray
    q: FloatArray
    apart: FloatArray

    @classmethod
    def of(cls, p: Sequence[float], q: Sequence[float], apart: Sequence[Sequence[float]] | FloatArray) -> "Components":
        """Components without those that have no chance."""
        rows, columns, far = as_floats(p), as_floats(q), as_floats(apart).reshape(len(p), len(q))
        return cls(rows[rows > 0], columns[columns > 0], far[np.ix_(rows > 0, columns > 0)])

    @property
    def turned(self) -> "Components":
        """The same with the two data sets in the other order."""
        return Components(self.q, self.p, self.apart.T)


Weights = tuple[FloatArray, FloatArray]  # pi and rho, both (I, J)


def is_covered(mechanism: Mechanism) -> bool:
    """Transport is for mechanisms stated for add/remove that are not pure; pure ones have theorems of their own."""
    return mechanism.neighbors.kind == "add-remove" and not mechanism.is_pure


def has_noise(mechanism: Mechanism) -> bool:
    """Mechanisms stated for add/remove of which more is known than a pure epsilon: Laplace noise too."""
    return mechanism.neighbors.kind == "add-remove" and not mechanism.any_event


def transported(worst: Sequence[Components], mechanism: Mechanism, stakes: Stakes | None = None) -> Profile:
    """The largest bound over several pairs of data sets, both directions."""
    known = stakes or stakes_of(mechanism)
    return Profile.maximum([Profile(_curve(one, known), _curve(one.turned, known)) for one in worst])


def through_hubs(worst: Sequence[Hub], mechanism: Mechanism) -> Profile:
    """The same for components at so many records from one usual sample."""
    known = stakes_of(mechanism)
    return Profile.maximum([Profile(hub_curve(one, known), hub_curve(one.turned, known)) for one in worst])


def stakes_of(mechanism: Mechanism) -> Stakes:
    """log H_gamma between samples that are so many records apart, gamma = e^epsilon anywhere."""
    if mechanism.neighbors.kind != AR.kind:
        raise NoTheorem(
            f"{type(mechanism).__name__} is stated for replace-one neighbours, and samples of different sizes are "
            "compared here; state its sensitivity with neighbors=Neighbors.ADD_REMOVE"
        )
    family = mechanism.family(AR)

    @cache
    def at(distance: int) -> Curve:
        return mechanism.profile(AR, Change(copies=distance)).symmetrised().forward

    def positive(apart: FloatArray, epsilon: FloatArray) -> FloatArray:
        if family is not None:
            return np.minimum(family(np.maximum(apart, 1.0), epsilon), 0.0)
        out = np.zeros(epsilon.shape)
        for d in np.unique(apart[apart > 0]).tolist():
            mine = np.broadcast_to(apart == d, epsilon.shape)
            out[mine] = at(int(d))(epsilon[mine])
        return out

    def stakes(apart: FloatArray, epsilon: FloatArray) -> FloatArray:
        apart, epsilon = np.broadcast_arrays(as_floats(apart), as_floats(epsilon))
        size = np.abs(epsilon)
        there = np.where(apart > 0, positive(apart, size), -np.inf)
        mirrored = np.minimum(np.logaddexp(log1mexp(-size), there - size), 0.0)
        return np.where(epsilon >= 0, there, mirrored)

    return stakes


def _curve(components: Components, stakes: Stakes) -> Curve:
    direct = direct_curve(components.p, components.q, components.apart, stakes)
    if direct is not None:
        return direct

    @cache
    def plan(which: int) -> Weights:
        found, worth = best_plan(components, stakes, ANCHORS[which])
        if which == 0 or (worth > _DELICATE and ANCHORS[which] <= _EASY):
            return found
        return best_plan(components, stakes, ANCHORS[which], plan(which - 1))[0]

    def log_delta(epsilon: FloatArray) -> FloatArray:
        flat, anchors = np.ravel(epsilon), as_floats(ANCHORS)
        found = np.zeros(flat.size)
        left = np.clip(np.searchsorted(anchors, flat, side="right") - 1, 0, anchors.size - 1)
        for k in np.unique(left).tolist():
            mine, right = left == k, min(k + 1, anchors.size - 1)
            here, there = (plan(k), anchors[k]), (plan(right), anchors[right])
            found[mine] = mixed(components, stakes, here, there, flat[mine])
            alone = mixed(components, stakes, here, here, flat[mine])  # no larger than at the anchor before
            found[mine] = np.minimum(found[mine], alone)
        return found.reshape(np.shape(epsilon))

    return Curve(log_delta)


def mixed(
    components: Components,
    stakes: Stakes,
    left: tuple[Weights, float],
    right: tuple[Weights, float],
    epsilon: FloatArray,
) -> FloatArray:
    """log of the bound at epsilons between those of two plans, pi and alpha rho mixed linearly in alpha."""
    (one, start), (other, end) = left, right
    used = (one[0] > 0) | (other[0] > 0)
    apart = components.apart[used][:, None]
    step, found = max(_PIECE // apart.size, 1), []
    for first in range(0, epsilon.size, step):
        at = epsilon[None, first : first + step]
        share = np.clip(np.expm1(at - start) / np.expm1(end - start), 0.0, 1.0) if end > start else np.zeros(at.shape)
        pi = (1.0 - share) * one[0][used][:, None] + share * other[0][used][:, None]
        # rho = ((1 - share) e^start rho_0 + share e^end rho_1)/e^epsilon, a mixture where epsilon is between the two
        first_part = (1.0 - share) * np.exp(np.minimum(start - at, 0.0))
        rho = first_part * one[1][used][:, None] + (1.0 - first_part) * other[1][used][:, None]
        with np.errstate(divide="ignore", invalid="ignore"):
            ratio = np.where(rho > 0, np.log(rho) - np.log(pi), -np.inf)
            terms = np.log(pi) + stakes(apart, np.maximum(at + ratio, -745.0))
        found.append(log_sum(np.where(pi > 0, terms, -np.inf)))
    return np.minimum(np.concatenate(found), 0.0) if found else np.zeros(0)


def scaled(components: Components, weights: Weights, alpha: float) -> Weights:
    """A plan whose rows hold at least p and whose columns at most q, whatever the solver's tolerance was.

    Where nothing is apart, rho is kept a little above pi/alpha, so that the pair costs nothing, at the others' expense.
    """
    usable = np.isfinite(components.apart)
    pi, rho = (np.where(usable & (one > _FEWEST), one, 0.0) for one in weights)
    empty = np.flatnonzero(pi.sum(axis=1) <= 0.0)
    if empty.size:  # rare components: to their nearest pair
        pi[empty, np.nanargmin(components.apart[empty], axis=1)] = components.p[empty]
    pi = pi * (components.p[:, None] / pi.sum(axis=1, keepdims=True)) * (1.0 + _OFF)
    same = components.apart == 0
    free = np.where(same, np.maximum(rho, pi * (1.0 + 8.0 * _OFF) / alpha), 0.0)
    rest, most = np.where(same, 0.0, rho), components.q * (1.0 - _OFF)
    held, left = free.sum(axis=0), rest.sum(axis=0)
    with np.errstate(divide="ignore", invalid="ignore"):
        free = free * np.where((held > most) | (left <= 0.0), np.where(held > 0.0, most / held, 0.0), 1.0)
        rest = rest * np.where(left > 0.0, np.maximum(most - free.sum(axis=0), 0.0) / left, 0.0)
    return pi, (free + rest) * (1.0 - 1e-15 * components.p.size)


def independent(components: Components) -> Weights:
    """A plan that always exists: i and j by their own chances, among the pairs that may be used."""
    usable = np.isfinite(components.apart)
    return scaled(components, (usable * components.q, usable * components.p[:, None]), 1.0)


def best_plan(
    components: Components, stakes: Stakes, epsilon: float, start: Weights | None = None
) -> tuple[Weights, float]:
    """Weights (I, J) that nearly minimise the bound at one epsilon, and the bound; cutting planes from `start` on."""
    i, j = np.nonzero(np.isfinite(components.apart))
    apart, alpha = components.apart[i, j], math.exp(epsilon)

    def worth(plan: Weights) -> float:
        return float(np.exp(mixed(components, stakes, (plan, epsilon), (plan, epsilon), as_floats([epsilon])))[0])

    cuts = [_cuts(stakes, apart, np.full(i.size, epsilon + shift)) for shift in _SHIFTS.tolist()]
    best = independent(components) if start is None else start
    least = worth(best)
    for _ in range(_ROUNDS):
        solved = _program(components, i, j, alpha, cuts, max(least, _NOTHING)) if least > _NOTHING else None
        if solved is None:
            break
        plan, value = scaled(components, solved[0], alpha), solved[1]
        now = worth(plan)
        if now < least:
            best, least = plan, now
        if now - value <= _CLOSE * now:
            break
        pi, rho = plan[0][i, j], plan[1][i, j]
        with np.errstate(divide="ignore", invalid="ignore"):
            at = np.where((pi > 0) & (rho > 0), np.log(rho) - np.log(pi), 0.0)
        cuts.append(_cuts(stakes, apart, epsilon + np.clip(at, -40.0, 40.0)))
    return best, least


def _cuts(stakes: Stakes, apart: FloatArray, epsilon: FloatArray) -> tuple[FloatArray, FloatArray]:
    """(a, b) with pi H_gamma >= a pi - b gamma pi up to rounding: tangents; only the plan's own value is ever used."""
    step = 1e-4
    here, before, after = (np.exp(stakes(apart, epsilon + s)) for s in (0.0, -step, step))
    gamma = np.exp(epsilon)
    b = np.clip((before - after) / (gamma * 2.0 * math.sinh(step)), 0.0, 1.0)
    return np.clip(here + gamma * b, 0.0, 1.0), b


def _program(
    components: Components, i: Any, j: Any, alpha: float, cuts: Sequence[tuple[FloatArray, FloatArray]], unit: float
) -> tuple[Weights, float] | None:
    """Least sum of z over plans, z_ij above every cut; rho is held as alpha rho, and z in units of what is expected."""
    from scipy.optimize import linprog

    pairs, sums = i.size, np.concatenate([components.p, alpha * components.q])
    equal = _sparse([i, components.p.size + j], [np.arange(pairs), pairs + np.arange(pairs)], (sums.size, 3 * pairs))
    above = _above((*cuts, (np.ones(pairs), np.ones(pairs))), pairs, unit)
    costs, nothing = np.concatenate([np.zeros(2 * pairs), np.ones(pairs)]), np.zeros(above.shape[0])
    for tolerance in (1e-10, 1e-7):
        exact = {"primal_feasibility_tolerance": tolerance, "dual_feasibility_tolerance": tolerance}
        solved = linprog(costs, A_ub=above, b_ub=nothing, A_eq=equal, b_eq=sums, method="highs", options=exact)
        if solved.x is not None:
            plan = np.zeros((2, *components.apart.shape))
            plan[0][i, j], plan[1][i, j] = solved.x[:pairs], solved.x[pairs : 2 * pairs] / alpha
            return (plan[0], plan[1]), float(solved.fun) * unit
    return None


def _above(cuts: Sequence[tuple[FloatArray, FloatArray]], pairs: int, unit: float) -> Any:
    """a pi - b rho - z <= 0, cut by cut, each divided by its largest number; those that cannot matter are left out."""
    a, b = np.concatenate([a for a, _ in cuts]), np.concatenate([b for _, b in cuts])
    which, matters = np.tile(np.arange(pairs), len(cuts)), a > 1e-6 * unit
    a, b, which = a[matters], b[matters], which[matters]
    here, size = np.arange(a.size), np.maximum(a, b)
    places = [which, pairs + which, 2 * pairs + which]
    return _sparse([here] * 3, places, (here.size, 3 * pairs), [a / size, -b / size, -unit / size])


def _sparse(rows: Sequence[Any], columns: Sequence[Any], shape: tuple[int, int], values: Sequence[Any] = ()) -> Any:
    from scipy.sparse import csr_array

    at = (np.concatenate(rows), np.concatenate(columns))
    return csr_array((np.concatenate(values) if len(values) else np.ones(at[0].size), at), shape=shape)
