"""What sampling a Parquet file costs next to reading it, how much memory it takes, and how both grow with the rows.

    python benchmarks/local_sample.py                          5 million rows and memory up to 10 million
    python benchmarks/local_sample.py --rows 50000000 --most 1000000000
    python benchmarks/local_sample.py --folder /data --only read     files are kept there and used again
    python benchmarks/local_sample.py --rows 50000000 --threads 16 --files 16 --only read shuffled

Made-up files of an int64 id and ten doubles (Snappy, row groups of a million rows); with --files, a folder of so many,
written side by side. Every run is a process of its own; a time is the best of a few runs, taken in turns so that a busy
machine is busy for all of them. Each figure is a ratio to reading the same columns with pyarrow alone, by its own
scanner and by a leaner loop of one row group per thread. DuckDB and Polars take samples of the same rate where they are
installed.
"""

import argparse
import json
import os
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor
from importlib import import_module
from importlib.util import find_spec
from multiprocessing import get_context
from pathlib import Path

import numpy as np
import pyarrow as pa
from pyarrow import dataset, parquet

GROUP = 1_000_000
NAMES = [f"x{k}" for k in range(10)]
RULE = "importance:rule=privacy-constrained,epsilon=1,scale=30,radius=8,column="


def make(path: Path, rows: int, files: int, shuffled: bool = False) -> Path:
    """One file, or a folder of several, each of whole row groups and written by a process of its own."""
    if path.exists():
        return path
    if files == 1:
        write(path, rows, 0, rows, shuffled)
        return path
    path.mkdir()
    groups = -(-rows // GROUP)
    ends = [min(k * groups // files * GROUP, rows) for k in range(files + 1)]
    places = [path / f"{k:04}.parquet" for k in range(files)]
    with ProcessPoolExecutor(cores(), mp_context=get_context("spawn")) as pool:
        list(pool.map(write, places, [rows] * files, ends[:-1], ends[1:], [shuffled] * files))
    return path


def cores() -> int:
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def write(path: Path, rows: int, first: int, last: int, shuffled: bool) -> None:
    """Some of the rows, into one file."""
    rng = np.random.default_rng([1, first])
    order = np.random.default_rng(1).permutation(rows) if shuffled else None
    schema = pa.schema([("id", pa.int64()), *((name, pa.float64()) for name in NAMES)])
    with parquet.ParquetWriter(path, schema, compression="snappy") as writer:
        for start in range(first, last, GROUP):
            end = min(start + GROUP, last)
            ids = np.arange(start, end) if order is None else order[start:end]
            writer.write_table(pa.table([ids, *(rng.normal(size=end - start) for _ in NAMES)], schema=schema))


def files_of(path: Path) -> list[Path]:
    return sorted(path.glob("*.parquet")) if path.is_dir() else [path]


def pattern_of(path: str) -> str:
    """As DuckDB and Polars want it."""
    return f"{path}/*.parquet" if Path(path).is_dir() else path


def make_long(path: Path, rows: int) -> Path:
    """Running ids and a number that repeats, encoded so that very many rows take little disk."""
    schema = pa.schema([("id", pa.int64()), ("x", pa.float64())])
    encodings, ones = {"id": "DELTA_BINARY_PACKED"}, np.ones(GROUP)
    with parquet.ParquetWriter(path, schema, use_dictionary=["x"], column_encoding=encodings) as writer:
        for start in range(0, rows, GROUP):
            ids = np.arange(start, min(start + GROUP, rows))
            writer.write_table(pa.table([ids, ones[: ids.size]], schema=schema))
    return path


def make_wide(path: Path, rows: int = 600_000, columns: int = 100) -> Path:
    rng = np.random.default_rng(1)
    parquet.write_table(pa.table({f"x{k}": rng.normal(size=rows) for k in range(columns)}), path)
    return path


def read(path: str, threads: int, columns: list[str] | None = None) -> None:
    pa.set_cpu_count(threads)
    for _ in dataset.dataset(path).to_batches(columns=columns):
        pass


def read_in_groups(path: str, threads: int, columns: list[str] | None = None) -> None:
    """A leaner way to read with pyarrow alone: one row group per thread."""

    def one(group: dataset.Fragment) -> None:
        for _ in group.to_batches(columns=columns, use_threads=False, batch_readahead=0, fragment_readahead=0):
            pass

    groups = [group for file in dataset.dataset(path).get_fragments() for group in file.split_by_row_group()]
    with ThreadPoolExecutor(threads) as pool:
        list(pool.map(one, groups))


def sampled(design: str, id: str | None = None, columns: list[str] | None = None) -> Callable[[str, int], None]:
    def work(path: str, threads: int) -> None:
        from privamp import Key
        from privamp import spec as specs
        from privamp.engines import local

        out = f"{path}.{os.getpid()}.parquet"
        rows = rows_of(path)
        drawn = specs.design(design.format(rows=rows, part=rows // 100))
        try:
            local.write(path, drawn, out, key=Key.generate(), id=id, threads=threads, columns=columns)
        finally:
            Path(out).unlink(missing_ok=True)

    return work


def rows_of(path: str) -> int:
    return int(dataset.dataset(path).count_rows())


def summed(path: str, threads: int, id: str | None = None) -> None:
    from privamp import ExactLaplace, Key, Poisson
    from privamp.engines import local

    people = local.draw(path, Poisson(0.01), key=Key.generate(), id=id, threads=threads)
    people.release_sum(ExactLaplace(scale=1.0, sensitivity=1.0), dataset.dataset(path).schema.names[-1])


def duckdb_sample(path: str, threads: int) -> None:
    import duckdb

    out = f"{path}.{os.getpid()}.parquet"
    sample = f"SELECT * FROM '{pattern_of(path)}' USING SAMPLE 1 PERCENT (bernoulli)"
    try:
        with duckdb.connect(config={"threads": threads}) as base:
            base.execute(f"COPY ({sample}) TO '{out}' (FORMAT parquet)")
    finally:
        Path(out).unlink(missing_ok=True)


def polars_sample(path: str, threads: int) -> None:
    """Polars samples frames in memory; its threads are set when it is loaded."""
    os.environ["POLARS_MAX_THREADS"] = str(threads)
    import polars

    out = f"{path}.{os.getpid()}.parquet"
    try:
        polars.read_parquet(pattern_of(path)).sample(fraction=0.01).write_parquet(out)
    finally:
        Path(out).unlink(missing_ok=True)


WORK: dict[str, Callable[[str, int], None]] = {
    "read": read,
    "read, a row group per thread": read_in_groups,
    "Poisson, ids by place": sampled("poisson:rate=0.01"),
    "Poisson, ids in a column": sampled("poisson:rate=0.01", "id"),
    "constrained on 3 columns, by place": sampled(RULE + "+".join(NAMES[:3])),
    "constrained on 10 columns, by place": sampled(RULE + "+".join(NAMES)),
    "fixed size (two passes), ids": sampled("wor:size={part},population={rows}", "id"),
    "DuckDB, Bernoulli sample": duckdb_sample,
    "Polars, sample of a frame": polars_sample,
    "read the id alone": lambda path, threads: read(path, threads, ["id"]),
    "read the id alone, a group per thread": lambda path, threads: read_in_groups(path, threads, ["id"]),
    "Poisson of the id alone": sampled("poisson:rate=0.01", "id", ["id"]),
    "sum of one column, by place": summed,
    "sum of one column, ids": lambda path, threads: summed(path, threads, "id"),
}
SHUFFLED = ("read", "read, a row group per thread", "Poisson, ids in a column")
NEEDS = {"DuckDB, Bernoulli sample": ("duckdb",), "Polars, sample of a frame": ("polars",)}
OURS = ("privamp.spec", "privamp.engines.local")
ALL_COLUMNS = [name for name in WORK if "alone" not in name and "sum" not in name]
ID_ALONE = [name for name in WORK if "alone" in name]


def child(what: str, path: str, threads: int) -> None:
    for module in NEEDS.get(what, () if what.startswith("read") else OURS):
        import_module(module)
    wall, cpu = time.perf_counter(), time.process_time()
    WORK[what](path, threads)
    wall, cpu = time.perf_counter() - wall, time.process_time() - cpu
    print(json.dumps({"wall": wall, "cpu": cpu, "peak": peak_bytes()}))


def peak_bytes() -> int:
    """The most memory this process held; on Linux getrusage would also count the parent at the fork."""
    status = Path("/proc/self/status")
    if status.exists():
        return next(int(line.split()[1]) << 10 for line in status.read_text().splitlines() if "VmHWM" in line)
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * (1 if sys.platform == "darwin" else 1024)


def measured(names: list[str], path: Path, threads: int, repeats: int) -> dict[str, dict[str, float]]:
    best: dict[str, dict[str, float]] = {}
    for _ in range(repeats):
        for name in names:
            code = [sys.executable, __file__, "--child", name, str(path), str(threads)]
            environment = os.environ | {"POLARS_MAX_THREADS": str(threads)}
            done = subprocess.run(code, check=True, capture_output=True, text=True, env=environment)
            new = json.loads(done.stdout)
            old = best.get(name, new)
            best[name] = {"wall": min(new["wall"], old["wall"]), "cpu": min(new["cpu"], old["cpu"]),
                          "peak": max(new["peak"], old["peak"])}  # fmt: skip
    return best


def installed(names: list[str]) -> list[str]:
    missing = {name: module for name in names for module in NEEDS.get(name, ()) if find_spec(module) is None}
    for name, module in missing.items():
        print(f"{name} is left out, because {module} is not installed here.")
    return [name for name in names if name not in missing]


def show(title: str, names: list[str], path: Path, threads: int, repeats: int) -> None:
    names = installed(names)
    found = measured(names, path, threads, repeats)
    rows, size = rows_of(str(path)), sum(file.stat().st_size for file in files_of(path)) / 2**20
    print(f"\n{title}: {rows:,} rows, {len(files_of(path))} files, {size:.0f} MB, {threads} threads")
    print(f"{'':38}{'seconds':>9}{'× scanner':>11}{'× lean':>8}{'CPU × lean':>12}{'ns a row':>10}{'peak MB':>9}")
    scanner, lean, *_ = found.values()
    for name, each in found.items():
        ratios = each["wall"] / scanner["wall"], each["wall"] / lean["wall"], each["cpu"] / lean["cpu"]
        print(
            f"{name:38}{each['wall']:9.2f}{ratios[0]:11.2f}{ratios[1]:8.2f}{ratios[2]:12.2f}"
            f"{each['wall'] / rows * 1e9:10.1f}{each['peak'] / 2**20:9.0f}",
            flush=True,
        )


def memory(folder: Path, most: int) -> None:
    """Peaks of a job that holds no rows, and of one that writes them: of many rows, and of a wide file."""
    names = ["sum of one column, by place", "sum of one column, ids", "Poisson, ids in a column"]
    print("\nPeak memory, 2 threads")
    rows = GROUP
    while rows <= most:
        path = make_long(folder / "long.parquet", rows)
        peaks(f"{rows:,} rows of an id and a number", names, path)
        path.unlink()
        rows *= 10
    path = make_wide(folder / "wide.parquet")
    peaks("600,000 rows of 100 columns", [names[0], "Poisson, ids by place"], path)
    path.unlink()


def peaks(what: str, names: list[str], path: Path) -> None:
    size = path.stat().st_size / 2**20
    for name, found in measured(names, path, 2, 1).items():
        took = f"{found['wall']:8.2f} s {found['peak'] / 2**20:6.0f} MB"
        print(f"{what + f', {size:.0f} MB':50} {name:28} {took}", flush=True)


def run(given: argparse.Namespace, folder: Path) -> None:
    asked = given.only or ["read", "shuffled", "memory"]
    if "read" in asked:
        path = made("ids", given, folder)
        for threads in given.threads:
            show("an id and ten doubles", ALL_COLUMNS, path, threads, given.repeats)
        show("the id alone", ID_ALONE, path, given.threads[0], given.repeats)
    if "shuffled" in asked:
        path = made("shuffled", given, folder)
        show("shuffled ids, searched for repeats", list(SHUFFLED), path, given.threads[0], given.repeats)
    if "memory" in asked:
        memory(folder, given.most)


def made(what: str, given: argparse.Namespace, folder: Path) -> Path:
    began = time.perf_counter()
    name = f"{what}-{given.rows}" + (".parquet" if given.files == 1 else f"-{given.files}")
    path = make(folder / name, given.rows, given.files, shuffled=what == "shuffled")
    print(f"{path.name} made in {time.perf_counter() - began:.1f} s", flush=True)
    return path


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=int, default=5_000_000)
    parser.add_argument(
        "--most", type=int, default=10_000_000, help="rows of the longest file whose memory is measured"
    )
    parser.add_argument("--threads", type=int, nargs="+", default=[2, 1])
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--files", type=int, default=1, help="so many files hold the rows; they are made side by side")
    parser.add_argument("--only", choices=["read", "shuffled", "memory"], nargs="+", help="some of the figures")
    parser.add_argument("--folder", type=Path, help="where files are kept; a temporary folder when not given")
    parser.add_argument("--child", nargs=3, help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.child:
        what, path, threads = given.child
        child(what, path, int(threads))
    elif given.folder is not None:
        run(given, given.folder)
    else:
        with tempfile.TemporaryDirectory() as folder:
            run(given, Path(folder))


if __name__ == "__main__":
    main()
