"""Random numbers that a model or a data set draws by itself (dropout, augmentation), made a function of the key."""

import contextlib
import random
from collections.abc import Iterator
from typing import Any

import numpy as np
import torch

from ..chance.keys import Key


def seed_of(key: Key) -> int:
    """A seed for generators that are not cryptographic: 56 bits of a derived key."""
    return int.from_bytes(key.fingerprint[:7], "little")


class Surroundings:
    """The state of torch's generators, saved now and restored later."""

    def __init__(self, device: Any) -> None:
        self._cpu = torch.get_rng_state()
        self._cuda = torch.cuda.get_rng_state(device) if device.type == "cuda" else None
        self._device = device

    def seed(self, seed: int) -> None:
        """Begin with this seed on the processor and the device."""
        torch.default_generator.manual_seed(seed)
        if self._cuda is not None:
            with torch.cuda.device(self._device):
                torch.cuda.manual_seed(seed)

    def restore(self) -> None:
        """Put back the seeds and flags that were found."""
        torch.set_rng_state(self._cpu)
        if self._cuda is not None:
            torch.cuda.set_rng_state(self._cuda, self._device)


@contextlib.contextmanager
def reading() -> Iterator[Any]:
    """Yields a function that seeds torch, NumPy and Python for the next read; all are restored at the end."""
    torchs, numpys, pythons = torch.get_rng_state(), np.random.get_state(), random.getstate()

    def seed(number: int) -> None:
        torch.default_generator.manual_seed(number)
        np.random.seed(number % 2**32)
        random.seed(number)

    try:
        yield seed
    finally:
        torch.set_rng_state(torchs)
        np.random.set_state(numpys)
        random.setstate(pythons)
