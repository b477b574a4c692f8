"""Theorem B: Gaussian noise on a sample whose last stage draws with replacement, replace-one → replace-one.

After the earlier stages j of the b entries are the record's, with law P(j); the last stage takes u of its m draws
from them, pi_u = Binomial(m, j/b). Let theta = sensitivity/sigma, e_u(t) = e^(u theta t - u^2 theta^2/2) the ratio
of N(u theta, 1) to N(0, 1), alpha = e^eps' >= 1, and r_j >= 0 with sum 1. Then delta' <= sum_j P(j) G_j(beta_j),

    beta_j - 1 = (alpha - 1) (1 + P(0) r_j/P(j)),
    beta = max_k E[e_u(t) | u <= k]                                    (this t and the k that attains it)
    G(beta) = sum_{1<=u<=k} pi_u delta_{u,t} + sum_{u>k} pi_u delta_u(log beta),

with delta_{u,t} = Pr[N > t - u theta] - e_u(t) Pr[N > t], delta_u the Gaussian profile at distance u. Small counts
are compared with all smaller ones at one threshold t, as the attack does; large ones each against its own kind.

A person with j records is the case of no first stage with the law of their appearances for pi, whatever it is
(docs/persons.md, Thm 3): of the law the proof uses nothing.

No root is sought: t is the parameter, beta(t) and G(t) are positive sums, and between tabulated points the chord in
alpha is an upper bound, because the true delta' is convex in alpha. Proof: docs/designs/multistage.md.
"""

import math
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import erfinv

from ..core.mechanism import Change, Mechanism
from ..core.multiplicity import Multiplicity
from ..core.neighbors import Neighbors
from ..core.profile import Curve, Profile
from ..errors import NoTheorem
from ..numerics.convex_table import OUTWARD, Growing, Table, tabulated
from ..numerics.log_domain import FloatArray, as_floats, log_expm1, log_mills_gap, log_sum
from ..numerics.roots import bisected

RO = Neighbors.REPLACE_ONE
Stages = tuple[tuple[str, int], ...]

_NEGLIGIBLE = -130.0  # log of the mass that may be counted as lost when there are many j
_FINE, _COARSE = 1e-3, 4e-3  # relative excess of a chord that is worth another point
_START, _MOST = 65, 6000  # points to begin with, points in all
_WORK, _WIDEST, _AT_ONCE = 20_000_000, 50_000, 200_000  # terms in all; counts (u and j) worth a table; in one array
_SEARCH = 40  # halvings of the common slope


def copies_bound(stages: Stages, population: int, mechanism: Mechanism) -> Profile:
    """Theorem B for the chains it covers; NoTheorem for the others."""
    *first, (_, draws) = reduced(stages, population)
    case = (tuple(first), population, draws, gaussian_shift(mechanism))
    _refuse_wide(_counts(*case[:3]))
    return Profile.symmetric(Curve(lambda epsilon: _table(*case).log_delta(epsilon)))  # the table waits until asked for


def copies_table(law: Multiplicity, theta: float) -> Growing | Table:
    """Theorem B with no first stage, for a record that appears u times with this law."""
    return Copies(law, theta, -math.inf).growing()


def replaced_people(design: Any, mechanism: Mechanism, neighbors: Neighbors) -> Profile:
    """Theorem B for a design of fixed size and a person with several records."""
    return people_bound(design.appearances(neighbors.records), mechanism)


def people_bound(law: Multiplicity, mechanism: Mechanism) -> Profile:
    """Theorem B for a person whose records appear u times in all with this law."""
    theta = gaussian_shift(mechanism)
    _refuse_wide(int(law.log_p.size))
    made: list[Growing | Table] = []  # one table, when first asked for

    def log_delta(epsilon: FloatArray) -> FloatArray:
        if not made:
            made.append(copies_table(law, theta))
        return made[0].log_delta(epsilon)

    return Profile.symmetric(Curve(log_delta))


def reduced(stages: Stages, population: int) -> Stages:
    """The same sample in fewer stages, "wr" or "wor, wr" or "wr, wr"; NoTheorem for any other."""
    kept: list[tuple[str, int]] = []
    for kind, size in stages:
        if kind == "wor" and kept:  # part of independent draws, or of a simple random sample
            kept[-1] = (kept[-1][0], size)
        elif (kind, size) != ("wor", population):
            kept.append((kind, size))
    if not 1 <= len(kept) <= 2 or kept[-1][0] != "wr":
        raise NoTheorem("Theorem B is proved for 'wr', 'wor, wr' and 'wr, wr' only")
    return tuple(kept)


