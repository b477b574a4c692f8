"""MUST Table S1: 20 rows of six (epsilon', delta') pairs, recomputed.

The last row (Gaussian, MUSTww, Delta/sigma = 1) repeats the delta' of the Laplace row; the other
114 cells are right.
"""

import warnings
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from ...amplification import amplify
from ...core.design import Design
from ...errors import DegradingDesign
from ...numerics.log_domain import FloatArray
from ...numerics.printing import shown_up
from ...report.html import Report
from ..files import columns, csv_of, publish
from ..printed import HEADER, Check, agrees, counted
from ..registry import Entry, Outcome
from . import setting as must

EPSILONS = (0.05, 0.5, 1.0, 2.0, 3.0, 4.5)

# Delta/sigma, mechanism, design, then "epsilon',delta'" for each base epsilon, digits as printed.
_PRINTED = """
0.25 Laplace  base   0.050,0.095    0.500,0        1.000,0        2.000,0        3.000,0        4.500,0
0.25 Laplace  WOR    0.020,0.038    0.231,0        0.523,0        1.269,0        2.156,0        3.600,0
0.25 Laplace  WR     0.017,0.039    0.194,0.001    0.449,7.47e-6  1.134,5.65e-11 1.987,7.44e-17 3.413,1.22e-26
0.25 Laplace  MUSTow 0.014,0.039    0.164,0.003    0.388,9.18e-5  1.015,1.06e-8  1.834,2.18e-13 3.240,2.26e-21
0.25 Laplace  MUSTww 0.012,0.039    0.145,0.006    0.346,6.07e-4  0.932,4.05e-6  1.722,1.84e-8  3.111,3.44e-12
0.25 Gaussian base   0.050,0.078    0.500,0.003    1.000,2.92e-6  2.000,5.09e-17 3.000,1.62e-34 4.500,1.27e-73
0.25 Gaussian WOR    0.020,0.031    0.231,0.001    0.523,1.17e-6  1.269,2.04e-17 2.156,6.50e-35 3.600,5.06e-74
0.25 Gaussian WR     0.017,0.033    0.194,0.005    0.449,0.001    1.134,3.59e-5  1.987,2.17e-6  3.413,4.64e-8
0.25 Gaussian MUSTow 0.014,0.034    0.164,0.008    0.388,0.002    1.015,1.79e-4  1.834,1.89e-5  3.240,8.28e-7
0.25 Gaussian MUSTww 0.012,0.034    0.145,0.011    0.346,0.004    0.932,6.21e-4  1.722,1.31e-4  3.111,1.66e-5
1    Laplace  base   0.050,0.378    0.500,0.221    1.000,0        2.000,0        3.000,0        4.500,0
1    Laplace  WOR    0.020,0.151    0.231,0.088    0.523,0        1.269,0        2.156,0        3.600,0
1    Laplace  WR     0.017,0.141    0.194,0.093    0.449,0.026    1.134,0.003    1.987,3.17e-4  3.413,1.45e-5
1    Laplace  MUSTow 0.014,0.132    0.164,0.095    0.388,0.044    1.015,0.010    1.834,0.002    3.240,1.83e-4
1    Laplace  MUSTww 0.012,0.123    0.145,0.094    0.346,0.052    0.932,0.018    1.722,0.006    3.111,0.001
1    Gaussian base   0.050,0.368    0.500,0.238    1.000,0.127    2.000,0.021    3.000,0.002    4.500,5.87e-6
1    Gaussian WOR    0.020,0.147    0.231,0.095    0.523,0.051    1.269,0.008    2.156,6.15e-4  3.600,2.35e-6
1    Gaussian WR     0.017,0.142    0.194,0.103    0.449,0.068    1.134,0.029    1.987,0.015    3.413,0.006
1    Gaussian MUSTow 0.014,0.136    0.164,0.106    0.388,0.079    1.015,0.045    1.834,0.028    3.240,0.015
1    Gaussian MUSTww 0.012,0.123    0.145,0.094    0.346,0.052    0.932,0.018    1.722,0.006    3.111,0.001
"""

COPIED = "the printed delta' is that of the Laplace row"
_WRONG_ROW = (1.0, "Gaussian", "MUSTww")


@dataclass(frozen=True, slots=True)
class Cell:
    """One printed pair, with its base epsilon."""

    ratio: float  # Delta/sigma
    mechanism: str
    design: str  # "base": no sampling
    epsilon: float
    printed_epsilon: str
    printed_delta: str

    @property
    def erratum(self) -> str:
        """Why the printed value is wrong, or an empty string."""
        return COPIED if (self.ratio, self.mechanism, self.design) == _WRONG_ROW else ""

    @property
    def where(self) -> str:
        """The cell in words."""
        sampling = "" if self.design == "base" else f" on {self.design}"
        return f"{self.mechanism} {self.ratio:g}{sampling}, epsilon {self.epsilon:g}"


@dataclass(frozen=True, slots=True)
class Value:
    """Our pair for a cell, and the delta that `amplify` certifies at the same epsilon'."""

    epsilon: float
    delta: float
    certified: float


