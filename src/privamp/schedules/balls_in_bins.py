"""Balls in bins (random allocation): in every epoch each record joins one of the rounds, by its own key.

Theorem (add/remove). If one round with and without the record is dominated by a pair with likelihood ratio W, then with
L the mean of `rounds` independent copies of W, delta_PQ(eps) <= E[(L - e^eps)+] and delta_QP(eps) <= E[(1 - e^eps L)+],
adaptively, and exactly for that pair. Epochs compose. A record that joins k = `times` different rounds of an epoch is
covered by k blocks of floor(rounds/k) rounds; an attack on it adds up one score per round. Proofs:
docs/schedules/balls_in_bins.md.

Needs bins by key (shuffled batches of equal size are another design), a public normaliser, and noise in empty bins.
"""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from fractions import Fraction
from itertools import combinations, product
from math import comb
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from ..chance.keys import Key, given_key
from ..core.design import Design
from ..core.identity import keep_plain
from ..core.population import Population
from ..core.sample import Drawn
from ..core.schedule import MOST_BINS, Meetings, OneOf, Schedule, everybody_once, uniform_bins
from ..core.words import Word
from ..validation import whole


@dataclass(frozen=True, slots=True)
class BallsInBins(Schedule):
    """Each epoch puts every record into `times` of the `rounds`, uniformly and independently.

    There are `epochs` times `rounds` rounds, of which each record joins epochs * times. The guarantee covers all of
    them together, and is exact for `times` = 1.

    >>> from privamp import Gaussian, amplify
    >>> f"{amplify(Gaussian(1.0), BallsInBins(100)).epsilon(1e-6):.3f}"
    '0.858'
    """

    rounds: int
    epochs: int = 1
    times: int = 1  # different rounds that a record joins in each epoch

    assumes: ClassVar[tuple[str, ...]] = (
        *Schedule.assumes,
        "each record's bin comes from its own key, sums are divided by a public number, and empty bins release noise",
    )

    word: ClassVar[Word | None] = Word(
        "balls-in-bins", ("rounds",), ("epochs", "times"), whole=("rounds", "epochs", "times")
    )

    def __post_init__(self) -> None:
        keep_plain(self)
        whole(1, MOST_BINS, rounds=self.rounds)
        whole(1, epochs=self.epochs)
        whole(1, self.rounds, times=self.times)

    @property
    def steps(self) -> int:
        """All rounds of all epochs."""
        return self.rounds * self.epochs

    @property
    def weight(self) -> float | None:
        """rounds/times."""
        return self.rounds / self.times

    @property
    def is_tight(self) -> bool:
        """Exact for one round per epoch; several are bounded by blocks."""
        return self.times == 1

    def blocks(self) -> tuple[tuple[Design | OneOf, int], ...]:
        """One of `rounds` in each epoch, or one of each of `times` blocks."""
        return ((OneOf(self.rounds // self.times), self.times * self.epochs),)

    def begun(self, steps: int) -> "BallsInBins":
        """The epochs that have begun: a record may have joined already."""
        whole(1, self.steps, steps=steps)
        return replace(self, epochs=-(-steps // self.rounds))

    @property
    def joined(self) -> tuple[int, int, int]:
        """`times` of `rounds`, in each epoch."""
        return self.times, self.rounds, self.epochs

    def bins(self, population: Population | int, key: Key, epoch: int = 0) -> NDArray[np.int64]:
        """The rounds of every record in this epoch, shape (records, times): secret."""
        whole(0, self.epochs - 1, epoch=epoch)
        population = Population.of(population)
        subkey = key.subkey(self.identity, population.label_by(key), epoch)
        chosen = np.empty((population.size, self.times), dtype=np.int64)
        for i in range(self.times):  # Floyd: a number already chosen is replaced by the largest one allowed
            most = self.rounds - self.times + i
            pick = uniform_bins(subkey.subkey("bin", i), population.ids, most + 1)
            taken = np.any(chosen[:, :i] == pick[:, None], axis=1)
            chosen[:, i] = np.where(taken, most, pick)
        return chosen

    def drawn(self, population: Population | int, key: Key, step: int) -> Drawn:
        """The records whose bin is this round."""
        self._check_step(step)
        epoch, round_in_epoch = divmod(step, self.rounds)
        here = np.any(self.bins(population, key, epoch) == round_in_epoch, axis=1)
        return everybody_once(np.flatnonzero(here))

    def draw(self, population: Population | int, key: Key | None = None) -> Iterator[Drawn]:
        """Who joins each round; the bins of an epoch are computed once."""
        key = given_key(key)
        for epoch in range(self.epochs):
            bins = self.bins(population, key, epoch)
            order = np.argsort(bins.ravel(), kind="stable")
            ends = np.searchsorted(bins.ravel()[order], np.arange(self.rounds + 1))
            for i in range(self.rounds):
                yield everybody_once(np.sort(order[ends[i] : ends[i + 1]] // self.times))

    def law(self, population: Population) -> Iterator[tuple[Meetings, Fraction]]:
        """All choices of all records in all epochs, equally likely."""
        ids = [int(i) for i in population.ids]
        choices = list(combinations(range(self.rounds), self.times))
        chance = Fraction(1, comb(self.rounds, self.times) ** (len(ids) * self.epochs))
        for picks in product(choices, repeat=len(ids) * self.epochs):
            meetings: list[list[int]] = [[] for _ in range(self.steps)]
            for k, rounds in enumerate(picks):
                epoch, i = divmod(k, max(len(ids), 1))
                for r in rounds:
                    meetings[epoch * self.rounds + r].append(ids[i])
            yield tuple(tuple(sorted(m)) for m in meetings), chance

    @classmethod
    def small_cases(cls) -> Iterator[tuple["BallsInBins", int]]:
        """Two to five rounds, up to two others, one or two epochs, one to three rounds per record."""
        for rounds, others in product((1, 2, 3, 4, 5), (0, 1, 2)):
            yield cls(rounds), others
        for rounds, others in product((2, 3), (0, 1)):
            yield cls(rounds, epochs=2), others
        for (rounds, times), others in product(((3, 2), (4, 2), (4, 3), (5, 2)), (0, 1)):
            yield cls(rounds, times=times), others
