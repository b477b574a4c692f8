"""A distribution function from a tree of noisy counts, and its quantiles with intervals that cover.

Every node of the tree has its noisy count, and its children's counts add up to it: the least-squares estimate that
agrees with all of them (Hay et al. 2010) is found in one pass up and one down. Its errors are sums of independent
contrasts. With w_i the share of child i that lies below an edge, the number of records below has the variance

    sum over the nodes on the way of  v (sum w_i^2 - (sum w_i)^2 / b),   and at the top   v sum w_i^2,

v that of a child's own estimate, b the number of branches. The interval of a quantile goes from the last edge that has
too few records below it (fewer than p N, by a test) to the first that has too many. Each edge is tested with the errors
that the distribution function has there, so no slope and no density is estimated. A test of one edge alone would hold
its level; that some edge between the quantile and the end is refused is likelier, and is made up for by taking the
nearest estimates that do not fall (isotonic regression), whose errors are smaller than those in the tests.
`benchmarks/query_coverage.py` shows the sum of both. If there may be no records at all, the interval is the whole range
of the bounds.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from scipy.optimize import isotonic_regression
from scipy.special import ndtr, ndtri

from ..numerics.log_domain import FloatArray
from ..numerics.roots import bisected
from .answers import Answer
from .drawn_numbers import NORMAL, panjer
from .public_facts import PublicFacts

_ONE_ERROR = float(ndtr(1.0) - ndtr(-1.0))  # the level of an interval of one standard error to each side
_NOBODY = 0.95  # the level of the test whether there are records
_TRIED = 9  # noise errors at which limits are found; between them they are straight


@dataclass(frozen=True, slots=True)
class Tree:
    """Least-squares estimates of the numbers of records below every edge; variances in units of a node's noise."""

    below: FloatArray
    rising: FloatArray  # the nearest that do not fall
    deeper: FloatArray  # variances from the levels below the first
    shares: FloatArray  # how much of the first level lies below: sum w
    squares: FloatArray  # sum w^2
    first: float  # the variance of a node of the first level
    branches: int
    is_known: bool  # whether the number of records is public, and all counts add up to it

    @classmethod
    def of(cls, levels: Sequence[FloatArray], records: float | None = None) -> "Tree":
        """From the noisy counts of every level; `records` is the public number they must add up to."""
        b = len(levels[0])
        own, variances = [levels[-1]], _own_variances(b, len(levels))
        for level in reversed(range(len(levels) - 1)):  # up: a count and the sum of its children's
            under = own[0].reshape(-1, b).sum(axis=1) / (b * variances[level + 1])
            own.insert(0, variances[level] * (levels[level] + under))
        found = own[0] if records is None else own[0] + (records - np.sum(own[0])) / b
        for counts in own[1:]:  # down: what is missing is shared
            families = counts.reshape(-1, b)
            found = (families + ((found - families.sum(axis=1)) / b)[:, None]).ravel()
        below = np.concatenate([[0.0], np.cumsum(found)])
        rising = np.clip(np.asarray(isotonic_regression(below).x), 0.0, max(float(below[-1]), 0.0))
        return cls(below, rising, *_variances(b, len(levels)), b, records is not None)

    @property
    def records(self) -> float:
        """All of them."""
        return float(self.below[-1])

    def variance(self, p: float) -> FloatArray:
        """Of the number below each edge, minus the share p of all."""
        if self.is_known:
            top = self.squares - self.shares**2 / self.branches
        else:
            top = self.squares - 2.0 * p * self.shares + self.branches * p * p
        return self.deeper + self.first * top


@lru_cache(maxsize=8)
def _variances(b: int, depth: int) -> tuple[FloatArray, FloatArray, FloatArray, float]:
    """Of the contrasts below the first level, sum w and sum w^2 of the first, and the variance of a node there."""
    variances = _own_variances(b, depth)
    edges = np.arange(b**depth + 1, dtype=np.float64)
    deeper = np.zeros(len(edges))
    sums = squares = edges
    for level in range(len(variances)):
        width = float(b ** (len(variances) - 1 - level))
        before, inside = np.divmod(edges / width, 1.0)
        sums, squares = before + inside, before + inside**2
        if level:
            whole = b * np.floor(edges / (width * b))  # families that lie below as a whole have no contrast
            sums, squares = sums - whole, squares - whole
            deeper += variances[level] * (squares - sums**2 / b)
        else:
            first = sums, squares
    return deeper, first[0], first[1], variances[0]


