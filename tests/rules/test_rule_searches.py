"""Searches for noise, sizes, worst cases and tables: where they look, how often, and where they end."""

import math
from itertools import pairwise

import mpmath
import numpy as np
import pytest

from privamp import (
    Gaussian,
    GaussianProfile,
    GeneralProfile,
    Infeasible,
    Influence,
    InvalidInput,
    Laplace,
    LinearProfile,
    NormHistogram,
    NoTheorem,
    PureDP,
    coreset,
    noise_for_guarantee,
    noise_for_size,
    privacy_constrained,
    size_for_noise,
    uniform,
    variance_optimal,
)
from privamp.numerics.roots import NumericalFailure
from privamp.rules import gaussian_weights
from privamp.rules.cells import _edges, _undominated, worst_of_cells
from privamp.rules.gaussian_weights import _grid, excess, gaussian_table, largest_influence
from privamp.rules.losses import personal_epsilons
from privamp.rules.noise_and_size import EVALUATIONS, _next
from privamp.rules.sampled_curves import record_profile, with_first, without_first

PUBLIC = NormHistogram([0.5, 1.0, 4.0], [500.0, 400.0, 100.0])
UNIT = GaussianProfile(Influence("gaussian", 0.0, 1.0))
INF = math.inf


# --- noise for a size


def test_the_next_point_is_a_secant_step_or_the_chord_or_the_middle():
    # not bracketed yet: the secant through (0, 2) and (1, 1), if it goes on by less than 30
    assert _next(1.0, 1.0, INF, -INF, (0.0, 2.0), (1.0, 1.0)) == pytest.approx(2.0)
    assert _next(1.0, 1.0, INF, -INF, (0.0, 1.04), (1.0, 1.0)) == pytest.approx(1.0 + 25.0)
    assert _next(1.0, 1.0, INF, -INF, (0.0, 1.03), (1.0, 1.0)) == 5.0  # 33 is too far: 4 on
    assert _next(1.0, 1.0, INF, -INF, (0.0, 0.5), (1.0, 1.0)) == 5.0  # a slope that grows says nothing
    assert _next(1.0, 1.0, INF, -INF, (1.0, 1.0), (1.0, 1.0)) == pytest.approx(2.0)  # none: -1
    # bracketed: the secant inside, else the chord, else the middle
    assert _next(0.0, 3.0, 4.0, -1.0, (4.0, -1.0), (0.0, 3.0)) == pytest.approx(3.0)
    assert _next(0.0, 3.0, 4.0, -1.0, (0.0, -5.0), (4.0, -1.0)) == pytest.approx(3.0)  # growing: the chord
    assert _next(0.0, 3.0, 4.0, -1.0, (3.9, -0.9), (4.0, -0.901)) == pytest.approx(3.0)  # outside: the chord
    assert _next(0.0, 0.0, 4.0, -1.0, (0.0, -5.0), (4.0, -1.0)) == 2.0  # a chord that ends at low: the middle


@pytest.mark.parametrize(
    ("epsilon", "times"), [(0.1, (6, 10, 10)), (1.0, (5, 7, 8)), (10.0, (3, 4, 4)), (100.0, (3, 3, 3))]
)
def test_few_evaluations_find_the_noise(epsilon, times):
    """No more than in version 0.2; ten are the most that is allowed."""
    largest = noise_for_size(Laplace, PUBLIC, size=1e-9 + size_of_least(epsilon), epsilon=epsilon)
    assert largest.evaluations == 1
    assert largest.noise == pytest.approx(4.0 / epsilon * (1.0 + 1e-12), rel=2e-16)
    for share, most in zip((0.9, 0.5, 0.1), times, strict=True):
        found = noise_for_size(Laplace, PUBLIC, size=share * largest.expected_size, epsilon=epsilon)
        assert found.evaluations <= most
        near = 1e-4 if most < EVALUATIONS else 2e-2  # the last one passes, near or not
        assert 1.0 - near <= found.expected_size / (share * largest.expected_size) <= 1.0
        assert found.mechanism == Laplace(found.noise)
        assert found.expected_size == pytest.approx(size_for_noise(found.mechanism, PUBLIC, epsilon=epsilon))


