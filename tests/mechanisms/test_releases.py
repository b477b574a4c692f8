"""The noise that is added has the law that is certified: false alarm 1e-9, and a broken twin is caught."""

import math

import numpy as np
import pytest
from scipy import stats

from privamp.errors import InvalidInput
from privamp.mechanisms.discrete_gaussian import DiscreteGaussian, log_normaliser
from privamp.mechanisms.discrete_laplace import DiscreteLaplace
from privamp.mechanisms.gaussian import Gaussian
from privamp.mechanisms.geometric import GeometricCount
from privamp.mechanisms.laplace import Laplace
from privamp.mechanisms.norm_noise import NormNoise, directions
from privamp.mechanisms.randomized_response import RandomizedResponse
from privamp.testing import seeded_stream

ALARM = 1e-9
N = 20_000


def fits(sample, cdf):
    return stats.kstest(np.ravel(sample), cdf).pvalue > ALARM


def counts_fit(sample, log_chance):
    """Chi-square over the whole numbers with at least 20 expected, the rest pooled."""
    k = np.arange(-60, 61)
    chance = np.exp(log_chance(np.abs(k)))
    seen = np.array([np.sum(sample == j) for j in k])
    big = chance * sample.size >= 20
    observed = np.append(seen[big], sample.size - seen[big].sum())
    expected = np.append(chance[big], max(1 - chance[big].sum(), 1e-12)) * sample.size
    keep = expected >= 5
    statistic = np.sum((observed[keep] - expected[keep]) ** 2 / expected[keep])
    return stats.chi2.sf(statistic, max(keep.sum() - 1, 1)) > ALARM


def test_laplace_and_gaussian():
    zeros, stream = np.zeros(N), seeded_stream(11)
    assert fits(Laplace(2.5).release(zeros, stream), stats.laplace(scale=2.5).cdf)
    assert fits(Gaussian(2.5).release(zeros, stream), stats.norm(scale=2.5).cdf)
    assert not fits(Laplace(2.1).release(zeros, stream), stats.laplace(scale=2.5).cdf)
    assert not fits(Gaussian(2.1).release(zeros, stream), stats.norm(scale=2.5).cdf)


def discrete_laplace_law(rate):
    return lambda k: math.log(math.tanh(rate / 2)) - rate * k


def test_discrete_laplace_and_geometric():
    zeros, stream = np.zeros(N, dtype=int), seeded_stream(12)
    law = discrete_laplace_law(1 / 1.5)
    assert counts_fit(DiscreteLaplace(1.5).release(zeros, stream), law)
    assert counts_fit(GeometricCount(1 / 1.5).release(zeros, stream), law)
    rounded = np.rint(Laplace(1.5).release(zeros, stream)).astype(int)
    assert not counts_fit(rounded, law)


def test_discrete_gaussian():
    zeros, stream = np.zeros(N, dtype=int), seeded_stream(13)

    def law(k):
        return -k * k / (2 * 0.6**2) - log_normaliser(0.6)

    assert counts_fit(DiscreteGaussian(0.6).release(zeros, stream), law)
    assert not counts_fit(np.rint(Gaussian(0.6).release(zeros, stream)).astype(int), law)


def norms(z, p):
    return np.linalg.norm(z, ord=p, axis=-1)


@pytest.mark.parametrize("p", [1.0, 2.0, 3.0, 40.0, math.inf])
def test_norm_noise_radius_is_gamma(p):
    stream, d = seeded_stream(14), 5
    noise = NormNoise(2.0, d, p=p).release(np.zeros((N, d)), stream)
    radius = stats.gamma(d, scale=2.0).cdf
    assert fits(norms(noise, p), radius)
    # the radius of the IS paper's released code
    exponential = 2.0 * np.abs(stream.laplaces((N, 1))) * directions(p, (N, d), stream)
    assert not fits(norms(exponential, p), radius)


@pytest.mark.parametrize("p", [1.0, 1.5, 2.0, 3.0, 40.0])
def test_norm_noise_direction_is_the_cone_measure(p):
    """|x_1|^p is Beta(1/p, (d-1)/p), signs are fair; a normalised Gaussian is wrong unless p = 2."""
    stream, d = seeded_stream(15), 5
    noise = NormNoise(2.0, d, p=p).release(np.zeros((N, d)), stream)
    share = stats.beta(1 / p, (d - 1) / p).cdf
    unit = noise / norms(noise, p)[:, None]
    for i in (0, d - 1):
        assert fits(np.abs(unit[:, i]) ** p, share)
        assert stats.binomtest(int(np.sum(unit[:, i] > 0)), N).pvalue > ALARM
    wrong = stream.normals((N, d))
    if p != 2.0:
        assert not fits(np.abs(wrong[:, 0] / norms(wrong, p)) ** p, share)


def test_norm_noise_in_the_cube_and_l1():
    stream, d = seeded_stream(16), 4
    noise = NormNoise(1.0, d, p=math.inf).release(np.zeros((N, d)), stream)
    unit = noise / norms(noise, math.inf)[:, None]
    face = np.argmax(np.abs(unit), axis=1)
    assert stats.chisquare(np.bincount(face, minlength=d)).pvalue > ALARM
    others = unit[face != 0, 0]
    assert fits(others, stats.uniform(-1, 2).cdf)
    ball = stream.normals((N, d))
    ball /= norms(ball, math.inf)[:, None]
    assert not fits(ball[np.argmax(np.abs(ball), axis=1) != 0, 0], stats.uniform(-1, 2).cdf)
    iid = NormNoise(1.5, d, p=1).release(np.zeros((N, d)), stream)
    assert fits(iid[:, 0], stats.laplace(scale=1.5).cdf)
    assert fits(iid[:, 0] + iid[:, 1], lambda x: _two_laplaces(x / 1.5))  # independent, too


