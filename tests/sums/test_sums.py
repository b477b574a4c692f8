"""Private sums and means: unbiased, with the errors they state."""

import json
import math

import numpy as np
import pytest

from privamp import Budget, Named, Neighbors, NormHistogram, NormNoise, Poisson, WithoutReplacement
from privamp.core.influence import clipped, norms
from privamp.errors import BudgetExceeded, InvalidInput, NoTheorem
from privamp.rules.coreset import coreset
from privamp.rules.privacy_constrained import privacy_constrained
from privamp.rules.profiles import LinearProfile
from privamp.rules.uniform import uniform
from privamp.sums import PrivateMean, PrivateSum
from privamp.sums.plan import remembered_plan
from privamp.sums.release import SumRelease
from privamp.testing import seeded_stream
from small_sums import IDEAL, NOISES, SAMPLERS, X, data

FAR = 6.2  # standard errors: a false alarm of 1e-9, two-sided


# --- unbiased


@pytest.mark.parametrize("noise", ["laplace", "gaussian"])
@pytest.mark.parametrize("sampling", SAMPLERS[1:], ids=lambda s: s["sampler"])
def test_unbiased_over_many_keys(noise, sampling, key):
    delta = 1e-6 if noise == "gaussian" else 0.0
    asked = PrivateSum(bounds=3.0, epsilon=5.0, delta=delta, noise=noise, **sampling)
    p = 2.0 if noise == "gaussian" else 1.0
    x = clipped(X, 3.0, p)
    task = SumRelease(asked, (0.0,) * 3)
    weights = task.plan.rule.weights(x) if task.plan.rule is not None else np.full(len(x), task.plan.factor)
    spread = np.sqrt(((weights - 1)[:, None] * x**2).sum(axis=0) + task.noise_error**2)
    many = 400
    found = np.array([_released(task, key(i)) for i in range(many)])
    assert np.all(np.abs(found.mean(axis=0) - x.sum(axis=0)) < FAR * spread / math.sqrt(many))
    assert np.allclose(found.std(axis=0), spread, rtol=0.25)
    # broken twin: the kept records without their weights
    unweighted = x.sum(axis=0) * np.mean(1 / weights)
    assert np.any(np.abs(unweighted - x.sum(axis=0)) > FAR * spread / math.sqrt(many))


def unit_error(noise):
    """The standard error of noise of scale 1 on three numbers."""
    asked = PrivateSum(bounds=1.0, scale=1.0, noise=noise, delta=1e-6 if noise == "gaussian" else 0.0)
    return asked.noise_error(asked.mechanism(1.0, 3, 1.0, 2.0**-30), 3)


def _released(task, key):
    return task.release(task.draw(X, key), X)[0]


def test_clipping_is_the_only_bias_and_it_is_toward_zero(key):
    far = np.vstack([X, [[1e9, 0, 0]], [[1e308, -1e308, 1e308]]])
    asked = PrivateSum(bounds=3.0, epsilon=1000.0)
    value = asked.release(far, key=key(1)).value
    assert np.all(np.abs(value - clipped(far, 3.0, 1.0).sum(axis=0)) < 1.0)


# --- errors


@pytest.mark.parametrize(("noise", "delta"), NOISES)
@pytest.mark.parametrize("p", [1.5, 2.0, math.inf])
def test_the_noise_error_is_what_is_added(noise, delta, p, key):
    """Zeros in many coordinates are nothing but noise: 4000 of it, within 10 percent (6 standard errors and more)."""
    asked = PrivateSum(bounds=1.0, epsilon=2.0, delta=delta, noise=noise, p=p)
    answer = asked.release(np.zeros((5, 4000)), key=key(2))
    assert answer.value.std() == pytest.approx(answer.noise_error, rel=0.1)


def test_norm_noise_error_in_small_dimensions():
    for d, p in [(2, 3.0), (3, 1.0), (4, 2.0), (3, math.inf)]:
        noise, asked = NormNoise(1.5, d, p), PrivateSum(bounds=1.0, scale=1.5, noise="norm", p=p)
        draws = noise.release(np.zeros((40_000, d)), seeded_stream(3))
        assert draws.std() == pytest.approx(asked.noise_error(noise, d), rel=0.03)


