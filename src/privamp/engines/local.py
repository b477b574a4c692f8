"""The local engine: samples of files larger than memory and of frames, on the cores of one machine.

    sample(source, design, key=key, id="person")          kept rows, as the kind of frame that came in
    draw(source, design, key=key, id="person")            a sample with a ledger; rows stay in the file
    write(source, design, "sample.parquet", key=key, …)   the same, and the rows in a secret file
    open_sample("sample.parquet", design, key=key)        that file again

The columns that decide the draw are read first. The others are read only where rows were kept, and decoded once.
"""

import os
from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any, Unpack

import pyarrow as pa
from pyarrow.dataset import Dataset, FileSystemDataset, Scanner

from ..chance.keys import Key
from ..core.design import Design
from ..errors import InvalidInput
from ..tables import sources
from ..tables.secret_files import SECRET, check_output, described, described_in, private_writer
from ..validation import options_of, whole
from . import frames
from .earlier import drawn_before
from .kernel import COUNT, WEIGHT, Kernel
from .options import TableKeywords, TableOptions, WriteKeywords, WriteOptions
from .reading import Reading
from .stored_sample import StoredSample

_PATHS = (str, os.PathLike, list, tuple)

__all__ = ["SECRET", "draw", "open_sample", "sample", "write"]


def sample(
    source: Any,
    design: Design,
    *,
    key: Key,
    id: str | None = None,
    label: str | None = None,
    round: int = 0,
    options: TableOptions | None = None,
    **asked: Unpack[TableKeywords],
) -> Any:
    """The kept rows with privamp_weight and privamp_count: SECRET, and without a ledger.

    `source` is a pandas, Polars or Arrow frame or a DuckDB relation, and comes back as one; or a file, a folder or a
    list of files (Parquet, CSV, Feather), or a pyarrow data set or scanner, which come back as an Arrow table. Without
    an `id` column a row's position is its id: the sample is the same as long as the rows keep their order. Key, label
    and round determine the sample, as in `Design.draw`, and a stored key needs a label; `columns`, `reads`, `clip`,
    `trust_ids`, `threads` and `progress` are those of `TableOptions`.
    """
    read = options_of(TableOptions, options, asked)
    kernel = Kernel.of(design, key, id=id, label=label, round=round, reads=read.reads, clip=read.clip)
    if frames.kind_of(source) is not None:
        return _of_frame(source, kernel, read)
    job = _job(source, kernel, read)
    return pa.Table.from_batches(list(job.rows()), schema=job.schema)


def draw(
    source: Any,
    design: Design,
    *,
    key: Key,
    id: str | None = None,
    label: str | None = None,
    round: int = 0,
    options: TableOptions | None = None,
    **asked: Unpack[TableKeywords],
) -> StoredSample:
    """A sample with a ledger whose rows stay in the source: they are read again for every release.

    The source is one that `sample` takes, or a `tables.sources.Source`.
    """
    read = options_of(TableOptions, options, asked)
    kernel = Kernel.of(design, key, id=id, label=label, round=round, reads=read.reads, clip=read.clip)
    job = _job(source, kernel, read)
    return StoredSample(kernel, job.rows, job.schema, job.source.assumes)


def write(
    source: Any,
    design: Design,
    out: str | os.PathLike[str],
    *,
    key: Key,
    id: str | None = None,
    label: str | None = None,
    round: int = 0,
    options: WriteOptions | None = None,
    **asked: Unpack[WriteKeywords],
) -> StoredSample:
    """Write the kept rows to a Parquet or Feather file that only its owner can read; returns the stored sample.

    The file is written atomically. Its metadata hold the design, the fingerprint of the key and the ledger id,
    never the key. The same key, label, round and design write the same sample again. Keywords are `WriteOptions`.
    """
    read = options_of(WriteOptions, options, asked)
    kernel = Kernel.of(design, key, id=id, label=label, round=round, reads=read.reads, clip=read.clip)
    check_output(out, read.overwrite)
    if isinstance(source, (*_PATHS, FileSystemDataset)):
        sources.check_apart(source.files if isinstance(source, FileSystemDataset) else source, out)
    job = _job(source, kernel, read)
    facts = {**kernel.facts(key, label, round, read.spec), "assumes": list(job.source.assumes)}
    with private_writer(out, described(job.schema, facts), id=id, overwrite=read.overwrite) as write_batch:
        for batch in job.rows():
            write_batch(batch)
    return StoredSample(kernel, partial(_stored_rows, out), job.schema, job.source.assumes)