def gaussian_shift(mechanism: Mechanism) -> float:
    """theta of a mechanism whose profiles are all Gaussian, from its total variation 2 Phi(theta/2) - 1."""
    weight = 1.0
    while (tv := mechanism.profile(RO, Change(weight=weight)).delta(0.0)) > 0.5:
        weight *= 1e-3
    return float(2.0 * math.sqrt(2.0) * erfinv(tv) / weight) * (1.0 + 1e-13)


def _cut(log_p: FloatArray, log_tail: float, negligible: float) -> tuple[int, float]:
    """How many masses to keep so that the rest is negligible (at least one), and the log of the rest."""
    to_come = np.logaddexp.accumulate(np.append(log_p, log_tail)[::-1])[::-1]
    kept = max(int(np.sum(to_come[:-1] > negligible)), 1)
    return kept, float(to_come[kept])


def _refuse_wide(counts: int) -> None:
    if counts > _WIDEST:
        raise NoTheorem(f"Theorem B would need {counts} counts of copies; more than {_WIDEST} are left to Theorem A")


def _counts(first: Stages, population: int, draws: int) -> int:
    """How many (j, u) the table of this chain looks at, at most."""
    entries = first[0][1] if first else population
    if not first or first[0][0] == "wor":
        return int(Multiplicity.binomial(draws, 1.0 / entries).log_p.size)
    law = Multiplicity.binomial(entries, 1.0 / population)
    count, _ = _cut(law.log_p, law.log_tail, _NEGLIGIBLE)
    return count * int(Multiplicity.binomial(draws, count / entries).log_p.size)


