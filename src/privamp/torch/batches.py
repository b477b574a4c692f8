"""Where batches come from: samples by a design, thinned by the importance rule. Drawing needs no torch.

Everything random in step t is a function of (key, stretch of the run, t): a step repeated after a crash is a new draw.
Bounds, positions, counts and norms are secret.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..chance.keyed import keep, keyed_numbers
from ..chance.keys import Key
from ..core.design import Design
from ..core.population import Population
from ..core.sample import Drawn, SeededSample
from ..mechanisms.gaussian import Gaussian
from ..numerics.log_domain import FloatArray
from .importance import ImportanceRule
from .plan import Plan

Ints = NDArray[np.int64]
Arrays = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Batch:
    """The records of one step, or some of them: secret."""

    step: int
    positions: Ints = field(repr=False)
    counts: Ints = field(repr=False)
    bounds: FloatArray = field(repr=False)

    def part(self, start: int, stop: int) -> "Batch":
        """The records from `start` to `stop`."""
        here = slice(start, stop)
        return Batch(self.step, self.positions[here], self.counts[here], self.bounds[here])


def joined(done: list[tuple[Batch, FloatArray]]) -> tuple[Batch, FloatArray]:
    """The parts of one step and their norms as one."""
    if len(done) == 1:
        return done[0]
    parts = [part for part, _ in done]
    whole = Batch(
        parts[0].step,
        np.concatenate([p.positions for p in parts]),
        np.concatenate([p.counts for p in parts]),
        np.concatenate([p.bounds for p in parts]),
    )
    return whole, np.concatenate([norms for _, norms in done])


Norms = Callable[[Ints], FloatArray]
"""positions -> the norms of these records' gradients under the current parameters."""


class Batches(ABC):
    """Draws the records of a step, weights their gradients, and keeps state between steps."""

    clip: float  # how far one copy of a record moves the sum
    save: Callable[[], None] = staticmethod(lambda: None)  # called when something must be stored
    claim: Callable[[], None] = staticmethod(lambda: None)  # called before a release beside the steps
    side_releases = 0  # paid for beside the steps
    slot = 0  # the place of the step in progress among all steps begun, lost ones too

    def begin_run(self, key: Key) -> None:
        """Take the key of the whole run, before the first stretch."""
        return

    @abstractmethod
    def begin_stretch(self, key: Key) -> None:
        """Draw by this key from now on."""

    def begin(self, step: int) -> None:
        """Called once per attempt of a step, before it is drawn: its cost is spent now."""
        return

    def prepare(self, step: int, norms: Norms) -> None:
        """Called before a step is drawn. Raises BudgetExceeded when the step must not be taken."""
        return

    @property
    @abstractmethod
    def mechanism(self) -> Gaussian:
        """The mechanism of the sum: registered for the sample, and added."""

    @property
    @abstractmethod
    def normaliser(self) -> float:
        """What the noisy sum is divided by."""

    def drawn(self, step: int, slot: int) -> Batch:
        """The records of a step at this place among all steps begun."""
        self.slot = slot
        return self.draw(step)

    @abstractmethod
    def draw(self, step: int) -> Batch:
        """The records of step 0, 1, ..."""

    @abstractmethod
    def coefficients(self, batch: Batch, norms: FloatArray) -> FloatArray:
        """What each gradient is multiplied with before they are added up."""

    def remember(self, batch: Batch, norms: FloatArray) -> None:
        """Called once per step, when the step is done."""
        return

    def state(self) -> Arrays:
        """The secret state, for checkpoints."""
        return {}

    def restore(self, state: Arrays, now: Arrays) -> None:
        """Restore a state; what was spent until `now` stays spent."""
        return


