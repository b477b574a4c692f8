"""The view "Which design?": one mechanism, one relation, every design at about the same sample size, ranked.

Each row is `amplify`, then `compose` over the rounds; nothing is computed here that those do not return.
"""

import math
import time
import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from .. import spec
from ..accounting.composition import compose
from ..amplification import amplify
from ..core.guarantee import Guarantee
from ..core.mechanism import Mechanism
from ..core.neighbors import Neighbors
from ..errors import DegradingDesign
from ..mechanisms.gaussian import Gaussian
from ..mechanisms.laplace import Laplace
from .controls import choice, number, whole

_POINTS = 48  # of a curve
_WIDER = 1.05  # the public range of the number of records that a capped design needs
_CLUSTER = 10  # records per cluster
_LONGEST_LAW = 1_000_000  # a design of random size keeps one number for each size

RELATIONS = {"replace-one": "one record is replaced", "add-remove": "one record is added or removed"}


@dataclass(frozen=True)
class State:
    """The values of the controls."""

    population: int = whole(10_000, 20, 10_000_000, "Records in the population")
    size: int = whole(200, 1, 1_000_000, "Sample size", "expected size; each design draws about as many")
    noise: float = number(2.0, 0.1, 100.0, "Noise", "sigma or scale, for a sensitivity of 1 when a record is added")
    delta: float = number(1e-6, 1e-12, 0.01, "Delta")
    rounds: int = whole(1, 1, 10_000, "Rounds", "fresh draws, each with a release")
    records: int = whole(1, 1, 8, "Records per person", "how many records one person may have")
    kind: str = choice("gaussian", {"gaussian": "Gaussian", "laplace": "Laplace"}, "Kind of noise")
    relation: str = choice("replace-one", RELATIONS, "Neighbours")

    @property
    def drawn(self) -> int:
        """The sample size, which is at most the population."""
        return min(self.size, self.population)

    @property
    def neighbors(self) -> Neighbors:
        """The relation, for a person with several records where asked."""
        return Neighbors.parse(self.relation).for_person(self.records)

    @property
    def mechanism(self) -> Mechanism:
        """The noise; its sensitivity is that of a record added or removed, the same for every design."""
        make = Gaussian if self.kind == "gaussian" else Laplace
        return make(self.noise, 1.0, Neighbors.ADD_REMOVE)

    @property
    def mechanism_spec(self) -> str:
        """The same for a command."""
        parameter = "sigma" if self.kind == "gaussian" else "scale"
        return f"{self.kind}:{parameter}={self.noise!r},neighbors=add-remove"

    def notes(self) -> tuple[str, ...]:
        """Messages about the state."""
        if self.size > self.population:
            return (f"A sample of {self.size:,} from {self.population:,} records is all of them.",)
        return ()


@dataclass(frozen=True, slots=True)
class Job:
    """One design to be computed for one state."""

    state: State
    name: str
    spec: str


@dataclass(frozen=True, slots=True)
class Row:
    """The numbers of one design, or why it has none."""

    name: str
    spec: str
    expected_size: float
    epsilon_upper: float
    epsilon_lower: float | None
    epsilons: tuple[float, ...]
    deltas_upper: tuple[float, ...]
    deltas_lower: tuple[float, ...] | None
    because: tuple[str, ...]
    theorems: tuple[str, ...]
    assumes: tuple[str, ...]
    degrades: bool
    seconds: float


def jobs(state: State) -> tuple[Job, ...]:
    """The designs, quick ones first."""
    return tuple(Job(state, name, text) for name, text in designs(state))


