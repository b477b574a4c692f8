"""Shared by Tables 3 to 6: printed and measured accuracies, cell by cell, and the page.

Single accuracies are never counted as agreement, because batch size, learning rate, clip and epochs are not printed.
What the text says about the tables is checked twice: against the printed numbers and against our own.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from pathlib import Path

from ...extras import is_installed
from ..files import compared
from ..printed import Check, apart, inside
from ..registry import Entry, Outcome
from .adam import with_adam
from .cells import Cell
from .measured import Accuracy, Found, has_gpu, kept, trained_now
from .printed_tables import ABSENT, NO_GLOVE
from .settings import QUICK, Setting
from .training import trained

Row = tuple[str, Cell, float]  # what, which cell, the printed value
Sentences = Callable[[dict[Cell, Accuracy]], Iterator[Check]]
UNTUNED = "batch size, learning rate, clip and epochs are not printed; we use one choice for all methods"
SMALLER = "ours is a smaller setting ({setting}) that trains in seconds on a CPU"
NO_TORCH = "not trained: needs PyTorch (pip install 'privamp[torch]')"
NO_RUN = "we have no stored run for this cell"
ADAPTS = (
    "ours is SGD with one learning rate, so a growing clip makes noisy steps larger; with Adam, where it does not, "
    "DPIS is close to the printed value, but still below DP-SGD and better with a fixed clip (see the rows with Adam)"
)
OURS = "ours: "  # prefix of a sentence of the paper that is compared with our own accuracies


def reproduced(
    out_dir: Path, entry: Entry, rows: Sequence[Row], printed: Iterable[Check], ours: Sentences,
    quick: Sequence[Row], full: bool,
) -> Outcome:  # fmt: skip
    """Compare the sentences with the printed numbers, list the cells, and compare the sentences with our numbers."""
    found = trained_now([cell for _, cell, _ in rows], "cuda") if full and has_gpu() else kept()
    checks = [*inside(printed), *beside(rows, found), *said_of_ours(ours, found.accuracies), *with_adam(rows)]
    checks += quickly(() if full else quick)
    checks += [apart(f"{entry.title.partition(':')[0]}: {data}", "a row", why) for data, why in ABSENT.items()]
    alone = " The full setting is trained only if torch finds a GPU." if full and not has_gpu() else ""
    return compared(out_dir, entry, checks, remark=found.source + alone)


def beside(rows: Iterable[Row], found: Found) -> Iterator[Check]:
    """Every cell with its printed value."""
    for what, cell, value in rows:
        accuracy = found.accuracies.get(cell)
        if accuracy is None:
            yield apart(what, f"{value}", NO_RUN)
        else:
            why = f"{UNTUNED}; {NO_GLOVE}" if cell.data == "IMDb" else UNTUNED
            yield apart(what, f"{value}", why, f"{accuracy}")


def said_of_ours(ours: Sentences, accuracies: dict[Cell, Accuracy]) -> Iterator[Check]:
    """A sentence holds for our accuracies or differs; a sentence about missing cells is omitted."""
    if accuracies:
        yield from ours(accuracies)


def quickly(rows: Iterable[Row]) -> Iterator[Check]:
    """Train the same cells in seconds on a CPU."""
    for what, cell, value in rows:
        setting: Setting = QUICK[cell.data]
        run = partial(trained, cell.method, setting, cell.epsilon, **cell.options)
        if is_installed("torch"):
            shown = f"{run().accuracy:.1f} (one run)"
            yield apart(f"{what}, short run", f"{value}", SMALLER.format(setting=setting), shown)
        else:
            yield apart(f"{what}, short run", f"{value}", NO_TORCH)


def two_errors(*several: Accuracy) -> float:
    """Two standard errors of a difference of means: what may be due to chance alone."""
    return float(2.0 * sum(a.error**2 for a in several) ** 0.5)
