"""How many heads the others have, over a public range of their number: mixtures of curves, the largest of them all.

K ~ Binomial(n, p) heads among n others, n anywhere between two public numbers. Given K the release has a curve C_K:
C_0 below the cap B, and from B on curves that fall with K. The curve for n is E C_K, and it is not monotone in n.
For all n in a block from n_1 to n_2 couple the heads so that K_{n_1} <= K_n <= K_{n_2}:

    E C_{K_n} <= Pr[K_{n_2} < B] C_0 + sum_{K>=B} Pr[K_{n_1} = K] C_K + Pr[K_{n_1} < B <= K_{n_2}] max(C_0, C_B).

With one n in a block this is E C_K itself. Around B/p blocks are narrow, elsewhere wide; the last one may be endless.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property, lru_cache

import numpy as np

from ..core.profile import Curve
from ..numerics.count_laws import binomial_above, binomial_at_most, binomial_tails
from ..numerics.log_domain import FloatArray, as_floats

_UP, _OFF = 1.0 + 1e-10, 1e-10  # chances and tails are computed to well within these
_DEVIATIONS = 9.0  # around B/p, where the number of others matters
_SHARE = 0.01  # of a standard deviation of K: what a narrow block may move its mean
_MOST_BLOCKS = 2048
_SPARSE, _DENSE = 24, 12  # counts over the whole range, and per deviation
_PIECE = 4096  # epsilons worked on together


@dataclass(frozen=True)
class Heads:
    """Numbers K >= B that stand for the counts up to the next one, and the chances of each block; when asked for."""

    rate: float
    most: int
    low: int
    high: int | None

    @cached_property
    def _ends(self) -> list[tuple[int, int | None]]:
        return _blocks(self.rate, self.most, self.low, self.high)

    @cached_property
    def counts(self) -> FloatArray:
        """K, ascending from B; shape (C,)."""
        return _counts(self.rate, self.most, [first for first, _ in self._ends])

    @cached_property
    def chances(self) -> FloatArray:
        """Below the cap, on either side of it, and at each count; shape (blocks, C + 2)."""
        first = np.array([n for n, _ in self._ends], dtype=np.float64)[:, None]
        final = np.array([np.inf if n is None else float(n) for _, n in self._ends])[:, None]
        around = _around_the_cap(self.rate, self.most, first, final)
        return np.minimum(np.hstack([*around, _between(self.rate, self.counts, first)]) * _UP, 1.0)


@lru_cache(maxsize=64)
def heads(rate: float, most: int, low: int, high: int | None) -> Heads | None:
    """The blocks of all numbers of others from `low` to `high` (None: any); None where the cap is never reached."""
    return None if rate == 0.0 or (high is not None and high < most) else Heads(rate, most, low, high)


def _around_the_cap(rate: float, most: int, first: FloatArray, final: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Pr[K_final < B], and Pr[K_first < B <= K_final]."""
    before = binomial_at_most(most - 1, first, rate)
    after = np.where(np.isinf(final), 0.0, binomial_at_most(most - 1, np.where(np.isinf(final), first, final), rate))
    return after, np.where(final == first, 0.0, np.maximum(before - after, 0.0) + _OFF * before)


def _between(rate: float, counts: FloatArray, first: FloatArray) -> FloatArray:
    """Pr[a <= K < b] between neighbouring counts, and from the last one on: the curves fall, so a stands for all.

    A difference of upper or of lower tails, whichever are smaller, and what rounding may have taken from it.
    """
    below, above = binomial_tails(counts - 1, first, rate)
    upper, lower = above[:, :-1], below[:, 1:]
    differences = np.where(upper < lower, above[:, :-1] - above[:, 1:], below[:, 1:] - below[:, :-1])
    inside = np.maximum(differences, 0.0) + _OFF * np.minimum(upper, lower)
    return np.hstack([inside, above[:, -1:]])


def _counts(rate: float, most: int, numbers: list[int]) -> FloatArray:
    """Counts from the cap on, close to each other where the smallest and the largest number put them."""
    last = max(most, min(numbers[-1], math.ceil(most + _reach(rate, numbers[-1]))))
    found = [np.linspace(most, last, _SPARSE)]
    for middle in {max(rate * numbers[0], most), most}:
        deviation = math.sqrt(middle * (1.0 - rate)) + 1.0
        found.append(middle + np.arange(-6.0, 6.0, 1.0 / _DENSE) * deviation)
    every = np.floor(np.concatenate(found))
    return np.unique(every[(every >= most) & (every <= last)])


def _reach(rate: float, number: int) -> float:
    """So far beyond the cap that what is farther is a 1e-30th of everything."""
    return max(rate * number, 1.0) + 12.0 * math.sqrt(rate * number + 1.0) + 24.0


def _blocks(rate: float, most: int, low: int, high: int | None) -> list[tuple[int, int | None]]:
    """First and last n of each block; they cover the range."""
    middle = most / rate
    spread = _DEVIATIONS * math.sqrt(most * max(1.0 - rate, 0.0)) / rate + 2.0
    near, far = max(math.floor(middle - spread), low), math.ceil(middle + spread)
    top = far if high is None else min(far, high)
    blocks: list[tuple[int, int | None]] = []
    if near > low:
        blocks.append((low, min(near - 1, high) if high is not None else near - 1))
    width = max(1, math.floor(_SHARE * math.sqrt(most * (1.0 - rate)) / rate), -(-(top - near) // _MOST_BLOCKS))
    blocks += [(n, min(n + width - 1, top)) for n in range(near, top + 1, width)]
    n = max(far, low - 1) + 1
    while high is None or n <= high:
        final = 2 * n
        if high is None and final > 64 * far + low:
            return [*blocks, (n, None)]
        blocks.append((n, final if high is None else min(final, high)))
        n = final + 1
    return blocks


Falling = Callable[[FloatArray, FloatArray], FloatArray]


def worst_mixture(found: Heads | None, below: Curve, above: Falling, end: float) -> Curve:
    """The largest mixture over all blocks; `above(counts, epsilon)` are the curves C_K, shape (counts, epsilons)."""
    if found is None:
        return below

    def piece(epsilon: FloatArray) -> FloatArray:
        rows = above(found.counts, epsilon)
        first = below(epsilon)
        rows = np.concatenate([first[None], np.maximum(first, rows[0])[None], rows])
        top = np.max(rows, axis=0)
        safe = np.where(np.isfinite(top), top, 0.0)
        with np.errstate(divide="ignore"):
            total = safe + np.log(np.max(found.chances @ np.exp(rows - safe), axis=0))
        return as_floats(np.where(np.isfinite(top), total, top))

    def log_delta(epsilon: FloatArray) -> FloatArray:
        flat = np.ravel(epsilon)
        pieces = [piece(flat[i : i + _PIECE]) for i in range(0, flat.size, _PIECE)]
        return np.concatenate(pieces or [flat]).reshape(np.shape(epsilon))

    return Curve(log_delta, max(below.largest_loss, end))


def expected_kept(rate: float, most: int, records: int) -> float:
    """E min(Binomial(records, rate), most)."""
    if most >= records:
        return records * rate
    below = records * rate * float(binomial_at_most(most - 2, records - 1, rate)) if most >= 2 else 0.0
    return below + most * float(binomial_above(most - 1, records, rate))
