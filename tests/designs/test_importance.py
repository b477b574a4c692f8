"""Importance sampling: drawn as certified, exact against the linear program, wrong formulas caught."""

import math
from fractions import Fraction

import numpy as np
import pytest

from privamp import (
    Gaussian,
    GaussianProfile,
    ImportanceSampling,
    Influence,
    InvalidInput,
    Joint,
    Laplace,
    LinearProfile,
    Neighbors,
    NormNoise,
    NoTheorem,
    Population,
    PureDP,
    SumAndCount,
    amplify,
    compose,
    coreset,
    privacy_constrained,
    uniform,
)
from privamp.core.curves import pure_curve
from privamp.core.profile import Profile
from privamp.core.theorem import Theorem
from privamp.testing import seeded_key
from privamp.verify import check_design, exact_delta
from privamp.verify.exact import Program, programs
from privamp.verify.sampler import draws, follows_law
from privamp.verify.symmetry import collect

AR, RO = Neighbors.ADD_REMOVE, Neighbors.REPLACE_ONE


def records(count=400, dimension=3, radius=1.0, seed=0):
    x = np.random.default_rng(seed).normal(size=(count, dimension)) * 0.3
    return x * np.minimum(1.0, 0.999999 * radius / np.linalg.norm(x, axis=1))[:, None]


# --- the certified number -------------------------------------------------------------------------------------


def test_the_rule_own_release_has_exactly_the_target():
    step = SumAndCount(NormNoise(200.0, 3), Laplace(400.0))
    plan = Joint([step] * 10)
    rule = privacy_constrained(LinearProfile.of(plan), 1.0, radius=1.0)
    assert rule == privacy_constrained(LinearProfile(step.influence.repeated(10)), 1.0, radius=1.0)
    assert amplify(plan, ImportanceSampling(rule)).epsilon() == 1.0
    fewer = amplify(Joint([step] * 4), ImportanceSampling(rule)).epsilon()  # covered, and the cells see more
    assert fewer < 0.45


def test_another_release_goes_by_cells():
    rule = privacy_constrained(LinearProfile.of(Laplace(10.0)), 1.0, radius=1.0)
    strong = amplify(Laplace(5.0), ImportanceSampling(rule))
    truth = max(
        math.log1p(q * math.expm1(u / 5.0 * w))
        for u in np.geomspace(1e-13, 1.0, 4001)
        for q, w in [(float(rule.of_norms([u])[0]), float(rule.weights_of_norms([u])[0]))]
    )
    assert truth <= strong.epsilon() <= 1.25 * truth
    assert strong.because == (str(ImportanceSampling.theorems[1]),)
    other = privacy_constrained(LinearProfile(Influence("pure", 0, 0.1)), 1.0, radius=1.0)
    gaussian = amplify(Gaussian(3.0), ImportanceSampling(other))
    assert 0 < gaussian.lower.delta(1.0) <= gaussian.delta(1.0)


def test_what_is_refused():
    rule = privacy_constrained(LinearProfile.of(Laplace(10.0)), 1.0, radius=1.0)
    for mechanism in (PureDP(1.0), Laplace(1.0, neighbors=RO), Joint([Laplace(1.0), Gaussian(1.0)])):
        with pytest.raises(NoTheorem):
            amplify(mechanism, ImportanceSampling(rule))
    with pytest.raises(NoTheorem, match="replace-one"):
        amplify(Laplace(10.0), ImportanceSampling(rule), RO)
    round_ball = uniform(LinearProfile(Influence("pure", 0, 0.1)), rate=0.5, radius=1.0)
    with pytest.raises(NoTheorem, match="norm"):  # an l2 rule says nothing about l1 sums of unknown dimension
        amplify(Laplace(10.0), ImportanceSampling(round_ball))
    with pytest.raises(InvalidInput, match="rule"):
        ImportanceSampling(0.5)
    with pytest.raises(InvalidInput, match="column 'x'"):
        ImportanceSampling(rule).draw(10)
    general = privacy_constrained(LinearProfile(lambda x: np.abs(x).sum(axis=1)), 3.0)
    with pytest.raises(NoTheorem):
        amplify(Laplace(10.0), ImportanceSampling(general))


