"""Estimates whose noise is left out, against textbook formulas: what is released, its scale, and both errors.

The scale of the noise stays as it was worked out. Bounds do not start at 0, sizes and bounds differ between strata.
"""

import math

import numpy as np
import pytest

from privamp import Laplace, Poisson, Population, RandomSize, Stratified, WithoutReplacement
from privamp.errors import InvalidInput
from privamp.mechanisms import fixed_point
from privamp.survey import estimate
from privamp.survey.estimation import _sds
from privamp.survey.frame import frame_of
from privamp.survey.hidden_signal import signal
from privamp.testing import seeded_key

TWO = math.sqrt(2.0)  # the standard deviation of Laplace noise of scale 1
EPSILON, SHARE = 1.0, 0.2
NAMES = np.array(["a"] * 6 + ["b"] * 5)
X = np.array([11.0, 12.5, 14.0, 19.0, 16.5, 10.5, -5.0, -3.5, -2.5, -5.5, -4.0])
BOUNDS = {"a": (10.0, 20.0), "b": (-6.0, -2.0)}
N, SIZE, LOW, HIGH = np.array([6.0, 5.0]), np.array([3.0, 2.0]), np.array([10.0, -6.0]), np.array([20.0, -2.0])
FIXED = Stratified({"a": WithoutReplacement(3, 6), "b": WithoutReplacement(2, 5)})
COINS = Stratified({"a": Poisson(0.5), "b": Poisson(0.4)})


@pytest.fixture(autouse=True)
def silent(monkeypatch):
    """Exact noise of any scale is 0."""
    for name in ("discrete_laplace", "discrete_gaussian"):
        monkeypatch.setattr(fixed_point, name, lambda stream, scale, n: np.zeros(n, dtype=np.int64))


def drawn(design, n=11, seed=1, **columns):
    sample = design.draw(Population(n, **columns), seeded_key(seed))
    return sample, sample.reveal_secret().positions


def strata(design, seed=1):
    sample, at = drawn(design, seed=seed, stratum=NAMES)
    return sample, [at[NAMES[at] == name] for name in ("a", "b")]


def theta(rate, epsilon=EPSILON):
    """What a rate hides of Laplace noise: log(1 + (e^eps - 1)/rate)."""
    return np.log1p(math.expm1(epsilon) / np.asarray(rate))


def ask(sample, statistic="mean", **options):
    return estimate(sample, X, statistic, **{"bounds": BOUNDS, "epsilon": EPSILON, **options})


def weighted_mean(parts):
    return sum(n * X[at].mean() for n, at in zip(N, parts, strict=True)) / 11.0


@pytest.mark.parametrize(("statistic", "per"), [("mean", 11.0), ("total", 1.0)])
def test_strata_with_a_public_range(statistic, per):
    """N_h²(1 - f_h)/n_h times the largest variance that the range allows, R²/4 · N_h/(N_h - 1)."""
    sample, parts = strata(FIXED)
    found = ask(sample, statistic, sd="range")
    assert found.value == pytest.approx(weighted_mean(parts) * 11.0 / per)
    scale = np.max(N / SIZE * (HIGH - LOW) / theta(SIZE / N))
    assert found.noise_error == pytest.approx(TWO * scale / per, rel=1e-6)
    largest = N**2 * (1.0 - SIZE / N) / SIZE * (HIGH - LOW) ** 2 / 4.0 * N / (N - 1.0)
    assert found.sampling_error == pytest.approx(math.sqrt(largest.sum()) / per)
    assert found.sampling_error_is == "public bound"


@pytest.mark.parametrize(("sd", "each"), [({"a": 2.0, "b": 0.5}, [2.0, 0.5]), (0.0, [0.0, 0.0]), (1.5, [1.5, 1.5])])
def test_strata_with_public_standard_deviations(sd, each):
    found = ask(strata(FIXED)[0], sd=sd)
    variance = N**2 * (1.0 - SIZE / N) / SIZE * np.array(each) ** 2
    assert found.sampling_error == pytest.approx(math.sqrt(variance.sum()) / 11.0)
    assert found.sampling_error_is == "public sd"


@pytest.mark.parametrize("bad", [-1.0, math.nan, math.inf, {"a": 1.0}, {"a": 1.0, "b": -0.5}])
def test_standard_deviations_that_are_none_are_refused(bad):
    with pytest.raises(InvalidInput, match="sd must"):
        ask(strata(FIXED)[0], sd=bad)


