"""Questions about CSV files: neighbouring files are written and read, with cells that change how readers guess types.

A record is a row of bytes, its id in the first cell. The others are written so that a guess is tempting: 01 and 1.5,
True, empty cells, and one record says otherwise.
"""

from collections.abc import Iterator
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np

from ...designs.poisson import Poisson
from ...queries import Table, open_table
from ...testing import seeded_key
from ...verify.hard_pairs import ADD_REMOVE, HardRecord, pairs_of
from ...verify.one_record import Pair
from .audit import RecordAudit
from .queries import Questions

_HEAD = b"id,code,x,flag,word\n"
_CODES = (b"01", b"2", b"", b"01")
_NUMBERS = (b"1", b"inf", b"0x10", b" 1.5 ", b"1e1000", b"")
_FLAGS = (b"True", b"false", b"1", b"")

_ASKED: dict[str, Questions] = {
    "counts": lambda t: [t.count(), t.count().by("code", ["01", "2", None]), t.count().by("flag", [True, False, None])],
    "numbers": lambda t: [
        t.mean("x", (0.0, 3.0)),
        t.sum("code", (0.0, 3.0)),
        t.histogram("x", 3, (0, 3), missing=True),
    ],
    "shares": lambda t: [t.proportion("flag"), t.proportion("code", 1), t.median("x", (0.0, 3.0))],
}

_HARD = {
    "a word": b"1000,Guam,n/k,maybe,w\n",
    "a fraction": b"1000,1.5,1.5,0.5,w\n",
    "a long number": b"1000,1180591620717411303424,1e400,2,w\n",
    "a date": b"1000,2020-01-01,2020-01-01,2020-01-01,w\n",
    "empty": b"1000,,,,\n",
    "too few cells": b"1000,01\n",
    "too many cells": b"1000,01,1,True,w,w,w\n",
    "no UTF-8": b"1000,\xff,\xff,\xff,\xff\n",
    "no UTF-8 and too few cells": b"1000,\xff\n",
    "quoted line ends": b'1000,"0\r\n1","1\n","a,b","say ""no"""\n',
    "a null byte": b"1000,\x00,\x001,\x00,\x00\n",
    "a cell longer than a block": b"1000,01,1,True," + b"w" * 1_200_000 + b"\n",
    "as the others": b"1000,01,1,True,w\n",
}


def _opened(path: Path) -> Any:
    return path


def _run(asked: Questions, rate: float, rows: list[bytes], read: Any = _opened) -> Any:
    with TemporaryDirectory() as folder:
        path = Path(folder) / "records.csv"
        path.write_bytes(_HEAD + b"".join(rows))
        table: Table = open_table(read(path), id="id", key=seeded_key(16), population="audit").sample(Poisson(rate))
        found = table.plan(asked(table)).run(epsilon=1.0)
    return [(r.value, r.noise_error, r.sampling_error, r.interval(), r.names, r.guarantee) for r in found]


def _rows(random: np.random.Generator, size: int) -> list[bytes]:
    def pick(some: tuple[bytes, ...]) -> bytes:
        return some[int(random.integers(len(some)))]

    return [b"%d,%s,%s,%s,w\n" % (k, pick(_CODES), pick(_NUMBERS), pick(_FLAGS)) for k in range(size)]


def _pairs(random: np.random.Generator) -> Iterator[Pair]:
    hard = [HardRecord(what, row) for what, row in _HARD.items()]
    for size in (0, 1, 14):
        yield from pairs_of(_rows(random, size), hard, changes=ADD_REMOVE, places=range(max(size, 1)))


def _audit(name: str, rate: float) -> RecordAudit:
    return RecordAudit(
        f"query of CSV files, {name}, Poisson({rate:g})", "a question to a CSV file",
        partial(_run, _ASKED[name], rate), _pairs, quick=len(_HARD),
    )  # fmt: skip


JOBS = [partial(_audit, "counts", 0.5), partial(_audit, "numbers", 1.0), partial(_audit, "shares", 1.0)]


def _guessed(path: Path) -> Any:
    from pyarrow import csv

    return csv.read_csv(path)


PLANTED = [
    lambda: RecordAudit(
        "query of CSV files, guessed types", "types from the data", partial(_run, _ASKED["counts"], 1.0, read=_guessed),
        _pairs,
    ),
]  # fmt: skip
