"""Sums of real vectors with exact noise: whole multiples of a grid, discrete noise, no float where it matters.

Floats break textbook noise: which doubles a noisy sum can be depends on the sum. Here each record is clipped to the
declared norm, weighted, and rounded *toward zero* to a multiple of the grid g, a power of two. That shrinks every
coordinate, so a record of norm u and weight w adds a whole vector (in units of g) of norm at most w u/g: the profile of
a weighted sum stays linear in w. (Rounding to the nearest multiple can lengthen a vector and breaks it.) Whole numbers
add up exactly, in any order; discrete noise is drawn exactly; g times the result is exact up to the last rounding of a
double, which is post-processing. So is a sum that overflows 64 bits and wraps around: it makes the answer wrong, never
less private; `grid_for` picks g from public bounds so that it does not happen.

The certified mechanism is the discrete one:

    Laplace   l1 norm N = floor(shift/g): the scalar discrete Laplace curve of shift N and scale t = scale/g.
    Gaussian  l2 norm: the continuous curve at sigma' = sqrt(sigma^2 - (3 g)^2), which covers the discrete noise in any
              dimension (discrete_gaussian_vectors.py; its factors (1 +- 1e-76)^d are far below the rounding margin).

Proofs: docs/exact_noise.md.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike

from ..chance.discrete import discrete_gaussian, discrete_laplace, rational_scale
from ..chance.stream import Stream
from ..core.influence import Influence
from ..core.mechanism import ONE, Change, Mechanism
from ..core.multiplicity import Multiplicity
from ..core.neighbors import Neighbors
from ..core.profile import Profile
from ..core.row_sums import RowBound
from ..core.sample import Bounded, Drawn
from ..errors import InvalidInput
from ..numerics.entries import rows_of
from ..numerics.log_domain import FloatArray
from ..numerics.rounding import number_up
from ..numerics.row_norms import finite
from ..numerics.whole_sums import Whole as Whole
from ..numerics.whole_sums import clipped_total
from ..numerics.whole_sums import toward_zero as toward_zero
from ..validation import positive
from .discrete_gaussian_vectors import SMOOTHING
from .discrete_laplace import binned_mixture, discrete_laplace_curve, more_than_continuous
from .gaussian import Gaussian, gaussian_curve
from .noise import check_sizes, shift_of

RECORDS = 2**32  # default number of records that a sum is planned for
_TOP = 2**62  # whole numbers are cut here
_SMALLEST = 1e-290  # beyond these the grid would leave the range of doubles
_COARSEST = 2.0**-6  # of the noise


def grid_for(noise: float, bound: float, records: int = RECORDS) -> float:
    """A power of two from public facts: the noise's scale, one record's largest contribution, how many there may be.

    All records rounded together stay below a millionth of the noise, or the grid is as fine as 64 bits allow.

    >>> grid_for(noise=1.0, bound=8.0, records=1000) == 2.0**-30
    True
    """
    positive(noise=noise, bound=bound, records=records)
    if noise / records < _SMALLEST or max(noise, records * bound) > 1.0 / _SMALLEST:
        raise InvalidInput(
            f"exact noise needs numbers from {_SMALLEST:g} to {1.0 / _SMALLEST:g}, got noise {noise:g} for "
            f"{records:g} contributions of up to {bound:g}; use another unit"
        )
    wanted = 2.0 ** math.floor(math.log2(noise / records) - 20.0)
    finest = 2.0 ** math.ceil(math.log2(max(records * bound / 2.0**61, noise / 2.0**49)))
    grid = max(wanted, finest)
    if grid > noise * _COARSEST:
        raise InvalidInput(
            f"sums of {records} contributions of up to {bound:g} do not fit 64 bits at noise {noise:g}; "
            "declare fewer records or a smaller bound, or add more noise"
        )
    return grid


class GridUnits(np.ndarray):
    """Whole numbers (int64) that count multiples of a mechanism's grid, as opposed to the numbers themselves."""


def in_grid_units(units: Any) -> GridUnits:
    """Mark a whole sum as being in units of the grid, for `ExactLaplace.release` and `ExactGaussian.release`."""
    return np.asarray(units, dtype=np.int64).view(GridUnits)


