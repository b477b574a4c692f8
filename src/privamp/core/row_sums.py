"""Sums of an array over a sample: every record's row is clipped to what the mechanism declares, then added up exactly.

A row is clipped to the declared sensitivity in the mechanism's own norm (a few units in the last place inside it),
times its weight, and rounded toward zero to a grid far below the noise. Whole numbers of that grid add up without
rounding; their total is rounded once, to the nearest double: by at most 2^-53 of it.

Where a mechanism is stated for replaced records, its sensitivity bounds how far two rows lie apart. Rows are then
clipped to half of it around a public `center`.
"""

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ..errors import InvalidInput
from ..numerics.entries import rows_of
from ..numerics.log_domain import FloatArray
from ..numerics.row_norms import clipped, finite
from ..numerics.whole_sums import exact_total, sum_grid, toward_zero, whole_clipped

if TYPE_CHECKING:
    from .sample import Drawn

_LARGEST = 2**62  # whole totals are clamped here, which moves no two of them farther apart
_TOP = Fraction(np.finfo(np.float64).max)  # and totals of doubles here


@dataclass(frozen=True, slots=True)
class RowBound:
    """What a mechanism declares about the row of one record: at most `sensitivity` long in the `p`-norm."""

    sensitivity: float
    p: float
    noise: float  # its scale: the grid of a sum lies far below it
    is_whole: bool = False  # rows are whole numbers
    are_replaced: bool = False  # the sensitivity is the distance of two rows
    width: int | None = None  # entries of a row; None: any, a table counts as one row

    def total(self, rows: NDArray[Any], drawn: "Drawn", center: FloatArray | None = None) -> Any:
        """The sum of the kept records' rows, as the mechanism takes it."""
        shape = rows.shape[1:]
        x = finite(rows if rows.ndim == 1 else rows.reshape(len(rows), math.prod(shape)))
        grid = 1.0 if self.is_whole else sum_grid(self.noise, self.sensitivity)
        middle = self._middle(center)
        units = toward_zero(self._bounded(x, middle), grid, drawn.weights)
        found = [Fraction(grid) * int(unit) for unit in exact_total(units, drawn.counts).ravel()]
        if middle is not None:  # every record has it, so it is the same after a replacement
            size = sum(drawn.counts.tolist())
            found = [part + Fraction(c) * size for part, c in zip(found, middle.tolist(), strict=True)]
        total = np.array([self._number(part) for part in found]).reshape(shape)
        return total if shape else total.item()

    def _number(self, part: Fraction) -> int | float:
        if self.is_whole:
            return min(max(int(part), -_LARGEST), _LARGEST)
        return float(min(max(part, -_TOP), _TOP))

    def _middle(self, center: FloatArray | None) -> FloatArray | None:
        if center is None:
            return None
        return np.floor(center).reshape(-1) if self.is_whole else center.reshape(-1)

    def _bounded(self, x: FloatArray, middle: FloatArray | None) -> FloatArray:
        """Rows no longer than declared; where records are replaced, their distance from the middle."""
        clip = whole_clipped if self.is_whole else clipped
        if middle is None:
            return clip(x, self.sensitivity, self.p)
        with np.errstate(all="ignore"):
            x = finite(x - middle)
        if self.is_whole and x.ndim == 1:  # a distance of 1 is that of 0 and 1
            return np.clip(np.trunc(x), math.ceil(-0.5 * self.sensitivity), math.ceil(0.5 * self.sensitivity))
        return clip(x, 0.5 * self.sensitivity, self.p)


def checked_rows(bound: RowBound | None, name: str, values: Any, records: int) -> NDArray[Any]:
    """One row per record; raises for public reasons only: the type of the array, its shape, no declared bound."""
    if bound is None:
        raise InvalidInput(
            f"{name} does not declare how long one record's row may be, so an array cannot be bounded; "
            "give a function of the sample, or release with Laplace, Gaussian, NormNoise or discrete noise"
        )
    rows = rows_of(values)
    if rows.shape[:1] != (records,):
        raise InvalidInput("the statistic must have one row per record of the population, in the order of its ids")
    if bound.width == 1 and rows.ndim > 1:
        raise InvalidInput(
            f"{name} is proved for one number, got a sum of rows instead; "
            "release the columns one by one, or use Laplace, Gaussian or NormNoise"
        )
    if bound.width is not None and bound.width > 1 and rows.shape[1:] != (bound.width,):
        raise InvalidInput(f"the last axis must be {bound.width} long, got rows of shape {rows.shape[1:]} instead")
    if bound.is_whole and isinstance(values, np.ndarray) and rows.dtype.kind == "f" and values.dtype != object:
        raise InvalidInput("the value must be whole numbers (an integer dtype); round it first")
    return rows


def checked_center(bound: RowBound, rows: NDArray[Any], center: ArrayLike | None) -> FloatArray | None:
    """The public middle of the rows' range, for sensitivities that bound the distance of two rows."""
    if not bound.are_replaced:
        if center is not None:
            raise InvalidInput("center= is only for mechanisms stated for replace-one; omit it here")
        return None
    if center is None and rows.dtype.kind == "b":
        center = 0.5
    if center is None:
        raise InvalidInput(
            "this mechanism is stated for replaced records, so its sensitivity bounds how far apart two rows lie; "
            "give the middle of their public range, for example center=0.5 for values from 0 to 1 and sensitivity 1"
        )
    middle = np.asarray(center, dtype=np.float64)
    if not np.all(np.isfinite(middle)) or middle.shape not in ((), rows.shape[1:]):
        raise InvalidInput("center must be one finite number, or one for every entry of a row")
    return np.broadcast_to(middle, rows.shape[1:])
