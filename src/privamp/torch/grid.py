"""The grid on which a step's sum and its noise are added, so that rounding reveals nothing.

Theorem. Let N be normal with standard deviation s in every coordinate, and S on the grid gZ^d. Then floor_g(S + N) =
S + floor_g(N), so adding rounded noise to a rounded sum is a function of S + N, the Gaussian mechanism's answer. If
rounding takes sums that differ by at most C to grid points that differ by at most C + u g sqrt(d), a noise of s =
m (C + u g sqrt(d)) has the guarantee of multiplier m. The noise is exactly floor_g(N) (`chance/grid_normals.py`), the
sum in grid units is a whole number of at most 2^49 and their sum one below 2^53, so doubles add them exactly.

u: rounding moves a coordinate by 1/2 unit, the product with 1/g in doubles by 1/8 unit (up to 2^49 units), so
differences grow by at most 1.25 units; u = 1.5 is used, which leaves room for the rounding of s and g themselves.
"""

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch

from ..chance.compiled_normals import added as compiled_sum
from ..chance.compiled_normals import is_worth_compiling
from ..chance.grid_normals import BLOCK, GRID_BITS, normal_blocks
from ..chance.stream import Stream
from ..errors import InvalidInput
from ..mechanisms.gaussian import Gaussian
from .device_normals import PIECE, makes_noise, normal_pieces

Tensor = Any
_UNITS = 1.5  # u
_LARGEST = 2.0**49  # units of a sum; larger coordinates become this
_ROOM = 16.0  # coordinates of a sum may be this many expected batches times the clip
_PIECE = 2**15  # numbers worked on at a time on a CPU: they stay in cache


@dataclass(frozen=True, slots=True)
class Grid:
    """Spacing and standard deviation for the sum of `size` coordinates under this mechanism."""

    mechanism: Gaussian
    size: int
    normaliser: float

    @property
    def coarser(self) -> int:
        """How many bits of the noise are dropped, so that large sums of many records fit."""
        largest = _ROOM * max(self.normaliser, 1.0) * self._clip
        return max(0, math.ceil(math.log2(largest / (_LARGEST * math.ldexp(self.mechanism.sigma, -GRID_BITS)))))

    @property
    def price(self) -> float:
        """The share by which the noise grows because the sum is rounded."""
        multiplier = self.mechanism.sigma / self._clip
        lost = _UNITS * math.ldexp(multiplier, self.coarser - GRID_BITS) * math.sqrt(self.size)
        if lost >= 0.125:
            raise InvalidInput(
                f"noise of {multiplier:.3g} clips on {self.size} parameters is too much for the grid on which sums are "
                "rounded; train fewer parameters (adapters), or allow a larger epsilon"
            )
        return lost / (1.0 - lost) * (1.0 + 1e-12)

    @property
    def spread(self) -> float:
        """The standard deviation of the noise."""
        return self.mechanism.sigma * (1.0 + self.price)

    @property
    def unit(self) -> float:
        """The spacing g."""
        return math.ldexp(self.spread, self.coarser - GRID_BITS)

    @property
    def _clip(self) -> float:
        return float(self.mechanism.sensitivity)

    def noisy(self, stream: Stream, parameters: list[Any], sums: dict[int, Tensor], dtype: Any) -> Tensor:
        """(sum + noise) / normaliser, as one long vector; a sum of whole numbers is one of units."""
        if any(held.dtype == torch.int64 for held in sums.values()):
            return self._noisy_units(stream, parameters, sums, dtype)
        device = parameters[0].device
        if device.type == "cpu" and is_worth_compiling(self.size):
            every = [(p.numel(), sums.get(id(p))) for p in parameters]
            return _compiled(stream, every, dtype, 2.0**-self.coarser, self.unit, self.unit / self.normaliser)
        found = torch.empty(self.size, dtype=dtype, device=device)
        pieces = _Pieces([(p.numel(), sums.get(id(p))) for p in parameters], device)
        drop, unit, scale = self.coarser, self.unit, self.unit / self.normaliser
        for at, noise in _whole_noise(stream, self.size, device):
            if drop:
                noise.mul_(2.0**-drop).floor_()
            noise.add_(pieces.next(noise.numel()).mul_(1.0 / unit).round_().clamp_(-_LARGEST, _LARGEST))
            torch.mul(noise, scale, out=found[at : at + noise.numel()])
        return found

    def _noisy_units(self, stream: Stream, parameters: list[Any], sums: dict[int, Tensor], dtype: Any) -> Tensor:
        """The same for whole numbers of units, which are added modulo 2^64."""
        device = parameters[0].device
        absent = [torch.zeros(p.numel(), dtype=torch.int64, device=device) for p in parameters]
        units = torch.cat([sums.get(id(p), none).reshape(-1) for p, none in zip(parameters, absent, strict=True)])
        for at, noise in _whole_numbers(stream, self.size, device):
            units[at : at + noise.numel()] += noise >> self.coarser
        return units.double().mul_(self.unit / self.normaliser).to(dtype)

    def noise(self, stream: Stream, device: Any, dtype: Any) -> Tensor:
        """The noise alone, divided by the normaliser."""
        return normals(stream, self.size, device, dtype, self.spread / self.normaliser)


