"""The row a record adds: its own numbers and, if requested, entries for the error and for the count.

Squares for the error: (w - 1) x_j^2, scaled by a `gain` so that their norm stays below a public share of the record's
norm, cut off there. Summed with weight w they estimate the sampling variance sum (1/q - 1) x_j^2 without bias.
"""

import math
from dataclasses import dataclass

import numpy as np

from ..core.design import Design
from ..mechanisms.augmented_rows import AugmentedRows
from ..mechanisms.fixed_point import RECORDS, grid_for
from ..numerics.log_domain import FloatArray
from ..numerics.row_norms import norms
from .options import SumOptions

_LEAST_NOISE = 1e-9  # in units of the longest row
_HEAVY = 16.0  # a weighted sum may stray this far above radius * records before it wraps around


@dataclass(frozen=True, slots=True)
class Rows:
    """How the rows of a release are made, all public."""

    options: SumOptions
    centre: tuple[float, ...]  # what every number of a record is measured from
    count_share: float = 0.0  # of the radius, for the entry that counts; 0 leaves it out

    @property
    def dimension(self) -> int:
        """Numbers of a record."""
        return len(self.centre)

    @property
    def radius(self) -> float:
        """The norm of the longest record, measured from the centre."""
        return self.options.longest(self.centre)

    @property
    def count(self) -> float:
        """The entry that counts."""
        return self.count_share * self.radius

    @property
    def squares_share(self) -> float:
        """Of the record's norm that the squares may have, if there is a sampling error to estimate."""
        share = self.options.error_share if _may_vary(self.options.sampler) else 0.0
        return share if self.options.noise != "gaussian" else math.sqrt(share)

    @property
    def width(self) -> int:
        """Numbers of a row."""
        return self.dimension * (2 if self.squares_share else 1) + (1 if self.count else 0)

    def mechanism(self, scale: float, *, weighted: bool = False) -> AugmentedRows:
        """The noise of this scale on the rows."""
        options, share = self.options, self.options.error_share if self.squares_share else 0.0
        is_pure = options.noise != "gaussian"
        per_norm = 1.0 + share if is_pure else math.sqrt(1.0 + share)
        own = per_norm * self.radius
        longest = (self.count + own if is_pure else math.hypot(self.count, own)) * (1.0 + 1e-12)
        grid = 0.0
        if options.is_exact:
            grid = grid_for(scale, longest * (_HEAVY if weighted else 1.0), options.population or RECORDS)
        noise = options.mechanism(scale, self.width, longest, grid)
        return AugmentedRows(noise, self.radius, self.count, per_norm)

    @property
    def least_noise(self) -> float:
        """In units of the longest row: less does not fit 64 bits in exact arithmetic."""
        records = self.options.population or RECORDS
        return max(_LEAST_NOISE, 2.0**-52 * records if self.options.is_exact else 0.0)

    def of(self, x: FloatArray, more: FloatArray, gain: float) -> FloatArray:
        """Rows of the kept records; `more` is w - 1 for each, and `gain` what squares are multiplied with."""
        parts = [x]
        if self.squares_share:
            parts.append(self._squares(x, gain * more))
        if self.count:
            parts.append(np.full((len(x), 1), self.count))
        return np.concatenate(parts, axis=1) if len(parts) > 1 else x

    def _squares(self, x: FloatArray, factors: FloatArray) -> FloatArray:
        p, squares = self.options.norm, x * x * factors[:, None]
        size = norms(squares, p)
        room = np.minimum(norms(x, p), self.radius) * self.squares_share * (1.0 - 1e-12)
        with np.errstate(divide="ignore", invalid="ignore"):
            cut = np.where(size > room, room / size, 1.0)
        return np.asarray(squares * cut[:, None])


def _may_vary(sampler: object) -> bool:
    """Whether there is a sampling error to release: not without a sample, nor where squares do not bound it."""
    return sampler is not None and (not isinstance(sampler, Design) or bool(sampler.spread))
