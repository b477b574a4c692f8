"""Guarantees and designs as notebooks show them: numbers, relation, theorems and assumptions, and a picture."""

import math
from base64 import b64encode
from html import escape
from typing import TYPE_CHECKING

import numpy as np

from ..core.design import Design
from ..core.guarantee import Guarantee
from ..extras import is_installed
from ..numerics.printing import as_asked, shown_down, shown_up
from .html import Report, png_of
from .pictures import COLORS, new_figure, tidy

if TYPE_CHECKING:
    from matplotlib.figure import Figure

_DELTAS = (1e-9, 1e-6, 1e-5)  # at which the table of a guarantee that is not pure gives epsilon
_LEAST = 1e-12  # the smallest delta in a picture


def guarantee_fragment(guarantee: Guarantee) -> str:
    """The numbers of a guarantee; its picture, where matplotlib is installed; the rest folded."""
    page = Report("Guarantee", "")
    page.add_table(["", "at most", "an attack reaches"], list(_rows(guarantee)), f"Guarantee ({_told(guarantee)})")
    picture = _image(guarantee_picture(guarantee)) if is_installed("matplotlib") else ""
    return page.body() + picture + _folded("Theorems", guarantee.because) + _folded("Assumptions", guarantee.assumes)


def _image(figure: "Figure") -> str:
    """A picture that fits a notebook, which has no style sheet of ours."""
    data = b64encode(png_of(figure)).decode("ascii")
    about = "δ(ε): certified (solid), reached by an attack (dashed)"
    return f'<p><img alt="{about}" style="width:100%;max-width:30em" src="data:image/png;base64,{data}"></p>'


def _rows(guarantee: Guarantee) -> list[list[str]]:
    lower = guarantee.lower
    if math.isfinite(guarantee.epsilon()):
        asked = [("ε", 0.0)]
    else:
        asked = [(f"ε at δ = {as_asked(delta)}", delta) for delta in _DELTAS]
    return [
        [name, shown_up(guarantee.epsilon(delta)), shown_down(lower.epsilon(delta)) if lower else "—"]
        for name, delta in asked
    ]


def _told(guarantee: Guarantee) -> str:
    draws = "one draw" if guarantee.steps == 1 else f"{guarantee.steps:,} fresh draws"
    warning = "" if guarantee.is_private else "; NOT PRIVATE: test mode"
    return f"{guarantee.neighbors}, {draws}{warning}"


def _folded(title: str, lines: tuple[str, ...]) -> str:
    listed = "".join(f"<li>{escape(line)}</li>" for line in lines) or "<li>none</li>"
    return f"<details><summary>{escape(title)}</summary><ul>{listed}</ul></details>"


def guarantee_picture(guarantee: Guarantee) -> "Figure":
    """delta(epsilon) from 0 to where it is negligible, from both sides."""
    pure = guarantee.epsilon()
    end = pure if math.isfinite(pure) else guarantee.epsilon(_LEAST)
    end = end if math.isfinite(end) and end > 0.0 else 1.0
    epsilons = np.linspace(0.0, 1.05 * end, 80)
    figure = new_figure(5.4, 3.4)
    axes = figure.subplots()
    axes.plot(epsilons, np.maximum(guarantee.delta(epsilons), _LEAST), color=COLORS[0], lw=2)
    if guarantee.lower is not None:
        axes.plot(epsilons, np.maximum(guarantee.lower.delta(epsilons), _LEAST), color=COLORS[1], lw=1.3, ls="--")
    axes.set(yscale="log", ylim=(_LEAST, 1.5), xlim=(0.0, 1.05 * end), xlabel="ε", ylabel="δ(ε)")
    tidy(axes, "δ(ε), certified and attacked", _told(guarantee))
    return figure  # type: ignore[no-any-return]


def design_fragment(design: Design) -> str:
    """The public facts of a design, and what its theorems cover."""
    page = Report("Design", "")
    weight = design.weight
    facts = [
        ["spec", design.spec or "—"],
        ["columns it reads", ", ".join(design.reads) or "none"],
        ["weight of a drawn record", "not public" if weight is None else f"{weight:.6g}"],
        ["decides record by record", "yes" if design.decides_alone else "no"],
        ["relation reported by default", str(design.natural)],
    ]
    page.add_table([type(design).__name__, ""], facts, repr(design))
    return page.body() + _folded("Theorems", tuple(map(str, design.theorems)))
