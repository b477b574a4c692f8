"""A statistical attack: two worlds, one score, and the epsilon that the scores demonstrate.

A world is run many times with the changed record and many times without it. On the first half of the runs the score
is learned (where it is not given) and one event is chosen, "the score is at least t" or "at most t", in one of the
two directions. On the second half that one event is counted, and Clopper & Pearson's exact bounds give

    epsilon >= log((p_low - delta) / q_high)        with probability at least `confidence`,

because (epsilon, delta)-DP means p <= e^epsilon q + delta for every event. The halves are independent, so no data are
used twice. A finding above the claim refutes the claim; one below proves nothing.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..errors import InvalidInput
from ..numerics.log_domain import FloatArray
from ..validation import in_range, positive, whole

Score = Callable[[FloatArray], FloatArray]
_EVENTS = 400  # thresholds tried on the first half, in each direction
_FEWEST = 200  # runs of each world


@dataclass(frozen=True, slots=True)
class Event:
    """What the attacker looks for: the score at least (or at most) `threshold`."""

    threshold: float
    is_above: bool

    def count(self, scores: FloatArray) -> int:
        """How often it happened."""
        return int(np.count_nonzero(scores >= self.threshold if self.is_above else scores <= self.threshold))


@dataclass(frozen=True, slots=True)
class Finding:
    """The epsilon that the attack demonstrates, and the claimed one."""

    name: str
    claimed: float  # epsilon at delta
    shown: float  # epsilon at delta, true with probability `confidence`; never below 0
    delta: float
    confidence: float
    trials: int  # runs of each world
    false_alarms: FloatArray  # the attacker's trade-off curve on the second half
    misses: FloatArray

    @property
    def refuted(self) -> bool:
        """Whether the claim is false, at the stated confidence."""
        return self.shown > self.claimed

    @property
    def verdict(self) -> str:
        """Either "REFUTED" or "not refuted"."""
        return "REFUTED" if self.refuted else "not refuted"


def attacked(
    name: str,
    with_record: NDArray[Any],
    without: NDArray[Any],
    claimed: float,
    *,
    delta: float = 0.0,
    score: Score | None = None,
    confidence: float = 0.95,
) -> Finding:
    """The finding of one attack on released values, one row per run; `score=None` learns one.

    >>> from privamp.testing import seeded_stream
    >>> noise = seeded_stream(1).laplaces((2, 4000))
    >>> attacked("Laplace, shift 3", 3.0 + noise[0], noise[1], claimed=1.0).verdict
    'REFUTED'
    """
    in_range(0, 1, delta=delta)
    in_range(0.5, 0.999999, confidence=confidence)
    trials = min(len(with_record), len(without))
    whole(_FEWEST, trials=trials)
    p, q = _rows(with_record, trials), _rows(without, trials)
    half = trials // 2
    rate = score or learned_score(p[:half], q[:half])
    p_scores, q_scores = np.asarray(rate(p)).reshape(trials), np.asarray(rate(q)).reshape(trials)
    event, first, second = _best_event(p_scores[:half], q_scores[:half], delta, confidence)
    left, right = (p_scores[half:], q_scores[half:]) if first == "p" else (q_scores[half:], p_scores[half:])
    shown = shown_epsilon(event.count(left), event.count(right), trials - half, delta, confidence)
    false_alarms, misses = tradeoff(p_scores[half:], q_scores[half:])
    del second
    return Finding(name, claimed, max(0.0, shown), delta, confidence, trials, false_alarms, misses)


def shown_epsilon(hits: Any, false_hits: Any, trials: int, delta: float, confidence: float) -> Any:
    """log((p_low - delta)/q_high) by Clopper & Pearson, each side at half the error; -inf where p_low <= delta."""
    from scipy.special import betaincinv

    k, j, n = np.asarray(hits, float), np.asarray(false_hits, float), float(trials)
    error = 0.5 * (1.0 - confidence)
    with np.errstate(divide="ignore", invalid="ignore"):
        p_low = np.where(k > 0, betaincinv(np.maximum(k, 1e-9), n - k + 1.0, error), 0.0)
        q_high = np.where(j < n, betaincinv(j + 1.0, np.maximum(n - j, 1e-9), 1.0 - error), 1.0)
        found = np.where(p_low > delta, np.log(np.maximum(p_low - delta, 0.0) / q_high), -np.inf)
    return float(found) if found.ndim == 0 else found


def tradeoff(p_scores: FloatArray, q_scores: FloatArray) -> tuple[FloatArray, FloatArray]:
    """False alarms and misses of "the score is at least t", for every t: the attacker's trade-off curve."""
    cuts = np.unique(np.concatenate([p_scores, q_scores]))
    cuts = cuts[np.linspace(0, cuts.size - 1, min(cuts.size, 2000)).astype(int)]
    below_p = np.searchsorted(np.sort(p_scores), cuts, side="left") / p_scores.size
    below_q = np.searchsorted(np.sort(q_scores), cuts, side="left") / q_scores.size
    return np.append(1.0 - below_q, 0.0), np.append(below_p, 1.0)


