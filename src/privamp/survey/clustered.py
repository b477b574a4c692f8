"""Means and totals from clusters: a ratio of noisy sums, and a sampling error that is larger than its noise.

The mean is m + T/C: T the weighted sum of z = x - m (m the middle of the bounds, |z| <= h), C the weighted count. Its
sampling variance is (1-f) k^2/l S^2/N^2, l of k clusters drawn, f = l/k, S^2 the variance of the clusters' residual
sums E_c = sum (z_i - T/C). One record moves a square E_c^2 by up to twice the largest cluster, the public cap, so noise
for sum E_c^2 is far larger than the sum where clusters differ in size. Two releases instead, planned together:

1. T, C and the weighted sum of squares of records, which gives s^2, the variance between records.
2. sum of min(|E_c|, t)^2 over drawn clusters, t = 2 s n: a cluster of n records that are all alike passes t in one case
   of twenty. n is the cap where the noise allows it, else twice the average size. One record moves the sum by at most
   b (2 t - b), b = h + |T/C|. Where the noise of that would be more than half of what clusters of correlated records
   show: sum of |E_c| instead, not truncated, which a record moves by b only. Its noise is a part of S, not of S^2. The
   root mean square is taken as 1.25 times the mean distance, as for normal sums, or 2 times where clusters differ in
   size.

S^2 is then (2.) / (l-1). Where the cap is above twice the average size, the part of one cluster of the largest size is
added, cap^2 v / (k-1), because such a cluster may have been truncated, or not drawn at all; v is 2.5 times what the
squares of (2.) show of the variance between clusters' means, 1.3 times what the distances show, which are proportional
to sizes and not to their squares; at most s^2. S^2 is never more than cap s^2 N/k, which holds for every population
with these caps (Cauchy-Schwarz). To allow for noise, an estimated variance is raised by 0.6 of its standard deviation
(0.5 where nothing is truncated), and a sum of distances by 0.12 over its share of the budget, at most 0.6: this covers
95% of normal cluster sums of any variance (tests/survey/test_survey_cluster_raise.py). The interval uses Student's
quantile of l - 1 degrees of freedom and is clipped to the bounds. Where N is public, it replaces C in the sampling
error. A total where N is secret is T itself, measured from 0, and S^2 is that of the clusters' sums about their mean.
The design effect is that of the clusters drawn, as in R: without the part for a large cluster that was truncated or
missed, and from squares only.

Coverage and widths on schools, municipalities and MU284: benchmarks/cluster_surveys.py, docs/surveys.md.
"""

import math
from dataclasses import dataclass, field, replace
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from ..core.release import Release
from ..core.sample import Drawn
from ..mechanisms.fixed_point import Whole, in_grid_units
from ..numerics.log_domain import FloatArray
from .effects import Effect
from .exact import Lattice, Statistic, release_of, summed
from .frame import EVERYBODY
from .released import PaidSample, Source
from .units import SignalToNoise, Units

SPLIT = (0.58, 0.32, 0.10)  # of the first release: T, C and the squares of records
_MORE = 2.0  # shares of variance_share that the second release gets
_GUESS = 0.25  # correlation inside clusters, to choose where sums are truncated
_WIDE = 0.6  # an estimated variance is raised by this many standard deviations of its own noise
_QUIET = 0.5  # the same where nothing is truncated
_NEAR = 0.12  # the same for distances, over their share of the budget
_SHAPE = math.sqrt(0.5 * math.pi)  # root mean square over mean distance, for normal numbers
_UNEVEN = 2.0  # the same where clusters differ in size
_MISSED = 2.5  # factor on the variance between clusters' means as estimated from truncated squares
_FAR = 1.3  # the same for distances, which are not truncated


@dataclass(frozen=True, slots=True)
class Clusters:
    """l of k clusters of at most `cap` records, each of whose records is kept with probability r."""

    drawn: int  # l
    clusters: int  # k
    cap: int
    rate: float  # r
    which: NDArray[np.int64] = field(repr=False)  # (n,)

    @property
    def share(self) -> float:
        """f."""
        return self.drawn / self.clusters


def clusters_of(units: Units) -> Clusters | None:
    """The clusters of a design that draws every set of l of k equally often; None for any other."""
    by = units.by
    if by.cluster is None or by.shrink <= 0.0 or by.first <= 0.0 or (by.weight.size and np.ptp(by.weight) > 0.0):
        return None
    w = by.heaviest * by.rate  # k/l
    drawn = by.first / (w * w * by.shrink)
    missing = by.shrink * (drawn - 1.0)
    whole, clusters = round(drawn), round(drawn * w)
    is_simple = whole >= 2 and abs(drawn - whole) < 1e-6 * whole and abs(1.0 - missing - 1.0 / w) < 1e-9
    return Clusters(whole, clusters, by.cap, by.rate, by.cluster) if is_simple else None


