"""MUST Figure S1: the surfaces of Figure 5 in three dimensions."""

from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from ..files import Picture, compared
from ..printed import Check
from ..registry import Entry, Outcome
from . import setting as must
from .figure_5 import BS, MS, NAMES, PANELS, Surface, surface

if TYPE_CHECKING:
    from matplotlib.figure import Figure


def picture(found: dict[str, Surface]) -> "Figure":
    """Six surfaces."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(10, 6.4), layout="constrained")
    b, m = np.meshgrid(BS, MS)
    for place, (name, panel) in enumerate((name, panel) for name in found for panel in PANELS):
        ax: Any = figure.add_subplot(2, 3, place + 1, projection="3d")
        ax.plot_surface(b, m, found[name].panel(panel), cmap="viridis")
        ax.set(xlabel="b", ylabel="m", title=f"{name}: {'η' if panel == 'eta' else 'δ′ − δ, ' + panel}")
    return figure


def run(out_dir: Path) -> Outcome:
    """Draw the surfaces; the sentences about them are checked with Figure 5."""
    found = {name: surface(name) for name in NAMES}
    finite = all(bool(np.all(np.isfinite(of.panel(panel)))) for of in found.values() for panel in PANELS)
    checks = [Check("the six surfaces are those of must-figure-5, which checks the text", "-", "drawn", finite)]
    seen = Picture(picture(found), "Figure 5 in three dimensions.", "Six tilted, nearly flat surfaces.")
    return compared(out_dir, ENTRY, checks, picture=seen)


ENTRY = Entry(
    name="must-figure-s1",
    paper=must.MUST,
    title="Figure S1: Figure 5 in three dimensions",
    summary="surfaces of eta and delta' - delta over m and b",
    run=run,
    errata="9-smaller-slips",
)