def _compiled(
    stream: Stream, sums: list[tuple[int, Tensor | None]], dtype: Any, share: float, unit: float, scale: float
) -> Tensor:
    """The noisy sum in one pass over the numbers of each block."""
    sizes = [count for count, _ in sums]
    found = np.empty(sum(sizes), np.float64 if dtype == torch.float64 else np.float32)
    nothing = np.zeros(min(BLOCK, found.size), found.dtype)
    ends = np.cumsum(sizes).tolist()
    held = [None if given is None else given.detach().reshape(-1).numpy() for _, given in sums]
    for start, coarse, fine in normal_blocks(stream, found.size):
        for end, size, values in zip(ends, sizes, held, strict=True):
            low, high = max(end - size, start), min(end, start + coarse.size)
            if low < high:
                mine = nothing[: high - low] if values is None else values[low - end + size : high - end + size]
                here, out = slice(low - start, high - start), found[low:high]
                compiled_sum()(coarse[here], fine[here], share, mine, 1.0 / unit, _LARGEST, scale, out)
    return torch.from_numpy(found)


class _Pieces:
    """The sums of all parameters one after the other, in double precision, a piece at a time.

    On a GPU they are put together first: one copy for each parameter would take more time than the noise.
    """

    def __init__(self, held: list[tuple[int, Tensor | None]], device: Any) -> None:
        self._held = [(count, None if sums is None else sums.reshape(-1)) for count, sums in held]
        if device.type != "cpu":
            every = torch.cat([torch.zeros(n, device=device) if sums is None else sums for n, sums in self._held])
            self._held = [(every.numel(), every)]
        self._which = self._at = 0
        self._made = torch.empty(min(_size(device), sum(n for n, _ in held)), dtype=torch.float64, device=device)

    def next(self, size: int) -> Tensor:
        """The next `size` numbers, until it is asked again."""
        done, found = 0, self._made[:size]
        while done < size:
            count, sums = self._held[self._which]
            taken = min(size - done, count - self._at)
            part = found[done : done + taken]
            if sums is None:
                part.zero_()
            else:
                part.copy_(sums[self._at : self._at + taken])
            done, self._at = done + taken, self._at + taken
            if self._at == count:
                self._which, self._at = self._which + 1, 0
        return found


def _size(device: Any) -> int:
    if makes_noise(device):
        return PIECE
    return _PIECE if device.type == "cpu" else BLOCK


def _whole_numbers(stream: Stream, count: int, device: Any) -> Iterator[tuple[int, Tensor]]:
    """The normals in units of the finest grid, as (place, int64)."""
    if makes_noise(device):
        yield from normal_pieces(stream, count, device)
        return
    for at, coarse, fine in normal_blocks(stream, count):
        yield at, torch.from_numpy(coarse.astype(np.int64) << 8 | fine).to(device)


def _whole_noise(stream: Stream, count: int, device: Any) -> Iterator[tuple[int, Tensor]]:
    """The same as (place, doubles); each piece is overwritten by the next."""
    if makes_noise(device):
        for at, numbers in normal_pieces(stream, count, device):
            yield at, numbers.double()
        return
    size = _size(device)
    made = torch.empty(size, dtype=torch.float64, device=device)
    for start, coarse, fine in normal_blocks(stream, count):
        high, low = torch.from_numpy(coarse).to(device), torch.from_numpy(fine).to(device)
        for at in range(0, coarse.size, size):
            piece = made[: min(size, coarse.size - at)]
            yield start + at, piece.copy_(low[at : at + size]).add_(high[at : at + size], alpha=256)


def normals(stream: Stream, count: int, device: Any, dtype: Any, scale: float = 1.0) -> Tensor:
    """`count` normal numbers of standard deviation `scale`, from the grid: a function of the stream."""
    if device.type == "cpu" and is_worth_compiling(count):
        return _compiled(stream, [(count, None)], dtype, 1.0, 1.0, math.ldexp(scale, -GRID_BITS))
    found = torch.empty(count, dtype=dtype, device=device)
    for at, noise in _whole_noise(stream, count, device):
        torch.mul(noise, math.ldexp(scale, -GRID_BITS), out=found[at : at + noise.numel()])
    return found
