"""Quantiles and the ends of their intervals, chosen by the exponential mechanism: pure, and each record counts once.

The data are the counts of cells (`CellCounts`), one list of cells per group; adding a record changes one count by 1.

1. A count of the group's records, with discrete Laplace noise, where it is not public.
2. Quantiles, the middle one first, then those to its left and to its right, and so on (Kaplan, Schnapp & Stemmer 2022,
   "Differentially private approximate quantiles"). Between the positions a < b that are chosen already, the one of
   share p of what lies between is chosen by |(1 - p) X(a, c) - p X(c, b)|, which one record moves by max(p, 1 - p).
3. The ends of intervals: between a quantile and half the way to its neighbour, that with `away` records in between, by
   |X(c, quantile) - away|, which one record moves by 1. Where there are not so many, the outcome is "beyond".

A record is spread over its cell, so at each step the positions divide it: the part r of it that lies between a and b
moves what is chosen there by r times as much, and costs r times as much (the loss of the exponential mechanism is
linear in the sensitivity). The parts of a step add up to one record: a step of epsilon_i costs epsilon_i, whatever the
ties are. Groups have records of their own, so all of them together cost one of them. Steps add up.
"""

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from ..chance.discrete import discrete_laplace
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
_BEYOND = 4  # times the positions of the range: so likely is "beyond" where nobody is between
Node = tuple[int, int, int]  # which quantile is chosen, between which two others (-1 and k: the ends)
Away = Callable[[float], tuple[tuple[float, float], ...]]  # by the noisy count: records to the left and to the right


@dataclass(frozen=True, slots=True)
class Shares:
    """How a budget of 1 is split: the count, every level of quantiles, the ends of intervals."""

    count: float
    level: float
    ends: float

    @classmethod
    def of(cls, quantiles: int, *, count: bool, ends: bool = True) -> "Shares":
        """A small part for the count, the same for each level and for the ends."""
        own, steps = (0.1 if count else 0.0), len(levels_of(quantiles)) + ends
        return cls(own, (1.0 - own) / steps, (1.0 - own) / steps if ends else 0.0)


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
    """Quantiles of the records in cells, group by group, and the ends of their intervals.

    `cells` of each group, `probabilities` rising, `shares` of epsilon, and `away` (public): how many records lie
    between a quantile and the ends of its interval, by the noisy count. An answer has one row per group: the count, the
    quantiles, the lower ends and the upper ends, all but the count as positions, -1 for an end beyond its range.
    """

    cells: int = 1
    groups: int = 1
    probabilities: tuple[float, ...] = (0.5,)
    shares: Shares = Shares(0.0, 1.0, 0.0)
    away: Away | None = None
    any_event: ClassVar[bool] = False
    sensitivity: ClassVar[float] = 1.0

    def __post_init__(self) -> None:
        PureDP.__post_init__(self)
        whole(1, 2**20, cells=self.cells)
        whole(1, groups=self.groups)
        for p in self.probabilities:
            in_range(0, 1, open_ends=True, probability=p)
        if self.neighbors.kind != "add-remove" or sorted(set(self.probabilities)) != list(self.probabilities):
            raise InvalidInput("quantiles are chosen under add-remove, by rising probabilities")
        parts = self.shares.count + len(self.levels) * self.shares.level + self.shares.ends
        if not parts <= 1.0 + 1e-12 or (self.shares.ends and self.away is None):
            raise InvalidInput("the shares of epsilon must add up to 1 at most, and ends need `away`")

    @property
    def levels(self) -> tuple[tuple[Node, ...], ...]:
        """The quantiles, level by level."""
        return levels_of(len(self.probabilities))

    def mixture(self, neighbors: Neighbors, law: Multiplicity) -> None:
        """No attack is known: not every event that an epsilon allows is one of this mechanism."""

    def opposite_mixture(self, chance: float, records: int = 1) -> None:
        """No attack is known."""

    def profile(self, neighbors: Neighbors, change: Change = ONE) -> Profile:
        """That of any mechanism of this epsilon, rounded up by more than the rounding of the shares."""
        return PureDP(self.epsilon * (1.0 + 1e-9), self.neighbors).profile(neighbors, change)

    def family(self, neighbors: Neighbors) -> Any:
        """All distances at once."""
        return PureDP(self.epsilon * (1.0 + 1e-9), self.neighbors).family(neighbors)

    def release(self, value: CellCounts, stream: Stream) -> NDArray[np.int64]:  # type: ignore[override]
        """One row per group."""
        rows = [
            list(self._group(Ranks.of(value.between(g * self.cells, (g + 1) * self.cells)), stream))
            for g in range(self.groups)
        ]
        return np.array(rows, dtype=np.int64)

    def _group(self, ranks: Ranks, stream: Stream) -> Iterator[int]:
        count = 0
        if self.shares.count:
            noise = discrete_laplace(stream, 1.0 / (self.shares.count * self.epsilon), 1)
            count = int(ranks.before[-1]) // PARTS + int(noise[0])
        yield count
        chosen = self._quantiles(ranks, stream)
        yield from chosen
        if self.shares.ends:
            yield from self._ends(ranks, chosen, count, stream)

    def _quantiles(self, ranks: Ranks, stream: Stream) -> list[int]:
        chosen = {-1: 0, len(self.probabilities): self.cells * STEPS - 1}
        for level in self.levels:
            for node in level:
                k, low, high = node
                share = round(share_between(node, self.probabilities) * DENOMINATOR)
                a, b = chosen[low], chosen[high]
                whole_range = low < 0, high == len(self.probabilities)
                below, upto = self._limits(ranks, a, b, whole_range)
                target = (DENOMINATOR - share) * below + share * upto
                rate = self.shares.level * self.epsilon / (2 * PARTS * max(share, DENOMINATOR - share))
                chosen[k] = choose(ranks, Aim(a, b, DENOMINATOR, target, rate), stream)
        return [chosen[k] for k in range(len(self.probabilities))]

    def _limits(self, ranks: Ranks, a: int, b: int, is_end: tuple[bool, bool]) -> tuple[int, int]:
        """Parts of records below both positions; all that there are beyond the first and the last."""
        below, upto = (int(x) for x in ranks.below(np.array([a, b])))
        return 0 if is_end[0] else below, int(ranks.before[-1]) if is_end[1] else upto

    def _ends(self, ranks: Ranks, chosen: list[int], count: int, stream: Stream) -> list[int]:
        """All lower ends, then all upper ends."""
        assert self.away is not None
        rate = self.shares.ends * self.epsilon / (2 * PARTS)
        found: dict[tuple[int, int], int] = {}
        for k, (left, right) in enumerate(self.away(float(count))):
            at = chosen[k]
            first = (chosen[k - 1] + at) // 2 if k else 0
            last = (at + chosen[k + 1]) // 2 if k + 1 < len(chosen) else self.cells * STEPS - 1
            here = int(ranks.below(np.array([at]))[0])
            below, upto = self._limits(ranks, first, last, (k == 0, k + 1 == len(chosen)))
            for side, (start, end, away, held) in enumerate(
                ((first, at, -_parts(left), here - below), (at, last, _parts(right), upto - here))
            ):
                beyond = _BEYOND * (end - start + 1)
                aim = Aim(start, end, 1, here + away, rate, beyond, max(held - abs(away), 0))
                found[side, k] = choose(ranks, aim, stream)
        return [found[side, k] for side in (0, 1) for k in range(len(chosen))]


def _parts(records: float) -> int:
    """At least half a record."""
    return max(math.ceil(PARTS * min(records, 2.0**40)), PARTS // 2)
