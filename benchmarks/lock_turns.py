"""What keeps a sample of a Parquet file from being as fast as it has cores: work that only one thread can do at a time.

    python benchmarks/lock_turns.py                            5 million rows in 16 files
    python benchmarks/lock_turns.py --rows 25000000 --folder /dev/shm/data

Python code runs in one thread at a time: the one that has Python's lock. Arrow, NumPy and the keyed function give it
back while they work, and take their turn again afterwards. Turns, the processor time spent with the lock, the time
before the first column is read and after the last one, and the time to encode the sample's file are counted on one
thread, so no machine with many cores is needed. The time on N threads is at least

    ends + max(with the lock, writing, all processor time / N),

and a turn that has to wait for another thread adds to it. A small library in C that is loaded before Python counts the
turns, so this needs Linux, a C compiler and a Python whose interpreter is a shared library. The files are those of
local_sample.py, and each figure is the least of three runs in a process of its own, after a first one. Ends include
what the job itself does there, as counting the rows and removing the sample.
"""

import argparse
import ctypes
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import local_sample
from pyarrow import parquet

COUNTER = """
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdatomic.h>
#include <time.h>

static void *(*give)(void);
static void (*take)(void *);
static atomic_long turns, held;
static __thread long since;
static __thread int known;

static long now(void) {
    struct timespec t;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
    return t.tv_sec * 1000000000L + t.tv_nsec;
}

void *PyEval_SaveThread(void) {
    if (!give) give = dlsym(RTLD_NEXT, "PyEval_SaveThread");
    if (known) held += now() - since;
    turns++;
    return give();
}

void PyEval_RestoreThread(void *thread) {
    if (!take) take = dlsym(RTLD_NEXT, "PyEval_RestoreThread");
    take(thread);
    since = now();
    known = 1;
}

void lock_turns(long *found) { found[0] = turns; found[1] = held; }
"""

REPEATS = 3
JOBS = [
    name for name in local_sample.WORK if "group per thread" in name or name.startswith(("Poisson", "con", "fixed"))
]


def compiled(folder: str) -> Path:
    """The counter as a library."""
    source, library = Path(folder) / "turns.c", Path(folder) / "turns.so"
    source.write_text(COUNTER)
    subprocess.run(["cc", "-O2", "-shared", "-fPIC", "-o", library, source, "-ldl"], check=True)
    return library


def counts() -> tuple[int, int]:
    """Turns so far, and nanoseconds with the lock."""
    try:
        count = ctypes.CDLL(None).lock_turns
    except AttributeError:
        sys.exit("turns are not counted; this Python is not a shared library")
    found = (ctypes.c_long * 2)()
    count(found)
    return found[0], found[1]


class Watched:
    """When columns are read, and for how long the sample is encoded."""

    def __init__(self) -> None:
        self.reads: list[float] = []
        self.writing = 0.0
        reading, writing = parquet.ParquetFile.read_row_groups, parquet.ParquetWriter.write_table

        def read(*given: Any, **options: Any) -> Any:
            began = time.perf_counter()
            found = reading(*given, **options)
            self.reads += began, time.perf_counter()
            return found

        def write(*given: Any, **options: Any) -> None:
            began = time.thread_time()
            writing(*given, **options)
            self.writing += time.thread_time() - began

        parquet.ParquetFile.read_row_groups, parquet.ParquetWriter.write_table = read, write


def child(what: str, path: str, threads: int) -> None:
    work = local_sample.WORK[what]
    work(path, threads)  # imports, and tables that are made once
    found = [once(lambda: work(path, threads), watched) for watched in [Watched()] * REPEATS]
    print(json.dumps({name: min(each[name] for each in found) for name in found[0]}))


def once(work: Callable[[], None], watched: Watched) -> dict[str, float]:
    watched.reads.clear()
    watched.writing = 0.0
    turns, held = counts()
    began, cpu = time.perf_counter(), time.process_time()
    work()
    ended, cpu = time.perf_counter(), time.process_time() - cpu
    after = counts()
    ends = min(watched.reads) - began + ended - max(watched.reads) if watched.reads else 0.0
    found = {"turns": after[0] - turns, "held": (after[1] - held) / 1e9, "cpu": cpu}
    return found | {"writing": watched.writing, "ends": ends}


def counted(what: str, path: Path, threads: int, library: Path) -> dict[str, float]:
    code = [sys.executable, __file__, "--child", what, str(path), str(threads)]
    environment = os.environ | {"LD_PRELOAD": str(library)}
    found: dict[str, float] = json.loads(
        subprocess.run(code, check=True, stdout=subprocess.PIPE, env=environment).stdout
    )
    return found


def show(path: Path, given: argparse.Namespace, library: Path) -> None:
    rows = local_sample.rows_of(str(path))
    print(f"{rows:,} rows, {len(local_sample.files_of(path))} files, {given.threads} threads; ns a row, ends in ms")
    heads = ("turns/10^6", "CPU", "lock", "writing", "ends", f"least on {given.cores}")
    print(f"{'':38}" + "".join(f"{head:>12}" for head in heads))
    for what in given.jobs or JOBS:
        found = counted(what, path, given.threads, library)
        most = max(found["held"], found["writing"], found["cpu"] / given.cores)
        least = (found["ends"] + most) / rows * 1e9
        ns = [found[name] / rows * 1e9 for name in ("cpu", "held", "writing")]
        print(
            f"{what:38}{found['turns'] / rows * 1e6:12.0f}" + "".join(f"{each:12.2f}" for each in ns)
            + f"{found['ends'] * 1e3:12.1f}{least:12.2f}",
            flush=True,
        )  # fmt: skip


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=int, default=5_000_000)
    parser.add_argument("--files", type=int, default=16)
    parser.add_argument("--threads", type=int, default=1, help="on which it is counted")
    parser.add_argument("--cores", type=int, default=16, help="for which the least time is computed")
    parser.add_argument("--jobs", nargs="+", choices=JOBS)
    parser.add_argument("--folder", type=Path, help="where files are kept; a temporary folder when not given")
    parser.add_argument("--child", nargs=3, help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.child:
        what, path, threads = given.child
        child(what, path, int(threads))
        return
    with tempfile.TemporaryDirectory() as folder:
        name = f"ids-{given.rows}-{given.files}"
        path = local_sample.make((given.folder or Path(folder)) / name, given.rows, given.files)
        show(path, given, compiled(folder))


if __name__ == "__main__":
    main()
