import math

import numpy as np
import pytest

from privamp import (
    Gaussian,
    Guarantee,
    InvalidInput,
    Joint,
    Laplace,
    MultiStage,
    Neighbors,
    Poisson,
    PureDP,
    WithoutReplacement,
    WithReplacement,
    amplify,
    compose,
)
from privamp.accounting.discretize import loss_laws
from privamp.core.curves import pair_profile
from privamp.core.guarantee import Part
from privamp.core.multiplicity import Multiplicity
from privamp.testing import seeded_key

AR, RO = Neighbors.ADD_REMOVE, Neighbors.REPLACE_ONE


def test_sampled_gaussian_thousand_steps():
    guarantee = compose(amplify(Gaussian(1.0), Poisson(0.01)), 1000)
    epsilon = guarantee.epsilon(1e-5)
    assert 1.8282 <= epsilon <= 1.8282 + 1e-3
    assert epsilon * 0.98 <= guarantee.lower.epsilon(1e-5) <= epsilon


def test_gaussians_compose_to_one_gaussian_far_into_the_tail():
    # the truth is closed form, so upper and lower can both be held to it far below 1e-13, where a plain FFT has nothing
    guarantee = compose(amplify(Gaussian(10.0), Poisson(1.0)), 100)
    truth = Gaussian(1.0).profile(AR)
    for epsilon in (0.0, 0.5, 2.0, 5.0, 10.0):
        exact = truth.delta(epsilon)
        assert exact <= guarantee.delta(epsilon) <= exact * 1.01
        assert exact >= guarantee.lower.delta(epsilon) >= exact * 0.9
    assert truth.delta(10.0) < 1e-21


def test_randomised_response_composes_exactly():
    # k-fold randomised response is a binomial pair
    k, epsilon0 = 7, 0.4
    guarantee = compose(amplify(PureDP(epsilon0), Poisson(1.0)), k)
    p = math.exp(epsilon0) / (1 + math.exp(epsilon0))
    j = np.arange(k + 1)
    log_ways = np.array([math.lgamma(k + 1) - math.lgamma(i + 1) - math.lgamma(k - i + 1) for i in j])
    truth = pair_profile(
        log_ways + j * math.log(p) + (k - j) * math.log1p(-p), log_ways + (k - j) * math.log(p) + j * math.log1p(-p)
    )
    for epsilon in (0.0, 0.3, 1.1, 2.0, 2.7):
        assert truth.delta(epsilon) * (1 - 1e-12) <= guarantee.delta(epsilon) <= truth.delta(epsilon) + 2e-4
    assert guarantee.epsilon() == pytest.approx(k * epsilon0)


@pytest.mark.parametrize(
    ("mechanism", "design", "relation"),
    [
        (Gaussian(1.0), Poisson(0.05), AR),
        (Gaussian(1.0), Poisson(0.05), RO),
        (Laplace(1.0), Poisson(0.2), AR),
        (Gaussian(2.0, neighbors=RO), WithoutReplacement(5, 100), RO),
        (Gaussian(2.0), WithoutReplacement(5, 100), AR),
        (Gaussian(2.0), WithReplacement(5, 100), AR),
        (Gaussian(2.0, neighbors=RO), MultiStage([("wor", 20), ("wr", 5)], 100), RO),
    ],
)
def test_the_law_on_the_grid_dominates_its_curve_and_is_dominated_by_it(mechanism, design, relation):
    guarantee = amplify(mechanism, design, relation)
    at = np.concatenate([np.linspace(0, 6, 301), [0.00005, 0.12345]])
    for profile, upper in ((guarantee.upper, True), (guarantee.parts[0].lower, False)):
        for law, curve, other in zip(
            loss_laws(profile, 1e-3, upper=upper),
            (profile.forward, profile.backward),
            (profile.backward, profile.forward),
            strict=True,
        ):
            gains = -np.expm1(np.minimum(at[:, None] - law.losses[None, :], 0.0))
            rebuilt = gains @ law.mass + law.infinite
            truth = np.exp(curve(at))
            mirrored = -np.expm1(-at) + np.exp(-at) * np.exp(other(at))
            gains_below = -np.expm1(np.minimum(-at[:, None] - law.losses[None, :], 0.0))
            rebuilt_below = gains_below @ law.mass + law.infinite
            if upper:
                assert np.all(rebuilt >= truth * (1 - 1e-12))
                assert np.all(rebuilt_below >= mirrored * (1 - 1e-12))
                assert np.max(rebuilt - truth) < 2e-5
            else:
                assert np.all(rebuilt <= truth * (1 + 1e-12))
                assert np.all(rebuilt_below <= mirrored * (1 + 1e-12))


