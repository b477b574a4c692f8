"""Laws of counts agree with mpmath to 12 digits and with scipy.stats, which no accounting loads."""

import math
import subprocess
import sys
from fractions import Fraction

import mpmath
import numpy as np
import pytest
from scipy import stats
from scipy.special import betainc, betaincc, gammaln

from privamp.numerics import count_laws as laws

CASES = [(n, p) for n in (1, 2, 7, 40, 1000, 60_000) for p in (1e-9, 0.01, 0.3, 0.5, 0.999)]
DIGITS = 2e-12


def counts_of(n: int, p: float) -> np.ndarray:
    deviation = np.sqrt(n * p * (1 - p)) + 1.0
    return np.unique(np.clip(np.rint([0, 1, n - 1, n, *(n * p + deviation * np.linspace(-20, 20, 9))]), 0, n))


def exact(k: int, n: int, p: float) -> mpmath.mpf:
    with mpmath.workdps(60):
        return mpmath.binomial(n, k) * mpmath.mpf(p) ** k * (1 - mpmath.mpf(p)) ** (n - k)


def largest_error(chance, n: int, p: float) -> float:
    """Relative, over counts whose chance is no tiny number."""
    k = counts_of(n, p)
    pairs = [(mpmath.mpf(float(x)), exact(int(i), n, p)) for i, x in zip(k, chance(k, n, p), strict=True)]
    return max(abs(float(found / true - 1)) for found, true in pairs if true > mpmath.mpf(10) ** -200)


@pytest.mark.parametrize(("n", "p"), CASES)
def test_binomial_chances_have_their_digits(n: int, p: float) -> None:
    assert largest_error(laws.binomial_chance, n, p) < DIGITS


def test_differences_of_log_gammas_would_not() -> None:
    def by_log_gammas(k, n, p):
        return np.exp(gammaln(n + 1) - gammaln(k + 1) - gammaln(n - k + 1) + k * np.log(p) + (n - k) * np.log1p(-p))

    assert largest_error(by_log_gammas, 60_000, 0.3) > 10 * DIGITS


@pytest.mark.parametrize(("total", "good", "n"), [(20, 5, 7), (1000, 30, 200), (10_000, 3, 118), (9, 9, 4), (9, 4, 9)])
def test_hypergeometric_chances_have_their_digits(total: int, good: int, n: int) -> None:
    k = np.arange(-1, good + 2)
    found = np.exp(laws.hypergeometric_log_chance(k, total, good, n))
    ways = [math.comb(good, i) * math.comb(total - good, n - i) if 0 <= i <= min(good, n) else 0 for i in k.tolist()]
    exactly = [float(Fraction(way, math.comb(total, n))) for way in ways]
    np.testing.assert_allclose(found, exactly, rtol=DIGITS, atol=1e-290)


@pytest.mark.parametrize(("n", "p"), CASES)
def test_tails_are_those_of_scipy(n: int, p: float) -> None:
    k = np.append(counts_of(n, p), [-1, n + 1])
    np.testing.assert_allclose(laws.binomial_at_most(k, n, p), stats.binom.cdf(k, n, p), rtol=1e-11, atol=1e-290)
    np.testing.assert_allclose(laws.binomial_above(k, n, p), stats.binom.sf(k, n, p), rtol=1e-11, atol=1e-290)


def test_tails_are_the_smaller_one_and_what_it_leaves_of_one() -> None:
    """Around the mean either may be the smaller one; which is computed first must not show."""
    k, n, p = (part.ravel() for part in np.meshgrid(np.arange(0, 60), np.arange(1, 60), [0.02, 0.5, 0.7]))
    below, above = laws.binomial_tails(k, n, p)
    inside = k < n
    smaller = np.minimum(betaincc(k + 1.0, np.maximum(n - k, 1), p), betainc(k + 1.0, np.maximum(n - k, 1), p))
    np.testing.assert_allclose(np.minimum(below, above)[inside], smaller[inside], rtol=1e-14)
    np.testing.assert_allclose((below + above)[inside], 1.0, rtol=1e-15)
    assert np.all(below[~inside] == 1.0)
    assert np.all(above[~inside] == 0.0)


@pytest.mark.parametrize("p", [0.0, 1.0])
def test_certain_counts(p: float) -> None:
    k = np.arange(-1, 7)
    assert laws.binomial_chance(k, 5, p).tolist() == stats.binom.pmf(k, 5, p).tolist()
    assert laws.binomial_at_most(k, 5, p).tolist() == stats.binom.cdf(k, 5, p).tolist()
    assert laws.binomial_above(k, 5, p).tolist() == stats.binom.sf(k, 5, p).tolist()


def test_the_other_laws_are_those_of_scipy() -> None:
    k, specials, rates = np.arange(8)[None, :], np.arange(6)[:, None], np.linspace(0, 1, 5)[:, None]
    log_chance = laws.hypergeometric_log_chance(k, 20, specials, 7)
    np.testing.assert_allclose(log_chance, stats.hypergeom.logpmf(k, 20, specials, 7), rtol=1e-13, atol=1e-14)
    np.testing.assert_allclose(
        laws.binomial_log_chance(k, 7, rates), stats.binom.logpmf(k, 7, rates), rtol=1e-13, atol=1e-14
    )
    assert np.array_equal(laws.poisson_chance(k, 2.5), stats.poisson.pmf(k, 2.5))


def test_a_number_of_a_capped_sample_does_not_load_scipy_stats() -> None:
    code = (
        "import sys; from privamp import Gaussian, TruncatedPoisson, amplify; "
        "amplify(Gaussian(2.0), TruncatedPoisson(0.1, 12)).delta(1.0); print('scipy.stats' in sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "False"
