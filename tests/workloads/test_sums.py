"""Private sums and means: unbiased, as private as they say by brute force, with the errors they state."""

import json
import math
from itertools import product
from zlib import crc32

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from privamp import Budget, Neighbors, NormHistogram, NormNoise, Poisson, WithoutReplacement
from privamp.core.influence import norms
from privamp.errors import BudgetExceeded, Infeasible, InvalidInput, NoTheorem
from privamp.mechanisms.fixed_point import clipped, toward_zero
from privamp.rules.coreset import coreset
from privamp.rules.privacy_constrained import privacy_constrained
from privamp.rules.profiles import LinearProfile
from privamp.rules.uniform import uniform
from privamp.testing import seeded_key, seeded_stream
from privamp.workloads.sums import PrivateMean, PrivateSum
from privamp.workloads.sums.noises import standard_error
from privamp.workloads.sums.rows import Rows
from privamp.workloads.sums.task import Task

IDEAL = "idealised real arithmetic"
FAR = 6.2  # standard errors: a false alarm of 1e-9, two-sided


def data(n=300, d=3, seed=0):
    random = np.random.default_rng(seed)
    return random.gamma(0.7, 0.4, size=(n, d)) * random.choice([-1, 1], (n, d), p=[0.2, 0.8])


X = data()


@pytest.fixture
def key(request):
    """key(i): seeded keys of this test alone, since one key draws one sample that answers once."""
    start = crc32(request.node.nodeid.encode()) * 1000
    return lambda i=0: seeded_key(start + i)


NOISES = [("laplace", 0.0), ("norm", 0.0), ("gaussian", 1e-6)]
SAMPLERS = [
    {"sampler": None},
    {"sampler": "uniform", "sample_size": 100, "population": 300},
    {"sampler": "privacy-constrained", "sample_size": 100, "population": 300},
]


# --- unbiased


@pytest.mark.parametrize("noise", ["laplace", "gaussian"])
@pytest.mark.parametrize("sampling", SAMPLERS[1:], ids=lambda s: s["sampler"])
def test_unbiased_over_many_keys(noise, sampling, key):
    delta = 1e-6 if noise == "gaussian" else 0.0
    asked = PrivateSum(radius=3.0, epsilon=5.0, delta=delta, noise=noise, **sampling)
    p = 2.0 if noise == "gaussian" else 1.0
    x = clipped(X, 3.0, p)
    task = Task(asked, 3)
    weights = task.plan.rule.weights(x) if task.plan.rule is not None else np.full(len(x), task.plan.factor)
    spread = np.sqrt(((weights - 1)[:, None] * x**2).sum(axis=0) + task.noise_error**2)
    many = 400
    found = np.array([_released(task, key(i)) for i in range(many)])
    assert np.all(np.abs(found.mean(axis=0) - x.sum(axis=0)) < FAR * spread / math.sqrt(many))
    assert np.allclose(found.std(axis=0), spread, rtol=0.25)
    # broken twin: the kept records without their weights
    unweighted = x.sum(axis=0) * np.mean(1 / weights)
    assert np.any(np.abs(unweighted - x.sum(axis=0)) > FAR * spread / math.sqrt(many))


def _released(task, key):
    return task.release(task.draw(X, key), X)[0]


def test_clipping_is_the_only_bias_and_it_is_toward_zero(key):
    far = np.vstack([X, [[1e9, 0, 0]], [[1e308, -1e308, 1e308]]])
    asked = PrivateSum(radius=3.0, epsilon=1000.0)
    value = asked.release(far, key=key(1)).value
    assert np.all(np.abs(value - clipped(far, 3.0, 1.0).sum(axis=0)) < 1.0)


# --- errors


@pytest.mark.parametrize(("noise", "delta"), NOISES)
@pytest.mark.parametrize("p", [1.5, 2.0, math.inf])
def test_the_noise_error_is_what_is_added(noise, delta, p, key):
    """Zeros in many coordinates are nothing but noise: 4000 of it, within 10 percent (6 standard errors and more)."""
    asked = PrivateSum(radius=1.0, epsilon=2.0, delta=delta, noise=noise, p=p)
    answer = asked.release(np.zeros((5, 4000)), key=key(2))
    assert answer.value.std() == pytest.approx(answer.noise_error, rel=0.1)


