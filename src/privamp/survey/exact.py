"""Survey statistics in exact arithmetic: whole multiples of a grid, with one exact noise for everything that is
released.

Sums: every record's weighted share is rounded toward zero, so one record adds at most weight * farthest (docs/
exact_noise.md). Statistics that are not sums (a variance contains the square of one) are computed in whole numbers
from values that are whole multiples of `farthest`/2^b, and the result is rounded down once: two results that differ
by at most r differ by at most r + grid afterwards. No step in between is rounded.

Statistics released together are multiplied such that all carry noise of one scale. Then one noise hides the vector of
all of them, in l1 for Laplace and in l2 for Gaussian noise.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..core.mechanism import Mechanism
from ..mechanisms.discrete_gaussian_vectors import SMOOTHING
from ..mechanisms.fixed_point import RECORDS, ExactGaussian, ExactLaplace, Whole, grid_for, toward_zero
from ..mechanisms.per_stratum import PerStratum
from ..numerics.log_domain import FloatArray, as_floats

Name = str | int
_UP = 1.0 + 1e-9  # the certified epsilon must not exceed the target by rounding
_HAIR = 1.0 + 1e-12  # sensitivities are computed in floats
_TOP = 2**62


@dataclass(frozen=True, slots=True)
class Statistic:
    """How far one record moves a statistic, stratum by stratum, and the scale of noise it should get."""

    reach: FloatArray  # (H,)
    scale: float
    is_sum: bool = True  # else it is rounded once, at the end


@dataclass(frozen=True, slots=True)
class ExactRelease:
    """The noise for several statistics at once, and how each is written in units of its grid."""

    kind: str
    grid: float
    scale: float  # of the first statistic
    ratios: tuple[float, ...]  # what each statistic is multiplied with
    reach: FloatArray  # (H,) of all together, in the norm of the noise

    def scale_of(self, which: int) -> float:
        """The scale of the noise on a statistic, in its own units."""
        return self.scale / self.ratios[which]

    def shares(self, which: int, rows: FloatArray, weights: Any = 1.0) -> Whole:
        """Records' shares in a sum, in units of the grid."""
        return toward_zero(rows, self.grid, np.broadcast_to(as_floats(weights) * self.ratios[which], rows.shape))

    def total(self, which: int, rows: FloatArray, weights: Any = 1.0) -> Whole:
        """A sum over records, in units of the grid."""
        return np.asarray([self.shares(which, rows, weights).sum(dtype=np.int64)])

    def once(self, which: int, value: Fraction) -> int:
        """A statistic that is not a sum, in units of the grid; clamped to 64 bits, which moves no two results apart."""
        units = math.floor(value * Fraction(self.ratios[which]) / Fraction(self.grid))
        return min(max(units, -_TOP), _TOP)

    def mechanism(self, names: Sequence[Name], *, replaced: bool, within: bool) -> Mechanism:
        """The noise with its sensitivity: of one record, of which a replacement moves two (`replaced`)."""
        each = self.reach / (2.0 if replaced else 1.0)
        make = ExactLaplace if self.kind == "laplace" else ExactGaussian
        noise = make(self.scale, float(each.max()), self.grid)
        if len(names) == 1 and not within:
            return noise
        return PerStratum(noise, tuple(zip(names, each.tolist(), strict=True)))

    def answers(self, noisy: Any) -> list[FloatArray]:
        """The released numbers, each statistic's in its own units."""
        parts = np.split(as_floats(noisy), len(self.ratios))
        return [part / ratio for part, ratio in zip(parts, self.ratios, strict=True)]


def release_of(
    kind: str, statistics: Sequence[Statistic], theta: Any | None, records: float | None = None
) -> ExactRelease:
    """The release of these statistics; `theta` is the loss that each stratum allows, None for scales as they are."""
    scale = statistics[0].scale
    ratios = tuple(scale / s.scale for s in statistics)
    farthest = max(float(np.max(s.reach)) * ratio for s, ratio in zip(statistics, ratios, strict=True))
    grid = grid_for(scale, farthest, int(min(records or RECORDS, RECORDS)))
    moves = [s.reach * ratio + (0.0 if s.is_sum else grid) for s, ratio in zip(statistics, ratios, strict=True)]
    reach = as_floats(sum(moves) if kind == "laplace" else np.sqrt(sum(move**2 for move in moves)))
    return _noised(kind, grid, scale, ratios, reach, theta)


def release_moving(
    kind: str, ratios: tuple[float, ...], reach: FloatArray, theta: FloatArray, records: float | None = None
) -> ExactRelease:
    """A release of sums that are multiplied by `ratios`, which one record moves by `reach` together (H,)."""
    scale = float(np.max(reach / theta))
    grid = grid_for(scale, float(np.max(reach)), int(min(records or RECORDS, RECORDS)))
    return _noised(kind, grid, scale, ratios, reach, theta)


def _noised(
    kind: str, grid: float, scale: float, ratios: tuple[float, ...], reach: FloatArray, theta: Any | None
) -> ExactRelease:
    reach = _HAIR * reach
    if theta is not None:
        scale = float(np.max(reach / theta)) * _UP
        if kind == "gaussian":  # what the discrete noise loses against the continuous one
            scale = math.hypot(scale, 1.001 * SMOOTHING * grid) * _HAIR
    return ExactRelease(kind, grid, scale, ratios, as_floats(reach))


@dataclass(frozen=True, slots=True)
class Lattice:
    """Values as whole multiples of `unit`, at most `most` of them, whose squares add up exactly."""

    unit: FloatArray  # one for each bound that was given
    most: int

    @classmethod
    def of(cls, farthest: FloatArray, records: float) -> "Lattice":
        """As fine as 64 bits allow for this many records."""
        bits = int(min(30, (62 - math.ceil(math.log2(max(records, 2.0)))) // 2))
        return cls(farthest / 2.0**bits, 2**bits)

    def whole(self, values: FloatArray, which: NDArray[np.intp] | int = 0) -> Whole:
        """Rounded toward zero."""
        return np.asarray(values / self.unit[which]).astype(np.int64)


def summed(where: NDArray[Any], parts: Whole, cells: int) -> Whole:
    """Whole numbers added up cell by cell, exactly."""
    total = np.zeros(cells, dtype=np.int64)
    np.add.at(total, where, parts)
    return total
