"""Guarantees and designs as notebooks show them: numbers, relation, theorems and assumptions, and a picture."""

import math
from html import escape
from typing import TYPE_CHECKING

import numpy as np

from ..core.design import Design
from ..core.guarantee import Guarantee
from ..numerics.log_domain import FloatArray
from ..numerics.printing import as_asked, shown_down, shown_up
from .curve_lines import Curve, curves_of
from .html import Report
from .pictures import COLORS, new_figure, tidy

if TYPE_CHECKING:
    from matplotlib.figure import Figure

_DELTAS = (1e-9, 1e-6, 1e-5)  # at which the table of a guarantee that is not pure gives epsilon
_LEAST = 1e-12  # the smallest delta in a picture


def guarantee_fragment(guarantee: Guarantee) -> str:
    """The numbers of a guarantee and their picture; theorems and assumptions folded."""
    page = Report("Guarantee", "")
    page.add_table(["", "at most", "an attack reaches"], list(_rows(guarantee)), f"Guarantee ({_told(guarantee)})")
    epsilons = _epsilons(guarantee)
    curve = Curve("", *guarantee_lines(guarantee, epsilons))
    picture = curves_of(epsilons, [curve], "δ(ε): certified (solid), reached by an attack (dashed)")
    return page.body() + picture + folded("Theorems", guarantee.because) + folded("Assumptions", guarantee.assumes)


def guarantee_lines(guarantee: Guarantee, epsilons: FloatArray) -> tuple[FloatArray, FloatArray | None]:
    """delta(epsilon) as certified and, if an attack is known, as attacked."""
    lower = None if guarantee.lower is None else np.asarray(guarantee.lower.delta(epsilons))
    return np.asarray(guarantee.delta(epsilons)), lower


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
    warning += "; LOSES PRIVACY: more than the mechanism on all the data" if guarantee.degrades else ""
    return f"{guarantee.neighbors}, {draws}{warning}"


def folded(title: str, lines: tuple[str, ...]) -> str:
    """A list that opens when its title is clicked."""
    listed = "".join(f"<li>{escape(line)}</li>" for line in lines) or "<li>none</li>"
    return f"<details><summary>{escape(title)}</summary><ul>{listed}</ul></details>"


def _epsilons(guarantee: Guarantee) -> FloatArray:
    """From 0 to where delta is negligible."""
    pure = guarantee.epsilon()
    end = pure if math.isfinite(pure) else guarantee.epsilon(_LEAST)
    return np.linspace(0.0, 1.05 * (end if math.isfinite(end) and end > 0.0 else 1.0), 80)


def guarantee_picture(guarantee: Guarantee) -> "Figure":
    """delta(epsilon) from 0 to where it is negligible, from both sides."""
    epsilons = _epsilons(guarantee)
    figure = new_figure(5.4, 3.4)
    axes = figure.subplots()
    upper, lower = guarantee_lines(guarantee, epsilons)
    axes.plot(epsilons, np.maximum(upper, _LEAST), color=COLORS[0], lw=2)
    if lower is not None:
        axes.plot(epsilons, np.maximum(lower, _LEAST), color=COLORS[1], lw=1.3, ls="--")
    axes.set(yscale="log", ylim=(_LEAST, 1.5), xlim=(0.0, epsilons[-1]), xlabel="ε", ylabel="δ(ε)")
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
    return page.body() + folded("Theorems", tuple(map(str, design.theorems)))
