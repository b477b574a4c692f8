"""MUST Equation 6 as a picture: the pair that the paper calls the worst, and two real neighbours that are worse.

Ten records in [-1, 1], "wor" 5, then "wr" 5, the sum released with sigma = 2. Printed: sum_u p_u N(u) against
sum_u p_u N(-u), which is what happens when all other records are 0. With all others at -1 the changed record moves the
sum by 2u on one side only: sum_u p_u N(2u) against N(0), and the outputs that reveal the change are more likely.
"""

import math
from collections.abc import Sequence
from io import BytesIO
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from ...amplification import amplify
from ...designs.multistage import MultiStage
from ...mechanisms.gaussian import Gaussian
from ...numerics.log_domain import FloatArray
from ...numerics.printing import shown_down, shown_up
from ...report.html import Report
from ..files import columns, csv_of, publish
from ..printed import HEADER, Check, counted
from ..registry import Entry, Outcome
from .setting import MUST, RO

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

DESIGN, SIGMA = MultiStage((("wor", 5), ("wr", 5)), 10), 2.0
EPSILONS = (0.25, 0.5, 1.0, 2.0)
NOT_WORST = "one pair of neighbours (all others 0), not the worst (all others at one end)"


def mixture(shift: float, t: FloatArray) -> FloatArray:
    """The density of sum_u p_u N(u shift, sigma^2)."""
    law = DESIGN.appearances()
    total: FloatArray = np.zeros_like(t)
    for u, log_p in enumerate([law.log_none, *law.log_p.tolist()]):
        total += np.exp(log_p - 0.5 * ((t - u * shift) / SIGMA) ** 2) / (SIGMA * math.sqrt(2.0 * math.pi))
    return total


def divergence(first: float, second: float, epsilon: float) -> float:
    """The hockey-stick divergence between mixtures of two shifts, by summing over a fine grid."""
    t = np.linspace(-30.0, 30.0, 60_001)
    above = np.maximum(mixture(first, t) - math.exp(epsilon) * mixture(second, t), 0.0)
    return float(np.sum(above) * (t[1] - t[0]))


def checks() -> list[Check]:
    """delta of the printed pair, of the real neighbours, and what is certified."""
    certified = amplify(Gaussian(SIGMA, 2.0, neighbors=RO), DESIGN)
    found = []
    for epsilon in EPSILONS:
        printed, real = divergence(1.0, -1.0, epsilon), divergence(2.0, 0.0, epsilon)
        bound = float(certified.delta(epsilon))
        sound = real <= bound * (1.0 + 1e-6)
        below, above = shown_down(real, 4), shown_up(bound, 4)
        ours = f"real neighbours {below} ({shown_down(real / printed, 3)} times), certified {above}"
        found.append(Check(f"worst delta at epsilon {epsilon:g}", f"{printed:.4g}", ours, real <= printed, NOT_WORST))
        found.append(Check(f"certified at epsilon {epsilon:g} holds", "-", f"{below} <= {above}", sound))
    return found


def picture() -> "Figure":
    """Three panels: the printed pair, the real neighbours, and delta against epsilon."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(9.6, 3.3), layout="constrained")
    left, middle, right = figure.subplots(1, 3)
    _pair(left, 1.0, -1.0, "Equation 6: all others 0", "#D55E00")
    _pair(middle, 2.0, 0.0, "Real neighbours: all others −1", "#009E73")
    epsilons = np.linspace(0.0, 3.0, 31)
    for shifts, colour, dash, name in (
        ((1.0, -1.0), "#D55E00", "--", "Equation 6"),
        ((2.0, 0.0), "#009E73", "-", "real neighbours"),
    ):
        right.plot(epsilons, [divergence(*shifts, e) for e in epsilons], dash, color=colour, lw=2, label=name)
    bound = amplify(Gaussian(SIGMA, 2.0, neighbors=RO), DESIGN)
    right.plot(epsilons, np.asarray(bound.delta(epsilons)), ":", color="black", lw=2, label="certified")
    right.set(yscale="log", xlabel="ε", title="δ over ε")
    right.grid(color="#E8E8E8", lw=0.8)
    right.legend(frameon=False)
    return figure


def _pair(ax: "Axes", first: float, second: float, title: str, colour: str) -> None:
    t = np.linspace(-8.0, 14.0, 89)
    p, q = mixture(first, t), math.exp(EPSILONS[1]) * mixture(second, t)
    ax.plot(t, p, color=colour, lw=1.8, label="P, with +1")
    ax.plot(t, mixture(second, t), color="#555555", lw=1.4, ls="--", label="Q, with −1")
    ax.plot(t, q, color="#999999", lw=1.0, ls=":", label="√e · Q")
    ax.fill_between(t, q, p, where=(p > q).tolist(), color=colour, alpha=0.35, lw=0)
    ax.annotate(f"δ(½) = {shown_down(divergence(first, second, EPSILONS[1]), 2)}", (7.2, 0.03), color=colour)
    ax.set(title=title, xlabel="released sum minus the contribution of the others", ylim=(0, 0.34), yticks=[])
    ax.legend(frameon=False, fontsize=8)


def svg_of(figure: "Figure") -> bytes:
    """A small reproducible SVG in which text stays text."""
    from matplotlib import rc_context

    buffer = BytesIO()
    with rc_context({"svg.fonttype": "none", "svg.hashsalt": "privamp"}):
        figure.savefig(buffer, format="svg", metadata={"Date": None, "Creator": None})
    return buffer.getvalue()


_COLUMNS = ("epsilon", "equation_6", "real_neighbours")


def _rows() -> list[tuple[float, float, float]]:
    return [(e, divergence(1.0, -1.0, e), divergence(2.0, 0.0, e)) for e in EPSILONS]


def run(out_dir: Path) -> Outcome:
    """Integrate, draw and write the files."""
    compared: Sequence[Check] = checks()
    figure = picture()
    text = "\n\n".join([columns(HEADER, (c.row for c in compared)), f"{counted(compared)}."])
    report = Report(
        "MUST Equation 6 is not a worst pair",
        f"Ten records in [−1, 1], 'wor' 5 then 'wr' 5, σ = {SIGMA:g}. The shaded part is δ at ε = ½.",
    )
    report.add_figure(
        figure,
        "Left: the printed pair. Middle: two real neighbours. Right: δ of both, and the certified δ.",
        "The shaded area of the real neighbours is larger than that of the printed pair.",
    )
    marked = [i for i, check in enumerate(compared) if not check.agrees]
    report.add_table(HEADER, (c.row for c in compared), "The worst pair, checked.", marked)
    others = {".svg": svg_of(figure), ".csv": csv_of(_COLUMNS, _rows())}
    return publish(out_dir, ENTRY.name, text, compared, report, others)


ENTRY = Entry(
    name="must-equation-6",
    paper=MUST,
    title="Equation 6: the pair that is composed",
    summary="real neighbours are easier to distinguish than the pair that the paper calls the worst",
    run=run,
    errata="6-must-equation-6-is-not-a-worst-pair",
)
