"""Pictures for `compare` and `demo`. matplotlib is loaded when one is drawn; files are written atomically."""

import logging
import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from ..atomic_files import draft_of
from ..errors import InvalidInput
from ..extras import need
from ..numerics.log_domain import FloatArray
from ..numerics.printing import as_asked, shown_up
from .aligned import align
from .comparison import Comparison, Question, Row

# Okabe & Ito's palette: distinguishable with any colour vision
COLORS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000")
GREY = "#666666"
DOT = {"marker": "o", "markeredgecolor": "white", "markersize": 8, "zorder": 5}
FORMATS = (".png", ".svg")


def check_picture(path: Path, formats: tuple[str, ...] = FORMATS) -> None:
    """Check the file name and the plotting library before anything is computed."""
    need("matplotlib", "a picture")
    if path.suffix.lower() not in formats:
        names = f"{', '.join(formats[:-1])} or {formats[-1]}"
        raise InvalidInput(f"a picture must be named {names}, got {path.name!r} instead")
    if not path.parent.is_dir() or not os.access(path.parent, os.W_OK) or path.is_dir():
        raise InvalidInput(f"cannot write {str(path)!r}; choose a file in a folder that exists and is writable")


def new_figure(width: float, height: float) -> Any:
    """A figure with no window behind it."""
    need("matplotlib", "a picture")
    logging.getLogger("matplotlib").setLevel(logging.ERROR)  # suppress its message about its cache
    from matplotlib.layout_engine import ConstrainedLayoutEngine

    from .notebook_figure import NotebookFigure

    return NotebookFigure(figsize=(width, height), layout=ConstrainedLayoutEngine(w_pad=0.12, h_pad=0.08))


def save(figure: Any, path: Path) -> None:
    """Write beside the target, then rename."""
    check_picture(path)
    try:
        with draft_of(path) as draft:
            figure.savefig(draft, dpi=150)
    except OSError as error:
        raise InvalidInput(f"cannot write {str(path)!r} ({error.strerror}); choose another file") from None


def tidy(axes: Any, title: str, subtitle: str) -> None:
    """A heading, and less ink around the data."""
    axes.set_title(title, fontsize=12, pad=24)
    axes.text(0.5, 1.02, subtitle, transform=axes.transAxes, ha="center", va="bottom", fontsize=10, color=GREY)
    axes.spines[["top", "right"]].set_visible(False)
    axes.grid(True, color="#e6e6e6", linewidth=0.6)
    axes.set_axisbelow(True)


def comparison_figure(found: Comparison) -> Any:
    """delta(epsilon) of every design, and the aligned profiles."""
    rows = [row for row in found.rows if row.guarantee is not None]
    figure = new_figure(11.0, 5.2)
    left, right = figure.subplots(1, 2)
    _curves(left, found.question, rows)
    _aligned(right, found.question, rows)
    handles, labels = left.get_legend_handles_labels()
    if handles:
        figure.legend(handles, labels, loc="outside lower center", ncols=min(len(labels), 3), frameon=False)
    return figure


def compared_epsilons(rows: Sequence[Row]) -> tuple[FloatArray, bool]:
    """The epsilons over which rows are shown, and whether they are best shown on a logarithmic scale."""
    ends = [e for e in (row.epsilon_upper for row in rows) if e is not None and 0 < e < np.inf] or [1.0]
    is_wide = max(ends) > 8 * min(ends)
    top = 1.25 * max(ends)
    return np.geomspace(min(ends) / 5, top, 160) if is_wide else np.linspace(0.0, top, 160), is_wide


