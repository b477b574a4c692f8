"""What `bootstrap.run` answers, refuses and keeps to itself."""

import json
import math

import numpy as np
import pytest
from scipy.special import ndtr

from privamp import Budget, Key, Neighbors, bootstrap
from privamp.bootstrap import drawing
from privamp.bootstrap.spread import Spread, correction, coverage, misses
from privamp.errors import InvalidInput
from privamp.testing import seeded_key

CHEAP = {"resamples": 20, "epsilon": 2.0, "delta": 1e-5}  # one plan for most tests: it is worked out once
SECRET = 3.14159265


@pytest.fixture(scope="module")
def x():
    values = np.random.default_rng(5).normal(1.0, 1.0, 400)
    values[7] = SECRET
    return values


def run(values, statistic="mean", **changes):
    return bootstrap.run(values, statistic, **({"bounds": (-3.0, 5.0), "key": seeded_key(1)} | CHEAP | changes))


def test_the_same_key_gives_the_same_answer_on_any_number_of_cores(x):
    one, two, other = run(x, jobs=1), run(x, jobs=2), run(x, key=seeded_key(2))
    assert one == two
    assert one != other


def test_estimates_are_near_the_truth(x):
    mean, variance = run(x), run(x, "variance")
    assert abs(mean.value - np.mean(x)) < 5 * mean.standard_error
    assert abs(variance.value - np.var(x, ddof=1)) < 5 * variance.standard_error
    low, high = mean.interval(0.95)
    assert low < mean.value < high
    assert variance.interval(0.95)[0] >= 0.0


def test_a_huge_epsilon_takes_the_least_noise_that_can_be_certified(x):
    found = run(x, method="m-out-of-n", epsilon=1e4, resamples=8)
    assert 10.0 < found.guarantee.epsilon(1e-5) <= 1e4
    assert found.noise_error < found.sampling_error
    assert abs(found.value - np.mean(np.clip(x, -3.0, 5.0))) < 5 * found.standard_error


def test_quantiles_end_at_public_edges(x):
    found = run(x, "quantile:0.5")
    edges = np.linspace(-3.0, 5.0, 33)
    assert all(np.isclose(edges, end).any() for end in found.interval(0.95))
    assert found.interval()[0] <= np.median(x) <= found.interval()[1]
    assert run(x, "median") == found


def test_a_quantile_with_bins_of_ones_own(x):
    found = run(x, "quantile:0.5:64")
    edges = np.linspace(-3.0, 5.0, 65)
    assert all(np.isclose(edges, end).any() for end in found.interval(0.95))
    assert found == run(x, bootstrap.Quantile((-3.0, 5.0), 0.5, 64), bounds=None)
    with pytest.raises(InvalidInput, match="whole number"):
        run(x, "quantile:0.5:many")


def test_a_line_is_found():
    rng = np.random.default_rng(0)
    X = rng.uniform(0.0, 10.0, 400)
    y = 2.0 + 0.5 * X + rng.normal(0.0, 0.5, 400)
    found = run((X, y), "regression", bounds=[(0.0, 10.0), (0.0, 9.0)])
    assert list(found.names) == ["intercept", "x1"]
    for finding, truth in zip(found, (2.0, 0.5), strict=True):
        assert finding.interval()[0] < truth < finding.interval()[1]
        assert finding.standard_error < 3.0
    assert found["x1"].value == found.value[1]


def test_a_line_that_noise_hides_has_no_interval():
    rng = np.random.default_rng(0)
    X = rng.uniform(4.9, 5.1, 400)
    found = run((X, X), "regression", bounds=[(0.0, 10.0), (0.0, 9.0)])
    assert found["x1"].interval() == (-np.inf, np.inf)


def test_without_noise_the_regression_is_least_squares():
    rng = np.random.default_rng(3)
    X, noise = rng.uniform(-2.0, 2.0, (50, 2)), rng.normal(0.0, 0.1, 50)
    y = 1.0 + X @ [0.5, -0.25] + noise
    statistic = bootstrap.Regression([(-2.0, 2.0), (-2.5, 3.0), (-5.0, 5.0)])
    one = statistic.compute(statistic.rows((X, y)), np.ones(50))
    from privamp.bootstrap.statistic import Series

    found = statistic.conclude(Series(np.stack([one, one]), 1e-9, Spread(2, 1.0, 0.95), 1.0))
    exact = np.linalg.lstsq(np.column_stack([np.ones(50), X]), y, rcond=None)[0]
    np.testing.assert_allclose([f.value for f in found], exact, rtol=1e-6)


