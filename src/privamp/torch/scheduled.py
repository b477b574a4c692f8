"""Batches by a schedule that is drawn once for the whole run, such as `BallsInBins`.

Who joins which round is a function of the run's key, after a crash too. A round is drawn at most once: a step that was
begun and lost in a crash is not repeated, and the run continues with the next round. So all rounds together are those
of the schedule, of which some were never released, and the schedule's guarantee covers them. What the rounds begun so
far cost: `Schedule.begun`.
"""

from hashlib import sha256

import numpy as np

from ..chance.keys import Key
from ..core.population import Population
from ..core.sample import Drawn
from ..core.schedule import Schedule
from ..errors import InvalidInput
from .batches import Arrays, Batch, DesignBatches
from .plan import Plan


class ScheduleBatches(DesignBatches):
    """The records that the schedule puts into the round in progress."""

    def __init__(self, plan: Plan, population: Population, schedule: Schedule) -> None:
        super().__init__(plan, population)
        self._schedule = schedule
        self._last = -1

    def begin_run(self, key: Key) -> None:
        """Take the key from which all rounds are drawn."""
        self._all_rounds = key.subkey("schedule")

    def begin_stretch(self, key: Key) -> None:
        """Rounds do not depend on the stretch."""
        self._held: tuple[int, Drawn] | None = None

    def state(self) -> Arrays:
        """A digest of the ids, from which the rounds follow."""
        ids = self._population.ids
        content = ids.tobytes() if ids.dtype.kind == "u" else "\0".join(map(str, ids.tolist())).encode()
        return {"people": np.array(list(sha256(content).digest()), dtype=np.uint8)}

    def restore(self, state: Arrays, now: Arrays) -> None:
        """Raise for other ids, with which records would join other rounds, some of them twice."""
        if not np.array_equal(state["people"], now["people"]):
            raise InvalidInput("a schedule must continue with the ids it began with, got others; give the same ids")

    def draw(self, step: int) -> Batch:
        """The records of the round in progress; a round that is over is not drawn again."""
        if self._held is None or self._held[0] != self.slot:
            if self.slot <= self._last:
                raise InvalidInput("this round of the schedule was already drawn; begin the next step")
            self._held = self.slot, self._schedule.drawn(self._population, self._all_rounds, self.slot)
            self._last = self.slot
        drawn = self._held[1]
        return Batch(step, drawn.positions, drawn.counts, np.full(drawn.positions.size, self.clip))