def variance_part(share: float) -> float:
    """The share of the budget for the second release."""
    return min(_MORE * share, 0.9)


def distance_raise(part: float) -> float:
    """Standard deviations of its noise by which a sum of distances is raised, if `part` of the budget pays for it."""
    return min(_NEAR / part, _WIDE)


def noise_factor(noise: str, share: float = 0.2, away: float = 0.4) -> float:
    """The noise of a mean relative to spending the whole budget on T, if it is `away` h from the middle."""
    parts = [(1.0 - variance_part(share)) * part for part in SPLIT[:2]]
    one, other = (part if noise == "laplace" else math.sqrt(part) for part in parts)
    return math.hypot(1.0 / one, away / other)


@dataclass(frozen=True)
class ClusterQuestion:
    """A mean, or with `is_total` a total, of values within `low` and `high`."""

    values: FloatArray = field(repr=False)
    low: float
    high: float
    is_total: bool
    records: float | None  # N, where it is public


def estimate_clusters(
    source: PaidSample, units: Units, clusters: Clusters, asked: ClusterQuestion, snr: SignalToNoise, share: float
) -> Release:
    """Release both, and compute value, errors and interval."""
    return _Task(source, units, clusters, asked, snr, share).run()


class _Task:
    def __init__(
        self,
        source: PaidSample,
        units: Units,
        clusters: Clusters,
        asked: ClusterQuestion,
        snr: SignalToNoise,
        share: float,
    ) -> None:
        self.source, self.units, self.clusters, self.asked, self.snr = source, units, clusters, asked, snr
        is_ratio = not asked.is_total or asked.records is not None
        self.middle = 0.5 * (asked.low + asked.high) if is_ratio else 0.0
        self.is_ratio = is_ratio
        self.half = max(abs(asked.low - self.middle), abs(asked.high - self.middle))
        self.z = asked.values - self.middle
        w, part = units.by.heaviest, variance_part(share)
        self.part = part
        reach = (self.half * w, w, self.half**2 * w)
        asked_for = [
            Statistic(np.array([r]), r / self._allowed((1.0 - part) * p)) for r, p in zip(reach, SPLIT, strict=True)
        ]
        self.first = release_of(snr.noise, asked_for, snr.part(1.0 - part))
        self.second = release_of(snr.noise, [Statistic(np.ones(1), 1.0 / snr.part(part), is_sum=False)], snr.part(part))

    def _allowed(self, share: float) -> float:
        return self.snr.part(share)

    def run(self) -> Release:
        """Release, then estimate."""
        form = {"replaced": False, "within": False}
        plan = [made.mechanism((EVERYBODY,), **form) for made in (self.first, self.second)]
        self.source.plan(*plan)
        noisy = self.source.release(plan[0], lambda drawn: in_grid_units(self._sums(drawn)))
        total, count, squares = (float(answer[0]) for answer in self.first.answers(noisy))
        c, wide = self.clusters, [self.snr.sd * self.first.scale_of(k) for k in range(3)]
        count = max(count, self.units.by.heaviest)
        away = float(np.clip(total / count, -self.half, self.half)) if self.is_ratio else 0.0
        records = count if self.asked.records is None else self.asked.records
        s2 = max(squares / count - away**2, 0.0) + _WIDE * wide[2] / count
        s2 = float(np.clip(s2, 1e-4 * self.half**2, self.half**2))
        noise = self.snr.sd * self.second.scale
        cut = _Cut.of(self.half + abs(away), s2, records / c.clusters, c, noise, self.is_ratio)
        seen = float(
            self.second.answers(self.source.release(plan[1], lambda d: in_grid_units(self._cut(cut, away, d))))[0][0]
        )
        mean = 0.0 if self.is_ratio else max(total**2 - wide[0] ** 2, 0.0) / c.clusters**2 * c.drawn  # l mean^2
        spread = cut.spread(seen, noise, mean, c, self.part)
        variance = self._variance(spread, s2, records, cut)
        effect = Effect(squares, wide[2], total, count, self.units.by.heaviest, wide[0])
        part = (1.0 - c.share) * c.clusters**2 / c.drawn / (c.drawn - 1)
        again = (1.0 - c.rate) / c.rate * max(squares - total**2 / count, 0.0)
        of_squares = part * (seen * cut.per_square - mean) + again
        told = None if cut.is_distance else effect.of(of_squares, part * noise * cut.per_square)
        shown = {"design_effect": told}
        if not self.is_ratio:
            return self._source().release(total, math.sqrt(variance), wide[0], df=c.drawn - 1, details=shown)
        per = 1.0 / records if not self.asked.is_total else 1.0
        ends = (self.asked.low, self.asked.high)
        many = 1.0 if not self.asked.is_total else records
        return self._source().release(
            (self.middle + away) * many,
            math.sqrt(variance) * per,
            math.hypot(wide[0], away * wide[1]) / count * many,
            ends=(ends[0] * many, ends[1] * many),
            df=c.drawn - 1,
            details=shown,
        )

    def _source(self) -> Source:
        return Source(self.source.sample, self.snr.noise, "private estimate", self.source.design.natural)

    def _sums(self, drawn: Drawn) -> Whole:
        ones = np.ones_like(self.z)
        rows = (self.z, ones, self.z**2)
        return np.concatenate([self.units.total(self.first, k, row, drawn) for k, row in enumerate(rows)])

    def _cut(self, cut: "_Cut", away: float, drawn: Drawn) -> Whole:
        """The second release: whole numbers until the last division."""
        at = np.repeat(drawn.positions, drawn.counts)
        rows = np.clip(self.z[at] - away, -cut.farthest, cut.farthest)
        clusters = int(self.clusters.which.max(initial=0)) + 1
        sums = summed(self.clusters.which[at], cut.lattice.whole(rows), clusters).tolist()
        added = sum(map(abs, sums)) if cut.is_distance else sum(min(abs(one), cut.most) ** 2 for one in sums)
        return np.array([self.second.once(0, Fraction(added, cut.per_record))], dtype=np.int64)

    def _variance(self, spread: float, s2: float, records: float, cut: "_Cut") -> float:
        """The variance of the weighted sum of residuals."""
        c = self.clusters
        k, n, size = c.clusters, c.drawn, records / c.clusters
        again = (1.0 - c.rate) / c.rate * s2  # per record, of the second stage
        between = min(s2, cut.of_means(spread) / (n * size**2))
        tail = c.cap**2 * between / (k - 1) if c.cap > 2.0 * size else 0.0
        most = c.cap * size * s2 + size * again
        per_cluster = min(spread / (n - 1) + tail, most)
        return (1.0 - c.share) * k * k / n * per_cluster + k * size * again  # c.share of k/n N again


