"""Estimates of designs with public weights, without noise, against their own formulas; and adjusted ones of samples.

The scale of the noise stays as it was worked out. What a budget allows inside a sample is asked of the library.
"""

import math
from fractions import Fraction

import numpy as np
import pytest

from privamp import (
    ClusterSampling,
    Poisson,
    PoissonPPS,
    Population,
    Proportional,
    Stratified,
    WithoutReplacement,
    WithReplacement,
)
from privamp.errors import InvalidInput
from privamp.mechanisms import fixed_point
from privamp.mechanisms.fixed_point import grid_for
from privamp.survey import adjust, estimate
from privamp.survey.hidden_signal import signal
from privamp.survey.units import SignalToNoise, inner_epsilon, signal_to_noise
from privamp.testing import seeded_key

TWO = math.sqrt(2.0)
X = np.array([11.0, 12.5, 14.0, 19.0, 16.5, 10.5, 15.0, 13.5, 12.0, 18.0, 17.5, 10.0])
LOW, HIGH, MIDDLE = 8.0, 20.0, 14.0
LOUD = 1e4  # an epsilon whose noise is too small to be seen


@pytest.fixture(autouse=True)
def silent(monkeypatch):
    """Exact noise of any scale is 0."""
    for name in ("discrete_laplace", "discrete_gaussian"):
        monkeypatch.setattr(fixed_point, name, lambda stream, scale, n: np.zeros(n, dtype=np.int64))


def drawn(design, seed=1, **columns):
    sample = design.draw(Population(X.size, **columns), seeded_key(seed))
    found = sample.reveal_secret()
    return sample, np.repeat(found.positions, found.counts)


def ask(sample, statistic="mean", **options):
    return estimate(sample, X, statistic, **{"bounds": (LOW, HIGH), "epsilon": 1.0, **options})


def test_parts_of_a_budget():
    assert SignalToNoise("laplace", 4.0).part(0.25) == 1.0
    assert SignalToNoise("gaussian", 4.0).part(0.25) == 2.0
    assert SignalToNoise("laplace", 4.0).sd == TWO
    assert SignalToNoise("gaussian", 4.0).sd == 1.0


def test_a_total_of_a_fixed_share_of_secretly_many():
    """T = sum/q; the error from squares around the middle, the count, and the rounded size: (mean/q)²/4."""
    design, q = Proportional(Fraction(2, 5)), 0.4
    sample, at = drawn(design)
    found = ask(sample, "total", variance_share=0.3)
    theta = inner_epsilon(design, 1.0)
    parts = 0.7 * theta, 0.15 * theta
    count, z = at.size, X[at] - MIDDLE
    assert found.value == pytest.approx(X[at].sum() / q)
    scale = HIGH / q / parts[0]
    assert found.noise_error == pytest.approx(TWO * scale, rel=1e-6)
    wide, loose = 6.0**2 * 0.6 / q**2 / parts[1], 1.0 / parts[1]
    noise = 2.0 * ((q * scale) ** 2 + (MIDDLE * loose) ** 2)
    shift = max(z.sum() ** 2 - noise, 0.0) / count
    spread = (0.6 / q**2 * float(np.sum(z**2)) + 0.5 * TWO * wide - 0.6 / q**2 * shift) * count / (count - 1.0)
    error = math.sqrt(spread + (X[at].mean() / q) ** 2 / 4.0)
    assert found.sampling_error == pytest.approx(error, rel=1e-5)


def test_a_total_of_a_fixed_share_whose_noise_is_small():
    sample, at = drawn(Proportional(Fraction(2, 5)), seed=2)
    found = ask(sample, "total", epsilon=LOUD)
    z, count = X[at] - MIDDLE, at.size
    spread = 0.6 / 0.16 * (float(np.sum(z**2)) - z.sum() ** 2 / count) * count / (count - 1.0)
    assert found.sampling_error == pytest.approx(math.sqrt(spread + (X[at].mean() / 0.4) ** 2 / 4.0), rel=1e-2)


