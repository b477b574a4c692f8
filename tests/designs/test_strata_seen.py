"""The attack on a shared rate, against its enumerated law; and its function moves by one per record."""

from collections import Counter

import numpy as np
import pytest

from privamp import Gaussian, Neighbors, SharedRate, amplify
from privamp.core.population import Population
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


def test_a_moved_record() -> None:
    """Five records, rate 2/5 would not be whole: six with two in each of two strata, one moved, one elsewhere."""
    design, usual, signs = SharedRate(3, 6, 3), {0: 1, 1: 1}, {0: 1, 1: -1}
    laws = []
    for labels in ([0, 0, 0, 1, 1, 2], [1, 0, 0, 1, 1, 2]):
        found: Counter[int] = Counter()
        for units, chance in design.law(Population(6, stratum=np.array(labels))):
            found[counted(units, dict(enumerate(labels)), usual, signs)] += chance
        laws.append({float(place): float(chance) for place, chance in found.items()})
    (p, q) = sizes_seen(3, 6, 3, RO.kind, fewest=0)["moved"]
    assert [dict(p), dict(q)] == [pytest.approx(law) for law in laws]


def test_it_is_near_the_bound_and_never_above() -> None:
    for relation, near in ((AR, 1.08), (RO, 1.27)):
        found = amplify(Gaussian(2.0), SharedRate(100, 1000, 3), relation)
        assert found.lower.epsilon(1e-6) <= found.epsilon(1e-6) < near * found.lower.epsilon(1e-6)