@pytest.mark.parametrize("noise", ["laplace", "gaussian"])
@pytest.mark.parametrize("sampling", SAMPLERS[1:], ids=lambda s: s["sampler"])
def test_the_sampling_error_is_bounded_or_estimated(noise, sampling, key):
    n = 3000
    big = data(n, 2, seed=4)
    sampling = {**sampling, "sample_size": 600, "population": n}
    common = {"bounds": 3.0, "epsilon": 3.0, "noise": noise, "delta": 1e-6 if noise == "gaussian" else 0.0, **sampling}
    x = clipped(big, 3.0, 2.0 if noise == "gaussian" else 1.0)

    def truth(asked):
        task = SumRelease(asked, (0.0, 0.0))
        weights = task.plan.rule.weights(x) if task.plan.rule is not None else np.full(n, task.plan.factor)
        return np.sqrt(((weights - 1)[:, None] * x**2).sum(axis=0))

    bound = PrivateSum(**common).release(big, key=key(5))
    assert bound.sampling_error_is == "public bound"
    assert np.all(bound.sampling_error >= truth(PrivateSum(**common)))
    paid = PrivateSum(**common, error_share=0.3)
    estimate = paid.release(big, key=key(6))
    assert estimate.sampling_error_is == "private estimate"
    assert np.all(estimate.sampling_error > 0.7 * truth(paid))
    assert np.all(estimate.sampling_error < 2.0 * truth(paid))
    assert np.all(estimate.sampling_error < bound.sampling_error)
    assert estimate.noise_error > bound.noise_error  # the estimate was paid for
    assert estimate.guarantee.epsilon(common["delta"]) <= 3.0


def test_without_a_public_size_the_sampling_error_is_not_made_up(key):
    answer = PrivateSum(bounds=3.0, epsilon=1.0, scale=20.0, sampler="privacy-constrained").release(X, key(7))
    assert (answer.sampling_error, answer.sampling_error_is) == (None, "unknown")
    answer = PrivateSum(bounds=3.0, epsilon=1.0).release(X, key(8))
    assert (answer.sampling_error, answer.sampling_error_is) == (0.0, "no sampling")


@pytest.mark.parametrize(("noise", "delta"), NOISES)
def test_public_norms_size_the_sample(noise, delta, key):
    x = clipped(X, 3.0, 1.0 if noise == "laplace" else 2.0)
    u = np.sort(norms(x, 1.0 if noise == "laplace" else 2.0))
    inside, counts = np.unique(u[u < 2.999], return_counts=True)
    public = NormHistogram([*inside, 3.0], [*counts, np.sum(u >= 2.999)])
    common = {"bounds": 3.0, "noise": noise, "delta": delta, "sampler": "privacy-constrained", "norms": public}
    task = SumRelease(PrivateSum(epsilon=1.5, sample_size=12, **common), (0.0,) * 3)
    assert task.plan.rule.probabilities(x).sum() == pytest.approx(12, rel=0.1)
    scale = task.noise_error / unit_error(noise)
    back = PrivateSum(scale=scale, sample_size=12, **common).release(X, key=key())
    assert back.guarantee.epsilon(delta) == pytest.approx(1.5, rel=0.02)


def test_two_of_three(key):
    size = {"sample_size": 100, "population": 300}
    for i, (noise, delta) in enumerate(NOISES):
        for sampler in ("uniform", "privacy-constrained"):
            common = {"bounds": 3.0, "noise": noise, "delta": delta, "sampler": sampler}
            first = SumRelease(PrivateSum(epsilon=1.5, **size, **common), (0.0,) * 3)
            scale = first.noise_error / unit_error(noise)
            back = PrivateSum(scale=scale, **size, **common).release(X, key=key(i))
            assert back.guarantee.epsilon(delta) == pytest.approx(1.5, rel=2e-3)
            rate = SumRelease(PrivateSum(scale=scale * 1.001, epsilon=1.5, **common), (0.0,) * 3).plan
            got = 1 / rate.factor if sampler == "uniform" else float(rate.rule.of_norms(np.array([3.0]))[0])
            assert got == pytest.approx(1 / 3, rel=0.02)


