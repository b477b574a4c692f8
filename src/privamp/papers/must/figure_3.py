"""MUST Figure 3: strong, type I weak and type II weak amplification, and dilution, and where each design falls.

The figure is a sketch without numbers. Its quadrants are those of epsilon'/epsilon against delta' - delta; the text
places the designs in them. Points: n = 1000, m from 50 to 400, b from m to 800, base epsilon from 0.05 to 5, Gaussian
and Laplace noise, Delta/sigma = 1, by the theorems that the paper prints.
"""

from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from ...core.design import Design
from ...designs.simple_random import WithoutReplacement
from ...designs.with_replacement import WithReplacement
from ...numerics.log_domain import FloatArray, log_mix
from ..files import Picture, compared
from ..printed import Check, said
from ..registry import Entry, Outcome
from . import setting as must
from .experiment import design

if TYPE_CHECKING:
    from matplotlib.figure import Figure

EPSILONS: FloatArray = np.array([0.05, 0.5, 1.0, 2.0, 3.0, 5.0])
SIZES = ((50, 100), (100, 200), (400, 500), (400, 800))
STRONG, TYPE_I, TYPE_II, DILUTION = "strong", "type I weak", "type II weak", "dilution"
Points = dict[str, list[tuple[float, float]]]


def kind_of(ratio: float, change: float) -> str:
    """Definition 5; a delta' equal to delta (both 0) counts as strong."""
    if ratio < 1.0:
        return STRONG if change <= 0.0 else TYPE_I
    return TYPE_II if change <= 0.0 else DILUTION


def designs() -> Iterator[tuple[str, Design]]:
    """The designs named in the text, at several sizes."""
    for m, b in SIZES:
        yield "WOR", WithoutReplacement(m, must.N)
        yield "WR", WithReplacement(m, must.N)
        for name in ("MUSTow", "MUSTww"):
            yield name, design(name, must.N, m, b)


def points() -> Points:
    """(epsilon'/epsilon, delta' - delta) of every design."""
    found: Points = {}
    for kind in must.MECHANISMS:
        base = must.mechanism(kind, 1.0)
        before = np.asarray(base.profile(must.RO).delta(EPSILONS))
        for name, of in designs():
            amplified = log_mix(of.appearances().eta, EPSILONS)
            after = np.asarray(must.printed_bound(of, base).delta(amplified))
            pairs = zip((amplified / EPSILONS).tolist(), (after - before).tolist(), strict=True)
            found.setdefault(name, []).extend(pairs)
    return found


def checks(found: Points) -> Iterator[Check]:
    """Check which designs are in which quadrant."""
    kinds = {name: Counter(kind_of(*pair) for pair in pairs) for name, pairs in found.items()}
    shown = {name: ", ".join(f"{kind} {count}" for kind, count in c.items()) for name, c in kinds.items()}
    yield said("WOR (and Poisson) always amplify strongly", set(kinds["WOR"]) == {STRONG}, shown["WOR"])
    for name in ("MUSTow", "MUSTww"):
        both = set(kinds[name]) == {STRONG, TYPE_I}
        yield said(f"{name} is strong at some values and type I weak at others", both, shown[name])
    yield said("WR is type I weak at some values", kinds["WR"][TYPE_I] > 0, shown["WR"])
    none = not any(c[TYPE_II] or c[DILUTION] for c in kinds.values())
    yield said("no design of the paper is type II weak or dilutes", none, "none of the points")
    ratios = [ratio for pairs in found.values() for ratio, _ in pairs]
    yield said("epsilon' < epsilon everywhere", max(ratios) < 1.0, f"at most {max(ratios):.3f} epsilon")


def picture(found: Points) -> "Figure":
    """The four quadrants."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(7.2, 4.4), layout="constrained")
    ax = figure.subplots()
    for (name, pairs), marker in zip(found.items(), "os^D", strict=True):
        x, y = zip(*pairs, strict=True)
        ax.plot(x, y, marker, ms=5, ls="", alpha=0.75, color=must.LOOKS[name][0], label=name)
    ax.axvline(1.0, color="#555555", lw=1)
    ax.axhline(0.0, color="#555555", lw=1)
    for left, low, word in ((0.05, -0.42, STRONG), (0.05, 0.14, TYPE_I), (1.1, -0.42, TYPE_II), (1.1, 0.14, DILUTION)):
        ax.annotate(word, (left, low), color="#333333")
    ax.set(xlim=(0, 1.5), ylim=(-0.5, 0.2), xlabel="ε′/ε", ylabel="δ′ − δ")
    ax.legend(frameon=False, loc="center right")
    ax.spines[["top", "right"]].set_visible(False)
    return figure


def run(out_dir: Path) -> Outcome:
    """Compute, compare, draw and write the files."""
    found = points()
    seen = Picture(picture(found), "Where the designs fall.", "All points are left of 1; only WOR stays below 0.")
    return compared(out_dir, ENTRY, list(checks(found)), picture=seen)


ENTRY = Entry(
    name="must-figure-3",
    paper=must.MUST,
    title="Figure 3: strong and weak amplification",
    summary="which design is in which quadrant, over sizes, noise and epsilon",
    run=run,
    errata="4-stronger-amplification-in-epsilon",
)
