"""Every record has an answer: what a row holds never stops a job, shows in a message, or changes another row's part."""

import decimal
import logging
import traceback
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from privamp import (
    ClusterSampling,
    ConditionalPoisson,
    ExactGaussian,
    ExactLaplace,
    ImportanceSampling,
    InvalidInput,
    LinearProfile,
    Poisson,
    PoissonPPS,
    PrivateKMeans,
    PrivateSum,
    Stratified,
    privacy_constrained,
)
from privamp.engines.spark_totals import units_of
from privamp.spark import draw, fit, release
from privamp.testing import seeded_key

LARGEST = float(np.finfo(np.float64).max)
HARD = [float("nan"), float("inf"), float("-inf"), None, -0.0, 5e-324, LARGEST, -LARGEST, 3.0, np.nextafter(3.0, 4.0)]
NOISE = ExactLaplace(scale=20.0, sensitivity=3.0)
ALL = Poisson(1.0)
RULE = privacy_constrained(LinearProfile.of(NOISE), epsilon=0.5, radius=3.0)


def rows_of(spark: Any, **columns: Any) -> Any:
    n = len(next(iter(columns.values())))
    return spark.createDataFrame(pa.table({"uid": list(range(n)), **columns}))


def total(rows: Any, noise: Any = NOISE, values: Any = ("a",), design: Any = ALL, **more: Any) -> list[int]:
    drawn = draw(rows, design, id="uid", key=seeded_key(861), trust_ids=True, **more)
    found: list[int] = drawn.secret_total(values, units_of(noise, values, len(values)), (len(values),)).tolist()
    return found


def test_numbers_that_are_none(spark: Any) -> None:
    unit = int(3.0 / NOISE.grid)
    for value, worth in zip(HARD, [0, unit, -unit, 0, 0, 0, unit, -unit, unit, unit], strict=True):
        rows = rows_of(spark, a=pa.array([1.0, value, 2.0], pa.float64()))
        (found,) = total(rows)
        assert found - int(3.0 / NOISE.grid) in (worth, worth - np.sign(worth))  # clipping may cost a unit
        draw(rows, Poisson(1.0), id="uid").release_sum(NOISE, "a")


def test_no_release_fails_by_what_was_sampled(spark: Any) -> None:
    poisoned = rows_of(spark, a=pa.array([1.0] * 30 + [float("nan"), None, float("inf")], pa.float64()))
    for seed in range(4):
        drawn = draw(poisoned, Poisson(0.5), id="uid", key=seeded_key(862 + seed), trust_ids=True)
        assert np.isfinite(drawn.release_sum(NOISE, ["a"])).all()
        asked = PrivateSum(bounds=3.0, epsilon=1.0, sampler=Poisson(0.5))
        assert np.isfinite(release(asked, poisoned, "a", id="uid", key=seeded_key(872 + seed), trust_ids=True).value)


def test_types(spark: Any) -> None:
    big = rows_of(spark, a=pa.array([2**62 + 1, -(2**63), None], pa.int64()))
    assert total(big) == [0]
    exact = rows_of(spark, a=pa.array([decimal.Decimal("1.5"), None], pa.decimal128(38, 10)))
    assert total(exact) == [int(1.5 / NOISE.grid)]
    drawn = draw(rows_of(spark, a=["canary"], b=[True]), Poisson(1.0), id="uid")
    for name in ("a", "b"):
        with pytest.raises(InvalidInput, match=f"column '{name}' must hold numbers, got (string|bool) instead"):
            drawn.release_sum(NOISE, name)
    assert not drawn.ledger.entries


def test_lists_of_another_length_count_as_zeros(spark: Any) -> None:
    lists = pa.array([[1.0, 1.0], [1.0], None, [1.0, None], [1.0, 1.0, 1.0], []], pa.list_(pa.float64()))
    drawn = draw(rows_of(spark, a=lists), Poisson(1.0), id="uid", key=seeded_key(863), trust_ids=True)
    unit = int(1.0 / NOISE.grid)
    assert drawn.secret_total(("a",), units_of(NOISE, ("a",), 2), (2,)).tolist() == [2 * unit, unit]
    assert drawn.release_sum(NOISE, "a", dimension=2).shape == (2,)
    by_norm = draw(rows_of(spark, x=lists), ImportanceSampling(RULE), id="uid", trust_ids=True)
    assert by_norm.release_sum(NOISE, "x", dimension=2).shape == (2,)


@pytest.mark.parametrize(
    ("design", "column", "values"),
    [
        (Stratified({"e": Poisson(1.0), "w": Poisson(1.0)}), "stratum", ["e", "canary", None, "w"]),
        (ClusterSampling(2, 2, 4), "cluster", [0, 7, None, 1]),
        (ClusterSampling(2, 2, 4, labels=("e", "w")), "cluster", ["e", "canary", None, "w"]),
    ],
)
def test_labels_that_the_design_does_not_name(spark: Any, design: Any, column: str, values: Any) -> None:
    rows = rows_of(spark, **{"a": [1.0, 1.0, 1.0, 1.0], column: values})
    assert total(rows, design=design) == [2 * int(1.0 / NOISE.grid)]


