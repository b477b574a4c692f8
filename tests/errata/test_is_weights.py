"""Errata of the importance sampling paper (IS): counterexamples first, then what the library says."""

import math

import mpmath
import numpy as np
import pytest

from privamp import Infeasible, Influence, Laplace, LinearProfile, NormNoise, coreset, privacy_constrained
from privamp.errors import InvalidInput
from privamp.rules.coreset import largest_size
from privamp.rules.linear_weights import linear_weights

COVERTYPE = {"population": 566_486, "mean_squared_norm": 3_839_798.28, "radius": 4489.17, "size": 20_000}


def psi(c, w):
    """log(1 + (e^(c w) - 1)/w), in 50 digits."""
    with mpmath.workdps(50):
        return mpmath.log1p(mpmath.expm1(mpmath.mpf(c) * mpmath.mpf(w)) / mpmath.mpf(w))


def bracket(c, epsilon, mu, plus):
    """The end of Algorithm 1's bracket."""
    v = min(math.exp(c) + mu / 2, c * math.exp(c) + 1)
    return 2 * (math.exp(epsilon) - v) / mu + plus


def bisected(c, epsilon, low, high, tolerance, take):
    """Plain bisection for psi = epsilon; `take` says which point of the last bracket is returned."""
    while high - low > tolerance:
        middle = 0.5 * (low + high)
        low, high = (middle, high) if psi(c, middle) <= epsilon else (low, middle)
    return take(low, high)


def test_is_eq_4_prints_a_constant_that_is_not_one_of_strong_convexity():
    """The second derivative of e^(c w) at w = 1 is c² e^c; Eq. 4 prints T² (c/T) e^c = T c e^c, larger when c < T."""
    steps, share = 10, 0.02
    c = steps * share
    printed, true = steps**2 * share * math.exp(c), c**2 * math.exp(c)
    h = 1e-4
    second = (math.exp(c * (1 + h)) - 2 * math.exp(c) + math.exp(c * (1 - h))) / h**2
    assert second == pytest.approx(true, rel=1e-5)
    assert printed > 10 * second
    epsilon = 2.0  # with it the bracket ends far below the root: q comes out many times too large
    root = float(linear_weights(np.array([c]), epsilon, 2.0**40)[0])
    assert bracket(c, epsilon, printed, 1) < root / 3
    assert bracket(c, epsilon, true, 2) >= root


def test_is_algorithm_1_bracket_misses_the_root():
    """Line 6 prints + 1; the proof of Proposition 12 itself derives + 2."""
    random = np.random.default_rng(0)
    missed = total = 0
    for _ in range(400):
        epsilon = 10 ** random.uniform(-1, 1)
        steps, share = 10, epsilon * random.uniform(0.01, 0.95) / 10
        c = steps * share
        root = float(linear_weights(np.array([c]), epsilon, 2.0**60)[0])
        assert bracket(c, epsilon, c**2 * math.exp(c), 2) >= root * (1 - 1e-12)
        missed += bracket(c, epsilon, steps**2 * share * math.exp(c), 1) < root
        total += 1
    assert missed > 0.6 * total


def test_is_algorithm_1_plus_one_misses_the_root_of_a_legal_profile():
    """With a right constant + 1 can still miss: e^epsilon(w) = quadratic, strongly convex with equality."""
    mu, epsilon, start, slope = 1.0, 1.0, math.exp(0.5), 0.3

    def grown(w):  # e^epsilon(w), second derivative exactly mu
        return start + slope * (w - 1) + 0.5 * mu * (w - 1) ** 2

    top = math.exp(epsilon)
    # (grown(w) - 1)/w = top - 1: the larger root of a quadratic
    a, b, c = 0.5 * mu, slope - mu - (top - 1), start - slope + 0.5 * mu - 1
    root = (-b + math.sqrt(b * b - 4 * a * c)) / (2 * a)
    assert (grown(root) - 1) / root == pytest.approx(top - 1)
    v = min(start + mu / 2, slope + 1)  # epsilon'(1) e^epsilon(1) = slope
    assert 2 * (top - v) / mu + 1 < root <= 2 * (top - v) / mu + 2


def test_is_algorithm_1_line_7_condition():
    """psi falls at w = 1 whenever epsilon'(1) < 1 - e^-epsilon(1), not only when epsilon'(1) < 0."""
    slope, start = 0.2, 1.0

    def loss(w):
        return math.log1p(math.expm1(start + slope * (w - 1)) / w)

    assert 0 < slope < 1 - math.exp(-start)
    assert loss(1.0) == pytest.approx(start)
    assert loss(1.01) < start  # so 1 is not the largest feasible weight, and [1, b] would return it


def test_is_midpoints_overshoot_for_half_of_the_records():
    """The released solver returns the midpoint of the last bracket, which is on the wrong side half of the time."""
    epsilon, over, worst = 1.0, 0, 0.0
    shares = np.random.default_rng(1).uniform(0.05, 0.95, 60)
    for c in shares:
        w = bisected(c, epsilon, 1.0, 2000.0, 1e-3, lambda low, high: 0.5 * (low + high))
        over += psi(c, w) > epsilon
        worst = max(worst, float(psi(c, w)) - epsilon)
        safe = linear_weights(np.array([c]), epsilon, 2.0**40)[0]
        assert psi(c, safe) <= epsilon
    assert 15 < over < 45
    large, c = 1000.0, 487.0  # the same tolerance at a large epsilon: psi has slope c in w
    w = bisected(c, large, 1.0, 4.0, 1e-3, lambda low, high: high)
    assert 0.0 < float(psi(c, w)) - large < 0.5


