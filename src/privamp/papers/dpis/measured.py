"""Our own accuracies in the full setting: measured once on a GPU and stored, or trained now if there is a GPU.

`measured.json` was written by `benchmarks/dpis_tables.py` and records where, when and with what: its numbers are not
recomputed when an entry runs, and every page that prints them says so.
"""

import json
import math
import statistics
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from typing import Any

from ...extras import is_installed
from .cells import Cell, every_cell
from .settings import FULL, Setting

KEPT = "measured.json"


@dataclass(frozen=True, slots=True)
class Accuracy:
    """The runs of one cell, in percent."""

    runs: tuple[float, ...]

    @property
    def mean(self) -> float:
        """Over the runs."""
        return statistics.mean(self.runs)

    @property
    def error(self) -> float:
        """The standard error of the mean; 0 for a single run, for which it is unknown."""
        return statistics.stdev(self.runs) / math.sqrt(len(self.runs)) if len(self.runs) > 1 else 0.0

    def __str__(self) -> str:
        if len(self.runs) == 1:
            return f"{self.mean:.1f} (one run)"
        return f"{self.mean:.1f} ± {self.error:.1f} ({len(self.runs)} runs)"


@dataclass(frozen=True, slots=True)
class Found:
    """Accuracies by cell, and a sentence about their origin."""

    accuracies: dict[Cell, Accuracy]
    source: str


@cache
def kept() -> Found:
    """The stored accuracies; empty if the file is missing."""
    file = files(__package__).joinpath(KEPT)
    if not file.is_file():
        return Found({}, "No run of the full setting is stored here.")
    held = json.loads(file.read_text(encoding="utf-8"))
    runs: dict[Cell, list[float]] = {cell: [] for cell in every_cell()}
    for row in held["runs"]:
        run: dict[str, Any] = dict(zip(held["columns"], row, strict=True))
        cell = Cell(run["data"], run["method"], float(run["epsilon"]), run["change"])
        if run["accuracy"] is not None:
            runs[cell].append(float(run["accuracy"]))
    where = "; ".join(held["about"]["measured"])
    settings = [Setting(**facts) for facts in held["settings"].values()]
    said = (
        f"Accuracies in the full setting were not computed now: they were measured by benchmarks/dpis_tables.py "
        f"({where}) and are stored in papers/dpis/{KEPT}. {_listed(settings)}. Batches and noise of a run are drawn "
        "from its seed, so it can be repeated."
    )
    return Found({cell: Accuracy(tuple(values)) for cell, values in runs.items() if values}, said)


def trained_now(cells: Iterable[Cell], device: str) -> Found:
    """One run of each cell on this machine."""
    from .training import trained

    found = {cell: Accuracy((trained(cell.method, FULL[cell.data], cell.epsilon, device=device,
                                     **cell.options).accuracy,)) for cell in dict.fromkeys(cells)}  # fmt: skip
    return Found(found, f"Accuracies were trained now on {device}, one run of each cell. {_listed(FULL.values())}.")


def has_gpu() -> bool:
    """Whether torch is installed and finds a CUDA device."""
    if not is_installed("torch"):
        return False
    import torch

    return bool(torch.cuda.is_available())


def _listed(settings: Iterable[Setting]) -> str:
    return "; ".join(str(setting) for setting in settings)
