"""Closed forms and reference values; the exact oracle over small cases is in tests/verify."""

import math
import warnings
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import pytest

from privamp import (
    ApproxDP,
    Gaussian,
    InvalidInput,
    Joint,
    Laplace,
    MultiStage,
    Neighbors,
    NoTheorem,
    Poisson,
    PureDP,
    Stratified,
    Theorem,
    WithoutReplacement,
    WithReplacement,
    amplify,
)
from privamp.errors import DegradingDesign
from privamp.numerics.log_domain import log_mix
from privamp.verify.claims import claims_or_none, is_proved

AR, RO = Neighbors.ADD_REMOVE, Neighbors.REPLACE_ONE


def pure(epsilon, neighbors=RO):
    return PureDP(epsilon, neighbors=neighbors)


@pytest.mark.parametrize(
    ("size", "population", "epsilon", "inside", "outside", "lp"),
    [  # exact values of the linear program (population is the smaller one under add/remove)
        (1, 2, 1.0, RO, RO, 0.620114507),
        (3, 5, 2.0, RO, RO, 1.575557118),
        (1, 6, 0.25, RO, RO, 0.046251296),
        (1, 2, 1.0, AR, RO, 1.43378083),
        (3, 5, 2.0, AR, RO, 3.501310856),
        (1, 6, 0.25, AR, RO, 0.102665077),
        (1, 2, 1.0, AR, AR, 1.140932478),
        (3, 5, 2.0, AR, AR, 3.325002747),
        (1, 6, 0.25, AR, AR, 0.088628331),
    ],
)
@pytest.mark.filterwarnings("ignore::privamp.errors.DegradingDesign")
def test_without_replacement_equals_the_linear_program(size, population, epsilon, inside, outside, lp):
    found = amplify(pure(epsilon, inside), WithoutReplacement(size, population), outside).epsilon()
    assert found == pytest.approx(lp, abs=1e-8)


@dataclass(frozen=True, slots=True)
class Careless(Poisson):
    """Its theorem says that it needs add/remove, and its bound looks at whatever the mechanism is stated for."""

    theorems: ClassVar = (
        Theorem(
            "careless", "nowhere", AR.kind, AR.kind, False, lambda _, noise, __: noise.profile(noise.neighbors)
        ),
    )  # fmt: skip


def test_a_theorem_whose_needs_are_not_met_is_never_used():
    assert amplify(pure(1.0, AR), Careless(0.5)).epsilon() == pytest.approx(1.0)
    careless = Stratified({"a": Careless(0.5), "b": Careless(0.1)})
    for design in (Careless(0.5), careless):  # replace-one says nothing about add/remove
        with pytest.raises(NoTheorem, match="says nothing about add-remove"):
            amplify(pure(1.0, RO), design, AR)
    assert not is_proved(pure(1.0, RO), Careless(0.5), AR)
    assert claims_or_none(pure(1.0, RO), Careless(0.5), AR) is None


def test_poisson_reference_values():
    assert amplify(pure(1.0, AR), Poisson(0.01)).epsilon() == pytest.approx(math.log1p(0.01 * math.expm1(1)), rel=1e-13)
    a, q = math.e, 0.3
    exact = math.log((1 + q * (a - 1)) / (1 - q * (1 - 1 / a)))
    assert amplify(pure(1.0, AR), Poisson(q), RO).epsilon() == pytest.approx(exact, rel=1e-13)


def test_with_replacement_pure_is_draw_by_draw_not_hopeless():
    guarantee = amplify(pure(1.0), WithReplacement(400, 1000))
    assert guarantee.epsilon() == pytest.approx(400 * math.log1p(math.expm1(1) / 1000), rel=1e-13)
    curve_alone = WithReplacement.theorems[0].bound(WithReplacement(400, 1000), pure(1.0), RO)
    assert curve_alone.epsilon(1e-300) > 100


