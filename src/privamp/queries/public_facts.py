"""Public facts about the totals of a question: their noise, and their sampling variance."""

import math
from dataclasses import dataclass

from ..core.weighting import Coins, Subset


@dataclass(frozen=True, slots=True)
class PublicFacts:
    """Public facts about one question's totals.

    Where a design treats all records alike, the weighted total of numbers z over the sample has the variance

        spread (sum z^2 - (sum z)^2 / n) + spread_of_size (sum z)^2 / n,

    for a public number n of records: the second part is that of the number drawn, none where it is fixed. Without a
    public number (independent coins) it is spread (sum z^2).
    """

    noise: float  # standard error of one entry, in units of what a record adds, scaled to the population
    kind: str  # of the noise: laplace or gaussian
    spread: float  # of the design; 0 if all records are read
    weight: float = 1.0  # how many records a drawn one represents
    size: int | None = None  # the number of records, where the design makes it public
    spread_of_size: float = 0.0  # where `size` is known
    chances: Coins | Subset | None = None  # the law of the sample, where it is one of the simplest

    @property
    def source(self) -> str:
        """Where the sampling error comes from."""
        return "private estimate" if self.spread else "no sampling"

    def variance(self, total: float, squares: float) -> float:
        """Of the sampling, for numbers with this sum and this sum of squares."""
        if self.size is None:
            return self.spread * max(squares, 0.0)
        shared = total * total / self.size
        return self.spread * max(squares - shared, 0.0) + self.spread_of_size * shared

    def error_of_count(self, records: float) -> float:
        """The sampling error of the number of records of a group that has so many."""
        return math.sqrt(self.variance(records, records))
