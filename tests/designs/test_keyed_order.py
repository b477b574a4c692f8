"""The keyed order of records: both halves count, wherever a batch ends, and a key keeps its sample."""

import numpy as np

from privamp import ClusterSampling, Population, RandomSize
from privamp.chance.keyed import keyed_pairs
from privamp.designs.fixed_size import BottomK
from privamp.designs.keyed_order import joined, ordered
from privamp.testing import seeded_key


def part(high, low, positions):
    return BottomK(np.array(high, np.uint64), np.array(low, np.uint64), np.array(positions), len(positions))


def test_equal_first_halves_are_ordered_by_the_second():
    """Two of 2^32 records share one about once; their order must not depend on the batch they came in."""
    whole = joined([part([5, 3], [9, 1], [0, 1]), part([5, 7], [2, 0], [2, 3]), part([3], [0], [4])])
    assert ordered(whole).tolist() == [4, 1, 2, 0, 3]
    assert whole.seen == 5
    again = joined([part([3], [0], [4]), part([5, 7], [2, 0], [2, 3]), part([5, 3], [9, 1], [0, 1])])
    assert ordered(again).tolist() == ordered(whole).tolist()


def test_the_first_half_comes_first():
    assert ordered(part([2, 1], [0, 9], [0, 1])).tolist() == [1, 0]


def test_members_of_clusters_are_taken_in_the_order_of_their_key():
    """The first of every drawn cluster, by the pairs of numbers that the key gives their ids."""
    design, key = ClusterSampling(3, 3, 20, 4, min_size=4), seeded_key(5)
    cluster = np.repeat([0, 1, 2], [20, 15, 4])
    sample = design.draw(Population(39, cluster=cluster), key)
    high, low = keyed_pairs(sample._key.subkey("order"), np.arange(39, dtype=np.uint64))
    expected = []
    for c in range(3):
        inside = np.flatnonzero(cluster == c)
        expected += inside[np.lexsort((low[inside], high[inside]))][:4].tolist()
    assert sample._drawn.positions.tolist() == sorted(expected)


def test_a_random_size_takes_the_first_of_its_order():
    design, key = RandomSize((0.0, 0.0, 0.0, 1.0, 0.0, 0.0)), seeded_key(6)
    sample = design.draw(Population(5), key)
    high, low = keyed_pairs(sample._key, np.arange(5, dtype=np.uint64))
    assert sorted(sample._drawn.positions.tolist()) == sorted(np.lexsort((low, high))[:3].tolist())