def size_of_least(epsilon):
    rule = privacy_constrained(LinearProfile.of(Laplace(4.0 / epsilon * (1.0 + 1e-12))), epsilon, radius=4.0)
    return float(np.sum(rule.of_norms([0.5, 1.0, 4.0]) * [500.0, 400.0, 100.0]))


def test_the_largest_size_is_met_and_a_larger_one_refused():
    most = size_of_least(1.0)
    for share in (1.0 + 0.9e-9, 1.0 - 0.9e-4):
        assert noise_for_size(Laplace, PUBLIC, size=most * share, epsilon=1.0).evaluations == 1
    assert noise_for_size(Laplace, PUBLIC, size=most * (1.0 - 1.1e-4), epsilon=1.0).evaluations > 1
    with pytest.raises(Infeasible, match=r"cannot be reached at epsilon 1: .* allows, 4, it is .*; use a smaller size"):
        noise_for_size(Laplace, PUBLIC, size=most * (1.0 + 1.2e-9), epsilon=1.0)


def test_the_influence_of_a_family_must_halve_when_the_noise_doubles():
    for power, fine in ((1.0 + 1e-9, True), (1.0 + 4e-9, False), (1.0 - 4e-9, False)):
        make = lambda b, power=power: Laplace(b**power)  # noqa: E731
        if fine:
            assert noise_for_size(make, PUBLIC, size=20.0, epsilon=1.0).expected_size <= 20.0
        else:
            with pytest.raises(InvalidInput, match="whose influence halves when the scale doubles"):
                noise_for_size(make, PUBLIC, size=20.0, epsilon=1.0)


def test_what_sizes_refuse():
    with pytest.raises(InvalidInput, match=r"radius must not be below the histogram's largest norm, got 3\.9 instead"):
        size_for_noise(Laplace(9.0), PUBLIC, epsilon=1.0, radius=3.9)
    assert size_for_noise(Laplace(9.0), PUBLIC, epsilon=1.0, radius=4.0) == size_for_noise(
        Laplace(9.0), PUBLIC, epsilon=1.0
    )
    with pytest.raises(InvalidInput, match="delta must be 0 for a pure mechanism, got 1e-06 instead"):
        size_for_noise(Laplace(9.0), PUBLIC, epsilon=1.0, delta=1e-6)
    with pytest.raises(NoTheorem, match="PureDP does not state how far a record moves it"):
        size_for_noise(PureDP(1.0), PUBLIC, epsilon=1.0)
    capped = size_for_noise(Laplace(1e6), PUBLIC, epsilon=1.0, max_weight=50.0)
    assert capped == pytest.approx(20.0, rel=1e-9)  # a thousand records with weight 50


def test_noise_for_a_guarantee_is_the_least():
    def rule(mechanism):
        kind = GaussianProfile if isinstance(mechanism, Gaussian) else LinearProfile
        return uniform(kind.of(mechanism), rate=0.1, radius=4.0)

    pure = noise_for_guarantee(Laplace, rule, epsilon=1.0).scale
    assert math.log1p(0.1 * math.expm1(40.0 / pure)) <= 1.0
    assert math.log1p(0.1 * math.expm1(40.0 / (pure * (1.0 - 2e-10)))) > 1.0
    sigma = noise_for_guarantee(Gaussian, rule, epsilon=1.0, delta=1e-5).sigma
    assert rule(Gaussian(sigma)).guarantee().delta(1.0) <= 1e-5
    assert rule(Gaussian(sigma * (1.0 - 2e-9))).guarantee().delta(1.0) > 1e-5
    with pytest.raises(Infeasible, match="no noise from 2 to 3 reaches epsilon 1; raise it or widen `within`"):
        noise_for_guarantee(Laplace, rule, epsilon=1.0, within=(2.0, 3.0))
    assert noise_for_guarantee(Laplace, rule, epsilon=1.0, within=(50.0, 60.0)).scale == 50.0
    assert noise_for_guarantee(Laplace, rule, epsilon=4.1e-9).scale == pytest.approx(4.0 / 4.1e-9, rel=1e-6)
    assert noise_for_guarantee(Laplace, lambda m: uniform(LinearProfile.of(m), rate=1.0, radius=1.0), epsilon=1e9)