def test_norm_noise_error_in_small_dimensions():
    for d, p in [(2, 3.0), (3, 1.0), (4, 2.0), (3, math.inf)]:
        draws = NormNoise(1.5, d, p).release(np.zeros((40_000, d)), seeded_stream(3))
        assert draws.std() == pytest.approx(standard_error("norm", 1.5, d, p), rel=0.03)


@pytest.mark.parametrize("noise", ["laplace", "gaussian"])
@pytest.mark.parametrize("sampling", SAMPLERS[1:], ids=lambda s: s["sampler"])
def test_the_sampling_error_is_bounded_or_estimated(noise, sampling, key):
    n = 3000
    big = data(n, 2, seed=4)
    sampling = {**sampling, "sample_size": 600, "population": n}
    common = {"radius": 3.0, "epsilon": 3.0, "noise": noise, "delta": 1e-6 if noise == "gaussian" else 0.0, **sampling}
    x = clipped(big, 3.0, 2.0 if noise == "gaussian" else 1.0)

    def truth(asked):
        task = Task(asked, 2)
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
    assert estimate.privacy.epsilon(common["delta"]) <= 3.0


def test_without_a_public_size_the_sampling_error_is_not_made_up(key):
    answer = PrivateSum(radius=3.0, epsilon=1.0, scale=20.0, sampler="privacy-constrained").release(X, key(7))
    assert (answer.sampling_error, answer.sampling_error_is) == (None, "unknown")
    answer = PrivateSum(radius=3.0, epsilon=1.0).release(X, key(8))
    assert (answer.sampling_error, answer.sampling_error_is) == (0.0, "no sampling")


# --- privacy


@pytest.mark.parametrize(("noise", "delta"), NOISES)
@pytest.mark.parametrize("sampling", SAMPLERS, ids=lambda s: str(s["sampler"]))
@pytest.mark.parametrize("share", [0.0, 0.25])
def test_the_guarantee_is_the_one_asked_for(noise, delta, sampling, share, key):
    asked = PrivateSum(radius=3.0, epsilon=0.8, delta=delta, noise=noise, error_share=share, **sampling)
    answer = asked.release(X, key=key(9))
    assert 0.8 * (1 - 1e-6) <= answer.privacy.epsilon(delta) <= 0.8
    assert not answer.privacy.is_private  # a seeded key
    assert (IDEAL in answer.privacy.assumes) == (noise == "norm")
    rule = Task(asked, 3).plan.rule
    if rule is not None:
        assert answer.privacy.epsilon(delta) == pytest.approx(rule.guarantee().epsilon(delta), rel=1e-9)


def breakpoints_loss(units, chances, scale):
    """The exact worst log ratio of the last record's presence, under independent discrete Laplace noise.

    units: whole rows (n, d). Between two possible sums the ratio of two mixtures is monotone in each coordinate, so
    its extremes lie at possible values of partial sums; all of them are tried.
    """
    n, d = units.shape
    kept = np.array(list(product((0, 1), repeat=n)))
    sums = kept @ units
    points = np.array(list(product(*(np.unique(sums[:, j]) for j in range(d)))), dtype=float)
    log_p = np.log(np.where(kept, chances, 1 - np.asarray(chances)).prod(axis=1), where=True)
    alone = kept[:, -1] == 0
    log_q = np.log(np.where(kept[alone][:, :-1], chances[:-1], 1 - np.asarray(chances[:-1])).prod(axis=1))

    def mixture(log_weights, centres):
        with np.errstate(divide="ignore"):
            e = log_weights - np.abs(points[:, None, :] - centres[None, :, :]).sum(axis=2) / scale
        return np.logaddexp.reduce(e, axis=1)

    finite = np.isfinite(log_p)
    return float(np.max(np.abs(mixture(log_p[finite], sums[finite]) - mixture(log_q, sums[alone]))))


TINY = np.array([[0.3, -0.2], [0.05, 0.3], [0.9, 0.05], [0.21, 0.11]])


