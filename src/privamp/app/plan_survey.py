"""The view "Plan a survey": how many interviews in each stratum, by which allocation, with what error and cost.

Sizes, errors and noise are those of `survey.allocate`, the certified epsilon is that of its guarantee, and the designs
are those of `survey.plan`. With a target error, each allocation gets the smallest sample found that reaches it.
"""

import math
import shlex
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from ..errors import Infeasible
from ..numerics.roots import largest_passing
from ..survey import Allocation, Plan, allocate, plan
from . import strata
from .controls import choice, number, text, whole

METHODS = {"optimal": "Optimal", "minimax": "Minimax", "proportional": "Proportional", "neyman": "Neyman"}
DESIGNS = "designs"
_GOALS = {"size": "the number of interviews", "error": "the standard error to reach"}


@dataclass(frozen=True)
class State:
    """The values of the controls."""

    table: str = text(
        strata.checked(strata.SCHOOLS), "Strata", strata.checked, strata.EXAMPLES,
        "public facts, one line for each stratum: records, bounds of the values, known standard deviation, cost",
    )  # fmt: skip
    goal: str = choice("size", _GOALS, "What is given")
    size: int = whole(60, 1, 1_000_000, "Interviews")
    error: float = number(60.0, 1e-3, 1e6, "Standard error to reach", "of the mean, in the units of the values")
    epsilon: float = number(1.0, 0.01, 20.0, "Epsilon", "the privacy loss of the released mean")
    noise: str = choice("laplace", {"laplace": "Laplace", "gaussian": "Gaussian"}, "Kind of noise")
    delta: float = number(1e-6, 1e-12, 0.01, "Delta", "with Gaussian noise")

    @cached_property
    def lines(self) -> tuple[strata.Line, ...]:
        """The strata."""
        return strata.read(self.table)

    @property
    def records(self) -> int:
        """All records of all strata."""
        return sum(each.population for each in self.lines)

    @property
    def drawn(self) -> int:
        """The interviews: at least one in each stratum, at most all records."""
        return min(max(self.size, len(self.lines)), self.records)

    @property
    def used_delta(self) -> float:
        """The delta that is used; 0 for Laplace noise."""
        return self.delta if self.noise == "gaussian" else 0.0

    def notes(self) -> tuple[str, ...]:
        """Messages about the state."""
        if self.goal == "size" and self.drawn != self.size:
            return (f"{self.drawn:,} interviews are planned: at least one in each stratum, at most all records.",)
        return ()


@dataclass(frozen=True, slots=True)
class Job:
    """One allocation, or the comparison of designs."""

    state: State
    name: str


@dataclass(frozen=True, slots=True)
class Allocated:
    """One allocation: sizes, errors, what is certified, and the cost."""

    method: str
    sizes: Mapping[str | int, int]
    interviews: int
    sampling: float  # standard errors
    noise: float
    scale: float
    epsilon: float  # certified
    cost: float
    because: tuple[str, ...]
    assumes: tuple[str, ...]

    @property
    def error(self) -> float:
        """Sampling and noise together."""
        return math.hypot(self.sampling, self.noise)


def jobs(state: State) -> tuple[Job, ...]:
    """The allocations, then the designs."""
    return tuple(Job(state, name) for name in (*METHODS, DESIGNS))


def answer(job: Job) -> Allocated | Plan:
    """The result of one job."""
    return designs(job.state) if job.name == DESIGNS else _allocated(job.state, job.name)


def _allocated(state: State, method: str) -> Allocated:
    found = allocated(state, method)
    guarantee, price = found.guarantee, {each.name: each.cost for each in state.lines}
    return Allocated(
        method, found.sizes, sum(found.sizes.values()), math.sqrt(found.cost.sampling), math.sqrt(found.cost.noise),
        found.scale, guarantee.epsilon(state.used_delta),
        math.fsum(price[str(name)] * size for name, size in found.sizes.items()), guarantee.because, guarantee.assumes,
    )  # fmt: skip


def allocated(state: State, method: str) -> Allocation:
    """The allocation of the given size, or of the smallest size found that reaches the target error."""
    cells = [each.stratum for each in state.lines]

    def of(size: int) -> Allocation:
        return allocate(cells, size, state.epsilon, method, state.used_delta, state.noise)

    if state.goal == "size":
        return of(state.drawn)
    everybody = math.sqrt(of(state.records).variance)
    if everybody > state.error:
        rest = f"a standard error of {everybody:.4g}"
        raise Infeasible(f"even interviews with all records leave {rest}; use a larger epsilon")

    def misses(size: int) -> bool:
        try:
            return math.sqrt(of(size).variance) > state.error
        except Infeasible:  # too few for this delta
            return True

    least = len(cells)
    return of(largest_passing(misses, least, state.records) + 1 if misses(least) else least)


def designs(state: State) -> Plan:
    """`survey.plan` at the same size: designs with and without strata."""
    size = state.drawn if state.goal == "size" else sum(allocated(state, "optimal").sizes.values())
    frame = {"stratum": np.repeat([each.name for each in state.lines], [each.population for each in state.lines])}
    known = {each.name: each.sd for each in state.lines if each.sd is not None}
    return plan(
        frame, size=size, epsilon=state.epsilon, strata="stratum",
        bounds={each.name: (each.low, each.high) for each in state.lines},
        sd=known if len(known) == len(state.lines) else None, delta=state.used_delta, noise=state.noise,
    )  # fmt: skip


def python(state: State, results: Mapping[str, Any]) -> str:
    """A program that prints the numbers of the page, for the allocations that are ready."""
    listed = "".join(
        f"    survey.Stratum({each.name!r}, {each.population}, {each.high - each.low!r}, {each.sd!r}),\n"
        for each in state.lines
    )
    sizes = {name: found.interviews for name in METHODS if isinstance(found := results.get(name), Allocated)}
    reached = f", which reach a standard error of {state.error!r}" if state.goal == "error" else ""
    return f"""\
from privamp import survey

strata = [
{listed}]
sizes = {sizes!r}  # interviews{reached}
for method, size in sizes.items():
    found = survey.allocate(strata, size, {state.epsilon!r}, method, {state.used_delta!r}, {state.noise!r})
    print(method, found.sizes, found.variance**0.5, found.guarantee.epsilon({state.used_delta!r}), sep=" | ")
"""


def command(state: State, results: Mapping[str, Any]) -> str:
    """The designs by the command line, from a frame that has only the strata's names."""
    counts = {each.name: each.population for each in state.lines}
    made = f"print('stratum'); [print(name) for name, n in {counts!r}.items() for _ in range(n)]"
    bounds = ",".join(f"{each.name}={each.low!r}:{each.high!r}" for each in state.lines)
    sd = ",".join(f"{each.name}={each.sd!r}" for each in state.lines)
    best = results.get("optimal")
    size = best.interviews if isinstance(best, Allocated) else state.drawn
    words = ["privamp", "survey", "plan", "frame.csv", "--strata", "stratum", "--bounds", bounds, "--size", str(size)]
    words += ["--epsilon", repr(state.epsilon)]
    words += ["--sd", sd] if all(each.sd is not None for each in state.lines) else []
    words += ["--delta", repr(state.delta)] if state.noise == "gaussian" else []
    return f"python -c {shlex.quote(made)} > frame.csv\n{shlex.join(words)}"
