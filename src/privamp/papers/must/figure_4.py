"""MUST Figure 4: aligned privacy profiles, epsilon'/epsilon against delta' - delta, and what the text says about them.

The printed numbers are those of section S9: the delta above which sampling lowers delta too. The paper does not say
how it read them; the exact crossings are up to 0.004 lower, and all six match to the digit the last strong point of a
grid of epsilon in steps of 0.01. That step is inferred from the numbers themselves, so their agreement checks our
curves, not how the paper read them. Two sentences do not hold: that the curves visit the weak quadrant "for a minor
portion" (measured in epsilon), and that the delta' curves cross around one delta under Gaussian noise.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import combinations, pairwise
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from ...numerics.log_domain import FloatArray, log_mix
from ...report.html import Report, png_of
from ..files import columns, csv_of, publish
from ..printed import HEADER, Check, agrees, counted
from ..registry import Entry, Outcome
from . import setting as must

if TYPE_CHECKING:
    from matplotlib.figure import Figure

STEP, TOP = 0.01, 6.0
EPSILONS: FloatArray = np.round(np.arange(1, round(TOP / STEP) + 1) * STEP, 10)
PANELS = tuple((kind, ratio) for kind in must.MECHANISMS for ratio in (1.0, 0.25))

# Section S9, Delta/sigma = 1: delta' < delta only above these delta.
THRESHOLDS = {
    "Laplace": {"WR": "0.039", "MUSTow": "0.058", "MUSTww": "0.068"},
    "Gaussian": {"WR": "0.036", "MUSTow": "0.060", "MUSTww": "0.070"},
}
CROSSOVERS = {
    "Laplace": ("0.25", ""),
    "Gaussian": ("0.23", "the six crossings are spread out, most at 0.28 or more"),
}


@dataclass(frozen=True, slots=True)
class Aligned:
    """One curve of one panel, at `EPSILONS`."""

    ratio: FloatArray  # epsilon'/epsilon
    base: FloatArray  # delta
    delta: FloatArray  # delta'

    @property
    def change(self) -> FloatArray:
        """delta' - delta: below zero is strong amplification, above is type I weak."""
        return self.delta - self.base

    @property
    def weak_from(self) -> int | None:
        """Position of the first epsilon in the weak quadrant."""
        weak = np.flatnonzero(self.change > 0)
        return int(weak[0]) if weak.size else None


Curves = dict[tuple[str, float], dict[str, Aligned]]


def aligned() -> Curves:
    """All panels, by the theorem that the paper prints for each design."""
    return {(kind, ratio): _panel(kind, ratio) for kind, ratio in PANELS}


def _panel(kind: str, ratio: float) -> dict[str, Aligned]:
    base = must.mechanism(kind, ratio)
    delta = np.asarray(base.profile(must.RO).delta(EPSILONS))
    found = {}
    for name, design in must.DESIGNS.items():
        amplified = log_mix(design.appearances().eta, EPSILONS)
        after = np.asarray(must.printed_bound(design, base).delta(amplified))
        found[name] = Aligned(amplified / EPSILONS, delta, after)
    return found


def checks(curves: Curves) -> Iterator[Check]:
    """Check what the text says about the figure."""
    yield from _thresholds(curves)
    for (kind, ratio), panel in curves.items():
        yield from _quadrants(f"{kind} {ratio:g}", panel)
    for kind, (delta, erratum) in CROSSOVERS.items():
        yield _crossover(kind, curves[kind, 1.0], delta, erratum)


def _thresholds(curves: Curves) -> Iterator[Check]:
    for kind, printed in THRESHOLDS.items():
        for name, delta in printed.items():
            curve = curves[kind, 1.0][name]
            last_strong = float(curve.base[(curve.weak_from or 0) - 1])
            ours = f"{last_strong:.5f} on the grid, {_crossing(curve):.4f} exactly"
            yield Check(f"{kind} 1, {name}: delta' < delta only above", delta, ours, agrees(last_strong, delta))


def _crossing(curve: Aligned) -> float:
    """delta where delta' = delta, by a straight line between the two grid points around it."""
    after = curve.weak_from or 1
    pair = slice(after - 1, after + 1)
    return float(np.interp(0.0, curve.change[pair], curve.base[pair]))


def _quadrants(where: str, panel: dict[str, Aligned]) -> Iterator[Check]:
    starts = all(curve.change[0] < 0 for curve in panel.values())
    yield Check(f"{where}: all start in the strong quadrant", "yes", _yes(starts), starts)
    never = panel["WOR"].weak_from is None
    yield Check(f"{where}: WOR is never in the weak quadrant", "yes", _yes(never), never)
    shares = {name: float(np.mean(curve.change > 0)) for name, curve in panel.items() if name != "WOR"}
    shown = ", ".join(f"{name} {share:.0%}" for name, share in shares.items())
    ordered = all(a < b for a, b in pairwise(shares.values()))
    yield Check(f"{where}: weak the longest", "MUSTww, MUSTow, WR", shown, ordered)
    minor = all(share < 0.5 for share in shares.values())
    why = "once weak, a curve stays weak: for most of 0 < epsilon < 6, if not of the drawn length"
    yield Check(f"{where}: weak 'for a minor portion'", "below half", shown, minor, why)


