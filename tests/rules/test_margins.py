"""Every margin of a rule is there, on its own side and as wide as it says: rules against mpmath and fractions."""

import math
from fractions import Fraction

import mpmath
import numpy as np
import pytest

from privamp import (
    GeneralProfile,
    Infeasible,
    Influence,
    InvalidInput,
    LinearProfile,
    NoTheorem,
    coreset,
    privacy_constrained,
    uniform,
    variance_optimal,
)
from privamp.rules.general_weights import largest_feasible
from privamp.rules.linear_weights import excess_exponential, linear_weights
from privamp.rules.rounded import probabilities_below, weights_below
from privamp.rules.rule import Rule
from privamp.rules.sampled_curves import amplified

MIXED = Influence("pure", 0.05, 0.3)
CHANCES = [2.0**-64, 1e-9, 0.01, 0.3, 0.5, 0.7, 1.0 - 2.0**-53, 1.0]


def exact_loss(q, c, w):
    """log(1 + q(e^(c w) - 1)) in 60 digits from the doubles as they are."""
    with mpmath.workdps(60):
        return mpmath.log1p(mpmath.mpf(float(q)) * mpmath.expm1(mpmath.mpf(float(c)) * mpmath.mpf(float(w))))


def over(found, exact):
    """By what share `found` is above the exact value."""
    with mpmath.workdps(60):
        return float(mpmath.mpf(float(found)) / exact - 1)


# --- probabilities and weights


def test_weights_are_one_over_the_probability_less_two_last_places():
    q = np.concatenate([CHANCES, np.random.default_rng(0).uniform(0, 1, 3000)])
    for chance, w in zip(q.tolist(), weights_below(q).tolist(), strict=True):
        most = 1 / Fraction(chance)
        assert w == 1.0 or most * (1 - Fraction(1, 2**51)) <= Fraction(w) <= most
    assert weights_below(np.array([1.0, 2.0])).tolist() == [1.0, 1.0]


@pytest.mark.parametrize("shape", [(40_000,), (5, 8000), ()])
def test_probabilities_are_one_over_the_weight_less_two_last_places_and_a_step_of_the_draw(shape):
    """Also beyond the first piece of 16384 records."""
    w = 2.0 ** np.random.default_rng(1).uniform(0, 64, shape)
    w = np.where(np.asarray(w) < 2.0, 1.0, w)
    q = probabilities_below(w)
    assert q.shape == shape
    some = np.linspace(0, w.size - 1, 400).astype(int) if shape else [0]
    for chance, weight in zip(q.ravel()[some].tolist(), w.ravel()[some].tolist(), strict=True):
        most = 1 / Fraction(weight)
        assert chance == 1.0 if weight == 1.0 else chance <= most
        assert Fraction(chance) >= most * (1 - Fraction(1, 2**51)) - Fraction(1, 2**64)
        assert (Fraction(chance) * 2**64).denominator == 1


# --- linear weights


@pytest.mark.parametrize("epsilon", [0.05, 0.29, 0.31, 1.0, 39.0, 41.0, 300.0])
def test_linear_weights_are_below_the_root_by_their_margin(epsilon):
    """(e^s - 1)/s = R at s = c w; the safety is 2^-46, the solution right to a quarter of that."""
    top = mpmath.expm1(epsilon)
    for share in (1e-12, 1e-3, 0.2, 0.5, 0.77, 0.9, 0.999):
        c = share * epsilon
        w = float(linear_weights(np.array([c]), epsilon, 2.0**64)[0])
        if w == 2.0**64:
            continue
        with mpmath.workdps(60):
            guess = mpmath.mpf(c) * mpmath.mpf(w)
            s = mpmath.findroot(lambda s, c=c: mpmath.log(mpmath.expm1(s) / s) - mpmath.log(top / c), guess)
            short = float(1 - guess / s) if s > c else 0.0
        assert short == 0.0 or 0.75 * 2.0**-46 <= short <= 1.25 * 2.0**-46


@pytest.mark.parametrize("x", [1e-9, 0.01, 0.5, 0.999, 1.0, 1.5, 9.0])
def test_the_excess_of_the_exponential_has_its_digits(x):
    with mpmath.workdps(60):
        assert abs(over(excess_exponential(x), mpmath.expm1(mpmath.mpf(x)) - mpmath.mpf(x))) < 6e-16