@dataclass(frozen=True, slots=True)
class _Cut:
    """What the second release sums over clusters, in whole multiples of a lattice."""

    farthest: float  # b
    size: float  # n
    lattice: Lattice
    most: int  # t
    moves: int  # b (2 t - b): effect of one record on a sum of truncated squares
    rate: float
    is_distance: bool  # |E|, not truncated, and not its square

    @classmethod
    def of(cls, farthest: float, s2: float, average: float, clusters: Clusters, noise: float, is_ratio: bool) -> "_Cut":
        """Where to truncate; `noise` is that of the second release, in units of one record's effect."""
        sd, cap = math.sqrt(s2), float(clusters.cap)
        noise_of_all = noise * farthest * (2.0 * cap * min(2.0 * sd, farthest) - farthest) / clusters.rate**2
        allowed = 0.5 * _GUESS * clusters.drawn * average**2 * s2
        is_quiet = noise_of_all <= allowed
        size = cap if is_quiet else min(cap, max(2.0 * average, 1.0))
        lattice = Lattice.of(np.array([farthest]), clusters.cap)
        most = max(int(min(2.0 * sd, farthest) * size * clusters.rate / float(lattice.unit[0])), lattice.most)
        moves = lattice.most * (2 * most - lattice.most)
        made = cls(farthest, size, lattice, most, moves, clusters.rate, False)
        return replace(made, is_distance=is_ratio and noise * made.per_square > allowed)

    @property
    def per_record(self) -> int:
        """The largest effect of one record on the released sum: b, or b (2 t - b)."""
        return self.lattice.most if self.is_distance else self.moves

    @property
    def per_square(self) -> float:
        """The value of one unit of a released sum of squares."""
        return self.moves * (float(self.lattice.unit[0]) / self.rate) ** 2

    def of_means(self, spread: float) -> float:
        """The part of a sum of squares that is taken for clusters of the average size whose means vary as they do."""
        return _FAR * (_SHAPE / _UNEVEN) ** 2 * spread if self.is_distance else _MISSED * spread

    def spread(self, seen: float, noise: float, mean: float, clusters: Clusters, part: float) -> float:
        """The sum of squares, raised by a part of the standard deviation of its noise."""
        if self.is_distance:
            total = (max(seen, 0.0) + distance_raise(part) * noise) * self.farthest / self.rate
            shape = _SHAPE if self.size >= clusters.cap else _UNEVEN
            return (shape * total) ** 2 / clusters.drawn
        raised = _WIDE if self.size < clusters.cap else _QUIET
        return max(seen * self.per_square - mean, 0.0) + raised * noise * self.per_square
