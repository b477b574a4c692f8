"""Both directions of P = sum_u p_u M(u copies) against Q = M(no copy) when outcomes can be tabulated."""

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


def discrete_mixture(log_q: FloatArray, log_ratio: FloatArray, law: Multiplicity, *, goes_on: bool = False) -> Profile:
    """A lower bound on the profile of the pair from a table of outcomes, exact when the table has all of them.

    log_q: log Q of each outcome, shape (K,). log_ratio: log M(u copies)/M(no copy) there, shape (K, U). Outcomes
    outside the table count for nothing: each would add to delta, so a lower bound may leave them out. P's own tail
    counts as no appearance. goes_on: there are outcomes outside, with losses up to infinity (forward) and -log p_0
    (backward).
    """
    log_p0 = float(np.logaddexp(law.log_none, law.log_tail))
    p0 = np.full((log_q.size, 1), log_p0)
    loss = log_one_plus(value_of(law.log_p, log_ratio), np.concatenate([p0, law.log_p + log_ratio], axis=1))
    forward, backward = discrete_curve(loss, loss + log_q), discrete_curve(-loss, log_q)
    if goes_on:
        forward, backward = Curve(forward.log_delta), Curve(backward.log_delta, -min(log_p0, 0.0))
    return Profile(forward, backward)