def test_ones_own_statistic(x):
    whole = run(x, np.median, bounds=(0.0, 2.0))
    declared = run(x, lambda v: float(np.mean(np.clip(v, 0, 2))), bounds=(0.0, 2.0), sensitivity=lambda m: 2.0 / m)
    assert declared.noise_error < 0.1 * whole.noise_error
    assert any("declared sensitivity" in a for a in declared.guarantee.assumes)
    assert not any("declared sensitivity" in a for a in whole.guarantee.assumes)


def test_a_statistic_that_fails_says_nothing_about_the_records(x):
    def picky(values):
        if SECRET in values:
            raise ValueError(f"found {SECRET}")
        return 1.0

    assert np.isfinite(run(x, picky, bounds=(0.0, 2.0)).value)
    with pytest.raises(InvalidInput, match="fails on 20 zeros"):
        run(x, lambda values: values.no_such_thing, bounds=(0.0, 2.0))


def test_the_guarantee_is_the_budget_and_is_marked(x):
    found = run(x)
    assert found.guarantee.delta(2.0) <= 1e-5
    assert str(found.guarantee.neighbors) == "replace-one"
    assert not found.guarantee.is_private
    assert "NOT PRIVATE" in repr(found.guarantee)
    assert bootstrap.run(x, bounds=(-3.0, 5.0), **CHEAP).guarantee.is_private
    assert any("number of records is public" in a for a in found.guarantee.assumes)


def test_nothing_secret_is_shown(x):
    found = run(x)
    for text in (repr(found), json.dumps(found.to_json()), repr(found.plan)):
        assert "3.14159" not in text
        assert "positions" not in text
        assert "counts" not in text
    assert found.to_json()["value"] == found.value


def test_values_outside_the_bounds_are_clipped(x):
    far = x.copy()
    far[far > 2.0] = 1e300
    near = np.where(far > 2.0, 2.0, far)
    assert run(far, bounds=(-3.0, 2.0)) == run(near, bounds=(-3.0, 2.0))


def test_a_real_key_draws_once(x):
    key = Key.generate()
    bootstrap.run(x, bounds=(-3.0, 5.0), key=key, **CHEAP)
    with pytest.raises(InvalidInput, match="not a fresh draw"):
        bootstrap.run(x, bounds=(-3.0, 5.0), key=key, **CHEAP)


def test_progress_is_told(x):
    seen = []
    run(x, progress=lambda done, total: seen.append((done, total)))
    assert seen == [(k, 20) for k in range(1, 21)]


def test_groups_of_the_little_bootstrap_share_their_subset(x):
    """The second stage draws from the first: no resample of a group holds a record outside its subset."""
    procedure = bootstrap.Procedure("little", 400, (5, 50), 3, 4)
    chosen = bootstrap.Plan(procedure, 1.0, 1e-6, 0.95, 1e9, None)  # hardly any noise
    statistic = bootstrap.Quantile((-0.5, 399.5), bins=400)
    rows = statistic.rows(np.arange(400.0))
    averages = drawing.group_averages(chosen, statistic, rows, seeded_key(3), 1, None)
    held = (averages > 1e-3).sum(axis=1)
    assert averages.shape == (3, 400)
    assert np.all(held <= 5)
    np.testing.assert_allclose(averages.sum(axis=1), 1.0, atol=1e-4)


@pytest.mark.parametrize(
    ("changes", "sentence"),
    [
        ({"bounds": None}, "bounds must be two public numbers"),
        ({"bounds": (3, 1)}, "lowest below the highest"),
        ({"bounds": (0, np.inf)}, "must be finite"),
        ({"bounds": "wide"}, "must be two numbers"),
        ({"statistic": np.median, "bounds": None}, "bounds of the statistic must be two"),
        ({"statistic": "mode"}, "statistic must be one of"),
        ({"statistic": "quantile"}, "written as quantile:0.9"),
        ({"statistic": "quantile:2"}, "strictly between 0 and 1"),
        ({"statistic": "regression"}, "bounds must"),
        ({"statistic": "mean", "sensitivity": 1.0}, "is proved"),
        ({"method": "jackknife"}, "method must be one of"),
        ({"resamples": 0}, "at least 2 resamples, got 0"),
        ({"resamples": 1}, "at least 2 resamples, got 1"),
        ({"resamples": 10**9}, "at most 100000"),
        ({"resamples": 2.5}, "whole numbers"),
        ({"resamples": (10, 3)}, "only the little bootstrap"),
        ({"resamples": (10, 0), "method": "little"}, "at least 1"),
        ({"size": 400}, "use at most 399"),
        ({"size": 0}, "at least 1"),
        ({"size": 10**9, "method": "m-out-of-n"}, "too much memory"),
        ({"size": (400, 10), "method": "little"}, "use at most 399"),
        ({"size": (20, 10)}, "has 1 size"),
        ({"size": 1, "statistic": "variance"}, "at least 2 entries"),
        ({"epsilon": 0}, "epsilon must be"),
        ({"delta": 0}, "delta must be"),
        ({"confidence": 1}, "confidence must be"),
        ({"jobs": 0}, "jobs must be"),
        ({"key": 7}, "key must be a Key"),
    ],
)
def test_bad_input_is_one_sentence(x, changes, sentence):
    with pytest.raises(InvalidInput, match=sentence) as caught:
        run(x, **changes)
    assert "3.14159" not in str(caught.value)


