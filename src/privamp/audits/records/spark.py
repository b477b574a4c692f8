"""Sums, counts and k-means of Spark tables; left out where PySpark is not installed."""

from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import numpy as np
import pyarrow as pa

from ...core.mechanism import Mechanism
from ...designs.poisson import Poisson
from ...designs.stratified import Stratified
from ...engines.spark_sample import SparkSample, draw
from ...engines.spark_session import session
from ...errors import InvalidInput
from ...kmeans.ball import lengths
from ...kmeans.estimator import PrivateKMeans
from ...mechanisms.fixed_point import ExactLaplace
from ...mechanisms.sum_and_count import SumAndCount
from ...spark.kmeans import fit
from ...testing import seeded_key
from ...verify.one_record import Pair, declared
from .audit import RecordAudit

Row = tuple[Any, ...]  # id, two numbers, stratum
NOISE = ExactLaplace(scale=20.0, sensitivity=3.0)
STRATA = Stratified([("east", Poisson(0.9)), ("west", Poisson(0.8))])
_LARGEST = float(np.finfo(np.float64).max)
_HARD: dict[str, Row] = {
    "zeros": (0.0, -0.0, "east"), "nan": (np.nan, 1.0, "east"), "missing": (None, None, "west"),
    "infinite": (np.inf, -np.inf, "west"), "largest": (_LARGEST, -_LARGEST, "east"), "denormal": (5e-324, 1.0, "west"),
    "at the radius": (3.0, 0.0, "east"), "above the radius": (float(np.nextafter(3.0, 4.0)), 0.0, "west"),
    "a new stratum": (1.0, 1.0, "south"), "no stratum": (1.0, 1.0, None),
}  # fmt: skip


def _table(rows: list[Row], partitions: int = 2) -> Any:
    ids, a, b, strata = zip(*rows, strict=True) if rows else ((), (), (), ())
    columns = [
        pa.array(ids, pa.int64()),
        pa.array(a, pa.float64()),
        pa.array(b, pa.float64()),
        pa.array(strata, pa.string()),
    ]
    return (
        session("local[2]")
        .createDataFrame(pa.table(columns, names=["uid", "a", "b", "stratum"]))
        .repartition(partitions)
    )


def _pairs(random: np.random.Generator) -> Iterator[Pair]:
    for size in (0, 1, 12):
        x = 2.0 * random.standard_normal((size, 2))
        rows: list[Row] = [(i, float(x[i, 0]), float(x[i, 1]), ("east", "west")[i % 2]) for i in range(size)]
        for what, hard in _HARD.items():
            yield Pair(f"{what} added to {size}", rows, [*rows, (1000, *hard)])


def _sample(rows: list[Row]) -> SparkSample:
    return draw(_table(rows), STRATA, id="uid", key=seeded_key(14), trust_ids=True)


def _sum(rows: list[Row]) -> Any:
    sample = _sample(rows)
    return sample.release_sum(NOISE, ["a", "b"]), sample.guarantee()


def _count(rows: list[Row]) -> Any:
    sample = _sample(rows)
    return sample.release_count(ExactLaplace(2.0), by="stratum", groups=["east", "west"]), sample.guarantee()


class KMeansFit:
    """Runs fits on Spark, and keeps the rule of the last one: the weight of a record is what it may move."""

    def __init__(self, size: int | None = 8) -> None:
        self._size = size
        self._fitted: Any = None

    def run(self, rows: list[Row]) -> Any:
        """The centres and their guarantee."""
        model = PrivateKMeans(2, epsilon=200.0, radius=3.0, n_iter=2, sample_size=self._size)
        fit(model, _table(rows), ["a", "b"], id="uid", key=seeded_key(15), trust_ids=True)
        self._fitted = model._fitted
        return model.cluster_centers_, model.guarantee_

    def most(self, mechanism: Mechanism, pair: Pair, number: int) -> float:
        """The weight of the record that came, times its influence over that of the longest record."""
        influence = mechanism.influence
        if not isinstance(mechanism, SumAndCount) or influence is None:
            return declared(mechanism, pair)
        row = np.array([pair.other[-1][1:3]], dtype=np.float64)
        norms = np.minimum(lengths(self._fitted.ball, row), 1.0)
        return float((influence.at(norms) / float(influence.at(1.0)) * self._fitted.rule.weights_of_norms(norms))[0])


def _k_means(name: str, what: str, size: int | None) -> RecordAudit:
    """The first look on the cluster; Lloyd steps on the driver, or without a size on the cluster too."""
    job = KMeansFit(size)
    return RecordAudit(f"Spark, {name}", what, job.run, _pairs, most=job.most, needs=("pyspark", "pandas"))


def _audit(name: str, what: str, run: Callable[[Any], Any]) -> RecordAudit:
    return RecordAudit(f"Spark, {name}", what, run, _pairs, needs=("pyspark", "pandas"))


JOBS = (
    partial(_audit, "sum", "SparkSample.release_sum of two columns", _sum),
    partial(_audit, "count", "SparkSample.release_count by strata", _count),
    partial(_k_means, "k-means", "privamp.spark.fit of a PrivateKMeans", 8),
    partial(
        _k_means, "k-means of all rows", "privamp.spark.fit without a sample size: every step on the cluster", None
    ),
)


def _refusing(rows: list[Row]) -> Any:
    """An earlier version of the sum: a drawn row that is not a number stops the release."""

    def total(drawn: Any) -> Any:
        found = drawn.select("a", "b").toArrow().to_pydict()
        x = np.array([found["a"], found["b"]], dtype=np.float64)
        wrong = int(np.count_nonzero(~np.isfinite(x).all(axis=0)))
        if wrong:
            raise InvalidInput(f"{wrong} records here hold nan or infinity; drop or fill them first, by a public rule")
        return np.zeros(2, dtype=np.int64)

    return _sample(rows).release(NOISE, total)


def _redrawn(rows: list[Row]) -> Any:
    """Ids that depend on other rows, as when they are generated upstream: another record, another sample."""
    moved = [(i + 7919 * len(rows), *row[1:]) for i, row in enumerate(rows)]
    return _sample(moved).release_sum(NOISE, ["a", "b"])


PLANTED = (
    partial(_audit, "a refused record", "a sum that stops at a record that is no number", _refusing),
    partial(_audit, "ids made anew", "a sample drawn anew when a record comes", _redrawn),
)
