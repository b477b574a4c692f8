"""Batches for trainers of other libraries, drawn by a schedule and one key, and certified as a whole.

The trainer adds the noise; what is certified is `mechanism` in every round of `plan`. The key draws once: a second
source of batches with the same key is refused, and continuing after an epoch draws the next rounds, never the first
ones again. Which records a batch holds is secret, and so is their number unless the design fixes it.
"""

import os
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..amplification import amplify
from ..chance.keys import Key, given_key
from ..core.claim import Claim
from ..core.design import Design
from ..core.guarantee import NOT_PRIVATE, Guarantee, Part
from ..core.ledger import BudgetLike, whole_job
from ..core.mechanism import Mechanism
from ..core.neighbors import Neighbors
from ..core.population import Population
from ..core.reads import Vectors
from ..core.sample import Drawn, SeededSample
from ..core.schedule import Schedule
from ..errors import InvalidInput, NoTheorem
from ..schedules.rounds import Rounds
from ..validation import whole

BATCHES = (
    "every batch, an empty one too, is used for one release by the declared mechanism, to which each copy of a record "
    "adds no more than one record may, and sums are divided by a public number"
)
_JOB = "batches"


def check_certified(mechanism: Mechanism, plan: Schedule | Design) -> None:
    """Raise if no theorem covers this under any relation, before anything is drawn or released."""
    try:
        amplify(mechanism, plan)
    except NoTheorem:
        for neighbors in (Neighbors.ADD_REMOVE, Neighbors.REPLACE_ONE):
            with suppress(NoTheorem):
                amplify(mechanism, plan, neighbors)
                return
        raise


class KeyedBatches:
    """The batches of all rounds of `plan`, one after the other, for one release by `mechanism` each.

    `population` is a number of records or a `Population` with the columns that the design reads; positions in a batch
    are positions in it. `budget` is charged for all rounds, drawn or not, before the first one (at `delta`).
    """

    def __init__(
        self,
        plan: Schedule,
        population: Population | int,
        mechanism: Mechanism,
        *,
        key: Key | None = None,
        budget: BudgetLike | None = None,
        delta: float | None = None,
    ) -> None:
        if not isinstance(plan, Schedule) or not isinstance(mechanism, Mechanism):
            raise InvalidInput(
                f"batches need a schedule and a mechanism, got {type(plan).__name__} and {type(mechanism).__name__} "
                "instead; turn a design into Rounds(design, steps)"
            )
        if any(isinstance(read, Vectors) for read in plan.reads.values()):
            raise InvalidInput(
                "an importance rule needs weighted records, which trainers of other libraries do not support; train "
                "with privamp.torch.PrivacyEngine instead"
            )
        self.plan, self.mechanism = plan, mechanism
        self._population, self._key = Population.of(population), given_key(key)
        self._process, self._drawn = os.getpid(), 0
        check_certified(mechanism, plan)
        with whole_job(_JOB, self._key, self.guarantee, budget, delta):
            self._draws = self._all_rounds()

    def guarantee(self, neighbors: Neighbors | None = None) -> Guarantee:
        """That of all rounds of the plan, drawn or not."""
        found = amplify(self.mechanism, self.plan, neighbors)
        if not found.claims:  # a schedule whose blocks claim nothing by themselves is a claim as a whole
            claim = Claim(self.mechanism, self.plan, found.neighbors)
            attack = found.lower.profile if found.lower else None
            found = replace(found, parts=(Part(found.upper, attack, claim=claim, rounds=found.steps),))
        test = (NOT_PRIVATE,) if self._key.is_test else ()
        draws = frozenset([self._key.subkey("job", _JOB).fingerprint])
        return replace(found, assumes=(*found.assumes, BATCHES, *test), draws=draws)

    @property
    def size(self) -> int:
        """How many records there are to draw from: secret under add/remove."""
        return self._population.size

    @property
    def drawn(self) -> int:
        """How many rounds were drawn."""
        return self._drawn

    @property
    def left(self) -> int:
        """How many rounds are still to be drawn."""
        return self.plan.steps - self._drawn

    def take(self, rounds: int) -> Iterator[NDArray[np.int64]]:
        """The next `rounds` batches of positions; a record drawn u times appears u times. Secret."""
        whole(1, rounds=rounds)
        for _ in range(min(rounds, self.left) or rounds):
            if os.getpid() != self._process:
                raise InvalidInput(
                    "batches must be drawn by the process that made their key; make a fresh key in each process"
                )
            if not self.left:
                raise InvalidInput(
                    f"all {self.plan.steps} rounds of the plan are drawn, and no guarantee covers another one; plan "
                    "more rounds beforehand, or start a new run with a fresh key and compose both guarantees"
                )
            self._drawn += 1
            drawn = next(self._draws)
            yield np.repeat(drawn.positions, drawn.counts)

    def _all_rounds(self) -> Iterator[Drawn]:
        if not isinstance(self.plan, Rounds):
            yield from self.plan.draw(self._population, self._key)
            return
        for step in range(self.plan.steps):
            sample = SeededSample.if_test(self.plan.design.draw(self._population, self._key, round=step))
            yield sample._planned([self.mechanism], None, _JOB)._hand_out(self.mechanism)

    def __reduce__(self) -> Any:
        raise InvalidInput("batches are secret and cannot be pickled or copied; keep the key and the plan")
