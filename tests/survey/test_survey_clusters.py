"""Means and totals from clusters: what one record moves, coverage, and what a plan promises."""

import math
from dataclasses import replace

import numpy as np
import pytest

from privamp import ClusterSampling, Poisson, Population, WithoutReplacement
from privamp.audits.records import surveys
from privamp.survey import clustered, estimate, plan
from privamp.survey.clustered import Clusters, _Cut, clusters_of
from privamp.survey.units import Units
from privamp.survey.within_bounds import WithinBounds
from privamp.testing import seeded_key

RANDOM = np.random.default_rng(8)
SIZES = RANDOM.integers(2, 20, 200)
CLUSTER = np.repeat(np.arange(200), SIZES)
N = int(SIZES.sum())
ICC, SD = 0.3, 12.0
X = 45 + SD * (math.sqrt(ICC) * RANDOM.standard_normal(200)[CLUSTER] + math.sqrt(1 - ICC) * RANDOM.standard_normal(N))
X = np.clip(X, 0, 100)


def drawn(design, seed):
    return design.draw(Population(N, cluster=CLUSTER), seeded_key(seed))


def released(design, runs, **options):
    return [estimate(drawn(design, seed), X, bounds=(0, 100), **options) for seed in range(runs)]


class TestOneRecord:
    @pytest.mark.parametrize("rate", [1.0, 0.3])
    def test_cut_sums_move_by_what_is_declared_at_most(self, rate):
        """Brute force: every record added to every set of records that is large enough to matter."""
        cut = _Cut.of(1.7, 0.05, 4.0, Clusters(5, 20, 60, rate, np.zeros(1, dtype=np.int64)), 100.0, False)
        unit, most = cut.lattice.most, cut.most
        for total in (0, 1, unit, most - unit, most - 1, most, most + unit, 7 * most):
            for record in (-unit, -unit // 2, -1, 0, 1, unit // 3, unit):
                one, other = min(abs(total), most) ** 2, min(abs(total + record), most) ** 2
                assert abs(one - other) <= cut.moves
        assert most**2 - (most - unit) ** 2 == cut.moves  # attained

    def test_distances_move_by_one_record_at_most(self):
        cut = _Cut.of(1.7, 0.05, 4.0, Clusters(5, 20, 7, 1.0, np.zeros(1, dtype=np.int64)), 100.0, True)
        assert cut.is_distance
        assert cut.per_record == cut.lattice.most == cut.lattice.whole(np.array([1.7]))[0]

    @pytest.mark.parametrize("is_distance", [True, False])
    def test_a_reach_that_is_too_small_is_found(self, monkeypatch, is_distance):
        honest, seen = _Cut.of.__func__, set()

        def one_kind(cls, *given):
            seen.add(is_distance)
            return replace(honest(cls, *given), is_distance=is_distance)

        audit = surveys._fixed("clusters")
        monkeypatch.setattr(_Cut, "of", classmethod(one_kind))
        assert audit.perform(12).ok
        assert seen == {is_distance}
        small = _Cut.per_record.fget
        monkeypatch.setattr(_Cut, "per_record", property(lambda cut: small(cut) // 8))
        assert not audit.perform(12).ok


class TestDesigns:
    @pytest.mark.parametrize("second", [None, Poisson(0.5)])
    def test_clusters_are_read_off_the_weights(self, second):
        found = clusters_of(Units(ClusterSampling(24, 200, 19, second).weighting(N, None, {"cluster": CLUSTER})))
        assert (found.drawn, found.clusters, found.cap) == (24, 200, 19)

    def test_other_designs_have_none(self):
        assert clusters_of(Units(ClusterSampling(200, 200, 19).weighting(N, None, {"cluster": CLUSTER}))) is None


class TestErrors:
    @pytest.mark.parametrize("second", [None, Poisson(0.5)])
    @pytest.mark.parametrize("statistic", ["mean", "total"])
    def test_the_textbook_when_epsilon_grows(self, second, statistic):
        design = ClusterSampling(60, 200, 19, second)
        found = released(design, 60, epsilon=1e5, statistic=statistic)
        values = np.array([one.value for one in found])
        errors = np.array([one.sampling_error for one in found])
        assert np.mean(errors) == pytest.approx(np.std(values), rel=0.25)
        truth = X.mean() if statistic == "mean" else X.sum()
        assert abs(values.mean() - truth) < 4 * np.std(values) / math.sqrt(60)

    @pytest.mark.parametrize("epsilon", [1.0, 10.0])
    def test_intervals_cover_and_a_public_size_makes_them_no_wider(self, epsilon):
        design = ClusterSampling(30, 200, 19)
        widths = []
        for known in (N, None):
            ends = [one.interval() for one in released(design, 100, epsilon=epsilon, population=known)]
            assert np.mean([low <= X.mean() <= high for low, high in ends]) >= 0.9
            assert all(0 <= low <= high <= 100 for low, high in ends)
            widths.append(np.mean([high - low for low, high in ends]))
        assert widths[0] <= widths[1] * 1.02

    def test_student_and_bounds(self):
        law = WithinBounds(0.9, 0.1, 0.0, "gaussian", 0.0, 1.0, 4)
        assert law.interval(0.95) == (pytest.approx(0.9 - 2.7764 * 0.1, abs=1e-4), 1.0)
        assert WithinBounds(5.0, 0.1, 0.0, "gaussian", 0.0, 1.0).interval(0.95) == (1.0, 1.0)


class TestThePlan:
    """A plan promises the standard error that estimates turn out to have, within a fifth."""

    def test_clusters(self):
        found = plan({"c": CLUSTER}, size=400, epsilon=1.0, bounds=(0, 100), cluster="c", overall_sd=SD, icc=ICC)
        row = next(row for row in found.rows if row.name == "cluster")
        values = [one.value for one in released(row.design, 200, epsilon=1.0, population=N)]
        assert row.standard_error == pytest.approx(np.std(values), rel=0.2)

    def test_simple_random(self):
        found = plan({"c": CLUSTER}, size=400, epsilon=0.5, bounds=(0, 100), overall_sd=SD)
        row = next(row for row in found.rows if row.name == "simple random")
        samples = (WithoutReplacement(400, N).draw(N, seeded_key(seed)) for seed in range(200))
        values = [estimate(sample, X, bounds=(0, 100), epsilon=0.5, sd=SD).value for sample in samples]
        assert row.standard_error == pytest.approx(np.std(values), rel=0.2)

    def test_the_factor_is_that_of_the_split(self):
        (one,) = released(ClusterSampling(30, 200, 19), 1, epsilon=1.0, population=N)
        away = abs(one.value - 50) / 50
        design = ClusterSampling(30, 200, 19)
        whole = estimate(drawn(design, 0), X, bounds=(0, 100), epsilon=1.0, population=N, sd="range")
        assert one.noise_error / whole.noise_error == pytest.approx(
            clustered.noise_factor("laplace", away=away), rel=0.35  # the count of one sample is not N
        )  # fmt: skip
