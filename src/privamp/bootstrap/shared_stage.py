"""Resamples that share a first stage: composed inside that stage, then amplified once by it.

Theorem. Let a first stage draw b entries of the data, and let r resamples be drawn from those same b entries by fresh
draws of a second stage, each released with noise. Let delta_j be the profile of the r releases for two arrays of b
entries that differ in j of them: by composition over the r fresh second stages it is the r-fold composition of the
profile of one resample, for j changed entries. Then the whole is a mechanism with group profiles delta_j on the first
sample, and the theorem of the first stage applies to it:

    delta'(eps') <= sum_j P(j) delta_j(log(1 + (e^eps' - 1)/eta)),   P(j) = Pr[the record has j of the b entries].

Counting the r resamples as r fresh draws of both stages is false: see docs/bootstrap.md.
"""

from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np

from ..accounting.composition import compose
from ..amplification import amplify
from ..chance.stream import Stream
from ..core.guarantee import Guarantee
from ..core.mechanism import ONE, Change, Mechanism
from ..core.multiplicity import Multiplicity
from ..core.neighbors import Neighbors
from ..core.profile import Curve, Profile
from ..designs.multiplicity import one_sided
from ..designs.with_replacement import WithReplacement
from ..errors import NoTheorem
from ..mechanisms.gaussian import Gaussian

RO = Neighbors.REPLACE_ONE


@dataclass(frozen=True, slots=True)
class SharedStage(Mechanism):
    """The mechanism on the first stage's sample: `times` resamples of it by `inside`, each released with `noise`."""

    noise: Gaussian
    inside: WithReplacement
    times: int
    neighbors: Neighbors = RO

    @property
    def sensitivity(self) -> float:
        """How far one entry moves the numbers of one resample, in l2."""
        return self.noise.sensitivity

    @property
    def p(self) -> float:
        """The norm in which the sensitivity is stated."""
        return 2.0

    @property
    def assumes(self) -> tuple[str, ...]:  # type: ignore[override]
        """What the noise and the second draw assume."""
        return tuple(dict.fromkeys((*self.noise.assumes, *self.inside.assumes)))

    def profile(self, neighbors: Neighbors, change: Change = ONE) -> Profile:
        """The releases composed, for `copies` changed entries; computed on demand."""
        self.records_apart(neighbors)
        if change.weight != 1.0 or change.norm is not None:
            raise NoTheorem("resamples that share a stage are certified only for records of weight 1")
        return Profile.symmetric(Curve(lambda epsilon: _inside(self, change.copies).upper.forward(epsilon)))

    def mixture(self, neighbors: Neighbors, law: Multiplicity) -> Profile | None:
        """A real pair where the record is drawn once or not at all (first stage without replacement)."""
        once = np.count_nonzero(np.isfinite(law.log_p)) == 1 and np.isfinite(law.log_p[0])
        return one_sided(law, _Attack(self), RO) if once else None

    def release(self, value: Any, stream: Stream) -> Any:
        """Every resample's statistic, each with its own noise."""
        return self.noise.release(value, stream)


@dataclass(frozen=True, slots=True)
class _Attack(Mechanism):
    """The composed attack on the resamples, for a record that is in the shared sample."""

    shared: SharedStage
    neighbors: Neighbors = RO

    def profile(self, neighbors: Neighbors, change: Change = ONE) -> Profile:
        lower = _inside(self.shared, 1).lower
        assert lower is not None  # with replacement and Gaussian noise always has one
        return lower.profile

    def release(self, value: Any, stream: Stream) -> Any:
        raise NoTheorem("an attack is not a mechanism and releases nothing")


@lru_cache(maxsize=256)
def _inside(shared: SharedStage, entries: int) -> Guarantee:
    """The guarantee of all the resamples of one first sample, for so many changed entries of it."""
    relation = RO if entries == 1 else RO.for_person(entries)
    return compose(amplify(shared.noise, shared.inside, relation), shared.times)
