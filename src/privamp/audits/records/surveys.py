"""Survey estimates: every design that `survey.estimate` knows, with adversarial values and groups."""

from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import numpy as np

from ...core.design import Design
from ...core.population import Population
from ...designs.cluster import ClusterSampling
from ...designs.poisson import Poisson
from ...designs.poisson_pps import PoissonPPS
from ...designs.pps_clusters import PPSClusters
from ...designs.proportional import Proportional
from ...designs.simple_random import WithoutReplacement
from ...designs.systematic import Systematic
from ...mechanisms.fixed_point import ExactGaussian, ExactLaplace
from ...survey import estimate
from ...testing import seeded_key
from ...verify.hard_pairs import ADD_REMOVE, ODD, REPLACE, HardRecord, hard_numbers, pairs_of
from ...verify.one_record import Pair
from .audit import RecordAudit

SIZE, BOUNDS = 12, (-2.0, 3.0)
GROUPS = [HardRecord("a group that is not listed", (1.0, "elsewhere")), HardRecord("no group", (1.0, None))]
GROUPS += [HardRecord("a list as its group", (1.0, [1])), HardRecord("the last of a group", (2.5, "b"))]
Job = tuple[Design, dict[str, Any]]
GAUSSIAN: dict[str, Any] = {"delta": 1e-6, "noise": "gaussian"}
LOOSE: dict[str, Job] = {
    "Poisson, mean": (Poisson(0.9), {}),
    "Poisson, mean, public size": (Poisson(0.9), {"population": 13}),
    "Poisson, mean, public sd": (Poisson(0.9), {"population": 13, "sd": 1.0}),
    "Poisson, total": (Poisson(0.9), {"statistic": "total"}),
    "Poisson, total, Gaussian": (Poisson(0.9), {"statistic": "total"} | GAUSSIAN),
}
FIXED: dict[str, Job] = {
    "without replacement": (WithoutReplacement(9, SIZE), {}),
    "without replacement, Gaussian": (WithoutReplacement(9, SIZE), GAUSSIAN),
    "fixed share": (Proportional(0.5), {}),
    "systematic, total": (Systematic(2), {"statistic": "total"}),
    "clusters": (ClusterSampling(2, 4, 3), {"cluster": np.arange(SIZE) % 4}),
    "unequal coins": (PoissonPPS(0.9, 0.5), {"probability": np.full(SIZE, 0.7)}),
    "fixed share, Gaussian": (Proportional(0.5), GAUSSIAN),
    "clusters, Gaussian": (ClusterSampling(2, 4, 3), GAUSSIAN | {"cluster": np.arange(SIZE) % 4}),
    "clusters, coins inside, Gaussian": (
        ClusterSampling(2, 4, 9, Poisson(0.5)),
        GAUSSIAN | {"cluster": np.arange(SIZE) % 4, "population": SIZE},
    ),
    "clusters by public size": (PPSClusters((3, 3, 3, 3), 2, 2), {"cluster": np.arange(SIZE) % 4}),
    "clusters by public size, Gaussian": (
        PPSClusters((3, 3, 3, 3), 2, 2),
        GAUSSIAN | {"cluster": np.arange(SIZE) % 4},
    ),
    "unequal coins, Gaussian": (PoissonPPS(0.9, 0.5), GAUSSIAN | {"probability": np.full(SIZE, 0.7)}),
}


def _estimated(design: Design, options: dict[str, Any], data: list[Any]) -> Any:
    columns = {name: options[name] for name in ("cluster", "probability") if name in options}
    sample = design.draw(Population(len(data), **columns), seeded_key(14))
    found = estimate(sample, data, bounds=BOUNDS, epsilon=1.0, **options)
    return found.value, found.sampling_error, found.noise_error, found.guarantee


def _grouped(statistic: str, groups: Any, data: list[tuple[Any, Any]]) -> Any:
    sample = Poisson(0.9).draw(Population(len(data)), seeded_key(14))
    values, labels = [value for value, _ in data], [group for _, group in data]
    found = estimate(
        sample, values, statistic, bounds=BOUNDS, epsilon=1.0, by=labels, groups=groups, population=len(data)
    )
    return [(name, one.value, one.standard_error) for name, one in found.items()]


