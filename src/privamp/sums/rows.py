"""The row a record adds: its own numbers, and, where they are asked for, a share for the error and one for the count.

Squares for the error: (w - 1) x_j^2, scaled by `gain` so that their norm stays below a public share of the record's
norm, cut off there. Summed with weight w they estimate the sampling variance sum (1/q - 1) x_j^2 without bias.
"""

from dataclasses import dataclass

import numpy as np

from ..numerics.log_domain import FloatArray
from ..numerics.row_norms import norms


@dataclass(frozen=True, slots=True)
class Rows:
    """How rows are made, all public."""

    radius: float
    p: float
    gain: float  # of the squares; 0 leaves them out
    share: float  # of the record's norm that the squares may have
    count: float  # the entry that counts; 0 leaves it out

    def of(self, x: FloatArray, more: FloatArray) -> FloatArray:
        """Rows of the kept records; `more` is w - 1 for each."""
        parts = [x]
        if self.gain:
            squares = x * x * (self.gain * more)[:, None]
            size = norms(squares, self.p)
            room = np.minimum(norms(x, self.p), self.radius) * self.share * (1.0 - 1e-12)
            with np.errstate(divide="ignore", invalid="ignore"):
                cut = np.where(size > room, room / size, 1.0)
            parts.append(squares * cut[:, None])
        if self.count:
            parts.append(np.full((len(x), 1), self.count))
        return np.concatenate(parts, axis=1)