def test_is_a_grid_under_reports_the_coreset_supremum():
    """Raw Covertype, T = 10, m = 20,000, share 1e-4: noise for which 100 grid points report 1 loses 3.817."""
    scale = 1_815_106.6513
    ratio = (4 * 54 * 0.225**2) ** (1 / 3)
    rule = coreset(LinearProfile(Influence("pure", 10 / (ratio * scale), 10 / scale)), share=1e-4, **COVERTYPE)
    grid = np.linspace(0.0, COVERTYPE["radius"], 100)
    assert rule.losses_of_norms(grid).max() == pytest.approx(1.0, abs=1e-6)
    assert rule.turning_point() == pytest.approx(20.509, abs=1e-3)
    direct = float(psi_of_coreset(rule, rule.turning_point()))
    assert round(direct, 3) == 3.817
    assert rule.guarantee().epsilon() == pytest.approx(direct, rel=1e-9)


def psi_of_coreset(rule, u):
    with mpmath.workdps(40):
        q = mpmath.mpf(rule.base) + mpmath.mpf(rule.per_square) * mpmath.mpf(u) ** 2
        c = mpmath.mpf(rule.profile.influence.per_record) + mpmath.mpf(rule.profile.influence.per_norm) * mpmath.mpf(u)
        return mpmath.log1p(q * mpmath.expm1(c / q))


def test_is_coreset_size_condition_is_only_sufficient():
    """m <= n x2 / r² keeps q <= 1, but so do larger m: exactly n / (share + (1 - share) r²/x2)."""
    n, x2, r = (COVERTYPE[k] for k in ("population", "mean_squared_norm", "radius"))
    printed, exact = n * x2 / r**2, largest_size(0.5, n, x2, r)
    assert exact > 1.6 * printed
    q = 0.5 * exact / n + 0.5 * exact * r**2 / (n * x2)
    assert q == pytest.approx(1.0)
    noise = LinearProfile.of(NormNoise(1e6, 54))
    facts = {"population": n, "mean_squared_norm": x2, "radius": r}
    coreset(noise, share=0.5, size=1.5 * printed, **facts)
    with pytest.raises(Infeasible):
        coreset(noise, share=0.5, size=1.001 * exact, **facts)


def test_is_appendix_d_1_drops_the_profile_from_the_exponent():
    """The proof's last lines have e^(1/q) for e^(epsilon(1/q, x)): a number that does not know the mechanism."""
    q = 0.1
    printed = math.log1p(q * math.expm1(1 / q))
    for scale in (0.5, 5.0, 50.0):
        true = float(psi(1.0 / scale, 1 / q))
        assert (printed < true) == (scale < 1.0)  # below the truth for little noise
        rule = privacy_constrained(LinearProfile.of(Laplace(scale)), true * (1 + 1e-9))
        assert float(rule.weights([[1.0]])[0]) == pytest.approx(1 / q, rel=1e-6)


def test_is_proposition_17_second_inequality_fails_and_its_conclusion_holds():
    """e^z (z - 1) >= (z + 1)(z - 1) needs z >= 1; e^z (z - 1) + 1 >= 0 holds for every z."""
    z = 0.5
    assert math.exp(z) * (z - 1) < (z + 1) * (z - 1)
    z = np.linspace(0.0, 5.0, 1001)
    assert np.all(np.exp(z) * (z - 1) + 1 >= 0)
    assert all(psi(c, w) >= c for c in (0.01, 0.5, 2.0) for w in (1.0, 1.5, 10.0))


def test_is_norm_noise_needs_p_of_at_least_one():
    """p > 0 is printed; for p < 1 the triangle inequality fails, and so does the loss of ||x||_p / scale."""
    p = 0.5
    z, x = np.array([0.0, 1.0]), np.array([1.0, 0.0])

    def size(v):
        return np.sum(np.abs(v) ** p) ** (1 / p)

    assert size(z + x) - size(z) > 2.9 * size(x)  # the log density moves by three times what is claimed
    with pytest.raises(InvalidInput, match="p must be"):
        NormNoise(1.0, 2, p=0.5)


def test_is_lambert_form_is_numerically_poor():
    """w = -W(-(c/A) e^(-c/A))/c - 1/A on branch -1, A = e^epsilon - 1, in doubles."""
    from scipy.special import lambertw

    def closed_form(c, epsilon):
        top = np.expm1(epsilon)
        return float((-lambertw(-(c / top) * np.exp(-c / top), -1) / c - 1 / top).real)

    mid = linear_weights(np.array([0.3]), 1.0, 2.0**60)[0]
    assert closed_form(0.3, 1.0) == pytest.approx(mid, rel=1e-12)
    c, epsilon = 1e-4 * (1 - 1e-9), 1e-4
    right = linear_weights(np.array([c]), epsilon, 2.0**60)[0]
    assert right == pytest.approx(1.0, abs=1e-4)
    assert not abs(closed_form(c, epsilon) - right) < 1e-9 * right
    with np.errstate(all="ignore"):
        assert not math.isfinite(closed_form(100.0, 1000.0))
    assert linear_weights(np.array([100.0]), 1000.0, 2.0**60)[0] == pytest.approx(10.0, rel=0.01)
