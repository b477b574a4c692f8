"""Output of an entry: aligned text, CSV, pictures and one page, written once all of them are ready."""

import csv
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from io import StringIO
from pathlib import Path
from typing import TYPE_CHECKING

from ..atomic_files import write_atomically
from ..report.html import Report, png_of
from .printed import HEADER, Check, as_expected, counted
from .registry import Entry, Outcome

if TYPE_CHECKING:
    from matplotlib.figure import Figure


def columns(header: Sequence[str], rows: Iterable[Sequence[object]]) -> str:
    """Plain text in aligned columns.

    >>> print(columns(["design", "eta"], [["wor", "0.4"], ["wr", "0.33"]]))
    design  eta
    wor     0.4
    wr      0.33
    """
    lines = [tuple(header), *(tuple(str(cell) for cell in row) for row in rows)]
    widths = [max(len(line[i]) for line in lines) for i in range(len(header))]
    return "\n".join(
        "  ".join(cell.ljust(width) for cell, width in zip(line, widths, strict=True)).rstrip() for line in lines
    )


def csv_of(header: Sequence[str], rows: Iterable[Sequence[object]]) -> bytes:
    """The text of a CSV file; floats keep all their digits."""
    buffer = StringIO()
    writer = csv.writer(buffer, lineterminator="\n")
    writer.writerow(header)
    writer.writerows(rows)
    return buffer.getvalue().encode("utf-8")


def publish(
    out_dir: Path, name: str, text: str, checks: Iterable[Check], report: Report, others: Mapping[str, bytes]
) -> Outcome:
    """Write `name.html` and the other files (by their endings) into the folder."""
    compared = tuple(checks)
    contents = {f"{name}{ending}": data for ending, data in others.items()}
    contents[f"{name}.html"] = report.html().encode("utf-8")
    out_dir.mkdir(parents=True, exist_ok=True)
    written = tuple(write_atomically(out_dir / file, data) for file, data in contents.items())
    return Outcome(text, written, as_expected(compared), compared)


@dataclass(frozen=True, slots=True)
class Picture:
    """A figure with its caption and a text description for screen readers."""

    figure: "Figure"
    caption: str
    description: str


@dataclass(frozen=True, slots=True)
class Table:
    """A table of numbers with column names and a caption."""

    header: Sequence[str]
    rows: Sequence[Sequence[object]]
    caption: str


def compared(
    out_dir: Path, entry: Entry, checks: Sequence[Check], *, remark: str = "", table: Table | None = None,
    picture: Picture | None = None,
) -> Outcome:  # fmt: skip
    """The usual page: findings, picture, numbers, and every printed statement next to our result."""
    parts = [columns(HEADER, (c.row for c in checks)), remark, f"{counted(checks)}."]
    others = {".csv": csv_of(HEADER, (c.row for c in checks))}
    report = Report(f"{entry.paper}: {entry.title}", f"{counted(checks)}.")
    if remark:
        report.add_text(remark)
    if picture:
        report.add_figure(picture.figure, picture.caption, picture.description)
        others[".png"] = png_of(picture.figure)
    if table:
        report.add_table(table.header, table.rows, table.caption)
        parts.insert(0, columns(table.header, table.rows))
        others["-numbers.csv"] = csv_of(table.header, table.rows)
    marked = [i for i, c in enumerate(checks) if not c.agrees]
    report.add_table(HEADER, [c.row for c in checks], "Printed values and ours.", marked)
    return publish(out_dir, entry.name, "\n\n".join(filter(None, parts)), checks, report, others)