class DesignBatches(Batches):
    """A fresh sample by a design in every step; a record drawn u times counts u times, clipped once per copy."""

    def __init__(self, plan: Plan, population: Population) -> None:
        self._design, self.clip, self._population = plan.design, plan.clip, population
        self._mechanism = Gaussian(plan.noise_multiplier * plan.clip, sensitivity=plan.clip)
        self._normaliser = plan.normaliser

    def begin_stretch(self, key: Key) -> None:
        """Take the key from which the samples of this stretch of the run are drawn."""
        self._key = key
        self._drawn: tuple[int, Drawn] | None = None

    @property
    def mechanism(self) -> Gaussian:
        """The plan's noise, the same in every step."""
        return self._mechanism

    @property
    def normaliser(self) -> float:
        """The plan's."""
        return self._normaliser

    def draw(self, step: int) -> Batch:
        """The design's sample of this round, for one noisy sum."""
        drawn = self._handed_out(step, self._design)
        return Batch(step, drawn.positions, drawn.counts, np.full(drawn.positions.size, self.clip))

    def _handed_out(self, step: int, design: Design) -> Drawn:
        """What the design drew for this step, by position; the same while the step is tried."""
        if self._drawn is None or self._drawn[0] != step:
            sample = SeededSample.if_test(design.draw(self._population, self._key, round=step))
            drawn = sample._planned([self.mechanism], None, "training")._hand_out(self.mechanism)
            self._drawn = step, Drawn.joined([drawn])
        return self._drawn[1]

    def coefficients(self, batch: Batch, norms: FloatArray) -> FloatArray:
        """Copies times the usual clipping."""
        return batch.counts * ImportanceRule(1.0, self.clip).coefficients(batch.bounds, norms)


class ImportanceBatches(DesignBatches):
    """Poisson samples at the largest rate r, of which a second coin keeps a record with probability bound/C.

    So a record is drawn with probability r bound/C in all, and what draws is the design that certifies the step: the
    second coin is part of what a record in the sample contributes (docs/torch.md, Theorem 1).
    """

    def __init__(self, plan: Plan, population: Population) -> None:
        super().__init__(plan, population)
        self._rule = plan.rule
        self.bounds = self._rule.start(population.size)

    @property
    def rule(self) -> ImportanceRule:
        """The rule of this step."""
        return self._rule

    def begin_stretch(self, key: Key) -> None:
        """Take the keys of the samples and of the two coins inside them."""
        super().begin_stretch(key)
        self._thinning, self._acceptance = key.subkey("thinning"), key.subkey("acceptance")

    def draw(self, step: int) -> Batch:
        """The records of the sample that their coins keep, with a snapshot of the bounds."""
        return self._thinned(super().draw(step))

    def _thinned(self, batch: Batch) -> Batch:
        bounds = self.bounds[batch.positions]
        kept = self._coins(self._thinning, batch, self.rule.shares(bounds))
        return Batch(batch.step, batch.positions[kept], batch.counts[kept], bounds[kept])

    def _coins(self, key: Key, batch: Batch, chances: FloatArray) -> NDArray[np.bool_]:
        return keep(keyed_numbers(key, self._population.ids[batch.positions], batch.step), chances)

    def coefficients(self, batch: Batch, norms: FloatArray) -> FloatArray:
        """The rule's, with another coin where it rejects."""
        factors = self.rule.coefficients(batch.bounds, norms)
        if self.rule.rejects and norms.size:
            accepted = self._coins(self._acceptance, batch, self.rule.acceptance(batch.bounds, norms))
            factors = np.where(accepted, factors, 0.0)
        return factors

    def remember(self, batch: Batch, norms: FloatArray) -> None:
        """The new bounds of the drawn records."""
        self.bounds[batch.positions] = self.rule.remembered(norms)

    def state(self) -> Arrays:
        """What a checkpoint keeps: the clipping bounds."""
        return {"bounds": self.bounds.copy()}

    def restore(self, state: Arrays, now: Arrays) -> None:
        """Set the clipping bounds that a checkpoint kept."""
        self.bounds = np.array(state["bounds"], dtype=np.float64)
