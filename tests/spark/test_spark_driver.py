"""Nothing that grows with the table reaches the driver, or `driver_records` refuses it: for every design there is."""

import json
from collections.abc import Callable
from typing import Any
from urllib.request import urlopen

import pytest

from every_kind import DESIGNS
from privamp import (
    ClusterPPS,
    ClusterSampling,
    ConditionalPoisson,
    Design,
    ImportanceSampling,
    InvalidInput,
    Laplace,
    LinearProfile,
    MultiStage,
    Poisson,
    PoissonPPS,
    PPSClusters,
    Proportional,
    RandomSize,
    SharedRate,
    Stratified,
    Systematic,
    SystematicPPS,
    TruncatedPoisson,
    WithoutReplacement,
    WithReplacement,
    privacy_constrained,
)
from privamp.designs.class_rates import ClassRates
from privamp.designs.cluster_by_size import ClusterBySize
from privamp.designs.proportional_pps import ProportionalPPS
from privamp.spark import draw
from privamp.testing import seeded_key

FEW, MANY = 4_000, 20_000
SLACK = 1.0  # bytes a row; those that grow take 24
RULE = privacy_constrained(LinearProfile.of(Laplace(scale=400.0)), epsilon=0.5, radius=4.0)

Made = Callable[[int], Design]  # for so many rows
STREAMS: list[Made] = [
    lambda n: Poisson(0.25),
    lambda n: PoissonPPS(high=0.6),
    lambda n: ClassRates({"e": 0.25, "w": 0.5}),
    lambda n: ImportanceSampling(RULE),
    lambda n: Stratified({"e": Poisson(0.25), "w": Poisson(0.5)}),
]
BOUNDED: list[Made] = [  # rows outside of ten clusters of 20 records are in no cluster
    lambda n: WithoutReplacement(20, n),
    lambda n: WithReplacement(20, n),
    lambda n: MultiStage([("wor", 20), ("wr", 30)], n),
    lambda n: TruncatedPoisson(0.1, 20),
    lambda n: ClusterSampling(3, 10, 20),
    lambda n: ClusterPPS((0.1,) * 10, max_size=20),
    lambda n: PPSClusters(sizes=(20,) * 10, chosen=3, take=2),
    lambda n: SystematicPPS(sizes=(1,) * 10, chosen=3, max_size=20),
    lambda n: Stratified({"e": WithoutReplacement(20, n // 2), "w": WithoutReplacement(20, n // 2)}),
]
GROWING: list[Made] = [
    lambda n: ConditionalPoisson(20, n, 1.0, 2.0),
    lambda n: Proportional(0.01),
    lambda n: ProportionalPPS(20, 1.0, 2.0, n),
    lambda n: RandomSize([0.0] * 20 + [0.5, 0.5] + [0.0] * (n - 21)),
    lambda n: SharedRate(size=20, at_least=n, strata=2),
    lambda n: Systematic(100),
    lambda n: ClusterBySize(10, 20, 20),
    lambda n: Stratified({"e": WithoutReplacement(20, n // 2), "w": Proportional(0.01)}),
]
COLUMNS = [
    "id", "if(id % 2 = 0, 'e', 'w') as stratum", "if(id % 2 = 0, 'e', 'w') as category",
    "if(id < 200, id % 10, null) as cluster", "1.0D as probability", "1.0D as odds", "1.0D as size", "1.0D as x",
]  # fmt: skip


def name_of(made: Made) -> str:
    return type(made(FEW)).__name__


@pytest.fixture
def brought(spark: Any) -> Callable[[Callable[[], Any]], int]:
    """The bytes that tasks send to the driver while something runs, as Spark counts them."""

    def stages() -> dict[tuple[int, int], int]:
        spark.sparkContext._jsc.sc().listenerBus().waitUntilEmpty()
        url = f"{spark.sparkContext.uiWebUrl}/api/v1/applications/{spark.sparkContext.applicationId}/stages"
        with urlopen(url) as answer:
            return {(s["stageId"], s["attemptId"]): s["resultSize"] for s in json.loads(answer.read())}

    def measured(work: Callable[[], Any]) -> int:
        before = stages()
        work()
        return sum(size for stage, size in stages().items() if stage not in before)

    return measured


def drawn(spark: Any, made: Made, rows: int, **more: Any) -> None:
    """A draw, and the pass of a release."""
    table = spark.range(0, rows, 1, 2).selectExpr(*COLUMNS)
    draw(table, made(rows), id="id", key=seeded_key(931), trust_ids=True, **more)._draw.check_table()


def growth(spark: Any, brought: Any, made: Made) -> float:
    """Bytes to the driver for a further row."""
    few, many = (brought(lambda rows=rows: drawn(spark, made, rows)) for rows in (FEW, MANY))
    return float(many - few) / (MANY - FEW)


def test_every_design_is_here() -> None:
    assert {name_of(made) for made in (*STREAMS, *BOUNDED, *GROWING)} == set(DESIGNS)


@pytest.mark.parametrize("made", STREAMS, ids=name_of)
def test_one_pass_brings_nothing(spark: Any, brought: Any, made: Made) -> None:
    assert made(FEW).decides_alone
    assert growth(spark, brought, made) < SLACK
    drawn(spark, made, FEW, driver_records=0)


@pytest.mark.parametrize("made", BOUNDED, ids=name_of)
def test_what_comes_is_bounded_by_public_facts(spark: Any, brought: Any, made: Made) -> None:
    assert growth(spark, brought, made) < SLACK
    for rows in (FEW, MANY):
        with pytest.raises(InvalidInput, match="more than the 19 records that driver_records allows"):
            drawn(spark, made, rows, driver_records=19)
    drawn(spark, made, FEW, driver_records=60)


@pytest.mark.parametrize("made", GROWING, ids=name_of)
def test_what_grows_is_refused(spark: Any, brought: Any, made: Made) -> None:
    assert growth(spark, brought, made) > 4 * SLACK or name_of(made) == "ClusterBySize"  # its clusters stay small here
    drawn(spark, made, FEW, driver_records=FEW + 20)
    with pytest.raises(InvalidInput, match="records that driver_records allows"):
        drawn(spark, made, FEW, driver_records=FEW - 1)


def test_a_kept_stratum_by_coins_counts_by_its_rate(spark: Any, brought: Any) -> None:
    def made(n: int) -> Design:
        return Stratified({"e": WithoutReplacement(20, n // 2), "w": Poisson(0.25)})

    assert growth(spark, brought, made) > SLACK
    drawn(spark, made, FEW, driver_records=FEW // 4 + 20)
    with pytest.raises(InvalidInput, match="Stratified needs about 24 bytes on the driver"):
        drawn(spark, made, FEW, driver_records=FEW // 4 - 1)


def test_a_bound_that_is_not_true_is_caught(spark: Any, brought: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """The twin: by its own word this design brings 20 records, and it brings all."""
    monkeypatch.setattr(Proportional, "most_on_driver", 20)
    drawn(spark, lambda n: Proportional(0.01), FEW, driver_records=60)  # so its growth is the only witness
    assert growth(spark, brought, lambda n: Proportional(0.01)) > 4 * SLACK