def exact_losses(share=0.0, count=0.0, rounding="zero", heavier=1.0, grid=None):
    """Brute force of the whole exact path for each record of TINY in turn."""
    asked = PrivateSum(radius=1.0, epsilon=1.3, scale=1.6, sampler="privacy-constrained", error_share=share)
    task = Task(asked, 2, count)
    noise, rule = task.plan.mechanism.noise, task.plan.rule
    grid = grid or noise.grid
    x = task.clip(TINY)
    weights, chances = rule.weights(x), rule.probabilities(x)
    rows = task.rows.of(x, weights - 1)
    if rounding == "zero":
        units = toward_zero(clipped(rows, noise.sensitivity, 1.0), grid, weights * heavier)
    else:
        units = np.rint(rows * weights[:, None] * heavier / grid).astype(np.int64)
    found = []
    for last in range(len(x)):
        order = [i for i in range(len(x)) if i != last] + [last]
        order = order[-3:]  # two others are enough company
        found.append(breakpoints_loss(units[order], chances[order], noise.scale / grid))
    return max(found)


@pytest.mark.parametrize(("share", "count"), [(0.0, 0.0), (0.3, 0.0), (0.0, 0.25), (0.2, 0.25)])
def test_brute_force_of_the_exact_path(share, count):
    loss = exact_losses(share, count)
    assert loss <= 1.3
    if not share:  # and the budget is used; the squares seldom take all of their share
        assert loss >= 0.9 * 1.3


def test_brute_force_catches_rounding_to_nearest_and_heavier_weights():
    assert exact_losses(grid=2.0**-5) <= 1.3
    assert exact_losses(grid=2.0**-5, rounding="nearest") > 1.3 + 1e-3
    assert exact_losses(heavier=1.02) > 1.3 + 1e-3


def test_gaussian_sampling_by_integration():
    """One record at its own probability and weight: delta(epsilon) by a sum over the line, both directions."""
    asked = PrivateSum(radius=1.0, epsilon=1.0, delta=1e-4, noise="gaussian", scale=4.0, sampler="privacy-constrained")
    task = Task(asked, 1)
    t = np.linspace(-60, 80, 1_400_001)
    for u in (1.0, 0.5, 0.1, 0.02):
        w, q = (float(f(np.array([[u]]))[0]) for f in (task.plan.rule.weights, task.plan.rule.probabilities))
        without = np.exp(-0.5 * (t / 4.0) ** 2)
        kept = np.exp(-0.5 * ((t - w * u) / 4.0) ** 2)
        with_it = (1 - q) * without + q * kept
        total = without.sum()
        for one, other in ((with_it, without), (without, with_it)):
            assert np.maximum(one - math.e * other, 0).sum() / total <= 1e-4 * (1 + 1e-6)


@settings(max_examples=60)
@given(
    st.integers(0, 2**31),
    st.sampled_from([1.0, 2.0, 3.0]),
    st.floats(0.0, 1.0),
    st.floats(0.0, 2.0),
    st.floats(-3, 9),
)
def test_rows_are_never_longer_than_declared(seed, p, share, count, heavy):
    random = np.random.default_rng(seed)
    x = random.normal(size=(50, 3)) * np.exp(random.normal(size=(50, 1)) * 3)
    more = np.exp(random.normal(size=50) * 3 + heavy)
    x = clipped(x, 5.0, p)
    rows = Rows(5.0, p, 0.7 if share else 0.0, share, count).of(x, more)
    u = np.minimum(norms(x, p), 5.0)
    assert np.all(norms(rows, p) <= ((1 + share) * u + count) * (1 + 1e-12))
    if p == 2.0:
        assert np.all(norms(rows, p) <= np.sqrt((1 + share**2) * u**2 + count**2) * (1 + 1e-12))