def _crossover(kind: str, panel: dict[str, Aligned], printed: str, erratum: str) -> Check:
    """'Around' is read as: the median of the six pairwise crossings is within 0.02 of the printed delta."""
    at = sorted(
        float(panel[a].base[np.flatnonzero(panel[a].delta < panel[b].delta)[0]]) for a, b in combinations(panel, 2)
    )
    ours = f"{at[0]:.2f} to {at[-1]:.2f}, median {np.median(at):.2f}"
    near = bool(abs(np.median(at) - float(printed)) <= 0.02)
    return Check(f"{kind} 1: the delta' curves cross around delta", printed, ours, near, erratum)


def _yes(holds: bool) -> str:
    return "yes" if holds else "no"


def picture(curves: Curves) -> "Figure":
    """Four panels, drawn on the quadrants of MUST Definition 5."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(9.0, 7.4), layout="constrained")
    axes = figure.subplots(2, 2, sharex=True)
    for ax, ((kind, ratio), panel) in zip(axes.flat, curves.items(), strict=True):
        low = min(float(curve.change.min()) for curve in panel.values())
        high = max(float(curve.change.max()) for curve in panel.values())
        pad = 0.12 * (high - low)
        ax.set(xlim=(0, 1), ylim=(low - pad, high + 2 * pad), title=f"{kind} noise, Δ/σ = {ratio:g}")
        ax.axhspan(0, high + 2 * pad, color="#F6D5D5", alpha=0.55, lw=0)
        ax.axhspan(low - pad, 0, color="#DCEBDD", alpha=0.55, lw=0)
        ax.axhline(0, color="#555555", lw=0.8)
        ax.text(
            0.985,
            0.975,
            "weak, type I: δ′ > δ",
            transform=ax.transAxes,
            ha="right",
            va="top",
            color="#8C2A2A",
        )
        ax.text(0.985, 0.025, "strong: δ′ < δ", transform=ax.transAxes, ha="right", va="bottom", color="#22633A")
        for name, curve in panel.items():
            colour, dash = must.LOOKS[name]
            ax.plot(curve.ratio, curve.change, dash, color=colour, lw=2, label=name)
    for ax in axes[1]:
        ax.set_xlabel("ε′/ε   (left: small ε, right: ε = 6)")
    for ax in axes[:, 0]:
        ax.set_ylabel("δ′ − δ")
    handles, labels = axes[0, 0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside upper center", ncols=4, frameon=False)
    return figure


def run(out_dir: Path) -> Outcome:
    """Draw, compare and write the files."""
    curves = aligned()
    found = list(checks(curves))
    figure = picture(curves)
    text = "\n".join([columns(HEADER, (c.row for c in found)), "", f"{counted(found)}."])
    summary = f"n = {must.N}, m = {must.M}, b = {must.B}. {counted(found)}."
    report = Report("MUST Figure 4: aligned privacy profiles", summary)
    report.add_figure(figure, "Each curve runs from small epsilon (left) to epsilon = 6 (right).", _DESCRIPTION)
    marked = [i for i, check in enumerate(found) if not check.agrees]
    report.add_table(HEADER, (c.row for c in found), "What the text says about the figure.", marked)
    others = {".png": png_of(figure), ".csv": _csv(curves)}
    return publish(out_dir, ENTRY.name, text, found, report, others)


_DESCRIPTION = (
    "Four panels of delta' minus delta against epsilon'/epsilon. WOR stays below zero; WR, MUSTow and MUSTww "
    "start below, rise above zero and come back towards it without ever crossing again."
)


def _csv(curves: Curves) -> bytes:
    header = ("mechanism", "delta_over_sigma", "design", "epsilon", "epsilon_ratio", "delta", "delta_prime")
    rows = (
        (kind, ratio, name, float(e), float(r), float(d), float(a))
        for (kind, ratio), panel in curves.items()
        for name, curve in panel.items()
        for e, r, d, a in zip(EPSILONS[4::5], curve.ratio[4::5], curve.base[4::5], curve.delta[4::5], strict=True)
    )
    return csv_of(header, rows)


ENTRY = Entry(
    name="must-figure-4",
    paper=must.MUST,
    title="Figure 4: aligned privacy profiles",
    summary="epsilon'/epsilon against delta' - delta in four panels, and what the text says about them",
    run=run,
    errata="4-stronger-amplification-in-epsilon",
)
