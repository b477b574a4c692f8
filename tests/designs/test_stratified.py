"""Stratified sampling: every stratum on its own, against the exact truth, and what is refused."""

import math

import numpy as np
import pytest

from privamp import (
    ClusterSampling,
    Gaussian,
    InvalidInput,
    Joint,
    Laplace,
    Neighbors,
    NoTheorem,
    Poisson,
    Population,
    Proportional,
    PureDP,
    Stratified,
    Systematic,
    WithoutReplacement,
    amplify,
)
from privamp.core.curves import pure_curve
from privamp.core.profile import Profile
from privamp.designs.strata import _moves, joined, split
from privamp.designs.stratified import WITHIN, _moved
from privamp.mechanisms.per_stratum import PerStratum
from privamp.survey import estimate, guarantees
from privamp.testing import seeded_key
from privamp.verify import exact_epsilon
from privamp.verify.enumerate import exact_delta
from privamp.verify.exact import exact_epsilon_of_laws
from privamp.verify.sampler import draws, follows_law, same_in_pieces
from privamp.verify.symmetry import collect

AR, RO = Neighbors.ADD_REMOVE, Neighbors.REPLACE_ONE
wor = WithoutReplacement


def case(**strata):
    """{name: (design, records)} → the design and its population."""
    design = Stratified({name: part for name, (part, _) in strata.items()})
    return design, joined({name: Population(size) for name, (_, size) in strata.items()})


MIXED = [
    case(a=(Poisson(0.1), 1), b=(Poisson(0.5), 2)),
    case(a=(Poisson(0.3), 2), b=(wor(1, 2), 2)),
    case(a=(wor(1, 3), 3), b=(wor(2, 3), 3)),
    case(a=(Poisson(0.2), 1), b=(wor(1, 2), 2), c=(Poisson(0.7), 1)),
]


@pytest.mark.parametrize(("design", "population"), MIXED)
@pytest.mark.parametrize("asked", [AR, RO, WITHIN], ids=str)
@pytest.mark.filterwarnings("ignore::privamp.errors.DegradingDesign")
def test_exact_for_pure_mechanisms_where_the_strata_are(design, population, asked):
    for epsilon in (0.3, 1.0, 2.0):
        claimed = amplify(PureDP(epsilon), design, asked).epsilon()
        assert claimed == pytest.approx(exact_epsilon(design, population, asked, epsilon, AR), abs=1e-7)


@pytest.mark.filterwarnings("ignore::privamp.errors.DegradingDesign")
def test_within_a_stratum_is_never_more_than_anywhere_and_noisy_sums_stay_below():
    for design, population in MIXED:
        for asked in (WITHIN, RO):
            for noise in (Gaussian(1.0), Laplace(0.8)):
                guarantee, at = amplify(noise, design, asked), np.array([0.0, 0.4, 1.1])
                truth = exact_delta(design, noise, population, asked, at)
                assert np.all(truth <= np.asarray(guarantee.delta(at)) + 1e-12)
        assert amplify(PureDP(1.0), design, WITHIN).epsilon() <= amplify(PureDP(1.0), design, RO).epsilon()
    fixed = MIXED[2][0]  # a place in a stratum of fixed size is taken from somebody, so moving costs more
    assert amplify(PureDP(1.0), fixed, WITHIN).epsilon() < amplify(PureDP(1.0), fixed, RO).epsilon()


def test_a_maximum_for_a_move_between_strata_would_be_caught():
    """The negative control: what SD Definition 7.1 prints. Out of one stratum forward, into the other backward."""
    rates = {"a": 0.1, "b": 0.5}
    design, population = case(a=(Poisson(0.1), 1), b=(Poisson(0.5), 2))
    forward = {name: math.log1p(q * math.expm1(1.0)) for name, q in rates.items()}
    backward = {name: -math.log1p(q * math.expm1(-1.0)) for name, q in rates.items()}
    moves = list(_moves(design.strata, split(population, design.names)))
    truth = max(
        exact_epsilon_of_laws(collect(design.law(one)), collect(design.law(other)), 1.0, "add-remove")
        for one, other in moves
    )
    assert max(forward.values()) < truth - 0.05
    assert truth == pytest.approx(max(forward["a"] + backward["b"], forward["b"] + backward["a"]), abs=1e-8)
    assert truth <= sum(forward.values())


