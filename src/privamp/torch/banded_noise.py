"""Noise that rounds share: the sum of many steps has less of it, at the same privacy.

Step t adds n_t, with n = C^-1 z, z independent of standard deviation sigma * clip and C the banded matrix of
`accounting/banded.py`, whose columns have norm at most 1. C n = z says that n_t is z_t - c_1 n_{t-1} - ... -
c_{b-1} n_{t-b+1}, divided by c_0. The guarantee (`schedules/cyclic_poisson.py`): a record's rounds lie at least b
apart, so what it adds to C times the sums in different rounds has disjoint support, each of norm at most the clip.

The last b - 1 vectors n are kept in memory, secret, and never stored. After a crash, or if a round was skipped, C
starts again: it stays banded with columns of norm at most 1, since it consists of independent blocks.
"""

from typing import Any

from ..accounting.banded import band

Tensor = Any


class BandedNoise:
    """Turns independent noise z into n, step by step."""

    def __init__(self, bands: int) -> None:
        self._band = band(bands).tolist()
        self.begin_anew()

    @property
    def is_independent(self) -> bool:
        """Whether every step has noise of its own."""
        return len(self._band) == 1

    def begin_anew(self) -> None:
        """Forget the earlier steps."""
        self._past: list[Tensor] = []  # of the steps before the last one, the newest first
        self._last: tuple[int, Tensor] | None = None  # where and what: made again, it is the same

    def shared(self, noise: Tensor, slot: int) -> Tensor:
        """The shared noise of the step at this place, instead of `noise`; the same when called again."""
        if self._last is not None and self._last[0] != slot:
            place, made = self._last
            self._past = [made, *self._past[: len(self._band) - 2]] if place + 1 == slot else []
        for weight, before in zip(self._band[1:], self._past, strict=False):
            noise.sub_(before, alpha=weight)
        noise.div_(self._band[0])
        self._last = slot, noise.clone()
        return noise
