"""Noisy gradient descent: a fresh sample each step, clipped gradients, Gaussian noise, one composed guarantee.

A step draws a sample, adds up the clipped gradients of its records (a record drawn u times counts u times), adds
N(0, sigma^2) to every entry, divides by the *public expected* size and moves. An empty
sample takes a step of pure noise.

The sensitivity is stated once: each copy of a record adds a vector of norm at most `clip`, so the mechanism is
Gaussian(sigma, sensitivity=clip) under add/remove, from which it follows that replacing a record moves the sum by up
to 2 clip per copy. The guarantee is compose(amplify(mechanism, design), steps): valid because every stage is drawn
afresh in every step, and for gradients that depend on all earlier steps.
"""

from collections.abc import Callable, Sequence
from dataclasses import InitVar, dataclass, replace
from typing import cast

import numpy as np
from numpy.typing import NDArray

from ..accounting.composition import compose
from ..amplification import amplify
from ..calibration import calibrate
from ..chance.keys import Key, given_key
from ..core.design import Design
from ..core.guarantee import Guarantee
from ..core.ledger import BudgetLike, whole_job
from ..core.neighbors import Neighbors
from ..core.population import Population
from ..core.release import renamed
from ..core.sample import Bounded, Sample
from ..errors import InvalidInput
from ..mechanisms.gaussian import Gaussian
from ..numerics.log_domain import FloatArray
from ..validation import in_range, nonnegative, positive, whole

Ints = NDArray[np.int64]
CLIPPED = "each copy of a record adds a vector of norm at most `clip` to the user's sum, whatever the other records are"
ClippedSum = Callable[[FloatArray, Ints, Ints], FloatArray]
"""(parameters, rows, counts) -> the sum over rows of counts times a gradient whose norm is at most the clip."""


@dataclass(frozen=True, slots=True)
class Descended:
    """The result of a descent: parameters, noise and guarantee."""

    parameters: FloatArray
    mechanism: Gaussian
    guarantee: Guarantee