OTHERS = [
    (Stratified({"a": Proportional(0.3), "b": Poisson(0.5)}), {"a": Population(3), "b": Population(1)}),
    (
        Stratified({"a": ClusterSampling(1, 2, 2), "b": Proportional(0.6)}),
        {"a": Population(3, cluster=[0, 0, 1]), "b": Population(2)},
    ),
    (Stratified({"a": Systematic(2, order="random"), "b": wor(1, 2)}), {"a": Population(3), "b": Population(2)}),
]


@pytest.mark.parametrize(("design", "strata"), OTHERS, ids=lambda x: "")
@pytest.mark.filterwarnings("ignore::privamp.errors.DegradingDesign")
def test_any_design_may_draw_a_stratum(design, strata):
    population = joined(strata)
    for asked in (AR, RO, WITHIN):
        truth = exact_epsilon(design, population, asked, 1.0, AR)
        assert amplify(PureDP(1.0), design, asked).epsilon() >= truth - 1e-9
    assert same_in_pieces(design, population, seeded_key(1), rounds=10) is None
    assert follows_law(draws(design, population, seeded_key(2), 1000), collect(design.law(population))) is None


def test_each_stratum_has_its_own_guarantee():
    design = Stratified({"shops": Poisson(0.1), "mines": Poisson(0.5)})
    each = guarantees(design, PureDP(1.0), AR)
    assert {name: round(g.epsilon(), 6) for name, g in each.items()} == {"mines": 0.620115, "shops": 0.158565}
    assert amplify(PureDP(1.0), design, AR).epsilon() == pytest.approx(each["mines"].epsilon())
    replaced = guarantees(design, PureDP(1.0), WITHIN)
    assert replaced["mines"].epsilon() == pytest.approx(1.0)  # inside the mines, worse than any move
    assert amplify(PureDP(1.0), design, RO).epsilon() == pytest.approx(1.0)
    with pytest.raises(InvalidInput, match="takes a Stratified"):
        guarantees(Poisson(0.1), PureDP(1.0), AR)


def test_the_natural_relation_is_that_of_the_strata():
    assert Stratified({"a": Poisson(0.1), "b": wor(1, 2)}).natural == AR
    fixed = Stratified({"a": wor(1, 5), "b": wor(1, 2)})
    assert fixed.natural == WITHIN
    assert amplify(PureDP(1.0, neighbors=RO), fixed).neighbors == WITHIN
    with pytest.raises(NoTheorem, match="says nothing about add-remove"):
        amplify(PureDP(1.0, neighbors=RO), Stratified({"a": Poisson(0.1)}), AR)


def test_sensitivities_by_stratum_certify_each_with_its_own():
    design = Stratified({"a": wor(10, 100), "b": wor(50, 50)})
    noise = PerStratum(Laplace(1.0, neighbors=RO), (("a", 2.0), ("b", 0.25)))
    losses = [math.log1p(0.1 * math.expm1(2.0)), 0.25]
    assert amplify(noise, design, WITHIN).epsilon() == pytest.approx(max(losses))
    both = amplify(Joint([noise, noise]), design, WITHIN).epsilon()
    assert both == pytest.approx(max(math.log1p(0.1 * math.expm1(4.0)), 0.5))
    with pytest.raises(NoTheorem, match="drawn across strata"):
        amplify(noise, WithoutReplacement(10, 100))
    with pytest.raises(InvalidInput, match="no sensitivity is declared"):
        amplify(noise, Stratified({"c": wor(1, 2)}), WITHIN)


