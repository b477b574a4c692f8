"""The view "Plan a training": epsilon by epoch for each schedule, and the gain of banded noise at the same epsilon.

Every epsilon is `amplify` of Gaussian noise over a schedule, add/remove. The gain compares prefix sums: independent
noise with Poisson batches, against banded noise with cyclic Poisson batches, calibrated to the same epsilon.
"""

import math
import time
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from .. import spec
from ..accounting.banded import prefix_error
from ..amplification import amplify
from ..calibration import calibrate
from ..core.neighbors import Neighbors
from ..mechanisms.gaussian import Gaussian
from ..schedules.cyclic_poisson import CyclicPoisson
from .controls import number, whole
from .which_design import capped

_WIDER = 1.05  # the public range of the number of records that capped batches need
_POINTS = 5  # of a curve over the epochs
GAIN = "banded noise"
SCHEDULES = ("Poisson", "Balls in bins", "Capped Poisson", "Cyclic Poisson")
AR = Neighbors.ADD_REMOVE


@dataclass(frozen=True)
class State:
    """The values of the controls."""

    records: int = whole(60_000, 100, 10_000_000, "Training records")
    batch: int = whole(600, 1, 1_000_000, "Batch size", "expected size")
    epochs: int = whole(20, 1, 1000, "Epochs")
    noise: float = number(1.0, 0.3, 30.0, "Noise multiplier", "sigma, for gradients clipped to norm 1")
    delta: float = number(1e-6, 1e-12, 0.01, "Delta")
    bands: int = whole(8, 1, 64, "Bands", "rounds that share their noise, for the banded noise")

    @property
    def rounds(self) -> int:
        """Rounds of an epoch."""
        return max(1, round(self.records / self.drawn))

    @property
    def drawn(self) -> int:
        """The batch, which is at most all records."""
        return min(self.batch, self.records)

    @property
    def usable_bands(self) -> int:
        """A group is drawn at bands * rate, which must be at most 1."""
        return max(1, min(self.bands, self.records // self.drawn, self.rounds * self.epochs))

    def notes(self) -> tuple[str, ...]:
        """Messages about the state."""
        fewer = f"{self.usable_bands} bands are used: a group is drawn at bands times the rate, which is at most 1."
        return (fewer,) if self.usable_bands < self.bands else ()


@dataclass(frozen=True, slots=True)
class Job:
    """One schedule up to one epoch, or the gain of banded noise."""

    state: State
    name: str
    schedule: str
    epochs: int


@dataclass(frozen=True, slots=True)
class Point:
    """The epsilon of one schedule after some epochs."""

    schedule: str
    epochs: int
    spec: str
    epsilon_upper: float
    epsilon_lower: float | None
    because: tuple[str, ...]
    theorems: tuple[str, ...]
    assumes: tuple[str, ...]
    seconds: float


@dataclass(frozen=True, slots=True)
class Gain:
    """Errors of prefix sums at the same epsilon."""

    epsilon: float
    sigma: float  # of the banded noise
    independent: float  # root mean square error, in units of the clipping norm
    banded: float

    @property
    def factor(self) -> float:
        """How many times smaller the error of banded noise is."""
        return self.independent / self.banded


def specs(state: State, epochs: int) -> dict[str, str]:
    """The schedules by name, for this many epochs."""
    rate, steps = state.drawn / state.records, state.rounds * epochs
    many = math.ceil(_WIDER * state.records)
    found = {
        "Poisson": f"rounds:steps={steps},design=poisson:rate={rate!r}",
        "Balls in bins": f"balls-in-bins:rounds={state.rounds},epochs={epochs}",
    }
    most = capped(rate, many)
    if rate < 1 and most < state.records:
        cap = f"capped-poisson:rate={rate!r},most={most},at_least={state.records},at_most={many}"
        found["Capped Poisson"] = f"rounds:steps={steps},design={cap}"
    bands = min(state.usable_bands, steps)
    return found | {"Cyclic Poisson": f"cyclic-poisson:rate={rate!r},bands={bands},steps={steps}"}


def epochs_shown(state: State) -> tuple[int, ...]:
    """The last epoch first, then some before it."""
    spread = {max(1, round(state.epochs * k / _POINTS)) for k in range(1, _POINTS + 1)} | {1}
    return tuple(sorted(spread, key=lambda e: (e != state.epochs, e)))


def jobs(state: State) -> tuple[Job, ...]:
    """The end of every schedule, the gain, then the earlier epochs."""
    last, *others = (
        [Job(state, f"{name}, {epochs}", name, epochs) for name in specs(state, epochs)]
        for epochs in epochs_shown(state)
    )
    gain = [Job(state, GAIN, "Cyclic Poisson", state.epochs)]
    return (*last, *(gain if state.usable_bands > 1 else ()), *(job for each in others for job in each))


def answer(job: Job) -> Point | Gain:
    """One point, or the gain."""
    return _gain(job.state) if job.name == GAIN else _point(job)


def _point(job: Job) -> Point:
    started, state = time.perf_counter(), job.state
    text = specs(state, job.epochs)[job.schedule]
    found = amplify(Gaussian(state.noise, 1.0, AR), spec.design_or_schedule(text), AR)
    upper = found.epsilon(state.delta)
    lower = found.lower.epsilon(state.delta) if found.lower else None
    seconds = time.perf_counter() - started
    return Point(job.schedule, job.epochs, text, upper, lower, found.because, found.theorems, found.assumes, seconds)


def _gain(state: State) -> Gain:
    chosen = specs(state, state.epochs)
    steps = state.rounds * state.epochs
    alone = spec.design_or_schedule(chosen["Poisson"])
    epsilon = amplify(Gaussian(state.noise, 1.0, AR), alone, AR).epsilon(state.delta)
    cyclic = CyclicPoisson(state.drawn / state.records, state.usable_bands, steps)
    found = calibrate(lambda s: Gaussian(s, 1.0, AR), cyclic, epsilon=epsilon, delta=state.delta, neighbors=AR)
    assert isinstance(found, Gaussian)
    banded = found.sigma * prefix_error(steps, state.usable_bands)
    return Gain(epsilon, found.sigma, state.noise * prefix_error(steps), banded)


def python(state: State, results: Mapping[str, Any]) -> str:
    """A program that prints the numbers of the page."""
    listed = "".join(f"    {name!r}: {text!r},\n" for name, text in specs(state, state.epochs).items())
    return f"""\
from privamp import Gaussian, amplify, spec

noise = Gaussian({state.noise!r})  # {state.epochs} epochs of {state.rounds} rounds
schedules = {{
{listed}}}
for name, text in schedules.items():
    found = amplify(noise, spec.design_or_schedule(text))
    print(name, found.epsilon({state.delta!r}), found.lower and found.lower.epsilon({state.delta!r}))
"""


def command(state: State, results: Mapping[str, Any]) -> str:
    """The same questions as commands, a line for each schedule."""
    noise = f"--mechanism gaussian:sigma={state.noise!r} --delta {state.delta!r}"
    return "\n".join(f"privamp amplify --design {text} {noise}" for text in specs(state, state.epochs).values())
