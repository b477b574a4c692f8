"""Noise made on a GPU: the law of `grid_normals`, from words of ChaCha20, the same bits on every device.

There is no GPU here. Everything but the kernel runs on a CPU as it does on a GPU; the kernel runs in Triton's
interpreter, and is compiled for real chips, where Triton is installed.
"""

import hashlib
import struct
import subprocess
import sys
from types import SimpleNamespace

import numpy as np
import pytest
from cryptography.hazmat.primitives.ciphers import Cipher, algorithms
from scipy.special import ndtr

torch = pytest.importorskip("torch", reason="torch is not installed (make test-torch)")

from torch import nn  # noqa: E402

from privamp.chance import grid_normals as exact  # noqa: E402
from privamp.mechanisms.gaussian import Gaussian  # noqa: E402
from privamp.testing import seeded_key, seeded_stream  # noqa: E402
from privamp.torch import PrivacyEngine, grid  # noqa: E402
from privamp.torch import device_normals as module  # noqa: E402

CPU = torch.device("cpu")


def numbers(stream, count):
    pieces = list(module.normal_pieces(stream, count, CPU))
    assert [at for at, _ in pieces] == list(range(0, count, module.PIECE))
    return torch.cat([made for _, made in pieces]).numpy() if pieces else np.empty(0, np.int64)


class Written:
    """A keystream whose bytes are written down."""

    def __init__(self, given):
        self._bytes = np.ascontiguousarray(given)

    def bytes(self, n):
        assert n == self._bytes.size
        return self._bytes


