"""How a table is read for a draw, and where a sample is written: public options that do not change who is drawn.

Every field is also a keyword of the call: `sample(table, design, key=key, trust_ids=True)` and
`sample(table, design, key=key, options=TableOptions(trust_ids=True))` are the same.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TypedDict

from .kernel import Reads

Progress = Callable[[int, int | None], None]  # rows done, rows in all where that is known
DRIVER_RECORDS = 20_000_000  # about half a gigabyte of keyed numbers


@dataclass(frozen=True, slots=True, kw_only=True)
class TableOptions:
    """How the local engine reads files and frames."""

    columns: Sequence[str] | None = None  # of the kept rows; all by default
    reads: Reads | None = None  # the columns that the design reads, if they have other names
    clip: bool = False  # an importance rule decides by the record clipped to its ball
    trust_ids: bool = False  # skip the search for repeated ids
    threads: int | None = None  # every core by default
    progress: Progress | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class WriteOptions(TableOptions):
    """How a sample is read and written to a secret file."""

    overwrite: bool = False
    spec: str | None = None  # the spec of the design, stored in the file


@dataclass(frozen=True, slots=True, kw_only=True)
class SparkOptions:
    """How the Spark engine reads a table."""

    reads: Reads | None = None
    clip: bool = False
    trust_ids: bool = False
    driver_records: int = DRIVER_RECORDS  # the most records a design that holds everyone may bring to the driver


class TableKeywords(TypedDict, total=False):
    """The fields of `TableOptions`, as keywords of a call."""

    columns: Sequence[str] | None
    reads: Reads | None
    clip: bool
    trust_ids: bool
    threads: int | None
    progress: Progress | None


class WriteKeywords(TableKeywords, total=False):
    """The fields of `WriteOptions`, as keywords of a call."""

    overwrite: bool
    spec: str | None


class SparkKeywords(TypedDict, total=False):
    """The fields of `SparkOptions`, as keywords of a call."""

    reads: Reads | None
    clip: bool
    trust_ids: bool
    driver_records: int
