"""Exact delta of noisy sums: closed forms, and wrong formulas caught."""

import math

import numpy as np
import pytest
from scipy.special import ndtr

from privamp import (
    ClusterPPS,
    Gaussian,
    Laplace,
    MultiStage,
    Neighbors,
    Poisson,
    WithoutReplacement,
    WithReplacement,
    amplify,
)
from privamp.errors import NoTheorem
from privamp.verify import exact_delta, exact_delta_of_laws
from privamp.verify.divergence import largest_divergences
from privamp.verify.enumerate import _sums, exact_deltas
from privamp.verify.noise import discrete_laplace, gaussian, laplace
from privamp.verify.symmetry import collect

AR, RO = Neighbors.ADD_REMOVE, Neighbors.REPLACE_ONE


def gaussian_delta(theta, epsilon):
    return ndtr(theta / 2 - epsilon / theta) - math.exp(epsilon) * ndtr(-theta / 2 - epsilon / theta)


def laplace_delta(theta, epsilon):
    return max(0.0, 1 - math.exp((epsilon - theta) / 2))


@pytest.mark.parametrize("epsilon", [0.0, 0.3, 1.0, 2.5])
def test_one_shift_has_the_closed_form_from_below(epsilon):
    for mechanism, truth in [
        (Gaussian(0.7), gaussian_delta(1 / 0.7, epsilon)),
        (Laplace(0.5), laplace_delta(2.0, epsilon)),
    ]:
        found = exact_delta_of_laws({0: 1}, {1: 1}, mechanism, epsilon)
        assert truth - 1e-11 <= found <= truth


def test_a_pure_mechanism_has_no_delta_beyond_its_epsilon():
    assert exact_delta_of_laws({0: 1}, {1: 1}, Laplace(1.0), 1.0) == 0.0


@pytest.mark.parametrize("population", [1, 3])
def test_poisson_gaussian_reaches_the_known_curve(population):
    q, epsilon = 0.3, 0.4
    truth = q * gaussian_delta(1.0, math.log1p(math.expm1(epsilon) / q))
    assert exact_delta(Poisson(q), Gaussian(1.0), population, AR, epsilon) == pytest.approx(truth, abs=1e-11)


def test_simple_random_sampling_reaches_the_known_curve():
    epsilon, q = 0.5, 0.5
    inner = math.log1p(math.expm1(epsilon) / q)
    found = exact_delta(WithoutReplacement(2, 4), Laplace(1.0, neighbors=RO), 4, RO, epsilon)
    assert found == pytest.approx(q * laplace_delta(1.0, inner), abs=1e-11)
    found = exact_delta(WithoutReplacement(2, 4), Laplace(1.0), 4, RO, epsilon)  # add/remove C=1: apart by 2
    assert found == pytest.approx(q * laplace_delta(2.0, inner), abs=1e-11)


def test_negative_epsilon_obeys_the_identity_between_directions():
    design, mechanism = Poisson(0.3), Laplace(1 / 1.5)
    forward = exact_delta(design, mechanism, 1, AR, -1.2)
    assert forward > 0.2925  # the printed formula claims .222
    backward = exact_delta(design, mechanism, 1, AR, 1.2)
    assert forward <= 1 - math.exp(-1.2) + math.exp(-1.2) * backward + 1e-11


def test_several_epsilons_are_the_same_as_one_by_one():
    epsilons = np.array([[0.1, 0.5], [1.0, -0.5]])
    together = exact_delta(WithReplacement(2, 3), Gaussian(1.0), 3, RO, epsilons)
    assert together.shape == (2, 2)
    assert together[1, 0] == exact_delta(WithReplacement(2, 3), Gaussian(1.0), 3, RO, 1.0)


def test_the_one_sided_pair_is_caught_for_chains_under_add_remove():
    """THEORY section 4: n=3, WOR2 → WR2, sigma=.5, alpha=2: true .0518, the pair 0 (n=3 is the larger)."""
    chain, larger = (MultiStage([("wor", 2), ("wr", 2)], population=n) for n in (2, 3))
    laws = [collect(chain.law(population)) for population in next(chain.neighboring(2, AR))]
    centres, with_record, without = _sums(*laws, (-1, 0, 1))
    (backward,) = largest_divergences(gaussian(0.5), centres, [without - 2.0 * with_record])
    assert backward == pytest.approx(0.0518, abs=5e-5)
    pair = Gaussian(0.5).mixture(RO, larger.appearances())
    assert float(np.exp(pair.backward(math.log(2)))) < 1e-12


def test_no_assignment_is_given_up_for_one_that_only_looks_larger():
    """Far-off clusters make many assignments equal to six digits: the 16 best on coarse cells do not hold the worst.

    The worst one is 2.6e-7 above them, and the design's own attack lies between.
    """
    probabilities, noise = (0.75, 0.25), Laplace(0.6385528825033886)
    cases = [(d, p) for d, p in ClusterPPS.small_cases() if d.probabilities == probabilities and d.max_size == 4]
    (design, population) = next((d, p) for d, p in cases if p.label == "clusters of 3, 4")
    epsilons = np.array([-0.0728068, 0.0728068])
    found = exact_deltas(design, noise, population, AR, epsilons).max(axis=0)
    assert found == pytest.approx([0.43704073, 0.39452451], abs=1e-8)
    assert np.all(amplify(noise, design, AR).lower.delta(epsilons) <= found)


def test_the_largest_row_is_the_largest_of_all_rows_alone():
    """Rows that cannot win are dropped early; a row by itself never is."""
    random = np.random.default_rng(3)
    centres = np.array([-2.0, -1.0, 0.0, 1.0, 2.0])
    for noise in (gaussian(0.7), laplace(0.4), discrete_laplace(0.8)):
        rows = random.normal(size=(300, 5))
        alone = [float(largest_divergences(noise, centres, [row[None]])[0]) for row in rows]
        assert largest_divergences(noise, centres, [rows])[0] == pytest.approx(max(alone), rel=1e-12)


def test_values_can_be_given():
    half = exact_delta(Poisson(0.5), Gaussian(1.0), 2, AR, 0.1, values=(0.0, 0.5))
    assert half < exact_delta(Poisson(0.5), Gaussian(1.0), 2, AR, 0.1)


def test_unknown_noise_is_refused():
    with pytest.raises(NoTheorem, match="but not of object"):
        exact_delta_of_laws({0: 1}, {1: 1}, object(), 1.0)


def test_discrete_noise_is_larger_than_continuous():
    """THEORY section 0: discrete Laplace, shift = scale = 1, has delta(0) = .4621, the continuous .3935."""
    from privamp import DiscreteGaussian, DiscreteLaplace, GeometricCount

    assert exact_delta_of_laws({0: 1}, {1: 1}, DiscreteLaplace(1.0), 0.0) == pytest.approx(0.4621, abs=5e-5)
    for mechanism in (DiscreteLaplace(1.7), DiscreteGaussian(1.3), GeometricCount(0.6)):
        for epsilon in (0.0, 0.2, 0.5):
            found = exact_delta_of_laws({0: 1}, {1: 1}, mechanism, epsilon)
            assert found == pytest.approx(mechanism.profile(AR).delta(epsilon), abs=1e-11)
