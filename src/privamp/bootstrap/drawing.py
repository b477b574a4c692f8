"""Drawing the resamples and releasing their statistics, on several cores, the same for any number of them."""

import warnings
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
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


def group_averages(
    plan: Plan, statistic: Statistic, rows: FloatArray, key: Key, jobs: int | None, progress: Progress | None
) -> FloatArray:
    """The noisy statistic averaged over each group, shape (groups, d)."""
    groups, done = plan.procedure.groups, 0
    averages: list[Any] = []
    with warnings.catch_warnings(), ThreadPoolExecutor(max_workers=jobs or cpu_count() or 1) as pool:
        warnings.simplefilter("ignore")  # of a user's statistic: a warning would tell about the records
        work = pool.map(lambda g: _group(plan, statistic, rows, key, g), range(groups))
        for average in work:
            averages.append(average)
            done += 1
            if progress:
                progress(done, groups)
    return np.stack(averages)


def _group(plan: Plan, statistic: Statistic, rows: FloatArray, key: Key, group: int) -> FloatArray:
    """One first stage, the statistic of each of its resamples, noise on every one, their average."""
    procedure = plan.procedure
    sample = first_stage(procedure, key, group)
    sensitivity = statistic.sensitivity(procedure.size)
    mechanism = procedure.mechanism(plan.sigma(sensitivity), sensitivity)
    noise = procedure.noise(plan.sigma(sensitivity), sensitivity)

    def clean(drawn: Drawn) -> FloatArray:
        resamples = resamples_of(procedure, drawn, key, group, noise)
        return np.stack([statistic.compute(rows[d.positions], d.counts.astype(np.float64)) for d in resamples])

    noisy = sample._planned([mechanism], None, "bootstrap").release(mechanism, Bounded(clean))
    return np.asarray(noisy, dtype=np.float64).mean(axis=0)  # type: ignore[no-any-return]


def first_stage(procedure: Procedure, key: Key, group: int) -> Sample:
    """The sample that a group begins with."""
    people = Population(procedure.population, "bootstrap")
    return SeededSample.if_test(procedure.design.draw(people, key, round=group))


def resamples_of(procedure: Procedure, drawn: Drawn, key: Key, group: int, noise: Mechanism) -> list[Drawn]:
    """The first stage, or what is drawn from it: the second stage is part of the mechanism, and certified with it."""
    if procedure.inside is None:
        return [drawn]
    entries, own = Population(procedure.sizes[0], UNNAMED), key.subkey("second stages")
    rounds = range(group * procedure.each, (group + 1) * procedure.each)
    samples = [SeededSample.if_test(procedure.inside.draw(entries, own, round=each)) for each in rounds]
    inner = [sample._planned([noise], None, "bootstrap")._hand_out(noise) for sample in samples]
    return [Drawn(drawn.positions[d.positions], d.counts, d.weights) for d in inner]
