"""A schedule: which records join which of many rounds. It is drawn from one key and certified as a whole.

A schedule is made of blocks with fresh randomness each: a `Design` (every round a fresh draw), or `OneOf` (rounds of
which each record joins one). `amplify(mechanism, schedule)` certifies each block and composes them.
"""

from abc import ABC, abstractmethod
from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction
from typing import Self

import numpy as np
from numpy.typing import NDArray

from ..chance.keyed import keyed_numbers
from ..chance.keys import Key, given_key
from ..validation import whole
from .design import Answers, Design, Units
from .neighbors import Neighbors
from .population import Population
from .sample import Drawn

Meetings = tuple[Units, ...]  # the ids in each round, sorted
MOST_BINS = 2**32


@dataclass(frozen=True, slots=True)
class Followed:
    """A number of rounds, each with a fresh draw by the design, followed one by one (accounting/gaussian_rounds.py)."""

    design: Design
    rounds: int


@dataclass(frozen=True, slots=True)
class OneOf:
    """Rounds of which each record joins one, uniformly and independently of all others."""

    rounds: int

    def __post_init__(self) -> None:
        whole(1, MOST_BINS, rounds=self.rounds)


class Schedule(Answers, ABC):
    """Frozen dataclass per kind; the fields are public facts, who joins which round is secret."""

    @property
    def decides_alone(self) -> bool:
        """Whether each record is decided independently, so that one pass over the batches draws a round."""
        return True

    @property
    @abstractmethod
    def steps(self) -> int:
        """How many rounds there are in all."""

    @property
    def natural(self) -> Neighbors:
        """The relation reported by default."""
        return Neighbors.ADD_REMOVE

    @property
    def is_tight(self) -> bool:
        """Whether some mechanism reaches the bound, up to the accuracy of the grid."""
        return True

    @abstractmethod
    def blocks(self) -> tuple[tuple[Design | OneOf, int], ...]:
        """The blocks with fresh randomness that the schedule is made of, and how many of each."""

    @property
    def apart(self) -> int:
        """The smallest distance between a record's rounds, so that noise may be shared among that many."""
        return 1

    @property
    def repeated(self) -> Design | None:
        """The design of which every round is a fresh draw, or None."""
        return None

    def begun(self, steps: int) -> "Schedule":
        """A schedule that covers the first `steps` rounds; all of them, if there is no shorter one."""
        whole(1, self.steps, steps=steps)
        return self

    @property
    def joined(self) -> tuple[int, int, int] | None:
        """(k, t, epochs) when every record joins k of t rounds, uniformly, in each of so many epochs."""
        return None

    @abstractmethod
    def drawn(self, population: Population | int, key: Key, step: int) -> Drawn:
        """Who joins round `step` (from 0 on). One key decides all rounds; the answer is secret."""

    def draw(self, population: Population | int, key: Key | None = None) -> Iterator[Drawn]:
        """Who joins each round, one after the other; with a fresh key when none is given."""
        key = given_key(key)
        for step in range(self.steps):
            yield self.drawn(population, key, step)

    @abstractmethod
    def law(self, population: Population) -> Iterator[tuple[Meetings, Fraction]]:
        """Every way in which a tiny population can join the rounds, with its exact probability."""

    @classmethod
    @abstractmethod
    def small_cases(cls) -> Iterator[tuple[Self, int]]:
        """Instances with the size of a population small enough to enumerate."""

    def _check_step(self, step: int) -> None:
        whole(0, self.steps - 1, step=step)


def uniform_bins(key: Key, ids: NDArray[np.uint64], bins: int) -> NDArray[np.int64]:
    """A bin for each id, exactly uniform: numbers of an incomplete last turn are drawn again."""
    whole(1, MOST_BINS, bins=bins)
    turns = 2**64 // bins * bins
    numbers = keyed_numbers(key, ids)
    again = np.flatnonzero(numbers > np.uint64(turns - 1))
    stage = 1
    while again.size:
        numbers[again] = keyed_numbers(key, ids[again], stage)
        again, stage = again[numbers[again] > np.uint64(turns - 1)], stage + 1
    return np.asarray((numbers % np.uint64(bins)).astype(np.int64))


def everybody_once(positions: NDArray[np.int64]) -> Drawn:
    """The records at these positions, each once and with weight 1."""
    return Drawn(positions, np.ones(positions.size, dtype=np.int64), np.ones(positions.size))
