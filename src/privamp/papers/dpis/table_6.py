"""DPIS Table 6: the probability multiplier k at epsilon 1 (the table does not say so; its numbers do)."""

from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path

from ..printed import Check, said
from ..registry import Entry, Outcome
from .accuracies import OURS, reproduced
from .cells import Cell, changed
from .cells import table_6 as rows_of_table
from .figure_1 import DPIS
from .measured import Accuracy
from .printed_tables import GROWTHS, TABLE_3, TABLE_6
from .settings import DATA

USED = {"MNIST": 5.0, "FMNIST": 5.0, "CIFAR-10": 5.0, "IMDb": 3.0}  # Table 2
SPREAD = 0.2  # points: the largest printed difference
RANGE = 4.4  # standard errors: the range of four equal means is below this 99 times in 100 (studentised range)


def sentences() -> Iterator[Check]:
    """Check 'insensitive to k', and the same run in Table 3."""
    for data, row in TABLE_6.items():
        spread = max(row) - min(row)
        yield said(f"{data}: insensitive to k from 3 to 6", spread <= SPREAD + 1e-4, f"{spread:.1f} points")
    for data, growth in USED.items():
        here, there = TABLE_6[data][GROWTHS.index(growth)], TABLE_3[data]["DPIS"][1]
        what = f"{data}, k = {growth:g}: near Table 3 at epsilon 1 (within 0.25)"
        yield Check(what, f"{there}", f"{here} in Table 6", abs(here - there) <= 0.25)


def of_ours(found: Mapping[Cell, Accuracy]) -> Iterator[Check]:
    """Check the same for our own accuracies, allowing for the range of four equal means."""
    for data in DATA:
        cells = [changed(data, 1.0, f"k = {growth:g}") for growth in GROWTHS]
        if all(cell in found for cell in cells):
            means = [found[cell].mean for cell in cells]
            chance = RANGE * (sum(found[cell].error ** 2 for cell in cells) / len(cells)) ** 0.5
            spread = max(means) - min(means)
            yield said(f"{OURS}{data}: insensitive to k from 3 to 6 (within 0.2 points and {RANGE} standard errors)",
                       spread <= SPREAD + chance, f"{spread:.2f} points; chance explains {chance:.2f}")  # fmt: skip


def run(out_dir: Path) -> Outcome:
    """Show the stored runs of the full setting, and train each k on MNIST in seconds (at epsilon 2: few records)."""
    return _reproduced(out_dir, False)


def full(out_dir: Path) -> Outcome:
    """Train every cell now (minutes on a GPU)."""
    return _reproduced(out_dir, True)


def _reproduced(out_dir: Path, full: bool) -> Outcome:
    rows = list(rows_of_table())
    quick = [(what, replace(cell, epsilon=2.0), value) for what, cell, value in rows if cell.data == "MNIST"]
    return reproduced(out_dir, ENTRY, rows, sentences(), of_ours, quick, full)


ENTRY = Entry(
    name="dpis-table-6",
    paper=DPIS,
    title="Table 6: the probability multiplier",
    summary="k from 3 to 6: sentences about the table, and our own training on three data sets",
    run=run,
    full=full,
)
