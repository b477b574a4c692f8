"""A mechanism stated within a stratum (or a cluster) says nothing about a design that draws across them."""

from dataclasses import dataclass
from itertools import combinations
from math import comb

import pytest

from privamp import (
    ApproxDP,
    Gaussian,
    InvalidInput,
    Joint,
    Laplace,
    Mechanism,
    Neighbors,
    NoTheorem,
    Poisson,
    Population,
    PureDP,
    Stratified,
    WithoutReplacement,
    WithReplacement,
    amplify,
    calibrate,
)
from privamp.accounting.filters import ApproxFilter, GaussianFilter, PureFilter, RenyiFilter
from privamp.accounting.renyi import RenyiDP, renyi_of_mechanism
from privamp.amplification import certify_ledger
from privamp.core.mechanism import ONE
from privamp.mechanisms.augmented_rows import AugmentedRows
from privamp.mechanisms.per_stratum import PerStratum

RO = Neighbors.REPLACE_ONE
STRATUM, CLUSTER = (Neighbors("replace-one", scope=f"within {part}") for part in ("stratum", "cluster"))
HALVES = Stratified({"a": WithoutReplacement(1, 2), "b": WithoutReplacement(1, 2)})


def counts_of_stratum_a(strata, size):
    """The exact law of how many sampled records are in stratum a: what such a mechanism may publish as it is."""
    law = {}
    for kept in combinations(strata, size):
        law[kept.count("a")] = law.get(kept.count("a"), 0.0) + 1 / comb(len(strata), size)
    return law


def test_the_truth_is_infinite():
    """Within a stratum its size stays as it is, so publishing it is 0-DP there; drawn across strata it tells."""
    one, other = counts_of_stratum_a("aab", 2), counts_of_stratum_a("bab", 2)
    assert any(chance > 0 and count not in other for count, chance in one.items())


MECHANISMS = [
    lambda relation: PureDP(1.0, neighbors=relation),
    lambda relation: ApproxDP(1.0, 1e-6, neighbors=relation),
    lambda relation: Laplace(1.0, neighbors=relation),
    lambda relation: Gaussian(1.0, neighbors=relation),
    lambda relation: RenyiDP(8.0, 0.1, neighbors=relation),
    lambda relation: Joint([PureDP(1.0, neighbors=relation)]),
    lambda relation: Joint([PureDP(0.5), PureDP(1.0, neighbors=relation)]),
    lambda relation: Joint([Gaussian(1.0, neighbors=relation)] * 2),
    lambda relation: Joint([Gaussian(1.0, neighbors=RO), Gaussian(1.0, neighbors=relation)]),
]
ACROSS = [WithoutReplacement(1, 2), WithReplacement(2, 3), Poisson(0.5)]


@pytest.mark.parametrize("design", ACROSS, ids=lambda d: type(d).__name__)
@pytest.mark.parametrize("asked", [RO, STRATUM, CLUSTER], ids=str)
@pytest.mark.parametrize("scope", [STRATUM, CLUSTER], ids=str)
def test_a_design_across_strata_is_refused(design, asked, scope):
    for make in MECHANISMS:
        with pytest.raises(NoTheorem):
            amplify(make(scope), design, asked)


@dataclass(frozen=True)
class Careless(Mechanism):
    """A mechanism of somebody's own, which looks at the kind of a relation only."""

    neighbors: Neighbors

    def profile(self, neighbors, change=ONE):
        return PureDP(1.0, neighbors=RO).profile(neighbors, change)

    def release(self, value, stream):
        return value


def test_mechanisms_of_ones_own_are_held_to_their_scope():
    assert amplify(Careless(RO), WithoutReplacement(1, 2)).epsilon() == pytest.approx(0.620115, abs=1e-6)
    for what in (Careless(STRATUM), Joint([Careless(STRATUM)]), Joint([Careless(RO), Careless(STRATUM)])):
        with pytest.raises(NoTheorem):
            amplify(what, WithoutReplacement(1, 2), RO)
    for limit in (PureFilter(5.0, RO), ApproxFilter(5.0, 1e-6, RO), RenyiFilter(8.0, 5.0, 1e-6, neighbors=RO)):
        with pytest.raises(NoTheorem):
            limit.cost(Careless(STRATUM))


def test_a_stratified_design_keeps_strata_apart():
    for make in MECHANISMS[:5]:
        within = amplify(make(STRATUM), HALVES, STRATUM)
        anywhere = amplify(make(RO), HALVES, STRATUM)
        assert within.delta(0.3) == anywhere.delta(0.3)
        assert within.neighbors == STRATUM
        with pytest.raises(NoTheorem):
            amplify(make(STRATUM), Stratified({"a": Poisson(0.5), "b": Poisson(0.5)}), RO)
        with pytest.raises(NoTheorem):
            amplify(make(CLUSTER), HALVES, STRATUM)
        with pytest.raises(NoTheorem):
            amplify(make(CLUSTER), HALVES, CLUSTER)


