"""Losses far from 0, computed on a coarser grid.

Most of a round's loss is near 0, where a fine grid is needed; its far losses have little weight and make every
transform long. E[W(u + loss)] over the far losses is convex in e^-u, so a coarse grid is enough for them.

From above: a far loss is split between the two adjacent coarse points, keeping both of its probabilities, which
dominates it. At coarse u the sum is exact, and between two of them the chord in e^-u is an upper bound.
From below: far losses are coarse from the start (`loss_laws`), and W is lowered at the coarse points until its chords
lie below it at every point of the grid; then the chord of the sums is the sum of the chords.
Proof: docs/designs/rounds.md, On two grids.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from ..errors import InvalidInput
from ..numerics.log_domain import FloatArray, as_floats
from .shifted_sums import ShiftedSums

STRIDE = 8  # points of the fine grid per point of the coarse one
_FAR = 2e-4  # largest total weight of far losses


@dataclass(frozen=True, slots=True)
class Step:
    """One pair's law on the grid: mass[i] at loss first + i; `above` is the mass beyond it, with infinite losses."""

    first: int
    mass: FloatArray
    above: float


def nearness(steps: Sequence[Step], points: int) -> int | None:
    """The largest loss that counts as near 0, in grid points, for W at so many points; None if one grid is as fast."""
    from scipy import fft

    least = STRIDE * math.ceil(max(_where_far(step) for step in steps) / STRIDE)
    if not 0 < least <= points // 4:
        return None
    size = int(fft.next_fast_len(points + 2 * least, real=True))
    return STRIDE * ((size - points) // (2 * STRIDE))  # as many as the transform has room for


def _where_far(step: Step) -> int:
    """The first loss beyond which there is little weight."""
    at = np.abs(np.arange(step.first, step.first + step.mass.size))
    weights = np.bincount(at, step.mass)
    return int(np.flatnonzero(np.cumsum(weights[::-1])[::-1] > _FAR)[-1]) + 1


@dataclass(frozen=True)
class FarLosses:
    """The losses of some pairs beyond `near`, for W on a window of `points` points, a multiple of STRIDE plus one."""

    steps: Sequence[Step]
    near: int
    points: int
    interval: float
    upper: bool

    @cached_property
    def sums(self) -> ShiftedSums:
        """Put losses on the coarse grid; those that leave the window from every point are truncated to its length."""
        return ShiftedSums([self._coarse(step) for step in self.steps], (self.points - 1) // STRIDE + 1)

    def _coarse(self, step: Step) -> tuple[int, FloatArray]:
        """A law's far losses at coarse points: first index and masses."""
        at = np.arange(step.first, step.first + step.mass.size)
        is_far = (np.abs(at) > self.near) & (step.mass > 0.0)
        at, mass = at[is_far], step.mass[is_far]
        if at.size == 0:
            return 0, np.zeros(1)
        index, offset = np.divmod(at, STRIDE)
        if not self.upper and np.any(offset):
            raise InvalidInput("far losses of a lower bound must lie on the coarse grid; make their laws with near=")
        right = self._shares[offset] * mass
        found = np.zeros(int(index[-1] - index[0]) + 2)
        np.add.at(found, index - index[0], mass - right)
        np.add.at(found, index - index[0] + 1, right)
        return int(index[0]), found * (1.0 + 1e-15 if self.upper else 1.0 - 1e-15)

    @cached_property
    def _shares(self) -> FloatArray:
        """The right end's share of a point between two coarse ones, linear in e^-u."""
        return as_floats(np.expm1(-np.arange(STRIDE) * self.interval) / np.expm1(-STRIDE * self.interval))

    def padded(self, values: FloatArray, last: float, after: FloatArray) -> FloatArray:
        """W at coarse points: before the window, inside, and after it, where it is known at its points.

        `last`: what is known about its last point by the same rule as behind it.
        """
        inside, before = (values[::STRIDE], values[0]) if self.upper else (self._lowered(values, last), 0.0)
        return np.concatenate([np.full(self.sums.left, before), inside, after[: self.sums.right]])

    def _lowered(self, values: FloatArray, last: float) -> FloatArray:
        """W at coarse points, minus the excess of its chords; at the ends at most what is known outside."""
        knots, gap = values[::STRIDE], np.full(values.size // STRIDE, 1e-15)
        rise = np.diff(knots)
        for i in range(1, STRIDE):
            np.maximum(gap, knots[:-1] + self._shares[i] * rise - values[i::STRIDE] + 1e-15, out=gap)
        lowered = knots - np.maximum(np.append(gap, gap[-1]), np.append(gap[0], gap))
        lowered[0] = min(lowered[0], 0.0)
        lowered[-1] = min(lowered[-1], last)
        return as_floats(lowered)

    def add(self, sums: FloatArray, far: FloatArray) -> None:
        """Add the far sums, known at coarse points and on chords between them; shape (pairs, points)."""
        ends = np.stack([far[:, :-1], far[:, 1:]], axis=2)
        sums[:, :-1] += (ends @ self._weights).reshape(len(far), -1)
        sums[:, -1] += far[:, -1]

    @cached_property
    def _weights(self) -> FloatArray:
        """Weights of a cell's two ends at its points, shape (2, STRIDE)."""
        return np.stack([1.0 - self._shares, self._shares])