@pytest.mark.parametrize(("statistic", "per"), [("mean", 12.0), ("total", 1.0)])
def test_a_fixed_share_of_publicly_many(statistic, per):
    """m = 4.8: V = Q - shrink T², with z from the middle, Q = sum (1-q)/q² m/(m-1) z²."""
    sample, at = drawn(Proportional(Fraction(2, 5)), seed=3)
    found = ask(sample, statistic, population=12, epsilon=LOUD)
    z, m = X[at] - MIDDLE, 4.8
    total = z.sum() / 0.4
    assert found.value == pytest.approx((total + 12.0 * MIDDLE) / per, rel=1e-6)
    second = 0.6 / 0.16 * m / (m - 1.0)
    by = Proportional(Fraction(2, 5)).weighting(12, 12.0, {})
    assert by.second == pytest.approx(second, rel=0.1)  # and what a rounded size adds
    variance = float(by.second[0]) * float(np.sum(z**2)) - by.shrink * total**2
    assert found.sampling_error == pytest.approx(math.sqrt(variance) / per, rel=1e-2)
    sample, at = drawn(Proportional(Fraction(2, 5)), seed=3)
    public = ask(sample, statistic, population=12, sd=2.0)
    largest = by.spread_most * 4.0 * 12.0 + 0.8 * 0.2 * (total / (0.4 * 12.0)) ** 2
    assert public.sampling_error == pytest.approx(math.sqrt(largest) / per, rel=1e-6)


def test_draws_with_replacement():
    """Hansen and Hurwitz: the variance of a mean is s²/m, s² of the entries drawn; Student's m - 1 degrees."""
    design = WithReplacement(5, 12)
    sample, at = drawn(design, seed=4)
    found = ask(sample, epsilon=LOUD)
    assert found.value == pytest.approx(X[at].mean(), rel=1e-6)
    by = design.weighting(12, 12.0, {})
    z = X[at] - MIDDLE
    variance = float(by.second[0]) * float(np.sum(z**2)) - by.shrink * (12.0 * z.mean()) ** 2
    assert found.sampling_error == pytest.approx(math.sqrt(variance) / 12.0, rel=1e-2)
    assert found.sampling_error == pytest.approx(math.sqrt(X[at].var(ddof=1) / 5.0), rel=1e-2)


def test_the_noise_of_a_total_and_of_its_squares():
    """Reach of T: w·6; of Q: second·36; V is lowered by shrink (T² - var noise), raised by half its noise."""
    design = WithReplacement(5, 12)
    sample, at = drawn(design, seed=5)
    found = ask(sample, variance_share=0.3)
    by, theta = design.weighting(12, 12.0, {}), inner_epsilon(design, 1.0)
    scale, wide = by.heaviest * 6.0 / (0.7 * theta), by.second_most * 36.0 / (0.3 * theta)
    assert found.noise_error == pytest.approx(TWO * scale / 12.0, rel=1e-6)
    z = X[at] - MIDDLE
    total, squares = by.heaviest * z.sum(), float(by.second[0]) * float(np.sum(z**2))
    variance = max(squares - by.shrink * max(total**2 - 2.0 * scale**2, 0.0), 0.0)
    variance += 0.5 * TWO * math.hypot(wide, 2.0 * by.shrink * total * scale)
    assert found.sampling_error == pytest.approx(math.sqrt(variance) / 12.0, rel=1e-5)


CHANCE = np.array([0.3, 0.4, 0.5, 0.6, 0.35, 0.45, 0.55, 0.3, 0.4, 0.5, 0.6, 0.5])


@pytest.mark.parametrize("known", [None, 12])
def test_a_total_of_unequal_coins(known):
    """sum x/p and sum (1-p)/p² x²; from the middle where the number of records is public."""
    design = PoissonPPS(low=0.3, high=0.6)
    sample, at = drawn(design, seed=6, probability=CHANCE)
    found = ask(sample, "total", population=known, variance_share=0.3)
    centre = MIDDLE if known else 0.0
    z, p, most = X[at] - centre, CHANCE[at], (6.0 if known else HIGH)
    theta = inner_epsilon(design, 1.0)
    assert found.value == pytest.approx(12.0 * MIDDLE * bool(known) + float(np.sum(z / p)), rel=1e-5)
    assert found.noise_error == pytest.approx(TWO * most / 0.3 / (0.7 * theta), rel=1e-6)
    wide = 0.7 / 0.09 * most**2 / (0.3 * theta)
    variance = float(np.sum((1.0 - p) / p**2 * z**2)) + 0.5 * TWO * wide
    assert found.sampling_error == pytest.approx(math.sqrt(variance), rel=1e-5)