def test_a_share_for_an_error_that_is_not_there(key):
    """Everybody kept with weight 1 by a rule: the squares are zero, and the answer has its shape."""
    for noise in ("laplace", "norm"):
        mechanism = SumRelease(PrivateSum(bounds=3.0, scale=40.0, noise=noise), (0.0,) * 3).plan.mechanism
        rule = uniform(LinearProfile.of(mechanism), rate=1.0, radius=3.0)
        asked = PrivateSum(bounds=3.0, scale=40.0, noise=noise, sampler=rule, error_share=0.3)
        answer = asked.release(X, key=key(noise == "norm"))
        assert answer.value.shape == (3,)
        assert answer.guarantee.epsilon() == pytest.approx(1.3 * 3 / 40, rel=1e-6)  # the share is counted
    free = PrivateSum(bounds=3.0, epsilon=1.0, error_share=0.3).release(X, key=key(2))
    assert free.noise_error == PrivateSum(bounds=3.0, epsilon=1.0).release(X, key=key(3)).noise_error


def test_a_rule_and_designs_are_taken(key):
    rule_noise = PrivateSum(bounds=3.0, scale=40.0)
    mechanism = SumRelease(rule_noise, (0.0,) * 3).plan.mechanism
    rule = coreset(
        LinearProfile.of(mechanism),
        share=0.5,
        size=100,
        population=300,
        mean_squared_norm=3.0,
        radius=3.0,
        dimension=3,
    )
    answer = PrivateSum(bounds=3.0, scale=40.0, sampler=rule, population=300).release(X, key=key(11))
    assert answer.guarantee.epsilon() < 3.0
    assert answer.sampling_error_is == "public bound"
    for design in (Poisson(0.3), WithoutReplacement(90, 300)):
        answer = PrivateSum(bounds=3.0, epsilon=1.0, sampler=design, error_share=0.1).release(X, key=key(12))
        assert answer.guarantee.epsilon() <= 1.0
        assert np.all(answer.sampling_error > 0)
    swapped = PrivateSum(bounds=3.0, epsilon=1.0, neighbors=Neighbors.REPLACE_ONE)
    assert swapped.release(X, key=key(13)).noise_error == pytest.approx(6.0 * math.sqrt(2), rel=1e-6)
    with pytest.raises(NoTheorem):  # before any noise is drawn
        PrivateSum(
            bounds=3.0, epsilon=1.0, scale=9.0, sampler="privacy-constrained", neighbors=Neighbors.REPLACE_ONE
        ).release(X, key=key(14))
    lengths = Named("lengths", "1", lambda rows: np.abs(rows).sum(axis=1) / 40.0)
    by_function = privacy_constrained(LinearProfile(lengths), epsilon=1.0)
    answer = PrivateSum(bounds=3.0, scale=40.0, sampler=by_function, population=300)
    with pytest.raises(NoTheorem):
        answer.release(X, key=key(15))


# --- means


@pytest.mark.parametrize(("noise", "delta"), NOISES)
def test_means(noise, delta, key):
    truth = clipped(X, 3.0, 1.0 if noise == "laplace" else 2.0).mean(axis=0)
    public = PrivateMean(bounds=3.0, epsilon=4.0, delta=delta, noise=noise, population=300).release(X, key(15))
    counted = PrivateMean(bounds=3.0, epsilon=4.0, delta=delta, noise=noise).release(X, key(16))
    assert public.count is None
    assert abs(counted.count - 300) < 80
    for answer in (public, counted):
        assert np.all(np.abs(answer.value - truth) < 12 * answer.noise_error)
        assert answer.guarantee.epsilon(delta) <= 4.0
    assert np.all(counted.noise_error > public.noise_error)


def test_a_counted_mean_has_the_errors_it_states(key):
    asked = PrivateMean(bounds=3.0, epsilon=2.0, scale=6.0, sampler="privacy-constrained", error_share=0.2)
    x = clipped(X, 3.0, 1.0)
    answers = [asked.release(X, key(100 + i)) for i in range(150)]
    found = np.array([a.value for a in answers])
    stated = np.mean([np.hypot(a.noise_error, a.sampling_error) for a in answers], axis=0)
    off = found.std(axis=0)
    assert np.all(off < 1.5 * stated)
    assert np.all(off > 0.15 * stated)
    assert np.all(np.abs(np.median(found, axis=0) - x.mean(axis=0)) < 6 * off / math.sqrt(150) + 0.02)


# --- bad input