def test_stage_by_stage_equals_the_moment_formula_for_one_and_two_stages():
    law = MultiStage([("wor", 500), ("wr", 400)], 1000)
    appearances = law.appearances()
    moment = np.logaddexp(appearances.log_none, np.logaddexp.reduce(appearances.log_p + appearances.counts))
    assert amplify(pure(1.0), law).epsilon() == pytest.approx(float(moment), rel=1e-10)


def test_three_stage_reference_value():
    design = MultiStage([("wr", 600), ("wr", 400), ("wr", 200)], 1000)
    epsilon = float(log_mix(design.appearances().eta, 1.0))
    assert epsilon == pytest.approx(0.200925, abs=5e-7)
    assert amplify(Gaussian(1.0, neighbors=RO), design).delta(epsilon) == pytest.approx(0.0399211, abs=5e-8)


def test_gaussian_two_stage_reference_row():
    design = MultiStage([("wr", 500), ("wr", 400)], 1000)
    theorem_a = design.theorems[0].bound(design, Gaussian(1.0, neighbors=RO), RO)
    guarantee = amplify(Gaussian(1.0, neighbors=RO), design)
    base = (0.05, 0.5, 1.0, 2.0, 3.0, 4.5)
    right = (0.128820, 0.105179, 0.0827572, 0.0534365, 0.0373932, 0.0227611)
    for epsilon, delta in zip(base, right, strict=True):
        amplified = float(log_mix(design.appearances().eta, epsilon))
        assert theorem_a.delta(amplified) == pytest.approx(delta, rel=5e-6)
        assert guarantee.delta(amplified) <= delta * (1 + 5e-6)


def test_the_order_reverses_at_fixed_delta():
    # the paper ranks by epsilon'; at delta = 1e-6 the order is the other way round
    noise = Gaussian(1.0, neighbors=RO)
    designs = [
        WithoutReplacement(400, 1000),
        WithReplacement(400, 1000),
        MultiStage([("wor", 500), ("wr", 400)], 1000),
        MultiStage([("wr", 500), ("wr", 400)], 1000),
    ]
    etas = [d.appearances().eta for d in designs]
    assert etas == sorted(etas, reverse=True)
    guarantees = [amplify(noise, d) for d in designs]
    lower = [g.lower.epsilon(1e-6) for g in guarantees]
    assert lower == sorted(lower)
    assert guarantees[0].epsilon(1e-6) == pytest.approx(3.79, abs=0.005)
    assert lower[1] == pytest.approx(14.972, abs=1e-3)
    assert lower[2] == pytest.approx(24.950, abs=1e-3)
    assert lower[3] == pytest.approx(54.706, abs=1e-3)
    for guarantee, low in zip(guarantees, lower, strict=True):
        assert guarantee.epsilon(1e-6) >= low


@pytest.mark.parametrize("rate", [0.001, 0.1, 0.9])
@pytest.mark.parametrize("records", [1, 3])
def test_poisson_upper_and_attack_meet_for_one_record(rate, records):
    guarantee = amplify(Gaussian(1.5), Poisson(rate), AR.for_person(records))
    at = np.linspace(0, 3, 13)
    upper, lower = np.asarray(guarantee.delta(at)), np.asarray(guarantee.lower.delta(at))
    assert np.all(lower <= upper)
    if records == 1:
        assert np.allclose(lower, upper, rtol=1e-9)


def test_a_person_with_many_records():
    # independent coins, pure: j times epsilon' is exact
    person = amplify(pure(1.0, AR), Poisson(0.01), AR.for_person(10))
    assert person.epsilon() == pytest.approx(10 * math.log1p(0.01 * math.expm1(1)), rel=1e-12)
    assert any("id of its own" in a for a in person.assumes)
    # records that share an id share a coin: the group enters whole, 5.40 and not .170
    shared = amplify(pure(10.0, AR), Poisson(0.01))
    assert shared.epsilon() == pytest.approx(5.40, abs=5e-3)


