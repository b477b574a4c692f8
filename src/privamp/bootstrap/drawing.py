"""Drawing the resamples and releasing their statistics, on several cores, the same for any number of them."""

import warnings
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from os import cpu_count
from typing import Any

import numpy as np

from ..chance.keys import Key
from ..chance.stream import Stream
from ..core.design import Design
from ..core.population import Population
from ..core.sample import Drawn
from ..errors import InvalidInput
from ..numerics.log_domain import FloatArray
from .planning import Plan
from .procedure import Procedure
from .statistic import Statistic

Progress = Callable[[int, int], None]

# Draws of a key are the same every time: a second release from them would not be fresh, and fresh is what is certified.
_USED: set[bytes] = set()


def group_averages(
    plan: Plan, statistic: Statistic, rows: FloatArray, key: Key | None, jobs: int | None, progress: Progress | None
) -> FloatArray:
    """The noisy statistic averaged over each group, shape (groups, d)."""
    key = _fresh(key)
    groups, done = plan.procedure.groups, 0
    people = Population.of(plan.procedure.population)
    averages: list[Any] = []
    with warnings.catch_warnings(), ThreadPoolExecutor(max_workers=jobs or cpu_count() or 1) as pool:
        warnings.simplefilter("ignore")  # of a user's statistic: a warning would tell about the records
        work = pool.map(lambda g: _group(plan, statistic, rows, people, group_key(key, g)), range(groups))
        for average in work:
            averages.append(average)
            done += 1
            if progress:
                progress(done, groups)
    return np.stack(averages)


def group_key(key: Key, group: int) -> Key:
    """What a group is drawn with."""
    return key.subkey("bootstrap", group)


def _fresh(key: Key | None) -> Key:
    if key is None:
        return Key.generate()
    if not isinstance(key, Key):
        raise InvalidInput(f"key must be a Key, got a {type(key).__name__} instead; leave it out for a fresh one")
    if not key.is_test:
        if key.fingerprint in _USED:
            raise InvalidInput(
                "this key has drawn a bootstrap already, and drawing it again is not a fresh draw; leave key out"
            )
        _USED.add(key.fingerprint)
    return key


def _group(plan: Plan, statistic: Statistic, rows: FloatArray, people: Population, key: Key) -> FloatArray:
    """One first stage, the statistic of each of its resamples, noise on every one, their average."""
    procedure = plan.procedure
    resamples = resampled(procedure, people, key)
    clean = np.stack([statistic.compute(rows[d.positions], d.counts.astype(np.float64)) for d in resamples])
    noise = Stream(key.subkey("noise")) if key.is_test else Stream.from_os()
    sensitivity = statistic.sensitivity(procedure.size)
    noisy = procedure.mechanism(plan.sigma(sensitivity), sensitivity).release(clean, noise)
    return np.asarray(noisy, dtype=np.float64).mean(axis=0)  # type: ignore[no-any-return]


def resampled(procedure: Procedure, people: Population, key: Key) -> list[Drawn]:
    """The resamples of the group with this key: secret."""
    drawn = _drawn(procedure.design, people, key.subkey("first"))
    if procedure.inside is None:
        return [drawn]
    entries = Population.of(procedure.sizes[0])
    inner = [_drawn(procedure.inside, entries, key.subkey("second", t)) for t in range(procedure.each)]
    return [Drawn(drawn.positions[d.positions], d.counts, d.weights) for d in inner]


def _drawn(design: Design, people: Population, key: Key) -> Drawn:
    """What the certified design draws under this key: secret."""
    drawn: Drawn = design.finish(design.merge([design.partial(people.batch(), key)]), key)
    return drawn
