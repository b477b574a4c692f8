"""Survey designs under noise: enumerated truth below every bound, exact values, planted mistakes, reference values."""

import math

import numpy as np
import pytest

from privamp import (
    ClusterPPS,
    Gaussian,
    Laplace,
    Neighbors,
    NoTheorem,
    Poisson,
    Population,
    Proportional,
    PureDP,
    SharedRate,
    Stratified,
    Systematic,
    WithoutReplacement,
    amplify,
    compose,
)
from privamp.core.direct_plan import direct_curve
from privamp.core.hub_plan import Hub, hub_curve
from privamp.core.transport import Components, best_plan, stakes_of, through_hubs, transported
from privamp.designs.flips import Flips, one_more
from privamp.designs.poisson_pps import PoissonPPS
from privamp.designs.rounded_transport import one_more as rounded
from privamp.designs.size_transport import corners
from privamp.designs.strata import joined
from privamp.verify.enumerate import exact_deltas

pytestmark = pytest.mark.filterwarnings("ignore::privamp.errors.DegradingDesign")
AR, RO = Neighbors.ADD_REMOVE, Neighbors.REPLACE_ONE
WITHIN = Neighbors("replace-one", scope="within cluster")
EPSILONS = np.array([0.0, 0.2, 0.9])


def cases():
    for rate, rounding in ((0.5, "random"), (0.3, "random"), (0.4, "half-up"), (0.5, "floor")):
        yield Proportional(rate, rounding), 3, AR
        yield Proportional(rate, rounding), 3, RO
    yield Systematic(2), 3, AR
    yield Systematic(2, "slots", 2), 4, AR
    people = Population(4, stratum=np.array([0, 0, 1, 1]))
    yield SharedRate(2, 4, 2), people, AR
    yield SharedRate(2, 4, 2), people, RO
    yield SharedRate(1, 4, 2, "half-up"), people, AR
    mixed = Stratified({"a": Poisson(0.3), "b": WithoutReplacement(1, 2)})
    yield mixed, joined({"a": Population(2), "b": Population(2)}), RO
    sizes = PoissonPPS.proportional(1, 1.0, 2.0, 3)
    yield sizes, Population(3, size=[1.0, 1.0, 1.0]), AR
    yield sizes, Population(3, size=[2.0, 1.0, 1.0]), RO
    by_size = ClusterPPS.proportional_to_size(2, 3, 1)
    yield by_size, by_size.sized([2, 1]), AR
    yield by_size, by_size.sized([2, 2]), WITHIN
    yield by_size, by_size.sized([2, 2]), RO


@pytest.mark.parametrize(("design", "population", "relation"), list(cases()), ids=lambda x: str(x)[:40])
def test_the_truth_is_below_the_bound(design, population, relation):
    upper = amplify(Gaussian(1.4), design, relation).upper
    bounds = np.exp(np.stack([upper.forward(EPSILONS), upper.backward(EPSILONS)]))
    truth = exact_deltas(design, Gaussian(1.4), population, relation, EPSILONS)
    assert np.all(bounds >= truth - 1e-12)


def test_distances_that_are_too_small_are_caught():
    """The plants: a displaced record forgotten, flips left out, and chances by size taken for equal."""
    truth = exact_deltas(Proportional(0.5), Gaussian(1.4), 3, AR, EPSILONS)
    short = through_hubs([Hub({0: 0.25, 1: 0.75}, {0: 1.0})], Gaussian(1.4))
    assert np.any(np.exp(short.forward(EPSILONS)) < truth[0] - 1e-4)
    people = Population(4, stratum=np.array([0, 0, 1, 1]))
    truth = exact_deltas(SharedRate(2, 4, 2), Gaussian(1.4), people, AR, EPSILONS)
    none = one_more({0: 0.6, 1: 0.4}, Flips.of(0.0), Gaussian(1.4))
    assert np.any(np.exp(none.forward(EPSILONS)) < truth[0] - 1e-4)
    design = ClusterPPS.proportional_to_size(2, 3, 1)
    truth = exact_deltas(design, Gaussian(1.4), design.sized([2, 1]), AR, EPSILONS)
    equal = transported([Components.of([0.25, 0.75], [0.25, 0.75], [[1, 6], [5, 0]])], Gaussian(1.4))
    assert np.any(np.exp(equal.forward(EPSILONS)) < truth[0] - 1e-4)