@pytest.mark.parametrize("sd", [None, "range"])
def test_a_ratio_of_unequal_coins(sd):
    """m + T/N, both weighted; then squares of residuals, at most 12 each."""
    design = PoissonPPS(low=0.3, high=0.6)
    sample, at = drawn(design, seed=7, probability=CHANCE)
    found = ask(sample, sd=sd, variance_share=0.3)
    z, p, theta = X[at] - MIDDLE, CHANCE[at], inner_epsilon(design, 1.0)
    count = float(np.sum(1.0 / p))
    away = float(np.sum(z / p)) / count
    share = 0.0 if sd else 0.3
    one, other = (reach / 0.3 / (theta * 0.5 * (1.0 - share)) for reach in (6.0, 1.0))
    assert found.value == pytest.approx(MIDDLE + away, rel=1e-6)
    assert found.noise_error == pytest.approx(TWO * math.hypot(one, away * other) / count, rel=1e-5)
    if sd is None:
        variance = float(np.sum((1.0 - p) / p**2 * (z - away) ** 2)) + 0.5 * TWO * 0.7 / 0.09 * 144.0 / (theta * 0.3)
    else:
        variance = 0.7 / 0.3 * 144.0 * count
    assert found.sampling_error == pytest.approx(math.sqrt(variance) / count, rel=1e-4)


def test_a_mean_from_clusters_whose_noise_is_small():
    """k²/l (1 - f) S²/N², S² of the clusters' residual sums; k = 6 clusters of 2, of which 3 are drawn."""
    cluster = np.arange(12) // 2
    sample, at = drawn(ClusterSampling(chosen=3, clusters=6, max_size=2), seed=8, cluster=cluster)
    found = ask(sample, epsilon=LOUD)
    assert found.value == pytest.approx(X[at].mean(), rel=1e-6)
    sums = np.bincount(cluster[at], X[at] - X[at].mean(), 6)[np.unique(cluster[at])]
    variance = 0.5 * 36.0 / 3.0 * float(np.sum(sums**2)) / 2.0
    assert found.sampling_error == pytest.approx(math.sqrt(variance) / 12.0, rel=0.02)


def test_a_total_from_clusters_whose_noise_is_small():
    cluster = np.arange(12) // 2
    sample, at = drawn(ClusterSampling(chosen=3, clusters=6, max_size=2), seed=9, cluster=cluster)
    found = ask(sample, "total", epsilon=LOUD)
    assert found.value == pytest.approx(2.0 * X[at].sum(), rel=1e-6)
    sums = np.bincount(cluster[at], X[at], 6)[np.unique(cluster[at])]
    variance = 0.5 * 36.0 / 3.0 * float(np.var(sums, ddof=1))
    assert found.sampling_error == pytest.approx(math.sqrt(variance), rel=0.02)


@pytest.mark.parametrize(
    ("design", "options", "message"),
    [
        (PoissonPPS(low=0.3, high=0.6), {"sd": 1.0}, "a public sd needs equal weights"),
        (PoissonPPS(low=0.3, high=0.6), {"by": np.zeros(12)}, "needs epsilon= and no by="),
        (WithReplacement(5, 12), {"design_effect": True}, "design effects of samples"),
        (WithReplacement(5, 12), {"sd": "wide"}, "sd must be one of"),
        (Proportional(Fraction(2, 5)), {"sd": -1.0}, "sd must be"),
        (WithReplacement(5, 13), {}, "at least 13 records but fewer were given"),
    ],
)
def test_what_cannot_be_estimated_is_refused(design, options, message):
    with pytest.raises(InvalidInput, match=message):
        ask(drawn(design, seed=10, probability=CHANCE)[0], **options)


# --- adjusted


ANSWERED = np.array([1, 1, 0, 1, 1, 1, 0, 1, 1, 1, 1, 1], dtype=bool)
ANSWERS = np.where(ANSWERED, X, np.nan)
CLASS = np.array(["u", "v"])[np.arange(12) % 2]