def test_weights_are_capped_for_records_without_influence_at_every_epsilon():
    for epsilon in (0.1, 1.0, 41.0, 800.0):
        assert linear_weights(np.array([0.0, 1e-300]), epsilon, 123.5).tolist() == [123.5, 123.5]
    assert linear_weights(np.array([50.0]), 50.0, 9.0).tolist() == [1.0]


# --- losses


@pytest.mark.parametrize("rate", [1e-6, 0.1, 0.9, 1.0])
def test_personal_losses_are_rounded_up_by_their_margin(rate):
    rule = uniform(LinearProfile(MIXED), rate=rate, radius=40.0)
    u = np.array([0.0, 1e-3, 0.5, 3.0, 20.0, 40.0])
    for norm, loss in zip(u, rule.losses_of_norms(u), strict=True):
        exact = exact_loss(rule.of_norms([norm])[0], MIXED.at(norm), rule.weights_of_norms([norm])[0])
        assert 0.9 * 2.0**-46 <= over(loss, exact) <= 1.1 * 2.0**-46
    rows = np.array([[3.0, 0.0], [0.0, 20.0]])  # `losses` measures records, and `at` is one of them
    assert rule.losses(rows) == pytest.approx(rule.losses_of_norms([3.0, 20.0]), rel=1e-13)
    for row in rows:
        own = rule.guarantee().at(row).epsilon()
        exact = exact_loss(rule.of_norms([row.max()])[0], MIXED.at(row.max()), rule.weights_of_norms([row.max()])[0])
        assert 0.8 * 2.0**-46 <= over(own, exact) <= 1.2 * 2.0**-46 + 5e-15


@pytest.mark.parametrize("rate", [1e-6, 0.1, 0.9, 1.0])
def test_the_uniform_supremum_is_rounded_up_by_its_margin(rate):
    rule = uniform(LinearProfile(MIXED), rate=rate, radius=4.0)
    exact = exact_loss(rule.of_norms([4.0])[0], MIXED.at(4.0), rule.weights_of_norms([4.0])[0])
    assert 0.95 * 2.0**-44 <= over(rule.guarantee().epsilon(), exact) <= 1.05 * 2.0**-44 + 5e-15


def coreset_of(influence, share, radius):
    return coreset(
        LinearProfile(influence), share=share, size=50, population=10_000, mean_squared_norm=0.3, radius=radius
    )


@pytest.mark.parametrize(("influence", "share", "radius"), [(MIXED, 0.01, 1.5), (MIXED, 1.0, 1.5), (MIXED, 0.5, 1e-9),
                                                          (Influence("pure", 0.2, 0.0), 0.3, 1.5)])  # fmt: skip
def test_the_coreset_supremum_is_rounded_up_by_its_margin(influence, share, radius):
    """At its turning point where it has one, which is the largest of a fine grid around it."""
    rule = coreset_of(influence, share, radius)
    u = rule.turning_point()
    assert (u is None) == (influence.per_norm == 0.0 or share == 1.0 or radius == 1e-9)
    points = [0.0, radius] if u is None else [*np.linspace(0.99, 1.01, 41) * u, radius]

    def loss(norm):
        q = rule.base + rule.per_square * norm * norm
        return exact_loss(q, influence.at(norm) / q, 1.0)

    exact = max(loss(norm) for norm in points)
    assert 0.99e-12 <= over(rule.worst_loss(), exact) <= 1.01e-12
    assert over(rule.guarantee().epsilon(), exact) <= 1.02e-12


@pytest.mark.parametrize(("kappa", "floor"), [(0.4, 0.01), (2.0, 0.3), (0.05, 0.2)])
def test_the_variance_optimal_supremum_is_rounded_up_by_its_margin(kappa, floor):
    """Its pieces end at the floor, where everybody is kept, and at the radius: one of those ends is worst."""
    rule = variance_optimal(LinearProfile(MIXED), kappa=kappa, radius=1.5, floor=floor)
    losses = []
    for u in (floor / kappa, 1.0 / kappa, 1.5):
        if u <= 1.5:
            q = min(max(kappa * u, floor), 1.0)
            losses.append(exact_loss(q, MIXED.at(u) / q, 1.0))
    assert 0.99e-12 <= over(rule.guarantee().epsilon(), max(losses)) <= 1.02e-12