def test_personal_guarantees():
    noise = Gaussian(30.0)
    rule = uniform(GaussianProfile.of(noise), rate=0.1, radius=1.0, delta=1e-5)
    everybody = amplify(noise, ImportanceSampling(rule))
    own = everybody.at([0.1, 0.0])
    assert own.epsilon(1e-5) == pytest.approx(rule.losses([[0.1, 0.0]])[0], rel=1e-6)
    assert own.epsilon(1e-5) < 0.2 * everybody.epsilon(1e-5)
    assert everybody.at([1.0, 0.0]).epsilon(1e-5) == pytest.approx(everybody.epsilon(1e-5))
    assert own.neighbors == everybody.neighbors
    assert compose(everybody, 3).at([0.1, 0.0]).epsilon(1e-5) >= own.epsilon(1e-5)
    half = ImportanceSampling(uniform(LinearProfile.of(Laplace(1.0)), rate=0.5, radius=1.0))
    assert amplify(Laplace(1.0), half).at([0.2]).epsilon() == pytest.approx(math.log1p(0.5 * math.expm1(0.4)))


def test_people_with_several_records():
    rule = privacy_constrained(LinearProfile.of(Laplace(10.0)), 1.0, radius=1.0)
    assert amplify(Laplace(10.0), ImportanceSampling(rule), AR.for_person(3)).epsilon() == pytest.approx(3.0)


# --- the draw -------------------------------------------------------------------------------------------------


def test_records_are_kept_as_often_as_certified_and_weighted_by_one_over_it():
    x = records(50)
    rule = privacy_constrained(LinearProfile(Influence("pure", 0.02, 0.3)), 0.5, radius=1.0)
    design, rounds = ImportanceSampling(rule), 2000
    q, w = rule.probabilities(x), rule.weights(x)
    times, total = np.zeros(50), np.zeros(3)
    for r in range(rounds):
        drawn = design.draw(Population(50, x=x), seeded_key(3), r).reveal_secret()
        times[drawn.positions] += 1
        total += (drawn.weights[:, None] * x[drawn.positions]).sum(axis=0)
        assert np.array_equal(drawn.weights, w[drawn.positions])
    # six standard deviations: a false alarm has chance 50 * 2e-9
    assert np.all(np.abs(times - rounds * q) < 6 * np.sqrt(rounds * q * (1 - q)) + 1e-9)
    spread = np.sqrt(((w - 1) @ x**2) / rounds)
    assert np.all(np.abs(total / rounds - x.sum(axis=0)) < 6 * spread)


def test_one_release_through_the_ledger():
    x = records()
    noise = NormNoise(50.0, 3)
    rule = privacy_constrained(LinearProfile.of(Joint([noise, noise])), 1.0, radius=1.0)
    sample = ImportanceSampling(rule).draw(Population(400, x=x), seeded_key(1)).declare([noise, noise])
    for _ in range(2):
        assert np.shape(sample.release(noise, x)) == (3,)
    guarantee = sample.guarantee()
    assert guarantee.epsilon() == 1.0
    assert not guarantee.is_private
    assert not guarantee.at(x[0]).is_private
    assert "secret" in repr(sample)


def test_records_outside_the_ball_are_drawn_and_summed_as_if_clipped_to_it():
    """They used to be refused, which told that they were there."""
    rule = privacy_constrained(LinearProfile.of(Laplace(10.0)), 1.0, radius=1.0)
    for far in (7.25, -np.inf, np.finfo(np.float64).max):
        sample = ImportanceSampling(rule).draw(Population(4000, x=np.full((4000, 1), far)), seeded_key(1))
        drawn = sample.reveal_secret()
        assert drawn.lengths.tolist() == [1.0] * drawn.positions.size
        assert set(drawn.weights) == set(rule.weights([[1.0]])) == {drawn.weights[0]}


# --- the oracle and its negative controls -----------------------------------------------------------------------


def test_the_weighted_linear_program_finds_the_amplified_loss():
    half, third = Fraction(1, 2), Fraction(1, 3)
    without = {(): half, (0,): half}
    with_it = {(): half * (1 - third), (0,): half * (1 - third), (1,): half * third, (0, 1): half * third}
    for steps in ({0: 1.0, 1: 2.5}, {0: 0.3, 1: 0.7}, {0: 3.0, 1: 0.0}):
        program = Program(with_it, without, "add-remove", steps)
        for epsilon in (0.2, 1.0, 2.0):
            assert program.epsilon(epsilon) == pytest.approx(math.log1p(math.expm1(epsilon * steps[1]) / 3), abs=1e-9)