def _values(places: Any, changes: tuple[str, ...], random: np.random.Generator) -> Iterator[Pair]:
    sizes = (0, 1, 2, SIZE) if changes == ADD_REMOVE else (SIZE,)
    for size in sizes:
        rows = (3 * random.standard_normal(size)).tolist()
        hard = [*hard_numbers(3.0), *ODD]
        yield from pairs_of(rows, hard, changes=changes, places=places or [size])


def _groups(random: np.random.Generator) -> Iterator[Pair]:
    for size in (0, 1, SIZE):
        rows: list[Any] = [(float(x), "a") for x in random.standard_normal(size)]
        hard = [*GROUPS, *(HardRecord(what, (value, "a")) for what, value in (*hard_numbers(3.0), *ODD))]
        yield from pairs_of(rows, hard, changes=ADD_REMOVE, places=[size])


def _loose(name: str) -> RecordAudit:
    run = partial(_estimated, *LOOSE[name])
    return RecordAudit(f"survey, {name}", "survey.estimate under add/remove", run, partial(_values, None, ADD_REMOVE))


def _fixed(name: str) -> RecordAudit:
    run = partial(_estimated, *FIXED[name])
    pairs = partial(_values, range(SIZE), REPLACE)
    quick = 6 if "Gaussian" in name else 40  # the certificate of each is computed
    return RecordAudit(f"survey, {name}", "survey.estimate with one record replaced", run, pairs, quick=quick)


def _by(statistic: str, groups: Any) -> RecordAudit:
    run: Callable[[Any], Any] = partial(_grouped, statistic, groups)
    return RecordAudit(f"survey by groups, {statistic}", "survey.estimate(by=...) of a Poisson sample", run, _groups)


JOBS = (
    *(partial(_loose, name) for name in LOOSE),
    *(partial(_fixed, name) for name in FIXED),
    partial(_by, "total", ["a", "b"]),
    partial(_by, "mean", {"a": 9, "b": 4}),
)


def _groups_that_occur(data: list[tuple[Any, Any]]) -> Any:
    """Groups and sizes as they are in the data."""
    labels = [str(group) for _, group in data]
    sizes = {name: labels.count(name) for name in sorted(set(labels))}
    return _grouped("mean", sizes or {"a": 1}, data)


def occurring() -> RecordAudit:
    """The groups that occur, and their exact sizes, are published."""
    return RecordAudit(
        "survey by groups, as they occur", "groups and sizes read off the data", _groups_that_occur, _groups
    )


def _only_finite(data: list[Any]) -> Any:
    """Values that are no numbers stop the estimate."""
    values = np.asarray(data, dtype=np.float64)
    if not np.all(np.isfinite(values)):
        raise ValueError("values must be finite")
    return _estimated(Poisson(0.9), {}, values.tolist())


def refusing() -> RecordAudit:
    """An error that reveals one record."""
    pairs = partial(_values, None, ADD_REMOVE)
    return RecordAudit("survey, refusing values", "an estimate that refuses what is no number", _only_finite, pairs)


def _unclipped(data: list[Any]) -> Any:
    sample = Poisson(0.9).draw(Population(len(data)), seeded_key(14))
    values = np.nan_to_num(np.array([x if isinstance(x, float) else 0.0 for x in data]))
    return sample.release(ExactLaplace(2.0, 3.0), lambda drawn: float(np.sum(values[drawn.positions])))


def beyond_bounds() -> RecordAudit:
    """A total whose values are not cut to the bounds."""
    pairs = partial(_values, None, ADD_REMOVE)
    return RecordAudit("survey, values beyond the bounds", "a total of values that are not cut", _unclipped, pairs)


def _one_for_a_pair(data: list[Any]) -> Any:
    """Noise for one record's reach in a sample where a replaced one moves the sum by two of them."""
    sample = Systematic(2).draw(Population(len(data)), seeded_key(14))
    values = np.clip(np.nan_to_num(np.array([x if isinstance(x, float) else 0.0 for x in data])), *BOUNDS)
    return sample.release(ExactGaussian(2.0, 1.0), lambda drawn: 2.0 * float(np.sum(values[drawn.positions])))


def unweighted_reach() -> RecordAudit:
    """A weighted total with Gaussian noise for the values without their weights."""
    pairs = partial(_values, range(SIZE), REPLACE)
    return RecordAudit(
        "survey, reach without weights", "a weighted total, noise for its values", _one_for_a_pair, pairs
    )


PLANTED = (occurring, refusing, beyond_bounds, unweighted_reach)