def adjusted(sample, statistic="mean", **options):
    return adjust(sample, ANSWERS, statistic, **{"bounds": (LOW, HIGH), "epsilon": LOUD, **options})


def test_answers_stand_for_their_class():
    sample, at = drawn(WithoutReplacement(9, 12), seed=11)
    found = adjusted(sample, classes=CLASS)
    means = [X[at][ANSWERED[at] & (CLASS[at] == name)].mean() for name in ("u", "v")]
    assert found.value == pytest.approx(0.5 * sum(means), rel=1e-5)
    count = np.array([np.sum(ANSWERED[at] & (CLASS[at] == name)) for name in ("u", "v")])
    # e = g (z - its class's mean)/12, weights 12/9
    g = 6.0 / (count * 12.0 / 9.0)
    at_class = (CLASS == "v").astype(int)
    e = np.where(ANSWERED, g[at_class] * (X - np.array(means)[at_class]), 0.0)[at] / 12.0
    variance = 12.0**2 * (1.0 - 0.75) / 9.0 * e.var(ddof=1)
    assert found.sampling_error == pytest.approx(math.sqrt(variance), rel=2e-2)


def test_a_total_of_coins_counts_its_people_too():
    """Where sizes are secret, a class has as many people as were drawn, weighted."""
    sample, at = drawn(Poisson(0.75), seed=12)
    found = adjusted(sample, "total", classes=CLASS, class_sizes=["u", "v"])
    total = sum(
        np.sum(CLASS[at] == name) / 0.75 * X[at][ANSWERED[at] & (CLASS[at] == name)].mean() for name in ("u", "v")
    )
    assert found.value == pytest.approx(total, rel=1e-5)
    assert found.value != pytest.approx(X[at][ANSWERED[at]].sum() / 0.75, rel=1e-2)


def test_a_mean_of_coins_in_one_cell_asks_for_no_people():
    """A mean divides by the answers; how many people there are is neither needed nor released."""
    sample, at = drawn(Poisson(0.75), seed=13)
    found = adjusted(sample)
    assert found.value == pytest.approx(X[at][ANSWERED[at]].mean(), rel=1e-6)
    (mechanism, _) = sample.ledger.entries
    # one record moves the total by 6 and the count, times 0.6 of that: 9.6 over 3/4, in units of the total
    assert mechanism.sensitivity == pytest.approx((6.0 + 0.6 * 6.0) / 0.75, rel=1e-6)


def test_domains_and_a_public_margin():
    sample, at = drawn(WithoutReplacement(9, 12), seed=14)
    domain = np.array(["p", "q", "r"])[np.arange(12) % 3]
    found = adjusted(sample, domain=domain, domains=["p", "q"], margins={"m": (CLASS, {"u": 100.0, "v": 300.0})})
    answered = ANSWERED[at]
    g = {name: people / np.sum(answered & (CLASS[at] == name)) for name, people in (("u", 100.0), ("v", 300.0))}
    weight = np.array([g[name] for name in CLASS[at]]) * answered
    for name in ("p", "q"):
        w = weight * (domain[at] == name)
        assert found[name].value == pytest.approx(float(w @ X[at]) / w.sum(), rel=1e-5)


def test_a_ratio_of_two_columns():
    sample, at = drawn(WithoutReplacement(9, 12), seed=15)
    hours = np.linspace(1.0, 3.2, 12)
    found = adjusted(sample, "ratio", denominator=hours, denominator_bounds=(1.0, 4.0))
    both = at[ANSWERED[at]]
    ratio = X[both].sum() / hours[both].sum()
    assert found.value == pytest.approx(ratio, rel=1e-5)
    g = 12.0 / (both.size * 12.0 / 9.0)
    u = np.where(ANSWERED, X - ratio * hours, 0.0)[at]
    v = u.sum() / both.size
    e = np.where(ANSWERED[at], g * (u - v), 0.0) / (g * hours[both].sum() * 12.0 / 9.0)
    variance = 12.0**2 * 0.25 / 9.0 * e.var(ddof=1)
    assert found.sampling_error == pytest.approx(math.sqrt(variance), rel=2e-2)


