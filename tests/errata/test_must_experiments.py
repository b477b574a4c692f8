"""What the experiments of MUST print, held against arithmetic, an attack by integration, and the library."""

import math

import numpy as np
import pytest
from scipy.special import ndtr
from scipy.stats import binom

from privamp import Gaussian, MultiStage, Neighbors, WithoutReplacement, WithReplacement, amplify

RO = Neighbors.REPLACE_ONE


def gaussian_delta(theta, epsilon):
    return ndtr(theta / 2 - epsilon / theta) - math.exp(epsilon) * ndtr(-theta / 2 - epsilon / theta)


def theorem_4(weights, theta, epsilon):
    """sum_u p_u delta_u(eps), by hand; weights[u-1] = p_u."""
    return sum(p * gaussian_delta(u * theta, epsilon) for u, p in enumerate(weights, start=1))


def recipe(eta, amplified, n):
    """The paper's eps before sampling and its theta = sensitivity/sigma, by Dwork and Roth's formula at delta 1/n."""
    epsilon = math.log1p(math.expm1(amplified) / eta)
    return epsilon, epsilon / math.sqrt(2 * math.log(1.25 * n))


def wr_weights(m, n):
    return [float(binom.pmf(u, m, 1 / n)) for u in range(1, 13)]


def attack(weights, theta, epsilon):
    """D(P||Q) of the mixture sum_u p_u N(u theta) against N(0) on a grid: real neighbours, the others at one end."""
    t = np.linspace(-12.0, 12.0 + len(weights) * theta, 400_001)
    density = np.exp(-0.5 * t**2) / math.sqrt(2 * math.pi)
    first = (1 - sum(weights)) * density
    for u, p in enumerate(weights, start=1):
        first = first + p * np.exp(-0.5 * (t - u * theta) ** 2) / math.sqrt(2 * math.pi)
    return float(np.sum(np.maximum(first - math.exp(epsilon) * density, 0.0)) * (t[1] - t[0]))


def test_noise_over_n_for_a_mean_over_m() -> None:
    n, m, claimed = 300, 30, 0.1
    base, theta = recipe(m / n, claimed, n)
    assert 8 / n / theta == pytest.approx(0.13, abs=0.005)  # the printed sigma for the mean
    # moving one of m entries from -4 to 4 moves their mean by 8/m, not 8/n
    entries = np.full(m, -4.0)
    moved = entries.copy()
    moved[0] = 4.0
    assert moved.mean() - entries.mean() == pytest.approx(8 / m)
    true_theta = theta * n / m
    assert attack([m / n], true_theta, 3.0) > 1 / n  # (0.1, 1/300) is claimed; (3.0, 1/300) is still false
    guarantee = amplify(Gaussian(1.0, true_theta, RO), WithoutReplacement(m, n))
    assert guarantee.epsilon(1 / n) == pytest.approx(3.042, abs=0.001)
    # with few values between the stages it is hundreds
    chain = MultiStage([("wr", 10), ("wr", m)], n)
    _, theta = recipe(chain.appearances().eta, claimed, n)
    found = amplify(Gaussian(1.0, theta * n / m, RO), chain)
    assert found.lower.epsilon(1 / n) == pytest.approx(238.55, abs=0.05)
    assert base > claimed


def test_table_3_delta_of_wr_and_of_poisson() -> None:
    n, m, claimed = 300, 30, 0.1
    eta = 1 - (1 - 1 / n) ** m
    epsilon, theta = recipe(eta, claimed, n)
    assert 1e4 * theorem_4(wr_weights(m, n), theta, epsilon) == pytest.approx(0.573, abs=5e-4)  # printed: 5.7
    epsilon, theta = recipe(m / n, claimed, n)
    assert 1e4 * m / n * gaussian_delta(theta, epsilon) == pytest.approx(0.0218, abs=5e-5)  # printed: 3.0
    assert 1e4 * m / n / n == pytest.approx(3.33, abs=0.01)  # what is printed: eta times the nominal delta
    # the recipe of the other rows is the first one: MUSTow, b = 10, printed 64
    b = 10
    weights = [b / n * float(binom.pmf(u, m, 1 / b)) for u in range(1, m + 1)]
    epsilon, theta = recipe(sum(weights), claimed, n)
    assert 1e4 * theorem_4(weights, theta, epsilon) == pytest.approx(64, abs=0.5)


@pytest.mark.parametrize(("claimed", "printed"), [(0.01, 0.095), (0.001, 0.080)])
def test_table_5_delta_is_for_another_theta(claimed, printed) -> None:
    n, m = 1000, 100
    epsilon, theta = recipe(1 - (1 - 1 / n) ** m, claimed, n)  # theta = C/(n sigma)
    weights = wr_weights(m, n)
    assert theorem_4(weights, n * theta, epsilon) == pytest.approx(printed, abs=5e-4)  # theta = C/sigma
    consistent = theorem_4(weights, theta, epsilon)
    assert consistent < 1e-4 * printed
    law = WithReplacement(m, n)
    assert law.theorems[0].bound(law, Gaussian(1.0, theta, RO), RO).delta(claimed) == pytest.approx(
        consistent, rel=1e-6
    )