@pytest.mark.parametrize(
    "design", [WithoutReplacement(40, 100), WithReplacement(40, 100), MultiStage([("wr", 40)], 100)]
)
def test_groups_grow_with_their_size_and_beat_the_black_box_bound(design):
    noise = Gaussian(3.0, neighbors=RO)
    deltas = [amplify(noise, design, RO.for_person(j) if j > 1 else RO).delta(0.5) for j in (1, 2, 4)]
    assert deltas == sorted(deltas)
    from privamp.core.curves import group

    black_box = group(amplify(noise, design).upper, 4)
    assert deltas[2] <= black_box.delta(0.5)


def test_one_sample_many_questions():
    assert amplify(Joint([pure(0.5, AR)] * 10), Poisson(0.1)).epsilon() == pytest.approx(2.7563, abs=1e-4)
    assert amplify(Joint([pure(0.5, AR)] * 20), Poisson(0.01)).epsilon() == pytest.approx(5.3993, abs=1e-4)


def test_refusals_say_what_is_proved():
    chain = MultiStage([("wor", 2), ("wr", 2)], 3)
    with pytest.raises(NoTheorem, match="its theorems give replace-one"):
        amplify(Gaussian(1.0), chain, AR)
    with pytest.raises(NoTheorem, match="says nothing about add-remove"):
        amplify(Gaussian(1.0, neighbors=RO), Poisson(0.1))


def test_a_degrading_design_warns_and_tells_the_truth():
    with pytest.warns(DegradingDesign, match="loses privacy"):
        guarantee = amplify(pure(1.0, AR), WithoutReplacement(4, 4), AR)
    assert guarantee.epsilon() == pytest.approx(1.81, abs=5e-3)
    assert guarantee.degrades
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert not amplify(pure(1.0), WithoutReplacement(1, 100)).degrades


def test_every_guarantee_names_relation_theorem_and_assumptions():
    guarantee = amplify(ApproxDP(1.0, 1e-6), Poisson(0.1))
    assert str(guarantee.neighbors) == "add-remove"
    assert "Balle" in guarantee.because[0]
    assert any("AES" in a for a in guarantee.assumes)
    assert "idealised real arithmetic" in amplify(Laplace(1.0), Poisson(0.1)).assumes
    assert guarantee.delta(5.0) == pytest.approx(0.1 * 1e-6, rel=1e-9)


@pytest.mark.parametrize("rate", [0.0, 1.0])
def test_certain_rates(rate):
    guarantee = amplify(Gaussian(1.0), Poisson(rate))
    expected = Gaussian(1.0).profile(AR).delta(1.0) if rate else 0.0
    assert guarantee.delta(1.0) == pytest.approx(expected, rel=1e-9, abs=0)
    swapped = amplify(PureDP(1.0), Poisson(rate), RO)
    assert swapped.epsilon() == pytest.approx(2.0 if rate else 0.0)


@pytest.mark.parametrize(
    "make",
    [
        lambda: Poisson(-0.1),
        lambda: Poisson(1.1),
        lambda: Poisson(math.nan),
        lambda: Poisson(True),
        lambda: Poisson("0.1"),
        lambda: WithoutReplacement(5, 4),
        lambda: WithoutReplacement(0, 4),
        lambda: WithoutReplacement(1, 0),
        lambda: WithoutReplacement(1.5, 4),
        lambda: WithReplacement(0, 4),
        lambda: WithReplacement(2, 0),
        lambda: MultiStage([], 10),
        lambda: MultiStage([("wor", 11)], 10),
        lambda: MultiStage([("wr", 5), ("wor", 6)], 10),
        lambda: MultiStage([("poisson", 5)], 10),
        lambda: MultiStage([("wr", 0)], 10),
        lambda: amplify(Poisson(0.1), Gaussian(1.0)),
    ],
)
def test_bad_designs_are_refused_in_one_sentence(make):
    with pytest.raises(InvalidInput) as caught:
        make()
    assert "got" in str(caught.value)
    assert "\n" not in str(caught.value)


def test_the_json_names_a_narrower_scope():
    within = Neighbors("replace-one", scope="within stratum")
    guarantee = amplify(pure(1.0), WithoutReplacement(2, 10), within)
    assert guarantee.to_json()["scope"] == "within stratum"
    assert "scope" not in amplify(pure(1.0), WithoutReplacement(2, 10)).to_json()
