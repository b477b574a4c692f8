"""Draw the resamples and release their statistics, on any number of cores with the same result."""

import warnings
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from os import cpu_count
from typing import Any

import numpy as np

from ..chance.keys import Key
from ..core.mechanism import Mechanism
from ..core.population import UNNAMED, Population
from ..core.sample import Bounded, Drawn, Sample, SeededSample
from ..numerics.log_domain import FloatArray
from .planning import Plan
from .procedure import Procedure
from .statistic import Statistic

Progress = Callable[[int, int], None]

_WORTH_A_THREAD = 10_000  # records


def group_averages(
    plan: Plan, statistic: Statistic, rows: FloatArray, key: Key, jobs: int | None, progress: Progress | None
) -> FloatArray:
    """The noisy statistic averaged over each group, shape (groups, d)."""
    group, groups, done = _Group.of(plan, statistic, rows), plan.procedure.groups, 0
    averages: list[Any] = []
    with warnings.catch_warnings(), _threads(plan, jobs) as over:
        warnings.simplefilter("ignore")  # of a user's statistic: a warning would leak information about the records
        for average in over(lambda number: group.average(key, number), range(groups)):
            averages.append(average)
            done += 1
            if progress:
                progress(done, groups)
    return np.stack(averages)


@contextmanager
def _threads(plan: Plan, jobs: int | None) -> Iterator[Callable[..., Any]]:
    """The `map` of a pool of threads, or the plain one if a thread would cost more than it saves."""
    count = jobs or (cpu_count() or 1 if plan.procedure.population >= _WORTH_A_THREAD else 1)
    if count == 1:
        yield map
        return
    with ThreadPoolExecutor(max_workers=count) as pool:
        yield pool.map


@dataclass(frozen=True, slots=True)
class _Group:
    """What all groups have in common: a first stage, the statistic of each of its resamples, noise on every one."""

    procedure: Procedure
    statistic: Statistic
    rows: FloatArray
    people: Population
    mechanism: Mechanism  # the noise for the design of a group
    noise: Mechanism  # that of one resample

    @classmethod
    def of(cls, plan: Plan, statistic: Statistic, rows: FloatArray) -> "_Group":
        procedure, sensitivity = plan.procedure, statistic.sensitivity(plan.procedure.size)
        noises = (make(plan.sigma(sensitivity), sensitivity) for make in (procedure.mechanism, procedure.noise))
        return cls(procedure, statistic, rows, people_of(procedure), *noises)

    def average(self, key: Key, number: int) -> FloatArray:
        """The average of one group's noisy statistics."""
        sample = first_stage(self.procedure, self.people, key, number)

        def clean(drawn: Drawn) -> FloatArray:
            resamples = resamples_of(self.procedure, drawn, key, number, self.noise)
            return np.stack(
                [self.statistic.compute(self.rows[d.positions], d.counts.astype(np.float64)) for d in resamples]
            )

        noisy = sample._planned([self.mechanism], None, "bootstrap").release(self.mechanism, Bounded(clean))
        return np.asarray(noisy, dtype=np.float64).mean(axis=0)  # type: ignore[no-any-return]


def people_of(procedure: Procedure) -> Population:
    """The population that first stages are drawn from."""
    return Population(procedure.population, "bootstrap")


def first_stage(procedure: Procedure, people: Population, key: Key, group: int) -> Sample:
    """The sample that a group begins with."""
    return SeededSample.if_test(procedure.design.draw(people, key, round=group))


def resamples_of(procedure: Procedure, drawn: Drawn, key: Key, group: int, noise: Mechanism) -> list[Drawn]:
    """The first stage, or what is drawn from it: the second stage is part of the mechanism, and certified with it."""
    inside = procedure.inside
    if inside is None:
        return [drawn]
    entries, own = Population(procedure.sizes[0], UNNAMED), key.subkey("second stages")
    rounds = range(group * procedure.each, (group + 1) * procedure.each)
    samples = [SeededSample.if_test(inside.draw(entries, own, round=each)) for each in rounds]
    inner = [sample._planned([noise], None, "bootstrap")._hand_out(noise) for sample in samples]
    return [Drawn(drawn.positions[d.positions], d.counts, d.weights) for d in inner]
