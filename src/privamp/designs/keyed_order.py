"""Drawing from the whole keyed order, for designs whose sample size depends on chance or on the number of records.

Sorting all records by their keyed numbers is a secret uniform order; a sample is a set of ranks. How many ranks
is only known once all records are seen, so a part carries every record's number.
"""

from abc import abstractmethod
from collections.abc import Iterable, Iterator, Sequence
from fractions import Fraction
from itertools import combinations
from math import comb

import numpy as np
from numpy.typing import NDArray

from ..chance.keyed import keyed_pairs
from ..chance.keys import Key
from ..chance.stream import Stream
from ..core.design import Design, Units
from ..core.population import Batch, Population
from ..core.sample import Drawn
from ..numerics.log_domain import FloatArray
from .fixed_size import BottomK

Ints = NDArray[np.int64]
Weights = dict[int, int]  # how many records are drawn, with a chance proportional to the whole number


class SizeOnly(Design):
    """A design that draws a random number of records and treats all subsets of that size alike."""

    @abstractmethod
    def size_weights(self, population: int) -> Weights:
        """The exact law of the sample size when there are `population` records, as whole-number weights."""

    @property
    def treats_alike(self) -> bool:
        """All subsets of one size are equally likely."""
        return True

    def weights(self, population: Population) -> FloatArray | None:
        """Number of records over expected size, which may depend on the secret number of records."""
        law, n = self.size_weights(population.size), population.size
        mean = sum(size * weight for size, weight in law.items()) / sum(law.values())
        return np.full(n, n / mean) if mean > 0 else None

    def partial(self, batch: Batch, subkey: Key) -> BottomK:
        """Every record of the batch with its place in the keyed order."""
        high, low = keyed_pairs(subkey, batch.ids)
        return BottomK(high, low, batch.positions, int(batch.ids.size))

    def merge(self, parts: Iterable[BottomK]) -> BottomK:
        """The ids of all batches: a size can only be drawn once all are known."""
        return joined(parts)

    def finish(self, part: BottomK, subkey: Key) -> Drawn:
        """The first records of the order, as many as the size law says."""
        size = draw_size(self.size_weights(part.seen), Stream(subkey.subkey("size")))
        return all_once(ordered(part)[:size])

    def law(self, population: Population) -> Iterator[tuple[Units, Fraction]]:
        """All subsets, by their size."""
        ids = sorted(int(i) for i in population.ids)
        yield from sizes_then_subsets(ids, self.size_weights(len(ids)))


def sizes_then_subsets(ids: Sequence[int], weights: Weights) -> Iterator[tuple[Units, Fraction]]:
    """Every subset of a size that may occur, with its probability."""
    total = sum(weights.values())
    for size, weight in weights.items():
        for units in combinations(ids, size):
            yield units, Fraction(weight, total * comb(len(ids), size))


def joined(parts: Iterable[BottomK]) -> BottomK:
    """All that several parts hold, as one part."""
    fronts = list(parts)
    return BottomK(
        np.concatenate([f.high for f in fronts]),
        np.concatenate([f.low for f in fronts]),
        np.concatenate([f.positions for f in fronts]),
        sum(f.seen for f in fronts),
    )


def ordered(part: BottomK) -> Ints:
    """Positions in the keyed order."""
    return part.positions[np.lexsort((part.low, part.high))]


def all_once(positions: Ints) -> Drawn:
    """A sample that holds each of these records once."""
    return Drawn(positions, np.ones(positions.size, dtype=np.int64), np.ones(positions.size))


def draw_size(weights: Weights, stream: Stream) -> int:
    """One size with a chance exactly proportional to its weight."""
    mark = below(stream, sum(weights.values()))
    for size, weight in weights.items():
        mark -= weight
        if mark < 0:
            return size
    raise ArithmeticError("weights must be whole numbers of at least 0")


def below(stream: Stream, bound: int) -> int:
    """A uniform whole number below `bound`, however large it is."""
    bits = (bound - 1).bit_length()
    while bits:
        drawn = 0
        for word in stream.words(-(-bits // 64)).tolist():
            drawn = drawn << 64 | word
        drawn >>= -bits % 64
        if drawn < bound:
            return drawn
    return 0
