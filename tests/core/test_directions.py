"""A pure end in one direction bounds that direction only: held against exact divergences of small finite laws."""

import math

import numpy as np
import pytest

from privamp.accounting.composition import Composition
from privamp.accounting.renyi import renyi_of_profile
from privamp.core.curves import directed_curve, group, pair_profile, pure_curve
from privamp.core.guarantee import Part
from privamp.designs.stratified import _moved

EPSILONS = np.concatenate([[0.0], np.geomspace(1e-4, 12.0, 120)])


def law(rng, size):
    """A law with masses of very different sizes."""
    weights = rng.dirichlet(np.full(size, rng.choice([0.2, 1.0, 5.0]))) + 1e-9
    return weights / weights.sum()


def lopsided(rng):
    """Two laws of which one direction's largest ratio is much larger than the other's."""
    q = law(rng, int(rng.integers(2, 4)))
    r = law(rng, q.size)
    rate = float(rng.choice([0.02, 0.2, 0.5, 0.9]))
    p = (1.0 - rate) * q + rate * r
    return (p, q) if rng.random() < 0.5 else (q, p)


def hockey_stick(p, q, epsilon):
    return np.maximum(p - np.exp(epsilon)[:, None] * q, 0.0).sum(axis=1)


def ends(p, q):
    return float(np.log(p / q).max()), float(np.log(q / p).max())


def exact(p, q):
    return pair_profile(np.log(p), np.log(q))


def renyi(p, q, order):
    return max(float(np.log(np.sum(a**order * b ** (1.0 - order)))) / (order - 1.0) for a, b in ((p, q), (q, p)))


def never_below(curve, p, q):
    found = np.exp(curve(EPSILONS))
    truth = hockey_stick(p, q, EPSILONS)
    return bool(np.all(found >= truth * (1.0 - 1e-9) - 1e-15))


def test_the_largest_curve_between_two_ends():
    rng = np.random.default_rng(1)
    missed = 0
    for _ in range(2000):
        p, q = lopsided(rng)
        own, other = ends(p, q)
        assert never_below(directed_curve(own, other), p, q)
        assert never_below(directed_curve(own, math.inf), p, q)
        missed += not never_below(pure_curve(own), p, q)
    assert missed > 100  # randomised response at one direction's end, the old formula, is false


@pytest.mark.parametrize(("own", "other"), [(1.0, 2.0), (2.0, 0.1), (0.3, 0.3), (1e-6, 3.0), (40.0, 1e-9)])
def test_two_outcomes_reach_it(own, other):
    p = -math.expm1(-other) / -math.expm1(-own - other)
    one, two = np.array([p, 1.0 - p]), np.array([p * math.exp(-own), (1.0 - p) * math.exp(other)])
    assert two.sum() == pytest.approx(1.0)
    inside = np.linspace(0.0, 0.999 * own, 50)
    np.testing.assert_allclose(
        np.exp(directed_curve(own, other)(inside)), hockey_stick(one, two, inside), rtol=1e-6, atol=1e-15
    )


def test_a_direction_without_an_end_and_laws_that_are_equal():
    assert float(np.exp(directed_curve(1.0, math.inf)(0.0))) == pytest.approx(-math.expm1(-1.0))
    assert float(directed_curve(0.0, 0.0)(0.0)) == -math.inf
    assert float(directed_curve(3.0, 0.0)(0.0)) == -math.inf  # Q <= P everywhere makes them equal
    np.testing.assert_allclose(directed_curve(1.5, 1.5)(EPSILONS), pure_curve(1.5)(EPSILONS), rtol=1e-12)


def product_law(p, times):
    """`times` independent outcomes: a person whose records are answered one by one."""
    joint = p
    for _ in range(times - 1):
        joint = np.outer(joint, p).ravel()
    return joint


@pytest.mark.parametrize("cases", [30, pytest.param(300, marks=pytest.mark.slow)])
def test_a_group_is_never_understated_in_either_direction(cases):
    rng = np.random.default_rng(2)
    for _ in range(cases):
        records, (p, q) = int(rng.integers(2, 5)), lopsided(rng)
        profile = group(exact(p, q), records)
        every, nobody = product_law(p, records), product_law(q, records)
        assert never_below(profile.forward, every, nobody)
        assert never_below(profile.backward, nobody, every)
        for order in (1.5, 2.0, 8.0) if records == 2 else ():
            assert renyi_of_profile(profile, order) >= renyi(every, nobody, order) * (1.0 - 1e-9)


def test_composition_is_never_understated_in_either_direction():
    rng = np.random.default_rng(3)
    for _ in range(30):
        one, two = lopsided(rng), lopsided(rng)
        parts = (Part(exact(*one).rounded_up(), None), Part(exact(*two).rounded_up(), None))
        profile = Composition(parts).upper
        p, q = (np.outer(one[i], two[i]).ravel() for i in (0, 1))
        assert never_below(profile.forward, p, q)
        assert never_below(profile.backward, q, p)


def test_a_move_between_strata_is_never_understated():
    rng = np.random.default_rng(4)
    for _ in range(400):
        (with_old, without_old), (with_new, without_new) = lopsided(rng), lopsided(rng)
        p, q = np.outer(with_old, without_new).ravel(), np.outer(without_old, with_new).ravel()
        out, into = exact(with_old, without_old), exact(with_new, without_new)
        profile = _moved(out, into)
        assert never_below(profile.forward, p, q)
        assert never_below(profile.backward, q, p)
