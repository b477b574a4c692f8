from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from privamp.chance.discrete import discrete_gaussian, discrete_laplace, rational_scale
from privamp.chance.stream import Stream
from privamp.errors import InvalidInput
from privamp.testing import seeded_stream

MANY = 100_000
SCALES = [0.4, Fraction(7, 3), 10.0, 55.55]


def laplace_weight(k, scale):
    return np.exp(-np.abs(k) / float(scale))


def gaussian_weight(k, sigma):
    return np.exp(-((k / float(sigma)) ** 2) / 2)


def matches(fits, draws, weight, scale):
    """Whether the draws fit the exact probabilities on -60 scale .. 60 scale (outside: below 1e-25)."""
    reach = int(60 * scale) + 2
    p = weight(np.arange(-reach, reach + 1), scale)
    return fits(np.clip(draws, -reach, reach) + reach, p / p.sum())


@pytest.mark.parametrize("scale", SCALES)
@pytest.mark.parametrize(
    ("sampler", "weight"), [(discrete_laplace, laplace_weight), (discrete_gaussian, gaussian_weight)]
)
def test_draws_fit_and_a_wrong_scale_is_caught(fits, sampler, weight, scale):
    draws = sampler(seeded_stream(1), scale, MANY)
    assert matches(fits, draws, weight, rational_scale(scale))
    assert not matches(fits, sampler(seeded_stream(2), scale * Fraction(21, 20), MANY), weight, scale)
    off_centre = draws + int(scale / 2 + 1) * (np.arange(MANY) % 4 == 0)
    assert not matches(fits, off_centre, weight, scale)


@pytest.mark.parametrize("scale", [0.4, 2.0, 10.0])
def test_a_doubled_zero_is_caught(fits, scale):
    """Broken twin: a sign on a geometric size, so that zero comes as +0 and as -0."""
    sizes = np.floor(-np.log(seeded_stream(3).uniforms(MANY)) * scale).astype(int)
    signs = seeded_stream(4).signs(MANY)
    assert not matches(fits, sizes * signs, laplace_weight, scale)
    fair = (sizes > 0) | (signs > 0)
    assert matches(fits, (sizes * signs)[fair], laplace_weight, scale)


@pytest.mark.parametrize("sigma", [0.4, 1.0])
def test_a_rounded_normal_is_not_a_discrete_gaussian(fits, sigma):
    twin = np.rint(seeded_stream(8).normals(MANY) * sigma).astype(int)
    assert not matches(fits, twin, gaussian_weight, sigma)


@pytest.mark.parametrize("sampler", [discrete_laplace, discrete_gaussian])
def test_draws_do_not_repeat_across_calls_and_are_a_function_of_the_stream(sampler):
    stream, twin = seeded_stream(9), seeded_stream(9)
    first, second = sampler(stream, 1000.5, 500), sampler(stream, 1000.5, 500)
    assert np.array_equal(first, sampler(twin, 1000.5, 500))
    assert not np.array_equal(first, second)
    assert first.dtype == np.int64
    assert sampler(stream, 3.0, 0).size == 0
    assert sampler(stream, 3.0, 1).shape == (1,)


@pytest.mark.parametrize(("sampler", "spread"), [(discrete_laplace, 1.0), (discrete_gaussian, np.sqrt(2 / np.pi))])
@pytest.mark.parametrize("scale", [2.0**-30, 2.0**30, 2.0**31 + 0.1, 2.0**50])
def test_extreme_scales_do_not_overflow(sampler, spread, scale):
    draws = sampler(seeded_stream(10), scale, 20_000)
    if scale < 1:
        assert not draws.any()
    else:  # the mean size of 20,000 draws is within 6 percent (8 standard errors)
        assert abs(np.abs(draws).astype(float).mean() / (scale * spread) - 1) < 0.06
        assert abs(np.sign(draws).mean()) < 0.06


@pytest.mark.parametrize("sampler", [discrete_laplace, discrete_gaussian])
@pytest.mark.parametrize("scale", [2.0**30 + 0.5, 2.0**45 + 3.0])
def test_the_low_bits_are_noise_too(fits, sampler, scale):
    """Fixed-point sums use such scales. The twin is a float of 24 bits put on the same grid."""
    even = np.full(64, 1 / 64)
    draws = sampler(seeded_stream(12), scale, MANY)
    assert fits(draws & 63, even)
    coarse = seeded_stream(13).laplaces(MANY).astype(np.float32).astype(np.float64) * scale
    assert not fits(coarse.astype(np.int64) & 63, even)


def test_no_float_is_drawn(monkeypatch):
    def refuse(*_):
        raise AssertionError("an exact sampler asked for a float")

    for name in ("uniforms", "normals", "laplaces", "gammas"):
        monkeypatch.setattr(Stream, name, refuse)
    discrete_laplace(seeded_stream(11), 5.5, 100)
    discrete_gaussian(seeded_stream(11), 5.5, 100)


@given(st.one_of(st.floats(2.0**-40, 2.0**50), st.fractions(Fraction(1, 10**9), 10**9)))
def test_the_rational_scale_is_close_and_never_below(scale):
    exact = rational_scale(scale)
    assert exact >= Fraction(scale)
    assert exact - Fraction(scale) <= max(Fraction(1, 2**20), Fraction(scale) / 2**48)
    assert 1 <= exact.numerator <= 2**50
    assert exact.denominator <= 2**20
    assert rational_scale(exact) == exact


def test_scales_that_fit_are_kept():
    for scale in (1, 0.5, 10.25, Fraction(1, 3), Fraction(2**50, 3), 2.0**50):
        assert rational_scale(scale) == Fraction(scale)


@pytest.mark.parametrize("bad", [0, -1.0, float("inf"), float("nan"), 2.0**51, "1"])
@pytest.mark.parametrize("sampler", [discrete_laplace, discrete_gaussian])
def test_bad_scales(sampler, bad):
    with pytest.raises(InvalidInput, match="scale must be"):
        sampler(seeded_stream(1), bad, 1)