def by_numpy(stream, count):
    """The definition, number by number with words of OpenSSL, through the functions of `grid_normals`."""
    key, tables = stream.words(4).astype("<u8").tobytes(), exact.curve_tables()

    def block(nonce, place):
        cipher = Cipher(algorithms.ChaCha20(key, struct.pack("<IIII", place, nonce, 0, 0)), None)
        return np.frombuffer(cipher.encryptor().update(bytes(64)), np.uint8).copy()

    def drawn(word, fine):
        coarse, low = np.empty(1, np.int32), np.empty(1, np.uint8)
        given = np.concatenate([word, fine])
        slow = exact._by_bytes(given, np.empty(1, np.int64), coarse, low, tables)
        return (int(coarse[0]) << 8) + int(low[0]), slow.size == 0

    def number(place):
        words, bytes_ = (block(nonce, place // 16) for nonce in (0, 1))
        at = place % 16
        found, is_done = drawn(words[4 * at : 4 * at + 4].copy(), bytes_[at : at + 1])
        nonce = 2
        while not is_done:
            rest, nonce = block(nonce, place), nonce + 1
            made, accepted = exact._from_rest(Written(rest[:16]), stream, 1, tables)
            found, is_done = (int(made[0]), True) if accepted[0] else drawn(rest[16:20].copy(), rest[20:21])
        return found

    return np.array([number(place) for place in range(count)], np.int64)


@pytest.mark.parametrize("count", [0, 1, 15, 16, 17, 20_000])
def test_numbers_are_those_of_the_definition(count):
    assert np.array_equal(numbers(seeded_stream(1), count), by_numpy(seeded_stream(1), count))


def test_a_number_depends_on_its_place_alone(monkeypatch):
    whole = numbers(seeded_stream(2), 10_000)
    monkeypatch.setattr(module, "PIECE", 1024)
    assert np.array_equal(whole, numbers(seeded_stream(2), 10_000))
    assert np.array_equal(whole[:5000], numbers(seeded_stream(2), 5000))


def test_what_doubles_leave_open_is_decided_by_digits(monkeypatch):
    """Every comparison left open, at its first attempt or later, gives the same numbers."""
    expected = numbers(seeded_stream(2), 3000)
    open_tables = module._tables(CPU)._replace(margin=torch.full((exact.CELLS + 2,), 1e300, dtype=torch.float64))
    monkeypatch.setattr(module, "_tables", lambda device: open_tables)
    assert int((module._by_torch(seeded_stream(2).words(4).tobytes(), 0, 3000) <= module._UNCLEAR // 2).sum()) > 10
    assert np.array_equal(numbers(seeded_stream(2), 3000), expected)


def distance(values, cdf):
    """Kolmogorov's statistic: above 3.3 with probability 7e-10 under the law."""
    ranks = np.arange(1, values.size + 1) / values.size
    return np.abs(ranks - cdf(np.sort(values))).max() * np.sqrt(values.size)


def test_numbers_are_normal_and_mistakes_are_caught():
    drawn = numbers(seeded_stream(3), 400_000)
    x = drawn * 2.0**-exact.GRID_BITS
    assert distance(x, ndtr) < 3.3
    assert distance((drawn & 2**20 - 1) * 2.0**-20, lambda u: u) < 3.3  # the low bits are uniform
    assert distance(x * 1.03, ndtr) > 3.3
    assert distance(x[np.abs(x) > 0.03], ndtr) > 3.3


def test_the_comparison_under_the_curve_is_that_of_grid_normals():
    """For points of every cell and of the tail, beside the curve too."""
    tables, chosen = exact.curve_tables(), np.random.default_rng(4)
    units = np.bincount(tables.guide, minlength=exact.CELLS + 2)
    assert units[: exact.CELLS + 1].max() < 2**15  # so an offset fits into 63 bits
    high = np.repeat(np.arange(2**16, dtype=np.uint64), 4) << np.uint64(48)
    points = high | chosen.integers(0, 2**48, high.size, dtype=np.uint64)
    places = chosen.integers(0, 2**64, high.size, dtype=np.uint64)
    expected = exact._from_rest(
        Written(np.concatenate([points, places]).view(np.uint8)), seeded_stream(5), high.size, tables
    )
    block = torch.zeros((high.size, 16), dtype=torch.int32)  # whose next number is in a cell: 0, or fine
    block[:, :4] = torch.from_numpy(np.stack([points, places], axis=1).view("<i4").copy())
    made = module._attempted(block, 3, module._tables(CPU)).numpy()
    cells = tables.guide[points >> np.uint64(48)]
    assert np.array_equal(made == module._UNCLEAR - 3, cells == exact.CELLS)  # the tail; the margin is hit by no point
    is_clear = cells != exact.CELLS
    assert np.array_equal((made != 0)[is_clear], expected[1][is_clear])
    assert np.array_equal(made[is_clear & expected[1]], expected[0][is_clear & expected[1]])


def test_the_numbers_belong_to_the_key():
    """A saved digest: the noise of a key stays the same in every version."""
    digest = hashlib.sha256(numbers(seeded_stream(6), 50_000).astype("<i8").tobytes()).hexdigest()
    assert digest[:16] == "07685799ca2628a3"


def test_a_step_adds_the_numbers_of_the_device(monkeypatch):
    """With float sums and with exact sums, in any pieces."""
    monkeypatch.setattr(grid, "makes_noise", lambda device: True)
    monkeypatch.setattr(grid, "is_worth_compiling", lambda count: False)
    one, two = (nn.Parameter(torch.zeros(size)) for size in (2000, 3000))
    made = grid.Grid(Gaussian(1.5, sensitivity=1.0), 5000, 8.0)
    noise = torch.from_numpy(by_numpy(seeded_stream(7), 5000)).double()
    sums = {id(two): torch.arange(3000.0)}
    units = torch.cat([torch.zeros(2000), (torch.arange(3000.0).double() / made.unit).round()])
    found = made.noisy(seeded_stream(7), [one, two], sums, torch.float64)
    assert torch.equal(found, (noise + units) * (made.unit / 8.0))
    whole = {id(two): torch.arange(3000)}
    found = made.noisy(seeded_stream(7), [one, two], whole, torch.float64)
    assert torch.equal(found, (noise + torch.cat([torch.zeros(2000), torch.arange(3000.0)])) * (made.unit / 8.0))


def test_a_device_that_computes_other_numbers_is_not_used(monkeypatch):
    """Planted: a kernel that fails, and one whose words are off by one bit."""
    monkeypatch.setattr(module, "is_installed", lambda name: True)
    gpu, right = SimpleNamespace(type="cuda"), module._known_numbers(CPU)
    asked = module.makes_noise.__wrapped__
    monkeypatch.setattr(module, "_known_numbers", lambda device: right)
    assert asked(gpu)
    assert not asked(CPU)
    monkeypatch.setattr(module, "_known_numbers", lambda device: right if device == CPU else right ^ 1)
    assert not asked(gpu)
    monkeypatch.setattr(module, "_known_numbers", lambda device: 1 // 0)
    assert not asked(gpu)


INTERPRETED = """
import torch
from privamp.testing import seeded_stream
from privamp.torch import device_kernels, device_normals as module
cpu, places = torch.device("cpu"), (0, 4096, 2**31 - 32, 2**32, 2**36 + 16)
for seed, start in enumerate(places):
    key, count = seeded_stream(seed).words(4).tobytes(), 700
    made = torch.zeros(704, dtype=torch.int64)
    words = torch.frombuffer(bytearray(key), dtype=torch.int32)
    tables = module._tables(cpu)
    device_kernels.fill(words, made, tables, start, module._BELOW_ALL, module._UNCLEAR, module.CELLS)
    assert torch.equal(made[:count], module._by_torch(key, start, count)), start
    open_ = tables._replace(margin=torch.full_like(tables.margin, 1e300))
    device_kernels.fill(words, made, open_, start, module._BELOW_ALL, module._UNCLEAR, module.CELLS)
    assert int((made == module._UNCLEAR).sum()) > 2
"""
COMPILED = """
import triton
from triton.backends.compiler import GPUTarget
from triton.compiler import ASTSource
from privamp.torch import device_kernels as kernels
types = {
    "key": "*i32", "numbers": "*i64", "first": "*i32", "guide": "*i64", "starts": "*i64", "floor": "*fp64",
    "margin": "*fp64", "scaled": "*fp64", "width": "*fp64", "start": "i64", "groups": "i32", "count": "i32",
    "below": "i64", "unclear": "i64", "cells": "constexpr", "together": "constexpr",
}
for kernel in (kernels._WORDS, kernels._REST):
    own = {name: types[name] for name in kernel.arg_names}
    fixed = {name: {"cells": 1024, "together": 128}[name] for name in own if own[name] == "constexpr"}
    for chip in (80, 90):
        source = ASTSource(fn=kernel, signature=own, constexprs=fixed)
        assert triton.compile(source, target=GPUTarget("cuda", chip, 32)).asm["cubin"]
"""


@pytest.mark.parametrize("script", [INTERPRETED, COMPILED], ids=["interpreted", "compiled"])
def test_the_kernels_make_the_same_numbers(script, monkeypatch, tmp_path):
    pytest.importorskip("triton", reason="Triton is not installed (it comes with torch for CUDA)")
    monkeypatch.setenv("TRITON_CACHE_DIR", str(tmp_path))
    if script is INTERPRETED:
        monkeypatch.setenv("TRITON_INTERPRET", "1")
    done = subprocess.run([sys.executable, "-W", "ignore", "-c", script], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


def test_a_guarantee_says_that_its_noise_comes_from_chacha20(monkeypatch):
    monkeypatch.setattr("privamp.torch.engine.makes_noise", lambda device: True)
    records = torch.utils.data.TensorDataset(torch.zeros(6, 2), torch.zeros(6, dtype=torch.long))
    model, made = nn.Linear(2, 2), PrivacyEngine(key=seeded_key(1))
    made.make_private(
        module=model, optimizer=torch.optim.SGD(model.parameters(), 0.1), criterion=nn.CrossEntropyLoss(),
        data_loader=records, sampler="uniform", sample_rate=0.5, steps=1, noise_multiplier=1.0, max_grad_norm=1.0,
        population=6,
    )  # fmt: skip
    assert module.CHACHA20 in made.guarantee().assumes
    monkeypatch.setattr("privamp.torch.engine.makes_noise", lambda device: False)
    assert module.CHACHA20 not in made.guarantee().assumes
