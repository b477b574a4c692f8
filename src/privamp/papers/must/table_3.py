"""MUST Table 3: the noise of utility experiment 1, its delta', and the noise that the claim really needs.

n = 300 values in [-4, 4], m = 30 drawn, T = 500 resamples; eps' = 0.1 and delta = 1/300 per answer. The printed sigma
are reproduced by the paper's recipe, and so are the delta' of the MUST rows; those of Poisson, WOR and WR are not.
"""

from collections.abc import Iterator
from pathlib import Path
from typing import Final

from ...core.design import Design
from ...numerics.printing import shown_down, shown_up
from ...report.html import Report
from ..files import columns, csv_of, publish
from ..printed import HEADER, Check, agrees, counted
from ..registry import Entry, Outcome
from . import experiment as experiment
from . import setting as must

N, M, T = 300, 30, 500
RANGE = 8.0  # of values in [-4, 4]
EPSILON, DELTA = 0.1, 1.0 / N

# design, b: sigma for the mean, sigma for the variance, delta' as printed (times 1e-4)
PRINTED: Final[dict[tuple[str, int], tuple[str, str, str]]] = {
    ("Poisson", 0): ("0.13", "1.02", "3.0"),
    ("WOR", 0): ("0.13", "1.02", "3.0"),
    ("WR", 0): ("0.12", "0.99", "5.7"),
    ("MUSTow", 10): ("0.06", "0.50", "64"),
    ("MUSTow", 20): ("0.08", "0.67", "22"),
    ("MUSTow", 30): ("0.09", "0.75", "11"),
    ("MUSTow", 50): ("0.11", "0.84", "5.0"),
    ("MUSTow", 100): ("0.12", "0.93", "2.0"),
    ("MUSTww", 10): ("0.06", "0.50", "65"),
    ("MUSTww", 20): ("0.08", "0.66", "24"),
    ("MUSTww", 30): ("0.09", "0.74", "13"),
    ("MUSTww", 50): ("0.10", "0.82", "7.0"),
    ("MUSTww", 100): ("0.11", "0.90", "3.0"),
}
ERRATA: Final = {
    "Poisson": "eta times the nominal 1/300; the other rows use the exact Gaussian profile, which gives 0.022",
    "WOR": "eta times the nominal 1/300; the other rows use the exact Gaussian profile, which gives 0.022",
    "WR": "the decimal point is misplaced: 0.573",
}
COLUMNS = ("design", "printed sigma", "honest sigma", "printed eps'", "true eps' at least")


def label(name: str, b: int) -> str:
    """A row's name."""
    return f"{name} b={b}" if b else name


def design(name: str, b: int) -> Design:
    """A row's design."""
    return experiment.design(name, N, M, b)


def printed_sigma(of: Design, spread: float) -> float:
    """The paper's noise for a statistic of this range."""
    return experiment.dwork_roth(spread / N, experiment.base_epsilon(of, EPSILON), DELTA)


def delta_checks(name: str, b: int) -> Iterator[Check]:
    """One row of the table, by the paper's recipe."""
    mean, variance, delta = PRINTED[name, b]
    of = design(name, b)
    # WOR's law is used for Poisson, as in the paper's Table 2
    law = experiment.design("WOR", N, M, b) if name == "Poisson" else of
    for what, printed, spread in (("mean", mean, RANGE), ("variance", variance, RANGE**2)):
        ours = printed_sigma(of, spread)
        yield Check(f"{label(name, b)}: sigma for the {what}", printed, f"{ours:.4g}", agrees(ours, printed))
    ratio = RANGE / N / printed_sigma(of, RANGE)
    ours = 1e4 * float(experiment.printed_bound(law, ratio).delta(EPSILON))
    whole = delta.removesuffix(".0")  # 6.53 is printed as 7.0: whole numbers
    yield Check(
        f"{label(name, b)}: delta' x 1e4", delta, f"{ours:.4g}", agrees(ours, whole), ERRATA.get(name, "")
    )  # fmt: skip


def honest_ratio(of: Design) -> float:
    """sigma/sensitivity that gives one answer (0.1, 1/300) after sampling; the search starts at WOR's 1.83."""
    return experiment.honest(of, 1.0, EPSILON, DELTA, start=1.9)


def truth(name: str, b: int) -> tuple[float, float]:
    """Honest sigma for the mean, and the eps' at delta 1/300 that an attack reaches under the printed sigma."""
    of, sensitivity = design(name, b), RANGE / M
    guarantee = experiment.certified(of, printed_sigma(of, RANGE), sensitivity)
    lower = guarantee.lower.epsilon(DELTA) if guarantee.lower else 0.0
    return honest_ratio(of) * sensitivity, lower


def truth_check(name: str, b: int, lower: float) -> Check:
    """Check the claim eps' = 0.1 against an attack on the mean."""
    what = f"{label(name, b)}: eps' of one mean at delta 1/300"
    return Check(what, str(EPSILON), f"at least {shown_down(lower, 4)}", lower <= EPSILON, experiment.DIVIDED_BY_N)


def run(out_dir: Path) -> Outcome:
    """Recompute, compare, calibrate and write the files."""
    checks, rows = [], []
    for name, b in PRINTED:
        noise, lower = truth(name, b)
        checks += [*delta_checks(name, b), truth_check(name, b, lower)]
        printed = PRINTED[name, b][0]
        rows.append((label(name, b), printed, shown_up(noise, 4), str(EPSILON), shown_down(lower, 4)))
    found = counted(checks)
    worst = max(float(row[4]) for row in rows)
    remark = (
        "Honest sigma: the least noise on one resample's mean with (0.1, 1/300)-DP after sampling, under replace-one, "
        f"for the true sensitivity 8/30. Under the printed noise one answer has eps' up to {shown_down(worst, 4)}. "
        "With honest noise the order of the designs reverses: sampling without replacement needs the least."
    )
    text = "\n".join([columns(HEADER, (c.row for c in checks)), "", columns(COLUMNS, rows), "", remark, found + "."])
    report = Report("MUST Table 3, recomputed", f"n = {N}, m = {M}, T = {T}: {found}.")
    report.add_text(remark)
    report.add_table(COLUMNS, rows, "The mean: the printed noise, and the noise that the claim needs.")
    marked = [i for i, check in enumerate(checks) if not check.agrees]
    report.add_table(HEADER, [c.row for c in checks], "Every printed number of the table.", marked)
    return publish(out_dir, ENTRY.name, text, checks, report, {".csv": csv_of(COLUMNS, rows)})


ENTRY = Entry(
    name="must-table-3",
    paper=must.MUST,
    title="Table 3: noise and delta' of utility experiment 1",
    summary="the printed noise is calibrated to a sensitivity over n instead of m: eps' is up to 239, not 0.1",
    run=run,
    errata="table-3-delta-of-wr-poisson-and-wor",
)