@pytest.mark.parametrize(("noise", "delta"), NOISES)
def test_public_norms_size_the_sample(noise, delta, key):
    x = clipped(X, 3.0, 1.0 if noise == "laplace" else 2.0)
    u = np.sort(norms(x, 1.0 if noise == "laplace" else 2.0))
    inside, counts = np.unique(u[u < 2.999], return_counts=True)
    public = NormHistogram([*inside, 3.0], [*counts, np.sum(u >= 2.999)])
    common = {"radius": 3.0, "noise": noise, "delta": delta, "sampler": "privacy-constrained", "norms": public}
    task = Task(PrivateSum(epsilon=1.5, sample_size=12, **common), 3)
    assert task.plan.rule.probabilities(x).sum() == pytest.approx(12, rel=0.1)
    scale = task.noise_error / standard_error(noise, 1.0, 3, 2.0)
    back = PrivateSum(scale=scale, sample_size=12, **common).release(X, key=key())
    assert back.privacy.epsilon(delta) == pytest.approx(1.5, rel=0.02)


def test_two_of_three(key):
    size = {"sample_size": 100, "population": 300}
    for i, (noise, delta) in enumerate(NOISES):
        for sampler in ("uniform", "privacy-constrained"):
            common = {"radius": 3.0, "noise": noise, "delta": delta, "sampler": sampler}
            first = Task(PrivateSum(epsilon=1.5, **size, **common), 3)
            scale = first.noise_error / standard_error(noise, 1.0, 3, 2.0)
            back = PrivateSum(scale=scale, **size, **common).release(X, key=key(i))
            assert back.privacy.epsilon(delta) == pytest.approx(1.5, rel=2e-3)
            rate = Task(PrivateSum(scale=scale * 1.001, epsilon=1.5, **common), 3).plan
            got = 1 / rate.factor if sampler == "uniform" else float(rate.rule.of_norms(np.array([3.0]))[0])
            assert got == pytest.approx(1 / 3, rel=0.02)


def test_a_share_for_an_error_that_is_not_there(key):
    """Everybody kept with weight 1 by a rule: the squares are zero, and the answer has its shape."""
    for noise in ("laplace", "norm"):
        mechanism = Task(PrivateSum(radius=3.0, scale=40.0, noise=noise), 3).plan.mechanism
        rule = uniform(LinearProfile.of(mechanism), rate=1.0, radius=3.0)
        asked = PrivateSum(radius=3.0, scale=40.0, noise=noise, sampler=rule, error_share=0.3)
        answer = asked.release(X, key=key(noise == "norm"))
        assert answer.value.shape == (3,)
        assert answer.privacy.epsilon() == pytest.approx(1.3 * 3 / 40, rel=1e-6)  # the share is counted
    free = PrivateSum(radius=3.0, epsilon=1.0, error_share=0.3).release(X, key=key(2))
    assert free.noise_error == PrivateSum(radius=3.0, epsilon=1.0).release(X, key=key(3)).noise_error


def test_a_rule_and_designs_are_taken(key):
    rule_noise = PrivateSum(radius=3.0, scale=40.0)
    mechanism = Task(rule_noise, 3).plan.mechanism
    rule = coreset(
        LinearProfile.of(mechanism),
        share=0.5,
        size=100,
        population=300,
        mean_squared_norm=3.0,
        radius=3.0,
        dimension=3,
    )
    answer = PrivateSum(radius=3.0, scale=40.0, sampler=rule, population=300).release(X, key=key(11))
    assert answer.privacy.epsilon() < 3.0
    assert answer.sampling_error_is == "public bound"
    for design in (Poisson(0.3), WithoutReplacement(90, 300)):
        answer = PrivateSum(radius=3.0, epsilon=1.0, sampler=design, error_share=0.1).release(X, key=key(12))
        assert answer.privacy.epsilon() <= 1.0
        assert np.all(answer.sampling_error > 0)
    swapped = PrivateSum(radius=3.0, epsilon=1.0, neighbors=Neighbors.REPLACE_ONE)
    assert swapped.release(X, key=key(13)).noise_error == pytest.approx(6.0 * math.sqrt(2), rel=1e-6)
    with pytest.raises(NoTheorem):  # before any noise is drawn
        PrivateSum(
            radius=3.0, epsilon=1.0, scale=9.0, sampler="privacy-constrained", neighbors=Neighbors.REPLACE_ONE
        ).release(X, key=key(14))
    by_function = privacy_constrained(LinearProfile(lambda rows: np.abs(rows).sum(axis=1) / 40.0), epsilon=1.0)
    answer = PrivateSum(radius=3.0, scale=40.0, sampler=by_function, population=300)
    with pytest.raises(NoTheorem):
        answer.release(X, key=key(15))


