"""IMDb with Adam instead of SGD: the paper uses both optimisers and does not say where it uses which.

`measured_adam.json` holds one run of each cell at two learning rates, made by `benchmarks/dpis_tables.py` like the runs
of `measured.json`. No choice was based on them: both rates are shown.
"""

import json
from collections.abc import Iterable, Iterator
from functools import cache
from importlib.resources import files

from ..printed import Check, apart
from .cells import Cell
from .printed_tables import NO_GLOVE

KEPT = "measured_adam.json"


@cache
def kept() -> tuple[str, dict[Cell, dict[float, float]]]:
    """How it was measured, and the accuracy of each cell by learning rate."""
    held = json.loads(files(__package__).joinpath(KEPT).read_text(encoding="utf-8"))
    found: dict[Cell, dict[float, float]] = {}
    for row in held["runs"]:
        run = dict(zip(held["columns"], row, strict=True))
        cell = Cell("IMDb", run["method"], float(run["epsilon"]), run["change"])
        found.setdefault(cell, {})[float(run["learning_rate"])] = float(run["accuracy"])
    return str(held["about"]["measured"]), found


def with_adam(rows: Iterable[tuple[str, Cell, float]]) -> Iterator[Check]:
    """The cells that were also trained with Adam, with the printed values."""
    where, found = kept()
    for what, cell, printed in rows:
        if cell in found:
            shown = ", ".join(f"{accuracy:.1f} at learning rate {rate:g}" for rate, accuracy in found[cell].items())
            why = f"one run each, measured with {where}; the paper does not name its optimiser there; {NO_GLOVE}"
            yield apart(f"{what}, with Adam", f"{printed}", why, shown)
