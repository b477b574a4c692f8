"""Shared by the two tasks of MUST's utility experiment 3 (Table 6): the noise and the table of accuracies.

Three levels of noise on the mean of clipped gradients. The paper's: a Gaussian mechanism of (eps, 1/n) for sensitivity
C/n. Honest for a step: (eps', 1/n) after sampling for the true 2C/m. Honest for the run: (2, 1/n) over all steps, the
total that the paper reports for Adult. The honest levels are stored (found by `must_experiment.honest`, rounded up)
and certified again in every run.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from ...accounting.composition import compose
from ...core.design import Design
from ...numerics.log_domain import FloatArray
from ...numerics.printing import shown_down, shown_up
from ...report.html import Report
from ...sgd.descent import ClippedSum, Descent
from ..files import columns, csv_of, publish
from ..printed import HEADER, Check, counted
from ..registry import Outcome
from . import experiment as experiment

TOTAL = 2.0  # epsilon of a whole run
COLUMNS = ("design", "print", "paper's noise", "honest, a step", "honest, the run", "sigma: paper", "a step", "the run",
           "true eps' at least")  # fmt: skip


@dataclass(frozen=True, slots=True)
class Task:
    """One of the two tasks: sizes, printed accuracies in percent, and stored honest noise on the sum."""

    n: int
    m: int
    b: int
    clip: float
    rate: float
    epsilon: float  # per step, as claimed
    steps: int
    printed: Mapping[str, float]
    stored: Mapping[str, tuple[float, float]]  # for a step, for the run

    @property
    def delta(self) -> float:
        """The paper's 1/n."""
        return 1.0 / self.n

    def design(self, name: str) -> Design:
        """The design to which the paper gives this name."""
        return experiment.design(name, self.n, self.m, self.b)

    def paper_sigma(self, of: Design) -> float:
        """The paper's noise on the mean gradient."""
        epsilon = experiment.base_epsilon(of, self.epsilon)
        return experiment.exact_gaussian(self.clip / self.n, epsilon, self.delta)

    def sigmas(self, name: str) -> tuple[float, float, float]:
        """Noise on the mean: the paper's, honest for a step, and honest for the run."""
        step, whole = self.stored[name]
        return self.paper_sigma(self.design(name)), step / self.m, whole / self.m

    def attacked(self, name: str) -> float:
        """The eps' at delta 1/n that an attack on one step reaches under the paper's noise."""
        of = self.design(name)
        found = experiment.certified(of, self.paper_sigma(of), 2.0 * self.clip / self.m).lower
        return found.epsilon(self.delta) if found else 0.0

    def is_certified(self, name: str) -> bool:
        """Whether the stored noise still has its stated guarantee."""
        of = self.design(name)
        step, whole = (experiment.certified(of, sigma, 2.0 * self.clip) for sigma in self.stored[name])
        deltas = (step.delta(self.epsilon), compose(whole, self.steps).delta(TOTAL))
        return all(float(delta) <= self.delta for delta in deltas)

    def trained(self, name: str, sigma: float, clipped_sum: ClippedSum, start: FloatArray) -> FloatArray:
        """Run gradient descent; sigma is the noise on the mean."""
        descent = Descent(
            design=self.design(name), clip=self.clip, steps=self.steps, sigma=sigma * self.m, population=self.n,
            learning_rate=self.rate, neighbors=experiment.RO,
        )  # fmt: skip
        return descent.run(clipped_sum, start, self.n).parameters


@dataclass(frozen=True, slots=True)
class Line:
    """One design: accuracy in percent and noise on the mean, for the three levels; and the attack."""

    name: str
    accuracy: tuple[float, float, float]
    sigmas: tuple[float, float, float]
    attacked: float
    certified: bool


def lines(task: Task, names: Sequence[str], accuracy: Callable[[str, float], float]) -> Iterator[Line]:
    """Train every design at every level; `accuracy` trains and tests once."""
    for name in names:
        sigmas = task.sigmas(name)
        found = [100.0 * accuracy(name, sigma) for sigma in sigmas]
        yield Line(name, (found[0], found[1], found[2]), sigmas, task.attacked(name), task.is_certified(name))


def checks(task: Task, found: Sequence[Line]) -> Iterator[Check]:
    """Check the claim for each design and the stored noise."""
    why = "the noise is for C/n, but replacing a record moves the mean over m by 2C/m"
    for line in found:
        claim = f"{line.name}: eps' of a step at delta 1/n"
        ours = f"at least {shown_down(line.attacked, 4)}"
        yield Check(claim, f"{task.epsilon:g}", ours, line.attacked <= task.epsilon, why)
        what = f"{line.name}: stored noise is certified again"
        yield Check(what, "-", "yes" if line.certified else "no", line.certified)
    order = [line.sigmas[2] for line in found]
    yield Check("WOR needs no more noise than the multisets", "yes", "yes" if order == sorted(order) else "no",
                order == sorted(order))  # fmt: skip


def published(
    out_dir: Path, name: str, title: str, task: Task, found: Sequence[Line], result: Sequence[Check], remark: str
) -> Outcome:
    """Assemble the table, the checks and the remark."""
    table = [
        (line.name, task.printed[line.name], *(f"{a:.2f}" for a in line.accuracy),
         *(shown_up(sigma, 3) for sigma in line.sigmas), shown_down(line.attacked, 4))
        for line in found
    ]  # fmt: skip
    text = "\n".join(
        [columns(COLUMNS, table), "", columns(HEADER, (c.row for c in result)), "", remark, counted(result) + "."]
    )
    report = Report(title, f"n = {task.n}, m = {task.m}, b = {task.b}, {task.steps} steps: {counted(result)}.")
    report.add_text(remark)
    report.add_table(
        COLUMNS, table, "Test accuracy in percent, noise on the mean gradient, and the true eps' of a step."
    )
    report.add_table(HEADER, [c.row for c in result], "Claims.", [i for i, c in enumerate(result) if not c.agrees])
    return publish(out_dir, name, text, result, report, {".csv": csv_of(COLUMNS, table)})


def averaged(once: Callable[[], float], repetitions: int) -> float:
    """The mean of repeated runs."""
    return float(np.mean([once() for _ in range(repetitions)]))
