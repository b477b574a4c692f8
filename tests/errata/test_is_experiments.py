"""Errata of the experiments and the released code of the importance sampling paper (IS): counterexamples first."""

import math

import numpy as np
import pytest
from scipy.stats import binom, gamma

from privamp import NormNoise, PrivateKMeans
from privamp.audits.audit import performed
from privamp.audits.planted import exponential_radius
from privamp.kmeans.fit_plan import Split
from privamp.mechanisms.norm_noise import directions
from privamp.papers.importance_sampling import dp_lloyd
from privamp.papers.importance_sampling.data_sets import prepared
from privamp.testing import seeded_stream, seeds_allowed

RHO = 0.225


def printed_ratio(d):
    """beta_count / beta_sum as printed."""
    return (4 * d * RHO**2) ** (1 / 3)


def test_is_released_noise_has_an_exponential_radius():
    """Density ~ e^(-r/b) / r^(d-1) instead of e^(-r/b): next to a record the ratio has no bound."""
    d, b, record = 10, 1.0, 1.0

    def loss(near, power):
        """log density ratio at a point `near` the record, on the far side of the origin."""
        far = near + record
        return (far - near) / b + power * (math.log(far) - math.log(near))

    assert loss(1e-6, 0) == pytest.approx(record / b)  # Gamma(d): never more than claimed
    assert loss(1e-3, d - 1) > 60
    assert loss(1e-6, d - 1) > 120
    (found,) = performed([exponential_radius()], confidence=0.95)
    assert found.claimed == 1.0
    assert found.refuted
    assert found.shown > 2.0
    noise = NormNoise(b, d).release(np.zeros((20_000, d)), seeded_stream(5))
    radii = np.linalg.norm(noise, axis=1)
    assert np.mean(radii) == pytest.approx(d * b, rel=5 / math.sqrt(20_000 * d))  # ten times that of the code
    assert np.quantile(radii, 0.1) == pytest.approx(gamma(d).ppf(0.1), rel=0.03)


def test_is_released_noise_hides_the_cost_at_small_epsilon():
    """As epsilon falls the cost of private Lloyd passes that of no learning; with the released radius it does not."""
    rng = np.random.default_rng(3)
    x = rng.normal(size=(25, 40))[rng.integers(25, size=3000)] + 0.2 * rng.normal(size=(3000, 40))
    trial = dp_lloyd.Trial.of(prepared(x), 3000)
    right, released = (
        np.median(trial.costs("unif", 300, 0.5, range(3), shape)) / trial.no_learning for shape in (None, 1)
    )
    assert released < 1.0 < right


def test_is_released_noise_has_the_wrong_direction_for_p_1():
    """Normalised Gaussians are the cone measure for p = 2 only; for p = 1 the share of a coordinate is uniform."""
    t = 0.25
    of_the_code = 2 / math.pi * math.atan(t / (1 - t))  # Pr[|z1| / (|z1| + |z2|) < t], z Gaussian
    assert of_the_code == pytest.approx(0.2048, abs=1e-4)
    share = np.abs(directions(1.0, (40_000, 2), seeded_stream(6))[:, 0])
    assert np.mean(share < t) == pytest.approx(t, abs=6 * math.sqrt(t * (1 - t) / 40_000))
    assert abs(np.mean(share < t) - of_the_code) > 0.03


def test_is_noise_split_depends_on_the_unit():
    """At equal epsilon the counts of raw Covertype get 2000 times the noise that they get in the unit ball."""
    d, steps, epsilon, clusters, records = 54, 10, 1.0, 25, 566_486

    def count_noise(radius):
        ratio = printed_ratio(d)
        return ratio * steps * (1 / ratio + radius) / epsilon

    assert count_noise(4489.17) > 2000 * count_noise(1.0)
    assert count_noise(4489.17) > 4 * records / clusters  # four times what a mean cluster holds
    x = np.random.default_rng(3).normal(size=(3000, 3)) * 0.2
    with seeds_allowed():
        one = PrivateKMeans(3, epsilon=1.0, radius=1.0, random_state=7, n_jobs=1).fit(x)
        other = PrivateKMeans(3, epsilon=1.0, radius=1024.0, random_state=7, n_jobs=1).fit(1024.0 * x)
    assert np.allclose(1024.0 * one.cluster_centers_, other.cluster_centers_)
    assert np.array_equal(one.counts_, other.counts_)


