"""Handcrafted features of pictures: a scattering transform of two scales and eight directions, orders 0 to 2.

Morlet wavelets as products in the Fourier domain, moduli, a Gaussian average, one value for every 4 by 4 pixels: 81
maps of 7 by 7 for pictures of 28 by 28. Each record is normalised by itself, so that nothing is learned from the data.
"""

from functools import cache

import numpy as np
from numpy.typing import NDArray
from scipy import fft

SCALES, DIRECTIONS, SIDE, STEP = 2, 8, 32, 4
Single = NDArray[np.float32]
Spectrum = NDArray[np.complex64]


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


def _average(spectrum: Spectrum) -> Single:
    """Low pass, then one value of every STEP pixels inside the margin."""
    low, _ = filters()
    smooth = fft.ifft2(spectrum * low).real
    margin = (SIDE - 28) // 2
    return np.asarray(smooth[:, margin : margin + 28 : STEP, margin : margin + 28 : STEP])


def features(pictures: NDArray[np.uint8], block: int = 500) -> Single:
    """(n, 81 * 49) features of (n, 28, 28) pictures."""
    found = [_features(pictures[i : i + block]) for i in range(0, len(pictures), block)]
    return np.concatenate(found)


def _features(pictures: NDArray[np.uint8]) -> Single:
    margin = (SIDE - 28) // 2
    padded = np.pad((pictures / 255.0).astype(np.float32), ((0, 0), (margin, margin), (margin, margin)))
    spectrum = fft.fft2(padded)
    _, waves = filters()
    maps = [_average(spectrum)]
    for j in range(SCALES):
        for direction in range(DIRECTIONS):
            first = fft.fft2(np.abs(fft.ifft2(spectrum * waves[j, direction])))
            maps.append(_average(first))
            for later in range(j + 1, SCALES):
                for other in range(DIRECTIONS):
                    maps.append(_average(fft.fft2(np.abs(fft.ifft2(first * waves[later, other])))))
    stacked = np.stack(maps, axis=1)  # (n, maps, 7, 7)
    centred = stacked - stacked.mean(axis=(2, 3), keepdims=True)
    spread = np.sqrt((centred**2).mean(axis=(2, 3), keepdims=True)) + 1e-3
    return np.asarray((centred / spread).reshape(len(pictures), -1), dtype=np.float32)