class Copies:
    """G(beta) for one j: u = 1..U with masses pi_u, and pi_0."""

    def __init__(self, law: Multiplicity, theta: float, negligible: float) -> None:
        live = np.isfinite(law.log_p)
        kept, self.lost = _cut(law.log_p[live], law.log_tail, negligible)
        self.log_pi, self.shift = law.log_p[live][:kept], law.counts[live][:kept] * theta
        self.log_below = np.logaddexp.accumulate(np.append(law.log_none, self.log_pi))[1:]  # log Pr[u <= k]
        self.first = 0.5 * float(self.shift[0])  # the t of beta = 1

    def sampled(self, t: FloatArray) -> tuple[FloatArray, FloatArray]:
        """log(beta - 1) and log G at thresholds t > first."""
        step = max(1, _AT_ONCE // self.shift.size)
        pieces = [self._piece(t[i : i + step]) for i in range(0, t.size, step)]
        return np.concatenate([x for x, _ in pieces] or [t]), np.concatenate([v for _, v in pieces] or [t])

    def _piece(self, t: FloatArray) -> tuple[FloatArray, FloatArray]:
        exponent = self.shift * (t[:, None] - 0.5 * self.shift)
        # log of sum_{u<=k} pi_u (e_u - 1); terms below zero come after the k that is best, and are left out
        gains = np.logaddexp.accumulate(self.log_pi + log_expm1(np.maximum(exponent, 0.0)), axis=1)
        averages = np.where(exponent > 0.0, gains - self.log_below, -np.inf)
        best = np.argmax(averages, axis=1)
        log_x = np.take_along_axis(averages, best[:, None], axis=1)
        alone = np.logaddexp(0.0, log_x) / self.shift + 0.5 * self.shift  # where e_u = beta
        threshold = np.where(np.arange(self.shift.size) <= best[:, None], t[:, None], alone)
        terms = self.log_pi + log_mills_gap(threshold - self.shift, self.shift)
        return log_x[:, 0], np.logaddexp(log_sum(terms, axis=1), self.lost)

    def table(self, tolerance: float, tables: int) -> Table:
        """From beta = 1 to where nothing is left; one of so many tables."""
        most = min(_MOST, _WORK // (tables * self.shift.size))
        return tabulated(self.sampled, self.at_zero, self.start, tolerance, most)

    def growing(self, log_share: float = 0.0) -> Growing | Table:
        """The same by itself, made where it is asked for; beta - 1 and G in units of a share, which they are of alpha -
        1 and of delta."""
        if _WORK // self.shift.size >= _MOST:
            return Growing(self.sampled, self.at_zero, self.start, _FINE, log_share)
        one = self.table(_FINE, 1)
        return Table(one.log_x + log_share, one.log_v + log_share)

    @property
    def start(self) -> FloatArray:
        """Thresholds to begin with."""
        near = np.geomspace(1e-3 * min(self.first, 1.0), 12.0, _START)
        return as_floats(self.first + np.union1d(np.linspace(0.0, float(self.shift[-1]) + 40.0, _START)[1:], near))

    @property
    def at_zero(self) -> float:
        """log of G at beta = 1."""
        at_zero = log_sum(self.log_pi + log_mills_gap(-0.5 * self.shift, self.shift))
        return float(np.logaddexp(at_zero, self.lost))


@lru_cache(maxsize=256)
def _table(first: Stages, population: int, draws: int, theta: float) -> Growing | Table:
    """The whole bound as a function of alpha - 1."""
    if not first:
        return Copies(Multiplicity.binomial(draws, 1.0 / population), theta, -math.inf).growing()
    (kind, entries) = first[0]
    if kind == "wor":
        one = Copies(Multiplicity.binomial(draws, 1.0 / entries), theta, -math.inf)
        return one.growing(math.log(entries / population))  # beta - 1 = (alpha - 1)/P(1)
    return _Several(Multiplicity.binomial(entries, 1.0 / population), entries, draws, theta).table()


class _Several:
    """sum_j P(j) G_j with the shares r_j of the absent record that make it least."""

    def __init__(self, law: Multiplicity, entries: int, draws: int, theta: float) -> None:
        count, self.lost = _cut(law.log_p, law.log_tail, _NEGLIGIBLE)
        self.log_p, self.log_p0 = law.log_p[:count], law.log_none
        self.tables = [
            Copies(Multiplicity.binomial(draws, j / entries), theta, _NEGLIGIBLE - log_p).table(_COARSE, count)
            for j, log_p in zip(range(1, count + 1), self.log_p.tolist(), strict=True)
        ]
        self.slopes = [-np.minimum.accumulate(table.log_slope) for table in self.tables]

    def sampled(self, log_x: FloatArray) -> tuple[FloatArray, FloatArray]:
        """The sum at log(alpha - 1): any shares are sound, a common slope of all G_j is best."""

        def is_above(slope: FloatArray) -> NDArray[np.bool_]:
            return ~(log_sum(self.log_p[:, None] + self._extra(slope, log_x)) > self.log_p0)

        _, high = bisected(is_above, np.full_like(log_x, -2000.0), np.full_like(log_x, 50.0), rounds=_SEARCH)
        extra = np.logaddexp(self._extra(high, log_x), -40.0)  # log of (beta_j - 1)/(alpha - 1) - 1
        extra += self.log_p0 - log_sum(self.log_p[:, None] + extra) - OUTWARD
        rows = [table.at(log_x + np.logaddexp(0.0, e)) for table, e in zip(self.tables, extra, strict=True)]
        return log_x, np.logaddexp(log_sum(self.log_p[:, None] + np.stack(rows)), self.lost)

    def _extra(self, log_slope: FloatArray, log_x: FloatArray) -> FloatArray:
        """log((beta_j - 1)/(alpha - 1) - 1) where G_j has this slope, shape (J, x); -inf where beta_j < alpha."""
        rows = []
        for table, slopes in zip(self.tables, self.slopes, strict=True):
            beta = table.log_x[np.searchsorted(slopes, -log_slope, side="left")]
            rows.append(log_expm1(np.maximum(beta - log_x, 0.0)))
        return np.stack(rows)

    def table(self) -> Table:
        """Between the smallest and the largest alpha that any of the tables knows."""
        known = [t.log_x[1:] for t in self.tables]
        start = np.linspace(min(k[0] for k in known) - 8.0, max(k[-1] for k in known), 4 * _START)
        at_zero = log_sum(self.log_p + as_floats([t.log_v[0] for t in self.tables]))
        return tabulated(self.sampled, float(np.logaddexp(at_zero, self.lost)), start, _COARSE, _MOST)