def _two_laplaces(x):
    upper = (2 + np.abs(x)) * np.exp(-np.abs(x)) / 4
    return np.where(x > 0, 1 - upper, upper)


def test_randomized_response():
    stream, mechanism = seeded_stream(17), RandomizedResponse(1.0, 4)
    truth = np.full(N, 2)
    answers = mechanism.release(truth, stream)
    keep = math.e / (math.e + 3)
    expected = np.full(4, (1 - keep) / 3)
    expected[2] = keep
    assert stats.chisquare(np.bincount(answers, minlength=4), N * expected).pvalue > ALARM
    twin = RandomizedResponse(1.2, 4).release(truth, stream)
    assert stats.chisquare(np.bincount(twin, minlength=4), N * expected).pvalue < ALARM


@pytest.mark.parametrize(("epsilon", "categories"), [(1e-9, 2), (1.0, 2), (30.0, 5), (44.0, 2), (900.0, 3)])
def test_randomized_response_rounds_to_the_private_side(epsilon, categories):
    words = int(RandomizedResponse(epsilon, categories)._last_forgetting_word) + 1
    assert 1 <= words <= 2**64
    forget = words / 2**64
    real = math.log1p((1 - forget) * categories / forget)
    assert real <= epsilon * (1 + 1e-12)
    assert real >= min(epsilon, 40.0) * (1 - 1e-4) or epsilon < 1e-6


@pytest.mark.parametrize("make", [Laplace, Gaussian])
def test_shapes_are_kept(make):
    stream = seeded_stream(18)
    assert isinstance(make(1.0).release(3, stream), float)
    assert isinstance(make(1.0).release(np.float64(3.0), stream), float)
    assert make(1.0).release([[1.0, 2.0]], stream).shape == (1, 2)
    assert make(1.0).release(np.zeros((2, 0)), stream).shape == (2, 0)


@pytest.mark.parametrize("mechanism", [DiscreteLaplace(3.0), DiscreteGaussian(3.0), GeometricCount(0.3)])
def test_discrete_releases_are_whole(mechanism):
    stream = seeded_stream(19)
    assert isinstance(mechanism.release(3, stream), int)
    noisy = mechanism.release(np.arange(6, dtype=np.uint8).reshape(2, 3), stream)
    assert noisy.shape == (2, 3)
    assert noisy.dtype == np.int64
    for secret in (31337.0, np.array([31337.5]), "31337", True, None, [[31337], [1, 2]], [31337, "x"]):
        with pytest.raises(InvalidInput, match="whole numbers") as error:
            mechanism.release(secret, stream)
        assert "31337" not in str(error.value)


@pytest.mark.parametrize("mechanism", [Laplace(1.0), Gaussian(1.0), NormNoise(1.0, 2)])
def test_bad_values_are_not_shown(mechanism):
    for secret in (
        "31337",
        [31337.0, math.nan],
        [31337.0, math.inf],
        [31337.0, "x"],
        None,
        True,
        [[1, 2], [3]],
    ):
        with pytest.raises(InvalidInput, match="must be") as error:
            mechanism.release(secret, seeded_stream(20))
        assert "31337" not in str(error.value)


def test_norm_noise_needs_its_dimension():
    for value in (1.0, np.zeros(2), np.zeros((3, 2))):
        with pytest.raises(InvalidInput, match="last axis"):
            NormNoise(1.0, 3).release(value, seeded_stream(21))
    assert NormNoise(1.0, 3).release(np.zeros(3), seeded_stream(21)).shape == (3,)
    assert NormNoise(1.0, 3, p=1e6).release(np.zeros((4, 2, 3)), seeded_stream(21)).shape == (4, 2, 3)
    assert np.all(np.isfinite(NormNoise(1.0, 3, p=1e6).release(np.zeros((400, 3)), seeded_stream(21))))


def test_randomized_response_inputs():
    stream, mechanism = seeded_stream(22), RandomizedResponse(1.0, 3)
    assert mechanism.release(np.zeros((2, 2), dtype=int), stream).shape == (2, 2)
    assert isinstance(mechanism.release(1, stream), int)
    for value in ([3], [-1], 0.5, [True], "0"):
        with pytest.raises(InvalidInput):
            mechanism.release(value, stream)


@pytest.mark.parametrize("mechanism", [DiscreteLaplace(2.0), DiscreteGaussian(2.0), GeometricCount(1.0)], ids=str)
def test_whole_numbers_beyond_64_bits_are_cut_not_refused(mechanism):
    """An error on some data and not on others would tell the data apart."""
    top = 2**62
    for value in (2**63 - 1, 2**64 - 1, 2**300, np.uint64(2**64 - 1), np.int64(2**63 - 1)):
        assert abs(int(mechanism.release(value, seeded_stream(1))) - top) < 1000
    for value in (-(2**63), -(2**300), np.int64(-(2**63))):
        assert abs(int(mechanism.release(value, seeded_stream(1))) + top) < 1000
    wide = mechanism.release(np.array([2**63, 5], dtype=np.uint64), seeded_stream(1))
    assert abs(int(wide[0]) - top) < 1000
    assert abs(int(wide[1]) - 5) < 1000
