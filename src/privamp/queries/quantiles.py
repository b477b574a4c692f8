"""Quantiles of a column, from a tree of noisy counts.

A tree of 16 branches and 3 levels divides the bounds into 4096 equal steps. A record counts once on each level, and the
number of records below an edge is a sum of at most 15 counts of each level: less noise than one level of 4096 counts,
or than a binary tree, with Laplace and with Gaussian noise.
"""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np
import pyarrow as pa

from ..errors import InvalidInput
from ..numerics.log_domain import FloatArray
from ..validation import in_range
from .answers import Answer, Quantile
from .questions import AboutNumbers, Asking, Level
from .told import Told

_BRANCHES, _LEVELS = 16, 3


@dataclass(frozen=True, slots=True, kw_only=True)
class Quantiles(AboutNumbers):
    """Quantiles of a column."""

    what: ClassVar[str] = "quantiles"
    probabilities: tuple[float, ...]

    @property
    def name(self) -> str:
        """For people."""
        own = "median" if self.probabilities == (0.5,) else "quantiles"
        grouped = "" if self.groups is None else f" by {self.groups.column}"
        return f"{own} of {self.column}{grouped}"

    @property
    def parts(self) -> tuple[str, ...]:
        """The probabilities, where there are several."""
        return () if len(self.probabilities) == 1 else tuple(f"{100 * p:g}%" for p in self.probabilities)

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

    def answer(self, totals: Sequence[FloatArray], told: Told, asking: Asking) -> list[Answer]:
        """One answer for each probability."""
        tree = _below([level[:, 0] for level in totals])
        edges = np.linspace(*self.bounds, _BRANCHES**_LEVELS + 1)
        known = replace(told, size=told.size if self.groups is None and self.missing is not None else None)
        return [Quantile(*tree, edges, p, known).answer for p in self.probabilities]


def _below(levels: Sequence[FloatArray]) -> tuple[FloatArray, FloatArray, FloatArray]:
    """The number of records below every edge of the finest level, and of how many noisy counts it is made.

    Counts of the first level, which are part of the number of all records, are told apart from those of the others.
    """
    below, first, deeper = np.zeros(1), np.zeros(1), np.zeros(1)
    place = np.arange(_BRANCHES, dtype=np.float64)
    for level, counts in enumerate(levels):
        inside = counts.reshape(-1, _BRANCHES)
        ahead = np.concatenate([np.zeros((len(inside), 1)), np.cumsum(inside, axis=1)[:, :-1]], axis=1)
        below = (below[:, None] + ahead).ravel()
        first = (first[:, None] + (place if level == 0 else 0.0 * place)).ravel()
        deeper = (deeper[:, None] + (0.0 * place if level == 0 else place)).ravel()
    return np.append(below, np.sum(levels[0])), np.append(first, float(_BRANCHES)), np.append(deeper, 0.0)


def checked_probabilities(asked: Any) -> tuple[float, ...]:
    """One or several numbers between 0 and 1."""
    several = tuple(asked) if isinstance(asked, (list, tuple, np.ndarray)) else (asked,)
    if not several:
        raise InvalidInput("quantiles need at least one probability between 0 and 1")
    for p in several:
        in_range(0, 1, open_ends=True, probability=p)
    return tuple(float(p) for p in several)
