"""The procedures as designs: how resamples are drawn, what they share, and how far group averages spread.

A group is one fresh first stage; its `each` resamples share that stage (only the bag of little bootstraps has more than
one). For a statistic whose records have standard deviation s, the average over a group has sampling variance
s^2 * factor around the statistic of the data, and the statistic of the data has variance s^2/n around the truth.
"""

import math
from dataclasses import dataclass

from ..core.design import Design
from ..core.mechanism import Mechanism
from ..core.neighbors import Neighbors
from ..designs.multistage import MultiStage
from ..designs.simple_random import WithoutReplacement
from ..designs.with_replacement import WithReplacement
from ..errors import InvalidInput
from ..mechanisms.gaussian import Gaussian
from ..validation import one_of, whole
from .shared_stage import SharedStage

METHODS = ("subsampling", "m-out-of-n", "double", "little", "direct")
STAGES = {
    "subsampling": ("wor",),
    "m-out-of-n": ("wr",),
    "double": ("wr", "wr"),
    "little": ("wor", "wr"),
    "direct": ("all",),
}
MOST_RESAMPLES, MOST_ENTRIES = 100_000, 2**26  # released statistics in all; entries of one resample


@dataclass(frozen=True, slots=True)
class Procedure:
    """Public facts of one bootstrap: method, n, the sizes of its stages, groups, resamples of a group."""

    method: str
    population: int
    sizes: tuple[int, ...]
    groups: int
    each: int = 1

    def __post_init__(self) -> None:
        one_of(METHODS, method=self.method)
        whole(2, population=self.population)
        if len(self.sizes) != len(self.kinds):
            stages = " and ".join(self.kinds)
            raise InvalidInput(
                f"the {self.method} bootstrap has {len(self.kinds)} size(s), one per stage ({stages}), "
                f"got {len(self.sizes)} instead"
            )
        entries = self.population
        for kind, size in zip(self.kinds, self.sizes, strict=True):
            whole(1, size=size)
            if kind == "all" and (size, self.groups) != (entries, 1):
                raise InvalidInput(
                    f"the direct method is one release from all {entries} records, got {self.groups} of {size} "
                    "instead; give neither size nor resamples"
                )
            if kind == "wor" and size >= entries:
                raise InvalidInput(
                    f"a subsample without replacement must be smaller than the {entries} records it is drawn from, "
                    f"got {size} instead; use at most {entries - 1}"
                )
            if size > MOST_ENTRIES:
                raise InvalidInput(f"a resample of {size} entries needs too much memory; use at most {MOST_ENTRIES}")
            entries = size
        least = 1 if self.method == "direct" else 2
        if not isinstance(self.groups, int) or isinstance(self.groups, bool) or self.groups < least:
            raise InvalidInput(f"the spread needs at least 2 resamples, got {self.groups!r} instead; 80 is the default")
        whole(1, **{"resamples of a subset": self.each})
        if self.each > 1 and self.method != "little":
            raise InvalidInput(
                f"only the little bootstrap shares a first stage, got {self.each} resamples of one in "
                f"{self.method!r}; give one number of resamples"
            )
        if self.groups * self.each > MOST_RESAMPLES:
            raise InvalidInput(
                f"{self.groups * self.each} resamples need too much memory and time; use at most {MOST_RESAMPLES}"
            )

    @property
    def kinds(self) -> tuple[str, ...]:
        """How each stage draws."""
        return STAGES[self.method]

    @property
    def size(self) -> int:
        """How many entries a released statistic is averaged over."""
        return self.sizes[-1]

    @property
    def design(self) -> Design:
        """What is drawn afresh for every group, and certified."""
        n = self.population
        if self.method in ("subsampling", "direct") or self.each > 1:
            return WithoutReplacement(self.sizes[0], n)
        if self.method == "m-out-of-n":
            return WithReplacement(self.sizes[0], n)
        return MultiStage(tuple(zip(self.kinds, self.sizes, strict=True)), n)

    @property
    def inside(self) -> WithReplacement | None:
        """What is drawn from a shared first stage, where there is one."""
        return WithReplacement(self.sizes[1], self.sizes[0]) if self.each > 1 else None

    def mechanism(self, sigma: float, sensitivity: float) -> Mechanism:
        """The noise for the design of a group."""
        noise = self.noise(sigma, sensitivity)
        return SharedStage(noise, self.inside, self.each) if self.inside else noise

    def noise(self, sigma: float, sensitivity: float) -> Gaussian:
        """The noise of one resample's numbers, of which a replaced record moves one copy by `sensitivity`."""
        return Gaussian(sigma, sensitivity, neighbors=Neighbors.REPLACE_ONE)

    @property
    def factor(self) -> float:
        """Variance of a group's average around the statistic of the data, for records of variance 1."""
        total, entries = 0.0, self.population
        for at, (kind, size) in enumerate(zip(self.kinds, self.sizes, strict=True)):
            repeats = self.each if at == 1 else 1
            total += (1.0 if kind == "wr" else 1.0 - size / entries) / (size * repeats)
            entries = size
        return total

    @property
    def ratio(self) -> float:
        """Sampling variance over the variance of the average of all groups: how much must be extrapolated."""
        return self.groups / (self.population * self.factor) if self.factor else math.inf

    @property
    def kept(self) -> float:
        """The share of a variance that drawing with replacement keeps: 1 - 1/N for N entries drawn from."""
        share, entries = 1.0, self.population
        for kind, size in zip(self.kinds, self.sizes, strict=True):
            share *= 1.0 - 1.0 / entries if kind == "wr" else 1.0
            entries = size
        return share