def whole_sum(kept: ArrayLike, drawn: Drawn, radius: float, p: float, grid: float) -> GridUnits:
    """The weighted sum of the kept records' rows, in units of the grid; a table counts as one row."""
    rows = rows_of(kept)
    flat = rows if rows.ndim == 1 else rows.reshape(len(rows), math.prod(rows.shape[1:]))
    total = clipped_total(flat, radius, p, grid, drawn.weights, drawn.counts)
    return in_grid_units(total.reshape(rows.shape[1:]))


def _checked(noise: float, sensitivity: float, grid: float, **named: float) -> float:
    """The grid: as given, or from the noise and one record's contribution."""
    check_sizes(sensitivity, **named)
    if grid == 0.0:
        return grid_for(noise, sensitivity)
    positive(grid=grid)
    if math.frexp(grid)[0] != 0.5 or not 2.0**-49 <= grid / noise <= _COARSEST:
        raise InvalidInput(f"grid must be a power of two from 2^-49 to 2^-6 times the noise, got {grid!r} instead")
    return grid


def _released(value: Any, grid: float, sensitivity: float, noise: Callable[[int], Whole]) -> Any:
    """The value with noise: a sum in units of the grid, or numbers of which one record moves `sensitivity`.

    Numbers are rounded toward zero to the grid after the record was added, which may cost one unit of the grid in every
    entry: so they are first multiplied by 1 - (d + 1) grid/sensitivity, and the answer is divided by it.
    """
    factor = Fraction(1)
    if isinstance(value, GridUnits):
        units = np.asarray(value)
    else:
        x = np.asarray(finite(rows_of([value.tolist() if isinstance(value, np.ndarray) else value]))[0])
        factor -= (x.size + 1) * Fraction(grid) / Fraction(sensitivity)
        if factor <= Fraction(1, 2):
            raise InvalidInput(
                f"the grid of {grid:g} is too coarse for {x.size} numbers of sensitivity {sensitivity:g}; give a finer "
                "grid, or release sum_of(rows), which rounds each record"
            )
        units = _whole(x, factor / Fraction(grid))
    with np.errstate(over="ignore"):  # wrapping around is post-processing
        noisy = np.asarray(units + noise(units.size).reshape(units.shape)) * (grid / float(factor))
    return noisy if np.ndim(noisy) else float(noisy)


def _whole(x: FloatArray, scale: Fraction) -> Whole:
    """Each number times `scale`, rounded toward zero, cut to 64 bits."""
    cut = (min(max(int(Fraction(number) * scale), -_TOP), _TOP) for number in x.ravel().tolist())
    return np.array(list(cut), dtype=np.int64).reshape(x.shape)


class _OnGrid(Mechanism):
    """Noise for sums of rows that are clipped and rounded toward zero to multiples of a grid."""

    __slots__ = ()

    sensitivity: float
    grid: float
    p: ClassVar[float]

    @property
    def row_bound(self) -> RowBound:
        """A row's norm; `total` rounds to the grid of the noise."""
        return RowBound(self.sensitivity, self.p, self.grid)

    def total(self, kept: ArrayLike, drawn: Drawn) -> GridUnits:
        """The weighted sum of the kept records' rows, each clipped and rounded toward zero."""
        return whole_sum(kept, drawn, self.sensitivity, self.p, self.grid)

    def sum_of(self, rows: ArrayLike) -> Bounded:
        """The statistic for `Sample.release`, from one row per record of the population."""
        known = rows_of(rows)
        return Bounded(lambda drawn: self.total(drawn.fitted(known[drawn.positions]), drawn))


