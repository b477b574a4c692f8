"""IS Figure 5 and Tables 2 and 3: computing time of weights, sampling and DP-Lloyd, relative to all records.

Times on another machine are not compared. Each printed line is checked for consistency (its total over that of all
records, and m/n from Table 1), and the sentences are compared with the lines. Our own times are taken in one run.
"""

import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from ..files import Table, compared
from ..printed import Check, inside, said
from ..registry import Entry, Outcome
from .data_sets import PRINTED, read
from .dp_lloyd import SAMPLERS, STEPS, Trial, fitted, plan
from .figure_2 import IS
from .timing_rows import FULL_SECONDS, lines

TWO_DECIMALS = 0.005


def shares() -> Iterator[Check]:
    """Check m/n of every line with the rows of Table 1."""
    for line in lines():
        ours = 100.0 * line.m / float(PRINTED[line.data][0])
        what = f"{line.data}, {line.sampler}, m = {line.m}: m/n in percent"
        yield Check(what, line.share, f"{ours:.4f}", abs(ours - float(line.share)) <= TWO_DECIMALS + 1e-9)


def totals() -> Iterator[Check]:
    """Check that the relative time of every line is its total over that of all records, to the digits of both."""
    for line in lines():
        ours = 100.0 * float(line.total) / FULL_SECONDS[line.data]
        slack = TWO_DECIMALS + 100.0 * TWO_DECIMALS / FULL_SECONDS[line.data] * (1.0 + ours / 100.0)
        what = f"{line.data}, {line.sampler}, m = {line.m}: relative time in percent"
        yield Check(what, line.relative, f"{ours:.2f} from the seconds", abs(ours - float(line.relative)) <= slack)


def sentences() -> Iterator[Check]:
    """Check what the text says about Figure 5."""
    several = list(lines())
    offset = max(float(x.relative) - float(x.share) for x in several)
    yield said("the relative time is close to m/n for every data set and sampler (within 1.1 points)", offset < 1.1,
               f"at most {offset:.2f} points above")  # fmt: skip
    chosen = {x.sampler: x for x in several if x.data == "Covertype" and x.m == 20_000}
    share = max(float(x.sampling) / float(x.total) for x in chosen.values())
    yield said(
        "Covertype, m = 20,000: sampling is negligible (below 1%)", share < 0.01, f"at most {share:.2%} of the total"
    )
    steps = [float(x.lloyd) for x in chosen.values()]
    yield said("Covertype, m = 20,000: the time of DP-Lloyd is almost static", max(steps) / min(steps) < 1.05,
               f"{min(steps)} to {max(steps)} s")  # fmt: skip
    weights = {name: float(x.weights) for name, x in chosen.items()}
    yield said("Covertype: weights of opt take significantly longer than those of unif and core",
               weights["opt"] > 5 * weights["core"] > 5 * weights["unif"],
               ", ".join(f"{name} {w:g} s" for name, w in weights.items()))  # fmt: skip
    opt = float(chosen["opt"].relative)
    yield said(
        "Covertype, opt, m = 20,000: slightly more than 4% of the time of all records", 4.0 < opt < 4.5, f"{opt}%"
    )
    part = 100.0 * 20_000 / float(PRINTED["Covertype"][0])
    yield Check("m = 20,000 is approximately 3.5% of Covertype", "3.5", f"{part:.2f}", abs(part - 3.5) < 0.05)


@dataclass(frozen=True, slots=True)
class Seconds:
    """The processor time of the three parts of one fit of ours."""

    weights: float
    sampling: float
    steps: float

    @property
    def total(self) -> float:
        """The total."""
        return self.weights + self.sampling + self.steps


def timed(trial: Trial, sampler: str, size: int) -> Seconds:
    """Time the weights by our solver, the coins, and the steps on the kept rows."""
    how = plan(sampler, trial.rows, size, 3.0)
    rng, clock = np.random.default_rng(1), time.process_time
    norms, n = trial.rows.norms, len(trial.rows.x)
    began = clock()
    q = how.rule.of_norms(norms) if how.rule else np.ones(n)
    weighed = clock()
    kept = np.flatnonzero(rng.random(n) < q)
    drawn = clock()
    chosen = type(trial.rows)(trial.rows.x[kept])
    fitted(chosen, how, None, trial.public[:25], rng)
    return Seconds(weighed - began, drawn - weighed, clock() - drawn)


def reproduced(out_dir: Path, name: str, most: int, share: float) -> Outcome:
    """Compare the lines, time our own fits and write the files."""
    trial = Trial.of(read(name), most)
    size = int(share * len(trial.rows.x))
    found = {sampler: timed(trial, sampler, size) for sampler in ("full", *SAMPLERS)}
    whole = found["full"].total
    checks = inside([*sentences(), *shares(), *totals()])
    for sampler in SAMPLERS:
        ratio = found[sampler].total / whole
        checks.append(
            Check(f"ours, {name}, {sampler}, m/n = {share:.1%}: relative time", "-", f"{ratio:.1%}", ratio < 0.5)
        )
    quick = found["opt"].weights / found["full"].steps
    checks.append(Check("ours: weights of opt over DP-Lloyd on all records", "-", f"{quick:.2%}", quick < 0.2))
    rows = [(sampler, *(f"{1e3 * v:.1f}" for v in (x.weights, x.sampling, x.steps, x.total)), f"{x.total / whole:.2%}")
            for sampler, x in found.items()]  # fmt: skip
    header = ("sampler", "weights, ms", "sampling, ms", f"{STEPS} steps, ms", "total, ms", "relative")
    return compared(out_dir, ENTRY, checks, table=Table(header, rows, f"Ours, {name}, processor time."))


def run(out_dir: Path) -> Outcome:
    """Run, with our own times on Ijcnn1."""
    return reproduced(out_dir, "Ijcnn1", 10**7, 0.1)


def full(out_dir: Path) -> Outcome:
    """Run, with our own times on Covertype at m = 20,000 of 566,486."""
    return reproduced(out_dir, "Covertype", 10**7, 0.0353)


ENTRY = Entry(
    name="is-tables-2-3",
    paper=IS,
    title="Figure 5 and Tables 2 and 3: computing time",
    summary="240 printed ratios compared with Table 1 and the printed seconds, and our own times (needs ijcnn1.npz)",
    run=run,
    full=full,
)
