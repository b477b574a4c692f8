"""One theorem for most designs: privacy is decided by how often the record appears.

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
from collections.abc import Callable

import numpy as np

from ..core.multiplicity import Multiplicity
from ..core.profile import Curve, Profile
from ..numerics.log_domain import FloatArray, log1mexp, log_mix, log_unmix

AtDistance = Callable[[int], Profile]

_NOTHING = Curve(lambda epsilon: np.full_like(epsilon, -np.inf), 0.0)


def shared_absence(law: Multiplicity, at_distance: AtDistance) -> Profile:
    """Replace-one: P and Q agree when neither record is drawn."""
    if law.log_eta == -math.inf:
        return Profile.symmetric(_NOTHING)
    terms = _terms(law, at_distance)
    curve = _present_first(law, [(p, profile.forward) for p, profile in terms])
    if all(profile.is_symmetric for _, profile in terms):
        return Profile.symmetric(curve)
    return Profile(curve, _present_first(law, [(p, profile.backward) for p, profile in terms]))


def one_sided(law: Multiplicity, at_distance: AtDistance) -> Profile:
    """Add/remove: Q never holds the record."""
    if law.log_eta == -math.inf:
        return Profile.symmetric(_NOTHING)
    terms = _terms(law, at_distance)
    return Profile(
        _present_first(law, [(p, profile.forward) for p, profile in terms]),
        _absent_first(law, [(p, profile.backward) for p, profile in terms]),
    )


def _terms(law: Multiplicity, at_distance: AtDistance) -> list[tuple[float, Profile]]:
    live = np.flatnonzero(np.isfinite(law.log_p))
    return [(float(law.log_p[i]), at_distance(int(i) + 1)) for i in live]


def _weighted(terms: list[tuple[float, Curve]], epsilon: FloatArray, log_tail: float) -> FloatArray:
    """log of sum_u p_u delta_u; once the mass still to come cannot show in the digits it is counted as lost."""
    to_come = np.logaddexp.accumulate([log_tail, *(log_p for log_p, _ in reversed(terms))])[::-1]
    total: FloatArray = np.full_like(epsilon, -np.inf)
    for (log_p, curve), rest in zip(terms, to_come, strict=False):
        if total.size and rest < np.min(total) - 40.0:
            return np.asarray(np.logaddexp(total, rest))
        total = np.logaddexp(total, log_p + curve(epsilon))
    return np.logaddexp(total, log_tail)


def _largest(law: Multiplicity, terms: list[tuple[float, Curve]]) -> float:
    return math.inf if law.log_tail > -math.inf else max(curve.largest_loss for _, curve in terms)


def _present_first(law: Multiplicity, terms: list[tuple[float, Curve]]) -> Curve:
    """D(P||Q): sum_u p_u delta_u(log(1 + (alpha-1)/eta))."""
    eta = law.eta

    def log_delta(epsilon: FloatArray) -> FloatArray:
        return _weighted(terms, log_unmix(eta, epsilon), law.log_tail)

    largest = _largest(law, terms)
    return Curve(log_delta, float(log_mix(eta, largest)) if math.isfinite(largest) else math.inf)


def _absent_first(law: Multiplicity, terms: list[tuple[float, Curve]]) -> Curve:
    """D(Q||P): zero from -log p_0 on, because Q's output is at most 1/p_0 times as likely as P's."""
    log_eta = law.log_eta

    def log_delta(epsilon: FloatArray) -> FloatArray:
        log_a = log1mexp(np.minimum(epsilon + law.log_none, 0.0))  # log A
        alive = np.isfinite(log_a)
        safe = np.where(alive, log_a, 0.0)
        inner = np.maximum(epsilon + log_eta - safe, 0.0)
        value = safe - log_eta + _weighted(terms, inner, law.log_tail)
        return np.where(alive, value, -np.inf)

    largest = _largest(law, terms)
    return Curve(log_delta, -math.log1p(-law.eta * -math.expm1(-largest)) if law.eta < 1.0 else largest)
