"""Whom a rule keeps: the shortcut past records that cannot be kept changes nobody's fate."""

from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

from privamp import (
    Gaussian,
    GaussianProfile,
    GeneralProfile,
    Laplace,
    LinearProfile,
    Poisson,
    Population,
    WithoutReplacement,
    coreset,
    privacy_constrained,
    uniform,
    variance_optimal,
)
from privamp.chance.keyed import keep, keyed_numbers
from privamp.designs.importance import ImportanceSampling
from privamp.rules.rounded import probabilities_below
from privamp.testing import seeded_key

N = 150_000
PURE, GAUSSIAN = LinearProfile.of(Laplace(scale=5.0)), GaussianProfile.of(Gaussian(sigma=20.0))
RULES = {
    "pure": privacy_constrained(PURE, 1.0, radius=4.0),
    "gaussian": privacy_constrained(GAUSSIAN, 1.0, 1e-6, radius=4.0),
    "coreset": coreset(PURE, share=0.5, size=5000, population=N, mean_squared_norm=1.0, radius=4.0, dimension=1),
    "uniform": uniform(PURE, rate=0.03, radius=4.0),
    "variance-optimal": variance_optimal(PURE, kappa=0.1, floor=1e-4, radius=4.0),
}


def records():
    """Norms over many octaves, zeros, and records at the radius."""
    rng = np.random.default_rng(0)
    x = np.exp(rng.normal(-1.5, 2.0, N)).clip(max=4.0) * rng.choice([-1.0, 1.0], N)
    x[:50], x[50:100] = 0.0, 4.0
    return x


@pytest.mark.parametrize("name", RULES)
def test_kept_is_what_comparing_everybody_keeps(name):
    rule, x = RULES[name], records()
    numbers = keyed_numbers(seeded_key(3), np.arange(N, dtype=np.uint64))
    w = rule.weights(x)
    expected = np.flatnonzero(keep(numbers, probabilities_below(w)))
    places, weights = rule.kept(x, numbers)
    assert expected.size > 500
    np.testing.assert_array_equal(places, expected)
    np.testing.assert_array_equal(weights, w[expected])


@pytest.mark.parametrize("name", RULES)
def test_candidates_by_number_alone_hold_everybody_who_is_kept(name):
    rule, x, key = RULES[name], records(), seeded_key(3)
    ids = np.arange(N, dtype=np.uint64)
    kept, _ = rule.kept(x, keyed_numbers(key, ids))
    some = ImportanceSampling(rule).candidates(ids, key)
    assert set(kept) <= set(some)
    assert some.size < N
    if name == "uniform":
        assert some.size == kept.size


def test_a_limit_for_shorter_records_would_lose_some():
    rule, key = privacy_constrained(LinearProfile.of(Laplace(scale=30.0)), 1.0, radius=4.0), seeded_key(3)
    short = privacy_constrained(LinearProfile.of(Laplace(scale=30.0)), 1.0, radius=1.0)
    ids = np.arange(N, dtype=np.uint64)
    kept, _ = rule.kept(records(), keyed_numbers(key, ids))
    some, fewer = (ImportanceSampling(each).candidates(ids, key) for each in (rule, short))
    assert set(kept) <= set(some)
    assert some.size < N / 4
    assert not set(kept) <= set(fewer)


def test_numbers_at_the_very_limit_decide_alike():
    """One number just below, one at the limit of every record: the cell's bound must let the first one through."""
    rule = RULES["pure"]
    x = np.geomspace(1e-3, 4.0, 5000)
    limits = (rule.probabilities(x) * 2.0**64).astype(np.uint64)
    places, _ = rule.kept(np.repeat(x, 2), np.ravel(np.column_stack([limits - np.uint64(1), limits])))
    np.testing.assert_array_equal(places, 2 * np.arange(x.size))


@pytest.mark.parametrize("rule", ["pure", "gaussian"])
@pytest.mark.parametrize("size", [5, 3000])
def test_a_record_of_probability_one_is_kept_whatever_its_number(rule, size):
    """The largest number there is loses nobody; it comes up once in 2^64 records."""
    certain = privacy_constrained(PURE if rule == "pure" else GAUSSIAN, 1.0, 1e-6 if rule == "gaussian" else 0.0)
    x = np.full(size, certain.farthest)
    x[::2] = 1e-3
    assert np.all(certain.probabilities(x)[1::2] == 1.0)
    for number in (2**64 - 1, 2**64 - 2):
        places, weights = certain.kept(x, np.full(size, number, np.uint64))
        assert places.tolist() == list(range(1, size, 2))
        assert np.all(weights == 1.0)


