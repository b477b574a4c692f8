"""The one place where a training step adds its noise.

The noise is Gaussian, made on the device from the words of a cryptographic stream: AES in counter mode under a key of
the step. Only their transformation (Box & Muller) is done by torch, in double precision, a piece at a time. Idealised
real arithmetic, cut at 8.5 standard deviations.
"""

import math
from typing import Any

import numpy as np
import torch

from ..chance.keys import Key
from ..chance.stream import Stream
from ..core.tape import through
from .banded_noise import BandedNoise
from .batches import Batches
from .precision import sum_dtype

Tensor = Any
_MASK = 2**52 - 1
_PIECE = {"cpu": 2**14}  # stays in cache; other devices want few, large pieces
_LARGE = 2**22


class _Sum:
    """The sum before noise, computed only if a tape records it."""

    def __init__(self, parameters: list[Any], sums: dict[int, Tensor]) -> None:
        self._parameters, self._sums = parameters, sums

    def __deepcopy__(self, memo: Any) -> Any:
        parts = [self._sums.get(id(p), torch.zeros_like(p)) for p in self._parameters]
        return np.concatenate([part.detach().double().cpu().numpy().ravel() for part in parts])


def noisy_gradients(
    key: Key, parameters: list[Any], sums: dict[int, Tensor], batches: Batches, bands: BandedNoise
) -> list[Tensor]:
    """(sum + noise) / normaliser for every parameter, in its own precision; the noise is added before that rounding."""
    mechanism, normaliser = batches.mechanism, batches.normaliser
    total, dtype = sum(p.numel() for p in parameters), sum_dtype(parameters[0].dtype)

    def noisy(stream: Stream) -> Tensor:
        noise = normals(stream, total, parameters[0].device, dtype, mechanism.sigma / normaliser)
        noise = bands.shared(noise, batches.slot)
        for parameter, piece in _pieces(parameters, noise):
            held = sums.get(id(parameter))
            if held is not None:
                piece.add_(held, alpha=1.0 / normaliser)
        return noise

    found = through(mechanism, _Sum(parameters, sums), Stream(key), noisy)
    return [piece.to(parameter.dtype) for parameter, piece in _pieces(parameters, found)]


def _pieces(parameters: list[Any], flat: Tensor) -> list[tuple[Any, Tensor]]:
    """Each parameter with its part of a long vector, as it is shaped."""
    parts = flat.split([p.numel() for p in parameters])
    return [(p, part.view_as(p)) for p, part in zip(parameters, parts, strict=True)]


def normals(stream: Stream, count: int, device: Any, dtype: Any, scale: float = 1.0) -> Any:
    """`count` normal numbers of standard deviation `scale`: a function of the stream, independent of the pieces."""
    noise = torch.empty(count, dtype=dtype, device=device)
    size = _PIECE.get(device.type, _LARGE)
    for start in range(0, count, size):
        piece = noise[start : start + size]
        pairs = -(-len(piece) // 2)
        words = torch.from_numpy(stream.words(2 * pairs).view(np.int64).reshape(pairs, 2)).to(device)
        uniforms = (words.bitwise_right_shift_(12).bitwise_and_(_MASK).double() + 0.5).mul_(2.0**-52)  # never 0 or 1
        radius = uniforms[:, 0].log().mul_(-2.0).sqrt_().mul_(scale)
        angle = uniforms[:, 1] * (2.0 * math.pi)
        piece[0::2] = torch.cos(angle).mul_(radius)
        piece[1::2] = torch.sin(angle).mul_(radius)[: len(piece) // 2]
    return noise
