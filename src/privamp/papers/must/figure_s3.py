"""MUST Figure S3: epsilon' against epsilon, and delta' against delta, n = 1000, m = 400, b = 500.

The thresholds and crossings of section S9 are checked with Figure 4, which shows the same numbers; this entry checks
the sentences about the order of the curves.
"""

from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from ..files import Picture, compared
from ..printed import Check, said
from ..registry import Entry, Outcome
from . import setting as must
from .figure_4 import EPSILONS, PANELS, Aligned, Curves, aligned

if TYPE_CHECKING:
    from matplotlib.figure import Figure

ORDER = ("WOR", "WR", "MUSTow", "MUSTww")
CROSSING = {"Laplace": 0.10, "Gaussian": 0.10}  # delta' where the curves are said to cross
BEFORE, AFTER = 0.02, 0.36  # delta well below and well above every crossing, for Delta/sigma = 1


def at(curve: Aligned, delta: float) -> float:
    """delta' at this delta; delta decreases along the curve."""
    return float(np.interp(delta, curve.base[::-1], curve.delta[::-1]))


def checks(curves: Curves) -> Iterator[Check]:
    """Check the sentences of section S9."""
    any_panel = curves[PANELS[0]]
    below = all(float(np.max(curve.ratio)) < 1.0 for curve in any_panel.values())
    yield said("epsilon' < epsilon for every design", below, f"at most {_most(any_panel):.3f} times, at epsilon < 6")
    falls = all(np.all(any_panel[a].ratio > any_panel[b].ratio) for a, b in pairwise(ORDER))
    yield said("MUSTww amplifies epsilon most, then MUSTow, WR, WOR", falls, "at every epsilon of the grid")
    for (kind, ratio), panel in curves.items():
        strong = bool(np.all(panel["WOR"].delta <= panel["WOR"].base))
        yield said(f"{kind} {ratio:g}: delta' <= delta for WOR", strong, "at every epsilon of the grid")
    for kind in must.MECHANISMS:
        panel = curves[kind, 1.0]
        first, last = ([at(panel[name], delta) for name in ORDER] for delta in (BEFORE, AFTER))
        yield said(f"{kind} 1: before the crossing the order is WOR, WR, MUSTow, MUSTww (delta {BEFORE})",
                   first == sorted(first), ", ".join(f"{x:.4f}" for x in first))  # fmt: skip
        yield said(f"{kind} 1: after it the order is flipped (delta {AFTER})", last == sorted(last, reverse=True),
                   ", ".join(f"{x:.4f}" for x in last))  # fmt: skip
        ends = panel["WOR"], panel["MUSTww"]
        meets = int(np.flatnonzero(ends[0].delta < ends[1].delta)[0])
        value = float(ends[0].delta[meets])
        yield Check(f"{kind} 1: WOR and MUSTww cross around delta' (within 0.02)", "0.10", f"{value:.3f}",
                    abs(value - CROSSING[kind]) <= 0.02)  # fmt: skip


def _most(panel: dict[str, Aligned]) -> float:
    return max(float(np.max(curve.ratio)) for curve in panel.values())


def picture(curves: Curves) -> "Figure":
    """One panel of epsilon and four of delta."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(10, 6), layout="constrained")
    axes = figure.subplots(2, 3).ravel()
    for name, curve in curves[PANELS[0]].items():
        colour, dash = must.LOOKS[name]
        axes[0].plot(EPSILONS, curve.ratio * EPSILONS, dash, color=colour, lw=2, label=name)
    axes[0].set(xlabel="ε", ylabel="ε′", title="any mechanism")
    axes[0].legend(frameon=False)
    for ax, ((kind, ratio), panel) in zip(axes[1:], curves.items(), strict=False):
        for name, curve in panel.items():
            colour, dash = must.LOOKS[name]
            ax.plot(curve.base, curve.delta, dash, color=colour, lw=2)
        ax.set(xlabel="δ", ylabel="δ′", title=f"{kind}, Δ/σ = {ratio:g}")
    axes[5].set_axis_off()
    return figure


def run(out_dir: Path) -> Outcome:
    """Compute, compare, draw and write the files."""
    curves = aligned()
    seen = Picture(picture(curves), "ε′ over ε and δ′ over δ.", "Curves of four designs that cross once.")
    return compared(out_dir, ENTRY, list(checks(curves)), picture=seen)


ENTRY = Entry(
    name="must-figure-s3",
    paper=must.MUST,
    title="Figure S3: epsilon' against epsilon, delta' against delta",
    summary="the order of the designs before and after their curves cross",
    run=run,
    errata="4-stronger-amplification-in-epsilon",
)
