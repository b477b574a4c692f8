"""One job and the pairs of data sets it is checked with."""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from importlib.util import find_spec
from itertools import count, islice, zip_longest
from typing import Any

import numpy as np

from ...verify.one_record import Most, Pair, Progress, check_release, declared
from ...verify.report import Report

CUDA = "a CUDA device"

Pairs = Callable[[np.random.Generator], Iterable[Pair]]


@dataclass(frozen=True, slots=True)
class RecordAudit:
    """A job, run by `run(data)`, and where its pairs come from.

    `pairs(random)` yields one round of pairs: the same hard records every time, in data drawn from `random`, so that a
    longer audit takes more rounds. Within a round, hard records take turns: each comes up once before any comes up
    again. Modules named in `needs` must be installed, and there must be a GPU where it names `CUDA`. `quick` is the
    number of pairs of a short check.
    """

    name: str
    what: str  # one line for the reader
    run: Callable[[Any], Any] = field(repr=False)
    pairs: Pairs = field(repr=False)
    most: Most = field(default=declared, repr=False)
    rounding: float = 0.0
    least_released: float = 0.5  # share of pairs that must reach a release
    needs: tuple[str, ...] = ()
    quick: int = 40  # fewer where a run takes long

    @property
    def missing(self) -> str | None:
        """The first thing that is not there, or None."""
        return next((name for name in self.needs if not _is_there(name)), None)

    def perform(self, pairs: int, *, seed: int = 0, progress: Progress | None = None) -> Report:
        """Check with this many pairs, one round after the other."""
        some = islice(self._rounds(seed), pairs)
        return check_release(
            self.run, some, name=self.name, most=self.most, rounding=self.rounding,
            least_released=self.least_released, seed=seed, progress=progress,
        )  # fmt: skip

    def _rounds(self, seed: int) -> Iterator[Pair]:
        for number in count():
            random = np.random.default_rng([seed, number])
            yield from _in_turn(list(self.pairs(random)), random)


def _is_there(name: str) -> bool:
    if name != CUDA:
        return find_spec(name) is not None
    import torch

    return bool(torch.cuda.is_available())


def _in_turn(pairs: list[Pair], random: np.random.Generator) -> Iterator[Pair]:
    """One pair of every hard record, then a second one of each, and so on; in no other order."""
    turns: dict[str, list[Pair]] = {}
    for place in random.permutation(len(pairs)):
        turns.setdefault(pairs[place].record, []).append(pairs[place])
    for turn in zip_longest(*turns.values()):
        yield from (pair for pair in turn if pair is not None)