def cells() -> Iterator[Cell]:
    """The 120 printed cells."""
    for line in _PRINTED.split("\n"):
        if line:
            ratio, kind, design, *pairs = line.split()
            for epsilon, pair in zip(EPSILONS, pairs, strict=True):
                yield Cell(float(ratio), kind, design, epsilon, *pair.split(","))


def recomputed(designs: Mapping[str, Design] = must.DESIGNS) -> dict[Cell, Value]:
    """Our values for every cell, by the designs' own theorems."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DegradingDesign)  # must-order-reverses explains it
        rows = dict.fromkeys((c.ratio, c.mechanism, c.design) for c in cells())
        found = (value for row in rows for value in _row(*row, designs))
        return dict(zip(cells(), found, strict=True))


def _row(ratio: float, kind: str, name: str, designs: Mapping[str, Design]) -> Iterator[Value]:
    """One printed row, at all of its epsilons."""
    base = must.mechanism(kind, ratio)
    if name == "base":
        deltas = base.profile(must.RO).delta(EPSILONS)
        return map(Value, EPSILONS, _floats(deltas), _floats(deltas))
    design = designs[name]
    amplified = [must.amplified(design, epsilon) for epsilon in EPSILONS]
    deltas = must.printed_bound(design, base).delta(amplified)
    return map(Value, amplified, _floats(deltas), _floats(amplify(base, design).delta(amplified)))


def _floats(values: FloatArray | float) -> list[float]:
    return [float(value) for value in np.atleast_1d(values)]


def compared(values: Mapping[Cell, Value]) -> list[Check]:
    """Compare each cell to its printed digits."""
    return [
        Check(
            cell.where,
            f"{cell.printed_epsilon}, {cell.printed_delta}",
            f"{value.epsilon:.6g}, {value.delta:.6g}",
            agrees(value.epsilon, cell.printed_epsilon) and agrees(value.delta, cell.printed_delta),
            cell.erratum,
        )
        for cell, value in values.items()
    ]


def copied(values: Mapping[Cell, Value]) -> bool:
    """Whether the wrong row is, digit for digit, our Laplace row."""
    laplace = {
        c.epsilon: v.delta for c, v in values.items() if (c.ratio, c.mechanism, c.design) == (1.0, "Laplace", "MUSTww")
    }
    return all(agrees(laplace[c.epsilon], c.printed_delta) for c in values if c.erratum)


def run(out_dir: Path) -> Outcome:
    """Recompute, compare and write the files."""
    values = recomputed()
    checks = compared(values)
    found = counted(checks)
    is_copy = copied(values)
    why = f"The last row is {'' if is_copy else 'NOT '}the Laplace row above it, digit for digit."
    text = "\n".join([columns(HEADER, (c.row for c in checks)), "", found + ".", why])
    copy = Check("the wrong row is the Laplace row above it", "-", "yes" if is_copy else "no", is_copy)
    report = _report(values, checks, found)
    return publish(out_dir, ENTRY.name, text, [*checks, copy], report, {".csv": _csv(values, checks)})


def _csv(values: Mapping[Cell, Value], checks: list[Check]) -> bytes:
    header = ("delta_over_sigma", "mechanism", "design", "base_epsilon", "epsilon", "delta",
              "certified_delta", "printed_epsilon", "printed_delta", "verdict")  # fmt: skip
    rows = (
        (
            c.ratio,
            c.mechanism,
            c.design,
            c.epsilon,
            v.epsilon,
            v.delta,
            v.certified,
            c.printed_epsilon,
            c.printed_delta,
            check.verdict,
        )
        for (c, v), check in zip(values.items(), checks, strict=True)
    )
    return csv_of(header, rows)


def _report(values: Mapping[Cell, Value], checks: list[Check], found: str) -> Report:
    report = Report("MUST Table S1, recomputed", f"n = {must.N}, m = {must.M}, b = {must.B}: {found}.")
    report.add_text(
        "Each printed pair is epsilon' = log(1 + eta(e^epsilon - 1)) and delta' = the sum of p_u delta_u(epsilon), "
        "with p_u the probability that a record is drawn u times. The column 'certified' is the delta that privamp "
        "proves at the same epsilon': for Laplace noise a pure theorem is often much better than the printed bound."
    )
    header = ("cell", "eps' printed", "eps' ours", "delta' printed", "delta' ours", "certified", "verdict")
    rows = [
        (c.where, c.printed_epsilon, v.epsilon, c.printed_delta, v.delta, shown_up(v.certified), check.verdict)
        for (c, v), check in zip(values.items(), checks, strict=True)
    ]
    marked = [i for i, check in enumerate(checks) if not check.agrees]
    report.add_table(header, rows, "All 120 cells; rows that differ from the printed values are coloured.", marked)
    return report


ENTRY = Entry(
    name="must-table-s1",
    paper=must.MUST,
    title="Table S1: amplified pairs of Laplace and Gaussian noise",
    summary="120 printed (epsilon', delta') pairs to their digits; the last row is a copy of the Laplace row",
    run=run,
    errata="3-must-table-s1-the-last-row",
)
