"""MUST Figure S5: training loss of the logistic regression on Adult, 15 steps, under the paper's noise."""

import math
from pathlib import Path

import numpy as np
from scipy.special import expit

from ...numerics.log_domain import FloatArray
from ...sgd.clipped_gradients import clipped_sum_of
from ..data import shared_file
from ..files import Picture, compared
from ..printed import Check, said
from ..registry import Entry, Outcome
from . import experiment, losses
from . import setting as must
from .adult import TASK, TRAINING, table

QUICK, FULL = 5, 150  # a curve is the mean of this many runs


def curves(repetitions: int) -> dict[str, FloatArray]:
    """The cross-entropy of each design, (runs, steps)."""
    x, y = table(shared_file("adult.csv.gz"))
    order = np.random.default_rng(3).permutation(y.size)[:TRAINING]
    x, y = x[order], y[order]
    clipped = clipped_sum_of(x, y, expit, TASK.clip)
    some = slice(0, 4000)

    def loss(parameters: FloatArray) -> float:
        score = x[some] @ parameters
        return float(np.mean(np.logaddexp(0.0, score) - y[some] * score))

    found = {}
    for name in ("no noise", *experiment.FIVE):
        of = "Poisson" if name == "no noise" else name
        sigma = 1e-9 if name == "no noise" else TASK.paper_sigma(TASK.design(of))
        runs = []
        for _ in range(repetitions):
            kept: list[float] = []
            TASK.trained(of, sigma, losses.traced(clipped, loss, kept), np.zeros(x.shape[1]))
            runs.append(kept)
        found[name] = np.array(runs)
    return found


def order(found: dict[str, FloatArray]) -> Check:
    """Whether the two-stage designs end with a smaller loss, by more than three standard errors of the difference."""
    ends = {name: [losses.last(one) for one in runs] for name, runs in found.items() if name != "no noise"}
    means = {name: float(np.mean(v)) for name, v in ends.items()}
    groups = [[name for name in ends if name.startswith("MUST") is two_stages] for two_stages in (True, False)]
    of_must, of_one_step = (float(np.mean([means[name] for name in group])) for group in groups)
    error = math.sqrt(sum(np.var(ends[name]) / (len(ends[name]) - 1) / len(g) ** 2 for g in groups for name in g))
    more, runs = of_must - of_one_step, len(next(iter(ends.values())))
    return said("the loss of MUST is smaller than that of single-step designs, 'less pronounced'",
                more < -3.0 * error, ", ".join(f"{name} {mean:.4f}" for name, mean in means.items()),
                differs=f"that of MUST is {more:+.4f} ± {error:.4f}, over {runs} runs")  # fmt: skip


def reproduced(out_dir: Path, repetitions: int) -> Outcome:
    """Train, compare, draw and write the files."""
    runs = curves(repetitions)
    found = {name: np.mean(several, axis=0).tolist() for name, several in runs.items()}
    checks = [losses.converge_alike(found, 0.10, "similar loss in every design (within 10% of that without noise)")]
    checks.append(order(runs))
    start = found["no noise"][0]
    checks.append(Check("the loss without noise falls", "-", f"{start:.4f} to {losses.last(found['no noise']):.4f}",
                        losses.last(found["no noise"]) < start))  # fmt: skip
    remark = f"Mean of {repetitions} runs. The noise is the paper's, which does not give the claimed eps' (must-adult)."
    seen = Picture(losses.picture({"Adult": found}), "Cross-entropy over the steps.", "Six curves fall together.")
    return compared(out_dir, ENTRY, checks, remark=remark, picture=seen)


def run(out_dir: Path) -> Outcome:
    """Run with few repetitions, in seconds."""
    return reproduced(out_dir, QUICK)


def full(out_dir: Path) -> Outcome:
    """Run with many repetitions."""
    return reproduced(out_dir, FULL)


ENTRY = Entry(
    name="must-figure-s5",
    paper=must.MUST,
    title="Figure S5: training loss on Adult",
    summary="loss over 15 steps under the paper's noise (needs adult.csv.gz)",
    run=run,
    full=full,
    errata="noise-over-n-for-a-mean-over-m",
)
