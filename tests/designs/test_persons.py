"""People with several records, against enumerated truth: every sample, functions with the declared sensitivity."""

import math
import warnings
from collections import Counter
from itertools import product

import mpmath
import numpy as np
import pytest

from privamp import (
    Gaussian,
    Guarantee,
    Joint,
    Laplace,
    Neighbors,
    Poisson,
    PoissonPPS,
    PureDP,
    WithoutReplacement,
    WithReplacement,
    amplify,
    compose,
)
from privamp.core.multiplicity import Multiplicity
from privamp.core.population import Population
from privamp.mechanisms.gaussian_mixture import opposite_gaussians
from privamp.mechanisms.opposite_mixtures import opposite_mixtures
from privamp.verify import exact_delta_of_laws
from privamp.verify.symmetry import collect

AR, RO = Neighbors.ADD_REMOVE, Neighbors.REPLACE_ONE
EPSILONS = np.array([0.0, 0.4, 1.5])
WITHOUT = ((1, 1, 2), (2, 3, 2), (2, 2, 3))
CASES = [  # design, records of everybody else, records of the person
    *((Poisson(rate), others, records) for rate in (0.2, 0.7) for others, records in ((0, 2), (1, 2), (2, 3))),
    *((WithoutReplacement(size, others), others, records) for size, others, records in WITHOUT),
    *((WithReplacement(size, others), others, records) for size, others, records in ((1, 1, 2), (2, 2, 2), (3, 2, 2))),
]


def laws(design, others, records, kind):
    """The samples with the person's records, and without them or with another person's."""
    everybody = list(range(others))
    person = list(range(others, others + records))
    second = list(range(others + records, others + 2 * records)) if kind == "replace-one" else []
    return tuple(
        collect(design.law(Population(np.array(everybody + part, dtype=np.uint64)))) for part in (person, second)
    )


def distance(one, other, kind):
    """Steps from one sample to the other: records added or removed, or (equal sizes) replaced."""
    one, other = Counter(one), Counter(other)
    apart = sum(((one - other) + (other - one)).values())
    return apart if kind == "add-remove" else apart / 2