@pytest.mark.parametrize("size", [5, 3000])
@pytest.mark.parametrize("general", [False, True])
def test_a_rule_that_reads_the_whole_record_keeps_by_its_own_probabilities(size, general):
    """Records of one norm with different influences: their norm decides nothing."""
    rng = np.random.default_rng(6)
    angle = rng.uniform(0.0, 2.0 * np.pi, size)
    x, numbers = np.column_stack([np.cos(angle), np.sin(angle)]), rng.integers(0, 2**63, size, dtype=np.uint64)
    first = LinearProfile(lambda rows: 0.01 + 0.5 * np.abs(rows[:, 0]))
    profile = GeneralProfile(
        lambda w, rows: w * first.influences(rows),
        lambda w, rows: first.influences(rows) + 0.0 * w,
        lambda rows: first.influences(rows) ** 2,
    )
    rule = privacy_constrained(profile if general else first, 1.0)
    assert not rule.decides_by_norm
    q = rule.probabilities(x)
    places, weights = rule.kept(x, numbers)
    assert places.tolist() == np.flatnonzero(numbers < q * 2.0**64).tolist()
    assert np.array_equal(weights, rule.weights(x)[places])
    assert np.ptp(q) > 0.05


@pytest.mark.parametrize(("odd", "counts_as"), [(np.nan, 0.0), (np.inf, 4.0), (-np.inf, 4.0), (4.1, 4.0)])
@pytest.mark.parametrize("rule", ["pure", "gaussian"])
def test_a_record_outside_the_domain_counts_as_a_public_one_and_is_no_error(rule, odd, counts_as):
    """An error, or another fate of the others, would tell that the record is there."""
    x, numbers = records(), np.random.default_rng(3).integers(0, 2**62, N, dtype=np.uint64)
    x[7] = counts_as
    expected = RULES[rule].kept(x, numbers)
    x[7] = odd
    for found, wanted in zip(RULES[rule].kept(x, numbers), expected, strict=True):
        np.testing.assert_array_equal(found, wanted)


def test_beyond_the_norm_that_uses_the_target_up_a_rule_without_radius_clips_as_well():
    rule = privacy_constrained(LinearProfile.of(Laplace(1.0)), 1.0)
    assert rule.weights([[np.nan], [rule.farthest], [2.0], [np.inf]]).tolist() == [2.0**40, 1.0, 1.0, 1.0]


@pytest.mark.parametrize("rule", ["pure", "gaussian"])
@pytest.mark.parametrize("width", [0, 1, 5, 16])
def test_a_record_has_its_weight_whatever_stands_beside_it(rule, width):
    """Bit for bit: alone, in any order, in any memory, with odd records among the others."""
    rng = np.random.default_rng(4)
    x = rng.normal(size=(1500, width) if width else 1500)
    x[::100] = 0.0
    x[50::100] = np.nan
    w = RULES[rule].weights(x)
    numbers = rng.integers(0, 2**60, len(x), dtype=np.uint64)
    places, kept = RULES[rule].kept(x, numbers)
    assert 50 < places.size < len(x)
    order = rng.permutation(len(x))
    for again, of in [(x[order], order), (x[::-1], np.arange(len(x))[::-1]), (np.asfortranarray(x), slice(None))]:
        np.testing.assert_array_equal(RULES[rule].weights(again), w[of])
    for i in range(0, len(x), 7):
        assert RULES[rule].weights(x[i : i + 1])[0] == w[i]
        alone, weight = RULES[rule].kept(x[i : i + 1], numbers[i : i + 1])
        assert alone.size == (i in places)
        assert weight.tolist() == kept[places == i].tolist()


@pytest.mark.parametrize("design", [ImportanceSampling(RULES["pure"]), Poisson(0.01), WithoutReplacement(999, N)])
def test_threads_draw_the_same_sample(design):
    population, key = Population(N, x=np.abs(records())), seeded_key(8)
    with ThreadPoolExecutor(3) as pool:
        spread = design.draw(population, key, over=pool.map)
    whole = design.finish(design.merge([design.partial(population.batch(), spread._key)]), spread._key)
    for drawn in (spread._drawn, design.draw(population, key)._drawn):
        order, expected = np.argsort(drawn.positions), np.argsort(whole.positions)
        np.testing.assert_array_equal(drawn.positions[order], whole.positions[expected])
        np.testing.assert_array_equal(drawn.weights[order], whole.weights[expected])
