"""Theorem B: multiset samples under Gaussian noise, held against enumerated truth, attacks and plain formulas."""

import math
from itertools import product

import numpy as np
import pytest
from scipy.optimize import brentq
from scipy.stats import binom, norm

from privamp import Gaussian, Laplace, MultiStage, Neighbors, NoTheorem, WithReplacement, amplify, compose
from privamp.accounting.joint import Joint
from privamp.designs.shared_copies import copies_bound, gaussian_shift, reduced
from privamp.verify import exact_delta, exact_delta_of_laws

RO = Neighbors.REPLACE_ONE
EPSILONS = np.array([0.0, 0.1, 0.5, 1.0, 2.0])
OW = MultiStage([("wor", 118), ("wr", 200)], 10_000)
WW = MultiStage([("wr", 118), ("wr", 200)], 10_000)
NOISE = Gaussian(4.0, 2.0, neighbors=RO)

CHAINS = [
    (((kind, b), ("wr", m)) if kind else (("wr", m),), n)
    for n, (kind, b, m) in product(
        (2, 3, 4), [("", 0, 2), ("", 0, 4), ("wor", 2, 2), ("wor", 2, 4), ("wr", 1, 3), ("wr", 2, 3), ("wr", 3, 2)]
    )
]
FIVE = [((("wor", 3), ("wr", 2)), 5), ((("wr", 3), ("wr", 2)), 5), ((("wr", 3),), 5), ((("wor", 4), ("wr", 3)), 5)]
SCALES = (0.3, 0.6, 1.5)


def violations(claim, chains=CHAINS, kind=Gaussian):
    """(comparisons, violations) of claim(design, mechanism) on small chains."""
    count = bad = 0
    for (stages, n), scale in product(chains, SCALES):
        design, mechanism = MultiStage(stages, n), kind(scale, neighbors=RO)
        truth = np.asarray(exact_delta(design, mechanism, n, RO, EPSILONS))
        count += truth.size
        bad += int(np.sum(np.asarray(claim(design, mechanism)) < truth - 1e-12))
    return count, bad


def printed_pair(design, mechanism):
    """MUST, Eq. 6: sum_u p_u N(u C) against sum_u p_u N(-u C), records in [-C, C]."""
    law = design.appearances()
    weights = np.exp([law.log_none, *law.log_p])
    up = {0.5 * u: w for u, w in enumerate(weights)}
    return exact_delta_of_laws(up, {-c: w for c, w in up.items()}, mechanism, EPSILONS)


def test_bound_is_never_below_the_enumerated_truth() -> None:
    count, bad = violations(lambda d, m: copies_bound(d.stages, d.population, m).rounded_up().delta(EPSILONS))
    assert count >= 200
    assert bad == 0


def test_printed_pair_and_one_sided_pair_are_caught_by_the_same_check() -> None:
    count, bad = violations(printed_pair)
    assert bad > count / 2
    _, bad = violations(lambda d, m: d.attack(m, RO).delta(EPSILONS))
    assert bad > 0  # what Theorem B comes close to is itself no bound


@pytest.mark.filterwarnings("ignore::privamp.errors.DegradingDesign")
@pytest.mark.parametrize("kind", [Gaussian, Laplace])
def test_certificate_holds_up_to_five_records_where_the_printed_pair_mostly_fails(kind) -> None:
    count, bad = violations(lambda d, m: amplify(m, d).delta(EPSILONS), CHAINS + FIVE, kind)
    assert count >= 200
    assert bad == 0
    count, bad = violations(printed_pair, CHAINS + FIVE, kind)
    assert bad > count / 2


def block_and_rest(pi, theta, beta):
    """G(beta) as the docstring has it, by a root and differences of tails."""
    u = np.arange(pi.size)

    def prefix_averages(t):
        return np.cumsum(pi * np.exp(u * theta * t - 0.5 * (u * theta) ** 2)) / np.cumsum(pi)

    t = brentq(lambda x: np.max(prefix_averages(x)) - beta, 0.5 * theta, 12.0, xtol=1e-14)
    k = int(np.argmax(prefix_averages(t)))
    tau = np.where(u[1:] <= k, t, math.log(beta) / (u[1:] * theta) + 0.5 * u[1:] * theta)
    ratio = np.exp(u[1:] * theta * (tau - 0.5 * u[1:] * theta))
    return float(np.sum(pi[1:] * (norm.sf(tau - u[1:] * theta) - ratio * norm.sf(tau))))


@pytest.mark.parametrize("epsilon", [1e-3, 0.01, 0.0777, 0.3, 1.0, 2.5, 4.0])
def test_table_is_the_formula_from_above(epsilon) -> None:
    p1, theta, pi = 118 / 10_000, 0.5, binom.pmf(np.arange(41), 200, 1 / 118)
    wanted = p1 * block_and_rest(pi, theta, 1.0 + math.expm1(epsilon) / p1)
    found = copies_bound(OW.stages, OW.population, NOISE).delta(epsilon)
    assert wanted * (1 - 1e-9) <= found <= wanted * 1.001