def test_a_standard_deviation_of_0_is_one():
    frame = frame_of(strata(FIXED)[0], X, BOUNDS, None, None)
    assert _sds(0, frame).tolist() == [0.0, 0.0]


def fixed_scales(share, kind, hidden):
    """Of the variance, whose reach is N²(1-f)/n R²/n, and of the total, which gets the rest of every stratum."""
    reach = N**2 * (1.0 - SIZE / N) / SIZE * (HIGH - LOW) ** 2 / SIZE
    part = share if kind == "laplace" else math.sqrt(share)
    wide = np.max(reach / (hidden * part))
    spent = reach / wide
    rest = hidden - spent if kind == "laplace" else np.sqrt(hidden**2 - spent**2)
    return wide, np.max(N / SIZE * (HIGH - LOW) / rest)


@pytest.mark.parametrize("kind", ["laplace", "gaussian"])
def test_strata_with_a_private_error(kind):
    """The variance is sum N²(1-f)/n s², raised by half a standard deviation of its noise."""
    sample, parts = strata(FIXED)
    delta = 0.0 if kind == "laplace" else 1e-3
    found = ask(sample, noise=kind, delta=delta, variance_share=0.3)
    hidden = signal(tuple((SIZE / N).tolist()), EPSILON, delta, kind)
    unit = TWO if kind == "laplace" else 1.0
    wide, scale = fixed_scales(0.3, kind, hidden)
    assert found.value == pytest.approx(weighted_mean(parts))
    assert found.noise_error == pytest.approx(unit * scale / 11.0, rel=1e-5)
    s2 = np.array([X[at].var(ddof=1) for at in parts])
    variance = float(np.sum(N**2 * (1.0 - SIZE / N) / SIZE * s2)) + 0.5 * unit * wide
    assert found.sampling_error == pytest.approx(math.sqrt(variance) / 11.0, rel=1e-5)
    assert found.sampling_error_is == "private estimate"


def test_a_stratum_of_one_record_is_given_half_its_range():
    one = Stratified({"a": WithoutReplacement(1, 6), "b": WithoutReplacement(2, 5)})
    sample, parts = strata(one)
    found = ask(sample)
    size = np.array([1.0, 2.0])
    factor = N**2 * (1.0 - size / N) / size
    wide = np.max(factor * (HIGH - LOW) ** 2 / size / (theta(size / N) * SHARE))
    variance = factor[0] * 25.0 + factor[1] * X[parts[1]].var(ddof=1) + 0.5 * TWO * wide
    assert found.sampling_error == pytest.approx(math.sqrt(variance) / 11.0, rel=1e-5)


def test_a_stratum_that_is_drawn_in_full_has_no_sampling_error():
    full = Stratified({"a": WithoutReplacement(6, 6), "b": WithoutReplacement(5, 5)})
    found = ask(strata(full)[0])
    assert found.value == pytest.approx(X.mean())
    assert found.sampling_error < 1e-3  # only what its noise adds: a millionth of a total's


def test_groups_of_strata_are_measured_from_their_own_middles():
    """sum over strata of N_gh m_h and of the weighted z = x - m_h, over N_g."""
    by = np.array(["x", "y"] * 5 + ["x"])
    sample, parts = strata(FIXED)
    found = ask(sample, by=by, sd="range")
    middle = 0.5 * (LOW + HIGH)
    for name in ("x", "y"):
        total = size = worst = 0.0
        for h, at in enumerate(parts):
            mine = at[by[at] == name]
            people = float(np.sum((by == name) & ("ab"[h] == NAMES)))
            total += people * middle[h] + N[h] / SIZE[h] * float(np.sum(X[mine] - middle[h]))
            largest = N[h] ** 2 * (1.0 - SIZE[h] / N[h]) / SIZE[h] * (HIGH[h] - LOW[h]) ** 2 / 4.0
            worst, size = worst + largest * people / (N[h] - 1.0), size + people
        assert found[name].value == pytest.approx(total / size)
        assert found[name].sampling_error == pytest.approx(math.sqrt(worst) / size)