def test_many_strata_are_bounded_without_looking_at_all_pairs():
    design = Stratified({k: Poisson(0.01 + 0.0005 * k) for k in range(300)})
    anywhere = amplify(PureDP(1.0), design, RO).epsilon()
    worst = 0.01 + 0.0005 * 299
    assert anywhere >= math.log1p(worst * math.expm1(1.0)) - math.log1p(-worst * -math.expm1(-1.0)) - 1e-9


def test_drawing_is_per_stratum_and_does_not_depend_on_the_order_of_names():
    label = np.where(np.arange(300) % 3 == 0, "b", "a")
    population = Population(300, stratum=label)
    one = Stratified({"a": wor(20, 200), "b": wor(10, 100)})
    other = Stratified([("b", wor(10, 100)), ("a", wor(20, 200))])
    assert one == other
    assert hash(one) == hash(other)
    assert eval(repr(one), {"Stratified": Stratified, "WithoutReplacement": wor}) == one
    drawn = one.draw(population, seeded_key(3)).reveal_secret()
    assert np.array_equal(drawn.positions, other.draw(population, seeded_key(3)).reveal_secret().positions)
    assert np.unique(label[drawn.positions], return_counts=True)[1].tolist() == [20, 10]
    assert np.all(np.diff(drawn.positions) > 0)
    again = one.draw(population, seeded_key(3), 1).reveal_secret()
    assert not np.array_equal(drawn.positions, again.positions)


def test_equal_designs_in_two_strata_have_independent_coins():
    ids = [f"r{k}" for k in range(400)]
    whole = Population([*ids, *(f"s{k}" for k in range(400))], stratum=["a"] * 400 + ["b"] * 400)
    kept = Stratified({"a": Poisson(0.5), "b": Poisson(0.5)}).draw(whole, seeded_key(5)).reveal_secret().positions
    first, second = set(kept[kept < 400].tolist()), {k - 400 for k in kept[kept >= 400].tolist()}
    assert 60 < len(first & second) < 140


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: Stratified({}), "at least one stratum"),
        (lambda: Stratified([("a", Poisson(0.1)), ("a", Poisson(0.2))]), "got one twice"),
        (lambda: Stratified({"a": 0.1}), "needs a design"),
        (lambda: Stratified({"a": Stratified({"b": Poisson(0.1)})}), "not a stratified one"),
        (lambda: Stratified({1.5: Poisson(0.1)}), "a word or a whole number"),
        (lambda: Stratified({True: Poisson(0.1)}), "a word or a whole number"),
        (lambda: Stratified({"a": Poisson(0.5)}).draw(Population(3), seeded_key(0)), "needs a column 'stratum'"),
        (
            lambda: Stratified({"a": Poisson(1), "b": WithoutReplacement(1, 1)}).draw(
                Population(1, stratum=["a"]), seeded_key(0)
            ),
            "no record in stratum 'b'",
        ),
        (
            lambda: Stratified({"a": wor(2, 4)}).draw(Population(3, stratum=["a"] * 3), seeded_key(0)),
            "at least 4 records",
        ),
        (lambda: PerStratum(Laplace(1.0), ()), "at least one stratum"),
        (lambda: PerStratum(Laplace(1.0), (("a", 1.0), ("a", 2.0))), "every stratum once"),
        (lambda: PerStratum(PureDP(1.0), (("a", 1.0),)), "Laplace or Gaussian"),
    ],
)
def test_bad_input_is_refused_in_one_sentence(make, message):
    with pytest.raises(InvalidInput, match=message) as caught:
        make()
    assert "\n" not in str(caught.value)


def test_expected_sizes_are_not_guessed():
    with pytest.raises(NoTheorem, match="sizes of the strata"):
        Stratified({"a": Poisson(0.5)}).expected_size(10)
    assert Stratified({"a": Poisson(0.5), "b": Poisson(0.1)}).appearances().eta == pytest.approx(0.5)


