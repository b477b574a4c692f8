"""What Tables 4, 5 and 6 of DPIS share: one method, one option that varies, MNIST at epsilon 1."""

from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

from ..files import compared
from ..printed import Check
from ..registry import Entry, Outcome
from .trained_cells import not_at_hand, trained
from .training import accuracy

LITTLE = 12.0  # points that 500 test records and one short run may differ by


def reproduced(
    out_dir: Path, entry: Entry, sentences: Sequence[Check], options: Mapping[str, Mapping[str, Any]],
    printed: Sequence[float], epsilon: float, full: bool,
) -> Outcome:  # fmt: skip
    """The sentences, and one run of DPIS for each option."""
    found: dict[str, float] = {}
    cells = [(f"MNIST, epsilon {epsilon:g}, {name}", value, partial(accuracy, "DPIS", epsilon=epsilon, **chosen))
             for (name, chosen), value in zip(options.items(), printed, strict=True)]  # fmt: skip
    checks = [*sentences, *trained(cells, full, found), *not_at_hand(entry.title.partition(":")[0])]
    if found:
        spread = max(found.values()) - min(found.values())
        checks.append(Check("ours: the options differ by little", "-", f"{spread:.1f} points", spread < LITTLE))
    return compared(out_dir, entry, checks)