@dataclass(frozen=True, slots=True, kw_only=True)
class Descent:
    """The public choices of a descent. Give `sigma`, or `epsilon` and `delta` for the whole run."""

    design: Design
    clip: float = 1.0  # C, largest l2 norm of one copy's gradient
    steps: int = 100
    sigma: float | None = None  # standard deviation of the noise on the *sum* of clipped gradients
    epsilon: float | None = None
    delta: float | None = None
    learning_rate: float | Callable[[int], float] = 0.1  # a number, or a function of the step 0, 1, ...
    l2: float = 0.0  # adds l2/2 |parameters|^2 to the loss
    radius: float | None = None  # parameters are kept inside this ball
    average: bool = False  # report the mean of the second half of the steps, not the last one
    population: int | None = None  # public number of records to normalise by; needed where the true one is secret
    neighbors: Neighbors | None = None
    records: InitVar[int | None] = None  # the old name of `population`

    def __post_init__(self, records: int | None) -> None:
        if records is not None and self.population is None:
            renamed("records", "population", 4)
            object.__setattr__(self, "population", records)
        if not isinstance(self.design, Design):
            raise InvalidInput(
                f"design must be a Design such as Poisson(0.01), got {type(self.design).__name__} instead"
            )
        positive(clip=self.clip)
        whole(1, steps=self.steps)
        nonnegative(l2=self.l2)
        if self.radius is not None:
            positive(radius=self.radius)
        if not callable(self.learning_rate):
            positive(learning_rate=self.learning_rate)
        if self.sigma is not None:
            positive(sigma=self.sigma)
        if (self.sigma is None) == (self.epsilon is None) or (self.epsilon is None) != (self.delta is None):
            raise InvalidInput(
                "give either sigma, or both epsilon and delta, so that there is one way to set the noise"
            )
        if self.epsilon is not None:
            positive(epsilon=self.epsilon)
            in_range(0, 1, open_ends=True, delta=self.delta)
        positive(expected_size=self.expected_size)

    @property
    def expected_size(self) -> float:
        """The expected size of a sample: a public number, which the sum is divided by."""
        records = self.population if self.population is not None else self.design.public_size
        if records is None:
            raise InvalidInput(
                f"{self.design} does not declare the number of records, which is secret under add-remove; give "
                "population=, a public (rough) number to normalise by"
            )
        whole(1, population=records)
        return self.design.expected_size(records)

    def mechanism(self) -> Gaussian:
        """The noise of one step, calibrated when a target was given."""
        if self.sigma is not None:
            return self._noise(self.sigma)
        found = calibrate(
            self._noise,
            self.design,
            epsilon=self.epsilon or 0.0,
            delta=self.delta or 0.0,
            steps=self.steps,
            neighbors=self.neighbors,
            within=(1e-3 * self.clip, 1e6 * self.clip),
        )
        return cast(Gaussian, found)

    def run(
        self,
        clipped_sum: ClippedSum,
        start: FloatArray,
        population: Population | int,
        key: Key | None = None,
        *,
        is_proved: bool = False,
        budget: BudgetLike | None = None,
    ) -> Descended:
        """Descend from `start`. Each key may be used for one descent on a population.

        That `clipped_sum` respects the clip is not checked; it is listed among the assumptions unless it `is_proved`.
        """
        mechanism = self.mechanism()
        amplify(
            mechanism, self.design, self.neighbors
        )  # a design without a theorem is rejected before anything is drawn
        population, key = Population.of(population), given_key(key)
        label = population.label_by(key)  # computed before anything is charged
        rates = [self._rate(step) for step in range(self.steps)]  # public, so they are rejected before the charge

        def certify(neighbors: Neighbors | None) -> Guarantee:
            return compose(amplify(mechanism, self.design, neighbors), self.steps)

        with whole_job(f"descent by {self.design} on {label}", key, certify, budget, self.delta):
            here, total, sample = self._descended(clipped_sum, start, population, key, mechanism, rates)
        guarantee = compose(sample.guarantee(self.neighbors).fresh(), self.steps)
        if not is_proved:
            guarantee = replace(guarantee, assumes=(*guarantee.assumes, CLIPPED))
        mean = total / (self.steps - self.steps // 2)
        return Descended(mean if self.average else here, mechanism, guarantee)

    def _rate(self, step: int) -> float:
        if not callable(self.learning_rate):
            return self.learning_rate
        try:
            rate = self.learning_rate(step)
        except Exception as error:
            raise InvalidInput(
                f"learning_rate must be a number or a function of the steps 0, 1, …; at step {step} it raised a "
                f"{type(error).__name__}"
            ) from None
        positive(learning_rate=rate)
        return float(rate)

    def _descended(
        self,
        clipped_sum: ClippedSum,
        start: FloatArray,
        population: Population,
        key: Key,
        mechanism: Gaussian,
        rates: Sequence[float],
    ) -> tuple[FloatArray, FloatArray, Sample]:
        """Where it ended, the sum over the second half of the steps, and the last sample."""
        here, total = np.array(start, dtype=np.float64), np.zeros_like(start, dtype=np.float64)
        size = self.expected_size
        for step in range(self.steps):
            sample = self._fresh(population, key, step)._planned([mechanism], None, "descent")
            noisy = _released(sample, mechanism, clipped_sum, here)
            here = self._moved(here, noisy / size, rates[step])
            if step >= self.steps // 2:
                total += here
        return here, total, sample

    def _noise(self, sigma: float) -> Gaussian:
        return Gaussian(sigma, sensitivity=self.clip, neighbors=Neighbors.ADD_REMOVE)

    def _fresh(self, population: Population, key: Key, step: int) -> Sample:
        sample = self.design.draw(population, key, round=step)
        if sample.ledger.entries:
            raise InvalidInput(
                "this key has already drawn samples of this population, and releases were made from them; train with "
                "a fresh key (Key.generate()), or label the other data set with Population(ids, label=…)"
            )
        return sample

    def _moved(self, here: FloatArray, gradient: FloatArray, rate: float) -> FloatArray:
        there: FloatArray = here - rate * (gradient + self.l2 * here)
        if self.radius is not None:
            there *= min(1.0, self.radius / max(float(np.linalg.norm(there)), 1e-300))
        return there


def _released(sample: Sample, mechanism: Gaussian, clipped_sum: ClippedSum, here: FloatArray) -> FloatArray:
    noisy: FloatArray = sample.release(
        mechanism, Bounded(lambda drawn: clipped_sum(here, drawn.positions, drawn.counts))
    )
    return noisy