@pytest.mark.parametrize("kind", ["laplace", "gaussian"])
def test_the_noise_of_adjusted_cells(kind):
    """Total and 0.6 h counts share 1 - variance_share of the budget; a replaced record moves two of them."""
    delta = 0.0 if kind == "laplace" else 1e-3
    sample, _ = drawn(WithoutReplacement(9, 12), seed=16)
    found = adjusted(sample, epsilon=1.0, noise=kind, delta=delta, variance_share=0.3)
    cells, spread = sample.ledger.entries
    theta = float(signal((0.75,), 1.0, delta, kind)[0]) * (1.0 - (2e-6 if kind == "gaussian" else 0.0))
    share = 0.7 if kind == "laplace" else math.sqrt(0.7)
    moved = 6.0 * (1.6 if kind == "laplace" else math.hypot(1.0, 0.6)) * 12.0 / 9.0
    scale = cells.scale if kind == "laplace" else cells.sigma
    assert scale == pytest.approx(2.0 * moved / (theta * share), rel=1e-5)
    assert cells.sensitivity == pytest.approx(moved, rel=1e-5)
    rest = 0.3 if kind == "laplace" else math.sqrt(0.3)
    reach = 12.0**2 * 0.25 / 9.0 * 4.0 / 9.0
    wide = spread.scale if kind == "laplace" else spread.sigma
    assert wide == pytest.approx(reach / (theta * rest), rel=1e-4)
    assert found.noise_error > 0


def test_signal_to_noise_is_that_of_the_kind():
    design = WithReplacement(5, 12)
    assert signal_to_noise(design, "laplace", 1.0, 0.0).theta == inner_epsilon(design, 1.0)
    assert signal_to_noise(design, "gaussian", 1.0, 1e-3).noise == "gaussian"


def test_the_noise_of_strata_hides_the_record_that_weighs_most_for_its_rate():
    """Rates 2/3 and 1/6: the largest of 2 w (6 + 3.6)/(theta share), theta of each stratum's own rate."""
    stratum = np.array(["a"] * 6 + ["b"] * 6)
    design = Stratified({"a": WithoutReplacement(4, 6), "b": WithoutReplacement(1, 6)})
    sample, _ = drawn(design, seed=17, stratum=stratum)
    found = adjusted(sample, epsilon=1.0, variance_share=0.3)
    cells, spread = sample.ledger.entries
    theta = np.log1p(math.expm1(1.0) / np.array([4 / 6, 1 / 6]))
    reach = 2.0 * 9.6 * np.array([1.5, 6.0])
    assert cells.noise.scale == pytest.approx(float(np.max(reach / (0.7 * theta))), rel=1e-5)
    assert cells.noise.grid == grid_for(float(np.max(reach / (0.7 * theta))), float(np.max(reach)), 12)
    assert dict(cells.sensitivities) == pytest.approx({"a": reach[0] / 2.0, "b": reach[1] / 2.0}, rel=1e-5)
    factor = np.array([36.0 * (1.0 - 4 / 6) / 4.0, 36.0 * (1.0 - 1 / 6)])
    moved = factor * 4.0 / np.array([4.0, 1.0])
    assert spread.noise.scale == pytest.approx(float(np.max(moved / (0.3 * theta))), rel=1e-4)
    assert LOW <= found.value <= HIGH
    loud, at = drawn(design, seed=18, stratum=stratum)
    weight = np.where(stratum == "a", 1.5, 6.0)[at] * ANSWERED[at]
    assert adjusted(loud).value == pytest.approx(float(weight @ X[at]) / weight.sum(), rel=1e-5)


def test_a_ratio_of_equal_values_has_only_what_is_added_for_noise():
    """Every residual is 0, so the variance is half a standard deviation of the noise of its squares."""
    sample, at = drawn(PoissonPPS(low=0.3, high=0.6), seed=19, probability=CHANCE)
    found = estimate(sample, np.full(12, 15.0), bounds=(LOW, HIGH), epsilon=1e6)
    count, theta = float(np.sum(1.0 / CHANCE[at])), inner_epsilon(sample.design, 1e6)
    variance = 0.5 * TWO * 0.7 / 0.09 * 144.0 / (theta * 0.2)
    assert variance < 0.1
    assert found.value == pytest.approx(15.0, rel=1e-5)
    assert found.sampling_error == pytest.approx(math.sqrt(variance) / count, rel=1e-2)