# --- worst cases


def test_the_turning_point_of_a_coreset_is_where_its_loss_turns():
    """2 k u (E - 1 + e^-E) = t there, left of the largest such u; the loss is smaller on both sides."""
    random = np.random.default_rng(3)
    turned = 0
    for _ in range(80):
        a, t, share = 10 ** random.uniform(-4, 0), 10 ** random.uniform(-4, 1), 10 ** random.uniform(-5, -0.01)
        rule = coreset(
            LinearProfile(Influence("pure", a, t)), share=share, size=50, population=10_000,
            mean_squared_norm=10 ** random.uniform(-1.5, 0), radius=1.0,
        )  # fmt: skip
        b, k, u = rule.base, rule.per_square, rule.turning_point()

        def pull(u, a=a, t=t, b=b, k=k):
            e = (a + t * u) / (b + k * u * u)
            return 2.0 * k * u * (e + math.expm1(-e))

        grid = np.geomspace(1e-9, 1.0, 4001)
        pulls = np.array([pull(x) for x in grid])
        if u is None:
            assert np.max(pulls) <= t * (1 + 1e-6)
        else:
            turned += 1
            assert pull(u) == pytest.approx(t, rel=1e-9)
            assert pull(u * (1 - 1e-3)) < t < pull(min(u * (1 + 1e-3), 1.0)) or u > 0.99
            assert np.all(pulls[grid < u * 0.999] < t)
    assert turned > 10


def test_edges_of_cells_are_close_everywhere():
    """24 an octave down to a sixteenth of the norm of the heaviest weight, and 512 evenly spaced ones."""
    rule = variance_optimal(GaussianProfile.of(Gaussian(30.0)), kappa=0.2, radius=3.0, floor=2.0**-6, delta=1e-5)
    edges = _edges(rule, 3.0)
    assert (edges[0], edges[-1]) == (0.0, 3.0)
    assert np.all(np.diff(edges) > 0.0)
    assert set(np.linspace(0.0, 3.0, 512)) <= set(edges)
    ladder = 3.0 * np.exp2(-np.linspace(10.0, 0.0, 241))
    assert np.all(np.min(np.abs(edges[:, None] / ladder[:-1] - 1.0), axis=0) < 1e-12)
    assert edges[1] == pytest.approx(3.0 * 2.0**-10)
    assert edges.size == 512 + 240


def test_only_cells_that_another_covers_are_left_out():
    random = np.random.default_rng(1)
    for _ in range(50):
        q = np.sort(random.integers(1, 9, 12) / 10.0)
        theta = random.integers(1, 6, 12).astype(float)
        found = list(zip(*_undominated(q, theta), strict=True))
        pairs = list(zip(q, theta, strict=True))
        assert all(any(a <= c and b <= d for c, d in found) for a, b in pairs)  # each is covered
        assert all(b > d for (_, b), (_, d) in pairwise(found))  # the rest cover one another nowhere
        assert set(found) <= set(pairs)


