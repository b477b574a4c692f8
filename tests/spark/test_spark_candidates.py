"""Rows that Spark's JVM passes over are rows that the kernel would not draw, and the key stays out of sight."""

import base64
import logging
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from privamp import (
    ClusterSampling,
    ImportanceSampling,
    InvalidInput,
    Key,
    Laplace,
    LinearProfile,
    MultiStage,
    Poisson,
    PoissonPPS,
    WithoutReplacement,
    WithReplacement,
    privacy_constrained,
)
from privamp.chance.keyed import keyed_numbers
from privamp.chance.keys import derive
from privamp.engines import spark_candidates, spark_draw
from privamp.engines.kernel import Kernel
from privamp.engines.spark_candidates import candidates
from privamp.spark import draw, sample
from privamp.testing import seeded_key

N = 2000
FILTER = "privamp_may_draw"
RULE = privacy_constrained(LinearProfile.of(Laplace(scale=60.0)), epsilon=0.5, radius=4.3)
DESIGNS = [
    (Poisson(0.05), None),
    (PoissonPPS(high=0.3), None),
    (ImportanceSampling(RULE), {"x": ["a", "b"]}),
    (WithoutReplacement(40, N), None),
    (WithReplacement(40, N), None),
    (MultiStage([("wor", 40), ("wr", 30)], N), None),
]


def plan_of(rows: Any) -> str:
    return str(rows._jdf.queryExecution().toString())


@pytest.mark.parametrize("id", ["uid", "name"])
@pytest.mark.parametrize(("design", "reads"), DESIGNS, ids=lambda case: type(case).__name__)
def test_the_sample_is_that_of_memory(table: Any, records: Any, design: Any, reads: Any, id: str) -> None:
    key = seeded_key(891)
    rows = sample(table.repartition(3), design, id=id, key=key, reads=reads, trust_ids=True)
    assert FILTER in plan_of(rows)
    expected = records.in_memory(design, key, id)
    assert expected
    assert records.on_spark(rows, id) == expected


def test_few_rows_reach_python(table: Any) -> None:
    kernel = Kernel.of(Poisson(0.05), seeded_key(892), id="uid")
    few = candidates(table, kernel)
    own = np.array([row.uid for row in table.select("uid").collect()], dtype=np.uint64)
    below = keyed_numbers(kernel.subkey, own) < np.uint64(kernel.design.number_bound or 0)
    assert sorted(row.uid for row in few.select("uid").collect()) == sorted(own[below].tolist())


@pytest.mark.parametrize("texts", [["", "a", "é", "x" * 15, "x" * 16, "x" * 17, "ü" * 700, "🚲", "a\0b", " a"]])
def test_texts_of_every_length(spark: Any, texts: list[str]) -> None:
    ids = [f"{text}{k}" if k else text for text in texts for k in range(30)]
    kernel = Kernel.of(Poisson(0.3), seeded_key(893), id="uid")
    found = candidates(spark.createDataFrame(pa.table({"uid": ids})), kernel).collect()
    below = keyed_numbers(kernel.subkey, np.array(ids, object)) < np.uint64(kernel.design.number_bound or 0)
    assert sorted(row.uid for row in found) == sorted(np.array(ids, object)[below].tolist())


@pytest.mark.parametrize("kind", ["byte", "short", "int", "long"])
def test_whole_numbers_of_every_width(spark: Any, kind: str) -> None:
    rows = spark.range(100).selectExpr(f"cast(id as {kind}) as uid")
    wide = spark.range(100).selectExpr("id as uid")
    key, design = seeded_key(894), Poisson(0.3)
    found, expected = (
        sorted(r.uid for r in sample(each, design, id="uid", key=key).collect()) for each in (rows, wide)
    )
    assert found == expected
    assert found