def test_a_grid_law_that_drops_mass_is_caught():
    # negative control for the test above
    profile = amplify(Gaussian(1.0), Poisson(0.05)).upper
    law, _ = loss_laws(profile, 1e-3)
    thinned = law.mass.copy()
    thinned[law.losses > 1.0] *= 0.999
    at = np.linspace(0, 3, 61)
    gains = -np.expm1(np.minimum(at[:, None] - law.losses[None, :], 0.0))
    assert not np.all(gains @ thinned + law.infinite >= np.exp(profile.forward(at)) * (1 - 1e-12))


def test_mixtures_agree_with_dp_accounting():
    from dp_accounting.pld.privacy_loss_distribution import from_gaussian_mechanism, from_laplace_mechanism

    ours = compose(
        [compose(amplify(Gaussian(2.0), Poisson(0.01)), 100), compose(amplify(Laplace(3.0), Poisson(0.05)), 50)]
    )
    theirs = (
        from_gaussian_mechanism(2.0, sampling_prob=0.01, use_connect_dots=True)
        .self_compose(100)
        .compose(from_laplace_mechanism(3.0, sampling_prob=0.05, use_connect_dots=True).self_compose(50))
    )
    for delta in (1e-3, 1e-6):
        assert ours.epsilon(delta) == pytest.approx(theirs.get_epsilon_for_delta(delta), rel=1e-4)
        assert ours.lower.epsilon(delta) <= ours.epsilon(delta)
    assert ours.pld().get_epsilon_for_delta(1e-6) == pytest.approx(ours.epsilon(1e-6), rel=1e-6)
    assert ours.steps == 150


def test_six_component_mixture_agrees_with_dp_accounting_from_above():
    from dp_accounting.pld.privacy_loss_distribution import from_mixture_gaussian_mechanism

    law = Multiplicity.binomial(5, 0.02)
    profile = Gaussian(1.0).mixture(AR, law).rounded_up()
    weights = [math.exp(law.log_none), *np.exp(law.log_p)]
    theirs = from_mixture_gaussian_mechanism(
        1.0, sensitivities=list(range(6)), sampling_probs=weights, value_discretization_interval=1e-2
    )
    for epsilon in (0.0, 0.25, 1.0, 3.0):
        exact = theirs.get_delta_for_epsilon(epsilon)
        forward, _ = loss_laws(profile, 1e-2)
        gains = -np.expm1(np.minimum(epsilon - forward.losses, 0.0))
        assert float(gains @ forward.mass + forward.infinite) == pytest.approx(exact, abs=1e-6)


def test_composing_costs_more_than_one_step_and_less_than_the_sum():
    one = amplify(PureDP(0.5), Poisson(0.1))
    ten = compose(one, 10)
    assert one.epsilon(1e-6) < ten.epsilon(1e-6) <= 10 * one.epsilon()
    assert ten.epsilon() == pytest.approx(10 * one.epsilon())
    assert compose(one, 1) is one


def test_amplifying_each_query_of_one_sample_is_false():
    # ten queries on one sample: the joint attack beats the sum of amplified losses
    each = amplify(PureDP(0.5), Poisson(0.1))
    assert compose(each, 10).epsilon() == pytest.approx(0.6285, abs=1e-4)  # right for fresh draws only
    assert amplify(Joint([PureDP(0.5)] * 10), Poisson(0.1)).epsilon() > 4 * compose(each, 10).epsilon()


def test_joint_gaussians_are_one_gaussian_and_other_plans_compose():
    joint = Joint([Gaussian(2.0)] * 4)
    assert joint.profile(AR).delta(1.0) == pytest.approx(Gaussian(1.0).profile(AR).delta(1.0), rel=1e-12)
    mixed = Joint([Laplace(2.0), Gaussian(2.0)])
    one = mixed.profile(AR).delta(1.0)
    assert max(Laplace(2.0).profile(AR).delta(1.0), Gaussian(2.0).profile(AR).delta(1.0)) <= one <= 1
    guarantee = amplify(Joint([Laplace(2.0, neighbors=RO), Gaussian(2.0, neighbors=RO)]), MultiStage([("wr", 3)], 10))
    assert 0 < guarantee.delta(0.5) < 1


def test_bad_compositions_are_refused():
    one = amplify(PureDP(0.5), Poisson(0.1))
    with pytest.raises(InvalidInput, match="steps must be"):
        compose(one, 0)
    with pytest.raises(InvalidInput, match="at least one"):
        compose([])
    with pytest.raises(InvalidInput, match="the same relation"):
        compose([one, amplify(PureDP(0.5), Poisson(0.1), RO)])
    with pytest.raises(InvalidInput, match="at least one"):
        Joint([])


def test_parts_without_an_attack_give_no_lower_bound():
    one = amplify(PureDP(0.5), Poisson(0.1))
    bare = type(one)(one.neighbors, one.upper, one.reasons, one.assumes, (Part(one.upper, None),))
    assert compose(bare, 2).lower is None


