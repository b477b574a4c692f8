"""Gaussian noise on the device, from the words of a cryptographic stream.

The words are AES in counter mode under a key of the step; only their transformation (Box & Muller) is done by torch, in
double precision, a piece at a time. Idealised real arithmetic, cut at 8.5 standard deviations.
"""

import math
from typing import Any

import numpy as np
import torch

from ..chance.stream import Stream

_MASK = 2**52 - 1
_PIECE = {"cpu": 2**14}  # stays in cache; other devices want few, large pieces
_LARGE = 2**22


def normals(stream: Stream, count: int, device: Any, dtype: Any, scale: float = 1.0) -> Any:
    """`count` normal numbers of standard deviation `scale`: a function of the stream, however it is cut."""
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
