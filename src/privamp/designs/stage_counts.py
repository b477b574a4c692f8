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
from ..numerics.roots import bisected

_MOST = 4_000_000  # numbers of copies before and after a stage, together
_MARGIN = 1e-11  # relative: probabilities and sums are computed to well within it


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
        one = draws * np.array([float(log_mix(j / entries, float(log_f[1]))) for j in range(most + 1)])
        found = np.minimum(found, one)
    return as_floats(np.maximum.accumulate(np.where(np.arange(most + 1) == 0, 0.0, found * (1.0 + _MARGIN) + _MARGIN)))


def _root(log_p: FloatArray, log_f: FloatArray) -> FloatArray:
    """The smallest log R for every row of probabilities; the largest F if a changed entry is always picked."""
    largest = np.max(np.where(log_p > -np.inf, log_f, 0.0), axis=1)

    def holds(log_r: FloatArray) -> NDArray[np.bool_]:
        r = log_r[:, None]
        above = np.where(log_f > r, log_p + log_diff(np.maximum(log_f, r), r), -np.inf)
        scale = np.where(np.arange(log_f.size) == 0, 0.0, log_f)
        below = np.where(log_f < r, log_p - scale + log_diff(r, np.minimum(log_f, r)), -np.inf)
        return np.asarray(log_sum(above, axis=1) + _MARGIN <= log_sum(below, axis=1))

    def is_near(low: FloatArray, high: FloatArray) -> bool:
        return bool(np.all(high - low < 1e-13 * (1.0 + high)))

    _, high = bisected(holds, np.zeros(largest.size), largest, until=is_near)
    return np.where(log_p[:, 0] > -np.inf, high, largest)
