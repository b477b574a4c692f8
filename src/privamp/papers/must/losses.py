"""The training loss during gradient descent, shown in Figures 6, S4 and S5."""

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np

from ...numerics.log_domain import FloatArray
from ...sgd.descent import ClippedSum, Ints
from ..printed import Check, said
from . import setting as must

if TYPE_CHECKING:
    from matplotlib.figure import Figure

Loss = Callable[[FloatArray], float]
LOOKS = {"no noise": ("#333333", "-"), "Poisson": ("#E69F00", "--"), **must.LOOKS}


def traced(clipped: ClippedSum, loss: Loss, into: list[float]) -> ClippedSum:
    """The same sum, recording the loss at the parameters of every step."""

    def with_a_look(parameters: FloatArray, rows: Ints, counts: Ints) -> FloatArray:
        into.append(loss(parameters))
        return clipped(parameters, rows, counts)

    return with_a_look


def last(losses: Sequence[float]) -> float:
    """The mean loss over the last tenth of the steps."""
    return float(np.mean(losses[-max(len(losses) // 10, 1) :]))


def converge_alike(found: Mapping[str, Sequence[float]], within: float, printed: str) -> Check:
    """Check that every design ends within a given share of the loss without noise."""
    plain = last(found["no noise"])
    ratios = {name: last(losses) / plain for name, losses in found.items() if name != "no noise"}
    shown = ", ".join(f"{name} {ratio:.3f}" for name, ratio in ratios.items())
    return said(printed, max(ratios.values()) <= 1.0 + within, f"{shown} times the loss without noise")


def picture(panels: Mapping[str, Mapping[str, Sequence[float]]]) -> "Figure":
    """Loss over the steps, one panel per setting."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(5.2 * len(panels), 3.8), layout="constrained")
    for ax, (title, found) in zip(np.atleast_1d(figure.subplots(1, len(panels))), panels.items(), strict=True):
        for name, losses in found.items():
            colour, dash = LOOKS[name]
            ax.plot(losses, dash, color=colour, lw=1.6, label=name)
        ax.set(xlabel="step", ylabel="training loss", title=title)
        ax.legend(frameon=False, fontsize=8)
        ax.spines[["top", "right"]].set_visible(False)
    return figure