@pytest.mark.parametrize(
    ("q", "e"), [(0.2, 1e-12), (0.2, 29.9), (0.2, 30.1), (1e-15, 29.0), (1e-15, 31.0), (1.0, 800.0)]
)
def test_amplified_has_its_digits(q, e):
    with mpmath.workdps(400):
        exact = mpmath.log1p(mpmath.mpf(q) * mpmath.expm1(mpmath.mpf(e)))
    assert abs(over(amplified(q, e), exact)) < 2e-15


# --- general profiles


def quadratic(x_scale=1.0):
    """epsilon(w, x) = x w², with (e^f)'' >= 2x e^x w^... at least 2x for w >= 1."""
    return GeneralProfile(
        lambda w, x: x_scale * x * w * w, lambda w, x: 2.0 * x_scale * x * w, lambda x: 2.0 * x_scale * x * np.exp(x)
    )


@pytest.mark.parametrize("epsilon", [0.1, 1.0, 7.0])
def test_a_general_weight_is_the_largest_whose_loss_keeps_its_margin(epsilon):
    x = epsilon * np.array([0.01, 0.2, 0.7, 0.99])
    rule = privacy_constrained(quadratic(), epsilon)
    for record, w in zip(x, rule.weights(x), strict=True):
        with mpmath.workdps(60):
            target = lambda v, c=record: mpmath.log1p(mpmath.expm1(c * v * v) / v) - epsilon  # noqa: E731
            slope = mpmath.diff(target, w)
            room = -float(target(mpmath.mpf(float(w)))) / epsilon
        assert 0.9 * 2.0**-44 <= room <= 1.1 * 2.0**-44 + float(slope) * 4 * math.ulp(w) / epsilon
    for record, loss in zip(x, rule.losses(x), strict=True):
        w = rule.weights(np.array([record]))
        assert loss >= min(exact_loss(probabilities_below(w)[0], record * w[0], w[0]), epsilon)
        assert loss <= epsilon
    small = privacy_constrained(quadratic(), epsilon, max_weight=1.5)
    w, q = small.weights(x[:1]), small.probabilities(x[:1])
    assert w.tolist() == [1.5]
    assert 0.9 * 2.0**-46 <= over(small.losses(x[:1])[0], exact_loss(q[0], x[0] * 1.5, 1.5)) <= 1.1 * 2.0**-46


def test_the_end_of_the_bracket_is_the_formula():
    """b = 2(e^eps - v)/mu + 2 with v = min(e^eps(1) + mu/2, eps'(1) e^eps(1) + 1), either of the two."""
    at_one, slope, mu = np.array([0.5, 0.5]), np.array([3.0, 0.1]), np.array([0.7, 0.7])
    v = [math.exp(0.5) + 0.35, 0.1 * math.exp(0.5) + 1.0]
    expected = [2.0 * (math.e - one) / 0.7 + 2.0 for one in v]
    assert largest_feasible(at_one, slope, mu, 1.0) == pytest.approx(expected, rel=1e-14)


def test_functions_of_a_general_profile_give_one_number_of_their_own_for_each_record():
    x = np.array([0.1, 0.2])
    good = quadratic()
    wrong = {
        "table": GeneralProfile(lambda w, x: np.ones((2, 2)), good.derivative, good.strong_convexity),
        "one": GeneralProfile(lambda w, x: np.ones(1), good.derivative, good.strong_convexity),
        "slope": GeneralProfile(good.epsilon, lambda w, x: np.ones(3), good.strong_convexity),
        "nan": GeneralProfile(good.epsilon, good.derivative, lambda x: np.array([1.0, np.nan])),
        "table of mu": GeneralProfile(good.epsilon, good.derivative, lambda x: np.ones((2, 1))),
    }
    for name, profile in wrong.items():
        with pytest.raises(InvalidInput, match="one number per record"):
            privacy_constrained(profile, 1.0).weights(x)
        assert name
    some = GeneralProfile(good.epsilon, good.derivative, lambda x: np.array([1.0, 0.0]))
    with pytest.raises(InvalidInput, match="above 0 for every record"):
        privacy_constrained(some, 1.0).weights(x)
    none = GeneralProfile(lambda w, x: -0.5 * x * w, lambda w, x: -0.5 * x, good.strong_convexity)
    assert np.all(privacy_constrained(none, 1.0, max_weight=7.0).weights(x) >= 1.0)  # below 0 counts as 0