@pytest.mark.parametrize("bad", [[], [1.0], "words", np.ones((3, 2)), np.array(["a", "b"]), np.array([1j, 2])])
def test_bad_values_are_refused_without_showing_them(bad):
    with pytest.raises(InvalidInput, match="values must be"):
        run(bad)


@pytest.mark.parametrize(("groups", "ratio"), [(2, 1.0), (5, 4.0), (20, 2.0), (80, 4.2), (80, 40.0)])
def test_the_interval_covers_whatever_the_spread_is(groups, ratio):
    boost, stretch = correction(groups, ratio, 0.95)
    assert coverage(groups, ratio, 0.95, boost, stretch).min() >= 0.949
    uncorrected = coverage(groups, ratio, 0.95, 0.0, 1.0).min()
    assert uncorrected < 0.95  # the negative control: taking the noise off without correction


def test_the_default_covers_evenly():
    assert coverage(80, 4.2, 0.95, *correction(80, 4.2, 0.95)).max() < 0.97


@pytest.mark.parametrize("level", [0.99, 0.999, 0.9999])
@pytest.mark.parametrize("groups", [10, 80])
def test_intervals_of_every_level_miss_as_often_as_they_say(groups, level):
    boost, stretch = correction(groups, 4.2, level)
    assert misses(groups, 4.2, level, boost, stretch).max() <= 1.021 * (1.0 - level)
    at_95 = correction(groups, 4.2, 0.95)  # the negative control: a correction made for another level
    assert misses(groups, 4.2, level, *at_95).max() > 1.05 * (1.0 - level)


@pytest.mark.parametrize("level", [0.99, 0.9999])
def test_misses_agree_with_simulated_ones_of_rare_events(level):
    rng, groups, ratio = np.random.default_rng(4), 5, 2.0
    spread = Spread(groups, ratio, level)
    squares = rng.chisquare(groups - 1, 4000) / (groups - 1)  # of v = 0, noise 1
    halves = np.array([spread.half_width(square, 1.0) for square in squares])
    expected = misses(groups, ratio, level, *correction(groups, ratio, level))[0]
    found = 2.0 * ndtr(-halves * math.sqrt(groups))
    assert abs(found.mean() - expected) < 6.2 * found.std() / math.sqrt(halves.size)  # a false alarm in 1e9 runs


@pytest.mark.parametrize("statistic", ["mean", "variance", "median", np.mean])
@pytest.mark.parametrize("bounds", [(0, 1e-310), (0, 1e200), (-1e308, 1e308), (1e16, 1e16 + 2)])
def test_bounds_that_doubles_cannot_serve_are_refused_before_anything_is_paid(tmp_path, statistic, bounds):
    paying = Budget.create(tmp_path / "s.db", population="p", epsilon=2.0, delta=1e-4, neighbors=Neighbors.REPLACE_ONE)
    with pytest.raises(InvalidInput, match="change the unit"):
        run(np.full(100, bounds[1]), statistic, bounds=bounds, budget=paying)
    assert not paying.log()


def test_a_variance_of_a_first_stage_of_one_record_is_refused():
    with pytest.raises(InvalidInput, match="at least 2 entries"):
        run([1.0, 2.0], "variance", bounds=(0, 6), method="little")


def test_masked_entries_stay_masked_for_a_function_of_ones_own():
    masked = np.ma.masked_array(np.tile([1.0, 1000.0], 200), mask=np.tile([False, True], 200))
    found = run(masked, np.nanmean, bounds=(0, 2000), epsilon=1e5, sensitivity=1.0, key=seeded_key(1))
    assert abs(float(found.value) - 1.0) < 1.0


@pytest.mark.parametrize("probability", [0.2, 0.5, 0.9])
def test_a_noisy_distribution_function_and_its_mirror_image_have_mirrored_quantiles(probability):
    """Noise makes it fall in places; neither the first nor the last crossing is preferred."""
    below = np.array([0.1, 0.5, 0.3, 0.45, 0.6, 0.55, 0.95])
    found = bootstrap.Quantile((0.0, 8.0), probability, 8)._crossing(below)
    mirrored = bootstrap.Quantile((0.0, 8.0), 1.0 - probability, 8)._crossing(1.0 - below[::-1])
    assert found == pytest.approx(8.0 - mirrored, abs=1e-9)
