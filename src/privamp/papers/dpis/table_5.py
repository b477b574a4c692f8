"""DPIS Table 5: the budget scheduler a_E at epsilon 1 (the table does not say so; its numbers do)."""

from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path

from ..printed import Check, said
from ..registry import Entry, Outcome
from .accuracies import OURS, reproduced, two_errors
from .cells import Cell, changed
from .cells import table_5 as rows_of_table
from .figure_1 import DPIS
from .measured import Accuracy
from .printed_tables import SPLITS, TABLE_5
from .settings import DATA

USED = {"MNIST": 0.8, "FMNIST": 1.0, "CIFAR-10": 0.8, "IMDb": 0.8}  # Table 2
NEAR = 0.1  # points: the largest printed gap between a_E = 0.8 and the best


def sentences() -> Iterator[Check]:
    """Check that a_E = 0.8 'leads to favorable results on all datasets'."""
    at = SPLITS.index(0.8)
    for data, row in TABLE_5.items():
        yield said(f"{data}: a_E = 0.8 is favourable (within 0.1 of the best)", max(row) - row[at] <= NEAR + 1e-4,
                   f"{row[at]} of at most {max(row)}")  # fmt: skip
    for data, split in USED.items():
        row = TABLE_5[data]
        yield said(f"{data}: Table 2 uses the best a_E", row[SPLITS.index(split)] == max(row), f"a_E = {split:g}")


def of_ours(found: Mapping[Cell, Accuracy]) -> Iterator[Check]:
    """Check the same for our own accuracies, allowing two standard errors for chance."""
    for data in DATA:
        cells = [changed(data, 1.0, f"a_E = {split:g}") for split in SPLITS]
        if all(cell in found for cell in cells):
            best, here = max((found[cell] for cell in cells), key=lambda a: a.mean), found[cells[SPLITS.index(0.8)]]
            short, chance = best.mean - here.mean, two_errors(best, here)
            yield said(f"{OURS}{data}: a_E = 0.8 is favourable (within 0.1 of the best and two standard errors)",
                       short <= NEAR + chance, f"{short:.2f} below it; two standard errors {chance:.2f}")  # fmt: skip


def run(out_dir: Path) -> Outcome:
    """Show the stored runs of the full setting, and train each a_E on MNIST in seconds (at epsilon 2: few records)."""
    return _reproduced(out_dir, False)


def full(out_dir: Path) -> Outcome:
    """Train every cell now (minutes on a GPU)."""
    return _reproduced(out_dir, True)


def _reproduced(out_dir: Path, full: bool) -> Outcome:
    rows = list(rows_of_table())
    quick = [(what, replace(cell, epsilon=2.0), value) for what, cell, value in rows if cell.data == "MNIST"]
    return reproduced(out_dir, ENTRY, rows, sentences(), of_ours, quick, full)


ENTRY = Entry(
    name="dpis-table-5",
    paper=DPIS,
    title="Table 5: the budget scheduler",
    summary="a_E from 0 to 1: sentences about the table, and our own training on three data sets",
    run=run,
    full=full,
)
