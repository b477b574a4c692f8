"""Public numbers come in a public order: sets and mappings are refused, and refusals say what to do."""

import numpy as np
import pytest

from privamp import (
    ClusterPPS,
    ClusterSampling,
    InvalidInput,
    MultiStage,
    Neighbors,
    NoTheorem,
    PPSClusters,
    PureDP,
    RandomSize,
    SystematicPPS,
    amplify,
)

SIZES = {1: 30, 2: 20, 3: 25, 4: 26}
NAMES = {"a": 1, "b": 2, "c": 3, "d": 4}
FOUR = (30, 20, 25, 25)
MADE = {
    "PPSClusters.sizes": (lambda given: PPSClusters(given, 1, 1), SIZES),
    "PPSClusters.labels": (lambda given: PPSClusters(FOUR, 1, 1, given), NAMES),
    "SystematicPPS.sizes": (lambda given: SystematicPPS(given, 1), SIZES),
    "SystematicPPS.max_size": (lambda given: SystematicPPS(FOUR, 1, given), SIZES),
    "SystematicPPS.labels": (lambda given: SystematicPPS(FOUR, 1, 1, given), NAMES),
    "ClusterPPS.probabilities": (lambda given: ClusterPPS(given, 1), {0.3: 1, 0.7: 2}),
    "ClusterPPS.max_size": (lambda given: ClusterPPS((0.25,) * 4, given), SIZES),
    "ClusterPPS.labels": (lambda given: ClusterPPS((0.25,) * 4, 1, given), NAMES),
    "ClusterSampling.max_size": (lambda given: ClusterSampling(1, 4, given), SIZES),
    "ClusterSampling.labels": (lambda given: ClusterSampling(1, 4, 2, labels=given), NAMES),
    "RandomSize.sizes": (RandomSize, {0.3: 1, 0.7: 2}),
    "MultiStage.stages": (lambda given: MultiStage(given, 10), {("wor", 3): 1}),
    "ClusterBySize.labels": (lambda given: type(ClusterPPS.proportional_to_size(4, 2))(4, 2, labels=given), NAMES),
}


@pytest.mark.parametrize("name", MADE)
@pytest.mark.parametrize("kind", [dict, set, frozenset])
def test_sets_and_mappings_are_refused(name, kind):
    make, given = MADE[name]
    with pytest.raises(InvalidInput, match=rf"^{name.split('.')[1]} must be a list .*, got a {kind.__name__} instead$"):
        make(kind(given))


@pytest.mark.parametrize("name", MADE)
@pytest.mark.parametrize("kind", [list, iter, tuple, dict.keys])
def test_lists_iterators_and_tuples_are_read_in_their_order(name, kind):
    make, given = MADE[name]
    assert make(kind(given)) == make(tuple(given))


def test_arrays_are_read():
    assert PPSClusters(np.array(FOUR), 1, 1) == PPSClusters(FOUR, 1, 1)


@pytest.mark.parametrize("bad", [2.5, 0, "a", True])
def test_a_bad_size_is_called_a_size(bad):
    with pytest.raises(InvalidInput, match=rf"^sizes must be a whole number of at least 1, got {bad!r} instead$"):
        PPSClusters((30, bad, 25), 1, 1)


@pytest.mark.parametrize("make", [lambda s: SystematicPPS(s, 1), lambda s: PPSClusters(s, 1, 1)])
def test_sizes_beyond_64_bits_are_refused(make):
    make((2**62, 2**62 - 1))
    with pytest.raises(InvalidInput, match=r"^the sum of sizes must be a whole number from 1 to"):
        make((2**62, 2**62, 1))


@pytest.mark.parametrize("make", [lambda: SystematicPPS((5, 2, 1), 2), lambda: PPSClusters((5, 2, 1), 2, 1)])
def test_a_certain_unit_is_to_be_split(make):
    with pytest.raises(InvalidInput, match="split it into smaller"):
        make()


@pytest.mark.parametrize("design", [SystematicPPS((3, 2, 4, 1), 2), PPSClusters(FOUR, 2, 1)])
def test_a_refused_relation_names_the_scope_that_is_proved(design):
    with pytest.raises(NoTheorem, match="replace-one within cluster; ask for that relation"):
        amplify(PureDP(1.0), design, Neighbors.REPLACE_ONE)