def _curves(axes: Any, asked: Question, rows: list[Row]) -> None:
    epsilons, is_wide = compared_epsilons(rows)
    for row, color in zip(rows, COLORS * len(rows), strict=False):
        _curve(axes, row, epsilons, color, asked.delta)
    axes.axhline(asked.delta, color=GREY, linewidth=0.8, linestyle=":")
    where = {"transform": axes.get_yaxis_transform(), "va": "bottom", "color": GREY}
    axes.text(0.02, asked.delta, f"δ = {as_asked(asked.delta)}", **where)
    axes.set(yscale="log", xscale="log" if is_wide else "linear", xlabel="ε", ylabel="δ(ε)")
    axes.set(ylim=(asked.delta / 300, 1.5), xlim=(epsilons[0], epsilons[-1]))
    if is_wide:
        plain_ticks(axes.xaxis)
    fresh = f", {asked.steps} fresh draws" if asked.steps > 1 else ""
    tidy(axes, f"Guarantees ({asked.neighbors.kind}{fresh})", "solid: certified, dashed: a known attack")


def _curve(axes: Any, row: Row, epsilons: FloatArray, color: str, delta: float) -> None:
    guarantee, end = row.guarantee, row.epsilon_upper
    if guarantee is None or end is None:
        return
    axes.plot(
        epsilons, guarantee.delta(epsilons), color=color, linewidth=2, label=f"{row.label}: ε ≤ {shown_up(end, 3)}"
    )
    if guarantee.lower:
        axes.plot(epsilons, guarantee.lower.delta(epsilons), color=color, linewidth=1.3, linestyle=(0, (4, 2)))
    if np.isfinite(end):
        axes.plot(end, delta, color=color, **DOT)


def _aligned(axes: Any, asked: Question, rows: list[Row]) -> None:
    for row, color in zip(rows, COLORS * len(rows), strict=False):
        if row.one is not None and row.aligned is not None:
            bases = np.geomspace(asked.epsilon / 20, asked.epsilon * 4, 60)
            views = [v for v in (align(row.one, asked.mechanism, row.eta, float(e)) for e in bases) if v]
            axes.plot([v.ratio for v in views], [v.difference for v in views], color=color, linewidth=2)
            axes.plot(row.aligned.ratio, row.aligned.difference, color=color, **DOT)
    axes.axvline(1.0, color=GREY, linewidth=1)
    axes.axhline(0.0, color=GREY, linewidth=1)
    axes.set_xlim(0.0, max(1.4, 1.1 * axes.get_xlim()[1]))
    reach = 1.25 * float(np.max(np.abs(axes.get_ylim())))
    axes.set_ylim(-reach, reach)
    for across, along, name in ((0, 0, "strong"), (0, 1, "weak I"), (1, 0, "weak II"), (1, 1, "dilution")):
        sides = {"ha": ("left", "right")[across], "va": ("bottom", "top")[along]}
        at = (0.02 + 0.96 * across, 0.02 + 0.96 * along)
        axes.text(*at, name, transform=axes.transAxes, color=GREY, style="italic", **sides)
    axes.set(xlabel="ε'/ε", ylabel="δ' − δ")
    ends = f"ε from {as_asked(asked.epsilon / 20)} to {as_asked(asked.epsilon * 4)}"
    tidy(axes, "Aligned profile of one draw (not a ranking)", f"base {ends}, marked at {as_asked(asked.epsilon)}")


def draw_demo(results: Sequence[Any], true_mean: float, everyone: float, path: Path) -> None:
    """Left: epsilon between attack and proof. Right: the released mean ages with their typical error."""
    figure = new_figure(11.0, 3.9)
    left, right = figure.subplots(1, 2, sharey=True)
    for at, (result, color) in enumerate(zip(results, COLORS, strict=False)):
        low = result.epsilon_upper if result.epsilon_lower is None else result.epsilon_lower
        left.plot([low, result.epsilon_upper], [at, at], color=color, linewidth=5, solid_capstyle="butt", alpha=0.5)
        left.plot(result.epsilon_upper, at, color=color, **DOT)
        above = {"xytext": (0, 9), "textcoords": "offset points", "ha": "center", "color": color}
        left.annotate(result.interval, (result.epsilon_upper, at), **above)
        right.errorbar(result.mean_age, at, xerr=result.mean_age_error, color=color, capsize=4, linewidth=2, fmt="o")
    left.axvline(everyone, color=GREY, linewidth=1, linestyle=":")
    beside = {"xytext": (-5, 0), "textcoords": "offset points", "ha": "right", "color": GREY}
    left.annotate(f"all records, same noise: {everyone:.2f}", (everyone, len(results) - 0.45), **beside)
    right.axvline(true_mean, color=GREY, linewidth=1, linestyle=":")
    right.annotate(f"truth (made-up people): {true_mean:.1f}", (true_mean, len(results) - 0.45), **beside)
    left.set(xscale="log", xlabel="ε at δ = 1e-6", yticks=range(len(results)), yticklabels=[r.label for r in results])
    left.set(ylim=(len(results) - 0.2, -0.6), xlim=(left.get_xlim()[0] / 1.5, left.get_xlim()[1] * 1.8))
    right.set_xlim(min(right.get_xlim()[0], true_mean - 5.5), right.get_xlim()[1])
    plain_ticks(left.xaxis)
    right.set(xlabel="mean age released, ± one standard deviation")
    tidy(left, "Privacy loss of the same 400 draws", "from a known attack to the certified bound")
    tidy(right, "The released answers", "one noisy answer each")
    save(figure, path)


