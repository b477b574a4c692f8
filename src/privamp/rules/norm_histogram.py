"""The public distribution of a population's norms: counts per bin."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from ..errors import InvalidInput
from ..numerics.log_domain import FloatArray, as_floats
from ..validation import positive, whole


@dataclass(frozen=True, slots=True)
class NormHistogram:
    """`counts[i]` records have a norm of at most `norms[i]` and more than the one before.

    Counting every record at the upper end of its bin slightly overstates probabilities, and so expected sizes.

    >>> NormHistogram([0.5, 1.0], [900, 100]).population
    1000.0
    """

    norms: tuple[float, ...]
    counts: tuple[float, ...]

    def __init__(self, norms: ArrayLike, counts: ArrayLike) -> None:
        u, n = np.atleast_1d(as_floats(norms)), np.atleast_1d(as_floats(counts))
        if u.ndim != 1 or u.shape != n.shape or not u.size:
            raise InvalidInput("a norm histogram must have as many counts as norms, at least one of each")
        if not (np.all(np.isfinite(u)) and np.all(u >= 0) and np.all(np.diff(u) > 0)):
            raise InvalidInput("the norms of a histogram must be finite and grow from bin to bin")
        if not (np.all(np.isfinite(n)) and np.all(n >= 0) and np.sum(n) > 0):
            raise InvalidInput("the counts of a histogram must be at least 0 and not all 0")
        object.__setattr__(self, "norms", tuple(u.tolist()))
        object.__setattr__(self, "counts", tuple(n.tolist()))

    @property
    def population(self) -> float:
        """How many records are counted in all bins."""
        return float(np.sum(self.counts))

    def arrays(self) -> tuple[FloatArray, FloatArray]:
        """Norms and counts."""
        return as_floats(self.norms), as_floats(self.counts)


def octave_bins(radius: float, per_octave: int = 8, octaves: int = 12) -> FloatArray:
    """Upper ends of bins that shrink geometrically from the radius, `per_octave` to a factor of two."""
    positive(radius=radius)
    whole(1, 64, per_octave=per_octave)
    whole(1, 60, octaves=octaves)
    return radius * np.exp2(np.arange(1 - per_octave * octaves, 1) / per_octave)
