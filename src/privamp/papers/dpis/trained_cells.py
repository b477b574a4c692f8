"""Cells of our own beside printed accuracies: trained where torch is installed, otherwise left out with that reason."""

from collections.abc import Callable, Iterable, Iterator

from ...extras import is_installed
from ..printed import Check, apart
from .printed_tables import ABSENT
from .training import FULL, QUICK, Setting

NO_TORCH = "not trained: needs PyTorch (pip install 'privamp[torch]')"
SMALLER = "ours is a smaller setting ({records} records, batch {batch}, {steps} steps), made for seconds on a processor"
UNTUNED = "batch, learning rate and epochs are not printed; ours are one choice for all methods"


def reason(setting: Setting) -> str:
    """Why ours are not the printed accuracies."""
    if setting == FULL:
        return UNTUNED
    return SMALLER.format(records=setting.records, batch=setting.batch, steps=setting.steps)


def trained(
    cells: Iterable[tuple[str, float, Callable[[Setting], float]]], full: bool, into: dict[str, float]
) -> Iterator[Check]:
    """(what, printed, training) for each cell; what was found is kept."""
    setting = FULL if full else QUICK
    for what, printed, train in cells:
        if not is_installed("torch"):
            yield apart(what, f"{printed}", NO_TORCH)
            continue
        into[what] = train(setting)
        yield apart(what, f"{printed}", reason(setting), f"{into[what]:.1f}")


def not_at_hand(table: str) -> list[Check]:
    """The data sets that are missing."""
    return [apart(f"{table}: {data}", "a row", why) for data, why in ABSENT.items()]
