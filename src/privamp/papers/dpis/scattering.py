"""Handcrafted features of pictures: a scattering transform of two scales and eight directions, orders 0 to 2.

Morlet wavelets as products in the Fourier domain, moduli, a Gaussian average, one value for every 4 by 4 pixels: 81
maps of 7 by 7 for pictures of 28 by 28. Each record is normalised on its own, so nothing is learned from the data.
"""

from collections.abc import Iterator
from functools import cache
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import fft

SCALES, DIRECTIONS, SIDE, STEP = 2, 8, 32, 4
MARGIN = (SIDE - 28) // 2
Single = NDArray[np.float32]


@cache
def filters() -> tuple[Single, Single]:
    """The low pass (side, side) and the wavelets (scales, directions, side, side), in the Fourier domain."""
    f = 2.0 * np.pi * np.fft.fftfreq(SIDE)
    fy, fx = np.meshgrid(f, f, indexing="ij")
    low = np.exp(-0.5 * (0.8 * 2**SCALES) ** 2 * (fx**2 + fy**2))
    waves = np.empty((SCALES, DIRECTIONS, SIDE, SIDE))
    for j in range(SCALES):
        width, centre = 0.8 * 2**j, 0.75 * np.pi / 2**j
        for direction in range(DIRECTIONS):
            angle = np.pi * direction / DIRECTIONS
            along = fx * np.cos(angle) + fy * np.sin(angle)
            across = -fx * np.sin(angle) + fy * np.cos(angle)
            bell = np.exp(-0.5 * width**2 * ((along - centre) ** 2 + 4.0 * across**2))
            rest = np.exp(-0.5 * width**2 * (along**2 + 4.0 * across**2))
            waves[j, direction] = bell - rest * np.exp(-0.5 * width**2 * centre**2)  # no response to a constant
    return low.astype(np.float32), waves.astype(np.float32)


def features(pictures: NDArray[np.uint8], device: str = "", block: int = 1000) -> Any:
    """(n, 81 * 49) features of (n, 28, 28) pictures: an array, or with `device` a torch tensor on that device."""
    if not device:
        low, waves = filters()
        found = [_features(_padded(part), low, waves, fft, np) for part in _blocks(pictures, block)]
        return np.concatenate(found)
    import torch

    low, waves = (torch.from_numpy(f).to(device) for f in filters())
    parts = (torch.from_numpy(_padded(part)).to(device) for part in _blocks(pictures, block))
    return torch.cat([_features(part, low, waves, torch.fft, torch) for part in parts])


def _blocks(pictures: NDArray[np.uint8], block: int) -> Iterator[NDArray[np.uint8]]:
    return (pictures[i : i + block] for i in range(0, len(pictures), block))


def _padded(pictures: NDArray[np.uint8]) -> Single:
    return np.pad((pictures / 255.0).astype(np.float32), ((0, 0), (MARGIN, MARGIN), (MARGIN, MARGIN)))


def _features(padded: Any, low: Any, waves: Any, fourier: Any, arrays: Any) -> Any:
    """The maps by scipy and numpy, or by torch: both have functions with these names."""

    def average(spectrum: Any) -> Any:  # low pass, then one value of every STEP pixels inside the margin
        return fourier.ifft2(spectrum * low).real[:, MARGIN : MARGIN + 28 : STEP, MARGIN : MARGIN + 28 : STEP]

    spectrum = fourier.fft2(padded)
    maps = [average(spectrum)]
    for j in range(SCALES):
        for direction in range(DIRECTIONS):
            first = fourier.fft2(abs(fourier.ifft2(spectrum * waves[j, direction])))
            maps.append(average(first))
            for later in range(j + 1, SCALES):
                for other in range(DIRECTIONS):
                    maps.append(average(fourier.fft2(abs(fourier.ifft2(first * waves[later, other])))))
    stacked = arrays.stack(maps, 1)  # (n, maps, 7, 7)
    centred = stacked - stacked.mean((2, 3), keepdims=True)
    spread = (centred**2).mean((2, 3), keepdims=True) ** 0.5 + 1e-3
    return (centred / spread).reshape(len(padded), -1)