# --- means


@pytest.mark.parametrize(("noise", "delta"), NOISES)
def test_means(noise, delta, key):
    truth = clipped(X, 3.0, 1.0 if noise == "laplace" else 2.0).mean(axis=0)
    public = PrivateMean(radius=3.0, epsilon=4.0, delta=delta, noise=noise, population=300).release(X, key(15))
    counted = PrivateMean(radius=3.0, epsilon=4.0, delta=delta, noise=noise).release(X, key(16))
    assert public.count is None
    assert abs(counted.count - 300) < 80
    for answer in (public, counted):
        assert np.all(np.abs(answer.value - truth) < 12 * answer.noise_error)
        assert answer.privacy.epsilon(delta) <= 4.0
    assert np.all(counted.noise_error > public.noise_error)


def test_a_counted_mean_has_the_errors_it_states(key):
    asked = PrivateMean(radius=3.0, epsilon=2.0, scale=6.0, sampler="privacy-constrained", error_share=0.2)
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
    answer = PrivateSum(radius=3.0, epsilon=1.0, sampler="uniform", sample_size=50, population=300).release(
        X[:, 0], key=key(17)
    )
    assert isinstance(answer.value, float)
    assert isinstance(answer.sampling_error, float)
    mean = PrivateMean(radius=3.0, epsilon=1.0).release(X[:, 0], key=key(18))
    assert isinstance(mean.value, float)
    assert isinstance(mean.noise_error, float)


@pytest.mark.parametrize("sampling", SAMPLERS, ids=lambda s: str(s["sampler"]))
def test_no_records_and_one_record(sampling, key):
    """Not an error: under add/remove it would tell how many there are."""
    asked = PrivateSum(radius=3.0, epsilon=1.0, **sampling)
    assert asked.release(np.empty((0, 3)), key=key(19)).value.shape == (3,)
    assert asked.release(np.ones((1, 3)), key=key(20)).value.shape == (3,)
    assert np.isfinite(PrivateMean(radius=3.0, epsilon=1.0).release(np.empty((0, 2)), key(21)).value).all()


def test_whole_numbers_do_not_overflow(key):
    small = np.full((1000, 1), 30_000, dtype=np.int16)
    answer = PrivateSum(radius=40_000.0, epsilon=1.0).release(small, key=key(22))
    assert answer.value[0] == pytest.approx(3e7, rel=0.05)
    large = np.full((1000, 1), 2**62, dtype=np.int64)
    answer = PrivateSum(radius=10.0, epsilon=1.0).release(large, key=key(23))
    assert answer.value[0] == pytest.approx(10_000, abs=500)


def test_rounding_costs_nothing_visible(key):
    """All records at one positive value that no grid holds: the bias of rounding toward zero is at its worst."""
    n = 20_000
    ones = np.full((n, 1), 1 / 3)
    asked = PrivateSum(radius=1.0, epsilon=1.0, population=n)
    answer = asked.release(ones, key=key(24))
    assert n * answer.resolution < 2e-6 * answer.noise_error
    unknown = PrivateSum(radius=1.0, epsilon=1.0).release(ones, key=key(25))
    assert n * unknown.resolution < 1e-3 * unknown.noise_error