@dataclass(frozen=True, slots=True)
class ExactLaplace(_OnGrid):
    """Laplace noise for sums of real vectors in exact arithmetic; `sensitivity` is the l1 norm records are clipped to.

    The noise is about as wide as Laplace noise of this `scale`. Records are rounded toward zero to multiples of `grid`,
    a power of two; 0 picks one from public bounds when the sum is released (`grid_for`). The release on all the data is
    (sensitivity/scale)-DP for the discrete noise that is actually added, so `assumes` is empty.

    >>> noise = ExactLaplace(scale=2.0, sensitivity=1.0)
    >>> noise.profile(Neighbors.ADD_REMOVE).epsilon(), noise.assumes
    (0.5, ())
    """

    scale: float
    sensitivity: float = 1.0
    grid: float = 0.0  # a power of two; 0 chooses it by `grid_for`

    neighbors: ClassVar[Neighbors] = Neighbors.ADD_REMOVE  # type: ignore[misc]
    hides_vectors: ClassVar[bool] = True
    p: ClassVar[float] = 1.0

    def __post_init__(self) -> None:
        grid = _checked(self.scale, self.sensitivity, self.grid, scale=self.scale)
        object.__setattr__(self, "grid", grid)

    @property
    def _rate(self) -> float:
        return self.grid / self.scale

    @property
    def _drawn(self) -> Fraction:
        return rational_scale(Fraction(self.scale) / Fraction(self.grid))

    def profile(self, neighbors: Neighbors, change: Change = ONE) -> Profile:
        """The curve of discrete Laplace noise at the whole shift, symmetric; reached along an axis."""
        units = math.floor(number_up(shift_of(self, self.sensitivity, neighbors, change) / self.grid))
        return Profile.symmetric(discrete_laplace_curve(self._rate, units))

    @property
    def influence(self) -> Influence:
        """u/scale for a record of l1 norm u, slightly increased so that Laplace's curve covers the discrete one."""
        return Influence("pure", more_than_continuous(self._rate), 1.0 / self.scale, self.p)

    def mixture(self, neighbors: Neighbors, law: Multiplicity) -> Profile | None:
        """A lower bound on the profile of (sum_u p_u M(u s), M(0)) for the noise that is drawn."""
        one = math.floor(self.sensitivity / self.grid) - 1  # clipping may have cost a unit
        return binned_mixture(1.0 / float(self._drawn), one * self.records_apart(neighbors), law)

    def release(self, value: Any, stream: Stream) -> Any:
        """A sum in units of the grid (`total`, `sum_of`), or numbers of any type, with noise, as real numbers."""
        return _released(value, self.grid, self.sensitivity, lambda n: discrete_laplace(stream, self._drawn, n))


@dataclass(frozen=True, slots=True)
class ExactGaussian(_OnGrid):
    """Gaussian noise for sums of real vectors in exact arithmetic; `sensitivity` is the l2 norm records are clipped to.

    `sigma` is the noise's standard deviation. Records are rounded toward zero to multiples of `grid`, a power of two; 0
    picks one from public bounds when the sum is released (`grid_for`). The guarantee is that of the discrete noise that
    is actually added, so `assumes` is empty.

    >>> noise = ExactGaussian(sigma=1.0)
    >>> f"{noise.profile(Neighbors.ADD_REMOVE).delta(1.0):.6f}", noise.assumes
    ('0.126937', ())
    """

    sigma: float
    sensitivity: float = 1.0
    grid: float = 0.0  # a power of two; 0 chooses it by `grid_for`

    neighbors: ClassVar[Neighbors] = Neighbors.ADD_REMOVE  # type: ignore[misc]
    hides_vectors: ClassVar[bool] = True
    p: ClassVar[float] = 2.0

    def __post_init__(self) -> None:
        grid = _checked(self.sigma, self.sensitivity, self.grid, sigma=self.sigma)
        object.__setattr__(self, "grid", grid)

    @property
    def _covering(self) -> float:
        """sigma', rounded down: continuous noise whose post-processing this is."""
        lost = SMOOTHING * self.grid
        return math.sqrt((self.sigma - lost) * (self.sigma + lost)) * (1.0 - 1e-15)

    def profile(self, neighbors: Neighbors, change: Change = ONE) -> Profile:
        """The covering continuous curve, symmetric."""
        return Profile.symmetric(gaussian_curve(shift_of(self, self.sensitivity, neighbors, change) / self._covering))

    @property
    def covering(self) -> Gaussian:
        """Continuous noise of sigma' on the rounded sum (docs/exact_noise.md, Thm 3)."""
        return Gaussian(self._covering, self.sensitivity)

    def family(self, neighbors: Neighbors) -> Callable[[FloatArray, FloatArray], FloatArray]:
        """All distances at once, as `profile` has them."""
        return self.covering.family(neighbors)

    @property
    def influence(self) -> Influence:
        """u/sigma' for a record of l2 norm u."""
        return Influence("gaussian", 0.0, 1.0 / self._covering, self.p)

    def release(self, value: Any, stream: Stream) -> Any:
        """A sum in units of the grid (`total`, `sum_of`), or numbers of any type, with noise, as real numbers."""
        sigma = Fraction(self.sigma) / Fraction(self.grid)
        return _released(value, self.grid, self.sensitivity, lambda n: discrete_gaussian(stream, sigma, n))
