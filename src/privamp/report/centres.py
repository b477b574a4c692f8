"""A picture of released cluster centres: a map in two dimensions, else one row of colours per centre."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from ..core.release import Release
from ..numerics.log_domain import FloatArray
from .pictures import COLORS, GREY, new_figure, tidy

if TYPE_CHECKING:
    from matplotlib.figure import Figure

_NAMED = 40  # columns whose names fit under a picture


def picture_of_centres(release: Release) -> "Figure":
    """The centres of a release, with their counts: everything in it was released with noise, or is public."""
    centres, counts = np.asarray(release.value), np.asarray(release.details["counts"])
    names = release.details["columns"] or [f"column {at + 1}" for at in range(centres.shape[1])]
    if len(names) == 2:
        return _map(centres, counts, names, release.details["center"], release.details["radius"])
    return _rows(centres, counts, names)


def _map(centres: FloatArray, counts: FloatArray, names: Sequence[str], center: FloatArray, radius: float) -> "Figure":
    figure = new_figure(6.4, 6.4)
    axes = figure.subplots()
    turn = np.linspace(0.0, 2.0 * np.pi, 200)
    axes.plot(center[0] + radius * np.cos(turn), center[1] + radius * np.sin(turn), color=GREY, lw=0.9, ls=":")
    share = np.maximum(counts, 0.0) / max(float(np.max(counts)), 1e-300)
    axes.scatter(*centres.T, s=40.0 + 900.0 * share, color=COLORS[0], alpha=0.45, lw=0)
    axes.scatter(*centres.T, s=12, color=COLORS[0])
    for at, (x, y) in enumerate(centres, 1):
        axes.annotate(str(at), (x, y), (5, 5), textcoords="offset points")
    axes.set(aspect="equal", xlabel=names[0], ylabel=names[1])
    tidy(axes, "Released centres", "a disc's area is the noisy count; dotted: the ball records are shortened to")
    return figure  # type: ignore[no-any-return]


def _rows(centres: FloatArray, counts: FloatArray, names: Sequence[str]) -> "Figure":
    from matplotlib.colors import SymLogNorm

    k, d = centres.shape
    figure = new_figure(min(5.5 + 0.24 * d, 13.0), min(2.4 + 0.24 * k, 14.0))
    bars, axes = figure.subplots(1, 2, width_ratios=(1, max(d / 5.0, 2.0)), sharey=True)
    away = centres - centres.mean(axis=0)
    most = max(float(np.max(np.abs(away))), 1e-300)
    scale = SymLogNorm(most / 30.0, vmin=-most, vmax=most)
    shade = axes.imshow(away, aspect="auto", cmap="RdBu_r", norm=scale, interpolation="nearest")
    axes.set_xticks(range(d) if d <= _NAMED else (), labels=names if d <= _NAMED else ())
    axes.tick_params(axis="x", rotation=90 if max(map(len, names)) * d > 36 else 0)
    axes.tick_params(axis="y", length=0)
    bars.barh(range(k), np.maximum(counts, 0.0), color=COLORS[0], height=0.7)
    every = max(k // 25, 1)
    bars.set_yticks(range(0, k, every), labels=[str(at + 1) for at in range(0, k, every)])
    bars.set(xlabel="noisy count", ylabel="centre")
    bars.spines[["top", "right"]].set_visible(False)
    axes.set_title("Released centres less their mean", fontsize=12)
    axes.set_xlabel("column" if d <= _NAMED else f"column, {d} of them")
    figure.colorbar(shade, ax=axes, shrink=0.9)
    return figure  # type: ignore[no-any-return]