@pytest.mark.parametrize(
    ("rate", "sigma", "forward", "backward"), [(0.25, 2.0, 6.640e-2, 3.314e-2), (0.105, 4.0, 1.033e-3, None)]
)
def test_reference_values_over_all_numbers_of_records(rate, sigma, forward, backward):
    found = amplify(Gaussian(sigma), Proportional(rate)).upper
    assert math.exp(found.forward(0.2)) == pytest.approx(forward, rel=2e-3)
    if backward is not None:
        assert math.exp(found.backward(0.2)) == pytest.approx(backward, rel=2e-3)


def random_corner(seed):
    random = np.random.default_rng(seed)
    p, q = random.dirichlet(np.ones(2), size=2)
    return Components.of(p, q, [[1, 2 + seed % 3], [3, 0]])


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("mechanism", [Gaussian(1.5), Laplace(1.0)])
def test_plans_without_a_program_are_as_good_as_with_one(seed, mechanism):
    stakes, one = stakes_of(mechanism), random_corner(seed)
    found = math.exp(direct_curve(one.p, one.q, one.apart, stakes)(0.3))
    assert found == pytest.approx(best_plan(one, stakes, 0.3)[1], rel=0.01)


def test_a_hub_is_exact_along_a_line():
    hub = Hub({0: 0.7, 1: 0.2, 2: 0.1}, {0: 0.6, 2: 0.4})
    at = np.array([0.0, 0.3, 1.0, 2.0])
    bound = hub_curve(hub, stakes_of(Gaussian(1.5)))(at)
    line = Gaussian(1.5).on_a_line({0.0: 0.7, 1.0: 0.2, 2.0: 0.1}, {0.0: 0.6, -2.0: 0.4})
    assert np.all(bound >= line.forward(at) - 1e-12)
    assert np.all(bound <= line.forward(at) + 1e-3)


def test_no_curve_is_below_the_exact_pure_value():
    """Groups of a black box: the plan still charges just before the exact epsilon of the design, and not beyond it."""
    exact = amplify(PureDP(1.0), Proportional(0.1)).epsilon()
    found = transported(rounded(0.1), PureDP(1.0))
    assert max(found.forward(exact - 1e-3), found.backward(exact - 1e-3)) > -20.0
    assert max(found.forward(exact + 0.01), found.backward(exact + 0.01)) < -30.0


def test_chances_by_size_are_inside_their_corners():
    from scipy.spatial import ConvexHull

    found = np.array(corners(3, 2, 6))
    hull = ConvexHull(found)
    for x in range(2, 6):
        for others in range(4, 13):
            point = np.array([(x + 1) / (x + 1 + others), x / (x + others)])
            assert np.all(hull.equations[:, :2] @ point + hull.equations[:, 2] <= 1e-9)


@pytest.mark.slow
def test_rounds_compose_although_the_directions_were_bounded_apart():
    one = amplify(Gaussian(2.0), SharedRate(100, 1000, 4))
    assert float(one.upper.forward(0.0)) != pytest.approx(float(one.upper.backward(0.0)), rel=1e-4)
    assert compose(one, 20).epsilon(1e-6) < 20.0
    moved = amplify(Gaussian(2.0), Stratified({"a": Poisson(0.1), "b": WithoutReplacement(10, 50)}), RO)
    assert compose(moved, 100).epsilon(1e-6) < 20.0


def test_attacks_are_below_and_near():
    for design, relation, near in (
        (Proportional(0.1), AR, 1.06),
        (Proportional(0.1), RO, 1.001),
        (ClusterPPS.proportional_to_size(4, 5, 2), RO, 1.2),
    ):
        found = amplify(Gaussian(2.0), design, relation)
        assert 1.0 <= found.epsilon(1e-6) / found.lower.epsilon(1e-6) < near


def test_what_is_refused():
    with pytest.raises(NoTheorem, match="empty"):
        amplify(Gaussian(1.0), ClusterPPS.proportional_to_size(2, 3, 0))
    with pytest.raises(NoTheorem, match="by 1 in all"):
        amplify(Gaussian(1.0), PoissonPPS.proportional(5, 1.0, 2.0, 1))
    with pytest.raises(NoTheorem):
        amplify(Gaussian(1.0, neighbors=RO), Proportional(0.1))
