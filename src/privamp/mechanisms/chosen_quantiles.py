"""Quantiles chosen by the exponential mechanism: pure, and each record counts once.

The data are the counts of cells (`CellCounts`), one list of cells per group; adding a record changes one count by 1.

The middle quantile is chosen first, then those to its left and to its right, and so on (Kaplan, Schnapp & Stemmer 2022,
"Differentially private approximate quantiles"). Between the positions a < b that are chosen already, the one of share p
of what lies between is chosen by |(1 - p) X(a, c) - p X(c, b)|, which one record moves by max(p, 1 - p).

A record is spread over its cell, so at each level the positions divide it: the part r of it that lies between a and b
moves what is chosen there by r times as much, and costs r times as much (the loss of the exponential mechanism is
linear in the sensitivity). The parts of a level add up to one record: a level of epsilon_i costs epsilon_i, whatever
the ties are. Groups have disjoint records, so all of them together cost as much as one. Levels add up.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from ..chance.stream import Stream
from ..core.mechanism import ONE, Change
from ..core.multiplicity import Multiplicity
from ..core.neighbors import Neighbors
from ..core.profile import Profile
from ..errors import InvalidInput
from ..validation import in_range, whole
from .black_box import PureDP
from .cell_counts import CellCounts
from .rank_choice import PARTS, STEPS, Aim, Ranks, choose

DENOMINATOR = 2**20  # of probabilities
Node = tuple[int, int, int]  # which quantile is chosen, between which two others (-1 and k: the ends)


@lru_cache(maxsize=64)
def levels_of(quantiles: int) -> tuple[tuple[Node, ...], ...]:
    """The middle one, then the middle ones of what is left to each side, and so on."""
    found: list[list[Node]] = []

    def split(low: int, high: int, depth: int) -> None:
        if high - low < 2:
            return
        if len(found) == depth:
            found.append([])
        middle = (low + high) // 2
        found[depth].append((middle, low, high))
        split(low, middle, depth + 1)
        split(middle, high, depth + 1)

    split(-1, quantiles, 0)
    return tuple(map(tuple, found))


def share_between(node: Node, probabilities: Sequence[float]) -> float:
    """Of what lies between the two others, how much lies below; a multiple of 1/DENOMINATOR."""
    k, low, high = node
    a = probabilities[low] if low >= 0 else 0.0
    b = probabilities[high] if high < len(probabilities) else 1.0
    numerator = round((probabilities[k] - a) / (b - a) * DENOMINATOR)
    return min(max(numerator, 1), DENOMINATOR - 1) / DENOMINATOR


@dataclass(frozen=True, slots=True)
class ChosenQuantiles(PureDP):
    """Quantiles of the records in cells, group by group.

    `cells` is the number of cells of each group, `probabilities` are increasing. An answer has one row per group: the
    positions of the quantiles.
    """

    cells: int = 1
    groups: int = 1
    probabilities: tuple[float, ...] = (0.5,)
    any_event: ClassVar[bool] = False
    sensitivity: ClassVar[float] = 1.0

    def __post_init__(self) -> None:
        PureDP.__post_init__(self)
        whole(1, 2**20, cells=self.cells)
        whole(1, groups=self.groups)
        for p in self.probabilities:
            in_range(0, 1, open_ends=True, probability=p)
        if self.neighbors.kind != "add-remove" or sorted(set(self.probabilities)) != list(self.probabilities):
            raise InvalidInput("quantiles need neighbors=Neighbors.ADD_REMOVE and increasing probabilities")

    @property
    def levels(self) -> tuple[tuple[Node, ...], ...]:
        """The quantiles, level by level."""
        return levels_of(len(self.probabilities))

    def mixture(self, neighbors: Neighbors, law: Multiplicity) -> None:
        """No attack is known: not every event that an epsilon allows is one of this mechanism."""

    def opposite_mixture(self, chance: float, records: int = 1) -> None:
        """No attack is known."""

    def profile(self, neighbors: Neighbors, change: Change = ONE) -> Profile:
        """That of any mechanism of this epsilon, rounded up by more than the rounding of the rates."""
        return PureDP(self.epsilon * (1.0 + 1e-9), self.neighbors).profile(neighbors, change)

    def family(self, neighbors: Neighbors) -> Any:
        """All distances at once."""
        return PureDP(self.epsilon * (1.0 + 1e-9), self.neighbors).family(neighbors)

    def release(self, value: CellCounts, stream: Stream) -> NDArray[np.int64]:  # type: ignore[override]
        """One row per group."""
        parts = (value.between(g * self.cells, (g + 1) * self.cells) for g in range(self.groups))
        return np.array([list(self._quantiles(Ranks.of(part), stream)) for part in parts], dtype=np.int64)

    def _quantiles(self, ranks: Ranks, stream: Stream) -> Iterator[int]:
        chosen, k = {-1: 0, len(self.probabilities): self.cells * STEPS - 1}, len(self.probabilities)
        for node in (node for level in self.levels for node in level):
            middle, low, high = node
            share = round(share_between(node, self.probabilities) * DENOMINATOR)
            below, upto = (int(x) for x in ranks.below(np.array([chosen[low], chosen[high]])))
            below, upto = 0 if low < 0 else below, int(ranks.before[-1]) if high == k else upto
            target = (DENOMINATOR - share) * below + share * upto
            rate = self.epsilon / (2 * len(self.levels) * PARTS * max(share, DENOMINATOR - share))
            chosen[middle] = choose(ranks, Aim(chosen[low], chosen[high], DENOMINATOR, target, rate), stream)
        yield from (chosen[i] for i in range(k))
