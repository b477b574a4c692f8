"""What happens on the sample: its overall mean, then Lloyd steps, every answer with noise.

The first step has more cells than centres. Its noisy cells are merged into the centres (merging.py), which
the following steps move. In columns that are not worth their noise all centres are at the overall mean.
"""

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from ..chance.keys import Key
from ..chance.stream import Stream
from ..core.sample import Bounded, Drawn, Sample
from ..numerics.log_domain import FloatArray
from .ball import Ball, taken_inside
from .centres import NoiseOfStep, OverallMean, cells_of
from .compiled import is_worth_compiling
from .fit_plan import FitPlan
from .lloyd import sums_and_counts
from .merging import merged
from .starts import into_ball, start
from .threads import ThreadPool

Progress = Callable[[int, int, FloatArray], None]
_NARROWEST = 0.1  # of a column's mean square, for the spread of the first cells about the mean


class SampleSums(Protocol):
    """The part of a fit that sees the sample, wherever its rows are."""

    def total(self, drawn: Drawn) -> tuple[FloatArray, FloatArray]:
        """Weighted sum and count of all records, in all columns."""

    def around(self, centres: FloatArray, drawn: Drawn) -> tuple[FloatArray, FloatArray]:
        """Weighted sums and counts around the centres, in the columns in use."""


MakeSums = Callable[[NDArray[np.intp], int, int], SampleSums]  # columns in use, bits of a row, bits of a sum


class Rows:
    """Sums of rows in memory. Rows are gathered once; nothing here is kept."""

    def __init__(
        self,
        ball: Ball,
        X: NDArray[Any],
        lengths: FloatArray,
        pool: ThreadPool,
        columns: NDArray[np.intp],
        row_bits: int,
        sum_bits: int,
    ) -> None:
        self._ball, self._columns, self._X, self._lengths, self._crew = ball, columns, X, lengths, pool
        self._row_bits, self._sum_bits = row_bits, sum_bits
        self._kept: NDArray[np.float32] | None = None

    def total(self, drawn: Drawn) -> tuple[FloatArray, FloatArray]:
        """Weighted sum and count of all records, in all columns."""
        every = np.arange(self._X.shape[1])
        rows = self._taken(drawn, every)
        self._kept = rows if self._columns.size == every.size else np.ascontiguousarray(rows[:, self._columns])
        return self._added(rows, drawn, np.zeros((1, every.size)))

    def around(self, centres: FloatArray, drawn: Drawn) -> tuple[FloatArray, FloatArray]:
        """Weighted sums and counts around the centres, in the columns in use."""
        if self._kept is None:
            self._kept = self._taken(drawn, self._columns)
        return self._added(self._kept, drawn, centres)

    def _taken(self, drawn: Drawn, columns: NDArray[np.intp]) -> NDArray[np.float32]:
        return taken_inside(self._ball, self._X, drawn.positions, columns, self._lengths, self._crew, self._row_bits)

    def _added(self, rows: NDArray[np.float32], drawn: Drawn, centres: FloatArray) -> tuple[FloatArray, FloatArray]:
        weights, fast = drawn.counts * drawn.weights, is_worth_compiling(self._X)
        return sums_and_counts(rows, weights, centres, self._crew, bits=self._sum_bits, fast=fast)


@dataclass(frozen=True, slots=True)
class Found:
    """The released answers of a sample, in the units of the data."""

    centres: FloatArray = field(repr=False)
    counts: FloatArray = field(repr=False)
    noise_error: FloatArray = field(repr=False)  # of a coordinate of every centre


@dataclass(frozen=True, slots=True)
class Steps:
    """The plan, run on a sample; it sees released numbers only."""

    ball: Ball
    plan: FitPlan
    per_norm: float
    clusters: int
    init: str | FloatArray = field(repr=False)
    key: Key = field(repr=False)

    def run(self, sample: Sample, rows: SampleSums, progress: Progress | None) -> Found:
        """The overall mean, and the steps."""
        plan, d = self.plan, self.ball.center.size
        first, *steps = plan.mechanisms(self.per_norm, d)
        sums, counts = sample.release(first, Bounded(rows.total))
        variance = plan.split.column_variance(plan.split.scale(self.per_norm, plan.mean_share), d)
        mean = OverallMean.of(sums[0], float(counts[0]), variance)
        if not steps:
            return self._at_mean(mean, float(counts[0]))
        noise, here = self._noise(), mean.of_columns(plan.columns)
        points = self._start(here)
        for number, step in enumerate(steps, 1):
            sums, counts = sample.release(step, Bounded(partial(rows.around, points)))
            here = here.joined(sums, counts, noise)
            cells = cells_of(sums, counts, here, noise)
            merging = np.arange(len(points))
            if len(points) > self.clusters:
                points, merging = merged(cells, self.clusters, _stream(self.key, "merge"))
            else:
                points = np.where(cells.are_there[:, None], cells.points, points if number < len(steps) else here.point)
            if progress is not None:
                progress(number, len(steps), self._back(points, mean))
        return self._found(points, mean, merging, counts, noise)

    def _noise(self) -> NoiseOfStep:
        split = self.plan.split
        scale = split.scale(self.per_norm, self.plan.step_share)
        return NoiseOfStep(split.column_variance(scale), split.count_error(scale))

    def _start(self, mean: OverallMean) -> FloatArray:
        """The cells of the first step, in the unit ball."""
        columns, ball = self.plan.columns, self.ball
        if not isinstance(self.init, str):
            return into_ball((self.init[:, columns] - ball.center[columns]) / ball.radius)
        squares = self.plan.squares
        variances = np.maximum(squares - mean.point**2, _NARROWEST * squares)
        seed = int(_stream(self.key, "start").words(1)[0])
        return start(self.init, self.plan.cells, mean.point, variances, seed)

    def _back(self, points: FloatArray, mean: OverallMean) -> FloatArray:
        """In the units of the data; columns that are not in use stay at the overall mean."""
        every = np.tile(mean.point, (len(points), 1))
        every[:, self.plan.columns] = points
        return self.ball.back(every)

    def _at_mean(self, mean: OverallMean, count: float) -> Found:
        """All centres are one; records go to the first of equal ones."""
        counts = np.zeros(self.clusters)
        counts[0] = count
        error = np.full(self.clusters, self.ball.radius * np.sqrt(mean.variance))
        return Found(self.ball.back(np.tile(mean.point, (self.clusters, 1))), counts, error)

    def _found(
        self, points: FloatArray, mean: OverallMean, merging: NDArray[np.intp], counts: FloatArray, noise: NoiseOfStep
    ) -> Found:
        together: FloatArray = np.bincount(merging, weights=counts, minlength=self.clusters).astype(np.float64)
        parts = np.bincount(merging, minlength=self.clusters)
        error = np.sqrt(noise.column_variance * np.maximum(parts, 1)) / np.maximum(together, 1.0)
        return Found(self._back(points, mean), together, self.ball.radius * error)


def _stream(key: Key, purpose: str) -> Stream:
    return Stream(key.subkey(purpose)) if key.is_test else Stream.from_os()
