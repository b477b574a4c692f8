"""Schedules: bounds against enumeration, samplers against their laws, refusals, specs."""

from dataclasses import dataclass, fields

import numpy as np
import pytest

from privamp import (
    ApproxDP,
    BallsInBins,
    CyclicPoisson,
    Gaussian,
    InvalidInput,
    Key,
    Laplace,
    Neighbors,
    NoTheorem,
    Poisson,
    Population,
    Rounds,
    TruncatedPoisson,
    WithoutReplacement,
    amplification,
    amplify,
    calibrate,
    compose,
    spec,
)
from privamp.accounting.allocation import allocation_attack
from privamp.accounting.some_of_many import some_of_many
from privamp.core.schedule import OneOf, Schedule, uniform_bins
from privamp.verify import check_design, check_schedule

KEY = Key.from_bytes(bytes(range(32)))


@pytest.mark.parametrize("schedule", [BallsInBins, CyclicPoisson, Rounds])
def test_every_schedule_passes_the_exact_checks(schedule) -> None:
    report = check_schedule(schedule, checks=10)
    assert report.ok, str(report)


@dataclass(frozen=True, slots=True)
class TooManyBins(BallsInBins):
    """Claims what one of twice as many rounds would give."""

    def blocks(self):
        return ((OneOf(2 * self.rounds), self.epochs),)


@dataclass(frozen=True, slots=True)
class BinsByRank(BallsInBins):
    """Puts record i into bin i mod rounds: not random at all."""

    def bins(self, population, key, epoch=0):
        return (np.arange(Population.of(population).size) % self.rounds)[:, None]


