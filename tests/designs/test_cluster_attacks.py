"""For which clusters and whom one record is looked for on a line, where noise is neither a black box nor Gaussian."""

from privamp import ClusterSampling, Laplace, Neighbors, amplify

AR = Neighbors.ADD_REMOVE
NOISE = Laplace(2.0)


def test_one_record_of_clusters_with_one_cap_is_looked_for():
    design = ClusterSampling(chosen=2, clusters=6, max_size=3)
    found, bound = design.attack(NOISE, AR), amplify(NOISE, design).upper
    assert 0.0 < found.delta(0.05) <= bound.delta(0.05)


def test_several_records_and_clusters_with_different_caps_are_not():
    design = ClusterSampling(chosen=2, clusters=6, max_size=3)
    assert design.attack(NOISE, AR.for_person(2)) is None
    assert ClusterSampling(chosen=1, clusters=3, max_size=(3, 2, 1)).attack(NOISE, AR) is None
