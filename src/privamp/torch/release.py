"""The one place where a training step adds its noise.

The noise is a normal rounded down to a grid, exactly, from the words of a cryptographic stream under a key of the step;
the sum is rounded to the same grid, and their sum has no rounding error (`grid.py`). Noise that rounds share is
computed from such normals in floating point.
"""

from collections.abc import Callable
from typing import Any

import numpy as np
import torch

from ..chance.keys import Key
from ..chance.stream import Stream
from ..core.tape import through
from .banded_noise import BandedNoise
from .batches import Batches
from .grid import Grid
from .precision import sum_dtype

Tensor = Any


class _Sum:
    """The sum before noise, computed only if a tape records it."""

    def __init__(self, parameters: list[Any], sums: dict[int, Tensor], unit: float) -> None:
        self._parameters, self._sums, self._unit = parameters, sums, unit

    def __deepcopy__(self, memo: Any) -> Any:
        parts = [self._sums.get(id(p), torch.zeros_like(p)) for p in self._parameters]
        units = [self._unit if part.dtype == torch.int64 else 1.0 for part in parts]
        every = zip(parts, units, strict=True)
        return np.concatenate([part.detach().double().cpu().numpy().ravel() * unit for part, unit in every])


def noisy_gradients(
    key: Callable[[int], Key], parameters: list[Any], sums: dict[int, Tensor], batches: Batches, bands: BandedNoise
) -> list[Tensor]:
    """(sum + noise) / normaliser for every parameter, in its own precision; the noise is added before that rounding.

    `key(i)` is the key of the noise of i steps before.
    """
    grid = _grid(batches, parameters)
    dtype = sum_dtype(parameters[0].dtype)

    def noisy(stream: Stream) -> Tensor:
        if bands.is_independent:
            return grid.noisy(stream, parameters, sums, dtype)
        device = parameters[0].device
        made = grid.noise(stream, device, dtype)
        noise = bands.shared(made, batches.slot, lambda i: grid.noise(Stream(key(i)), device, dtype))
        for parameter, piece in _pieces(parameters, noise):
            held = sums.get(id(parameter))
            if held is not None:
                piece.add_(held, alpha=1.0 / batches.normaliser)
        return noise

    found = through(batches.mechanism, _Sum(parameters, sums, grid.unit), Stream(key(0)), noisy)
    return [piece.to(parameter.dtype) for parameter, piece in _pieces(parameters, found)]


def check_grid(batches: Batches, parameters: list[Any]) -> None:
    """Raise where the noise is too much for the grid of the sums."""
    _ = _grid(batches, parameters).price


def _grid(batches: Batches, parameters: list[Any]) -> Grid:
    return Grid(batches.mechanism, sum(p.numel() for p in parameters), batches.normaliser)


def _pieces(parameters: list[Any], flat: Tensor) -> list[tuple[Any, Tensor]]:
    """Each parameter with its part of a long vector, as it is shaped."""
    parts = flat.split([p.numel() for p in parameters])
    return [(p, part.view_as(p)) for p, part in zip(parameters, parts, strict=True)]