def test_gradients_clipped_to_c_move_a_mean_by_two_c_over_m() -> None:
    n, m, c, claimed = 1000, 100, 3.0, 0.01
    _, theta = recipe(m / n, claimed, n)
    sigma = c / n / theta
    assert sigma == pytest.approx(0.118, abs=5e-4)  # as printed
    true_theta = 2 * c / m / sigma
    assert true_theta == pytest.approx(20 * theta)
    assert attack([m / n], true_theta, 0.14) > 1 / n
    assert amplify(Gaussian(sigma, 2 * c / m, RO), WithoutReplacement(m, n)).epsilon(1 / n) == pytest.approx(
        0.1443, abs=1e-3
    )


def test_adult_accuracies_are_near_the_share_of_the_commoner_answer() -> None:
    at_most_50k, records = 30_844, 41_292  # complete records from the United States
    share = 100 * at_most_50k / records
    printed = (75.19, 74.83, 74.93, 74.92, 75.33, 74.90)
    standard_error = 100 * math.sqrt(share / 100 * (1 - share / 100) / 10_323)
    assert all(abs(p - share) < 2 * standard_error for p in printed)
    assert standard_error == pytest.approx(0.43, abs=0.01)


def test_parameters_of_the_network() -> None:
    layers = [(784 + 1) * 128, (128 + 1) * 128, (128 + 1) * 10]
    assert sum(layers) == 118_282
    assert sum(layers[1:]) == 17_802  # as printed: the first layer is left out


def test_table_7_contradicts_its_text() -> None:
    """Time against WR in percent: WOR, MUSTow, MUSTww."""
    times = {"1": (41.67, 66.67, 75.00), "2": (18.75, 106.25, 87.50), "adult": (146.43, 232.14, 103.57)}
    assert all(wor > 0 for wor, _, _ in times.values())  # "WOR in general is the fastest"
    assert times["1"][2] > times["1"][1]  # "MUSTww takes less time than MUSTow in all three experiments"
    b, m = 500, 300  # the table's sizes; the text of the experiment says b = 200, m = 100
    assert b * (1 - (1 - 1 / b) ** m) == pytest.approx(226, abs=0.5)
    by_the_text = 200 * (1 - (1 - 1 / 200) ** 100)
    assert by_the_text == pytest.approx(78.8, abs=0.1)


def test_the_composed_delta_of_adult_is_far_larger() -> None:
    """WOR, 15 steps, eps' = 5e-5 claimed: an adversary who looks for one step above a threshold."""
    n, m, steps, epsilon = 30_969, 100, 15, 2.0
    base = math.log1p(math.expm1(5e-5) * n / m)
    theta = 1e-6  # C/(n sigma): bisect the exact Gaussian profile at (base, 1/n), the paper's recipe
    low, high = theta, 1.0
    for _ in range(200):
        theta = (low + high) / 2
        low, high = (theta, high) if gaussian_delta(theta, base) < 1 / n else (low, theta)
    assert gaussian_delta(theta, base) == pytest.approx(1 / n)
    shift = 2 * n / m * theta  # the record moves the mean by 2C/m; all others are at one end
    best = 0.0
    for t in np.linspace(2.0, 8.0, 61):
        seen = m / n * ndtr(shift - t) + (1 - m / n) * ndtr(-t)
        first, second = (-math.expm1(steps * math.log1p(-p)) for p in (seen, float(ndtr(-t))))
        best = max(best, first - math.exp(epsilon) * second)
    assert best > 0.02 > 10_000 * 3.79e-7


@pytest.mark.parametrize("m", [100, 150])
def test_delta_falls_with_the_size_of_the_first_stage(m: int) -> None:
    """MUSTow: a record is among b of 1000, then drawn u of m times with chance 1/b each; Gaussian noise, ratio 1."""
    found = []
    for b in (150, 175, 200):
        weights = [b / 1000 * float(binom.pmf(u, m, 1 / b)) for u in range(1, 30)]
        found.append(theorem_4(weights, 1.0, 1.0))
    assert found == sorted(found, reverse=True)
    assert found[0] > found[-1] + 1e-3


def test_table_4_has_no_smaller_deviations_of_the_mean() -> None:
    """Printed standard deviations of the mean: MUSTow and MUSTww at five sizes b; Poisson, WOR, WR."""
    must = [0.058, 0.061, 0.058, 0.057, 0.060, 0.060, 0.059, 0.059, 0.059, 0.058]
    single = [0.058, 0.058, 0.058]
    assert sum(must) / len(must) > sum(single) / len(single)
    assert sum(value < 0.058 for value in must) == 1