def _own_variances(b: int, depth: int) -> list[float]:
    """Of a node's count and all under it, level by level."""
    found = [1.0]
    while len(found) < depth:
        found.insert(0, 1.0 / (1.0 + 1.0 / (b * found[0])))
    return found


@dataclass(frozen=True, slots=True)
class Quantile:
    """The law of one quantile: from the last edge with too few records below it to the first with too many."""

    tree: Tree
    edges: FloatArray
    probability: float
    told: PublicFacts

    @property
    def answer(self) -> Answer:
        """The quantile; its errors are those of an interval of one standard error to each side."""
        noise, sampling = float(np.sqrt(np.median(self._noise()))), math.sqrt(self._sampling())
        low, high = self._within(*self._normal_limits(_ONE_ERROR))
        each = 0.5 * (high - low) / (math.hypot(noise, sampling) or 1.0)
        return Answer(self.value, noise * each, sampling * each, self)

    @property
    def value(self) -> float:
        """Where the distribution function reaches the probability; the middle of the bounds where nothing is known."""
        if not self._has_records(_NOBODY):
            return 0.5 * float(self.edges[0]) + 0.5 * float(self.edges[-1])
        return float(np.interp(self.probability * self.tree.records, self.tree.rising, self.edges))

    def interval(self, level: float) -> tuple[float, float]:
        """It ends at edges of the grid, outward; the whole of the bounds where nothing is known."""
        if not self._has_records(level):
            return float(self.edges[0]), float(self.edges[-1])
        return self._within(*self._limits(level))

    def _within(self, least: FloatArray, most: FloatArray) -> tuple[float, float]:
        """Between the last edge whose number below, minus the share of all, is too small, and the first too large."""
        if not self._has_records(_NOBODY):
            return float(self.edges[0]), float(self.edges[-1])
        off = self.tree.rising - self.probability * self.tree.records
        few, many = np.flatnonzero(off < least), np.flatnonzero(off > most)
        return float(self.edges[few[-1] if few.size else 0]), float(self.edges[many[0] if many.size else -1])

    def standard_error(self) -> float:
        """Noise and sampling together."""
        return math.hypot(self.answer.noise, self.answer.sampling)

    def _has_records(self, level: float) -> bool:
        if self.tree.is_known:
            return self.tree.records > 0
        error = self.told.noise * math.sqrt(self.tree.branches * self.tree.first)
        return self.tree.records > float(ndtri(0.5 + 0.5 * max(level, _NOBODY))) * error

    def _noise(self) -> FloatArray:
        return self.told.noise**2 * self.tree.variance(self.probability)

    def _sampling(self) -> float:
        p = self.probability
        return self.told.spread * max(self.tree.records, 0.0) * p * (1.0 - p)

    def _normal_limits(self, level: float) -> tuple[FloatArray, FloatArray]:
        """Many noisy counts together are nearly normal."""
        half = float(ndtri(0.5 + 0.5 * level)) * np.sqrt(self._noise() + self._sampling())
        return -half, half

    def _limits(self, level: float) -> tuple[FloatArray, FloatArray]:
        """Between these the number below a quantile, minus its share of all, lies with this chance, at every edge."""
        noise, sampling = np.sqrt(self._noise()), self._sampling()
        if sampling == 0.0 or sampling > NORMAL * self.told.weight**2:
            return self._normal_limits(level)
        rare, w = min(self.probability, 1.0 - self.probability) * self.tree.records, self.told.weight
        numbers, chances = panjer(rare / w, sampling / w**2)
        tried = np.linspace(float(noise.min()), float(noise.max()), _TRIED)
        ends = [_quantile(w * numbers - rare, chances, tried, tail) for tail in (0.5 - 0.5 * level, 0.5 + 0.5 * level)]
        low, high = (np.interp(noise, tried, end) for end in ends)
        return (low, high) if self.probability <= 0.5 else (-high, -low)


def _quantile(at: FloatArray, chances: FloatArray, noise: FloatArray, p: float) -> FloatArray:
    """Of a number from this list plus a normal error, for every size of it."""
    wide = 9.0 * np.maximum(noise, 1e-12)

    def is_above(x: FloatArray) -> np.ndarray[tuple[int, ...], np.dtype[np.bool_]]:
        return np.asarray(ndtr((x[:, None] - at) / np.maximum(noise, 1e-12)[:, None]) @ chances >= p)

    close = 1e-4 * wide
    return bisected(is_above, at[0] - wide, at[-1] + wide, until=lambda a, b: bool(np.all(b - a <= close)))[1]
