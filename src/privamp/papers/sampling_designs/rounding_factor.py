"""SD Theorem 4.3 / 7.2 compared with the exact supremum for proportional allocation with randomised rounding.

Printed: log(1 + 2r(a^2-1)) + log(1 + r(a^2-1)), a = e^eps, for populations with rn >= 1. True and loose: the
supremum over every n is log(1 + r(a-1) + r(1-r)(a^2-1)), and real pairs of populations come arbitrarily
close to it.
"""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path
from typing import TYPE_CHECKING

from ...amplification import amplify
from ...designs.proportional import Proportional
from ...designs.rounded_size import added_at
from ...errors import DegradingDesign
from ...mechanisms.black_box import PureDP
from ...report.html import Report, png_of
from ..files import columns, csv_of, publish
from ..printed import HEADER, Check, counted
from ..registry import Entry, Outcome
from .figure_2 import SD

if TYPE_CHECKING:
    from matplotlib.figure import Figure

RATES = tuple(Fraction(x) for x in ("0.001", "0.01", "0.05", "0.1", "0.25", "0.5", "0.75", "0.9", "0.99"))
EPSILONS = (0.01, 0.1, 0.5, 1.0, 2.0, 4.0)
LARGE = 10_000  # size of the pair that comes close


@dataclass(frozen=True, slots=True)
class Cell:
    """One rate and one epsilon."""

    rate: Fraction
    epsilon: float
    printed: float
    ours: float
    reached: float

    @property
    def factor(self) -> float:
        """The printed bound over the exact supremum."""
        return self.printed / self.ours


def cells() -> list[Cell]:
    """Every rate and epsilon of the printed table."""
    return [_cell(rate, epsilon) for rate in RATES for epsilon in EPSILONS]


def printed_bound(rate: float, epsilon: float) -> float:
    """epsilon' of SD Theorem 4.3 as printed, which is larger than the supremum."""
    square = math.expm1(2 * epsilon)
    return math.log1p(2 * rate * square) + math.log1p(rate * square)


def _cell(rate: Fraction, epsilon: float) -> Cell:
    import warnings

    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DegradingDesign)  # large rates lose privacy, as the table shows
        ours = amplify(PureDP(epsilon), Proportional(rate)).epsilon()
    return Cell(
        rate, epsilon, printed_bound(float(rate), epsilon), ours, added_at(rate, "random", epsilon, LARGE).lower
    )


def checks(found: Sequence[Cell]) -> Iterator[Check]:
    """Check that the printed bound holds, that its constant is not the best, and that ours is reached."""
    true = all(c.printed >= c.ours for c in found)
    yield Check("the printed bound holds", "yes", "yes" if true else "no", true)
    small = [c for c in found if c.epsilon == min(EPSILONS)]
    first = small[0].ours / (float(small[0].rate) * small[0].epsilon)
    why = "the constant is 3 - 2r"
    yield Check(
        "epsilon' is about 6 r epsilon for small epsilon", "6", f"{first:.3f} at r = 0.001", abs(first - 6) < 0.5, why
    )
    limits = all(abs(c.factor * (3 - 2 * float(c.rate)) / 6 - 1) < 0.05 for c in small)
    shown = f"{min(c.factor for c in small):.2f} to {max(c.factor for c in small):.2f}"
    yield Check("factor at small epsilon is 6/(3 - 2r)", "2 to 6", shown, limits)
    close = max(c.ours - c.reached for c in found)
    yield Check(f"a pair of {LARGE:,} records comes close", "(ours)", f"within {close:.1e}", close < 2e-3)


def picture(found: Sequence[Cell]) -> "Figure":
    """The factor against the rate, one line per epsilon."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(8.2, 4.4), layout="constrained")
    ax = figure.subplots()
    colours = ("#0072B2", "#56B4E9", "#009E73", "#E69F00", "#D55E00", "#A2347F")
    dashes = ("-", "--", "-.", ":", "-", "--")
    for epsilon, colour, dash in zip(EPSILONS, colours, dashes, strict=True):
        line = [c for c in found if c.epsilon == epsilon]
        rates = [float(c.rate) for c in line]
        ax.plot(rates, [c.factor for c in line], dash, color=colour, lw=2, marker="o", ms=4, label=f"ε = {epsilon:g}")
    ax.set(xscale="log", xlabel="rate r", ylabel="printed bound / exact supremum", ylim=(1, 6.2))
    ax.set_xticks([0.001, 0.01, 0.1, 0.5, 1.0], ["0.001", "0.01", "0.1", "0.5", "1"])
    ax.spines[["top", "right"]].set_visible(False)
    ax.legend(frameon=False, loc="upper left", ncols=2)
    ax.grid(color="#E8E8E8", lw=0.8)
    return figure


_COLUMNS = ("r", "epsilon", "printed", "exact supremum", f"reached at n = {LARGE:,}", "factor", "amplifies")


def _rows(found: Sequence[Cell]) -> list[tuple[str, ...]]:
    return [
        (
            f"{float(c.rate):g}",
            f"{c.epsilon:g}",
            f"{c.printed:.6f}",
            f"{c.ours:.6f}",
            f"{c.reached:.6f}",
            f"{c.factor:.3f}",
            "yes" if c.ours < c.epsilon else "no",
        )
        for c in found
    ]


def run(out_dir: Path) -> Outcome:
    """Compute, compare, draw and write the files."""
    found = cells()
    compared = list(checks(found))
    figure = picture(found)
    text = "\n\n".join(
        [columns(_COLUMNS, _rows(found)), columns(HEADER, (c.row for c in compared)), f"{counted(compared)}."]
    )
    report = Report("SD Theorem 4.3 and the exact supremum", f"Randomised rounding of r n. {counted(compared)}.")
    report.add_figure(
        figure, "How many times larger the printed bound is.", "Lines rise from about 2 at r = 0.001 to 6 near r = 1."
    )
    report.add_table(_COLUMNS, _rows(found), "Add/remove, any epsilon-DP mechanism.")
    marked = [i for i, check in enumerate(compared) if not check.agrees]
    report.add_table(HEADER, (c.row for c in compared), "The claims, checked.", marked)
    header = ("rate", "epsilon", "printed", "supremum", "reached", "factor")
    rows = ((float(c.rate), c.epsilon, c.printed, c.ours, c.reached, c.factor) for c in found)
    return publish(out_dir, ENTRY.name, text, compared, report, {".png": png_of(figure), ".csv": csv_of(header, rows)})


ENTRY = Entry(
    name="sd-rounding-factor",
    paper=SD,
    title="Theorem 4.3 and the exact supremum",
    summary="the printed bound for randomised rounding is 2 to 6 times larger than the exact supremum at small epsilon",
    run=run,
    errata="sd-theorems-43-and-72-randomised-rounding",
)