@dataclass(frozen=True, slots=True)
class RateOfEverybody(CyclicPoisson):
    """Counts a group's turns, but at the rate averaged over all rounds."""

    def blocks(self):
        return ((Poisson(self.rate), -(-self.steps // self.bands)),)


@dataclass(frozen=True, slots=True)
class IncompleteTurnsForgotten(CyclicPoisson):
    """Rounds the number of a group's turns down."""

    def blocks(self):
        return ((Poisson(self.group_rate), self.steps // self.bands),)


@dataclass(frozen=True, slots=True)
class GroupsByRank(CyclicPoisson):
    """Deals the groups out in the order of the records: not random at all."""

    def groups(self, population, key):
        return np.arange(Population.of(population).size) % self.bands


@dataclass(frozen=True, slots=True)
class OneRoundTooFew(Rounds):
    """Pays for all rounds but the last."""

    def blocks(self):
        return ((self.design, max(self.steps - 1, 1)),)


@dataclass(frozen=True, slots=True)
class OneDrawForAll(Rounds):
    """Draws once and uses the sample in every round."""

    def drawn(self, population, key, step):
        return self.design.draw(population, key, 0).reveal_secret()


@dataclass(frozen=True, slots=True)
class KnownGroups(CyclicPoisson):
    """Claims the attack on known groups although the key hides them."""

    @property
    def is_tight(self):
        return True


@pytest.mark.parametrize(
    ("planted", "others", "kind"),
    [
        (TooManyBins(2), 0, "upper bounds"),
        (BinsByRank(2), 2, "sampler follows its law"),
        (RateOfEverybody(0.3, 2, 4), 0, "upper bounds"),
        (IncompleteTurnsForgotten(0.3, 2, 3), 0, "upper bounds"),
        (GroupsByRank(0.3, 2, 2), 2, "sampler follows its law"),
        (KnownGroups(0.3, 2, 4), 0, "attacks"),
        (OneRoundTooFew(Poisson(0.25), 2), 0, "upper bounds"),
        (OneDrawForAll(Poisson(0.25), 2), 1, "sampler follows its law"),
    ],
    ids=lambda value: type(value).__name__ if isinstance(value, Schedule) else str(value),
)
def test_planted_mistakes_are_caught(monkeypatch, planted, others, kind) -> None:
    """On one case each; the schedule without the mistake passes on it."""
    honest = type(planted).__base__
    for kept in (honest, type(planted)):
        case = kept(*(getattr(planted, field.name) for field in fields(planted)))
        monkeypatch.setattr(kept, "small_cases", classmethod(lambda _, case=case: iter([(case, others)])))
        report = check_schedule(kept, checks=1)
        broken = {tally.kind for tally in report.tallies if tally.violations}
        assert (kind in broken) == (kept is not honest), str(report)
        assert report.ok == (kept is honest)


def test_rounds_are_composition() -> None:
    one = amplify(Gaussian(1.0), Poisson(0.01))
    assert amplify(Gaussian(1.0), Rounds(Poisson(0.01), 50)).epsilon(1e-6) == compose(one, 50).epsilon(1e-6)
    exact = amplify(Gaussian(2.0), Rounds(WithoutReplacement(10, 100), 5))
    assert exact.neighbors == Neighbors.REPLACE_ONE
    assert exact.steps == 5


def test_balls_in_bins_beat_poisson_and_carry_an_attack() -> None:
    bins, poisson = (amplify(Gaussian(1.0), s) for s in (BallsInBins(100), Rounds(Poisson(0.01), 100)))
    assert bins.lower is not None
    assert 0.8578 < bins.lower.epsilon(1e-6) < 0.858 < bins.epsilon(1e-6) < 0.8581 < poisson.lower.epsilon(1e-6)
    assert bins.because[0].startswith("Random allocation")
    assert any("empty bins" in sentence for sentence in bins.assumes)


def test_epochs_compose_and_several_rounds_per_epoch_cost_more() -> None:
    one = amplify(Gaussian(2.0), BallsInBins(50))
    many = amplify(Gaussian(2.0), BallsInBins(50, epochs=100))
    assert many.epsilon(1e-6) == compose(one, 100).epsilon(1e-6)
    assert 0 < many.lower.epsilon(1e-6) < many.epsilon(1e-6) < 1.002 * many.lower.epsilon(1e-6)
    twice = amplify(Gaussian(2.0), BallsInBins(50, times=2))
    assert one.epsilon(1e-6) < twice.epsilon(1e-6)


@pytest.mark.parametrize(
    ("sigma", "times", "rounds", "epochs", "share"),
    [(2.0, 2, 50, 1, 0.99), (1.0, 10, 1000, 1, 0.98), (2.0, 2, 50, 9, 0.98)],
)
def test_several_rounds_per_epoch_have_an_attack_near_the_bound(sigma, times, rounds, epochs, share) -> None:
    guarantee = amplify(Gaussian(sigma), BallsInBins(rounds, epochs, times))
    assert share * guarantee.epsilon(1e-6) < guarantee.lower.epsilon(1e-6) < guarantee.epsilon(1e-6)
    assert compose(guarantee, 2).lower is None  # the attack is on the whole schedule, not on one of its blocks


def test_scores_of_one_round_in_several_are_below_the_exact_pair() -> None:
    exact = {1.0: (5.9206501086e-2, 5.0197662369e-2), 2.0: (4.7457776332e-3, 2.0559245297e-3)}  # by quadrature
    scored = some_of_many(Gaussian(1.0).profile(Neighbors.ADD_REMOVE), 1, 2)
    for epsilon, (forward, backward) in exact.items():
        assert 0.4 * forward < np.exp(scored.forward(epsilon)) <= forward
        assert 0.99 * backward < np.exp(scored.backward(epsilon)) <= backward


def test_scores_of_a_record_that_is_seen_for_sure_count_it() -> None:
    scored = some_of_many(ApproxDP(0.5, 1e-3).profile(Neighbors.ADD_REMOVE), 3, 10)
    lost = 1 - (1 - 1e-3) ** 3
    assert 0.999 * lost < np.exp(scored.forward(20.0)) <= lost


def one_round_more(mechanism, times, rounds, epochs):
    """Counts the record once too often."""
    return allocation_attack(mechanism, min(times + 1, rounds), rounds, epochs)


def test_an_attack_that_counts_a_round_too_many_is_caught(monkeypatch) -> None:
    several = [case for case in BallsInBins.small_cases() if case[0].times > 1]
    monkeypatch.setattr(BallsInBins, "small_cases", classmethod(lambda _: iter(several)))
    assert check_schedule(BallsInBins, checks=6).ok
    monkeypatch.setattr(amplification, "allocation_attack", one_round_more)
    report = check_schedule(BallsInBins, checks=6)
    assert any(tally.kind == "attacks" and tally.violations for tally in report.tallies), str(report)


def test_other_noise() -> None:
    guarantee = amplify(Laplace(0.5), BallsInBins(20))
    assert guarantee.epsilon() == pytest.approx(2.0)
    assert guarantee.lower.epsilon(1e-6) < guarantee.epsilon(1e-6) < 2.0


def test_nothing_is_claimed_for_replaced_records() -> None:
    with pytest.raises(NoTheorem, match="replace-one"):
        amplify(Gaussian(1.0), BallsInBins(10), Neighbors.REPLACE_ONE)


def test_a_person_with_several_records_costs_more() -> None:
    one, three = (amplify(Gaussian(2.0), BallsInBins(10), Neighbors.ADD_REMOVE.for_person(j)) for j in (1, 3))
    assert three.epsilon(1e-6) > one.epsilon(1e-6)
    assert "group privacy" in three.because[0]


def test_noise_is_calibrated_for_a_schedule() -> None:
    noise = calibrate(Gaussian, BallsInBins(20), epsilon=1.0, delta=1e-6)
    assert amplify(noise, BallsInBins(20)).epsilon(1e-6) <= 1.0
    assert amplify(Gaussian(noise.sigma * 0.99), BallsInBins(20)).lower.epsilon(1e-6) > 1.0 - 1e-3


def test_a_bin_depends_on_the_record_alone() -> None:
    schedule, everybody = BallsInBins(7, epochs=2, times=3), Population(range(200), "people")
    some = Population([3, 50, 199], "people")
    for epoch in (0, 1):
        bins = schedule.bins(everybody, KEY, epoch)
        assert np.array_equal(bins[[3, 50, 199]], schedule.bins(some, KEY, epoch))
        assert all(len(set(row)) == 3 for row in bins.tolist())
    assert not np.array_equal(schedule.bins(everybody, KEY, 0), schedule.bins(everybody, KEY, 1))
    groups = CyclicPoisson(0.1, 4, 8)
    assert np.array_equal(groups.groups(everybody, KEY)[[3, 50, 199]], groups.groups(some, KEY))


def test_bins_are_drawn_again_when_the_last_turn_is_incomplete(monkeypatch) -> None:
    from privamp.core import schedule

    asked = []

    def numbers(key, ids, stage=0):
        asked.append(stage)
        return np.full(len(ids), 2**64 - 1 if stage < 2 else 5, dtype=np.uint64)

    monkeypatch.setattr(schedule, "keyed_numbers", numbers)
    assert uniform_bins(KEY, np.arange(2, dtype=np.uint64), 7).tolist() == [5, 5]  # 2**64 = 2 modulo 7
    assert asked == [0, 1, 2]


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda: BallsInBins(0), "rounds must be"),
        (lambda: BallsInBins(5, epochs=0), "epochs must be"),
        (lambda: BallsInBins(5, times=6), "times must be"),
        (lambda: CyclicPoisson(0.3, 4, 10), "at most 1, got 4 \\* 0.3"),
        (lambda: CyclicPoisson(0.01, 11, 10), "bands must be at most steps"),
        (lambda: Rounds("poisson", 3), "needs a design"),
        (lambda: Rounds(Poisson(0.1), 0), "steps must be"),
        (lambda: spec.design_or_schedule("rounds:steps=3"), "design=…"),
        (lambda: BallsInBins(5).drawn(10, KEY, 5), "step must be"),
        (lambda: BallsInBins(-1), "rounds must be"),
        (lambda: BallsInBins(5, times=0), "times must be"),
        (lambda: CyclicPoisson(0.01, 0, 10), "bands must be"),
        (lambda: TruncatedPoisson(0.1, 0), "most must be"),
        (lambda: check_schedule(5), "a value of type int; use check_design for designs"),
        (lambda: check_schedule(BallsInBins(3)), "a value of type BallsInBins"),
        (lambda: check_schedule(Poisson), "the class Poisson; use check_design for designs"),
        (lambda: check_schedule(BallsInBins, checks=0), "checks must be"),
        (lambda: check_design(BallsInBins), "the class BallsInBins; use check_schedule for schedules"),
        (lambda: check_design(Poisson(0.1)), "a value of type Poisson"),
    ],
)
def test_bad_input_gets_one_sentence(make, words) -> None:
    with pytest.raises(InvalidInput, match=words):
        make()


def test_spec_strings() -> None:
    assert spec.design_or_schedule("balls-in-bins:rounds=100,epochs=10") == BallsInBins(100, 10)
    assert spec.design_or_schedule("cyclic-poisson:rate=0.01,bands=4,steps=40") == CyclicPoisson(0.01, 4, 40)
    assert spec.design_or_schedule("rounds:steps=9,design=wor:size=1,population=5") == Rounds(
        WithoutReplacement(1, 5), 9
    )
    assert spec.design_or_schedule("poisson:rate=0.5") == Poisson(0.5)
    assert spec.stated_for(BallsInBins(4), None) == Neighbors.ADD_REMOVE
    assert spec.stated_for(Rounds(WithoutReplacement(1, 5), 9), None) == Neighbors.REPLACE_ONE
