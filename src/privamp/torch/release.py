"""The one place where a training step adds its noise."""

from typing import Any

import numpy as np
import torch

from ..chance.keys import Key
from ..chance.stream import Stream
from ..core.tape import through
from ..mechanisms.gaussian import Gaussian
from .batches import Batches
from .noise import normals
from .precision import sum_dtype

Tensor = Any


class _Sum:
    """The sum before noise, put together only where a tape asks for it."""

    def __init__(self, parameters: list[Any], sums: dict[int, Tensor]) -> None:
        self._parameters, self._sums = parameters, sums

    def __deepcopy__(self, memo: Any) -> Any:
        parts = [self._sums.get(id(p), torch.zeros_like(p)) for p in self._parameters]
        return np.concatenate([part.detach().double().cpu().numpy().ravel() for part in parts])


def noisy_gradients(key: Key, parameters: list[Any], sums: dict[int, Tensor], batches: Batches) -> list[Tensor]:
    """(sum + noise) / normaliser for every parameter, in its own precision; the noise is added before that rounding."""
    deviation, normaliser = batches.noise
    total, dtype = sum(p.numel() for p in parameters), sum_dtype(parameters[0].dtype)

    def noisy(stream: Stream) -> Tensor:
        noise = normals(stream, total, parameters[0].device, dtype, deviation / normaliser)
        for parameter, piece in _pieces(parameters, noise):
            held = sums.get(id(parameter))
            if held is not None:
                piece.add_(held, alpha=1.0 / normaliser)
        return noise

    mechanism = Gaussian(deviation, sensitivity=batches.clip)
    found = through(mechanism, _Sum(parameters, sums), Stream(key), noisy)
    return [piece.to(parameter.dtype) for parameter, piece in _pieces(parameters, found)]


def _pieces(parameters: list[Any], flat: Tensor) -> list[tuple[Any, Tensor]]:
    """Each parameter with its part of a long vector, as it is shaped."""
    parts = flat.split([p.numel() for p in parameters])
    return [(p, part.view_as(p)) for p, part in zip(parameters, parts, strict=True)]
