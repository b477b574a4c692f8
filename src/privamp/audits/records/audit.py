"""One job and the pairs of data sets it is asked with."""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from importlib.util import find_spec
from itertools import count, islice
from typing import Any

import numpy as np

from ...verify.one_record import Most, Pair, Progress, check_release, declared
from ...verify.report import Report

Pairs = Callable[[np.random.Generator], Iterable[Pair]]


@dataclass(frozen=True, slots=True)
class RecordAudit:
    """A job, run by `run(data)`, and where its pairs come from.

    `pairs(random)` yields one round of pairs: the same hard records every time, in data drawn from `random`, so that a
    longer audit takes more rounds. Modules named in `needs` must be installed.
    """

    name: str
    what: str  # one line for the reader
    run: Callable[[Any], Any] = field(repr=False)
    pairs: Pairs = field(repr=False)
    most: Most = field(default=declared, repr=False)
    rounding: float = 0.0
    needs: tuple[str, ...] = ()

    @property
    def missing(self) -> str | None:
        """The first module that is not installed, or None."""
        return next((name for name in self.needs if find_spec(name) is None), None)

    def perform(self, pairs: int, *, seed: int = 0, progress: Progress | None = None) -> Report:
        """Ask with this many pairs, a round after the other."""
        some = islice(self._rounds(seed), pairs)
        return check_release(
            self.run, some, name=self.name, most=self.most, rounding=self.rounding, seed=seed, progress=progress
        )

    def _rounds(self, seed: int) -> Iterator[Pair]:
        for number in count():
            random = np.random.default_rng([seed, number])
            one_round = list(self.pairs(random))
            order = random.permutation(len(one_round))  # a short audit sees some of everything
            yield from (one_round[place] for place in order)
