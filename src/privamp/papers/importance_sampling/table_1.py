"""IS Table 1: rows, columns, largest norm and mean squared norm of the data sets after the paper's preparation."""

from collections.abc import Iterator, Sequence
from pathlib import Path

from ..files import compared
from ..printed import Check, agrees, apart
from ..registry import Entry, Outcome
from .data_sets import FILES, NOT_HERE, PART, PRINTED, Rows, read
from .figure_2 import IS

WHAT = ("rows", "columns", "largest norm", "mean squared norm")
QUICK, FULL = ("Ijcnn1", "KDD-Protein"), tuple(FILES)


def facts(rows: Rows) -> tuple[float, float, float, float]:
    """The four numbers."""
    norms = rows.norms
    return float(len(rows.x)), float(rows.x.shape[1]), float(norms.max()), float((norms**2).mean())


def checks(name: str, rows: Rows) -> Iterator[Check]:
    """One line of the table."""
    for what, printed, ours in zip(WHAT, PRINTED[name], facts(rows), strict=True):
        shown = f"{ours:.8g}" if what in WHAT[2:] else f"{ours:.0f}"
        if name == "RNA" and what != "columns":
            yield apart(f"{name}: {what}", printed, PART, shown)
        else:
            yield Check(f"{name}: {what}", printed, shown, agrees(ours, printed))


def reproduced(out_dir: Path, names: Sequence[str]) -> Outcome:
    """Read, compare and write the files."""
    found = [check for name in names for check in checks(name, read(name))]
    for name in PRINTED:
        if name not in names:
            why = NOT_HERE if name not in FILES else "only with --full"
            found += [apart(f"{name}: {w}", p, why) for w, p in zip(WHAT, PRINTED[name], strict=True)]
    return compared(out_dir, ENTRY, found)


def run(out_dir: Path) -> Outcome:
    """Run on two data sets, in seconds."""
    return reproduced(out_dir, QUICK)


def full(out_dir: Path) -> Outcome:
    """Run on the four available data sets."""
    return reproduced(out_dir, FULL)


ENTRY = Entry(
    name="is-table-1",
    paper=IS,
    title="Table 1: the data sets",
    summary="sizes and norms after the preparation (needs the data files; four of eight are available)",
    run=run,
    full=full,
    errata="is-experiments-what-was-taken-from-the-data",
)