def test_a_worst_case_needs_a_public_domain():
    free = privacy_constrained(LinearProfile(lambda x: np.abs(x)), 1.0)
    unbounded = privacy_constrained(LinearProfile(Influence("pure", 0.5, 0.0)), 1.0)
    beyond = privacy_constrained(LinearProfile(Influence("pure", 2.0, 1.0)), 1.0)
    for rule in (free, unbounded, beyond):
        with pytest.raises(NoTheorem, match="the worst case needs a declared public domain"):
            worst_of_cells(rule, Influence("pure", 0.0, 1.0))


def test_the_largest_of_several_curves_is_taken_at_every_epsilon():
    """Also in more pieces than one: 2^18 pairs at once."""
    random = np.random.default_rng(2)
    q, theta = random.uniform(0.1, 0.9, 700), random.uniform(0.1, 2.0, 700)
    epsilon = np.linspace(0.0, 3.0, 401)
    for kind in ("gaussian", "pure"):
        profile = record_profile(kind, q, theta)
        for curve, bound in ((profile.forward, with_first), (profile.backward, without_first)):
            expected = np.array([np.max(bound(kind, q, theta, e)) for e in epsilon])
            assert np.array_equal(curve.log_delta(epsilon), expected)
            assert curve.log_delta(epsilon.reshape(1, 401)).shape == (1, 401)
            assert curve.log_delta(np.empty(0)).size == 0
    pure = record_profile("pure", q, theta)
    assert pure.forward.largest_loss == pytest.approx(np.max(np.log1p(q * np.expm1(theta))))
    assert pure.backward.largest_loss == pytest.approx(np.max(-np.log1p(q * np.expm1(-theta))))
    nothing = record_profile("gaussian", q, np.zeros(700))
    assert (nothing.forward.largest_loss, nothing.backward.largest_loss) == (0.0, 0.0)
    some = record_profile("gaussian", q[:2], np.array([0.0, 1.0]))
    assert (some.forward.largest_loss, some.backward.largest_loss) == (INF, INF)


@pytest.mark.parametrize(("q", "theta"), [(0.3, 2.0), (0.9, 3.0), (1.0, 5.0), (0.99, 50.0), (1e-9, 5.0), (0.6, 0.9)])
def test_the_largest_losses_of_one_record_have_their_digits(q, theta):
    profile = record_profile("pure", np.array([q]), np.array([theta]))
    with mpmath.workdps(60):
        there = mpmath.log1p(mpmath.mpf(q) * mpmath.expm1(theta))
        back = -mpmath.log1p(mpmath.mpf(q) * mpmath.expm1(-mpmath.mpf(theta)))
    assert profile.forward.largest_loss == pytest.approx(float(there), rel=4e-15)
    assert profile.backward.largest_loss == pytest.approx(float(back), rel=4e-15)


# --- Gaussian tables and losses


def test_the_grid_has_2_to_the_14_points_an_octave():
    assert _grid(1.0, 2.0).tolist() == [*(1.0 + np.arange(2**14) / 2**14), 2.0]
    inner = _grid(0.3, 0.31)
    assert inner[0] <= 0.3 < inner[1]
    assert inner[-1] <= 0.31 < inner[-1] + 2.0**-16
    assert np.allclose(np.diff(inner), 2.0**-16)


@pytest.mark.parametrize(("epsilon", "delta"), [(1.0, 1e-6), (0.1, 1e-3)])
def test_the_largest_influence_is_met_and_one_a_little_larger_is_not(epsilon, delta):
    q = np.array([0.01, 0.1, 0.7, 1.0])
    s = largest_influence(q, epsilon, delta)
    assert np.all(excess(q, s, epsilon, delta) <= 0.0)
    assert np.all(excess(q, s * (1 + 1e-12), epsilon, delta) > 0.0)
    with pytest.raises(NumericalFailure, match="not even the smallest influence meets"):
        largest_influence(np.ones(1), 0.0, 1e-300)
    assert largest_influence(np.array([1e-7]), 1.0, 1e-6).tolist() == [INF]  # below delta, any record is hidden