def test_one_column_gives_numbers(key):
    answer = PrivateSum(bounds=3.0, epsilon=1.0, sampler="uniform", sample_size=50, population=300).release(
        X[:, 0], key=key(17)
    )
    assert isinstance(answer.value, float)
    assert isinstance(answer.sampling_error, float)
    mean = PrivateMean(bounds=3.0, epsilon=1.0).release(X[:, 0], key=key(18))
    assert isinstance(mean.value, float)
    assert isinstance(mean.noise_error, float)


@pytest.mark.parametrize("sampling", SAMPLERS, ids=lambda s: str(s["sampler"]))
def test_no_records_and_one_record(sampling, key):
    """Not an error: under add/remove it would tell how many there are."""
    asked = PrivateSum(bounds=3.0, epsilon=1.0, **sampling)
    assert asked.release(np.empty((0, 3)), key=key(19)).value.shape == (3,)
    assert asked.release(np.ones((1, 3)), key=key(20)).value.shape == (3,)
    assert np.isfinite(PrivateMean(bounds=3.0, epsilon=1.0).release(np.empty((0, 2)), key(21)).value).all()


def test_whole_numbers_do_not_overflow(key):
    small = np.full((1000, 1), 30_000, dtype=np.int16)
    answer = PrivateSum(bounds=40_000.0, epsilon=1.0).release(small, key=key(22))
    assert answer.value[0] == pytest.approx(3e7, rel=0.05)
    large = np.full((1000, 1), 2**62, dtype=np.int64)
    answer = PrivateSum(bounds=10.0, epsilon=1.0).release(large, key=key(23))
    assert answer.value[0] == pytest.approx(10_000, abs=500)


def test_rounding_costs_nothing_visible(key):
    """All records at one positive value that no grid holds: the bias of rounding toward zero is at its worst."""
    n = 20_000
    ones = np.full((n, 1), 1 / 3)
    asked = PrivateSum(bounds=1.0, epsilon=1.0, population=n)
    answer = asked.release(ones, key=key(24))
    assert n * answer.resolution < 2e-6 * answer.noise_error
    unknown = PrivateSum(bounds=1.0, epsilon=1.0).release(ones, key=key(25))
    assert n * unknown.resolution < 1e-3 * unknown.noise_error


def test_a_budget_is_charged_before_the_answer(tmp_path):
    budget = Budget.create(tmp_path / "budget.db", population="people", epsilon=1.5)
    asked = PrivateSum(bounds=3.0, epsilon=1.0, sampler="privacy-constrained", sample_size=100, population=300)
    asked.release(X, budget=budget)
    assert budget.status().spent["epsilon"] == pytest.approx(1.0)
    with pytest.raises(BudgetExceeded):
        asked.release(X, budget=budget)


def test_a_key_answers_once(key):
    asked = PrivateSum(bounds=3.0, epsilon=1.0)
    asked.release(X, key=key(29))
    with pytest.raises(InvalidInput, match="fresh key"):
        asked.release(X, key=key(29))
    assert asked.release(X).guarantee.is_private


def test_what_is_shown(key):
    answer = PrivateSum(
        bounds=3.0, epsilon=1.0, noise="norm", sampler="privacy-constrained", sample_size=100, population=300
    ).release(X, key=key(30))
    text = json.dumps(answer.to_json())
    assert IDEAL in text
    assert set(answer.to_json()) >= {"value", "noise_error", "sampling_error", "guarantee"}
    for word in ("positions", "weights", "counts", "Drawn"):
        assert word not in text + repr(answer)


def test_a_plan_is_remembered_by_all_its_public_facts():
    x = np.full((5, 2), 0.25)
    for _ in range(2):
        PrivateSum(bounds=1.0, epsilon=1.0).release(x)
    assert remembered_plan.cache_info()[:2] == (1, 1)  # one hit, one miss
    once, twice = (float(np.max(PrivateSum(bounds=1.0, epsilon=e).release(x).noise_error)) for e in (1.0, 2.0))
    assert once == pytest.approx(2.0 * twice)
    again = PrivateSum(bounds=[(-1.0, 1.0), (-1.0, 1.0)], epsilon=1.0)  # facts in a list are not remembered, and work
    assert np.all(again.release(x).noise_error > 0.0)
    assert remembered_plan.cache_info().currsize == 2
