"""Passes over the numbers of `grid_normals`, compiled with the extra `fast` (numba): the same bits as without it.

Whole numbers are added and looked up; doubles are multiplied, rounded and compared one by one, as NumPy and torch do.
"""

from functools import cache
from typing import Any

import numpy as np

from ..extras import is_installed

_WORTH_IT = 2**18  # numbers of a step from which compiling, which takes a second, saves time


def is_worth_compiling(count: int) -> bool:
    """Whether numba is installed and there are many numbers."""
    return count >= _WORTH_IT and is_installed("numba")


@cache
def by_bytes() -> Any:
    """f(words, bytes, first, mark, coarse, fine, slow): a number for each word and byte.

    Returns how many numbers lie below the mark; their places are listed in `slow`.
    """
    from numba import njit  # type: ignore[import-not-found,import-untyped,unused-ignore]

    def kernel(words: Any, given: Any, first: Any, mark: int, coarse: Any, fine: Any, slow: Any) -> int:
        found = 0
        for i in range(words.size):
            word = words[i]
            number = first[word >> np.uint32(16)] + np.int32(word & np.uint32(0xFFFF))
            coarse[i] = number
            if number < mark:
                slow[found] = i
                found += 1
        fine[:] = given
        return found

    return njit(nogil=True)(kernel)


@cache
def added() -> Any:
    """f(coarse, fine, share, sums, inverse, largest, scale, out): (noise + sum in units) * scale.

    The noise is floor(share (256 coarse + fine)), `share` a power of two; `inverse` is 1/unit.
    """
    from numba import njit  # type: ignore[import-not-found,import-untyped,unused-ignore]

    def kernel(
        coarse: Any, fine: Any, share: float, sums: Any, inverse: float, largest: float, scale: float, out: Any
    ) -> None:
        for i in range(coarse.size):
            noise = np.floor((np.float64(coarse[i]) * 256.0 + np.float64(fine[i])) * share)
            units = np.rint(np.float64(sums[i]) * inverse)
            units = -largest if units < -largest else units  # what is no number stays so
            units = largest if units > largest else units
            out[i] = (noise + units) * scale

    return njit(nogil=True)(kernel)
