"""Both directions of P = sum_u p_u M(u copies) against Q = M(no copy) when outcomes can be tabulated."""

import math

import numpy as np

from ..core.curves import discrete_curve
from ..core.multiplicity import Multiplicity
from ..core.profile import Curve, Profile
from ..numerics.log_domain import FloatArray
from .laplace_mixture import log_one_plus, value_of

ENTRIES = 4_000_000  # outcomes * multiplicities worth tabulating


def identical() -> Profile:
    """The profile of two equal laws."""
    return Profile.symmetric(Curve(lambda at: np.full_like(at, -np.inf), 0.0))


def discrete_mixture(
    log_q: FloatArray, log_ratio: FloatArray, law: Multiplicity, log_cut: float = -math.inf
) -> Profile:
    """The profile of the pair from a table of outcomes.

    log_q: log Q of each outcome, shape (K,). log_ratio: log M(u copies)/M(no copy) there, shape (K, U).
    log_cut: log of the mass that Q, or any component of P, has outside the table. It counts as lost in
    D(P||Q), and in D(Q||P) as an outcome that only u = 0 explains. P's own tail counts as no appearance.
    """
    log_p0 = float(np.logaddexp(law.log_none, law.log_tail))
    p0 = np.full((log_q.size, 1), log_p0)
    loss = log_one_plus(value_of(law.log_p, log_ratio), np.concatenate([p0, law.log_p + log_ratio], axis=1))
    forward = discrete_curve(loss, loss + log_q, log_cut)
    if log_cut > -math.inf and log_p0 > -math.inf:
        backward = discrete_curve(np.append(-loss, -log_p0), np.append(log_q, log_cut))
    else:
        backward = discrete_curve(-loss, log_q, log_cut)
    return Profile(forward, backward)