def binomial_pair(k, epsilon0):
    """k-fold randomised response, exactly."""
    j = np.arange(k + 1)
    log_ways = np.array([math.lgamma(k + 1) - math.lgamma(i + 1) - math.lgamma(k - i + 1) for i in j])
    up, down = -np.logaddexp(0.0, -epsilon0), -np.logaddexp(0.0, epsilon0)
    return pair_profile(log_ways + j * up + (k - j) * down, log_ways + (k - j) * up + j * down)


def test_a_query_far_out_spoils_no_later_answer():
    # a high tilt puts all the mass at the top of its window; undone carelessly, everything underflows to a false zero
    guarantee, truth = compose(amplify(PureDP(0.5), Poisson(1.0)), 3), binomial_pair(3, 0.5)
    before = guarantee.delta(1.4985)
    guarantee.delta(1e6)
    assert guarantee.delta(1.4985) == pytest.approx(before, rel=1e-6)
    for epsilon in (0.2, 0.9, 1.3, 1.49, 1.4985, 1.4999):
        assert guarantee.delta(epsilon) >= truth.delta(epsilon) * (1 - 1e-9)
        assert guarantee.lower.delta(epsilon) <= truth.delta(epsilon) * (1 + 1e-9)
    assert guarantee.lower.epsilon(1e-6) <= truth.epsilon(1e-6) <= guarantee.epsilon(1e-6)


@pytest.mark.parametrize("k", [2, 3, 7])
@pytest.mark.parametrize("epsilon0", [0.0331234, 0.25, 1.7])
def test_lower_bounds_stay_below_when_a_loss_falls_between_grid_points(k, epsilon0):
    guarantee, truth = compose(amplify(PureDP(epsilon0), Poisson(1.0)), k), binomial_pair(k, epsilon0)
    at = np.linspace(0.0, k * epsilon0 * 1.001, 400)
    lower, exact, upper = np.asarray(guarantee.lower.delta(at)), truth.delta(at), np.asarray(guarantee.delta(at))
    assert np.all(lower <= exact * (1 + 1e-9) + 1e-300)
    assert np.all(exact <= upper * (1 + 1e-9) + 1e-300)
    assert np.all(upper - lower <= 3e-3)


def test_losses_beyond_the_exponential_range():
    guarantee = compose(amplify(PureDP(400.0), Poisson(1.0)), 3)
    assert guarantee.epsilon() == pytest.approx(1200.0)
    assert guarantee.delta(100.0) == pytest.approx(1.0)
    assert guarantee.lower.delta(100.0) > 0.9


def test_one_release_has_a_loss_distribution_that_dominates_its_curve():
    guarantee = amplify(Laplace(1.0), Poisson(0.1))
    for epsilon in (0.0, 0.1, 0.15):
        exact = guarantee.delta(epsilon)
        assert exact * (1 - 1e-9) <= guarantee.pld().get_delta_for_epsilon(epsilon) <= exact + 1e-6


def test_readings_of_one_sample_are_not_fresh_draws():
    """Ten readings of one sample once counted as ten draws: .6285 for a true 2.7563."""
    sample = Poisson(0.1).draw(100, seeded_key(70)).declare([PureDP(0.5)] * 10)
    reading = sample.guarantee()
    assert reading.epsilon() == pytest.approx(2.7563, abs=1e-4)
    kept = Guarantee.from_json(reading.to_json())  # on paper it is about the same sample
    for several in ([reading] * 10, [reading, sample.guarantee()], [compose([reading]), reading], [kept, kept]):
        with pytest.raises(InvalidInput, match="about the same sample"):
            compose(several)
    with pytest.raises(InvalidInput, match="fresh"):
        compose(reading, 10)
    with pytest.raises(InvalidInput, match="same sample"):
        compose([reading.at(0), reading])
    other = Poisson(0.1).draw(100, seeded_key(71)).declare([PureDP(0.5)]).guarantee()
    both = compose([reading, other])
    assert both.steps == 2
    with pytest.raises(InvalidInput, match="same sample"):
        compose([both, other])
    assert compose(other.fresh(), 10).epsilon() == pytest.approx(10 * other.epsilon(), rel=1e-6)


def test_epsilons_beyond_all_whole_numbers_of_the_grid():
    """They were cast to the smallest integer, with a warning, and read off at the near end of the table."""
    found = compose(amplify(Gaussian(1.0), Poisson(0.1)), 3)
    for epsilon in (1e17, 1e25, 1e300):
        assert found.lower.delta(epsilon) == 0.0
        assert found.delta(epsilon) <= found.delta(100.0)


@pytest.mark.parametrize("epsilon", [1e14, 1e16, 1e300, math.inf])
def test_beyond_every_grid_nothing_is_left(epsilon):
    """The place on the grid ran over 64 bits and became the first one: an attack with delta .5412 at epsilon 1e16."""
    both = compose(amplify(Gaussian(2.0), Poisson(0.1)), 10)
    assert both.lower.delta(epsilon) == 0.0
    assert both.delta(epsilon) < 1e-10
    assert both.delta(-epsilon) == 1.0
