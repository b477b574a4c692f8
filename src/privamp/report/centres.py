"""A picture of released cluster centres, as wide as a phone: a map in two dimensions, else one row per column."""

from collections.abc import Collection, Sequence
from typing import TYPE_CHECKING

import numpy as np

from ..core.release import Release
from ..numerics.log_domain import FloatArray
from .pictures import COLORS, GREY, new_figure, tidy

if TYPE_CHECKING:
    from matplotlib.figure import Figure

_WIDTH = 4.4  # inches
_NAMED = 60  # columns whose names fit beside a picture
_LETTERS = 16  # of a name


def picture_of_centres(release: Release) -> "Figure":
    """The centres of a release, with their counts: everything in it was released with noise, or is public."""
    centres, counts = np.asarray(release.value), np.asarray(release.details["counts"])
    names = release.details["columns"] or [f"column {at + 1}" for at in range(centres.shape[1])]
    if len(names) == 2:
        return _map(centres, counts, names, release.details["center"], release.details["radius"])
    return _rows(centres, counts, names, release.details.get("columns_used", range(len(names))))


def _map(centres: FloatArray, counts: FloatArray, names: Sequence[str], center: FloatArray, radius: float) -> "Figure":
    figure = new_figure(_WIDTH, 1.12 * _WIDTH)
    axes = figure.subplots()
    turn = np.linspace(0.0, 2.0 * np.pi, 200)
    axes.plot(center[0] + radius * np.cos(turn), center[1] + radius * np.sin(turn), color=GREY, lw=0.9, ls=":")
    share = np.maximum(counts, 0.0) / max(float(np.max(counts)), 1e-300)
    axes.scatter(*centres.T, s=20.0 + 450.0 * share, color=COLORS[0], alpha=0.45, lw=0)
    axes.scatter(*centres.T, s=10, color=COLORS[0])
    for at, (x, y) in enumerate(centres, 1):
        axes.annotate(str(at), (x, y), (5, 5), textcoords="offset points")
    axes.set(aspect="equal", xlabel=names[0], ylabel=names[1])
    tidy(axes, "Released centres", "area: noisy count; dotted: the ball")
    return figure  # type: ignore[no-any-return]


def _rows(centres: FloatArray, counts: FloatArray, names: Sequence[str], used: Collection[int]) -> "Figure":
    """Counts above, and one row of colours for each column; columns in which all centres are equal have grey names."""
    from matplotlib.colors import SymLogNorm

    k, d = centres.shape
    shown = min(d, _NAMED)
    figure = new_figure(_WIDTH, 2.6 + 0.17 * shown)
    bars, axes = figure.subplots(2, 1, height_ratios=(1.0, max(0.17 * shown, 0.6)), sharex=True)
    away = (centres - centres.mean(axis=0)).T
    most = max(float(np.max(np.abs(away))), 1e-300)
    scale = SymLogNorm(most / 30.0, vmin=-most, vmax=most)
    shade = axes.imshow(away, aspect="auto", cmap="RdBu_r", norm=scale, interpolation="nearest")
    axes.set_yticks(range(d) if d <= _NAMED else (), labels=[_short(name) for name in names] if d <= _NAMED else ())
    axes.tick_params(axis="y", length=0, labelsize=7)
    for at, label in enumerate(axes.get_yticklabels()):
        label.set_color(COLORS[-1] if at in used else GREY)
    bars.bar(range(k), np.maximum(counts, 0.0), color=COLORS[0], width=0.7)
    bars.set_ylabel("noisy count", fontsize=8)
    bars.tick_params(axis="both", labelsize=7)
    bars.spines[["top", "right"]].set_visible(False)
    bars.set_title("Released centres less their mean", fontsize=11)
    every = max(-(-k // 13), 1)
    axes.set_xticks(range(0, k, every), labels=[str(at + 1) for at in range(0, k, every)])
    axes.tick_params(axis="x", labelsize=7)
    axes.set_xlabel("centre" if d <= _NAMED else f"centre; {d} columns from top to bottom", fontsize=8)
    figure.colorbar(shade, ax=axes, location="bottom", shrink=0.9, aspect=30).ax.tick_params(labelsize=7)
    return figure  # type: ignore[no-any-return]


def _short(name: str) -> str:
    return name if len(name) <= _LETTERS else name[: _LETTERS - 1] + "…"