def test_matched_rules_reach_their_target_in_the_linear_program():
    """psi(x) = epsilon* exactly, over all mechanisms with the linear profile."""
    rule = privacy_constrained(LinearProfile(Influence("pure", 0.0, 0.8)), 1.0, radius=1.0)
    design = ImportanceSampling(rule)
    population = Population(1, x=np.array([[0.9]]))
    truths = [p.epsilon(0.8) for p in programs(design, population, AR, AR.kind)]
    assert max(truths) == pytest.approx(1.0, abs=1e-7)
    assert min(truths) == pytest.approx(1.0, abs=1e-7)  # every record uses the same budget


def test_amplifying_the_unweighted_loss_is_caught():
    """The negative control of check_design: psi with epsilon(1, x) instead of epsilon(w, x)."""

    def wrong(design, mechanism, neighbors):
        if mechanism.influence is None:
            raise NoTheorem("no influence")
        u = np.linspace(0.0, design.rule.farthest, 101)
        loss = np.log1p(design.rule.of_norms(u) * np.expm1(mechanism.influence.at(u)))
        return Profile.symmetric(pure_curve(float(loss.max())))

    class Wrong(ImportanceSampling):
        theorems = (Theorem("unweighted", "nowhere", "add-remove", "add-remove", False, wrong),)

    report = check_design(Wrong, checks=60, seed=1)
    assert any("UPPER bound" in violation for violation in report.violations)


def test_a_sampler_that_keeps_more_than_it_certifies_is_caught():
    class Careless(ImportanceSampling):
        def partial(self, batch, subkey):
            from privamp.chance.keyed import keep, keyed_numbers

            x = batch.column(self.column)
            weights = self.rule.weights(x)
            kept = keep(keyed_numbers(subkey, batch.ids), np.minimum(1.3 / weights, 1.0))
            return batch.positions[kept], weights[kept], self.rule.norms(x[kept])

    rule = privacy_constrained(LinearProfile(Influence("pure", 0.0, 0.8)), 1.0, radius=1.0)
    population = Population(2, x=np.array([[0.9], [0.6]]))
    law = collect(ImportanceSampling(rule).law(population))
    assert follows_law(draws(ImportanceSampling(rule), population, seeded_key(1), 2000), law) is None
    assert follows_law(draws(Careless(rule), population, seeded_key(1), 2000), law) is not None


def test_gaussian_bounds_are_the_integrated_truth_at_the_radius():
    noise = Gaussian(1.3)
    rule = uniform(GaussianProfile.of(noise), rate=0.4, radius=1.0)
    design, epsilons = ImportanceSampling(rule), np.array([-0.7, 0.0, 0.4, 1.1])
    truth = exact_delta(design, noise, Population(1, x=np.array([[0.5]])), AR, epsilons)
    guarantee = amplify(noise, design)
    assert np.all(truth <= guarantee.delta(epsilons))
    assert guarantee.delta(epsilons) == pytest.approx(truth, rel=1e-6)
    assert guarantee.lower.delta(epsilons) == pytest.approx(truth, rel=1e-6)


def test_the_coreset_rule_is_certified_in_the_linear_program():
    rule = coreset(
        LinearProfile(Influence("pure", 0.0, 0.5)),
        share=0.2,
        size=1.0,
        population=4.0,
        mean_squared_norm=0.4,
        radius=1.0,
    )
    design = ImportanceSampling(rule)
    truth = max(p.epsilon(0.5) for p in programs(design, Population(0, x=np.empty((0, 1))), AR, AR.kind))
    assert truth <= rule.worst_loss()
    assert amplify(NormNoise(2.0, 1), design).epsilon() >= truth


def test_without_a_radius_the_domain_is_where_the_target_can_be_met():
    noise = Laplace(10.0)
    rule = privacy_constrained(LinearProfile.of(noise), 1.0)
    assert rule.farthest == pytest.approx(10.0)
    guarantee = amplify(noise, ImportanceSampling(rule))
    assert guarantee.epsilon() == 1.0
    assert guarantee.lower.epsilon() == pytest.approx(1.0)


def test_records_come_in_any_number_type():
    rule = privacy_constrained(LinearProfile.of(NormNoise(10.0, 3)), 1.0, radius=1.0)
    x = records(40_000).astype(np.float32)
    assert np.array_equal(rule.weights(x), rule.weights(x.astype(np.float64)))
    assert rule.weights(np.empty((0, 3))).shape == (0,)
    for wrong in ("text", [["a"]], np.zeros((2, 2, 2))):
        with pytest.raises(InvalidInput, match="records must be"):
            rule.weights(wrong)
