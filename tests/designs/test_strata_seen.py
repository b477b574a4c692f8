"""The attack on a shared rate, against its enumerated law; and its function moves by one per record."""

from collections import Counter

import numpy as np
import pytest

from privamp import Gaussian, Neighbors, Poisson, Proportional, SharedRate, Stratified, WithoutReplacement, amplify
from privamp.core.population import Population
from privamp.designs.moved_sums import between, of_share
from privamp.designs.strata_seen import sizes_seen

AR, RO = Neighbors.ADD_REMOVE, Neighbors.REPLACE_ONE


def counted(units: tuple[int, ...], strata: dict[int, int], usual: dict[int, int], signs: dict[int, int]) -> int:
    """How far the strata's sizes are from the usual ones, and the changed record: each with its stratum's sign."""
    own = 0 in units
    sizes = Counter(strata[u] for u in units if u != 0)
    return sum(sign * abs(sizes[s] - usual[s]) for s, sign in signs.items()) + (signs[strata[0]] if own else 0)


def test_the_law_of_the_sum_is_the_enumerated_one() -> None:
    design, labels = SharedRate(2, 4, 2), [0, 0, 0, 1, 1]
    strata, usual = dict(enumerate(labels)), {0: 1, 1: 1}
    found: Counter[int] = Counter()
    for units, chance in design.law(Population(5, stratum=np.array(labels))):
        found[counted(units, strata, usual, {0: 1, 1: 1})] += chance
    (p, q) = sizes_seen(2, 4, 2, AR.kind, fewest=0)["sizes seen"]
    assert q == {0.0: 1.0}
    assert {float(place): float(chance) for place, chance in found.items()} == pytest.approx(dict(p))


def seen_of(kind: str, own: bool, others: int, usual: int) -> float:
    """The function of one stratum: `usual` others are there without the record, or one less than with it."""
    size = abs(others - usual) if kind == "whole" else others - usual
    return own + (-size if kind == "carried, two signs" else size)


MOVES = sizes_seen(3, 6, 3, RO.kind, fewest=0)


@pytest.mark.parametrize("name", MOVES)
def test_a_moved_record(name: str) -> None:
    """Six records, three drawn; strata of 2 and 4 others, of one less where they are whole with the record."""
    kinds = name.removeprefix("moved, ").split(" to ")
    wholes = [kind == "whole" for kind in kinds]
    sizes = [2, 2] if all(wholes) else [2 - (not wholes[0]), 4 - (not wholes[1])]
    usual = [size // 2 for size in sizes]
    others = [stratum for stratum, size in enumerate(sizes) for _ in range(size)]
    others += [2] * (5 - len(others))
    laws = []
    for place in (0, 1):
        labels, found = [place, *others], Counter()
        for units, chance in SharedRate(3, 6, 3).law(Population(6, stratum=np.array(labels))):
            drawn = Counter(labels[u] for u in units if u != 0)
            first, second = (seen_of(kinds[s], 0 in units and place == s, drawn[s], usual[s]) for s in (0, 1))
            found[float(first - second)] += chance
        laws.append({at: float(chance) for at, chance in found.items()})
    assert [{at: p for at, p in law.items() if p} for law in MOVES[name]] == [pytest.approx(law) for law in laws]


@pytest.mark.parametrize("kind", ["whole", "carried, one sign", "carried, two signs"])
def test_steps_are_of_one_record(kind: str) -> None:
    for own in (False, True):
        for others in range(6):
            now = seen_of(kind, own, others, 2)
            assert abs(seen_of(kind, own, others + 1, 2) - now) <= 1
            assert abs(seen_of(kind, not own, others, 2) - now) <= 1


def test_it_is_near_the_bound_and_never_above() -> None:
    for relation, near in ((AR, 1.08), (RO, 1.08)):
        found = amplify(Gaussian(2.0), SharedRate(100, 1000, 3), relation)
        assert found.lower.epsilon(1e-6) <= found.epsilon(1e-6) < near * found.lower.epsilon(1e-6)


@pytest.mark.parametrize(
    ("strata", "near"),
    [
        ({"a": Proportional(0.1), "b": Proportional(0.2)}, 1.03),
        ({"a": Poisson(0.1), "b": WithoutReplacement(10, 50)}, 1.001),
    ],
)
def test_moves_between_strata_are_seen(strata, near) -> None:
    found = amplify(Gaussian(2.0), Stratified(strata), RO)
    assert found.lower.epsilon(1e-6) <= found.epsilon(1e-6) <= near * found.lower.epsilon(1e-6)


def test_a_sum_that_forgets_a_sign_is_no_move() -> None:
    """The plant: the stratum that is entered counted like the one that is left, which sees less."""
    scene = of_share(0.1)["whole"]
    p, q = between(scene, scene)
    wrong = between(scene, tuple({-place: chance for place, chance in law.items()} for law in scene))
    right = Gaussian(2.0).on_a_line(p, q).epsilon(1e-6)
    assert Gaussian(2.0).on_a_line(*wrong).epsilon(1e-6) < 0.5 * right
