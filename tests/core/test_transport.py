"""Transport plans: reference values, exact theorems, planted mistakes; no plan is trusted before it is scaled."""

import math
from fractions import Fraction

import numpy as np
import pytest

from privamp import ApproxDP, Gaussian, Laplace, Neighbors, NoTheorem
from privamp.core import transport
from privamp.core.transport import Components, best_plan, independent, is_covered, mixed, scaled, stakes_of, transported
from privamp.designs import cluster_gaussian
from privamp.designs.cluster_transport import added, moved, replaced
from privamp.verify.enumerate import exact_delta_of_laws

AR, RO = Neighbors.ADD_REMOVE, Neighbors.REPLACE_ONE


def proportional(n, share):
    """The record in or out and the rounded size, against the rounded size without it."""
    share = Fraction(str(share))

    def sizes(x):
        low = math.floor(x)
        return {low: 1 - (x - low), low + 1: x - low}

    larger = [
        ((a, m), float(t * (Fraction(m, n + 1) if a else 1 - Fraction(m, n + 1))))
        for m, t in sizes(share * (n + 1)).items()
        for a in (0, 1)
    ]
    smaller = [(m, float(t)) for m, t in sizes(share * n).items()]
    far = [[a + abs(m - a - other) for other, _ in smaller] for (a, m), _ in larger]
    return Components.of([p for _, p in larger], [q for _, q in smaller], far)


@pytest.mark.parametrize(
    ("n", "share", "sigma", "forward", "backward"),
    [(7, 0.5, 1.5, 8.633e-2, 7.111e-2), (10, 0.25, 2.0, 1.908e-2, 1.086e-2)],
)
def test_reference_values_of_a_rounded_share(n, share, sigma, forward, backward):
    found = transported([proportional(n, share)], Gaussian(sigma))
    assert math.exp(found.forward(0.2)) == pytest.approx(forward, rel=0.01)
    assert math.exp(found.backward(0.2)) == pytest.approx(backward, rel=0.01)
    assert math.exp(found.forward(0.2)) >= forward * 0.9995


@pytest.mark.parametrize(("chance", "cap", "sigma"), [(0.1, 4, 4.0), (0.4, 2, 1.0)])
def test_whole_clusters_agree_with_the_exact_theorem(chance, cap, sigma):
    for ours, exact in (
        (added(chance, cap, cap), cluster_gaussian.added),
        (replaced(chance, cap, cap), cluster_gaussian.replaced),
    ):
        found = transported([ours], Gaussian(sigma))
        truth = exact(1 / sigma, chance, [(1 - chance, 2.0 * cap - 1.0)])
        for way in ("forward", "backward"):
            upper, lower = (np.exp(getattr(p, way)(np.array([0.0, 0.25, 0.6, 1.0]))) for p in (found, truth))
            assert np.all(upper >= lower * (1 - 1e-12))
            assert np.all(upper <= lower * 1.02)


def test_the_curve_falls():
    """Strictly where delta is above 1e-6; farther out, plans that are not the best may let it rise a little."""
    found = transported([moved(5, 50, 4)], Gaussian(4.0))
    values = found.forward(np.linspace(0.0, 12.0, 200))
    steps = np.diff(values)
    assert np.all(steps[values[1:] > math.log(1e-6)] < 0)
    assert np.all(values[1:] <= np.minimum.accumulate(values)[:-1] + 2.0)


def random_components(seed, size=3):
    random = np.random.default_rng(seed)
    p, q = (random.dirichlet(np.ones(size)) for _ in range(2))
    return Components.of(p, q, np.array([[0, 1, 2], [1, 0, 1], [2, 1, 0]], dtype=float))


@pytest.mark.parametrize("seed", range(4))
def test_sums_along_a_line_are_never_above_the_plan(seed):
    """Components i as N(i): the enumerated divergence of the two mixtures is below every plan."""
    components, mechanism = random_components(seed), Gaussian(1.3)
    stakes, at = stakes_of(mechanism), np.array([0.4])
    laws = [dict(enumerate(law.tolist())) for law in (components.p, components.q)]
    truth = exact_delta_of_laws(*laws, mechanism, 0.4)
    worth = best_plan(components, stakes, 0.4)[1]
    assert truth <= max(worth, best_plan(components.turned, stakes, 0.4)[1]) + 1e-12
    first = independent(components)
    assert worth <= math.exp(mixed(components, stakes, (first, 0.4), (first, 0.4), at)[0]) + 1e-12
    ways = [mixed(one, stakes, (independent(one), 0.0), (best_plan(one, stakes, 0.4)[0], 0.4), np.array([0.2]))[0]
            for one in (components, components.turned)]  # fmt: skip
    assert exact_delta_of_laws(*laws, mechanism, 0.2) <= math.exp(max(ways)) + 1e-12


@pytest.mark.parametrize("seed", range(5))
def test_a_plan_is_scaled_whatever_the_solver_says(seed):
    """The plant: weights that are far from feasible; what is evaluated is feasible all the same."""
    components, random = random_components(seed), np.random.default_rng(seed)
    wild = (random.uniform(-0.1, 1, (3, 3)), random.uniform(-0.1, 1, (3, 3)))
    for alpha in (1.0, 2.0, 50.0):
        pi, rho = scaled(components, wild, alpha)
        assert np.all(pi.sum(axis=1) >= components.p)
        assert np.all(rho.sum(axis=0) <= components.q)
        assert np.all(pi >= 0)
        assert np.all(rho >= 0)


def test_an_infeasible_plan_would_be_false():
    """Without scaling, a plan that leaves out a row claims less than the truth: the oracle sees it."""
    components, mechanism = Components.of([0.5, 0.5], [1.0], [[3], [0]]), Gaussian(1.0)
    truth = exact_delta_of_laws({3: 0.5, 0: 0.5}, {0: 1.0}, mechanism, 0.5)
    stakes, at = stakes_of(mechanism), np.array([0.5])
    cheat = (np.array([[0.0], [0.5]]), np.array([[0.0], [1.0]]))
    assert math.exp(mixed(components, stakes, (cheat, 0.5), (cheat, 0.5), at)[0]) < truth
    honest = scaled(components, cheat, math.exp(0.5))
    assert math.exp(mixed(components, stakes, (honest, 0.5), (honest, 0.5), at)[0]) >= truth


def test_a_failed_solver_still_certifies(monkeypatch):
    monkeypatch.setattr(transport, "_program", lambda *given: None)
    found = transported([added(0.3, 2, 2)], Gaussian(1.0))
    exact = cluster_gaussian.added(1.0, 0.3, [(0.7, 3.0)])
    assert np.all(found.forward(np.array([0.1, 1.0])) >= exact.forward(np.array([0.1, 1.0])))


def test_whom_it_covers():
    assert is_covered(Gaussian(1.0))
    assert is_covered(ApproxDP(1.0, 1e-6))
    assert not is_covered(Laplace(1.0))
    assert not is_covered(Gaussian(1.0, neighbors=RO))
    with pytest.raises(NoTheorem, match="different sizes"):
        stakes_of(Gaussian(1.0, neighbors=RO))
