"""Clusters whose members are kept by coins, under Gaussian noise: all coins are revealed but the record's own.

Given the coins of all other records, s other records may take part in the exchange of the changed cluster for another
one: s is binomial of 2c - 1 trials, c the cap. What remains are whole clusters of kept records, and a record with a
coin of probability r. With W_s, V_s the curves of Theorem 8 (cluster_gaussian.py) for one record more and one replaced,
at s others:

    one record more:   E_s r W_s(1 + (alpha-1)/r)
    one record less:   E_s (1 - alpha(1-r)) W'_s(alpha r/(1 - alpha(1-r))), where that is positive
    one replaced:      E_s r [(1-beta) W_s(gamma) + beta V_s(gamma)], gamma = 1 + (alpha-1)/r, beta = alpha/gamma.

Divergences are jointly convex, so that telling the coins costs tightness, never truth. No program is solved, and every
cap is covered. Proof: docs/designs/cluster.md, Thm 10.
"""

import math
from typing import Any

import numpy as np

from ..core.line_attack import Places
from ..core.mechanism import Mechanism
from ..core.neighbors import Neighbors
from ..core.profile import Curve, Profile
from ..core.theorem import Theorem
from ..errors import NoTheorem
from ..numerics.count_laws import binomial_chance
from ..numerics.log_domain import FloatArray, log_expm1, log_mills_gap, log_sum
from .cluster_gaussian import add_remove_shift, one_against_several, three_statements

AR = Neighbors.ADD_REMOVE
_PAGE = "docs/designs/cluster.md, Thm 10"
_MARGIN = 1e-12  # relative: chances of counts are computed to well within it
_RARE = 1e-30  # counts that are less likely are taken together, at the largest of them


def counts(members: int, rate: float) -> list[tuple[float, int]]:
    """(chance, s): the law of the others that are kept, rare counts moved up to the next one that is not."""
    law, rare = [], 0.0
    for s, chance in enumerate(binomial_chance(np.arange(members + 1), members, rate).tolist()):
        rare += chance
        if rare > _RARE or s == members:
            law.append((rare * (1.0 + _MARGIN), s))
            rare = 0.0
    return law


def added(theta: float, chance: float, rate: float, members: int) -> Profile:
    """One record more, by its coin."""
    law = counts(members, rate)
    there = [(p, one_against_several(chance, theta, _others(chance, theta, s + 1))) for p, s in law]
    back = [(p, _without(chance, theta, s)) for p, s in law]
    return Profile(_kept(there, rate), _left(back, rate))


def replaced(theta: float, chance: float, rate: float, members: int) -> Profile:
    """One record replaced inside its cluster, both by the same coin."""
    law = counts(members, rate)
    some = [(p, one_against_several(chance, theta, _others(chance, theta, s + 1))) for p, s in law]
    other = [(p, one_against_several(chance, 2.0 * theta, _others(chance, theta, s + 1))) for p, s in law]

    def log_delta(epsilon: FloatArray) -> FloatArray:
        inner = np.logaddexp(0.0, log_expm1(epsilon) - math.log(rate))
        beta = np.exp(np.minimum(epsilon - inner, 0.0))
        with np.errstate(divide="ignore"):
            parts = [np.log1p(-beta) + _mean(some, inner), np.log(beta) + _mean(other, inner)]
        return math.log(rate) + log_sum(np.stack(parts))

    return Profile.symmetric(Curve(log_delta))


def lines(neighbors: Neighbors, chance: float, rate: float, beside: int) -> dict[str, tuple[Places, Places]]:
    """Where a sum lies when the record counts 1, or -1 after it was replaced, and members of other clusters nothing.

    The other members of its cluster count 1, -1 or nothing.
    """
    kept = binomial_chance(np.arange(beside + 1), beside, rate).tolist()
    after = 0.0 if neighbors.kind == AR.kind else -1.0
    found: dict[str, tuple[Places, Places]] = {}
    for name, value in (("with its cluster", 1.0), ("against its cluster", -1.0), ("alone", 0.0)):
        p, q = {0.0: 1.0 - chance}, {0.0: 1.0 - chance}
        for x, often in enumerate(kept):
            for law, own in ((p, 1.0), (q, after)):
                for at, part in ((value * x + own, rate), (value * x, 1.0 - rate)):
                    law[at] = law.get(at, 0.0) + chance * often * part
        found[name] = (p, q)
    return found


def _others(chance: float, theta: float, steps: int) -> list[tuple[float, float]]:
    return [(1.0 - chance, steps * theta)] if chance < 1.0 else []


def _without(chance: float, theta: float, steps: int) -> Curve:
    """Q against P: the usual samples coincide if no other record is kept."""
    if steps or chance == 1.0:
        return one_against_several(chance, theta, _others(chance, theta, steps))
    alone = Curve(lambda epsilon: log_mills_gap(epsilon / theta - 0.5 * theta, theta))
    return _left([(1.0, alone)], chance)


def _mean(curves: list[tuple[float, Curve]], epsilon: FloatArray) -> FloatArray:
    return log_sum(np.stack([math.log(p) + curve(epsilon) for p, curve in curves]))


def _kept(curves: list[tuple[float, Curve]], rate: float) -> Curve:
    """H_alpha((1-r) Q + r P || Q) = r H_gamma(P || Q), gamma = 1 + (alpha-1)/r."""

    def log_delta(epsilon: FloatArray) -> FloatArray:
        inner = np.logaddexp(0.0, log_expm1(epsilon) - math.log(rate))
        return math.log(rate) + _mean(curves, inner)

    return Curve(log_delta)


def _left(curves: list[tuple[float, Curve]], rate: float) -> Curve:
    """H_alpha(Q || (1-r) Q + r P) = b H_{alpha r/b}(Q || P), b = 1 - alpha(1-r), and 0 where b is not positive."""

    def log_delta(epsilon: FloatArray) -> FloatArray:
        some = 1.0 - np.exp(np.minimum(epsilon, 700.0)) * (1.0 - rate)
        live = some > 0.0
        with np.errstate(divide="ignore", invalid="ignore"):
            log_b = np.where(live, np.log(np.where(live, some, 1.0)), 0.0)
            inner = np.maximum(epsilon + math.log(rate) - log_b, 0.0)
            return np.where(live, log_b + _mean(curves, np.where(live, inner, 0.0)), -np.inf)

    return Curve(log_delta)


def theorems(subject: str) -> tuple[Theorem, ...]:
    """The three statements about clusters with coins inside."""

    def in_each(design: Any, mechanism: Mechanism, one: Any) -> Profile:
        if design.rate == 1.0 or design.most_kept is not None:
            raise NoTheorem("this theorem is about members kept by coins, without trimming")
        if design.rate == 0.0:
            raise NoTheorem("a rate of 0 keeps no record")
        largest = sorted(design.caps, reverse=True)
        members = largest[0] - 1 + (largest[1] if len(largest) > 1 else 0)
        profile: Profile = one(add_remove_shift(mechanism), design.share, design.rate, members)
        return profile

    def one_more(design: Any, mechanism: Mechanism, neighbors: Neighbors) -> Profile:
        return in_each(design, mechanism, added)

    def inside(design: Any, mechanism: Mechanism, neighbors: Neighbors) -> Profile:
        return in_each(design, mechanism, replaced)

    return three_statements(subject, _PAGE, one_more, inside, are_tight=False)
