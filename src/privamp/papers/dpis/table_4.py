"""DPIS Table 4: adaptive clipping on and off."""

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from ..printed import Check, said
from ..registry import Entry, Outcome
from .accuracies import ADAPTS, OURS, reproduced
from .cells import Cell, changed
from .cells import table_4 as rows_of_table
from .figure_1 import DPIS
from .measured import Accuracy
from .printed_tables import EPSILONS, TABLE_3, TABLE_4
from .settings import DATA

NOTICED = 0.4  # points: the smallest gain printed for IMDb is 0.5
HERE = EPSILONS[:4]


def sentences() -> Iterator[Check]:
    """Check section 5.5 and the agreement with Table 3."""
    yield from about({data: [a - b for a, b in zip(*rows, strict=True)] for data, rows in TABLE_4.items()})
    for data, rows in TABLE_4.items():
        used = rows[0] if data == "IMDb" else rows[1]
        for epsilon, here, there in zip(HERE, used, TABLE_3[data]["DPIS"], strict=False):
            yield Check(f"{data}, epsilon {epsilon:g}: the same run as in Table 3", f"{there}", f"{here} in Table 4",
                        abs(here - there) < 0.15)  # fmt: skip


def about(gains: Mapping[str, Sequence[float]], of: str = "") -> Iterator[Check]:
    """Check what the text says about the gain of adaptive clipping at each epsilon, in points."""
    shown = {data: ", ".join(f"{g:+.1f}" for g in row) for data, row in gains.items()}
    if "IMDb" not in gains:
        return
    improves = min(gains["IMDb"]) >= NOTICED
    why = ADAPTS if of else ""
    yield said(f"{of}IMDb: adaptive clipping noticeably improves DPIS", improves, shown["IMDb"], differs=why)
    for data in (d for d in gains if d != "IMDb"):
        less = max(gains[data]) < min(gains["IMDb"])
        yield said(f"{of}{data}: adaptive clipping is less effective", less, shown[data], differs=why)


def of_ours(found: Mapping[Cell, Accuracy]) -> Iterator[Check]:
    """Compare section 5.5 with our own accuracies."""
    pairs = {d: [(changed(d, e, "adaptive clipping"), changed(d, e, "a fixed clip")) for e in HERE] for d in DATA}
    complete = {d: row for d, row in pairs.items() if all(cell in found for pair in row for cell in pair)}
    yield from about({d: [found[a].mean - found[b].mean for a, b in row] for d, row in complete.items()}, OURS)


def run(out_dir: Path) -> Outcome:
    """Show the stored runs of the full setting, and train both on MNIST in seconds at epsilon 2."""
    return _reproduced(out_dir, False)


def full(out_dir: Path) -> Outcome:
    """Train every cell now (minutes on a GPU)."""
    return _reproduced(out_dir, True)


def _reproduced(out_dir: Path, full: bool) -> Outcome:
    rows = list(rows_of_table())
    quick = [row for row in rows if (row[1].data, row[1].epsilon) == ("MNIST", 2.0)]
    return reproduced(out_dir, ENTRY, rows, sentences(), of_ours, quick, full)


ENTRY = Entry(
    name="dpis-table-4",
    paper=DPIS,
    title="Table 4: adaptive clipping",
    summary="sentences about the table, agreement with Table 3, and our own training on three data sets",
    run=run,
    full=full,
)