def test_groups_of_coins_have_declared_sizes():
    by = np.array(["x", "y", "z"] * 3 + ["x", "x"])
    sizes = {"x": {"a": 2, "b": 3}, "y": {"a": 2, "b": 1}}
    sample, parts = strata(COINS)
    rate, middle = np.array([0.5, 0.4]), 0.5 * (LOW + HIGH)
    found = ask(sample, by=by, groups=sizes)
    far = 0.5 * (HIGH - LOW)
    wide = np.max((1.0 - rate) / rate**2 * far**2 / (theta(rate) * SHARE))
    spent = (1.0 - rate) / rate**2 * far**2 / wide
    scale = np.max(far / rate / (theta(rate) - spent))
    assert set(found) == {"x", "y"}
    for name, of in sizes.items():
        people = np.array([of["a"], of["b"]], dtype=float)
        mine = [at[by[at] == name] for at in parts]
        z = [X[at] - m for at, m in zip(mine, middle, strict=True)]
        total = float(people @ middle) + sum(float(one.sum()) / r for one, r in zip(z, rate, strict=True))
        squares = sum((1.0 - r) / r**2 * float(np.sum(one**2)) for one, r in zip(z, rate, strict=True))
        assert found[name].value == pytest.approx(np.clip(total / people.sum(), *(-6.0, 20.0)))
        assert found[name].noise_error == pytest.approx(TWO * scale / people.sum(), rel=1e-5)
        error = math.sqrt(squares + 0.5 * TWO * wide) / people.sum()
        assert found[name].sampling_error == pytest.approx(error, rel=1e-5)


def test_a_poisson_total_of_secretly_many_is_measured_from_0():
    sample, at = drawn(Poisson(0.5))
    found = estimate(sample, X, "total", bounds=(-6.0, 20.0), epsilon=EPSILON)
    assert found.value == pytest.approx(2.0 * X[at].sum())
    wide = 2.0 * 20.0**2 / (theta(0.5) * SHARE)
    scale = 2.0 * 20.0 / (theta(0.5) * (1.0 - SHARE))
    assert found.noise_error == pytest.approx(TWO * scale, rel=1e-6)
    variance = 2.0 * float(np.sum(X[at] ** 2)) + 0.5 * TWO * wide
    assert found.sampling_error == pytest.approx(math.sqrt(variance), rel=1e-6)


@pytest.mark.parametrize(("statistic", "per"), [("mean", 11.0), ("total", 1.0)])
def test_a_poisson_estimate_with_a_public_sd(statistic, per):
    """(1 - q)/q sum of squares: N(sd² + away²), away how far the estimated mean is from the middle of the bounds."""
    sample, at = drawn(Poisson(0.4))
    options = {"bounds": (-8.0, 40.0), "epsilon": EPSILON, "population": 11}
    found = estimate(sample, X, statistic, sd=3.0, **options)
    total = float(np.sum(X[at] - 16.0)) / 0.4
    assert found.value == pytest.approx((176.0 + total) / per, rel=1e-5)
    away = total / 11.0
    assert abs(away) > 1.0
    assert found.sampling_error == pytest.approx(math.sqrt(1.5 * 11.0 * (9.0 + away**2)) / per)
    assert found.noise_error == pytest.approx(TWO * (24.0 / 0.4) / theta(0.4) / per, rel=1e-6)
    found = estimate(drawn(Poisson(0.4), seed=2)[0], X, statistic, sd="range", **options)
    assert found.sampling_error == pytest.approx(math.sqrt(1.5 * 11.0 * 24.0**2) / per)


def test_a_mean_ends_at_its_bounds_and_a_total_does_not():
    sample, _ = drawn(Poisson(0.4))
    mean = estimate(sample, X + 1e3, "mean", bounds=(0.0, 1.0), epsilon=EPSILON, population=11, sd="range")
    assert mean.interval(0.95)[1] <= 1.0
    sample, _ = drawn(Poisson(0.4), seed=2)
    total = estimate(sample, X + 1e3, "total", bounds=(0.0, 1.0), epsilon=EPSILON, population=11, sd="range")
    assert total.interval(0.95)[1] > 11.0