def designs(state: State) -> list[tuple[str, str]]:
    """(name, spec) of each design that can draw about this number of records."""
    n, m = state.population, state.drawn
    rate = m / n
    found = [
        ("Poisson", f"poisson:rate={rate!r}"),
        ("Simple random", f"wor:size={m},population={n}"),
    ]
    step = round(n / m)
    if abs(n / step - m) <= 0.05 * m:
        found.append(("Systematic", f"systematic:step={step}"))
    found.append(("Proportional", f"proportional:rate={rate!r}"))
    chosen, clusters = round(m / _CLUSTER), n // _CLUSTER
    if chosen >= 1 and n % _CLUSTER == 0 and abs(chosen * _CLUSTER - m) <= 0.05 * m and chosen <= clusters:
        found.append((f"Clusters of {_CLUSTER}", f"cluster:chosen={chosen},clusters={clusters},max_size={_CLUSTER}"))
    spread = min(m // 5, n - m)
    if spread >= 1 and n <= _LONGEST_LAW:
        found.append(("Random size", f"random-size:low={m - spread},high={m + spread},population={n}"))
    found += [
        ("With replacement", f"wr:size={m},population={n}"),
        ("Two stages", f"multistage:wor={max(n // 2, 1)},wr={m},population={n}"),
    ]
    most = capped(rate, math.ceil(_WIDER * n))
    if rate < 1 and most < n:
        limits = f"at_least={n},at_most={math.ceil(_WIDER * n)}"
        found.append(("Capped Poisson", f"capped-poisson:rate={rate!r},most={most},{limits}"))
    return found


def capped(rate: float, records: int) -> int:
    """A cap that a Poisson sample of this expected size exceeds about once in a billion draws."""
    return math.ceil(rate * records + 6.0 * math.sqrt(rate * records))


def answer(job: Job) -> Row:
    """The row of one design; raises `NoTheorem` if no theorem covers it."""
    started, state = time.perf_counter(), job.state
    design = spec.design(job.spec)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DegradingDesign)  # the row says so
        found = amplify(state.mechanism, design, state.neighbors)
    found = compose(found, state.rounds) if state.rounds > 1 else found
    upper = found.epsilon(state.delta)
    lower = found.lower.epsilon(state.delta) if found.lower else None
    epsilons, above, below = _curve(found, upper)
    return Row(
        job.name, job.spec, design.expected_size(state.population), upper, lower, epsilons, above, below,
        found.because, found.theorems, found.assumes, found.degrades, time.perf_counter() - started,
    )  # fmt: skip


def _curve(found: Guarantee, upper: float) -> tuple[tuple[float, ...], tuple[float, ...], tuple[float, ...] | None]:
    end = 1.4 * upper if math.isfinite(upper) and upper > 0 else 1.0
    epsilons = np.linspace(0.0, end, _POINTS)
    above = np.asarray(found.delta(epsilons)).tolist()
    below = np.asarray(found.lower.delta(epsilons)).tolist() if found.lower else None
    return tuple(epsilons.tolist()), tuple(above), None if below is None else tuple(below)


def ranked(rows: Sequence[Row]) -> list[Row]:
    """Smallest certified epsilon first."""
    return sorted(rows, key=lambda row: (row.epsilon_upper, row.name))


def python(state: State, results: Mapping[str, Any]) -> str:
    """A program that prints the numbers of the page."""
    listed = "".join(f"    {name!r}: spec.design({text!r}),\n" for name, text in designs(state))
    make = "Gaussian" if state.kind == "gaussian" else "Laplace"
    relation = "ADD_REMOVE" if state.relation == "add-remove" else "REPLACE_ONE"
    person = f".for_person({state.records})" if state.records > 1 else ""
    return f"""\
from privamp import {make}, Neighbors, NoTheorem, amplify, compose, spec

noise = {make}({state.noise!r}, sensitivity=1.0, neighbors=Neighbors.ADD_REMOVE)
relation = Neighbors.{relation}{person}
designs = {{
{listed}}}
guarantees = {{}}
for name, design in designs.items():
    try:
        guarantees[name] = compose(amplify(noise, design, relation), {state.rounds})
    except NoTheorem as reason:
        print(name, reason)
for name, found in sorted(guarantees.items(), key=lambda pair: (pair[1].epsilon({state.delta!r}), pair[0])):
    print(name, found.epsilon({state.delta!r}), found.lower and found.lower.epsilon({state.delta!r}))
"""


def command(state: State, results: Mapping[str, Any]) -> str:
    """The same question as a command."""
    chosen = "".join(f" \\\n    --design {text}" for _, text in designs(state))
    person = f" --records-per-person {state.records}" if state.records > 1 else ""
    return (
        f"privamp compare --mechanism {state.mechanism_spec} --population {state.population} \\\n"
        f"    --neighbors {state.relation} --delta {state.delta!r} --steps {state.rounds}{person}{chosen}"
    )
