"""The suite on the library's designs, and on designs with a deliberate fault that it must report."""

import math
import warnings
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import pytest

from privamp import (
    MultiStage,
    Neighbors,
    Poisson,
    PureDP,
    Theorem,
    WithoutReplacement,
    WithReplacement,
    amplify,
)
from privamp.core.curves import pure_curve
from privamp.core.profile import Profile
from privamp.verify import check_design, exact_epsilon
from privamp.verify.sampler import follows_law

AR, RO = Neighbors.ADD_REMOVE, Neighbors.REPLACE_ONE
DESIGNS = [Poisson, WithoutReplacement, WithReplacement, MultiStage]


@pytest.mark.parametrize("design_class", DESIGNS)
def test_every_design_passes(design_class):
    """At least 2,000 different cases a design, 100 for each theorem and pair of relations, and no violation."""
    report = check_design(design_class, checks=1000, seed=1)
    assert report.ok, str(report)
    assert report.cases >= 2000
    kinds = {tally.kind: tally.comparisons for tally in report.tallies}
    assert kinds["pure upper bounds"] >= 1000
    assert kinds["pure attacks"] >= 1000
    assert kinds["delta of noisy sums"] >= 1000
    assert kinds["sampler follows its law"] >= 20
    assert kinds["broken samplers are caught"] >= 15
    alone = {kind: count for kind, count in kinds.items() if kind.startswith("alone: ")}
    of_records = {t.name for t in design_class.theorems if not t.people}  # people: tests/designs/test_persons.py
    assert of_records == {kind[7:].split(" [")[0] for kind in alone}
    assert min(alone.values()) >= 100, alone
    if any(theorem.tight for theorem in design_class.theorems):
        assert kinds["tight theorems"] >= 500
        assert kinds["bounds 1% too small are caught"] >= 500


def test_simple_random_sampling_is_tight_for_add_remove_mechanisms_too():
    """Converted relations are not flagged tight, but here they are."""
    for design, population in WithoutReplacement.small_cases():
        for out in (AR, RO):
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")  # some of these degrade
                bound = amplify(PureDP(0.7), design, out).epsilon()
            truth = exact_epsilon(design, population, out, 0.7, mechanism_neighbors=AR)
            assert bound == pytest.approx(truth, abs=1e-9)


def test_the_same_seed_gives_the_same_report_and_progress_is_told():
    told = []
    one = check_design(Poisson, checks=40, seed=3, progress=lambda done, total: told.append((done, total)))
    assert one == check_design(Poisson, checks=40, seed=3)
    assert told
    assert all(done <= total for done, total in told)
    assert "Poisson: passed" in str(one)


def _half_the_rate(design, mechanism, neighbors):
    epsilon = mechanism.profile(RO).largest_loss
    return Profile.symmetric(pure_curve(math.log1p(0.5 * design.size / design.population * math.expm1(epsilon))))


@dataclass(frozen=True, slots=True)
class Optimistic(WithoutReplacement):
    """Claims half the sampling rate: false."""

    theorems: ClassVar[tuple[Theorem, ...]] = (
        Theorem("Wishful thinking", "nobody", "replace-one", "replace-one", True, _half_the_rate),
    )


@dataclass(frozen=True, slots=True)
class CallsItselfTight(WithReplacement):
    """A true bound that is not tight but says so."""

    theorems: ClassVar[tuple[Theorem, ...]] = (
        Theorem(
            "Loose",
            "nobody",
            "replace-one",
            "replace-one",
            True,
            WithReplacement.theorems[0].bound,
            groups=True,
        ),
    )


@dataclass(frozen=True, slots=True)
class Namesakes(WithoutReplacement):
    """A true theorem that settles the matter, and a false one that is called the same."""

    theorems: ClassVar[tuple[Theorem, ...]] = tuple(
        Theorem("Subsampling", "somebody", "replace-one", "replace-one", False, bound, settles=settles)
        for bound, settles in ((WithoutReplacement.theorems[0].bound, True), (_half_the_rate, False))
    )


@dataclass(frozen=True, slots=True)
class Biased(Poisson):
    """Keeps the first record of a batch 20% more often than its law says."""

    def partial(self, batch, subkey):
        kept = super(Biased, self).partial(batch, subkey)
        coin = np.random.default_rng(int.from_bytes(subkey.fingerprint[:8], "little")).random()
        return np.union1d(kept, [0]).astype(np.int64) if batch.offset == 0 and batch.ids.size and coin < 0.2 else kept


@dataclass(frozen=True, slots=True)
class Empty(Poisson):
    """No theorem, too few cases, and a law that does not add up."""

    theorems: ClassVar[tuple[Theorem, ...]] = ()

    def law(self, population):
        return ((units, p / 2) for units, p in super(Empty, self).law(population))

    @classmethod
    def small_cases(cls):
        yield cls(0.5), 2


def violated(report):
    return {tally.kind for tally in report.tallies if tally.violations}


def test_an_optimistic_theorem_is_reported():
    report = check_design(Optimistic, checks=60)
    assert not report.ok
    assert {"pure upper bounds", "delta of noisy sums"} <= violated(report)
    assert "is below the truth" in report.violations[0]
    assert "FAILED" in str(report)


def test_a_theorem_is_not_taken_for_another_of_the_same_name():
    found = violated(check_design(Namesakes, checks=20))
    assert found
    assert all(kind.startswith("alone: Subsampling [") for kind in found)


def test_a_false_claim_of_tightness_is_reported():
    assert violated(check_design(CallsItselfTight, checks=60)) == {
        "tight theorems",
        "bounds 1% too small are caught",
    }


def test_a_biased_sampler_is_reported():
    assert "sampler follows its law" in violated(check_design(Biased, checks=200))


def test_missing_parts_are_reported():
    report = check_design(Empty, checks=4)
    text = " ".join(report.violations)
    for fault in ("has no theorem", "1 different cases", "sums to 0.5"):
        assert fault in text


def test_the_law_test_keeps_its_false_alarm_probability():
    """3,000 right samplers at a false-alarm probability of 1%: alarms stay below it (bound, so far below)."""
    random = np.random.default_rng(0)
    law = {(0,): 0.6, (1,): 0.3, (2,): 0.1}
    picks = random.choice(3, size=(3000, 50), p=[0.6, 0.3, 0.1])
    alarms = sum(follows_law([(int(i),) for i in row], law, 0.01) is not None for row in picks)
    assert alarms <= 0.01 * len(picks)
