"""A table that is another one at the release than it was at the draw is refused, whatever was drawn from it."""

import random
import uuid
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyarrow import parquet

from privamp import ExactLaplace, InvalidInput, Poisson, PrivateKMeans, PrivateSum, Stratified, WithoutReplacement
from privamp.engines.spark_draw import Draw
from privamp.spark import draw, fit, release, sample
from privamp.testing import seeded_key

CHANGED = "the table is not the one that was drawn from"
NOISE = ExactLaplace(scale=5.0)
N = 1000


def made_anew(spark: Any, is_text: bool) -> Any:
    """A cached table whose ids are made by code that no plan shows: what is lost from the cache has other ids."""

    def row(_: int) -> tuple[Any, float]:
        return (uuid.uuid4().hex if is_text else random.SystemRandom().getrandbits(60), 1.0)

    kind = "string" if is_text else "long"
    rows = spark.sparkContext.range(N, numSlices=4).map(row)
    made = spark.createDataFrame(rows, f"uid {kind}, a double").cache()
    made.count()
    return made


@pytest.mark.parametrize("design", [Poisson(0.3), WithoutReplacement(300, N)])
@pytest.mark.parametrize("is_text", [True, False])
def test_ids_made_anew_after_a_lost_cache(spark: Any, design: Any, is_text: bool) -> None:
    made = made_anew(spark, is_text)
    drawn = draw(made, design, id="uid", trust_ids=True)
    drawn.release_count(NOISE)
    before = {row.uid for row in drawn.reveal_secret().select("uid").collect()}
    made.unpersist(blocking=True)  # an executor dies, memory is short
    assert before != {row.uid for row in drawn.reveal_secret().select("uid").collect()}
    for attempt in (
        lambda: drawn.release_count(NOISE),
        lambda: drawn.release_sum(NOISE, "a"),
        lambda: drawn.release(NOISE, lambda rows: rows.count()),
        lambda: drawn.run(NOISE, lambda rows, stream: rows.count()),
    ):
        with pytest.raises(InvalidInput, match=CHANGED):
            attempt()
    assert len(drawn.ledger.entries) == 1  # the others were refused before noise was drawn


def test_a_sample_of_fixed_size_without_a_cache(spark: Any) -> None:
    made = made_anew(spark, is_text=False)
    made.unpersist(blocking=True)
    for attempt in (
        lambda: sample(made, WithoutReplacement(300, N), id="uid", trust_ids=True),
        lambda: release(
            PrivateSum(bounds=1.0, epsilon=1.0, sampler=WithoutReplacement(300, N)), made, "a", id="uid", trust_ids=True
        ),
    ):
        with pytest.raises(InvalidInput, match=CHANGED):
            attempt()


def test_an_erasure_between_two_steps_of_k_means(spark: Any, tmp_path: Path) -> None:
    path = str(tmp_path / "points.parquet")
    parquet.write_table(pa.table({"uid": list(range(100)), "a": [1.0, -1.0] * 50}), path)

    def erase(step: int, steps: int, centres: Any) -> None:
        parquet.write_table(pa.table({"uid": list(range(99)), "a": [1.0] * 99}), path)
        spark.catalog.refreshByPath(path)

    model = PrivateKMeans(n_clusters=2, epsilon=50.0, radius=2.0, n_iter=3, progress=erase)
    with pytest.raises(InvalidInput, match=CHANGED):
        fit(model, spark.read.parquet(path), "a", id="uid")
    assert not hasattr(model, "cluster_centers_")


def test_an_erasure_between_draw_and_release(spark: Any, tmp_path: Path) -> None:
    """Whether the erased record was in the sample does not matter, and cannot be told from the refusal."""
    path, said = str(tmp_path / "people.parquet"), []
    for erased in range(4):
        parquet.write_table(pa.table({"uid": list(range(100)), "a": [1.0] * 100}), path)
        drawn = draw(spark.read.parquet(path), WithoutReplacement(50, 100), id="uid", key=seeded_key(851 + erased))
        drawn.release_sum(NOISE, "a")
        left = [i for i in range(100) if i != erased]
        parquet.write_table(pa.table({"uid": left, "a": [1.0] * 99}), path)
        spark.catalog.refreshByPath(path)
        with pytest.raises(InvalidInput, match=CHANGED) as caught:
            drawn.release_sum(NOISE, "a")
        said.append(str(caught.value))
    assert len(set(said)) == 1


def test_columns_that_decide_are_held_fast_too(spark: Any, table: Any) -> None:
    design = Stratified({"east": Poisson(0.5), "north": Poisson(0.5), "west": Poisson(0.25)})
    drawn = draw(table, design, id="uid", trust_ids=True)
    moved = table.replace({"north": "west"}, subset=["stratum"])
    assert drawn._draw.pin is not None
    for other, is_same in ((table.repartition(5, "a"), True), (moved, False), (table.filter("uid > 100"), False)):
        later = Draw(other, drawn._draw.kernel, pin=drawn._draw.pin)
        if is_same:
            later.check_table()
        else:
            with pytest.raises(InvalidInput, match=CHANGED):
                later.check_table()


def test_the_assumption_is_named_and_the_digest_is_not_shown(table: Any) -> None:
    drawn = draw(table, Poisson(0.5), id="uid", trust_ids=True)
    drawn.release_count(NOISE)
    assert any("the table does not change between the draw and its releases" in a for a in drawn.guarantee().assumes)
    assert any("Spark's own pages" in a for a in drawn.guarantee().assumes)
    assert drawn._draw.pin is not None
    digest = drawn._draw.pin._digest
    assert digest.hex() not in repr(drawn) + repr(drawn._draw) + repr(drawn._draw.pin)
    assert repr(digest)[2:-1] not in repr(drawn._draw)