@pytest.mark.parametrize("kind", ["laplace", "gaussian"])
@pytest.mark.parametrize("sd", [None, 3.0, "range"])
def test_a_ratio_of_a_sum_and_a_count(kind, sd):
    """c + T/C; variance (1-q)(Q/C - (T/C)²)/C, Q raised; noise sqrt(var T + (T/C)² var C)/C."""
    sample, at = drawn(Poisson(0.4), seed=3)
    delta = 0.0 if kind == "laplace" else 1e-3
    found = estimate(sample, X, "mean", bounds=(-8.0, 20.0), epsilon=EPSILON, noise=kind, delta=delta, sd=sd)
    hidden = float(signal((0.4,), EPSILON, delta, kind)[0])
    share = SHARE if sd is None else 0.0
    parts = [(1.0 - share) / 2.0, (1.0 - share) / 2.0, share]
    portions = parts if kind == "laplace" else np.sqrt(parts)
    unit = TWO if kind == "laplace" else 1.0
    one, other = 14.0 / (hidden * portions[0]), 1.0 / (hidden * portions[1])
    z, count = X[at] - 6.0, at.size
    away = z.mean()
    assert found.value == pytest.approx(6.0 + away)
    assert found.noise_error == pytest.approx(unit * math.hypot(one, away * other) / count, rel=1e-5)
    spread = {None: 0.0, "range": 14.0**2, 3.0: 9.0}[sd]
    if sd is None:
        wide = 14.0**2 / (hidden * portions[2])
        spread = (float(np.sum(z**2)) + 0.5 * unit * wide) / count - away**2
    assert found.sampling_error == pytest.approx(math.sqrt(0.6 * spread / count), rel=1e-5)
    assert found.interval(0.95)[0] >= -8.0
    assert found.interval(0.95)[1] <= 20.0


@pytest.mark.parametrize("sd", [None, "range"])
def test_a_mean_over_a_random_size_knows_its_share(sd):
    """Given C of n records: (1 - C/n)(Q/C - away²)·C/(C - 1)/C."""
    design = RandomSize.binomial(11, 0.5)
    sample, at = drawn(design, seed=4)
    found = estimate(sample, X, "mean", bounds=(-8.0, 20.0), epsilon=1e3, weights="hajek", sd=sd)
    count, z = at.size, X[at] - 6.0
    assert 2 <= count < 11
    assert found.value == pytest.approx(6.0 + z.mean())
    spread = 14.0**2 if sd else float(np.mean(z**2)) - z.mean() ** 2
    error = math.sqrt((1.0 - count / 11.0) * spread / (count - 1.0))
    assert found.sampling_error == pytest.approx(error, rel=1e-2 if sd is None else 1e-6)


def test_the_design_effect_of_strata():
    """V over (w - 1)(sum x² - (sum x)²/N) n/(n-1), both estimated: squares are weighted sums from the middle, 7."""
    sample, parts = strata(FIXED)
    found = estimate(sample, X, "mean", bounds=BOUNDS, epsilon=1e9, design_effect=True)
    weight = N / SIZE
    squares = sum(w * float(np.sum((X[at] - 7.0) ** 2)) for w, at in zip(weight, parts, strict=True))
    away = 11.0 * (weighted_mean(parts) - 7.0)
    simple = (11.0 / 5.0 - 1.0) * (squares - away**2 / 11.0) * 5.0 / 4.0
    s2 = np.array([X[at].var(ddof=1) for at in parts])
    variance = float(np.sum(N**2 * (1.0 - SIZE / N) / SIZE * s2))
    assert found.design_effect == pytest.approx(variance / simple, rel=1e-3)


def test_declared_noise_is_that_of_the_statistic():
    for statistic, per in (("mean", 11.0), ("total", 1.0)):
        sample, parts = strata(FIXED, seed=5 + int(per))
        found = estimate(sample, X, statistic, bounds=BOUNDS, mechanism=Laplace(2.5), sd="range")
        assert found.noise_error == pytest.approx(2.5 * TWO)
        assert found.value == pytest.approx(weighted_mean(parts) * 11.0 / per)


@pytest.mark.parametrize(
    ("design", "options", "message"),
    [
        (FIXED, {"by": np.zeros(11), "sd": 1.0}, "with by=, omit sd"),
        (COINS, {"sd": "range"}, "ratio of two sums"),
        (COINS, {}, "ratio of two sums"),
        (FIXED, {"mechanism": Laplace(1.0), "epsilon": None}, "give sd="),
        (FIXED, {"mechanism": Laplace(1.0), "epsilon": None, "sd": "range", "by": np.zeros(11)}, "releases one number"),
        (COINS, {"design_effect": True, "population": {"a": 6, "b": 5}}, "design effects of samples"),
        (FIXED, {"design_effect": True, "sd": "range"}, "design effects of samples"),
        (FIXED, {"sd": "wide"}, "sd must be one of"),
        (COINS, {"population": {"a": 6}}, "must name every stratum"),
        (COINS, {"population": 11}, "must name every stratum"),
    ],
)
def test_what_cannot_be_estimated_is_refused(design, options, message):
    with pytest.raises(InvalidInput, match=message):
        ask(strata(design)[0], **options)
