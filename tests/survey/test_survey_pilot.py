"""Paid pilots: what one record moves, what the sizes gain, what is refused."""

import numpy as np
import pytest

from privamp import Budget, InvalidInput, Neighbors, Poisson, Population, Stratified, WithoutReplacement
from privamp.audits.records import pilots
from privamp.survey import Stratum, allocate, pilot
from privamp.testing import seeded_key

STRATUM = np.repeat(["a", "b", "c"], [5000, 3000, 500])
RANDOM = np.random.default_rng(4)
VALUES = np.concatenate([RANDOM.normal(40, 4, 5000), RANDOM.normal(50, 15, 3000), RANDOM.uniform(0, 1000, 500)])
BOUNDS = {"a": (0, 100), "b": (0, 100), "c": (0, 1000)}
TRUE = {name: float(VALUES[name == STRATUM].std(ddof=1)) for name in "abc"}
SMALL = Stratified({"a": WithoutReplacement(300, 5000), "b": WithoutReplacement(180, 3000),
                    "c": WithoutReplacement(60, 500)})  # fmt: skip


def piloted(seed, epsilon=1.0, **options):
    sample = SMALL.draw(Population(8500, stratum=STRATUM), seeded_key(seed))
    return pilot(sample, VALUES, bounds=BOUNDS, epsilon=epsilon, **options)


@pytest.mark.parametrize("noise", [{}, {"noise": "gaussian", "delta": 1e-6}])
def test_standard_deviations_and_their_price(noise):
    for name, sd in piloted(101, 300.0, **noise).sd.items():
        assert sd == pytest.approx(TRUE[name], rel=0.35)
    found = piloted(1, 3.0, **noise)
    assert found.guarantee.epsilon(noise.get("delta", 0.0)) <= 3.0 * (1 + 1e-9)
    assert found.guarantee.epsilon(noise.get("delta", 0.0)) >= 2.9
    assert found.guarantee.neighbors.scope == "within stratum"


def test_variances_are_the_textbook_s_without_noise():
    sample = SMALL.draw(Population(8500, stratum=STRATUM), seeded_key(2))
    at = sample.reveal_secret().positions
    found = pilot(sample, VALUES, bounds=BOUNDS, epsilon=1e5)
    for name, sd in found.sd.items():
        drawn = np.clip(VALUES[at][STRATUM[at] == name], *BOUNDS[name])
        assert sd == pytest.approx(drawn.std(ddof=1), rel=1e-3)


def test_sizes_by_a_pilot_are_nearly_the_best():
    """Ten pilots: the true variance of their allocations over that of the best, and of minimax."""
    strata = [Stratum(n, int((n == STRATUM).sum()), BOUNDS[n][1] - BOUNDS[n][0], TRUE[n]) for n in "abc"]

    def true_variance(sizes):
        total = sum(h.population for h in strata)
        return sum(h.population**2 * h.sd**2 * (1 / sizes[h.name] - 1 / h.population) for h in strata) / total**2

    best = true_variance(allocate(strata, 600, 3.0).sizes)
    proportional = true_variance(allocate(strata, 600, 3.0, "proportional").sizes)
    found = [true_variance(piloted(seed, 1.0).allocate(600, 3.0).sizes) for seed in range(10)]
    assert np.mean(found) < 1.25 * best < 0.5 * proportional


def test_one_record_shows_no_spread():
    design = Stratified({"a": WithoutReplacement(1, 5000), "b": WithoutReplacement(180, 3000),
                         "c": WithoutReplacement(60, 500)})  # fmt: skip
    sample = design.draw(Population(8500, stratum=STRATUM), seeded_key(3))
    found = pilot(sample, VALUES, bounds=BOUNDS, epsilon=1.0)
    assert found.sd["a"] is None
    assert found.allocate(600, 1.0).sizes["a"] > 1


def test_nothing_is_paid_for_a_pilot_that_shows_no_spread(tmp_path):
    budget = Budget.create(tmp_path / "b.db", population="p", epsilon=2.0, neighbors=Neighbors.REPLACE_ONE)
    design = Stratified({"a": WithoutReplacement(1, 5000), "b": WithoutReplacement(1, 3000),
                         "c": WithoutReplacement(1, 500)})  # fmt: skip
    for draws, columns in ((design, {"stratum": STRATUM}), (WithoutReplacement(1, 8500), {})):
        with pytest.raises(InvalidInput, match="shows no spread"):
            pilot(draws, VALUES, bounds=(0, 1000), epsilon=1.0, budget=budget, **columns)
    assert not budget.log()


def test_what_a_pilot_does_not_need_may_be_given_as_it_is():
    assert piloted(10, variance_share=1 / 5, design_effect=False, weights="-".join(["horvitz", "thompson"])).sd["a"] > 0


def test_hidden_strata_count_as_varied():
    found = piloted(4, 1e-3)
    for h in found.strata:
        assert h.sd > 0.2 * h.largest_sd
        assert h.sd <= h.largest_sd


def test_the_second_oracle_finds_planted_mistakes():
    assert all(make().perform(12).ok for make in pilots.JOBS)
    assert not any(make().perform(60).ok for make in pilots.PLANTED)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: pilot(Poisson(0.5), VALUES, bounds=(0, 1), epsilon=1.0, key=seeded_key(1)), "without replacement"),
        (lambda: pilot(SMALL, VALUES, bounds=(0, 1e-200), epsilon=1.0, stratum=STRATUM, key=seeded_key(11)), "apart"),
        (lambda: pilot(SMALL, VALUES, bounds=1e200, epsilon=1.0, stratum=STRATUM, key=seeded_key(12)), "another unit"),
        (lambda: piloted(5, by=STRATUM), "got by instead"),
        (lambda: piloted(6, sd=1.0), "got sd instead"),
        (lambda: piloted(13, variance_share=0.3), "got variance_share instead"),
        (lambda: piloted(7, epsilon=0.0), "epsilon"),
        (lambda: piloted(8, delta=1e-6), "delta"),
        (lambda: pilot(SMALL, VALUES[:10], bounds=BOUNDS, epsilon=1.0, stratum=STRATUM[:10]), "declare a number"),
    ],
)
def test_what_is_refused(make, message):
    with pytest.raises(InvalidInput, match=message):
        make()


def test_a_sample_answers_once():
    sample = SMALL.draw(Population(8500, stratum=STRATUM), seeded_key(9))
    pilot(sample, VALUES, bounds=BOUNDS, epsilon=1.0)
    with pytest.raises(InvalidInput, match="already made"):
        pilot(sample, VALUES, bounds=BOUNDS, epsilon=1.0)
