"""Sums on a cluster: the same whole numbers on any partitions, the same answer and guarantee as in memory."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from privamp import (
    Budget,
    ExactGaussian,
    ExactLaplace,
    ImportanceSampling,
    InvalidInput,
    LinearProfile,
    Poisson,
    Population,
    PrivateKMeans,
    PrivateMean,
    PrivateSum,
    Stratified,
    WithoutReplacement,
    privacy_constrained,
)
from privamp.core.ledger import REGISTRY
from privamp.engines.spark_draw import Draw
from privamp.engines.spark_totals import units_of
from privamp.spark import draw, estimate_strata, fit, release
from privamp.testing import seeded_key

N = 2000
NOISE = ExactLaplace(scale=40.0, sensitivity=4.3)
RULE = privacy_constrained(LinearProfile.of(NOISE), epsilon=0.5, radius=4.3)
DESIGN = ImportanceSampling(RULE)


def before_noise(sample: Any) -> list[int]:
    return sample.secret_total(("a", "b"), units_of(NOISE, ("a", "b"), 2), (2,)).tolist()


def test_the_whole_number_before_noise_is_the_same_on_any_partitions(table: Any, records: Any) -> None:
    key = seeded_key(811)
    kept = DESIGN.draw(Population(records.ids, x=records.x), key).reveal_secret()
    expected = NOISE.total(records.x[kept.positions], kept).tolist()
    for partitions in (1, 7, 64):
        rows = table.repartition(partitions)
        assert before_noise(draw(rows, DESIGN, id="uid", key=key, reads={"x": ["a", "b"]}, trust_ids=True)) == expected


def test_floats_would_depend_on_the_order(records: Any) -> None:
    x = records.x[:, 0] / 3.0
    assert len({sum(x[order].tolist()) for order in (np.arange(N), np.argsort(x), np.argsort(-x))}) > 1


@pytest.mark.parametrize(
    "asked",
    [
        PrivateSum(bounds=2.0, epsilon=1.0, sampler=WithoutReplacement(500, N)),
        PrivateSum(bounds=2.0, scale=300.0, epsilon=1.0, sampler="privacy-constrained", error_share=0.2),
        PrivateMean(bounds=2.0, epsilon=1.0, delta=1e-6, noise="gaussian", sampler=Poisson(0.5)),
    ],
)
def test_the_answer_is_that_of_memory(spark: Any, records: Any, asked: Any) -> None:
    key = seeded_key(812)  # one seed, one noise: the answers must agree to the last bit
    here = asked.release(records.x, key=key)
    REGISTRY.clear()  # a rehearsal with a known seed, not a second release
    rows = spark.createDataFrame(records.arrow().set_column(0, "uid", [list(range(N))]))
    there = release(asked, rows.repartition(5, "a"), ["a", "b"], id="uid", key=key, trust_ids=True)
    assert there.value.tolist() == here.value.tolist()
    assert np.array_equal(there.noise_error, here.noise_error)
    assert there.guarantee.epsilon(1e-6) == here.guarantee.epsilon(1e-6)
    assert there.guarantee.because == here.guarantee.because


def test_the_ledger_composes_and_amplifies_once(table: Any, records: Any) -> None:
    there = draw(table, Poisson(0.1), id="uid", key=seeded_key(813), trust_ids=True)
    here = Poisson(0.1).draw(Population(records.ids), seeded_key(814))
    count, total = ExactGaussian(sigma=5.0), ExactGaussian(sigma=20.0, sensitivity=3.0)
    there.release_count(count)
    there.release_sum(total, ["a", "b"])
    here.release(count, count.sum_of(np.ones(N)))
    here.release(total, total.sum_of(records.x))
    assert there.guarantee().epsilon(1e-6) == here.guarantee().epsilon(1e-6)
    assert len(there.ledger.entries) == 2
    assert "secret" in repr(there)


def test_groups_cost_one_sum_and_add_up_to_it(table: Any, records: Any) -> None:
    sample = draw(table, Poisson(1.0), id="uid", key=seeded_key(815), trust_ids=True)
    fine = ExactLaplace(scale=0.01, sensitivity=4.3)  # the l1 norm of the longest record
    east, west = sample.release_sum(fine, "x", by="stratum", groups=["east", "west"], dimension=2)
    assert np.allclose(east, records.x[:1000].sum(axis=0), atol=1.0)
    assert np.allclose(west, records.x[1600:].sum(axis=0), atol=1.0)
    assert sample.guarantee().epsilon() == pytest.approx(430.0)


def test_groups_that_the_column_cannot_hold_are_refused_before_they_are_charged(table: Any, tmp_path: Path) -> None:
    sample = draw(table, Poisson(1.0), id="uid", key=seeded_key(819), trust_ids=True)
    budget = Budget.create(tmp_path / "budget.db", population="people", epsilon=10.0)
    for by, groups in (("stratum", [1, 2]), ("cluster", ["1", "2"])):
        with pytest.raises(InvalidInput, match=f"no record can be in group .*, because the column '{by}' holds"):
            sample.release_sum(ExactLaplace(scale=1.0), "a", by=by, groups=groups, budget=budget)
    assert not budget.log()
    strata = Stratified({1: Poisson(0.5), 2: Poisson(0.5)})
    with pytest.raises(InvalidInput, match="names 1, which no record can have in the column 'stratum' of string"):
        draw(table, strata, id="uid", key=seeded_key(819))


def test_estimates_of_strata(table: Any, records: Any) -> None:
    design = Stratified({"east": Poisson(0.5), "north": Poisson(0.5), "west": Poisson(0.5)})
    sample = draw(table, design, id="uid", key=seeded_key(816), trust_ids=True)
    found = estimate_strata(sample, "a", ExactLaplace(scale=1.0, sensitivity=3.0))
    assert list(found) == ["east", "north", "west"]
    true = {name: records.x[records.columns["stratum"] == name, 0].sum() for name in found}
    for name, estimate in found.items():
        assert estimate.value == pytest.approx(true[name], abs=6.0 * np.sqrt(1000.0) + 100.0 * estimate.noise_error)
        assert estimate.noise_error == pytest.approx(2.0 * np.sqrt(2.0))
    assert found["east"].guarantee.epsilon() == sample.guarantee().epsilon()


def test_estimates_of_strata_by_the_column_that_the_draw_read(table: Any) -> None:
    renamed = table.withColumnRenamed("stratum", "region")
    design = Stratified({name: Poisson(1.0) for name in ("east", "north", "west")})
    sample = draw(renamed, design, id="uid", key=seeded_key(3), label="people", reads={"stratum": "region"})
    again = draw(table, design, id="uid", key=seeded_key(3), label="people")
    noise = ExactLaplace(scale=1e-6, sensitivity=3.0)
    found, expected = (estimate_strata(each, "a", noise) for each in (sample, again))
    assert [each.value for each in found.values()] == pytest.approx([e.value for e in expected.values()], abs=1e-4)


def test_k_means_is_that_of_memory(spark: Any, records: Any) -> None:
    key = seeded_key(817)
    model = PrivateKMeans(n_clusters=3, epsilon=20.0, radius=3.0, n_iter=3, sample_size=400)
    rows = spark.createDataFrame(records.arrow().set_column(0, "uid", [list(range(N))]))
    there = fit(model, rows.repartition(3, "a"), "x", dimension=2, id="uid", key=key)
    assert there.guarantee_.epsilon() == 20.0
    assert there.cluster_centers_.shape == (3, 2)
    assert there.predict(records.x).shape == (N,)
    model = PrivateKMeans(n_clusters=3, epsilon=20.0, radius=3.0, n_iter=3, sample_size=400)
    model._key = lambda: key  # type: ignore[method-assign]
    here = model.fit(records.x)
    assert np.allclose(there.cluster_centers_, here.cluster_centers_, atol=1e-6)
    assert there.guarantee_.because == here.guarantee_.because


@pytest.mark.parametrize("sampler", [None, "privacy-constrained"])
def test_k_means_whose_rows_stay_on_the_cluster_is_that_of_memory(
    spark: Any, records: Any, sampler: str | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    key = seeded_key(818)
    rows = spark.createDataFrame(records.arrow().set_column(0, "uid", [list(range(N))]))
    here = PrivateKMeans(n_clusters=3, epsilon=5.0, radius=3.0, n_iter=3, sampler=sampler)
    here._key = lambda: key  # type: ignore[method-assign]
    here.fit(records.x)
    monkeypatch.setattr(Draw, "to_arrow", None)  # no row may be brought to the driver
    for partitions in (1, 5):
        REGISTRY.clear()
        there = PrivateKMeans(n_clusters=3, epsilon=5.0, radius=3.0, n_iter=3, sampler=sampler)
        fit(there, rows.repartition(partitions, "a"), "x", dimension=2, id="uid", key=key, trust_ids=True)
        assert there.cluster_centers_.tolist() == here.cluster_centers_.tolist()  # to the last bit
        assert there.guarantee_.because == here.guarantee_.because
        assert there.guarantee_.epsilon() == here.guarantee_.epsilon() == 5.0
