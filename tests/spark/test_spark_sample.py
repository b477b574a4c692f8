"""One key, one sample: in memory, and on any number of Spark partitions, shuffled, evaluated again."""

import base64
import io
from contextlib import redirect_stdout
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from privamp import (
    ClusterSampling,
    ConditionalPoisson,
    Design,
    ImportanceSampling,
    Laplace,
    LinearProfile,
    MultiStage,
    Poisson,
    PoissonPPS,
    Proportional,
    Stratified,
    WithoutReplacement,
    WithReplacement,
    coreset,
    privacy_constrained,
)
from privamp.chance.keys import Key
from privamp.spark import sample
from privamp.testing import seeded_key

PROFILE = LinearProfile.of(Laplace(scale=30.0))
CONSTRAINED = privacy_constrained(PROFILE, epsilon=0.5, radius=4.3)
CORESET = coreset(PROFILE, share=0.5, size=200.0, population=2000, mean_squared_norm=2.0, radius=3.0, dimension=2)
N = 2000

EVERYWHERE: list[tuple[Design, dict[str, Any] | None]] = [
    (ImportanceSampling(CONSTRAINED), {"x": ["a", "b"]}),
    (WithoutReplacement(80, N), None),
]
ONCE: list[tuple[Design, dict[str, Any] | None]] = [
    (Poisson(0.1), None),
    (PoissonPPS(high=0.3), None),
    (ImportanceSampling(CORESET), None),  # from an array column
    (WithoutReplacement(1500, N), None),
    (WithReplacement(100, N), None),
    (
        Stratified({"east": WithoutReplacement(20, 1000), "north": WithoutReplacement(30, 600), "west": Poisson(0.1)}),
        None,
    ),
    (MultiStage([("wor", 200), ("wr", 150)], N), None),
    (ClusterSampling(5, 40, 50), None),
    (ConditionalPoisson(60, N, 1.0, 3.0), None),
    (Proportional(0.05), None),
]


@pytest.mark.parametrize(("design", "reads"), EVERYWHERE, ids=lambda case: type(case).__name__)
def test_one_sample_on_any_number_of_partitions(table: Any, records: Any, design: Design, reads: Any) -> None:
    key = seeded_key(801)
    expected = records.in_memory(design, key)
    assert expected
    for partitions in (1, 7, 64):
        rows = sample(table.repartition(partitions), design, id="uid", key=key, reads=reads, trust_ids=True)
        assert records.on_spark(rows) == expected


@pytest.mark.parametrize(("design", "reads"), ONCE, ids=lambda case: type(case).__name__)
def test_every_kind_of_design(table: Any, records: Any, design: Design, reads: Any) -> None:
    key = seeded_key(802)
    rows = sample(table.repartition(5, "a"), design, id="uid", key=key, reads=reads, trust_ids=True)
    assert records.on_spark(rows) == records.in_memory(design, key)


def test_large_parts_are_merged_on_the_workers(table: Any, records: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("privamp.engines.spark._AT_ONCE", 2000)
    monkeypatch.setattr("privamp.engines.spark._WIDTH", 2)
    key, design = seeded_key(804), WithoutReplacement(1500, N)
    rows = sample(table.repartition(4), design, id="uid", key=key, trust_ids=True)
    assert records.on_spark(rows) == records.in_memory(design, key)


def test_text_ids(table: Any, records: Any) -> None:
    key, design = seeded_key(803), WithoutReplacement(80, N)
    rows = sample(table.repartition(3), design, id="name", key=key)
    assert records.on_spark(rows, "name") == records.in_memory(design, key, "name")


def test_an_action_evaluated_again_gives_the_same_rows(table: Any, records: Any) -> None:
    rows = sample(table, Poisson(0.2), id="uid", trust_ids=True)  # a fresh secret key, kept in the plan's function
    assert records.on_spark(rows) == records.on_spark(rows) == records.on_spark(rows.repartition(3))


def test_a_plain_random_draw_gives_another_sample_each_time(table: Any) -> None:
    def toss(batches: Any) -> Any:
        for batch in batches:
            yield batch.filter(pa.array(np.random.default_rng().random(batch.num_rows) < 0.2))

    rows = table.select("uid").mapInArrow(toss, "uid long")
    first, second = (sorted(row.uid for row in rows.collect()) for _ in range(2))
    assert first != second


@pytest.mark.parametrize("design", [Poisson(0.2), WithoutReplacement(20, N)])
def test_the_key_is_in_no_plan(table: Any, design: Design) -> None:
    key = Key.generate()
    rows = sample(table, design, id="uid", key=key, trust_ids=True)
    said = io.StringIO()
    with redirect_stdout(said):
        rows.explain(mode="extended")
        rows.explain(mode="formatted")
    execution = rows._jdf.queryExecution()
    text = said.getvalue() + execution.toString() + execution.analyzed().toJSON() + repr(rows)
    for secret in (key, design.subkey(key, "population", 0)):
        raw = secret.secret_bytes()
        for form in (raw.hex(), base64.b64encode(raw).decode(), repr(raw)[2:-1], str(list(raw))[1:-1]):
            assert form not in text
    assert "keep" in text  # the function is there by its name


def test_the_columns_stay_and_two_are_added(table: Any) -> None:
    rows = sample(table, Poisson(0.2), id="uid", trust_ids=True)
    assert rows.columns == [*table.columns, "privamp_weight", "privamp_count"]
    assert rows.schema.fields[: len(table.columns)] == table.schema.fields


def test_an_empty_table(table: Any, records: Any) -> None:
    nobody = table.limit(0)
    assert records.on_spark(sample(nobody, Poisson(0.5), id="uid")) == []
    assert records.on_spark(sample(nobody, Proportional(0.5), id="uid", trust_ids=True)) == []
