"""The picture of a training run."""

from collections.abc import Sequence
from typing import Any

from .pictures import COLORS, new_figure


def picture_of_learning(
    steps: Sequence[int], spent: Sequence[float], accuracy: Sequence[float] | None, loss: Sequence[float] | None
) -> Any:
    """Epsilon spent by step and, if records are held out, accuracy and loss on them."""
    lines = [
        ("epsilon spent", spent),
        ("held-out accuracy (not private)", accuracy),
        ("held-out loss (not private)", loss),
    ]
    shown = [(name, values) for name, values in lines if values is not None]
    figure = new_figure(3.7 * len(shown) + 0.5, 3.2)
    for axes, (name, values), color in zip(
        figure.subplots(1, len(shown), squeeze=False)[0], shown, COLORS, strict=False
    ):
        axes.plot(steps, values, color=color, marker="o", markersize=4)
        axes.set(xlabel="step", title=name)
        axes.spines[["top", "right"]].set_visible(False)
    return figure