def test_a_table_is_right_to_its_grid_and_ends_where_sampling_does():
    table = gaussian_table(1.0, 1e-6, 1e-4)
    assert table.weights[-1] == 1.0
    assert np.all(np.diff(table.weights) <= 0.0)
    s = np.array([1e-12, 0.01, 0.1, 0.2, table.s_full * (1 - 1e-9), table.s_full])
    w = table.look_up(s)
    assert w[0] == pytest.approx(1e4, rel=1e-5)
    assert w[-1] == 1.0
    for influence, weight in zip(s[1:4], w[1:4], strict=True):
        q = np.array([1.0 / weight])
        assert excess(q, np.array([influence]), 1.0, 1e-6)[0] <= 0.0
        less = q * (1 - 3e-4)
        assert excess(less, np.array([influence]), 1.0, 1e-6)[0] > 0.0
    assert table.look_up(np.full((2, 3), 0.1)).shape == (2, 3)


def test_a_table_with_one_entry_that_fails_is_not_given_out(monkeypatch):
    real = gaussian_weights.excess
    monkeypatch.setattr(gaussian_weights, "excess", lambda q, s, e, d: np.where(s == 0.125, 1.0, real(q, s, e, d)))
    with pytest.raises(
        NumericalFailure, match="the table of Gaussian probabilities does not satisfy its own condition"
    ):
        gaussian_weights.gaussian_table.__wrapped__(1.0, 1e-6, 1e-2)


def test_a_gaussian_rule_is_solved_a_little_inside_its_target():
    for epsilon, delta in ((1.0, 1e-6), (30.0, 0.1)):
        rule = privacy_constrained(UNIT, epsilon, delta)
        assert rule.inner == (epsilon - 1e-13 * (1.0 + epsilon), delta * (1.0 - 1e-9))
        assert rule.max_weight == 1.0 / delta
    assert privacy_constrained(UNIT, 1e-14, 0.1).inner[0] == 0.0
    assert privacy_constrained(LinearProfile(Influence("pure", 0.0, 1.0)), 1.0).max_weight == 2.0**40


def test_personal_epsilons_of_many_records_are_those_of_each():
    random = np.random.default_rng(5)
    q, theta = random.uniform(0.001, 1.0, 17_000), random.uniform(0.01, 2.0, 17_000)
    found = personal_epsilons(q, theta, 1e-3)
    for i in (0, 16_383, 16_384, 16_999):
        assert found[i] == personal_epsilons(q[i : i + 1], theta[i : i + 1], 1e-3)[0]
        assert with_first("gaussian", q[i], theta[i], found[i]) <= math.log(1e-3)
        assert with_first("gaussian", q[i], theta[i], found[i] * (1 - 1e-9)) > math.log(1e-3) or found[i] == 0.0
    assert personal_epsilons(q[:6].reshape(2, 3), theta[0], 1e-3).shape == (2, 3)
    assert personal_epsilons(np.empty(0), np.empty(0), 1e-3).size == 0
    assert personal_epsilons(1.0, 60.0, 1e-9) == pytest.approx(60.0**2 / 2 + 60.0 * 6.0, rel=0.01)  # after doublings
    with pytest.raises(NumericalFailure, match="could not be bracketed"):
        personal_epsilons(1.0, 1e12, 1e-9)


# --- what rules refuse