STRANGE = ["z", "", None, 7, 2.5, float("nan"), True, b"a", ("a",), 10**30]


@pytest.mark.parametrize("label", STRANGE, ids=repr)
@pytest.mark.parametrize("names", [("a", "b"), (1, 2)])
def test_a_record_in_no_stratum_of_the_design_is_never_drawn_and_changes_nothing(label, names):
    """It was refused in memory and in files, and never drawn on Spark; one text made text of all whole numbers."""
    design = Stratified({names[0]: Poisson(0.5), names[1]: Poisson(0.9)})
    labels = [names[i % 2] for i in range(40)]
    plain = design.draw(Population(40, stratum=labels), seeded_key(3)).reveal_secret()
    if label is True and names[0] == 1:
        label = "one"
    found = design.draw(Population(41, stratum=[*labels, label]), seeded_key(3)).reveal_secret()
    assert found.positions.tolist() == plain.positions.tolist()
    assert found.weights.tolist() == plain.weights.tolist()
    assert design.weights(Population(41, stratum=[*labels, label]))[-1] == 0.0
    assert any("never drawn" in words for words in amplify(Laplace(1.0), design).assumes)


@pytest.mark.parametrize("name", ["a", 1])
def test_a_record_that_leaves_the_only_stratum_for_none_is_one_record_less(name):
    """Replace-one reported a replacement inside alone, .494 where .527 is reached."""
    design = Stratified({name: Proportional(0.1)})
    here = Population(11, stratum=[name] * 11)
    gone = Population(11, stratum=[*[name] * 10, "none" if name == "a" else 7])
    with_it, without = (collect(design.law(people)) for people in (here, gone))
    truth = exact_epsilon_of_laws(with_it, without, 1.0, "add-remove")
    assert truth == pytest.approx(0.527429, abs=1e-6)
    assert truth <= amplify(PureDP(1.0), design, RO).epsilon()
    for mechanism in (Gaussian(2.0), Laplace(1.0), PureDP(1.0)):
        less, anywhere, inside = (amplify(mechanism, design, asked) for asked in (AR, RO, WITHIN))
        assert all(inside.delta(x) < less.delta(x) <= anywhere.delta(x) for x in (0.0, 0.2, 0.5))
    pairs = list(design.neighboring(Population(2, stratum=[name] * 2), RO))
    assert any(set(people.columns["stratum"].tolist()) != {name} for pair in pairs for people in pair)
    assert all(one.size == other.size for one, other in pairs)


def test_strata_of_fixed_sizes_count_their_own_records_only():
    design = Stratified({"a": WithoutReplacement(2, 4), "b": WithoutReplacement(1, 2)})
    labels = ["a", "z", "a", "b", None, "a", "b", "a"]
    sample = design.draw(Population(8, stratum=labels), seeded_key(4))
    assert not {1, 4} & set(sample.reveal_secret().positions.tolist())
    found = estimate(sample, np.ones(8), bounds=(0.0, 2.0), epsilon=500.0, statistic="total")
    assert found.value == pytest.approx(6.0, abs=0.5)
    each = estimate(
        design.draw(Population(8, stratum=labels), seeded_key(5)), np.ones(8), bounds=(0.0, 2.0), epsilon=500.0,
        by=["x"] * 8,
    )  # fmt: skip
    assert each["x"].value == pytest.approx(1.0, abs=0.1)


def test_a_record_that_moves_loses_what_leaving_and_entering_lose_together():
    """P lacks what Q has in the second stratum: its losses add up forward and backward, never forward twice."""
    out = Profile(pure_curve(1.0), pure_curve(0.5))
    into = Profile(pure_curve(0.3), pure_curve(0.2))
    moved = _moved(out, into)
    for curve, end in ((moved.forward, 1.0 + 0.2), (moved.backward, 0.3 + 0.5)):
        assert np.isneginf(curve(np.array([end * (1.0 + 1e-9)]))[0])
        assert np.isfinite(curve(np.array([end * 0.99]))[0])
