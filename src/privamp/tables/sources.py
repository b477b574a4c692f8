"""Data sources: files and folders (Parquet, CSV, Feather) and frames, in pieces that can be read one by one.

A piece is a range of consecutive rows: a few row groups of a Parquet file, or a whole file of another kind
(pieces.py). Rows have a fixed order, by file name and then by position, so that a row's offset can be its id. Reading
is bounded: a batch at a time per piece, and no read-ahead.
"""

import os
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from glob import escape, glob, has_magic
from pathlib import Path
from typing import Any
from urllib.request import url2pathname

from ..errors import InvalidInput
from ..extras import missing
from . import folders
from .addresses import fragments_at, is_address
from .csv_ids import exactly_read
from .csv_text import CsvText
from .lakes import check_plain, check_plain_inside
from .pieces import InMemory, Piece, divided, pieces_of, readable

try:
    import pyarrow as pa
    from pyarrow import dataset, fs
except ModuleNotFoundError as error:
    raise missing(error, "reading files and frames") from None

_WAY_OUT = "read it on Spark, or write it to plain files first"

Paths = str | os.PathLike[str] | Sequence[str | os.PathLike[str]]


GUESSED = "the types of a CSV file's columns are public: Arrow guesses them, so one record may change them or stop it"


@dataclass(frozen=True, slots=True)
class Source:
    """A schema and the pieces of all rows, in order; `assumes` lists what reading them treats as public."""

    schema: pa.Schema
    pieces: tuple[Piece, ...]
    assumes: tuple[str, ...] = ()

    @property
    def rows(self) -> int | None:
        """How many rows there are, if that is known without reading."""
        counts = [piece.rows for piece in self.pieces]
        return None if None in counts else sum(count or 0 for count in counts)

    def divided(self, least: int) -> "Source":
        """The same rows in at least so many pieces, or in as many as there can be."""
        return replace(self, pieces=divided(self.pieces, least))


def files(paths: Paths, *, id: str | None = None, as_text: bool = False) -> Source:
    """The given files, or those in a folder (with partitions like region=north, which become columns), here or at an
    address that fsspec reads.

    Whole numbers in the column `id` must be written in one way, even where a file's numbers are text (CSV). With
    `as_text` nothing is guessed: all columns of CSV files (csv_text.py), and those of partitions, are text.
    """
    several = [paths] if isinstance(paths, (str, os.PathLike)) else list(paths)
    if not several:
        raise InvalidInput("there is no file to sample from; give at least one")
    found = sorted((each for path in several for each in _found(path, as_text)), key=lambda each: each[0])
    _check_once([name for name, _, _ in found])
    schema = _agreed([(name, schema) for name, schema, _ in found])
    read = [
        (name, schema, fragment if isinstance(fragment, CsvText) else exactly_read(fragment, schema, id))
        for name, _, fragment in found
    ]
    pieces = tuple(
        piece
        for name, schema, fragment in read
        for piece in pieces_of(name, schema, fragment, is_local=not is_address(name))
    )
    is_guessed = not as_text and any(name.lower().endswith(".csv") for name, _, _ in found)
    return Source(schema, pieces, assumes=(GUESSED,) if is_guessed else ())


def arrow_dataset(data: Any) -> Source:
    """A pyarrow data set or scanner: the rows and columns that it gives itself, without loading them.

    The files of a data set are read in the order of their names. What is filtered or not made of files, and a scanner,
    is read in its own order, from its beginning for every pass.
    """
    if isinstance(data, dataset.Scanner):
        schema = data.projected_schema.remove_metadata()
        return Source(schema, (Piece("the scanner", None, _Scanned(data), schema),))
    schema = data.schema.remove_metadata()
    try:
        fragments = sorted(data.get_fragments(), key=lambda each: each.path)
    except (AttributeError, ValueError):  # not of files, or filtered
        return Source(schema, (Piece("the data set", None, _Rescanned(data), schema),))
    _check_once([each.path for each in fragments if isinstance(each.filesystem, fs.LocalFileSystem)])
    pieces = tuple(piece for each in fragments for piece in pieces_of(each.path, schema, each))
    is_guessed = any(isinstance(each.format, dataset.CsvFileFormat) for each in fragments)
    return Source(schema, pieces, assumes=(GUESSED,) if is_guessed else ())


def check_apart(paths: Any, out: str | os.PathLike[str]) -> None:
    """A sample must not become part of the data, nor replace it."""
    several = [paths] if isinstance(paths, (str, os.PathLike)) else list(paths)
    target = Path(os.path.realpath(out))
    for path in (each for given in several if not is_address(given) for each in named_paths(given)):
        data = Path(os.path.realpath(path))
        if target == data or data in target.parents:
            raise InvalidInput(f"{os.fspath(out)!r} is or lies in the data itself; write the sample elsewhere")


def table(data: pa.Table) -> Source:
    """A table in memory, or a frame as one."""
    return Source(data.schema, (Piece("the table", data.num_rows, InMemory(data), data.schema),))


def named_paths(path: str | os.PathLike[str]) -> list[Path]:
    """The path itself, that of a file:// address, or all that match a pattern such as people/*.parquet."""
    text = os.fspath(path)
    if text.lower().startswith("file:"):
        text = _addressed(text)
    elif "://" in text:
        raise InvalidInput(f"{text!r} is not on this machine; copy it here first")
    if os.path.exists(text) or not has_magic(text):
        return [Path(text)]
    matching = sorted(glob(text, recursive=True))
    if not matching:
        raise InvalidInput(f"no file matches {text!r}; check the pattern")
    return [Path(each) for each in matching]