def test_refusals_of_rules():
    linear = LinearProfile(Influence("pure", 0.0, 0.1))
    with pytest.raises(
        InvalidInput, match="profile must be a LinearProfile, GaussianProfile or GeneralProfile, got int"
    ):
        privacy_constrained(3, 1.0)
    with pytest.raises(InvalidInput, match=r"delta must be 0 for a pure profile, got 0\.1"):
        privacy_constrained(linear, 1.0, 0.1)
    for delta in (0.0, 1.0):
        with pytest.raises(InvalidInput, match="delta must be a number strictly between 0 and 1"):
            privacy_constrained(UNIT, 1.0, delta)
    for profile, delta in ((linear, 0.0), (UNIT, 0.1)):
        for cap in (0.5, 2.0**65):
            with pytest.raises(InvalidInput, match="max_weight must be a number from 1 to"):
                privacy_constrained(profile, 1.0, delta, max_weight=cap)
        assert privacy_constrained(profile, 1.0, delta, max_weight=1.0).weights_of_norms([0.0]).tolist() == [1.0]
        with pytest.raises(InvalidInput, match="radius must be a finite number above 0"):
            privacy_constrained(profile, 1.0, delta, radius=0.0)
    general = GeneralProfile(lambda w, x: x * w, lambda w, x: x, lambda x: x)
    rule = privacy_constrained(general, 1.0)
    for call in (rule.weights_of_norms, rule.losses_of_norms):
        with pytest.raises(NoTheorem, match="not a function of the norm"):
            call([1.0])
    with pytest.raises(InvalidInput, match="takes a pure influence, got a gaussian one instead"):
        LinearProfile(Influence("gaussian", 0.0, 1.0))
    with pytest.raises(InvalidInput, match="takes an Influence or a function of the records, got float instead"):
        LinearProfile(1.0)
    with pytest.raises(NoTheorem, match="Gaussian has no pure influence, so LinearProfile does not describe it"):
        LinearProfile.of(Gaussian(1.0))
    for values in (np.array([1.0, -1.0]), np.array([1.0, INF]), np.ones((2, 1))):
        own = privacy_constrained(LinearProfile(lambda rows, values=values: values), 1.0)
        with pytest.raises(InvalidInput, match="one finite number of at least 0 per record"):
            own.weights(np.ones((2, 1)))


@pytest.mark.parametrize(
    ("given", "match"),
    [
        ({}, "uniform takes either rate, or size and population"),
        ({"rate": 0.5, "size": 3}, "uniform takes either rate, or size and population"),
        ({"rate": 0.5, "population": 3}, "uniform takes either rate, or size and population"),
        ({"size": 3}, "uniform takes either rate, or size and population"),
        ({"size": 11, "population": 10}, "size must be at most the population, got 11 of 10 instead"),
        ({"size": 0, "population": 10}, "size must be a finite number above 0"),
        ({"rate": 2.0**-65}, "rate must be a number from"),
        ({"rate": 0.5, "delta": 1.5}, "delta must be a number from 0 to 1"),
        ({"rate": 0.5, "radius": 0.0}, "radius must be a finite number above 0"),
    ],
)
def test_refusals_of_the_uniform_rule(given, match):
    with pytest.raises(InvalidInput, match=match):
        uniform(LinearProfile(Influence("pure", 0.0, 1.0)), **{"radius": 1.0, **given})


def test_ends_that_are_no_refusal():
    linear = LinearProfile(Influence("pure", 0.0, 1.0))
    assert uniform(linear, size=10, population=10, radius=1.0).rate == 1.0
    assert uniform(linear, rate=2.0**-64, radius=1.0).rate == 2.0**-64
    assert variance_optimal(linear, kappa=1.0, radius=1.0, floor=2.0**-64).floor == 2.0**-64
    for bad in (2.0**-65, 1.5):
        with pytest.raises(InvalidInput, match="floor must be a number from"):
            variance_optimal(linear, kappa=1.0, radius=1.0, floor=bad)
    for bad in ({"kappa": 0.0}, {"radius": 0.0}):
        with pytest.raises(InvalidInput, match="must be a finite number above 0"):
            variance_optimal(linear, **{"kappa": 1.0, "radius": 1.0, **bad})
    with pytest.raises(InvalidInput, match="delta must be a number from 0 to 1"):
        variance_optimal(linear, kappa=1.0, radius=1.0, delta=2.0)
    assert not variance_optimal(linear, kappa=1.0, radius=1.0, public=False).is_public
