"""The data sets of DPIS as tensors: pixels, scattering features, or the first 80 words of a review."""

from functools import lru_cache
from typing import Any, Final

import numpy as np

from ...torch.encoding import pictures, sequences
from ..data import shared_file
from .scattering import features

FILES: Final = {"MNIST": "mnist.npz", "FMNIST": "fashion_mnist.npz", "IMDb": "imdb_tokens.npz"}


@lru_cache(maxsize=3)
def raw(data: str, records: int, tests: int) -> tuple[Any, Any, Any, Any]:
    """Training and test records with their labels: the first ones in a fixed random order."""
    with np.load(shared_file(FILES[data])) as file:
        found = []
        for part, count in (("train", records), ("test", tests)):
            labels = file[f"y_{part}"]
            chosen = np.random.default_rng(0).permutation(len(labels))[:count]
            x = sequences(file[f"tokens_{part}"], file[f"offsets_{part}"]) if data == "IMDb" else file[f"X_{part}"]
            found += [x[chosen], labels[chosen].astype(np.int64)]
    return tuple(found)


@lru_cache(maxsize=3)
def examples(data: str, records: int, tests: int, scattered: bool, device: str) -> tuple[Any, Any, Any, Any]:
    """The same as tensors on a device: features, pixels from -1 to 1, or word ids."""
    import torch

    def tensor(x: Any) -> Any:
        if scattered:
            return features(x, device)
        return torch.from_numpy(x if data == "IMDb" else pictures(x)).to(device)

    x, y, x_test, y_test = raw(data, records, tests)
    labels = (torch.from_numpy(part).to(device) for part in (y, y_test))
    return tensor(x), next(labels), tensor(x_test), next(labels)
