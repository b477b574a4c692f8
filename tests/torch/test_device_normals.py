"""Noise made on a GPU: the law of `grid_normals`, from words of ChaCha20, the same bits on every device.

There is no GPU here. Everything but the kernel runs on a CPU as it does on a GPU; the kernel runs in Triton's
interpreter, and is compiled for real chips, where Triton is installed.
"""

import hashlib
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
    """The definition, word by word from OpenSSL, through the functions of `grid_normals`."""
    key, tables = stream.words(4).astype("<u8").tobytes(), exact.curve_tables()

    def bytes_under(nonce, size):
        cipher = Cipher(algorithms.ChaCha20(key, bytes(4) + nonce.to_bytes(4, "little") + bytes(8)), None)
        return np.frombuffer(cipher.encryptor().update(bytes(size)), np.uint8).copy()

    def drawn(words, fine):
        n = fine.size
        coarse, low = np.empty(n, np.int32), np.empty(n, np.uint8)
        given = np.concatenate([words.view(np.uint8), fine])
        slow = exact._by_bytes(given, np.empty(n, np.int64), coarse, low, tables)
        return coarse.astype(np.int64) << 8 | low, slow

    found, todo = drawn(bytes_under(0, 4 * count).view("<u4"), bytes_under(1, count))
    rest, used = bytes_under(2, 64 * count).view("<u4").reshape(-1, 16), 0
    while todo.size:
        block, used = rest[used : used + todo.size], used + todo.size
        pairs = np.ascontiguousarray(block[:, :4]).view("<u8")
        source = Written(np.concatenate([pairs[:, 0], pairs[:, 1]]).view(np.uint8))
        found[todo], is_done = exact._from_rest(source, stream, todo.size, tables)
        todo, block = todo[~is_done], block[~is_done]
        redrawn, slow = drawn(np.ascontiguousarray(block[:, 4]), (block[:, 5] & 255).astype(np.uint8))
        found[todo] = redrawn
        todo = todo[slow]
    return found


@pytest.mark.parametrize("count", [0, 1, 63, 64, 65, 100_000])
def test_numbers_are_those_of_the_definition(count):
    assert np.array_equal(numbers(seeded_stream(1), count), by_numpy(seeded_stream(1), count))


def test_pieces_do_not_repeat_words(monkeypatch):
    """The same words in pieces; only the numbers that belong to no cell take their blocks in another order."""
    whole = numbers(seeded_stream(2), 10_000)
    monkeypatch.setattr(module, "PIECE", 1024)
    parts = numbers(seeded_stream(2), 10_000)
    differ = np.flatnonzero(whole != parts)
    assert np.array_equal(whole[:1024], parts[:1024])
    assert differ.size < 10_000 / 32  # a share of 1/64 belongs to no cell
    assert np.unique(parts[:5000]).size == np.unique(parts).size - np.unique(parts[5000:]).size


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
    block = torch.from_numpy(np.stack([points, places], axis=1).view("<i4").copy())
    found = module._from_rest(block, seeded_stream(5), module._tables(CPU))
    assert np.array_equal(found[1].numpy(), expected[1])
    assert np.array_equal(found[0].numpy()[expected[1]], expected[0][expected[1]])


def test_the_numbers_belong_to_the_key():
    """A saved digest: the noise of a key stays the same in every version."""
    digest = hashlib.sha256(numbers(seeded_stream(6), 50_000).astype("<i8").tobytes()).hexdigest()
    assert digest[:16] == "20e36a8046be93f4"


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
import struct
import numpy as np, torch
from cryptography.hazmat.primitives.ciphers import Cipher, algorithms
from privamp.torch import chacha_kernel
key = bytes(range(32))
for nonce, first, count in [(0, 0, 5), (7, 1, 300), (2**32 - 1, 2**32 - 200, 200), (1, 2**31 - 3, 9)]:
    start = np.frombuffer(key + struct.pack("<II", first, nonce), "<i4").astype(np.int32)
    found = torch.zeros((count, 16), dtype=torch.int32)
    chacha_kernel.fill(torch.from_numpy(start), found)
    cipher = Cipher(algorithms.ChaCha20(key, struct.pack("<IIII", first, nonce, 0, 0)), None)
    assert found.numpy().astype("<i4").tobytes() == cipher.encryptor().update(bytes(64 * count)), nonce
"""
COMPILED = """
import triton
from triton.backends.compiler import GPUTarget
from triton.compiler import ASTSource
from privamp.torch import chacha_kernel
types = {"start": "*i32", "out": "*i32", "count": "i32", "together": "constexpr"}
source = ASTSource(fn=chacha_kernel._BLOCKS, signature=types, constexprs={"together": 128})
for chip in (80, 90):
    assert triton.compile(source, target=GPUTarget("cuda", chip, 32)).asm["cubin"]
"""


@pytest.mark.parametrize("script", [INTERPRETED, COMPILED], ids=["interpreted", "compiled"])
def test_the_kernel_is_chacha20(script, monkeypatch, tmp_path):
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