def test_probabilities_outside_their_range(spark: Any) -> None:
    values = pa.array([0.5, None, float("nan"), float("inf"), -1.0, 7.0], pa.float64())
    for design, name in (
        (PoissonPPS(high=0.6, low=0.1), "probability"),
        (PoissonPPS(high=0.6, low=0.1, per_size=2.0), "size"),
        (PoissonPPS.proportional(2.0, 1.0, 3.0, 3), "size"),
        (ConditionalPoisson(2, 6, 1.0, 3.0), "odds"),
    ):
        rows = rows_of(spark, **{"a": [1.0] * 6, name: values})
        draw(rows, design, id="uid", trust_ids=True).release_sum(NOISE, "a")


def test_records_outside_the_ball_of_a_rule(spark: Any) -> None:
    inside = rows_of(spark, a=[1.0, 3.0, -3.0] * 20)
    outside = rows_of(spark, a=[1.0, float("inf"), -7e300] * 20)
    design, reads = ImportanceSampling(RULE), {"x": "a"}
    assert total(inside, design=design, reads=reads) == total(outside, design=design, reads=reads)


@pytest.mark.parametrize("noise", [NOISE, ExactGaussian(sigma=20.0, sensitivity=3.0)])
def test_one_record_moves_the_sum_by_its_own_row_only(spark: Any, records: Any, noise: Any) -> None:
    """In any batches and partitions, beside rows that are zero, huge, missing or denormal."""
    design, key, values = ImportanceSampling(RULE), seeded_key(864), ("a", "b")
    base = records.x[:64] * 1.7
    whole: dict[Any, list[int]] = {}
    for name, odd in (("none", []), ("zero", [[0.0, 0.0]]), ("hard", [[HARD[0], LARGEST], [5e-324, HARD[2]]])):
        table = np.concatenate([base, np.array(odd, dtype=float).reshape(-1, 2)])
        rows = rows_of(spark, a=table[:, 0], b=table[:, 1])
        for partitions, batch in ((1, 1), (1, 500), (5, 7)):
            spark.conf.set("spark.sql.execution.arrow.maxRecordsPerBatch", batch)
            drawn = draw(
                rows.repartition(partitions), design, id="uid", key=key, reads={"x": ["a", "b"]}, trust_ids=True
            )
            found = drawn.secret_total(values, units_of(noise, values, 2, (3.0, RULE.p)), (2,)).tolist()
            assert whole.setdefault(name, found) == found
    spark.conf.set("spark.sql.execution.arrow.maxRecordsPerBatch", 500)
    assert whole["zero"] == whole["none"]


def test_k_means_refuses_no_record(spark: Any) -> None:
    values = np.array([[1.0, 0.0], [0.0, 1.0]] * 40)
    hard = pa.array([*values[:, 0].tolist(), *HARD], pa.float64())
    rows = rows_of(spark, a=hard, b=pa.array([*values[:, 1].tolist(), *HARD[::-1]], pa.float64()))
    model = PrivateKMeans(n_clusters=2, epsilon=20.0, radius=3.0, n_iter=2, sample_size=40)
    assert np.isfinite(fit(model, rows, ["a", "b"], id="uid").cluster_centers_).all()
    assert any("the table does not change" in words for words in model.guarantee_.assumes)


def test_what_spark_says_of_a_record_is_not_repeated(spark: Any, caplog: pytest.LogCaptureFixture) -> None:
    """A cast of the user's own and a function of the user's own, whose errors show the value."""
    from pyspark.sql import functions

    rows = rows_of(spark, text=["1.0", "canary-value", "3.0"])
    cast = rows.withColumn("a", functions.expr("cast(text as double)"))
    code = rows.withColumn("a", functions.udf(lambda text: float(text), "double")("text"))
    with caplog.at_level(logging.INFO):
        for table in (cast, code):
            with pytest.raises(InvalidInput, match=r"Spark could not evaluate the table \(\w+\)") as caught:
                draw(table, Poisson(0.5), id="uid", trust_ids=True).release_sum(NOISE, "a")
            assert "canary" not in "".join(traceback.format_exception(caught.value))
            assert caught.value.__cause__ is None
            assert caught.value.__context__ is None
    assert "canary" not in caplog.text


def test_what_fails_on_a_worker_says_its_kind_only(spark: Any) -> None:
    def units(batch: pa.RecordBatch) -> Any:
        raise ValueError(f"could not read {batch.column('a').to_pylist()} canary")

    drawn = draw(rows_of(spark, a=[1.0]), Poisson(1.0), id="uid")
    with pytest.raises(InvalidInput, match="failed with a ValueError; its text is left out") as caught:
        drawn.secret_total(("a",), units, (1,))
    assert "canary" not in "".join(traceback.format_exception(caught.value))
