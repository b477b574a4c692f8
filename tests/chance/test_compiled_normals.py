"""The compiled passes give the bits of the others."""

import numpy as np
import pytest

pytest.importorskip("numba", reason="numba is not installed (make test-fast)")

from privamp.chance import compiled_normals
from privamp.chance.grid_normals import BLOCK, grid_normals
from privamp.testing import seeded_stream


@pytest.mark.parametrize("count", [1, 1000, BLOCK + 777])
def test_numbers_are_the_same_to_the_last_bit(count, monkeypatch):
    found = []
    for worth_it in (0, 2**62):
        monkeypatch.setattr(compiled_normals, "_WORTH_IT", worth_it)
        found.append(grid_normals(seeded_stream(5), count))
    assert np.array_equal(*found)


@pytest.mark.parametrize("kind", [np.float32, np.float64])
@pytest.mark.parametrize("drop", [0, 3])
def test_noisy_sums_are_the_same_to_the_last_bit(kind, drop):
    """Rounding edges, halves, sums beyond the largest and what is no number, against NumPy."""
    rng = np.random.default_rng(1)
    coarse = rng.integers(-(2**27), 2**27, 5000).astype(np.int32)
    fine = rng.integers(0, 256, 5000).astype(np.uint8)
    sums = np.concatenate([rng.normal(size=4000) * 1e4, rng.integers(-99, 99, 990) + 0.5, [1e30, -np.inf, np.nan]])
    sums = np.resize(sums, 5000).astype(kind)
    inverse, largest, scale = 1.0 / 0.37, 2.0**49, 0.37 / 256.0
    found = np.empty(5000, kind)
    compiled_normals.added()(coarse, fine, 2.0**-drop, sums, inverse, largest, scale, found)
    noise = (coarse.astype(np.int64) << 8 | fine) >> drop
    units = np.clip(np.rint(sums.astype(np.float64) * inverse), -largest, largest)
    assert np.array_equal(found, ((noise + units) * scale).astype(kind), equal_nan=True)
    if drop:  # planted: bits that are cut off toward zero
        assert not np.array_equal(noise, np.trunc((coarse.astype(np.int64) << 8 | fine) * 2.0**-drop))