def test_a_move_between_strata_of_fixed_sizes_replaces_one_record_in_each_sample():
    """Both samples keep their sizes, so each changes by a replacement within its stratum."""
    moved = amplify(PureDP(0.5, neighbors=STRATUM), HALVES, RO)
    assert moved.epsilon() == pytest.approx(amplify(PureDP(0.5, neighbors=RO), HALVES, RO).epsilon(), rel=1e-12)


def test_longer_rows_and_sensitivities_by_stratum():
    noise = PerStratum(Laplace(2.0, neighbors=RO), (("a", 1.0), ("b", 2.0)))
    assert amplify(noise, HALVES, STRATUM).epsilon() > 0
    assert amplify(Joint([noise, noise]), HALVES, STRATUM).epsilon() > amplify(noise, HALVES, STRATUM).epsilon()
    for what in (noise, Joint([noise, noise])):
        with pytest.raises(NoTheorem):
            amplify(what, WithoutReplacement(1, 2), STRATUM)
    rows = AugmentedRows(Laplace(2.0), 1.0)
    assert rows.in_stratum("a") == rows


@pytest.mark.parametrize("make", MECHANISMS)
def test_filters_do_not_count_what_says_nothing_about_their_relation(make):
    for asked in (RO, CLUSTER):
        limits = [
            PureFilter(50.0, asked),
            ApproxFilter(50.0, 0.1, asked),
            RenyiFilter(8.0, 50.0, 0.1, neighbors=asked),
            GaussianFilter(50.0, asked),
        ]
        for limit in limits:
            with pytest.raises(NoTheorem):
                limit.cost(make(STRATUM), delta=1e-3)
        with pytest.raises(NoTheorem):
            renyi_of_mechanism(make(STRATUM), 8.0, asked)
    PureFilter(50.0, STRATUM).cost(PureDP(1.0, neighbors=STRATUM))


@pytest.mark.parametrize("limit", [PureFilter(1.0, STRATUM), GaussianFilter(1.0, STRATUM)], ids=lambda f: f.rule)
def test_a_limit_within_strata_certifies_only_designs_that_keep_them_apart(limit):
    with pytest.raises(NoTheorem):
        WithoutReplacement(2, 4).draw(4).limit(limit).guarantee(STRATUM)
    strata = Population(4, stratum=["a", "a", "b", "b"])
    assert HALVES.draw(strata).limit(limit).guarantee().neighbors == STRATUM


def test_ledgers_and_calibration():
    for entries in ([Laplace(1.0, neighbors=STRATUM)], [Laplace(1.0, neighbors=RO), Laplace(1.0, neighbors=STRATUM)]):
        ledger = WithoutReplacement(2, 4).draw(4).ledger
        for mechanism in entries:
            ledger.register(mechanism)  # past the sample's own refusal
        for asked in (RO, STRATUM):
            with pytest.raises(NoTheorem):
                certify_ledger(ledger, WithoutReplacement(2, 4), asked, is_test=False)
    with pytest.raises(NoTheorem):
        calibrate(lambda s: Laplace(s, neighbors=STRATUM), WithoutReplacement(2, 4), epsilon=1.0)


def test_scopes_that_do_not_fit_together():
    with pytest.raises(InvalidInput, match="within cluster"):
        Joint([PureDP(1.0, neighbors=STRATUM), PureDP(1.0, neighbors=CLUSTER)])
    with pytest.raises(InvalidInput, match="replace-one"):
        Neighbors("add-remove", scope="within stratum")


def test_a_sample_refuses_what_it_could_not_certify_before_it_is_released():
    noise = Laplace(1.0, neighbors=STRATUM)
    calls = []
    sample = WithoutReplacement(2, 4).draw(4)
    for ask in (
        lambda: sample.release(noise, lambda drawn: calls.append(drawn) or 0.0),
        lambda: sample.run(PureDP(1.0, neighbors=STRATUM), lambda drawn, stream: calls.append(drawn)),
        lambda: sample.declare([noise]),
        lambda: sample.limit(PureFilter(1.0, STRATUM)),
    ):
        with pytest.raises(NoTheorem, match="within stratum"):
            ask()
    assert not calls
    assert sample.ledger.entries == ()
    strata = Population(4, stratum=["a", "a", "b", "b"])
    apart = Stratified({"a": WithoutReplacement(1, 2), "b": WithoutReplacement(1, 2)}).draw(strata)
    apart.release(noise, [0.1, 0.2, 0.3, 0.4], center=0.5)
    assert apart.guarantee(STRATUM).epsilon() < 1.0
