"""Noise for a size, sizes for noise, and a private histogram to find them with."""

import numpy as np
import pytest

from privamp import (
    Gaussian,
    Infeasible,
    InvalidInput,
    Joint,
    Laplace,
    LinearProfile,
    NormHistogram,
    NormNoise,
    SumAndCount,
    compose,
    coreset,
    noise_for_guarantee,
    noise_for_size,
    private_norm_histogram,
    size_for_noise,
)
from privamp.rules.noise_and_size import EVALUATIONS
from privamp.rules.norm_histogram import octave_bins
from privamp.testing import seeded_key

NORMS = np.random.default_rng(0).gamma(4.0, size=50_000).clip(0, 14) / 14.0
PUBLIC = NormHistogram(np.arange(1, 101) / 100, np.histogram(NORMS, np.arange(101) / 100)[0])


def pure_step(scale):
    return Joint([SumAndCount(NormNoise(scale, 54), Laplace(18 * scale))] * 10)


def gaussian_step(sigma):
    return Joint([SumAndCount(Gaussian(sigma), Gaussian(4 * sigma))] * 10)


@pytest.mark.parametrize("size", [20, 500, 4000])
@pytest.mark.parametrize("epsilon", [0.05, 0.5, 1.0, 10.0, 300.0])
def test_noise_for_a_size_meets_it_from_below(size, epsilon):
    if size_for_noise(pure_step(0.1 * (100 + 5.56) / epsilon), PUBLIC, epsilon=epsilon) < size:  # the least noise
        with pytest.raises(Infeasible, match="cannot be reached"):
            noise_for_size(pure_step, PUBLIC, size=size, epsilon=epsilon)
        return
    found = noise_for_size(pure_step, PUBLIC, size=size, epsilon=epsilon)
    assert found.evaluations <= EVALUATIONS
    assert 0.9 * size < found.expected_size <= size
    again = size_for_noise(found.mechanism, PUBLIC, epsilon=epsilon)
    assert again == pytest.approx(found.expected_size)
    assert float(found.rule.of_norms(NORMS).sum()) <= found.expected_size  # bins count at their upper end
    assert found.rule.guarantee().epsilon() <= epsilon * (1 + 1e-12)


def test_gaussian_noise_for_a_size():
    found = noise_for_size(gaussian_step, PUBLIC, size=2000, epsilon=1.0, delta=1e-6)
    assert found.evaluations <= EVALUATIONS
    assert 1990 < found.expected_size <= 2000
    assert found.rule.guarantee().epsilon(1e-6) <= 1.0


def test_an_unreachable_size_names_the_largest():
    with pytest.raises(Infeasible, match="cannot be reached") as error:
        noise_for_size(Laplace, PUBLIC, size=40_000, epsilon=0.1)
    largest = float(str(error.value).split("it is ")[1].split(";")[0])
    assert noise_for_size(Laplace, PUBLIC, size=0.999 * largest, epsilon=0.1).expected_size <= largest
    with pytest.raises(Infeasible):
        noise_for_size(Laplace, PUBLIC, size=1.001 * largest, epsilon=0.1)
    with pytest.raises(Infeasible, match="max_weight"):
        noise_for_size(Laplace, PUBLIC, size=1.0, epsilon=1.0, max_weight=100.0)


def test_with_the_radius_alone_everybody_counts_there():
    worst = NormHistogram([1.0], [50_000])
    less, more = (noise_for_size(Laplace, h, size=1000, epsilon=1.0, radius=1.0).noise for h in (PUBLIC, worst))
    assert more > less


def test_a_private_histogram_is_accounted():
    histogram, cost = private_norm_histogram(NORMS, radius=1.0, epsilon=0.1, key=seeded_key(90001))
    assert cost.epsilon() == pytest.approx(0.1)
    assert not cost.is_private
    assert histogram.population == pytest.approx(NORMS.size, rel=0.02)
    found = noise_for_size(Laplace, histogram, size=1000, epsilon=0.9, radius=1.0)
    assert compose([cost, found.rule.guarantee()]).epsilon() == pytest.approx(1.0)
    outside, _ = private_norm_histogram(np.full(1000, 7.0), radius=1.0, epsilon=1.0, key=seeded_key(90002))
    assert outside.counts[-1] > 900  # clipped, not dropped
    empty, _ = private_norm_histogram(np.empty(0), radius=1.0, epsilon=100.0, key=seeded_key(90003))
    assert empty.population >= 1


def test_bad_histograms_are_refused():
    with pytest.raises(InvalidInput):
        NormHistogram([1.0, 0.5], [1, 1])
    with pytest.raises(InvalidInput):
        NormHistogram([1.0], [-1])
    with pytest.raises(InvalidInput, match="influence halves"):
        noise_for_size(lambda b: Laplace(b**2), PUBLIC, size=10, epsilon=1.0)


def test_noise_for_a_rule_of_fixed_size():
    def rule(mechanism):
        return coreset(
            LinearProfile.of(mechanism), share=0.5, size=500, population=50_000, mean_squared_norm=0.1, radius=1.0
        )

    noise = noise_for_guarantee(lambda b: NormNoise(b, 10), rule, epsilon=1.0)
    assert 1.0 - 1e-8 < rule(noise).guarantee().epsilon() <= 1.0


def test_bins_of_norms_shrink_by_octaves_from_the_radius():
    assert octave_bins(8.0, per_octave=1, octaves=3).tolist() == [2.0, 4.0, 8.0]
    assert octave_bins(4.0, per_octave=2, octaves=1) == pytest.approx([4.0 / 2**0.5, 4.0])
    assert octave_bins(1.0).size == 96
    for bad in ({"octaves": 0}, {"per_octave": 0}, {"octaves": 61}):
        with pytest.raises(InvalidInput):
            octave_bins(1.0, **bad)
