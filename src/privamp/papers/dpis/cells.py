"""The cells of Tables 3 to 6 on the available data sets: what to train, and what is printed there.

The tables overlap: the paper's choices of Table 2 at epsilon 1 appear in all of them. Such a cell is trained once.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Final

from .printed_tables import EPSILONS, GROWTHS, SPLITS, TABLE_3, TABLE_4, TABLE_5, TABLE_6
from .settings import ADAPTIVE, DATA, DPIS_OPTIONS, FIXED

CHANGES: Final[dict[str, dict[str, Any]]] = {
    "adaptive clipping": ADAPTIVE,
    "a fixed clip": FIXED,
    **{f"a_E = {split:g}": {"split": split} for split in SPLITS},
    **{f"k = {growth:g}": {"growth": growth} for growth in GROWTHS},
}


@dataclass(frozen=True, slots=True, order=True)
class Cell:
    """A method on a data set; `change` is what differs from Table 2, or empty."""

    data: str
    method: str
    epsilon: float
    change: str = ""

    @property
    def options(self) -> dict[str, Any]:
        """For `DPISPlan`."""
        return CHANGES[self.change] if self.change else {}

    def __str__(self) -> str:
        return ", ".join(filter(None, (self.data, self.method, f"epsilon {self.epsilon:g}", self.change)))


def changed(data: str, epsilon: float, change: str) -> Cell:
    """DPIS with one option of Table 2 changed; with the option of Table 2, the plain cell."""
    usual = {"external_clip": None, **DPIS_OPTIONS[data]}
    is_usual = all(usual.get(name) == value for name, value in CHANGES[change].items())
    return Cell(data, "DPIS", epsilon, "" if is_usual else change)


def table_3() -> Iterator[tuple[str, Cell, float]]:
    """What is printed, which cell it is, and the printed value."""
    for data in DATA:
        for method, row in TABLE_3[data].items():
            for epsilon, printed in zip(EPSILONS, row, strict=True):
                yield f"{data}, {method}, epsilon {epsilon:g}", Cell(data, method, epsilon), printed


def table_4() -> Iterator[tuple[str, Cell, float]]:
    """The same for adaptive clipping."""
    for data in DATA:
        for change, row in zip(("adaptive clipping", "a fixed clip"), TABLE_4[data], strict=True):
            for epsilon, printed in zip(EPSILONS, row, strict=False):  # up to 3
                yield f"{data}, epsilon {epsilon:g}, {change}", changed(data, epsilon, change), printed


def table_5() -> Iterator[tuple[str, Cell, float]]:
    """The same for a_E, at epsilon 1."""
    for data in DATA:
        for split, printed in zip(SPLITS, TABLE_5[data], strict=True):
            yield f"{data}, a_E = {split:g}", changed(data, 1.0, f"a_E = {split:g}"), printed


def table_6() -> Iterator[tuple[str, Cell, float]]:
    """The same for k, at epsilon 1."""
    for data in DATA:
        for growth, printed in zip(GROWTHS, TABLE_6[data], strict=True):
            yield f"{data}, k = {growth:g}", changed(data, 1.0, f"k = {growth:g}"), printed


def every_cell() -> list[Cell]:
    """Every cell once, in the order of the tables."""
    several = (cell for table in (table_3, table_4, table_5, table_6) for _, cell, _ in table())
    return list(dict.fromkeys(several))
