"""Quantiles of a column, from a tree of noisy counts.

A tree of 16 branches and 3 levels divides the bounds into 4096 equal steps. A record counts once on each level. With
the least-squares estimate of `distribution.py` the number of records below an edge has less noise than from a tree of 8
or 64 branches, or from one level of 4096 counts, with Laplace noise, and within 8% of the least with Gaussian noise.
"""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import pyarrow as pa

from ..errors import InvalidInput
from ..numerics.log_domain import FloatArray
from ..validation import in_range
from .answers import Answer
from .chosen import Scale
from .distribution import Quantile, Tree
from .names import percent
from .public_facts import PublicFacts
from .questions import AboutNumbers, Asking, Level
from .values import is_whole

_BRANCHES, _LEVELS = 16, 3


@dataclass(frozen=True, slots=True, kw_only=True)
class Quantiles(AboutNumbers):
    """Quantiles of a column."""

    what: ClassVar[str] = "quantiles"
    probabilities: tuple[float, ...]
    interval: bool = True  # without one they are chosen, if this is the only question

    @property
    def name(self) -> str:
        """For people."""
        own = "quantiles"
        if len(self.probabilities) == 1:
            own = "median" if self.probabilities == (0.5,) else f"{percent(self.probabilities[0])} quantile"
        grouped = "" if self.groups is None else f" by {self.groups.column}"
        return f"{own} of {self.column}{grouped}"

    @property
    def parts(self) -> tuple[str, ...]:
        """The probabilities, where there are several."""
        return () if len(self.probabilities) == 1 else tuple(map(percent, self.probabilities))

    @property
    def scale(self) -> Scale:
        """The cells in which quantiles are chosen; columns of whole numbers, by their type, have whole quantiles."""
        assert self.column is not None
        return Scale.of(self.bounds, is_whole=is_whole(self.table.kind_of(self.column)))

    def cells(self, asking: Asking) -> tuple[tuple[int, int], ...]:
        """The nodes of every level of the tree."""
        return tuple((_BRANCHES**level, 1) for level in range(1, _LEVELS + 1))

    def reach(self, asking: Asking) -> float:
        """A record counts once on each level."""
        return asking.norm(*(1.0,) * _LEVELS)

    def need(self, asking: Asking) -> float:
        """About half the branches of every level are added up."""
        return math.sqrt(_LEVELS * 0.5 * (_BRANCHES - 1))

    def levels(self, batch: pa.RecordBatch, asking: Asking) -> Iterator[Level]:
        """Every record counts once on every level."""
        t, there = self.around_middle(batch)
        steps = _BRANCHES**_LEVELS
        leaf = np.clip(np.floor((0.5 + 0.5 * t) * steps).astype(np.int64), 0, steps - 1)
        for level in range(1, _LEVELS + 1):
            yield np.ones((len(t), 1)), np.where(there < 0, -1, leaf // _BRANCHES ** (_LEVELS - level))

    def answer(self, totals: Sequence[FloatArray], told: PublicFacts, asking: Asking) -> list[Answer]:
        """One answer for each probability."""
        known = asking.is_fixed and self.groups is None and self.missing is not None
        tree = Tree.of([level[:, 0] for level in totals], told.size if known else None)
        edges = np.linspace(*self.bounds, _BRANCHES**_LEVELS + 1)
        return [Quantile(tree, edges, p, told).answer for p in self.probabilities]


def checked_probabilities(asked: Any) -> tuple[float, ...]:
    """One or several numbers between 0 and 1."""
    several = tuple(asked) if isinstance(asked, (list, tuple, np.ndarray)) else (asked,)
    if not several:
        raise InvalidInput("quantiles need at least one probability between 0 and 1")
    for p in several:
        in_range(0, 1, open_ends=True, probability=p)
    if len(set(map(float, several))) < len(several):
        raise InvalidInput("the probabilities of quantiles must be different; give each once")
    return tuple(float(p) for p in several)
