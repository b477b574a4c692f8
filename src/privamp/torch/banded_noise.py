"""Noise that rounds share: the sum of many steps has less of it, at the same privacy.

Step t adds n_t, with n = C^-1 z, z independent of standard deviation sigma * clip and C the banded matrix of
`accounting/banded.py`, whose columns have norm at most 1. C n = z says that n_t is z_t - c_1 n_{t-1} - ... -
c_{b-1} n_{t-b+1}, divided by c_0. The guarantee (`schedules/cyclic_poisson.py`): a record's rounds lie at least b
apart, so what it adds to C times the sums in different rounds has disjoint support, each of norm at most the clip.

The last b - 1 vectors n are kept in memory, secret, and never stored. Or nothing is kept (`keeps=False`): n_t is the
sum of w_i z_{t-i}, where w are the coefficients of 1/c(x), and every z is made again from the key of its step, so
step t makes t vectors. After a crash, or if a round was skipped, C starts again: it stays banded with columns of norm
at most 1, since it consists of independent blocks.
"""

from collections.abc import Callable
from typing import Any

import numpy as np

from ..accounting.banded import band

Tensor = Any


class BandedNoise:
    """Turns independent noise z into n, step by step."""

    def __init__(self, bands: int, *, keeps: bool = True) -> None:
        self._band, self._keeps = band(bands).tolist(), keeps
        self.begin_anew()

    @property
    def is_independent(self) -> bool:
        """Whether every step has noise of its own."""
        return len(self._band) == 1

    def begin_anew(self) -> None:
        """Forget the earlier steps."""
        self._past: list[Tensor] = []  # of the steps before the last one, the newest first
        self._last: tuple[int, Tensor] | None = None  # where and what: made again, it is the same
        self._first = 0  # where this stretch of steps began

    def shared(self, noise: Tensor, slot: int, earlier: Callable[[int], Tensor]) -> Tensor:
        """The shared noise of the step at this place, instead of `noise`; the same when called again.

        `earlier(i)` is the independent noise of i steps before.
        """
        is_next = self._last is not None and self._last[0] in (slot, slot - 1)
        if not is_next:
            self._first = slot
        return (self._from_kept if self._keeps else self._from_earlier)(noise, slot, earlier)

    def _from_kept(self, noise: Tensor, slot: int, earlier: Callable[[int], Tensor]) -> Tensor:
        if self._last is not None and self._last[0] != slot:
            place, made = self._last
            self._past = [made, *self._past[: len(self._band) - 2]] if place + 1 == slot else []
        for weight, before in zip(self._band[1:], self._past, strict=False):
            noise.sub_(before, alpha=weight)
        noise.div_(self._band[0])
        self._last = slot, noise.clone()
        return noise

    def _from_earlier(self, noise: Tensor, slot: int, earlier: Callable[[int], Tensor]) -> Tensor:
        weights = inverse(self._band, slot - self._first + 1)
        noise.mul_(weights[0])
        for i, weight in enumerate(weights[1:], start=1):
            noise.add_(earlier(i), alpha=weight)
        self._last = slot, None
        return noise


def inverse(column: list[float], count: int) -> list[float]:
    """The first `count` coefficients of 1/c(x), the first column of C^-1."""
    from scipy.signal import lfilter

    start = np.zeros(count)
    start[0] = 1.0
    found: list[float] = lfilter([1.0], column, start).tolist()
    return found
