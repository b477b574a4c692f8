"""MUST Figure 5: eta and delta' - delta of MUSTow and MUSTww over m from 100 to 150 and b from 150 to 200, n = 1000.

Base epsilon 1, Delta/sigma = 1. The figure prints no numbers; what the text says about it is checked on a grid of the
two sizes.
Figure S1 draws the same surfaces in three dimensions.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from ...numerics.log_domain import FloatArray
from ..files import Picture, Table, compared
from ..printed import Check, said
from ..registry import Entry, Outcome
from . import setting as must
from .experiment import design

if TYPE_CHECKING:
    from matplotlib.figure import Figure

EPSILON = 1.0
MS, BS = (100, 110, 120, 130, 140, 150), (150, 160, 170, 180, 190, 200)
NAMES = ("MUSTow", "MUSTww")
WITH_M = "eta is the probability of being drawn, which grows with the number of draws"
WITH_B = "more distinct records between the stages mean fewer copies of each: delta' falls with b"
PANELS = ("eta", "Laplace", "Gaussian")


@dataclass(frozen=True, slots=True)
class Surface:
    """One design: eta and delta' - delta on the grid, shape (m, b)."""

    eta: FloatArray
    change: dict[str, FloatArray]

    def panel(self, name: str) -> FloatArray:
        """One of `PANELS`."""
        return self.eta if name == "eta" else self.change[name]


def surface(name: str) -> Surface:
    """All values of one design, by the theorem that the paper prints."""
    shape = (len(MS), len(BS))
    eta, change = np.empty(shape), {kind: np.empty(shape) for kind in must.MECHANISMS}
    bases = {kind: must.mechanism(kind, 1.0) for kind in must.MECHANISMS}
    before = {kind: float(base.profile(must.RO).delta(EPSILON)) for kind, base in bases.items()}
    for i, m in enumerate(MS):
        for j, b in enumerate(BS):
            of = design(name, must.N, m, b)
            eta[i, j] = of.appearances().eta
            amplified = must.amplified(of, EPSILON)
            for kind, base in bases.items():
                change[kind][i, j] = float(must.printed_bound(of, base).delta(amplified)) - before[kind]
    return Surface(eta, change)


def rises(values: FloatArray, axis: int) -> bool:
    """Whether every step along the axis increases."""
    return bool(np.all(np.diff(values, axis=axis) > 0.0))


def checks(found: dict[str, Surface]) -> Iterator[Check]:
    """Check the sentences of section 4.1."""
    ow, ww = found["MUSTow"], found["MUSTww"]
    yield said("MUSTww has the smaller eta", bool(np.all(ww.eta < ow.eta)),
               f"{float(np.max(ww.eta / ow.eta)):.3f} times at most")  # fmt: skip
    for kind in must.MECHANISMS:
        apart = ow.change[kind] - ww.change[kind]
        yield said(f"{kind}: MUSTow has the smaller delta' - delta", bool(np.all(apart < 0.0)),
                   f"lower by {float(-apart.max()):.4f} to {float(-apart.min()):.4f}")  # fmt: skip
    gaps = [float(np.max(np.abs(ow.panel(p) - ww.panel(p)))) for p in PANELS]
    yield said("the differences between the two are minor (below 0.02)", max(gaps) < 0.02, f"at most {max(gaps):.4f}")
    for name, of in found.items():
        yield said(f"{name}: eta increases with b", rises(of.eta, 1), _range(of.eta))
        yield said(f"{name}: eta decreases with m", rises(-of.eta, 0), "it increases", WITH_M)
        for kind in must.MECHANISMS:
            yield said(f"{name}, {kind}: delta' - delta increases with m", rises(of.change[kind], 0),
                       _range(of.change[kind]))  # fmt: skip
            yield said(f"{name}, {kind}: delta' - delta increases with b", rises(of.change[kind], 1),
                       "it decreases", WITH_B)  # fmt: skip
    slow = max(float(np.ptp(of.eta)) for of in found.values())
    yield said("the effects change slowly: eta by less than 0.05 over the whole range", slow < 0.05, f"by {slow:.4f}")


def _range(values: FloatArray) -> str:
    return f"{float(values.min()):.4f} to {float(values.max()):.4f}"


def picture(found: dict[str, Surface]) -> "Figure":
    """Six contour plots."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(10, 6), layout="constrained")
    axes = figure.subplots(2, 3)
    for row, (name, of) in zip(axes, found.items(), strict=True):
        for ax, panel in zip(row, PANELS, strict=True):
            lines = ax.contour(BS, MS, of.panel(panel), levels=8, cmap="viridis")
            ax.clabel(lines, fontsize=7)
            ax.set(xlabel="b", ylabel="m", title=f"{name}: {'η' if panel == 'eta' else 'δ′ − δ, ' + panel}")
    return figure


def rows(found: dict[str, Surface]) -> list[tuple[str, ...]]:
    """The corners of every surface."""
    corners = ((0, 0), (0, -1), (-1, 0), (-1, -1))
    return [
        (name, panel, *(f"{float(of.panel(panel)[corner]):.6f}" for corner in corners))
        for name, of in found.items()
        for panel in PANELS
    ]


def run(out_dir: Path) -> Outcome:
    """Compute, compare, draw and write the files."""
    found = {name: surface(name) for name in NAMES}
    header = ("design", "panel", "m 100, b 150", "m 100, b 200", "m 150, b 150", "m 150, b 200")
    seen = Picture(picture(found), "Contours over b and m.", "Contours of eta, which rises to the upper right.")
    return compared(out_dir, ENTRY, list(checks(found)), table=Table(header, rows(found), "Corners."), picture=seen)


ENTRY = Entry(
    name="must-figure-5",
    paper=must.MUST,
    title="Figure 5: amplification over the sizes of MUST",
    summary="contours of eta and delta' - delta over m and b, and the sentences about them",
    run=run,
    errata="9-smaller-slips",
)