BAD = [
    ({"radius": 0.0, "epsilon": 1.0}, "radius"),
    ({"radius": -1.0, "epsilon": 1.0}, "radius"),
    ({"radius": math.nan, "epsilon": 1.0}, "radius"),
    ({"epsilon": 0.0}, "epsilon"),
    ({"epsilon": -1.0}, "epsilon"),
    ({"epsilon": 1.0, "delta": 1e-6}, "delta must be 0"),
    ({"epsilon": 1.0, "delta": 1e-6, "noise": "norm"}, "delta must be 0"),
    ({"epsilon": 1.0, "noise": "gaussian"}, "delta"),
    ({"epsilon": 1.0, "noise": "cauchy"}, "noise"),
    ({"epsilon": 1.0, "arithmetic": "vague"}, "arithmetic"),
    ({"epsilon": 1.0, "noise": "norm", "arithmetic": "exact"}, "idealised"),
    ({"epsilon": 1.0, "error_share": 2.0}, "error_share"),
    ({"epsilon": 1.0, "population": 0}, "population"),
    ({"epsilon": 1.0, "neighbors": "add-remove"}, "neighbors"),
    ({}, "epsilon"),
    ({"epsilon": 1.0, "scale": 1.0}, "either"),
    ({"epsilon": 1.0, "sample_size": 10}, "sampler"),
    ({"epsilon": 1.0, "sampler": "uniform"}, "two of"),
    ({"epsilon": 1.0, "sampler": "uniform", "sample_size": 10}, "population"),
    ({"epsilon": 1.0, "sampler": "uniform", "sample_size": 10, "population": 5}, "sample_size"),
    ({"epsilon": 1.0, "sampler": "often"}, "sampler"),
    ({"epsilon": 1.0, "sampler": Poisson(0.0)}, "sampler"),
]


@pytest.mark.parametrize(("arguments", "what"), BAD)
@pytest.mark.parametrize("make", [PrivateSum, PrivateMean])
def test_bad_arguments(make, arguments, what, key):
    with pytest.raises(InvalidInput, match=what) as error:
        make(**{"radius": 3.0, **arguments}).release(X, key=key(26))
    assert str(error.value).count("\n") == 0


@pytest.mark.parametrize(
    "records",
    [
        [[31337.0, math.nan]],
        [[31337.0, math.inf]],
        [["31337", "x"]],
        [[31337.0], [1.0, 2.0]],
        31337.0,
        np.full((2, 2, 2), 31337.0),
        np.empty((3, 0)),
        [[31337 + 1j]],
        None,
    ],
)
def test_bad_records_are_not_shown(records, key):
    with pytest.raises(InvalidInput, match="X must") as error:
        PrivateSum(radius=1.0, epsilon=1.0).release(records, key=key(27))
    assert "31337" not in str(error.value)


def test_infeasible_targets(key):
    few = NormHistogram([0.1, 3.0], [299, 1])
    with pytest.raises(Infeasible, match="cannot be reached"):
        PrivateSum(radius=3.0, epsilon=1.0, sample_size=250, norms=few, sampler="privacy-constrained").release(
            X, key(1)
        )
    with pytest.raises(Infeasible, match="add noise"):
        PrivateSum(radius=3.0, epsilon=0.1, scale=1.0, sampler="privacy-constrained").release(X, key(28))
    with pytest.raises(Infeasible, match="add noise"):
        PrivateSum(radius=3.0, epsilon=0.1, scale=1.0, sampler="uniform").release(X, key(28))


def test_a_budget_is_charged_before_the_answer(tmp_path):
    budget = Budget.create(tmp_path / "budget.db", population="people", epsilon=1.5)
    asked = PrivateSum(radius=3.0, epsilon=1.0, sampler="privacy-constrained", sample_size=100, population=300)
    asked.release(X, budget=budget)
    assert budget.status().spent["epsilon"] == pytest.approx(1.0)
    with pytest.raises(BudgetExceeded):
        asked.release(X, budget=budget)


def test_a_key_answers_once(key):
    asked = PrivateSum(radius=3.0, epsilon=1.0)
    asked.release(X, key=key(29))
    with pytest.raises(InvalidInput, match="fresh key"):
        asked.release(X, key=key(29))
    assert asked.release(X).privacy.is_private


def test_what_is_shown(key):
    answer = PrivateSum(
        radius=3.0, epsilon=1.0, noise="norm", sampler="privacy-constrained", sample_size=100, population=300
    ).release(X, key=key(30))
    text = json.dumps(answer.to_json())
    assert IDEAL in text
    assert set(answer.to_json()) >= {"value", "noise_error", "sampling_error", "privacy"}
    for word in ("positions", "weights", "counts", "Drawn"):
        assert word not in text + repr(answer)