@pytest.mark.parametrize("odd", [-1, None])
def test_ids_that_are_refused_are_not_passed_over(spark: Any, odd: Any) -> None:
    """Whatever the key: the JVM leaves such ids to Python, which says why."""
    rows = spark.createDataFrame(pa.table({"uid": pa.array([1, odd, 2], pa.int64())})).coalesce(1)
    for seed in range(3):
        kernel = Kernel.of(Poisson(1e-9), seeded_key(895 + seed), id="uid")
        assert [row.uid for row in candidates(rows, kernel).collect()] == [odd]
    with pytest.raises(InvalidInput, match=r"negative ids|missing ids"):
        sample(rows, WithoutReplacement(1, 1000), id="uid", trust_ids=True)


def test_bytes_that_are_no_text_are_left_to_python(spark: Any) -> None:
    for odd in ("61ff62", "6100"):  # not UTF-8; ends with NUL
        rows = spark.sql(f"select cast(unhex('{odd}') as string) as uid union all select 'a'")
        kernel = Kernel.of(Poisson(1e-9), seeded_key(898), id="uid")
        assert candidates(rows, kernel).count() == 1


def test_designs_without_a_bound_are_read_whole(table: Any) -> None:
    for design in (Poisson(0.9), WithoutReplacement(1500, N), ClusterSampling(5, 40, 50)):
        assert FILTER not in plan_of(sample(table, design, id="uid", key=seeded_key(899), trust_ids=True))


@dataclass(frozen=True, slots=True)
class Other(Poisson):
    """Draws by other numbers than Poisson does, and does not say so."""

    def partial(self, batch: Any, subkey: Any) -> Any:
        return Poisson.partial(self, batch, subkey.subkey("other"))


def test_a_design_of_ones_own_declares_its_own_bound(table: Any) -> None:
    kernel = Kernel.of(Other(0.05), seeded_key(900), id="uid")
    assert candidates(table, kernel) is table


def test_a_jvm_that_codes_otherwise_stops_the_job(table: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(spark_candidates, "derive", lambda key, purpose: derive(key, b"another purpose"))
    rows = sample(table, Poisson(0.05), id="uid", key=seeded_key(901), trust_ids=True)
    with pytest.raises(Exception, match="gives other numbers in this JVM than in Python"):
        rows.count()


def test_a_closed_jvm_means_more_rows_in_python(table: Any, records: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    from py4j.protocol import Py4JError

    def closed(*given: Any) -> None:
        raise Py4JError("not allowed here")

    monkeypatch.setattr(spark_candidates, "_function", closed)
    key, design = seeded_key(902), WithReplacement(40, N)
    rows = sample(table, design, id="uid", key=key, trust_ids=True)
    assert FILTER not in plan_of(rows)
    assert records.on_spark(rows) == records.in_memory(design, key)


def test_sums_are_not_filtered(table: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """Spark would show how many rows pass the filter."""
    from privamp import ExactLaplace

    drawn = draw(table, Poisson(0.05), id="uid", key=seeded_key(903), trust_ids=True)
    monkeypatch.setattr(spark_draw, "candidates", None)
    drawn.release_sum(ExactLaplace(scale=20.0, sensitivity=3.0), ["a", "b"])
    drawn.release_count(ExactLaplace(scale=20.0))


def test_the_key_is_in_no_plan(table: Any, caplog: pytest.LogCaptureFixture) -> None:
    key, design = Key.generate(), Poisson(0.05)
    with caplog.at_level(logging.DEBUG, logger="privamp"):
        rows = sample(table, design, id="uid", key=key, trust_ids=True)
    execution = rows._jdf.queryExecution()
    text = plan_of(rows) + execution.analyzed().toJSON() + execution.executedPlan().toJSON() + caplog.text
    text += execution.debug().toString() + str(rows._jdf.logicalPlan().treeString())
    assert FILTER in text
    subkey = design.subkey(key, "population", 0)
    for raw in (key.secret_bytes(), subkey.secret_bytes(), derive(subkey, b"whole-number ids")):
        signed = [value - 256 if value > 127 else value for value in raw]
        for form in (raw.hex(), base64.b64encode(raw).decode(), str(list(raw))[1:-1], str(signed)[1:-1]):
            assert form not in text
