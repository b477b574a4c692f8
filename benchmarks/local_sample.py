"""What sampling a Parquet file costs next to reading it, how much memory it takes, and how both grow with the rows.

    python benchmarks/local_sample.py                          5 million rows and a curve up to a million
    python benchmarks/local_sample.py --rows 50000000 --curve 100000000

Made-up files of 5 columns with row groups of a million rows. Every run is a process of its own; a time is the best of
a few runs, taken in turns so that a busy machine is busy for all of them. Each figure is a ratio to reading the same
columns with pyarrow alone, or bytes; nanoseconds are for orientation.
"""

import argparse
import json
import os
import resource
import subprocess
import sys
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pyarrow as pa
from pyarrow import dataset, parquet

from privamp import spec as specs
from privamp.chance.keys import Key
from privamp.engines import local

GROUP = 1_000_000
SPECS = {
    "poisson": "poisson:rate=0.01",
    "constrained": "importance:rule=privacy-constrained,epsilon=1,scale=30,radius=8,column=a+b+c",
    "fixed size": "wor:size=10000,population=10000",
}


def make(path: Path, rows: int, shuffled: bool = False) -> None:
    rng = np.random.default_rng(1)
    order = rng.permutation(rows) if shuffled else None
    kinds = [("id", pa.int64()), ("age", pa.int32()), ("a", pa.float64()), ("b", pa.float64()), ("c", pa.float64())]
    with parquet.ParquetWriter(path, pa.schema(kinds)) as writer:
        for start in range(0, rows, GROUP):
            n = min(GROUP, rows - start)
            ids = np.arange(start, start + n) if order is None else order[start : start + n]
            columns = [ids, rng.integers(0, 100, n, dtype=np.int32), *(rng.normal(size=n) for _ in range(3))]
            writer.write_table(pa.table(columns, schema=pa.schema(kinds)))


def read(path: str, threads: int) -> None:
    pa.set_cpu_count(threads)
    for _ in dataset.dataset(path).to_batches():
        pass


def read_in_groups(path: str, threads: int) -> None:
    """A leaner way to read with pyarrow alone: one row group per thread."""

    def one(group: dataset.Fragment) -> None:
        for _ in group.to_batches(use_threads=False, batch_readahead=0, fragment_readahead=0):
            pass

    groups = [group for file in dataset.dataset(path).get_fragments() for group in file.split_by_row_group()]
    with ThreadPoolExecutor(threads) as pool:
        list(pool.map(one, groups))


def sample(path: str, threads: int, spec: str, id: str | None) -> None:
    out = f"{path}.{os.getpid()}.parquet"
    try:
        local.write(
            path, specs.design(spec), out, key=Key.generate(), id=id, threads=threads, clip="importance" in spec
        )
    finally:
        Path(out).unlink(missing_ok=True)


def child(what: str, path: str, threads: int, id: str | None) -> None:
    wall, cpu = time.perf_counter(), time.process_time()
    if what == "read":
        read(path, threads)
    elif what == "groups":
        read_in_groups(path, threads)
    else:
        sample(path, threads, SPECS[what], id)
    wall, cpu = time.perf_counter() - wall, time.process_time() - cpu
    print(json.dumps({"wall": wall, "cpu": cpu, "peak": peak_bytes()}))


def peak_bytes() -> int:
    """The most memory this process held; on Linux getrusage would also count the parent at the fork."""
    status = Path("/proc/self/status")
    if status.exists():
        return next(int(line.split()[1]) << 10 for line in status.read_text().splitlines() if "VmHWM" in line)
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * (1 if sys.platform == "darwin" else 1024)


def measured(jobs: dict[str, list[str]], repeats: int) -> dict[str, dict[str, float]]:
    best: dict[str, dict[str, float]] = {}
    for _ in range(repeats):
        for name, arguments in jobs.items():
            done = subprocess.run(
                [sys.executable, __file__, "--child", *arguments], check=True, capture_output=True, text=True
            )
            new = json.loads(done.stdout)
            old = best.get(name, new)
            best[name] = {"wall": min(new["wall"], old["wall"]), "cpu": min(new["cpu"], old["cpu"]),
                          "peak": max(new["peak"], old["peak"])}  # fmt: skip
    return best


def show(title: str, found: dict[str, dict[str, float]], rows: int) -> None:
    print(f"\n{title}")
    print(f"{'':34}{'seconds':>9}{'× reading':>11}{'CPU × reading':>15}{'ns a row':>10}{'peak MB':>9}")
    base = found["read"]
    for name, each in found.items():
        ratio, cpu = each["wall"] / base["wall"], each["cpu"] / base["cpu"]
        print(
            f"{name:34}{each['wall']:9.2f}{ratio:11.2f}{cpu:15.2f}{each['wall'] / rows * 1e9:10.1f}"
            f"{each['peak'] / 2**20:9.0f}"
        )


def jobs_for(path: Path, threads: int) -> dict[str, list[str]]:
    return {
        "read": ["read", str(path), str(threads), ""],
        "read, a row group per thread": ["groups", str(path), str(threads), ""],
        "Poisson, ids by place": ["poisson", str(path), str(threads), ""],
        "Poisson, ids in a column": ["poisson", str(path), str(threads), "id"],
        "privacy-constrained, ids by place": ["constrained", str(path), str(threads), ""],
        "fixed size (two passes), ids": ["fixed size", str(path), str(threads), "id"],
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=int, default=5_000_000)
    parser.add_argument("--curve", type=int, default=1_000_000, help="largest file of the curve, from 100000 on")
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--folder", help="where the files go; a temporary folder when not given")
    parser.add_argument("--child", nargs=4, help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.child:
        what, path, threads, id = given.child
        child(what, path, int(threads), id or None)
        return
    with tempfile.TemporaryDirectory(dir=given.folder) as folder:
        path = Path(folder) / "data.parquet"
        make(path, given.rows)
        for threads in (2, 1):
            found = measured(jobs_for(path, threads), given.repeats)
            show(f"{given.rows:,} rows, {path.stat().st_size / 2**20:.0f} MB, {threads} threads", found, given.rows)
        make(path, given.rows, shuffled=True)
        jobs = jobs_for(path, 2)
        jobs = {name: jobs[name] for name in ("read", "Poisson, ids in a column")}
        show(f"{given.rows:,} rows with shuffled ids, 2 threads", measured(jobs, given.repeats), given.rows)
        print("\nGrowth: seconds (× reading) and peak MB, Poisson and privacy-constrained, ids by place")
        rows = 100_000
        while rows <= given.curve:
            make(path, rows)
            for threads in (1, 2):
                jobs = jobs_for(path, threads)
                found = measured(
                    {name: jobs[name] for name in ("read", *[n for n in jobs if "place" in n])}, given.repeats
                )
                base, *others = found.values()
                line = "".join(
                    f"{o['wall']:9.3f} ({o['wall'] / base['wall']:5.2f}) {o['peak'] / 2**20:5.0f}" for o in others
                )
                print(f"{rows:>12,} rows, {threads} threads, read {base['wall']:8.3f} {line}")
            rows *= 10


if __name__ == "__main__":
    main()