def _addressed(address: str) -> str:
    """The path of a file:// address."""
    place = address[len("file:") :]
    if "?" in place or "#" in place:  # it would end there, and another file of that name might be read
        raise InvalidInput(f"{address!r} has a '?' or '#' in its path; write %3F or %23, or omit file://")
    machine, _, path = place[2:].partition("/") if place.startswith("//") else ("", "", place)
    if machine not in ("", "localhost"):
        raise InvalidInput(f"{address!r} names a file on another machine; copy it here first")
    return url2pathname("/" + path.lstrip("/") if place.startswith("/") else path)


def _agreed(schemas: Sequence[tuple[str, pa.Schema]]) -> pa.Schema:
    """The columns of all files, in the order of the first; whole numbers take the widest type that occurs."""
    first, agreed = schemas[0]
    for name, other in schemas[1:]:
        if sorted(other.names) != sorted(agreed.names) or len(set(other.names)) < len(other.names):
            widened = None if other != agreed else agreed
        else:
            kinds = [_widest(each.type, other.field(each.name).type) for each in agreed]
            widened = None if None in kinds else pa.schema(map(pa.field, agreed.names, kinds))
        if widened is None:
            raise InvalidInput(
                f"{name!r} has other columns or types than {first!r}, but the files of one data set must agree; cast "
                "them first"
            )
        agreed = agreed if other == agreed else widened
    return agreed


def _widest(one: pa.DataType, other: pa.DataType) -> pa.DataType | None:
    if one == other:
        return one
    for alike in (pa.types.is_signed_integer, pa.types.is_unsigned_integer):
        if alike(one) and alike(other):
            return max(one, other, key=lambda kind: kind.bit_width)
    return None


def _check_once(names: Sequence[str]) -> None:
    """A file that is read twice would duplicate each of its records."""
    seen: dict[Any, str] = {}
    for name in names:
        if is_address(name):
            first = seen.setdefault(name, name)
        else:
            with readable(name):
                is_at = os.stat(name)
            first = seen.setdefault((is_at.st_dev, is_at.st_ino), name)
        if first is not name:
            raise InvalidInput(
                f"{name!r} is given twice, or is the same file as {first!r}: each of its records would count twice; "
                "give it once"
            )


def _found(path: str | os.PathLike[str], as_text: bool) -> list[tuple[str, pa.Schema, Any]]:
    if is_address(path):
        return fragments_at(str(path), as_text)
    return [fragment for each in named_paths(path) for fragment in _fragments(each, as_text)]


def _fragments(path: Path, as_text: bool) -> list[tuple[str, pa.Schema, Any]]:
    """(file name, schema with partition columns, fragment) of every file."""
    where = str(path)
    with readable(where):
        if not path.exists():
            raise FileNotFoundError
        _check_plain(path)
        files = _named(path)
        kind = folders.kind_of(files, path)
        if kind == "csv" and as_text:
            texts = [CsvText.of(file, folders.folders_of(file, path)) for file in files]
            return [(each.path, each.schema, each) for each in texts]
        found = dataset.dataset(where, format=kind, partitioning=folders.partitions(files, path, as_text))
        if not found.files:
            raise InvalidInput(f"the folder {where!r} has no {kind} file; give another folder")
        keys = folders.keys_of(files, path, found.schema)
    return [(each.path, _whole_schema(each, keys), each) for each in found.get_fragments()]


def _has(folder: str, pattern: str) -> bool:
    return bool(glob(os.path.join(escape(folder), pattern)))


def _whole_schema(fragment: Any, keys: Iterable[pa.Field]) -> pa.Schema:
    with readable(fragment.path):
        return folders.whole_schema(fragment.physical_schema, keys)


def _check_plain(path: Path) -> None:
    for place in dict.fromkeys((path.absolute(), path.resolve())):
        check_plain([str(each) for each in (place, *place.parents)], _has, _WAY_OUT)


def _named(path: Path) -> list[Path]:
    """The file itself, or those in the folder as Arrow lists them: in linked folders, too, which rglob omits."""
    if path.is_file():
        return [path]
    for each in path.rglob("*"):
        if each.is_symlink() and not each.exists() and folders.is_shown(each, path):
            raise InvalidInput(f"{str(each)!r} is a link to what is not there, so records are missing; fetch it")
    inside = fs.LocalFileSystem().get_file_info(fs.FileSelector(str(path), recursive=True))
    check_plain_inside([Path(each.path).relative_to(path) for each in inside], str(path), _WAY_OUT)
    listed = sorted(Path(each.path) for each in inside if each.is_file)
    return [file for file in listed if folders.is_shown(file, path)]


@dataclass(frozen=True, slots=True)
class _Rescanned:
    """A data set that is read like a fragment."""

    data: Any

    def to_batches(self, columns: list[str], batch_size: int, **_: Any) -> Iterator[pa.RecordBatch]:
        yield from self.data.to_batches(columns=columns, batch_size=batch_size, use_threads=False)


@dataclass(frozen=True, slots=True)
class _Scanned:
    """A scanner that is read like a fragment; it has chosen its columns and its batches already."""

    scanner: Any

    def to_batches(self, columns: list[str], **_: Any) -> Iterator[pa.RecordBatch]:
        try:
            batches = iter(self.scanner.to_batches())
            for batch in batches:
                yield batch.select(columns)
        except pa.ArrowInvalid as error:
            if "already scanned" in str(error):
                raise InvalidInput("'the scanner' can be read only once; make it from a data set or a table") from None
            raise
