"""The list of examples: what each is, in which kind of file it comes, and how to write it."""

import csv
import io
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from ..atomic_files import draft_of
from ..errors import InvalidInput
from ..validation import meant
from . import made, stores

Columns = dict[str, "np.ndarray[Any, Any]"]


@dataclass(frozen=True, slots=True)
class Example:
    """One example: a table (`.csv`), arrays (`.npz`) or a budget store (`.db`)."""

    name: str
    about: str
    ending: str
    columns: Callable[[], Columns] | None = field(repr=False, default=None)
    store: Callable[[Path], None] | None = field(repr=False, default=None)

    def text(self) -> str:
        """The table as CSV; raises for an example that is not text."""
        if self.ending != ".csv" or self.columns is None:
            raise InvalidInput(
                f"the example {self.name!r} is not text; write it to a file with --out {self.name}{self.ending}"
            )
        columns = self.columns()
        lines = io.StringIO()
        rows = csv.writer(lines, lineterminator="\n")
        rows.writerow(columns)
        rows.writerows(zip(*(column.tolist() for column in columns.values()), strict=True))
        return lines.getvalue()

    def write(self, path: str | Path) -> None:
        """Write the example to a file that does not exist yet, with its ending."""
        target = Path(path)
        if target.suffix != self.ending:
            raise InvalidInput(f"{target.name!r} must end in {self.ending}, the kind of file {self.name!r} is")
        if target.exists():
            raise InvalidInput(f"{target.name!r} already exists; choose another name or remove it first")
        if not target.parent.is_dir():
            raise InvalidInput(f"there is no folder for {target.name!r}; create it first")
        if self.store is not None:
            self.store(target)
            return
        text = self.text().encode() if self.ending == ".csv" else b""
        with draft_of(target, over=False) as draft:
            if text:
                draft.write_bytes(text)
            elif self.columns is not None:
                arrays: dict[str, Any] = {**self.columns()}
                with draft.open("wb") as file:
                    np.savez_compressed(file, **arrays)


_EXAMPLES = (
    Example("schools", "300 schools: id, level (E, M, H), district, enrolment", ".csv", made.schools),
    Example("people", "5,000 people: id, age, region, income, whether they own a bicycle", ".csv", made.people),
    Example("visits", "6,000 visits of 2,000 patients, up to eight each: patient, cost", ".csv", made.visits),
    Example("points", "3,000 points around four centres, within 1 of the origin", ".csv", made.points),
    Example("incomes", "600 people: age, job, whether they earn more than 50K", ".csv", made.incomes),
    Example("pictures", "650 pictures of 28 x 28 in ten classes, as mnist.npz has them", ".npz", made.pictures),
    Example("study", "a budget store with a reservation left open by a crash (entry 9)", ".db", store=stores.study),
    Example("old-study", "a budget store as version 1 of the format wrote it", ".db", store=stores.version_1),
)


def names() -> tuple[str, ...]:
    """The names of all examples."""
    return tuple(example.name for example in _EXAMPLES)


def find(name: str) -> Example:
    """The example of this name; an unknown name raises with the list of names."""
    for example in _EXAMPLES:
        if example.name == name:
            return example
    raise InvalidInput(f"there is no example {name!r}; there are {', '.join(names())}{meant(name, names())}")


def load(name: str) -> Columns:
    """The columns of a table or the arrays of a file, by name.

    >>> load("points")["x"].shape
    (3000,)
    """
    example = find(name)
    if example.columns is None:
        raise InvalidInput(
            f"the example {name!r} is a budget store; write it to a file with datasets.write({name!r}, path)"
        )
    return example.columns()


def write(name: str, path: str | Path) -> None:
    """Write an example to a new file: .csv for tables, .npz for pictures, .db for budget stores."""
    find(name).write(path)
