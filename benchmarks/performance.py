"""The table of docs/performance.md in one run: what privamp costs beside its peers and beside what the machine can do.

    python benchmarks/performance.py                one minute, files of some 200 MB in a temporary folder
    python benchmarks/performance.py --rows 4000000

Three limits are measured first: copying memory, AES-256 of one block, and pyarrow's reading of a Parquet file. Every
row is a ratio to a peer or a limit of the same run (the least of a few repeats, in turns), so the machine cancels.
Then how the cost grows: the factor for four times as many records, columns or steps, and for one thread more.
"""

import argparse
import os
import platform
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pyarrow as pa
from cryptography.hazmat.primitives.ciphers import Cipher, algorithms, modes
from pyarrow import dataset, parquet

from privamp import (
    Gaussian,
    Laplace,
    Neighbors,
    Poisson,
    PrivateSum,
    WithoutReplacement,
    WithReplacement,
    amplify,
    calibrate,
    compose,
)
from privamp.chance.discrete import discrete_gaussian, discrete_laplace
from privamp.chance.keyed import keyed_numbers
from privamp.chance.keys import Key
from privamp.chance.stream import Stream
from privamp.chance.texts import Texts
from privamp.engines import local

Work = Callable[[], object]
RO = Neighbors.REPLACE_ONE
COLUMNS = 10
_BLOCKS = 16384
REPEATS = 3


def least(*works: Work) -> list[float]:
    """Seconds of each, the least of some repeats, taking turns."""
    best = [float("inf")] * len(works)
    for _ in range(REPEATS):
        for i, work in enumerate(works):
            began = time.perf_counter()
            work()
            best[i] = min(best[i], time.perf_counter() - began)
    return best


def row(what: str, figure: str, peer: str, ratio: float | None) -> None:
    print(f"| {what} | {figure} | {peer} | {'' if ratio is None else f'{ratio:.2f}'} |", flush=True)


