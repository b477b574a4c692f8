"""MUST section S13: delta_c of the Adult run at epsilon_c = 2, as printed and as it really is.

The paper prints intervals (0, upper) from the Fourier accountant, for noise calibrated to a sensitivity of C/n. In
those units delta is far below every printed upper end, which is the accountant's own error. But the mean is over m
entries, and replacing a record moves it by 2C/m per copy: for that sensitivity, an attack reaches a far larger delta.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from ...accounting.composition import compose
from ...core.guarantee import Guarantee
from ...numerics.printing import shown_down, shown_up
from ...numerics.roots import NumericalFailure
from ..files import Table, compared
from ..printed import Check, said
from ..registry import Entry, Outcome
from . import experiment
from . import setting as must
from .adult import TASK

EPSILON = 2.0
UPPER: Final = {"Poisson": 4.17e-6, "WOR": 3.79e-7, "WR": 1.28e-6, "MUSTow": 8.49e-6, "MUSTww": 1.37e-5}
QUICK, FULL = ("Poisson", "WOR"), experiment.FIVE
OVER_N = "the noise is set for C/n, but replacing a record moves the mean over m by 2C/m per copy"


@dataclass(frozen=True, slots=True)
class Line:
    """One design after all steps of the run: in the paper's units, and for the true sensitivity."""

    name: str
    in_units_of_n: float  # an upper bound on delta at epsilon 2
    attack: float  # the delta that an attack on real neighbours reaches
    certified: float


def line(name: str, steps: int = TASK.steps) -> Line:
    """delta at epsilon 2 under the paper's noise."""
    of = TASK.design(name)
    sigma = TASK.paper_sigma(of)
    as_claimed = compose(experiment.certified(of, sigma, TASK.clip / TASK.n), steps)
    attack, certified = _after(experiment.certified(of, sigma, 2.0 * TASK.clip / TASK.m), steps)
    return Line(name, float(as_claimed.delta(EPSILON)), attack, certified)


def _after(step: Guarantee, steps: int) -> tuple[float, float]:
    """Attack and certificate; for losses too large to compose, an attack on the first step, and 1."""
    try:
        whole = compose(step, steps)
        return (float(whole.lower.delta(EPSILON)) if whole.lower else 0.0), float(whole.delta(EPSILON))
    except NumericalFailure:
        return (float(step.lower.delta(EPSILON)) if step.lower else 0.0), 1.0


def checks(found: list[Line]) -> Iterator[Check]:
    """Check each interval and the sentence below them."""
    for one in found:
        printed = UPPER[one.name]
        yield said(f"{one.name}: delta_c is at most {printed:.3g}, if a record moved the mean by C/n",
                   one.in_units_of_n <= printed, f"at most {shown_up(one.in_units_of_n, 3)}",
                   better="the printed upper end is the error of the accountant")  # fmt: skip
        yield Check(f"{one.name}: delta_c at epsilon 2", f"(0, {printed:.3g})",
                    f"at least {shown_down(one.attack, 3)}", one.attack <= printed, OVER_N)  # fmt: skip
    below = all(upper < TASK.delta for upper in UPPER.values())
    yield said("every printed upper end is below 1/n = 3.2e-5", below, f"largest {max(UPPER.values()):.3g}")
    true = all(one.attack < TASK.delta for one in found)
    yield Check("delta_c at epsilon 2 is below 1/n in every design", "yes", "no" if not true else "yes", true, OVER_N)


def reproduced(out_dir: Path, names: tuple[str, ...]) -> Outcome:
    """Compose, compare and write the files."""
    found = [line(name) for name in names]
    rows = [(x.name, f"{UPPER[x.name]:.3g}", shown_up(x.in_units_of_n, 3), shown_down(x.attack, 3),
             shown_up(x.certified, 3)) for x in found]  # fmt: skip
    header = ("design", "printed upper end", "if over n", "attack", "certified")
    remark = (
        f"{TASK.steps} steps of Adult; the supplement says 1000, which only makes the true delta larger. "
        "Where the losses are too large to compose, the attack is on the first step and nothing is certified (1). "
        "Noise that really has (2, 1/n) for the run: must-adult."
    )
    table = Table(header, rows, "delta at epsilon 2.")
    return compared(out_dir, ENTRY, list(checks(found)), remark=remark, table=table)


def run(out_dir: Path) -> Outcome:
    """Two designs, in seconds."""
    return reproduced(out_dir, QUICK)


def full(out_dir: Path) -> Outcome:
    """All five designs."""
    return reproduced(out_dir, FULL)


ENTRY = Entry(
    name="must-s13",
    paper=must.MUST,
    title="Section S13: composed delta of the Adult run",
    summary="printed intervals for delta at epsilon 2, compared with attacks on real neighbours",
    run=run,
    full=full,
    errata="noise-over-n-for-a-mean-over-m",
)