def functions(samples, kind, count, seed):
    """Functions of the sample that one step moves by at most 1: random ones, made so by their lower envelope."""
    random = np.random.default_rng(seed)
    steps = np.array([[distance(s, t, kind) for t in samples] for s in samples])
    for scale in np.geomspace(0.5, 2.0 + steps.max(), count):
        yield np.min(steps + scale * random.uniform(-1, 1, len(samples)), axis=1)
    for i in {0, len(samples) // 2, len(samples) - 1}:
        yield steps[i]


def truth(design, others, records, kind, metric, mechanism, seed=1, count=12):
    """The largest delta found over functions of the declared sensitivity, in both directions."""
    first, second = laws(design, others, records, kind)
    samples = sorted({*first, *second})
    best = np.zeros_like(EPSILONS)
    for values in functions(samples, metric, count, seed):
        at = dict(zip(samples, np.round(values, 6).tolist(), strict=True))
        p, q = (Counter() for _ in range(2))
        for law, sums in ((first, p), (second, q)):
            for sample, chance in law.items():
                sums[at[sample]] += float(chance)
        best = np.maximum(best, exact_delta_of_laws(p, q, mechanism, EPSILONS))
    return best


def settings(noise):
    """(label, guarantee, truth) for every case, relation and scale of the noise."""
    for (design, others, records), kind in product(CASES, ("add-remove", "replace-one")):
        is_poisson = isinstance(design, Poisson)
        stated = AR if is_poisson else RO
        if kind == "replace-one" and not is_poisson:
            design = type(design)(design.size, others + records)  # n is public there
        mechanism = noise(stated)
        relation = Neighbors(kind).for_person(records)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            guarantee = amplify(mechanism, design, relation)
        yield design, guarantee, truth(design, others, records, kind, stated.kind, mechanism)


def test_no_bound_for_people_is_below_the_enumerated_truth():
    reached = 0.0
    for design, guarantee, true in settings(lambda stated: Gaussian(0.8, neighbors=stated)):
        upper, lower = np.asarray(guarantee.delta(EPSILONS)), np.asarray(guarantee.lower.delta(EPSILONS))
        assert np.all(upper >= true - 1e-10), (design, guarantee.neighbors, upper, true)
        assert np.all(lower <= upper)
        reached = max(reached, float(np.max(true / upper)))
    assert reached > 0.999


@pytest.mark.parametrize("noise", [Gaussian, Laplace])
def test_every_theorem_about_people_holds_alone(noise):
    seen = set()
    for design, guarantee, true in settings(lambda stated: noise(0.8, neighbors=stated)):
        mechanism = guarantee.claims[0].mechanism
        for theorem in type(design).theorems:
            if theorem.people and theorem.speaks_of(guarantee.neighbors) and theorem.applies(mechanism):
                claim = theorem.bound(design, mechanism, guarantee.neighbors).rounded_up()
                assert np.all(np.asarray(claim.delta(EPSILONS)) >= true - 1e-10), (theorem.name, design)
                seen.add(theorem.name)
    about_people = [t for kind in (Poisson, WithoutReplacement, WithReplacement) for t in kind.theorems if t.people]
    gaussian = {t.name for t in about_people if t.applies(Gaussian(1.0)) and not t.applies(PureDP(1.0))}
    pure = {t.name for t in about_people if t.applies(PureDP(1.0))}
    assert seen == (gaussian if noise is Gaussian else pure)


def test_the_same_check_catches_a_person_counted_as_one_record():
    wrong = 0
    mechanism = Gaussian(0.8)
    for design, others, records in CASES[:6]:
        true = truth(design, others, records, "add-remove", "add-remove", mechanism)
        whole = amplify(mechanism, design).delta(EPSILONS)
        wrong += int(np.any(whole < true - 1e-10))
    assert wrong >= 5


def test_the_same_check_catches_a_one_sided_pair_under_replace_one():
    caught = 0
    for rate, (others, records) in product((0.5, 0.8), ((0, 2), (1, 2))):
        mechanism = Gaussian(0.8)
        true = truth(Poisson(rate), others, records, "replace-one", "add-remove", mechanism, count=40)
        one_sided = mechanism.mixture(AR, Multiplicity.binomial(records, rate)).delta(EPSILONS)
        caught += int(np.any(one_sided < true - 1e-10))
    assert caught == 4


@pytest.mark.filterwarnings("ignore::privamp.errors.DegradingDesign")
def test_other_noise_and_boxes_that_it_fits_are_never_understated_for_people():
    for design, guarantee, true in settings(lambda stated: Laplace(1.3, neighbors=stated)):
        stated = guarantee.claims[0].mechanism.neighbors
        box = amplify(PureDP(1.0 / 1.3, neighbors=stated), design, guarantee.neighbors)
        for claim in (guarantee, box):
            assert np.all(np.asarray(claim.delta(EPSILONS)) >= true - 1e-10), (design, claim.neighbors)


@pytest.mark.parametrize(
    ("mechanism", "design", "relation", "expected"),
    [  # epsilon(1e-6), theta = 1, n = 1000 others
        (Gaussian(1.0), Poisson(0.01), AR.for_person(3), 1.243),
        (Gaussian(1.0), Poisson(0.01), AR.for_person(10), 4.108),
        (Gaussian(1.0, neighbors=RO), WithoutReplacement(100, 1000), AR.for_person(3), 7.127),
        (Gaussian(1.0, neighbors=RO), WithoutReplacement(100, 1000), AR.for_person(10), 24.924),
        (Gaussian(1.0, neighbors=RO), WithReplacement(100, 1000), AR.for_person(2), 8.100),
        (Gaussian(1.0, neighbors=RO), WithReplacement(100, 1000), AR.for_person(10), 32.956),
        (Gaussian(1.0), WithoutReplacement(100, 1000), AR.for_person(3), 28.747),
    ],
)
@pytest.mark.filterwarnings("ignore::privamp.errors.DegradingDesign")
def test_reference_values_are_exact_on_both_sides(mechanism, design, relation, expected):
    guarantee = amplify(mechanism, design, relation)
    assert guarantee.epsilon(1e-6) == pytest.approx(expected, abs=6e-4)
    assert guarantee.lower.epsilon(1e-6) == pytest.approx(guarantee.epsilon(1e-6), rel=1e-9)
    assert "persons.md, Thm 1" in guarantee.because[0]
    assert Guarantee.from_json(guarantee.to_json(delta=1e-6)) == guarantee


@pytest.mark.parametrize(("records", "expected"), [(2, 2.5306), (5, 6.9325)])
def test_composed_people_agree_with_published_software(records, expected):
    many = compose(amplify(Gaussian(1.0), Poisson(0.0064), AR.for_person(records)), 781)
    assert many.epsilon(1e-6) == pytest.approx(expected, abs=1e-4)
    assert many.lower.epsilon(1e-6) == pytest.approx(expected, abs=2e-4)


@pytest.mark.parametrize("design", [WithoutReplacement(100, 1000), WithReplacement(100, 1000)])
def test_replaced_people_are_certified_close_to_the_attack(design):
    guarantee = amplify(Gaussian(1.0, neighbors=RO), design, RO.for_person(10))
    assert guarantee.lower.epsilon(1e-6) <= guarantee.epsilon(1e-6) <= guarantee.lower.epsilon(1e-6) * 1.001
    assert "persons.md, Thm 3" in guarantee.because[0]


def test_people_swapped_under_coins_are_exact():
    for records in (2, 7):
        guarantee = amplify(Gaussian(1.5), Poisson(0.1), RO.for_person(records))
        assert guarantee.lower.epsilon(1e-6) == pytest.approx(guarantee.epsilon(1e-6), rel=1e-9)
        assert "Thm 2" in guarantee.because[0]


def test_joint_gaussian_and_unequal_public_coins_have_the_theorem_too():
    joint = amplify(Joint([Gaussian(2.0)] * 4), Poisson(0.1), AR.for_person(3))
    assert joint.epsilon(1e-6) == pytest.approx(amplify(Gaussian(1.0), Poisson(0.1), AR.for_person(3)).epsilon(1e-6))
    unequal = amplify(Gaussian(1.0), PoissonPPS(0.1, 0.01), AR.for_person(3))
    assert unequal.epsilon(1e-6) == pytest.approx(joint.epsilon(1e-6))


def test_pure_people_without_replacement_cost_what_the_event_of_all_their_records_does():
    design, a = WithoutReplacement(2, 3), math.e
    guarantee = amplify(PureDP(1.0, neighbors=RO), design, AR.for_person(2))
    chances = [3 / 10, 6 / 10, 1 / 10]  # of 5 records 2 are drawn, 2 are the person's
    assert guarantee.epsilon() == pytest.approx(math.log(sum(p * a**u for u, p in enumerate(chances))), rel=1e-12)


def double_mixture(theta, records, rate, epsilon):
    """delta of the two opposite mixtures, by bisection and tails in 40 digits."""
    with mpmath.workdps(40):
        theta, rate, epsilon = (mpmath.mpf(x) for x in (theta, rate, epsilon))
        p = [mpmath.binomial(records, u) * rate**u * (1 - rate) ** (records - u) for u in range(records + 1)]

        def log_density(t, sign):
            return mpmath.log(sum(w * mpmath.exp(sign * u * theta * t - (u * theta) ** 2 / 2) for u, w in enumerate(p)))

        low, high = mpmath.mpf(0), mpmath.mpf(200)
        for _ in range(150):
            t = (low + high) / 2
            low, high = (t, high) if log_density(t, 1) - log_density(t, -1) < epsilon else (low, t)
        tails = [[mpmath.erfc((t - s * u * theta) / mpmath.sqrt(2)) / 2 for s in (1, -1)] for u in range(records + 1)]
        return float(mpmath.log(sum(w * (a - mpmath.exp(epsilon) * b) for w, (a, b) in zip(p, tails, strict=True))))


@pytest.mark.parametrize(
    ("theta", "records", "rate", "epsilon"),
    [(1.0, 3, 0.01, 0.5), (0.2, 5, 1e-6, 1e-6), (1.0, 10, 0.5, 3.0), (2.0, 4, 0.9, 30.0), (0.5, 10, 0.01, 8.0)],
)
def test_opposite_mixtures_to_fourteen_digits(theta, records, rate, epsilon):
    found = float(opposite_mixtures(theta, Multiplicity.binomial(records, rate)).log_delta(epsilon))
    assert found == pytest.approx(double_mixture(theta, records, rate, epsilon), rel=1e-14, abs=1e-14)


def test_opposite_mixtures_of_one_record_are_the_closed_form():
    at = np.append(0.0, np.geomspace(1e-9, 40.0, 20))
    for theta, rate in product((1e-3, 1.0, 5.0), (1e-8, 0.3, 1.0)):
        pair = opposite_mixtures(theta, Multiplicity.binomial(1, rate)).log_delta(at)
        closed = opposite_gaussians(theta, rate).log_delta(at)
        live = closed > -1e4
        assert np.allclose(pair[live], closed[live], rtol=1e-12, atol=1e-10)
    nobody = opposite_mixtures(1.0, Multiplicity.binomial(3, 0.0))
    assert nobody.epsilon() == 0.0


@pytest.mark.parametrize("epsilon", [0.1, 0.5, 2.0])
def test_a_pure_box_is_attacked_through_the_records_on_the_way(epsilon):
    """Replacing a record is two steps of an add/remove box: a coin that moves by e^(2 epsilon) at once is none."""
    box, rates = PureDP(epsilon), np.linspace(0.0, 2.0 * epsilon, 9)
    for design in (WithoutReplacement(100, 1000), WithoutReplacement(1, 2), WithReplacement(2, 5)):
        for neighbors in (Neighbors.ADD_REMOVE, Neighbors.REPLACE_ONE):
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")  # one of two degrades
                found = amplify(box, design, neighbors)
            assert found.lower is not None
            assert np.all(np.asarray(found.lower.delta(rates)) <= np.asarray(found.delta(rates)) * (1 + 1e-12))
    one = amplify(box, WithoutReplacement(100, 1000), Neighbors.REPLACE_ONE)
    assert one.lower.delta(0.0) == pytest.approx(one.delta(0.0), rel=1e-9)  # 100/1000 (1 - e^-epsilon), attained
