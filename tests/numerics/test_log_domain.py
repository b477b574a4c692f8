"""Log-domain arithmetic against mpmath; the obvious formulas must fail the same comparison."""

import math

import mpmath as mp
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.special import log_ndtr

from privamp.numerics import log_domain as ld
from privamp.numerics.rounding import margin


def mills(x):
    if x > 20:  # a continued fraction: erfc would need thousands of digits
        tail = x
        for k in range(int(4000 / float(x)) + 60, 0, -1):
            tail = x + k / tail
        return 1 / tail
    return mp.sqrt(mp.pi / 2) * mp.exp(x * x / 2) * mp.erfc(x / mp.sqrt(2))


def gap(x, shift):
    with mp.workdps(60 + int(2 * abs(math.log10(shift)))):
        x, shift = mp.mpf(float(x)), mp.mpf(float(shift))
        return -x * x / 2 - mp.log(2 * mp.pi) / 2 + mp.log(mills(x) - mills(x + shift))


def worst_gap_error(function, xs, shifts):
    """Largest error in units of a tenth of the margin."""
    worst = 0.0
    for shift in shifts:
        for x, got in zip(xs, function(xs, shift), strict=True):
            exact = gap(x, shift)
            error = float(abs(mp.mpf(float(got)) - exact)) if np.isfinite(got) else np.inf
            worst = max(worst, error / (0.1 * float(margin(float(exact)))))
    return worst


XS = np.concatenate([-np.geomspace(1e-2, 200, 14), [0.0], np.geomspace(1e-2, 40, 22), np.geomspace(50, 1e4, 4)])
SHIFTS = [1e-7, 1e-3, 0.1, 0.2499, 0.25, 1.0, 9.0, 100.0, 400.0]


def test_mills_gap_has_fourteen_digits():
    assert worst_gap_error(ld.log_mills_gap, XS, SHIFTS) < 0.5


@pytest.mark.slow
def test_mills_gap_on_a_fine_grid():
    xs = np.concatenate([np.linspace(-60, 60, 401), [-12.0, -1.0, 1.0, 12.0], np.geomspace(60, 1e6, 12)])
    assert worst_gap_error(ld.log_mills_gap, xs, np.geomspace(1e-8, 500, 30)) < 0.5


def test_differencing_logarithms_of_tails_is_caught():
    def naive(x, shift):
        return ld.log_diff(log_ndtr(-x), np.minimum(log_ndtr(-(x + shift)) + shift * (x + shift / 2), log_ndtr(-x)))

    assert worst_gap_error(naive, XS[XS > 0], [1e-3]) > 10


def test_mills_gap_edges():
    assert np.isneginf(ld.log_mills_gap(1.0, 0.0))
    assert np.isnan(ld.log_mills_gap(np.nan, 1.0))
    assert np.isneginf(ld.log_mills_gap(np.inf, 1.0))
    assert ld.log_mills_gap(-1e200, 1e201) == 0.0
    assert np.isfinite(ld.log_mills_gap(1e9, 0.25))  # never a silent zero while the logarithm is a number
    assert ld.log_mills_gap(np.zeros((2, 3)), 1.0).shape == (2, 3)


def close(got, exact, digits=1e-14):
    return abs(mp.mpf(float(got)) - exact) <= digits * (1 + abs(exact)) or float(got) == float(exact)


@given(st.floats(-800, -1e-300))
@settings(deadline=None, max_examples=100)
def test_log1mexp(x):
    with mp.workdps(400):
        assert close(ld.log1mexp(x), mp.log(-mp.expm1(mp.mpf(x))))


@given(st.floats(1e-300, 1e5))
@settings(deadline=None, max_examples=100)
def test_log_expm1(x):
    with mp.workdps(60):
        assert close(ld.log_expm1(x), mp.log(mp.expm1(mp.mpf(x))))


def relative(got, exact):
    return float(abs(mp.mpf(float(got)) / exact - 1))


@given(st.floats(-60, 0), st.floats(1e-6, 690))
@settings(deadline=None, max_examples=200)
def test_mix_keeps_relative_digits_and_unmix_inverts(log10_weight, a):
    weight = min(10.0**log10_weight, 1.0)
    with mp.workdps(400):
        exact = mp.log1p(mp.mpf(weight) * mp.expm1(mp.mpf(a)))
        assert relative(ld.log_mix(weight, a), exact) < 1e-12
        exact = mp.log1p(mp.expm1(mp.mpf(a)) / mp.mpf(weight))
        assert relative(ld.log_unmix(weight, a), exact) < 1e-13


def test_mix_of_tiny_weights_does_not_cancel():
    assert ld.log_mix(1e-300, 30.0) == pytest.approx(1e-300 * math.expm1(30.0), rel=1e-12)
    assert np.all(ld.log_mix(1e-250, np.linspace(0, 2000, 50)) >= 0)
    assert ld.log_unmix(1e-305, 29.0) == pytest.approx(29.0 + 305 * math.log(10), rel=1e-12)
    assert np.all(ld.log_mix(0.0, np.array([1.0, 2.0])) == 0.0)
    assert np.all(ld.log_mix(1.0, np.array([1.0, 2.0])) == [1.0, 2.0])


def test_sums_and_differences_of_zeros():
    assert np.isneginf(ld.log_sum(np.full(3, -np.inf)))
    assert np.isneginf(ld.log_diff(-np.inf, -np.inf))
    assert np.isneginf(ld.log_diff(-3.0, -3.0))
    assert ld.log_diff(2.0, -np.inf) == 2.0
    assert ld.log_sum(np.array([[0.0, -np.inf], [0.0, -1.0]]), axis=0)[1] == -1.0
    assert ld.log_normal_tail(-40.0) == 0.0
    assert ld.log_normal_tail(40.0) == pytest.approx(-804.608442, rel=1e-8)


@pytest.mark.parametrize("weight", [0.0, 1e-150, 1e-12, 0.1, 0.5, 0.7, 0.9999999, 1.0 - 2.0**-53, 1.0])
@pytest.mark.parametrize("a", [0.0, 1e-150, 1e-12, 0.3, 1.0, 36.0, 38.0, 300.0, 700.0, 1000.0])
def test_what_a_record_takes_away_has_all_its_digits(weight, a):
    with mp.workdps(700):
        w = mp.mpf(weight)
        exact = mp.log(1 - w * -mp.expm1(-mp.mpf(a)))
        assert abs(mp.mpf(ld.log_drop(weight, a)) - exact) <= 4e-15 * abs(exact)


def test_the_obvious_formula_for_it_crashes():
    with pytest.raises(ValueError, match=r"math domain error|expected argument"):
        math.log1p(1.0 * math.expm1(-38.0))


@pytest.mark.parametrize(
    ("weight", "a"),
    [(5e-324, 700.02), (1e-310, 705.0), (1e-305, 701.0), (3e-320, 900.0), (1e-300, 1399.0), (0.5, 1e300)],
)
def test_a_tiny_rate_of_a_huge_epsilon_keeps_its_digits(weight, a):
    """a + log(weight) cancels: the loss was known to 1e-13 only, however small it was."""
    with mp.workdps(60):
        exact = mp.log1p(mp.mpf(weight) * mp.expm1(a)) if a < 1e4 else mp.mpf(a) + mp.log(weight)
        assert abs(mp.mpf(float(ld.log_mix(weight, a))) - exact) <= 4e-16 * exact