def limits(records: int, path: Path) -> tuple[float, float, float]:
    """Seconds a byte copied, an AES block and a value read."""
    numbers, target = np.ones(1 << 24), np.ones(1 << 24)  # touched, so that no page is made while it is timed
    blocks, coded_blocks = bytes(16 * _BLOCKS), bytearray(16 * _BLOCKS + 16)  # in the cache, as the draws use it
    encrypt = Cipher(algorithms.AES(bytes(32)), modes.ECB()).encryptor()

    def encode() -> None:
        for _ in range(records // _BLOCKS):
            encrypt.update_into(blocks, coded_blocks)

    copied, coded, read = least(lambda: np.copyto(target, numbers), encode, lambda: read_all(path))
    coded /= records // _BLOCKS * _BLOCKS / records
    values = records * (COLUMNS + 1)
    row("memory, one thread", f"{16 * numbers.size / copied / 1e9:.1f} GB/s", "limit", None)
    row("AES-256, one block", f"{coded / records * 1e9:.1f} ns", "limit", None)
    row("pyarrow reads Parquet (Snappy)", f"{read / values * 1e9:.2f} ns a value", "limit", None)
    return copied / (16 * numbers.size), coded / records, read


def make(path: Path, records: int, columns: int = COLUMNS) -> Path:
    rng = np.random.default_rng(1)
    names = ["id", *(f"x{i}" for i in range(columns))]
    table = pa.table([np.arange(records), *(rng.normal(size=records) for _ in range(columns))], names=names)
    parquet.write_table(table, path, row_group_size=max(records // 8, 1), compression="snappy")
    return path


def read_all(path: Path) -> None:
    for _ in dataset.dataset(path).to_batches():
        pass


def sampled(path: Path, *, id: str | None = None, threads: int | None = None, spec: object = None) -> Work:
    def work() -> None:
        out = path.with_name(f"{path.stem}-{time.perf_counter_ns()}.parquet")
        local.write(path, spec or Poisson(0.01), out, key=Key.generate(), id=id, threads=threads)
        out.unlink()

    return work


def draws(records: int, block: float) -> None:
    ids, key = np.arange(records, dtype=np.uint64), Key.generate()
    texts = Texts.of(np.array([f"{i:036d}" for i in range(records // 10)]))
    whole, named = least(lambda: keyed_numbers(key, ids), lambda: keyed_numbers(key, texts))
    row(
        "keyed number of a whole-number id", f"{whole / records * 1e9:.1f} ns", "one AES block", whole / records / block
    )
    each = named / (records // 10)
    row("keyed number of a text id, 36 letters", f"{each * 1e9:.1f} ns", "three AES blocks", each / (3.0 * block))


def files(path: Path, records: int, read: float) -> None:
    for what, work in {
        "Poisson sample of a Parquet file, ids by place": sampled(path),
        "Poisson sample, id column": sampled(path, id="id"),
        "fixed size, id column": sampled(path, id="id", spec=WithoutReplacement(records // 100, records)),
    }.items():
        again, here = least(lambda: read_all(path), work)
        row(what, f"{here / records * 1e9:.0f} ns a row", "pyarrow reads all columns", here / min(again, read))


def sums(records: int, byte: float) -> None:
    X = np.random.default_rng(2).normal(size=(records, COLUMNS)).clip(-1, 1)
    job = PrivateSum(bounds=(-1.0, 1.0), epsilon=1.0, sampler=Poisson(0.5))
    here, plain = least(lambda: job.release(X), lambda: X.sum(axis=0))
    row("sum of 10 columns, draw to answer", f"{here / records * 1e9:.0f} ns a row", "NumPy's sum", here / plain)
    row("the same", "", "reading the rows once", here / (8 * X.size * byte))


def noise(draws: int = 500_000) -> None:
    stream = Stream.from_os()
    floats, laplace, gaussian = least(
        lambda: stream.laplaces(draws),
        lambda: discrete_laplace(stream, 64, draws),
        lambda: discrete_gaussian(stream, 64, draws),
    )
    row("discrete Laplace noise", f"{laplace / draws * 1e9:.0f} ns", "Laplace noise as floats", laplace / floats)
    row("discrete Gaussian noise", f"{gaussian / draws * 1e9:.0f} ns", "Laplace noise as floats", gaussian / floats)


def accounting() -> None:
    poisson, fixed, copies = Poisson(0.01), WithoutReplacement(100, 1000), WithReplacement(100, 1000)
    cases: dict[str, Work] = {
        "epsilon of one release, Poisson": lambda: amplify(Gaussian(1.0), poisson).epsilon(1e-6),
        "epsilon of one release, fixed size": lambda: amplify(Gaussian(1.0, neighbors=RO), fixed).epsilon(1e-6),
        "epsilon of one release, with replacement": lambda: amplify(Gaussian(1.0, neighbors=RO), copies).epsilon(1e-6),
        "epsilon of 1,000 rounds, Poisson": lambda: compose(amplify(Gaussian(1.0), poisson), 1000).epsilon(1e-6),
        "epsilon of 100 rounds, fixed size": lambda: compose(amplify(Gaussian(4.0, neighbors=RO), fixed), 100).epsilon(
            1e-6
        ),
        "noise for 1,000 rounds, Poisson": lambda: calibrate(Gaussian, poisson, epsilon=1.0, delta=1e-6, steps=1000),
        "noise of one sum, Laplace": lambda: calibrate(Laplace, poisson, epsilon=1.0),
    }
    for what, work in cases.items():
        began = time.perf_counter()
        work()
        row(what, f"{(time.perf_counter() - began) * 1e3:.0f} ms", "", None)


def growth(folder: Path, records: int) -> None:
    ids, key = np.arange(records, dtype=np.uint64), Key.generate()
    few, many = least(lambda: keyed_numbers(key, ids[: records // 4]), lambda: keyed_numbers(key, ids))
    row("keyed numbers, 4 times the records", "", "", many / few)
    small, wide = make(folder / "small.parquet", records // 4), make(folder / "wide.parquet", records // 4, 4 * COLUMNS)
    one, four, broad = least(sampled(small), sampled(folder / "all.parquet"), sampled(wide))
    row("Poisson sample of a file, 4 times the records", "", "", four / one)
    row("Poisson sample of a file, 4 times the columns", "", "", broad / one)
    alone, together = least(
        sampled(folder / "all.parquet", threads=1), sampled(folder / "all.parquet", threads=os.cpu_count())
    )
    row(f"Poisson sample of a file, {os.cpu_count()} threads instead of 1", "", "", together / alone)
    release = amplify(Gaussian(4.0), Poisson(0.01))
    hundred, more = least(lambda: compose(release, 1000).epsilon(1e-6), lambda: compose(release, 4000).epsilon(1e-6))
    row("composition, 4 times the rounds", "", "", more / hundred)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rows", type=int, default=1_000_000)
    records = parser.parse_args().rows
    print(f"{os.cpu_count()} cores ({platform.machine()}), Python {platform.python_version()}, NumPy {np.__version__},")
    print(f"pyarrow {pa.__version__}; {records:,} records\n\n| what | cost | beside | ratio |\n|---|---|---|---|")
    with tempfile.TemporaryDirectory() as folder:
        path = make(Path(folder) / "all.parquet", records)
        byte, block, read = limits(records, path)
        draws(records, block)
        files(path, records, read)
        sums(records, byte)
        noise()
        accounting()
        print("\n| what grows | | | factor |\n|---|---|---|---|")
        growth(Path(folder), records)


if __name__ == "__main__":
    main()
