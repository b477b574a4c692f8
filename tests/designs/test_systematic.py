import math
from fractions import Fraction

import numpy as np
import pytest

from privamp import Gaussian, InvalidInput, Neighbors, NoTheorem, Population, Proportional, PureDP, Systematic, amplify
from privamp.testing import seeded_key
from privamp.verify import exact_epsilon
from privamp.verify.symmetry import collect

AR, RO = Neighbors.ADD_REMOVE, Neighbors.REPLACE_ONE
pytestmark = pytest.mark.filterwarnings("ignore::privamp.errors.DegradingDesign")


@pytest.mark.parametrize("step", [1, 2, 3, 7])
def test_a_secret_order_is_random_rounding(step):
    for n in range(6):
        people = Population(n)
        rounded = collect(Proportional(Fraction(1, step)).law(people))
        assert collect(Systematic(step).law(people)) == rounded
    for relation in (AR, RO):
        one, other = (amplify(PureDP(1.0), d, relation) for d in (Systematic(step), Proportional(Fraction(1, step))))
        assert one.epsilon() == other.epsilon()
        assert one.lower.epsilon() == other.lower.epsilon()


def test_slots_reference_row():
    design = Systematic(2, "slots", 2)
    within = Neighbors("replace-one", scope="within cluster")
    assert amplify(PureDP(1.0), design, within).epsilon() == pytest.approx(1.891221917, abs=1e-8)
    exact = exact_epsilon(design, 4, RO, 1.0, AR)
    anywhere = amplify(PureDP(1.0), design, RO)
    assert anywhere.lower.epsilon() - 1e-9 <= exact <= anywhere.epsilon()


@pytest.mark.parametrize(("step", "cap"), [(2, 1), (2, 3), (3, 2), (10, 50)])
def test_slots_are_clusters(step, cap):
    q, a = 1 / step, math.exp(0.3)
    closed = math.log1p((a - 1) * q / (q + (1 - q) * a ** -(2 * cap - 1)))
    guarantee = amplify(PureDP(0.3), Systematic(step, "slots", cap))
    assert guarantee.epsilon() == pytest.approx(closed, rel=1e-9)
    assert guarantee.lower.epsilon() == pytest.approx(closed, rel=1e-9)
    if step * cap <= 6:
        assert exact_epsilon(Systematic(step, "slots", cap), 1, AR, 0.3) == pytest.approx(closed, abs=1e-7)


def test_the_slot_is_that_of_the_id():
    people = Population(np.array([3, 10, 21, 32, 40], dtype=np.uint64))
    for r in range(20):
        drawn = Systematic(10, "slots", 2).draw(people, seeded_key(2), r).reveal_secret()
        assert len({int(i) % 10 for i in people.ids[drawn.positions]}) <= 1


def test_a_slot_larger_than_its_cap_is_refused():
    with pytest.raises(InvalidInput, match="at most 2 records in a slot"):
        Systematic(3, "slots", 2).draw(7, seeded_key(0))
    with pytest.raises(InvalidInput, match="whole-number ids"):
        Systematic(3, "slots", 2).draw(Population(["a", "b"]), seeded_key(0))
    with pytest.raises(InvalidInput, match="at most 4 records"):
        Systematic(3, at_most=4).draw(5, seeded_key(0))


def test_a_sorted_list_is_refused_and_told_what_is_safe():
    with pytest.raises(NoTheorem, match=r"order='random'.*order='slots'.*stratify"):
        Systematic(10, "sorted")


def test_noise_stated_for_replace_one_is_refused():
    for design in (Systematic(10), Systematic(10, "slots", 5)):
        with pytest.raises(NoTheorem, match="says nothing about"):
            amplify(Gaussian(1.0, neighbors=RO), design)


@pytest.mark.parametrize(
    "make",
    [
        lambda: Systematic(0),
        lambda: Systematic(1.5),
        lambda: Systematic(2, "shuffled"),
        lambda: Systematic(2, "slots"),
        lambda: Systematic(2, "slots", 0),
        lambda: Systematic(2, max_slot=3),
        lambda: Systematic(2, at_most=0),
    ],
)
def test_bad_input_is_one_sentence(make):
    with pytest.raises(InvalidInput) as caught:
        make()
    assert "got" in str(caught.value)
    assert "\n" not in str(caught.value)