def test_a_record_at_the_target_is_kept_and_one_above_is_refused():
    linear = GeneralProfile(lambda w, x: x * w, lambda w, x: x + 0.0 * w, lambda x: x**2 * np.exp(x))
    assert privacy_constrained(linear, 1.0).weights(np.array([1.0, 0.5]))[0] == 1.0
    with pytest.raises(Infeasible, match="more than epsilon 1 even without sampling"):
        privacy_constrained(linear, 1.0).weights(np.array([0.5, np.nextafter(1.0, 2.0)]))


# --- what every rule says of itself


def test_a_limit_of_the_numbers_is_the_probability_at_the_end_and_a_billionth():
    rule = uniform(LinearProfile(MIXED), rate=0.25, radius=4.0)
    assert rule.number_bound == pytest.approx(2**62 * (1 + 1e-9), rel=1e-12)
    assert uniform(LinearProfile(MIXED), rate=1.0, radius=4.0).number_bound is None
    assert uniform(LinearProfile(MIXED), rate=1.0 - 1e-10, radius=4.0).number_bound is None
    assert privacy_constrained(LinearProfile(lambda x: np.abs(x)), 1.0).number_bound is None
    assert privacy_constrained(LinearProfile(Influence("pure", 0.0, 1e-320)), 1.0).number_bound is None
    assert privacy_constrained(LinearProfile(Influence("pure", 2.0, 1.0)), 1.0).number_bound is None


def test_expected_sizes_count_every_bin():
    rule = variance_optimal(LinearProfile(MIXED), kappa=0.1, radius=4.0, floor=0.05)
    assert rule.expected_size([0.1, 1.0, 4.0], [100.0, 10.0, 5.0]) == pytest.approx(5.0 + 1.0 + 2.0)
    assert rule.expected_size([1.0, 4.0]) == pytest.approx(0.5)


def test_norms_just_above_the_radius_are_rounding_and_more_are_refused():
    for rule in (uniform(LinearProfile(MIXED), rate=0.5, radius=3.0), coreset_of(MIXED, 0.5, 3.0)):
        at_end = rule.weights_of_norms([3.0])
        assert rule.weights_of_norms([3.0 * (1 + 2.0**-45)]) == at_end
        assert rule.weights_of_norms([]).size == 0
        with pytest.raises(InvalidInput, match="norms must be at most the declared radius 3"):
            rule.weights_of_norms([0.5, 3.0 * (1 + 2.0**-43)])


def test_records_are_one_number_or_one_row_each():
    rule = privacy_constrained(LinearProfile(MIXED), 1.0, radius=2.0)
    assert rule.weights([1.0, -2.0]) == pytest.approx(rule.weights([[1.0], [-2.0]]), rel=1e-13)
    assert np.array_equal(rule.weights(np.array([True, False])), rule.weights(np.array([1.0, 0.0])))
    for bad in (1.0, np.ones((2, 2, 2)), ["a"], [1j]):
        with pytest.raises(InvalidInput, match="records must be an array of numbers, one row each, got"):
            rule.weights(bad)


def test_a_rule_at_the_boundary_of_its_influence():
    """Rounding by 2^-46 at a declared radius is none of its business; more is refused, and so is any without one."""
    for off, passes in ((2.0**-47, True), (2.0**-45, False)):
        influence = Influence("pure", 0.0, 1.0 + off)
        if passes:
            rule = privacy_constrained(LinearProfile(influence), 1.0, radius=1.0)
            assert rule.weights([1.0]).tolist() == [1.0]
            assert 1.0 + off <= rule.guarantee().epsilon() <= 1.0 + off + 5e-15
            assert rule.losses([1.0])[0] == pytest.approx(1.0 + off, rel=1e-15)
        else:
            with pytest.raises(
                Infeasible, match="a record of norm 1 has influence 1 even without sampling, above the 1"
            ):
                privacy_constrained(LinearProfile(influence), 1.0, radius=1.0)
    rule = privacy_constrained(LinearProfile(lambda x: np.abs(x[:, 0])), 1.0, radius=1.0)
    assert rule.weights([[1.0]]).tolist() == [1.0]
    with pytest.raises(Infeasible, match="some records have more influence than the 1 that epsilon 1 allows"):
        rule.weights([[1.0 + 2.0**-47]])
    assert rule.guarantee().epsilon() == 1.0
    with pytest.raises(NoTheorem, match="not a function of the norm"):
        rule.weights_of_norms([1.0])
    with pytest.raises(NoTheorem, match="not a function of the norm"):
        rule.losses_of_norms([1.0])
    assert isinstance(rule, Rule)
