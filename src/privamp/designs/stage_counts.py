"""Chains of stages under pure mechanisms, by the number of entries that differ: each number has its own factor.

F(u) = e^(eps u) bounds what u replaced entries of the final sample change. If F(i) does so for i entries of the array
that a stage makes, and p is the law of how many of the j changed positions among N are picked, then F'(j) = R does so
for the array it draws from, for every R with

    sum_i p_i s_i (F(i) - R) <= 0,    s_i = 1 where i = 0 or F(i) >= R, else 1/F(i).

The recursion of Theorem B' multiplies the worst cases of all stages; here rare numbers of copies stay rare. For a stage
"wr" its draw by draw bound, (1 + (j/N)(F(1) - 1))^m, is taken where that is smaller. Proof: docs/designs/multistage.md,
Thm C.
"""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from ..errors import NoTheorem
from ..numerics.count_laws import binomial_log_chance, hypergeometric_log_chance
from ..numerics.log_domain import FloatArray, as_floats, log_diff, log_mix, log_sum

_MOST = 4_000_000  # numbers of copies before and after a stage, together
_MARGIN = 1e-11  # relative: probabilities and sums are computed to well within it
_SMALL = 700.0  # an exponent whose exponential is a double
_ROUNDED = 1e-13  # what rounding may take off a root


def chain_loss(stages: Sequence[tuple[str, int, int]], records: int, epsilon: float) -> float:
    """log F'(records) of the first stage; stages are (kind, entries, draws)."""
    log_f = epsilon * np.arange(stages[-1][2] + 1.0)
    for place in range(len(stages) - 1, -1, -1):
        kind, entries, draws = stages[place]
        most = min(records, entries) if place == 0 else entries
        if (most + 1) * (draws + 1) > _MOST:
            raise NoTheorem("there are too many entries to count them number by number; Theorem B' covers them")
        log_f = before(kind, entries, draws, log_f, most)
    return float(log_f[-1])


def before(kind: str, entries: int, draws: int, log_f: FloatArray, most: int) -> FloatArray:
    """log F' for 0 to `most` changed entries of the array that a stage draws from."""
    changed, picked = np.arange(most + 1)[:, None], np.arange(draws + 1)[None, :]
    with np.errstate(divide="ignore"):
        if kind == "wr":
            log_p = binomial_log_chance(picked, draws, changed / entries)
        else:
            log_p = hypergeometric_log_chance(picked, entries, changed, draws)
    log_p = np.where(np.isnan(log_p), -np.inf, log_p)
    found = _root(log_p, log_f)
    if kind == "wr":
        one = draws * _mixed(np.arange(most + 1) / entries, float(log_f[1]))
        found = np.minimum(found, one)
    return as_floats(np.maximum.accumulate(np.where(np.arange(most + 1) == 0, 0.0, found * (1.0 + _MARGIN) + _MARGIN)))


def _mixed(rates: FloatArray, epsilon: float) -> FloatArray:
    """`log_mix` at many rates."""
    if epsilon < _SMALL:
        return as_floats(np.log1p(rates * np.expm1(epsilon)))
    return as_floats([float(log_mix(rate, epsilon)) for rate in rates.tolist()])


def _root(log_p: FloatArray, log_f: FloatArray) -> FloatArray:
    """The smallest log R for every row of probabilities; the largest F if a changed entry is always picked.

    F rises, so with R in (F(c-1), F(c)] the condition is linear in R: R = (S_1 + T_0)/(S_0 + T_1), where S_1, S_0 add
    up p F and p from c on, T_0 and T_1 add up p s F and p s before c. The right c is the first whose F(c) passes. All
    terms are positive, so that nothing cancels; the sums from c on are raised by the margin.
    """
    largest = np.max(np.where(log_p > -np.inf, log_f, 0.0), axis=1)
    chances, scaled = _from(log_p), _up_to(log_p - log_f)[:, :-1]
    first = np.argmax(_passes(chances, scaled, log_diff(log_f[1:], log_f[:-1])), axis=1)
    is_from = np.arange(log_f.size) > first[:, None]
    numerator = np.logaddexp(_sum_of(log_p + log_f, is_from) + _MARGIN, _sum_of(log_p, ~is_from))
    denominator = np.logaddexp(*(np.take_along_axis(part, first[:, None], axis=1)[:, 0] for part in (chances, scaled)))
    root = numerator - denominator
    high = np.clip(root * (1.0 + _ROUNDED) + _ROUNDED, log_f[first], log_f[first + 1])
    return as_floats(np.where(log_p[:, 0] > -np.inf, np.minimum(high, largest), largest))


def _passes(chances: FloatArray, scaled: FloatArray, log_gaps: FloatArray) -> NDArray[np.bool_]:
    """Whether R = F(1), F(2), ... meet the condition, by the gaps F(c) - F(c-1): no difference is taken.

    From F(c) to F(c+1) what is above falls by the gap times S_0, what is below grows by the gap times T_1.
    """
    above = np.logaddexp.accumulate((chances + log_gaps)[:, ::-1], axis=1)[:, ::-1]
    above = np.hstack([above[:, 1:], np.full((chances.shape[0], 1), -np.inf)])
    return np.asarray(above <= np.logaddexp.accumulate(scaled + log_gaps, axis=1))


def _sum_of(terms: FloatArray, which: NDArray[np.bool_]) -> FloatArray:
    """log of the sum of some terms of every row."""
    return log_sum(np.where(which, terms, -np.inf), axis=1)


def _from(terms: FloatArray) -> FloatArray:
    """log of the sums from c = 1, 2, ..., n on, raised by the margin."""
    return as_floats(np.logaddexp.accumulate(terms[:, ::-1], axis=1)[:, -2::-1] + _MARGIN)


def _up_to(terms: FloatArray) -> FloatArray:
    """log of the sums before c = 1, 2, ..., n + 1."""
    return as_floats(np.logaddexp.accumulate(terms, axis=1))