def open_sample(path: str | os.PathLike[str], design: Design, *, key: Key) -> StoredSample:
    """A sample that `write` wrote, one file. The key and the design must be those it was drawn with."""
    path = _one_file(path)
    facts = described_in(sources.files(path).pieces, path)
    drawn_as: dict[str, Any] = {"label": str(facts["label"]), "round": int(facts["round"])}
    before = drawn_before(Kernel.of(design, key, **drawn_as), key, facts, os.fspath(path))
    kernel = Kernel.of(design, key, **drawn_as, reads=facts["reads"], clip=bool(facts["clip"]))
    kept = replace(kernel, subkey=before.subkey)
    return StoredSample(kept, partial(_stored_rows, path), sources.files(path).schema, facts["assumes"])


def _one_file(path: str | os.PathLike[str]) -> Path:
    """Several samples added up would have the ledger of the first alone."""
    found = sources.named_paths(path)
    if len(found) != 1 or found[0].is_dir():
        raise InvalidInput(f"{os.fspath(path)!r} must be one file, which holds one sample; open each by itself")
    return found[0]


def _stored_rows(path: str | os.PathLike[str], columns: Sequence[str] | None = None) -> Iterator[pa.RecordBatch]:
    source = sources.files(path)
    names = source.schema.names if columns is None else dict.fromkeys([*columns, WEIGHT, COUNT])
    for piece in source.pieces:
        yield from piece.batches(list(names))


def _cores() -> int:
    """The cores that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def _job(source: Any, kernel: Kernel, read: TableOptions) -> Reading:
    if isinstance(source, sources.Source):
        found = source
    elif frames.kind_of(source) is not None:
        _check_order(source, kernel)
        found = sources.table(frames.as_table(frames.held(source), frames.names_of(source)))
    elif isinstance(source, (Dataset, Scanner)):
        found = sources.arrow_dataset(source)
    elif isinstance(source, _PATHS):
        found = sources.files(source, id=kernel.id)
    else:
        raise InvalidInput(
            "the source must be a file, a folder, an Arrow data set, or a pandas, Polars, DuckDB or Arrow frame, "
            f"got {type(source).__name__} instead"
        )
    kernel.schema(found.schema)
    wanted = tuple(found.schema.names if read.columns is None else read.columns)
    for name in wanted:
        if name not in found.schema.names:
            raise InvalidInput(f"the data has no column {name!r}; it has {', '.join(map(repr, found.schema.names))}")
    return Reading(found, kernel, wanted, read.trust_ids, _threads(read), read.progress)


def _threads(read: TableOptions) -> int:
    threads = _cores() if read.threads is None else read.threads
    whole(1, threads=threads)
    return threads


def _of_frame(frame: Any, kernel: Kernel, read: TableOptions) -> Any:
    _check_order(frame, kernel)
    for name in (WEIGHT, COUNT):
        if name in frames.names_of(frame):
            raise InvalidInput(f"the data has a column {name!r} already, which a sample adds; rename or drop it")
    held = frames.held(frame)
    decisive = sources.table(frames.as_table(held, kernel.uses))
    kernel.schema(decisive.schema)
    chosen = Reading(decisive, kernel, (), read.trust_ids, _threads(read)).chosen()
    return frames.rows_of(held, chosen, read.columns, like=frame)


def _check_order(frame: Any, kernel: Kernel) -> None:
    if kernel.id is None and frames.kind_of(frame) == "duckdb":
        raise InvalidInput("a DuckDB relation has no stable order, so its rows need ids; give their column with id=…")