def _best_event(p: FloatArray, q: FloatArray, delta: float, confidence: float) -> tuple[Event, str, str]:
    """The event that demonstrates most on the first half, and in which direction."""
    p, q = np.sort(p), np.sort(q)
    pooled = np.unique(np.concatenate([p, q]))
    cuts = pooled[np.unique(np.linspace(0, pooled.size - 1, _EVENTS).astype(int))]
    best: tuple[float, Event, str, str] = (-math.inf, Event(math.inf, True), "p", "q")
    for is_above in (True, False):
        if is_above:
            counts = [s.size - np.searchsorted(s, cuts, side="left") for s in (p, q)]
        else:
            counts = [np.searchsorted(s, cuts, side="right") for s in (p, q)]
        for first, second in (("p", "q"), ("q", "p")):
            hits, false_hits = counts if first == "p" else counts[::-1]
            found = shown_epsilon(hits, false_hits, p.size, delta, confidence)
            at = int(np.argmax(found))
            if found[at] > best[0]:
                best = (float(found[at]), Event(float(cuts[at]), is_above), first, second)
    return best[1], best[2], best[3]


def _rows(values: NDArray[Any], trials: int) -> FloatArray:
    rows = np.asarray(values, dtype=np.float64)[:trials].reshape(trials, -1)
    if not np.all(np.isfinite(rows)):
        raise InvalidInput("released values must be finite to be attacked, got some nan or infinite ones")
    return rows


def low_bit(values: FloatArray) -> FloatArray:
    """The exponent of the lowest set bit: what textbook noise in binary floating point leaks."""
    mantissa, exponent = np.frexp(values)
    whole_mantissa = np.abs(np.ldexp(mantissa, 53)).astype(np.int64)
    lowest = whole_mantissa & -whole_mantissa
    return np.where(values == 0.0, 64.0, exponent - 53.0 + np.log2(np.maximum(lowest, 1)))


def learned_score(p: FloatArray, q: FloatArray) -> Score:
    """The best single feature, or a linear combination of all: whichever separates the first half better.

    Features: every released number, its square, and its lowest bit.
    """

    def features(rows: FloatArray) -> FloatArray:
        return np.hstack([rows, rows * rows, low_bit(rows)])

    at_p, at_q = features(p), features(q)
    both = np.vstack([at_p, at_q])
    middle, spread = both.mean(axis=0), both.std(axis=0)
    spread = np.where(spread > 0.0, spread, 1.0)
    at_p, at_q = (at_p - middle) / spread, (at_q - middle) / spread
    within = 0.5 * (np.cov(at_p.T) + np.cov(at_q.T)).reshape(at_p.shape[1], -1)
    fisher = np.linalg.solve(within + 1e-3 * np.eye(len(within)), at_p.mean(axis=0) - at_q.mean(axis=0))
    candidates = [*np.eye(at_p.shape[1]), fisher]
    best = max(candidates, key=lambda w: _separation(at_p @ w, at_q @ w))
    return lambda rows: ((features(rows) - middle) / spread) @ best


def _separation(p: FloatArray, q: FloatArray) -> float:
    """The largest demonstrated epsilon at a middling confidence, on the data that chose it."""
    event, first, _ = _best_event(p, q, 0.0, 0.9)
    left, right = (p, q) if first == "p" else (q, p)
    return float(shown_epsilon(event.count(left), event.count(right), p.size, 0.0, 0.9))


def check_attack(trials: int, confidence: float, claimed: float) -> None:
    """Check the parameters of an audit."""
    whole(2 * _FEWEST, 10**8, trials=trials)
    in_range(0.5, 0.999999, confidence=confidence)
    positive(claimed=claimed)
