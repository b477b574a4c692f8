"""One theorem for most designs: the privacy loss depends on how often the record appears.

Let p_u be the law of the number of appearances and eta = 1 - p_0. Couple the sample drawn with the record
to one drawn without it so that they differ in at most u entries when the record appears u times. With
delta_u the mechanism's profile at distance u, alpha = e^eps' >= 1 and eps = log(1 + (alpha - 1)/eta):

    both laws share p_0 (replace-one):   delta'(eps') <= sum_u p_u delta_u(eps), both directions
    only P has the record (add/remove):  the same for D(P||Q), and for D(Q||P)
        delta'(eps') <= A sum_u (p_u/eta) delta_u(eps' + log eta - log A),  A = 1 - alpha (1 - eta).

Balle, Barthe & Gaboardi 2018, Theorem 2 and section 4; MUST Theorem 4 (with the repaired proof of
docs/theory.md). For eps' < 0 the formula is false; Profile extends by the identity between directions.
"""

import math
from typing import Any, Literal

import numpy as np

from ..core.mechanism import Change, Mechanism
from ..core.multiplicity import Multiplicity
from ..core.neighbors import Neighbors
from ..core.profile import Curve, Profile
from ..errors import NoTheorem
from ..numerics.log_domain import FloatArray, log1mexp, log_mix, log_sum, log_unmix

Side = Literal["forward", "backward"]
RO = Neighbors.REPLACE_ONE

_NOTHING = Curve(lambda epsilon: np.full_like(epsilon, -np.inf), 0.0)
_AT_ONCE, _PIECE = 65_536, 8_192  # numbers worth computing in one array; epsilons that end their sums together


def shared_absence(law: Multiplicity, mechanism: Mechanism, neighbors: Neighbors) -> Profile:
    """Replace-one: P and Q agree when neither record is drawn. `neighbors`: how delta_u counts distance."""
    if law.log_eta == -math.inf:
        return Profile.symmetric(_NOTHING)
    distances = _Distances(law, mechanism, neighbors)
    forward = _present_first(law, distances, "forward")
    return Profile(forward, forward if distances.symmetric else _present_first(law, distances, "backward"))


def one_sided(law: Multiplicity, mechanism: Mechanism, neighbors: Neighbors) -> Profile:
    """Add/remove: Q never holds the record. `neighbors`: how delta_u counts distance."""
    if law.log_eta == -math.inf:
        return Profile.symmetric(_NOTHING)
    distances = _Distances(law, mechanism, neighbors)
    return Profile(_present_first(law, distances, "forward"), _absent_first(law, distances, "backward"))


def known(pair: Profile | None) -> Profile:
    """An exact pair, or NoTheorem where the mechanism has none."""
    if pair is None:
        raise NoTheorem("no exact pair is known for this mechanism")
    return pair


def replaced(design: Any, mechanism: Mechanism, neighbors: Neighbors) -> Profile:
    """The bound of a design of fixed size: as many of the changed records appear as `appearances` says."""
    return shared_absence(design.appearances(neighbors.records), mechanism, RO)


def added(design: Any, mechanism: Mechanism, neighbors: Neighbors) -> Profile:
    """The same for further records, of which as many appear as `appearances_of_extra` says."""
    return one_sided(design.appearances_of_extra(neighbors.records), mechanism, RO)


def added_pair(design: Any, mechanism: Mechanism, neighbors: Neighbors) -> Profile:
    """The same by the mechanism's exact pair."""
    return known(mechanism.mixture(RO, design.appearances_of_extra(neighbors.records)))


class _Distances:
    """sum_u p_u delta_u of one mechanism, all distances at once where the mechanism can."""

    def __init__(self, law: Multiplicity, mechanism: Mechanism, neighbors: Neighbors) -> None:
        live = np.isfinite(law.log_p)
        self.copies, self.log_p = law.counts[live], law.log_p[live]
        self.family = mechanism.family(neighbors)
        some = self.copies if self.family is None else self.copies[-1:]
        self.profiles = [mechanism.profile(neighbors, Change(copies=int(u))) for u in some]
        self.symmetric = all(profile.is_symmetric for profile in self.profiles)
        self.to_come = np.logaddexp.accumulate([law.log_tail, *self.log_p[::-1]])[::-1]  # log mass from u on
        self.is_cut = law.log_tail > -math.inf

    def weighted(self, side: Side, epsilon: FloatArray) -> FloatArray:
        """log of the sum; once the mass still to come cannot show in the digits it is counted as lost."""
        flat = np.ravel(epsilon)
        pieces = [self._piece(side, flat[i : i + _PIECE]) for i in range(0, flat.size, _PIECE)]
        return np.concatenate(pieces or [flat]).reshape(np.shape(epsilon))

    def _piece(self, side: Side, epsilon: FloatArray) -> FloatArray:
        total: FloatArray = np.full_like(epsilon, -np.inf)
        block = max(1, _AT_ONCE // epsilon.size) if self.family else 1
        for first in range(0, self.copies.size, block):
            if self.to_come[first] < np.min(total) - 40.0:
                return np.asarray(np.logaddexp(total, self.to_come[first]))
            rows = self._rows(side, slice(first, first + block), epsilon)
            total = np.logaddexp(total, log_sum(self.log_p[first : first + block, None] + rows))
        return np.asarray(np.logaddexp(total, self.to_come[-1]))

    def _rows(self, side: Side, part: slice, epsilon: FloatArray) -> FloatArray:
        if self.family is not None:
            return np.minimum(self.family(self.copies[part, None], epsilon[None, :]), 0.0)
        return np.stack([getattr(profile, side)(epsilon) for profile in self.profiles[part]])

    def largest_loss(self, side: Side) -> float:
        """Where all the curves have ended."""
        return math.inf if self.is_cut else max(getattr(p, side).largest_loss for p in self.profiles)


def _present_first(law: Multiplicity, distances: _Distances, side: Side) -> Curve:
    """D(P||Q): sum_u p_u delta_u(log(1 + (alpha-1)/eta))."""
    eta, largest = law.eta, distances.largest_loss(side)
    return Curve(
        lambda epsilon: distances.weighted(side, log_unmix(eta, epsilon)),
        float(log_mix(eta, largest)) if math.isfinite(largest) else math.inf,
    )


def _absent_first(law: Multiplicity, distances: _Distances, side: Side) -> Curve:
    """D(Q||P): zero from -log p_0 on, because Q's output is at most 1/p_0 times as likely as P's."""
    log_eta, largest = law.log_eta, distances.largest_loss(side)

    def log_delta(epsilon: FloatArray) -> FloatArray:
        log_a = log1mexp(np.minimum(epsilon + law.log_none, 0.0))  # log A
        alive = np.isfinite(log_a)
        safe = np.where(alive, log_a, 0.0)
        inner = np.maximum(epsilon + log_eta - safe, 0.0)
        return np.where(alive, safe - log_eta + distances.weighted(side, inner), -np.inf)

    return Curve(log_delta, _end_of_absence(law, largest))


def _end_of_absence(law: Multiplicity, largest: float) -> float:
    """-log(p_0 + eta e^-largest); from p_0 itself where it is small, because 1 - eta has lost its digits there."""
    drop = -law.eta * math.expm1(-largest)
    return -math.log1p(-drop) if drop < 0.5 else -float(np.logaddexp(law.log_none, law.log_eta - largest))
