"""What an entry hands over: aligned text, CSV, pictures and one page, written once all of it is made."""

import csv
from collections.abc import Iterable, Mapping, Sequence
from io import StringIO
from pathlib import Path

from ..atomic_files import write_atomically
from ..report.html import Report
from .registry import Outcome


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
    """A CSV file; floats keep every digit."""
    buffer = StringIO()
    writer = csv.writer(buffer, lineterminator="\n")
    writer.writerow(header)
    writer.writerows(rows)
    return buffer.getvalue().encode("utf-8")


def publish(out_dir: Path, name: str, text: str, ok: bool, report: Report, others: Mapping[str, bytes]) -> Outcome:
    """Write `name.html` and the other files (by their endings) into the folder."""
    contents = {f"{name}{ending}": data for ending, data in others.items()}
    contents[f"{name}.html"] = report.html().encode("utf-8")
    out_dir.mkdir(parents=True, exist_ok=True)
    written = tuple(write_atomically(out_dir / file, data) for file, data in contents.items())
    return Outcome(text, written, ok)
