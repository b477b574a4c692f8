"""Public rates per class: Poisson at the largest rate, person by person at their own; counts are not public."""

import math
from collections import Counter
from fractions import Fraction

import numpy as np
import pytest

from privamp import (
    Gaussian,
    InvalidInput,
    Laplace,
    Neighbors,
    Poisson,
    PoissonPPS,
    Population,
    PureDP,
    Stratified,
    amplify,
    compose,
    spec,
)
from privamp.designs.class_rates import ClassRates
from privamp.designs.coins import coin_law
from privamp.survey import estimate
from privamp.testing import seeded_key
from privamp.verify import exact_epsilon_of_laws
from privamp.verify.symmetry import collect

AR, RO = Neighbors.ADD_REMOVE, Neighbors.REPLACE_ONE
DESIGN = PoissonPPS.by_class({"rare": 0.4, "common": 0.1})


@pytest.mark.parametrize("mechanism", [PureDP(0.7), Gaussian(1.3), Laplace(2.0)])
@pytest.mark.parametrize("neighbors", [AR, RO, AR.for_person(3)])
def test_it_is_poisson_at_the_largest_rate(mechanism, neighbors):
    one, other = (amplify(mechanism, d, neighbors) for d in (DESIGN, Poisson(0.4)))
    assert one.delta(0.2) == other.delta(0.2)
    if other.lower is not None:
        assert one.lower.delta(0.2) == other.lower.delta(0.2)


def test_a_record_of_a_class_has_the_rate_of_its_class():
    everybody = amplify(Gaussian(1.0), DESIGN)
    assert everybody.personal("common").delta(0.5) == amplify(Gaussian(1.0), Poisson(0.1)).delta(0.5)
    assert everybody.personal("rare").delta(0.5) == everybody.delta(0.5)
    with pytest.raises(InvalidInput, match="'common', 'rare'"):
        everybody.personal("unheard of")


def test_one_law_with_stratified_coins():
    people = {"category": np.array(["common", "rare", "rare"])}
    strata = Stratified({"common": Poisson(0.1), "rare": Poisson(0.4)})
    assert collect(DESIGN.law(Population(3, **people))) == collect(
        strata.law(Population(3, stratum=people["category"]))
    )
    assert amplify(Gaussian(2.0), strata).delta(0.3) == amplify(Gaussian(2.0), DESIGN).delta(0.3)


def by_counts(batch, kinds):
    """What is not public: b/(k n_c) from the numbers of records of the k classes that occur."""
    counts = Counter(kinds)
    return [min(Fraction(1), Fraction(batch, len(counts) * counts[kind])) for kind in kinds]


def test_rates_from_counts_are_not_covered():
    """The plant: rates computed from class counts, certified as if they were public; the linear program says no."""
    others = "aabbbb"
    laws = []
    for kinds in (others + "a", others):
        population = Population(len(kinds), category=np.array(list(kinds)))
        laws.append(collect(coin_law(population, by_counts(2, kinds))))
    truth = exact_epsilon_of_laws(*laws, 1.0, "add-remove")
    claimed = amplify(PureDP(1.0), PoissonPPS.by_class({"a": 1 / 2, "b": 1 / 4})).epsilon()
    assert truth > claimed + 0.05


def test_a_class_that_is_not_named_is_never_drawn():
    people = Population(400, category=np.array(["rare", "other"] * 200))
    drawn = DESIGN.draw(people, seeded_key(1)).reveal_secret().positions
    assert drawn.size
    assert np.all(drawn % 2 == 0)


@pytest.mark.parametrize("given", [int, np.int64, np.float32])
@pytest.mark.parametrize("stranger", ["?", None, math.nan, 0.5, 2**70, [1]])
def test_one_label_does_not_change_the_others(given, stranger):
    labels = [given(k % 2) for k in range(10)]
    rates = ClassRates({0: 0.1, 1: 0.5})
    chances = [rates.probabilities(Population(len(c), category=c).batch()) for c in (labels, [*labels, stranger])]
    assert chances[1].tolist() == [*chances[0].tolist(), 0.0] == [0.1, 0.5] * 5 + [0.0]


@pytest.mark.parametrize("stranger", ["?", None, math.nan, 0.5, -1, 2**63 + 5])
@pytest.mark.parametrize("name", [2**53 + 1, 2**63 + 7])
def test_nor_do_long_numbers_become_rounded_ones(name, stranger):
    people = Population(3, category=[name, name, stranger])
    assert ClassRates({name: 0.5, 1: 0.1}).probabilities(people.batch()).tolist() == [0.5, 0.5, 0.0]


def test_objects_are_read_one_by_one():
    people = Population(3, category=np.array([np.int64(1), np.int64(0), None], dtype=object))
    assert ClassRates({0: 0.1, 1: 0.5}).probabilities(people.batch()).tolist() == [0.5, 0.1, 0.0]


def test_draws_and_estimates():
    kinds = np.repeat(["common", "rare"], [300, 100])
    people = Population(400, category=kinds)
    sizes = [Counter(kinds[DESIGN.draw(people, seeded_key(2), r).reveal_secret().positions]) for r in range(100)]
    assert abs(np.mean([s["common"] for s in sizes]) - 30) < 5 * math.sqrt(300 * 0.09 / 100)
    assert abs(np.mean([s["rare"] for s in sizes]) - 40) < 5 * math.sqrt(100 * 0.24 / 100)
    x = np.linspace(0, 1, 400)
    found = [
        estimate(DESIGN.draw(people, seeded_key(3), r), x, bounds=(0, 1), epsilon=20.0, statistic="total").value
        for r in range(60)
    ]
    assert abs(np.mean(found) - x.sum()) < 5 * np.std(found) / math.sqrt(60)


def test_specs():
    assert DESIGN.spec == "class-rates:rates=common=0.1+rare=0.4"
    assert spec.design(DESIGN.spec) == DESIGN
    whole = ClassRates({3: 0.5, -1: 0.25})
    assert spec.design(whole.spec) == whole
    for name in ("a+b", "a=b", "a,b", "7", " a", ""):
        assert ClassRates({name: 0.5}).spec is None


@pytest.mark.parametrize(
    ("rates", "words"),
    [
        ({}, "at least one class"),
        ({"a": 1.5}, "rate of class 'a'"),
        ({"a": math.nan}, "rate of class 'a'"),
        ({1.5: 0.5}, "a word or a whole number"),
        ([("a", 0.1), ("a", 0.2)], "got one twice"),
        ("a", "class=rate"),
        ("a=x", "class=rate"),
        ("=0.5", "class=rate"),
    ],
)
def test_bad_rates_get_one_sentence(rates, words):
    with pytest.raises(InvalidInput, match=words):
        ClassRates(rates)


def test_rounds_compose():
    once = amplify(Gaussian(4.0), DESIGN)
    assert compose(once, 50).epsilon(1e-6) == compose(amplify(Gaussian(4.0), Poisson(0.4)), 50).epsilon(1e-6)
