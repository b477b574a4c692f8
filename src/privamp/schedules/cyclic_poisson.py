"""Cyclic Poisson: `bands` groups take turns, and each round is a Poisson sample of one group at rate bands * rate.

Theorem (add/remove). A record's group is a function of its own key, so the record has a coin in at most
ceil(steps/bands) rounds, each of rate bands * rate <= 1: the guarantee is that of as many rounds of Poisson sampling.
It holds as well for Gaussian noise C^-1 z with a lower triangular, `bands`-banded C (C_ij = 0 for i - j >= bands)
whose columns have norm at most 1, because a record's rounds are then orthogonal. Exact for columns of norm 1 when the
groups are known; here the key hides them, and no attack is claimed. Choquette-Choo, Ganesh, McKenna, McMahan, Rush,
Thakurta & Xu 2023, Thm 4. Proof: docs/schedules/cyclic_poisson.md.
"""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from fractions import Fraction
from itertools import product
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from ..chance.keyed import keep, keyed_numbers
from ..chance.keys import Key
from ..core.design import Design
from ..core.identity import keep_plain
from ..core.population import Population
from ..core.sample import Drawn
from ..core.schedule import MOST_BINS, Meetings, OneOf, Schedule, everybody_once, uniform_bins
from ..core.words import Word
from ..designs.poisson import Poisson
from ..errors import InvalidInput
from ..validation import in_range, whole


@dataclass(frozen=True, slots=True)
class CyclicPoisson(Schedule):
    """Round s keeps each record of group s mod `bands` with probability bands * rate.

    >>> from privamp import Gaussian, Poisson, Rounds, amplify
    >>> cyclic = amplify(Gaussian(1.0), CyclicPoisson(rate=0.01, bands=4, steps=400))
    >>> cyclic.epsilon(1e-6) == amplify(Gaussian(1.0), Rounds(Poisson(0.04), 100)).epsilon(1e-6)
    True
    """

    rate: float  # q, averaged over all rounds
    bands: int
    steps: int

    assumes: ClassVar[tuple[str, ...]] = (
        *Schedule.assumes,
        "each record's group comes from its own key, sums are divided by a public number, and noise is independent "
        "between rounds or banded with at most `bands` bands and columns of norm at most 1",
    )

    word: ClassVar[Word | None] = Word("cyclic-poisson", ("rate", "bands", "steps"), whole=("bands", "steps"))

    def __post_init__(self) -> None:
        keep_plain(self)
        in_range(0, 1, rate=self.rate)
        whole(1, MOST_BINS, bands=self.bands)
        whole(1, steps=self.steps)
        if self.bands > self.steps:
            raise InvalidInput(
                f"bands must be at most steps, got {self.bands} bands for {self.steps} steps; "
                "use fewer bands or more steps"
            )
        if self.bands * self.rate > 1:
            raise InvalidInput(
                f"bands * rate, the rate of one group, must be at most 1, got {self.bands} * {self.rate:g} instead; "
                "use fewer bands or a smaller rate"
            )

    @property
    def weight(self) -> float | None:
        """One over the rate, averaged over the groups."""
        return 1.0 / self.rate if self.rate > 0 else None

    @property
    def group_rate(self) -> float:
        """The rate inside the group whose turn it is."""
        return self.bands * self.rate

    def blocks(self) -> tuple[tuple[Design | OneOf, int], ...]:
        """The turns of one group."""
        return ((Poisson(self.group_rate), -(-self.steps // self.bands)),)

    @property
    def apart(self) -> int:
        """A record's group has its turn every `bands` rounds."""
        return self.bands

    def begun(self, steps: int) -> "CyclicPoisson":
        """The turns that have begun."""
        whole(1, self.steps, steps=steps)
        return replace(self, steps=max(steps, self.bands))

    def groups(self, population: Population | int, key: Key) -> NDArray[np.int64]:
        """The group of every record, for all rounds."""
        population = Population.of(population)
        return uniform_bins(self._subkey(population, key).subkey("group"), population.ids, self.bands)

    def drawn(self, population: Population | int, key: Key, step: int) -> Drawn:
        """A Poisson sample of the group whose turn it is."""
        self._check_step(step)
        population = Population.of(population)
        coins = keyed_numbers(self._subkey(population, key).subkey("coin", step), population.ids)
        turn = self.groups(population, key) == step % self.bands
        return everybody_once(np.flatnonzero(turn & keep(coins, self.group_rate)))

    def _subkey(self, population: Population, key: Key) -> Key:
        return key.subkey(self.identity, population.label_by(key))

    def law(self, population: Population) -> Iterator[tuple[Meetings, Fraction]]:
        """All groups of all records, and all coins of the rounds in which their group has its turn."""
        ids, q = [int(i) for i in population.ids], Fraction(self.group_rate)
        for groups in product(range(self.bands), repeat=len(ids)):
            turns = [(i, s) for i, g in enumerate(groups) for s in range(g, self.steps, self.bands)]
            for coins in product((0, 1), repeat=len(turns)):
                meetings: list[list[int]] = [[] for _ in range(self.steps)]
                for (i, s), coin in zip(turns, coins, strict=True):
                    if coin:
                        meetings[s].append(ids[i])
                chance = q ** sum(coins) * (1 - q) ** (len(coins) - sum(coins)) / Fraction(self.bands) ** len(ids)
                yield tuple(tuple(sorted(m)) for m in meetings), chance

    @property
    def is_tight(self) -> bool:
        """The group may be known, so the bound does not count that it is random."""
        return self.bands == 1

    @classmethod
    def small_cases(cls) -> Iterator[tuple["CyclicPoisson", int]]:
        """One to three groups, up to five rounds, up to one other record."""
        for (bands, steps), rate, others in product(((1, 2), (2, 2), (2, 4), (2, 3), (3, 4)), (0.1, 0.3), (0, 1)):
            yield cls(rate, bands, steps), others