def equal_shares(epsilon, k0, p1=118 / 10_000, theta=0.5):
    """The bound with every u shared among the K <= k0 in proportion to a_K (docs, the simplest choice)."""
    pi = binom.pmf(np.arange(61), 200, 1 / 118)
    beta = 1.0 + math.expm1(epsilon) / p1
    a = np.append((beta - 1.0) * pi[0], beta * pi[1 : k0 + 1])
    total = 0.0
    for copies, share in enumerate(a / a.sum()):
        s = np.maximum(np.arange(1, pi.size), copies) * theta
        t = brentq(lambda x, s=s: np.sum(pi[1:] * np.exp(s * x - 0.5 * s * s)) - a.sum(), -50.0, 20.0, xtol=1e-14)
        total += share * (np.sum(pi[1:] * norm.sf(t - s)) - a.sum() * norm.sf(t))
    return p1 * total


def test_single_release_is_close_to_the_attack_and_below_the_simplest_choice() -> None:
    assert equal_shares(1.0, 2) == pytest.approx(2.871281e-5, rel=1e-6)
    guarantee = amplify(NOISE, OW)
    assert guarantee.lower.delta(1.0) == pytest.approx(2.086629e-5, rel=1e-6)
    assert guarantee.delta(1.0) <= 1.001 * guarantee.lower.delta(1.0)
    for epsilon, k0 in product((0.001, 0.03, 0.3, 2.0, 4.0), (0, 1, 2, 3, 4)):
        assert guarantee.delta(epsilon) < equal_shares(epsilon, k0)


def test_never_above_theorem_a() -> None:
    epsilons = np.append(0.0, np.geomspace(1e-4, 20.0, 60))
    for design in (OW, WW):
        a, b = (theorem.bound(design, NOISE, RO).delta(epsilons) for theorem in design.theorems[:2])
        assert np.all(b <= a * 1.003)  # the chords' excess, and no more
        assert b[40] < 0.5 * a[40]


@pytest.mark.parametrize(
    ("design", "low", "high"),
    [
        (WithReplacement(400, 1000), 14.9, 14.98),
        (MultiStage([("wor", 500), ("wr", 400)], 1000), 24.9, 24.96),
        (MultiStage([("wr", 500), ("wr", 400)], 1000), 54.6, 55.2),
    ],
)
def test_epsilon_at_fixed_delta(design, low, high) -> None:
    guarantee = amplify(Gaussian(1.0, neighbors=RO), design)
    assert low <= guarantee.lower.epsilon(1e-6) <= guarantee.epsilon(1e-6) <= high


def test_many_rounds() -> None:
    one = amplify(NOISE, OW)
    assert 4.776e-3 <= compose(one, 200).delta(1.0) <= 5.6e-3  # attack; equal shares would give 8.170e-3
    assert 3.506e-2 <= compose(one, 1000).delta(1.0) <= 6.5e-2  # equal shares: 9.299e-2


def test_chains_are_reduced_first() -> None:
    assert reduced((("wor", 50), ("wor", 20), ("wr", 9), ("wor", 4)), 100) == (("wor", 20), ("wr", 4))
    assert reduced((("wr", 50), ("wor", 20), ("wr", 9)), 100) == (("wr", 20), ("wr", 9))
    assert reduced((("wor", 100), ("wr", 9)), 100) == (("wr", 9),)
    for stages in ((("wor", 5),), (("wr", 5), ("wr", 5), ("wr", 5)), (("wor", 5), ("wr", 5), ("wr", 5))):
        with pytest.raises(NoTheorem, match="Theorem B"):
            reduced(stages, 100)
    three = amplify(NOISE, MultiStage([("wr", 50), ("wr", 50), ("wr", 50)], 100))
    assert all("Theorem A" in reason for reason in three.because)


@pytest.mark.parametrize("theta", [1e-90, 1e-6, 0.37, 3.0, 40.0, 1e9])
def test_shift_is_read_off_the_profile_from_above(theta) -> None:
    shift = gaussian_shift(Gaussian(1.0, theta, neighbors=RO))
    assert theta < shift < theta * (1 + 1e-12)
    assert gaussian_shift(Joint([Gaussian(1.0, theta, neighbors=RO)] * 4)) == pytest.approx(2 * theta, rel=1e-12)
    bound = copies_bound((("wor", 3), ("wr", 4)), 10, Gaussian(1.0, theta, neighbors=RO))
    deltas = np.asarray(bound.delta(np.array([0.0, 1e-9, 1.0, 1e3, 1e6])))
    assert np.all(np.isfinite(deltas))
    assert np.all(np.diff(deltas) <= 0)
    assert deltas[0] <= 0.3 * (1 - (2 / 3) ** 4) * (1 + 1e-9)