def test_is_noise_split_does_not_suit_l2_noise():
    """Mean squared error of a centre, d(d+1) b_sum² + 2 |c|² b_count², at 1/b_sum + 1/b_count = 1."""
    d, square = 54, 0.25

    def error(ratio):
        return d * (d + 1) * (1 + 1 / ratio) ** 2 + 2 * square * (1 + ratio) ** 2

    ours = Split(False, d, square).count_to_sum
    assert ours == pytest.approx(18.1, abs=0.05)
    assert error(printed_ratio(d)) == pytest.approx(6254, rel=2e-3)
    assert error(ours) == pytest.approx(3490, rel=1e-3)
    assert all(error(ours) <= error(ours * factor) for factor in (0.8, 0.99, 1.01, 1.25))


def test_is_initial_centres_are_records():
    """100 records at 0 and one at -1, two centres that start at records, one step, claimed epsilon 1.

    Without the record both centres start at 0 and the first one (by the rule for ties) gets everybody. With it the
    start (-1, 0) has probability 1/101, and then the second centre gets everybody.
    """
    others, b = 100, 2.0  # Laplace noise 2 on counts, the other half of epsilon for the sums

    def below(x):
        return 0.5 * math.exp(x / b) if x < 0 else 1 - 0.5 * math.exp(-x / b)

    half = others / 2
    swapped_without = below(half - others) * (1 - below(half - 0.0))  # first count below 50, second above
    swapped_with = 1 / (others + 1) * below(half - 1.0) * (1 - below(half - others))
    assert math.log(swapped_with / swapped_without) > 40
    points = np.zeros((101, 2))
    points[-1, 0] = -1.0
    model = PrivateKMeans(2, epsilon=1.0, radius=1.0, init=[[0.5, 0], [-0.5, 0]], n_jobs=1).fit(points)  # public
    assert model.guarantee_.epsilon() == 1.0


def preprocessed(x):
    """Centre, drop norms from the 97.5 percentile on, centre again; the radius is the largest norm left."""
    x = x - x.mean(axis=0)
    norms = np.linalg.norm(x, axis=1)
    x = x[norms < np.quantile(norms, 0.975)]
    x = x - x.mean(axis=0)
    return x, float(np.linalg.norm(x, axis=1).max())


def test_is_radius_and_noise_scale_come_from_the_data():
    """Noise whose scale depends on a record has no epsilon at all: the ratio of two Laplace tails is unbounded."""
    rng = np.random.default_rng(1)
    x = rng.normal(size=(399, 2))
    found = [preprocessed(x), preprocessed(np.vstack([x, [[9.0, 0.0]]]))]
    (kept, radius), (kept_too, radius_too) = found
    assert radius != radius_too
    moved = {tuple(np.round(row, 1)) for row in kept} ^ {tuple(np.round(row, 1)) for row in kept_too}
    assert len(moved) > 1  # the new record is dropped, and others change instead
    b, b_too = 10 * radius, 10 * radius_too
    far = 1e6 * b
    loss = abs(math.log(b_too / b) + far / b_too - far / b)
    assert loss > 1000
    step = PrivateKMeans(3, epsilon=1.0, radius=3.0, sampler=None, n_jobs=1)
    scales = {round(step.fit(data)._fitted.rule.influence.at(1.0).item(), 9) for data in (x, np.vstack([x, [[9, 0]]]))}
    assert len(scales) == 1  # what a record at the radius can do is fixed by the budget


def test_is_facts_inside_the_probabilities_come_from_the_data():
    """Coreset probabilities with the data's own n and mean square: a record changes everybody's.

    100 records of norm 0.1, and one of norm 1 is added; expected size 20, share 1/2, a weighted count with Laplace
    noise. Theorem 6 is about a fixed q and claims psi for the added record; the noisy counts are told apart far better.
    """
    n, m, b = 100, 20, 5.0

    def q(norm, count, mean_square):
        return 0.5 * m / count + 0.5 * m * norm**2 / (count * mean_square)

    before = q(0.1, n, 0.01)
    mean_square = (n * 0.01 + 1.0) / (n + 1)
    after, own = q(0.1, n + 1, mean_square), q(1.0, n + 1, mean_square)
    own = min(own, 1.0)
    claimed = math.log1p(own * math.expm1(1 / own / b))
    kept = np.arange(n + 1)
    y = -20 * b  # far below every possible count

    def density(chance, also):
        parts = binom(n, chance).pmf(kept)
        return float(np.sum(parts * np.exp(-np.abs(y - kept / chance - also) / b)))

    with_it = own * density(after, 1 / own) + (1 - own) * density(after, 0.0)
    assert claimed == pytest.approx(0.2)
    assert abs(math.log(with_it / density(before, 0.0))) > 5 * claimed
    fixed = own * density(before, 1 / own) + (1 - own) * density(before, 0.0)  # public facts: as claimed
    assert abs(math.log(fixed / density(before, 0.0))) <= claimed * (1 + 1e-9)