def plain_ticks(axis: Any, steps: Sequence[int] = (1, 2, 5)) -> None:
    """0.1, 0.2, 0.5, 1 … instead of powers of ten."""
    from matplotlib.ticker import FuncFormatter, LogLocator, NullLocator

    axis.set_major_locator(LogLocator(subs=steps))
    axis.set_minor_locator(NullLocator())
    axis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))


def plan_figure(found: Any) -> Any:
    """Left: the expected standard error of every design, best first. Right: the amplified epsilon."""
    rows, epsilon = found.rows, found.epsilon
    figure = new_figure(11.0, 2.2 + 0.45 * len(rows))
    left, right = figure.subplots(1, 2, sharey=True, width_ratios=(3, 2))
    for at, row in enumerate(rows):
        total, bold = row.standard_error, {"fontweight": "bold"} if at == 0 else {}
        sampling = row.standard_error_sampling**2 / total if total else 0.0  # its share of the variance
        left.barh(at, sampling, color=COLORS[0], height=0.55, label="sampling" if at == 0 else None)
        left.barh(at, total - sampling, left=sampling, color=COLORS[1], height=0.55, label="noise" if at == 0 else None)
        beside = {"xytext": (5, 0), "textcoords": "offset points", "va": "center"}
        left.annotate(f"{total:.3g}", (total, at), **beside, **bold)
        low = row.amplified_upper if row.amplified_lower is None else row.amplified_lower
        right.plot([low, row.amplified_upper], [at, at], color=COLORS[2], linewidth=5, alpha=0.5)
        right.plot(row.amplified_upper, at, color=COLORS[2], **DOT)
        right.annotate(
            shown_up(row.amplified_upper, 3), (row.amplified_upper, at), **beside | {"xytext": (8, 0)}, **bold
        )
    right.axvline(epsilon, color=GREY, linewidth=1, linestyle=":")
    usual = rows[0].relation.kind
    names = [row.name + f"\n({row.relation.kind})" * (row.relation.kind != usual) for row in rows]
    left.set(yticks=range(len(rows)), yticklabels=names, ylim=(len(rows) - 0.4, -0.6))
    left.set(xlabel="expected standard error", xlim=(0.0, 1.12 * max(row.standard_error for row in rows)))
    left.get_yticklabels()[0].set_fontweight("bold")
    ends = [epsilon, *(row.amplified_upper for row in rows if np.isfinite(row.amplified_upper))]
    right.set(xscale="log", xlabel=f"amplified ε (dotted: {as_asked(epsilon)}, no gain)")
    right.set_xlim(min(ends) / 1.6, 2.2 * max(ends))
    plain_ticks(right.xaxis)
    figure.legend(loc="outside lower left", ncols=2, frameon=False)
    tidy(left, "Expected error", "a bar is the whole error, coloured by its shares of the variance")
    asked = as_asked(epsilon)
    tidy(right, f"What ε = {asked} on the sample amplifies to", "from a known attack to the certified bound")
    for axes in (left, right):
        axes.grid(False, axis="y")
        axes.tick_params(axis="y", length=0)
    return figure
