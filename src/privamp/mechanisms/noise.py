"""What all noise mechanisms share: the shift between two samples, and checked values."""

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..core.mechanism import Change, Mechanism
from ..core.neighbors import Neighbors
from ..errors import InvalidInput, NoTheorem
from ..numerics.log_domain import FloatArray
from ..validation import positive, whole

_FINE = 24  # bits kept below the scale of the noise
_LARGEST = 2**62  # whole numbers are clamped here, so that there is room for noise in 64 bits


def shift_of(mechanism: Mechanism, sensitivity: float, neighbors: Neighbors, change: Change) -> float:
    """How far the change moves the value: copies * weight * norm * (own steps in one step of `neighbors`)."""
    norm = sensitivity if change.norm is None else change.norm
    shift = change.copies * change.weight * norm * mechanism.records_apart(neighbors)
    if not math.isfinite(shift):
        raise InvalidInput(f"the shift of the value must be finite, got {shift} instead; lower the weight")
    return float(shift)


def whole_shift_of(mechanism: Mechanism, sensitivity: int, neighbors: Neighbors, change: Change) -> int:
    """The shift of a mechanism on whole numbers; a fractional one has no theorem."""
    shift = shift_of(mechanism, sensitivity, neighbors, change)
    if shift != math.floor(shift) or shift > 2.0**53:
        raise NoTheorem(
            f"{type(mechanism).__name__} hides whole numbers up to 2^53, and this change moves the value by "
            f"{shift:g}; use whole weights and norms, or the continuous mechanism"
        )
    return int(shift)


def check_sizes(sensitivity: Any, **scale: Any) -> None:
    """A positive sensitivity and noise; their ratio must stay well inside the doubles."""
    positive(sensitivity=sensitivity, **scale)
    for name, value in scale.items():
        if not 1e-100 < float(sensitivity) / float(value) < 1e100:
            raise InvalidInput(f"{name} must be within 1e100 times the sensitivity, got {value!r} instead")


def numbers(value: Any) -> FloatArray:
    """A finite float array; the message never shows the value."""
    try:
        array = np.asarray(value)
        if array.dtype.kind not in "iuf":
            raise TypeError
        array = array.astype(np.float64)
    except (TypeError, ValueError):
        raise InvalidInput("the value must be a number or an array of numbers, got something else") from None
    if not np.all(np.isfinite(array)):
        raise InvalidInput("the value must be finite, but it contains nan or infinity; clip it first")
    return array


def whole_numbers(value: Any) -> NDArray[np.int64]:
    """An integer array, clamped to +-2^62; floats are rejected even when they look whole. No message shows the value.

    A number too large for 64 bits is clamped, not rejected: an error that depends on the data would leak information.
    Clamping moves no two numbers farther apart, so the sensitivity is unchanged.
    """
    try:
        array = np.asarray(value)
    except ValueError:  # rows of different lengths
        array = np.empty(0)
    if array.dtype == object and all(type(x) is int for x in array.flat):  # Python's own, of any size
        return np.array([min(max(x, -_LARGEST), _LARGEST) for x in array.flat], dtype=np.int64).reshape(array.shape)
    if array.dtype.kind not in "iu":
        raise InvalidInput("the value must be whole numbers (an integer dtype); round it first")
    if array.dtype == np.uint64:  # its bound below must be unsigned as well
        return np.asarray(np.minimum(array, np.uint64(_LARGEST)).astype(np.int64))
    return np.asarray(np.clip(array.astype(np.int64), -_LARGEST, _LARGEST))


def on_grid(noisy: FloatArray, scale: float) -> FloatArray:
    """Rounded to a power of two far below the noise: the low bits of a sum of floats reveal its summands.

    Rounding is post-processing, so the idealised guarantee is unchanged.
    """
    grid = math.ldexp(1.0, math.frexp(scale)[1] - _FINE)
    return np.rint(noisy / grid) * grid


def like(value: Any, noisy: NDArray[Any]) -> Any:
    """A Python number for a number, an array for an array."""
    return noisy if isinstance(value, (np.ndarray, list, tuple)) else noisy.reshape(()).item()


def check_whole_sensitivity(sensitivity: Any) -> None:
    """Discrete noise needs a whole sensitivity."""
    whole(1, 2**53, sensitivity=sensitivity)
