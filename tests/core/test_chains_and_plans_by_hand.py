"""Groups, chains, plans and attacks of small laws: against sums over all outcomes and over a fine grid."""

import math
from fractions import Fraction
from itertools import pairwise

import mpmath
import numpy as np
import pytest

from privamp import Gaussian, InvalidInput, Neighbors, NoTheorem, Poisson
from privamp.core.chains import Chain, Lines, _chord_at_one, _falling, chain_curve, steps_curve
from privamp.core.curves import (
    _closed_group,
    approx_curve,
    group,
    out_and_in,
    pair_profile,
    pure_curve,
)
from privamp.core.direct_plan import direct_curve
from privamp.core.guarantee import Guarantee, Lower
from privamp.core.hub_plan import Hub, hub_curve
from privamp.core.line_attack import seen_on_a_line
from privamp.core.mechanism import Change
from privamp.core.multiplicity import Multiplicity
from privamp.core.profile import Curve, Profile
from privamp.core.tabled import tabled
from privamp.core.weighting import Weighting
from privamp.numerics.log_domain import log_normal_tail

AR, RO = Neighbors.ADD_REMOVE, Neighbors.REPLACE_ONE
EPSILONS = np.array([0.0, 1e-6, 0.1, 0.5, 1.0, 2.5, 6.0])


def stick(p, q, epsilon):
    """log of sum max(p - e^eps q, 0) in 60 digits."""
    with mpmath.workdps(60):
        total = sum(
            max(mpmath.mpf(a) - mpmath.exp(mpmath.mpf(float(epsilon))) * mpmath.mpf(b), 0)
            for a, b in zip(p, q, strict=True)
        )
        return float(mpmath.log(total)) if total > 0 else -math.inf


def lopsided():
    p, q = np.array([0.9, 0.1]), np.array([0.99, 0.01])
    return pair_profile(np.log(p), np.log(q)), p, q


# --- groups


@pytest.mark.parametrize("records", [2, 3])
def test_the_closed_bound_of_a_group_is_its_formula_and_never_rises(records):
    curve = approx_curve(0.5, 1e-4)
    closed = _closed_group(curve, records)
    at = np.linspace(0.0, 4.0, 33)

    def formula(e):
        factor = math.expm1(e) / math.expm1(e / records) if e > 0 else records
        return min(math.log(factor) + float(curve(e / records)), 0.0)

    plain = np.array([formula(e) for e in at])
    found = closed(at)
    assert np.all(found <= plain + 1e-12)
    assert np.all(np.diff(found) <= 1e-3)
    least = np.minimum.accumulate([formula(e) for e in np.linspace(0.0, 4.0, 4001)])[:: 4000 // 32]
    assert found == pytest.approx(least, abs=2e-3)
    assert found[0] == pytest.approx(math.log(records) + float(curve(0.0)), abs=1e-12)
    assert closed.largest_loss == math.inf
    assert _closed_group(pure_curve(0.5), records).largest_loss == 0.5 * records


def test_groups_of_one_and_of_pure_boxes():
    profile, _, _ = lopsided()
    assert group(profile, 1) is profile
    three = group(Profile.symmetric(pure_curve(0.2)), 3)
    assert three.largest_loss == pytest.approx(0.6)
    assert three.is_symmetric


def test_the_record_out_and_another_in_is_a_chain_of_both_directions():
    """P (x) Q against Q (x) P is such a chain; its ends are those of both directions together."""
    profile, p, q = lopsided()
    both = out_and_in(profile)
    one, other = np.outer(p, q).ravel(), np.outer(q, p).ravel()
    assert both.is_symmetric
    for epsilon in EPSILONS:
        assert math.exp(float(both.forward(epsilon))) >= math.exp(stick(one, other, epsilon)) * (1 - 1e-9)
    assert both.largest_loss == pytest.approx(profile.forward.largest_loss + profile.backward.largest_loss)
    symmetric = out_and_in(Profile.symmetric(pure_curve(0.3)))
    assert symmetric.largest_loss == pytest.approx(0.6)
    assert float(symmetric.forward(0.0)) == pytest.approx(
        float(group(Profile.symmetric(pure_curve(0.3)), 2).forward(0.0))
    )


def test_the_lines_of_a_step_touch_its_curve():
    """Laplace's curve 1 - e^((eps - s)/2): the line of slope e^eps through every point kept, in both directions."""
    curve = Curve(lambda at: np.log(-np.expm1(np.minimum(0.5 * (at - 1.5), -1e-300))), 1.5)
    lines = Lines(curve)
    assert (lines.epsilon[0], lines.epsilon[-1]) == (0.0, pytest.approx(1.5))
    assert np.all(np.diff(lines.epsilon) > 0.0)
    assert np.all(np.diff(lines.log_delta) <= 0.0)
    assert 60 < lines.epsilon.size < 4100
    for log_chance in (-0.1, -1.0, -3.0, -9.0):
        chance = math.exp(log_chance)
        values = np.exp(lines.epsilon) * chance + np.exp(lines.log_delta)
        at = int(lines.rising(np.array([log_chance]))[0])
        assert values[at] == pytest.approx(values.min(), rel=1e-12)
        rest = math.exp(log_chance)
        sunk = np.exp(-lines.epsilon) * rest - np.exp(lines.log_delta - lines.epsilon)
        at = int(lines.sinking(np.array([log_chance]))[0])
        assert sunk[at] == pytest.approx(sunk.max(), rel=1e-12, abs=1e-15)
    assert _falling(np.array([3.0, np.nan, 1.0, 2.0])).tolist() == [3.0, -np.inf, -np.inf, -np.inf]


def test_the_chord_around_alpha_one_is_a_chord():
    for left, right in (((-0.5, -1.0), (0.25, -2.0)), ((-1e-9, -3.0), (2.0, -3.5))):
        a, b = math.exp(left[0]), math.exp(right[0])
        exact = (math.exp(left[1]) * (b - 1.0) + math.exp(right[1]) * (1.0 - a)) / (b - a)
        assert 0.9e-12 <= _chord_at_one(left, right) - math.log(exact) <= 1.1e-12 + 1e-13
    assert _chord_at_one((0.0, -1.0), (1.0, -2.0)) == -1.0 + 1e-12


def test_steps_of_gaussian_noise_are_one_gaussian():
    """mu = .2, .5 and .3 in a row are 1.0: never below, and within 1e-3."""
    steps = [Gaussian(1.0 / mu).profile(AR) for mu in (0.2, 0.5, 0.3)]
    found = steps_curve([(one.forward, one.backward) for one in steps])
    exact = Gaussian(1.0).profile(AR).forward(EPSILONS)
    assert np.all(found(EPSILONS) >= exact)
    assert found(EPSILONS) == pytest.approx(exact, abs=2e-3)
    assert steps_curve([(pure_curve(0.2), pure_curve(0.2)), (pure_curve(0.3), pure_curve(0.3))]).largest_loss == 0.5


# --- plans


def on_a_line(p, q, sigma=1.0):
    """D of mixtures of normals at whole places, by adding up a fine grid."""
    t = np.linspace(-30.0, 30.0, 600_001)
    one, other = (sum(c * np.exp(-0.5 * ((t - d) / sigma) ** 2) for d, c in law.items()) for law in (p, q))
    total = np.sum(np.exp(-0.5 * (t / sigma) ** 2))
    return np.array([np.maximum(one - math.exp(e) * other, 0.0).sum() / total for e in EPSILONS[:6]])


@pytest.mark.parametrize("chances", [(0.3,), (0.3, 0.2)])
def test_a_hub_of_records_on_one_side_is_exact_on_a_line(chances):
    """Kept records move the sum one way: H between the mixture and the usual sample, with nothing lost."""
    hub = Hub.kept(chances[0])
    for chance in chances[1:]:
        hub = hub.beside(Hub.kept(chance, 2))
    stakes = Gaussian(1.0).family(AR)
    exact = on_a_line(hub.p, {0: 1.0})
    found = np.exp(hub_curve(hub, stakes)(EPSILONS[:6]))
    assert np.all(found >= exact * (1 - 1e-6))
    assert found == pytest.approx(exact, rel=2e-3)
    turned = np.exp(hub_curve(hub.turned, stakes)(EPSILONS[:6]))
    back = on_a_line({0: 1.0}, hub.p)
    assert np.all(turned >= back * (1 - 1e-6))
    assert turned == pytest.approx(back, rel=2e-3, abs=1e-9)


def test_two_hubs_side_by_side_are_convolved():
    found = Hub({0: 0.5, 1: 0.5}, {0: 0.25, 2: 0.75}).beside(Hub({0: 0.1, 1: 0.9}, {0: 1.0}))
    assert found.p == pytest.approx({0: 0.05, 1: 0.5, 2: 0.45})
    assert found.q == pytest.approx({0: 0.25, 2: 0.75})
    assert found.turned == Hub(found.q, found.p)
    assert Hub.kept(0.2, 3) == Hub({0: 0.8, 3: 0.2}, {0: 1.0})
    both = Hub({0: 0.6, 1: 0.4}, {0: 0.7, 1: 0.3})  # records move the sums apart on both sides
    exact = on_a_line(both.p, {0: 0.7, -1: 0.3})
    found = np.exp(hub_curve(both, Gaussian(1.0).family(AR))(EPSILONS[:6]))
    assert np.all(found >= exact * (1 - 1e-6))
    assert found == pytest.approx(exact, rel=5e-3)
    nobody = hub_curve(Hub({0: 1.0}, {0: 1.0}), Gaussian(1.0).family(AR))
    assert np.all(np.exp(nobody(EPSILONS)) <= 1e-11)


def test_a_direct_plan_leaves_one_component_or_is_none():
    stakes = Gaussian(1.0).family(AR)
    p, q = np.array([0.7, 0.3]), np.array([1.0])
    found = direct_curve(p, q, np.array([[0.0], [1.0]]), stakes)
    exact = on_a_line({0: 0.7, 1: 0.3}, {0: 1.0})
    assert np.exp(found(EPSILONS[:6])) == pytest.approx(exact, rel=2e-3)
    assert found(EPSILONS.reshape(1, 7)).shape == (1, 7)
    many = np.array([[0.0, 2.0], [0.0, 2.0]])  # two rows at no distance from one column
    assert direct_curve(p, np.array([0.5, 0.5]), many, stakes) is None
    unknown = np.array([[0.0], [math.nan]])
    assert direct_curve(p, q, unknown, stakes) is None
    three = np.array([[0.0, 2.0, 2.0], [2.0, 1.0, 1.0], [2.0, 1.0, 1.0]])  # two against two are left
    assert direct_curve(np.array([0.4, 0.3, 0.3]), np.array([0.4, 0.3, 0.3]), three, stakes) is None


def test_what_an_observer_of_cells_sees_is_their_two_laws():
    """Cells of a line under normal noise: P at 0 and 1 with equal chance, Q at 0."""
    edges = np.array([-1.0, 0.0, 0.5, 1.0, 2.0])
    found = seen_on_a_line(log_normal_tail, edges, {0.0: 0.5, 1.0: 0.5}, {0.0: 1.0})
    cuts = [-math.inf, *edges, math.inf]
    normal = lambda at, x: float(mpmath.ncdf(x - at))  # noqa: E731
    mass = [[normal(at, b) - normal(at, a) for a, b in pairwise(cuts)] for at in (0.0, 1.0)]
    q = mass[0]
    p = [0.5 * a + 0.5 * b for a, b in zip(*mass, strict=True)]
    for epsilon in (0.0, 0.1, 0.5):
        assert math.exp(float(found.forward(epsilon))) == pytest.approx(math.exp(stick(p, q, epsilon)), rel=1e-9)
        assert math.exp(float(found.backward(epsilon))) == pytest.approx(math.exp(stick(q, p, epsilon)), rel=1e-9)


# --- changes, weights, lower ends


def test_changes_weights_and_tables():
    assert Change() == Change(copies=1, weight=1.0, norm=None)
    for bad in ({"copies": 0}, {"weight": 0.0}, {"norm": -1.0}):
        with pytest.raises(InvalidInput):
            Change(**bad)
    assert Change(norm=0.0).norm == 0.0
    equal = Weighting.equal(4.0, 3.0, 5)
    assert (equal.weight.tolist(), equal.second.tolist(), equal.shrink, equal.rate) == (
        [4.0] * 5,
        [12.0] * 5,
        0.0,
        0.25,
    )
    fixed = Weighting.equal(4.0, 3.0, 5, fixed=10.0)
    assert fixed.shrink == pytest.approx(3.0 / 7.0)
    assert fixed.second_most == pytest.approx(12.0 * (1.0 + 3.0 / 7.0))
    assert (fixed.heaviest, fixed.first, fixed.spread_most, fixed.per_record) == (4.0, 0.0, 3.0, True)
    assert [Weighting.equal(1.0, s, 1, fixed=10.0).shrink for s in (5.0, 5.1)] == [1.0, 0.0]
    profile, _, _ = lopsided()
    table = tabled(profile, many=5)
    few, many = np.array([0.1, 0.5]), np.linspace(0.01, 2.0, 5)
    assert np.array_equal(table.forward(few), profile.forward(few))
    assert np.all(table.forward(many) >= profile.forward(many))
    assert table.backward(many) == pytest.approx(profile.backward(many), abs=1e-3)
    assert tabled(Profile.symmetric(pure_curve(0.5))).is_symmetric


def test_a_mechanism_says_how_far_a_relation_is():
    noise = Gaussian(1.0)
    assert (noise.records_apart(AR), noise.records_apart(RO)) == (1, 2)
    replaced = Gaussian(1.0, neighbors=RO)
    assert replaced.records_apart(RO) == 1
    with pytest.raises(NoTheorem, match="is stated for replace-one neighbours, which says nothing about add-remove"):
        replaced.records_apart(AR)
    within = Gaussian(1.0, neighbors=Neighbors("replace-one", scope="within stratum"))
    within.check_scope("within stratum")
    for scope, how in (("anywhere", "move farther or"), ("within cluster", "move within cluster or")):
        with pytest.raises(NoTheorem, match=how):
            within.check_scope(scope)
    assert within.in_stratum("a").neighbors == RO
    assert noise.in_stratum("a") is noise


def test_the_lower_end_of_epsilon_is_where_the_attack_still_exceeds():
    exact = Gaussian(1.0).profile(AR)
    lower = Lower(exact)
    for delta in (1e-9, 1e-3, 0.3):
        found = lower.epsilon(delta)
        assert exact.delta(found) > delta
        assert exact.delta(found + 1e-12 * max(found, 1.0)) <= delta
    assert lower.epsilon(0.9) == 0.0
    assert lower.epsilon(0.0) == math.inf
    assert lower.delta(1.0) == exact.delta(1.0)
    stuck = Lower(Profile.symmetric(Curve(lambda at: np.where(at < 1.0, -1.0, -9.0))))
    assert 1.0 - 1e-12 <= stuck.epsilon(1e-2) < 1.0
    assert Lower(Profile.symmetric(pure_curve(0.5))).epsilon(0.0) == pytest.approx(0.5, rel=1e-14)
    assert Lower(Profile.symmetric(pure_curve(0.5))).epsilon(0.0) < 0.5


def test_numbers_of_appearances_in_fractions():
    """Binomial and hypergeometric laws of one record, and stages one after the other."""
    law = Multiplicity.binomial(4, 0.3)
    exact = [math.comb(4, k) * Fraction(3, 10) ** k * Fraction(7, 10) ** (4 - k) for k in range(5)]
    assert np.exp(law.log_p) == pytest.approx([float(x) for x in exact[1:]], rel=1e-13)
    assert math.exp(law.log_none) == pytest.approx(float(exact[0]), rel=1e-13)
    assert (law.eta, law.mean) == (pytest.approx(1 - 0.7**4), pytest.approx(1.2))
    moment = math.log(sum(float(x) * math.exp(0.5 * k) for k, x in enumerate(exact)))
    assert law.log_moment(0.5) == pytest.approx(moment, rel=1e-12)
    assert Multiplicity.binomial(4, 1e-9).log_moment(0.5) == pytest.approx(4e-9 * math.expm1(0.5), rel=1e-8)
    again = law.then_with_replacement(4, 3)
    for k in range(1, 4):
        chance = sum(float(exact[j]) * math.comb(3, k) * (j / 4) ** k * (1 - j / 4) ** (3 - k) for j in range(1, 5))
        assert math.exp(again.log_p[k - 1]) == pytest.approx(chance, rel=1e-12)
    less = law.then_without_replacement(4, 2)
    for k in (1, 2):
        chance = sum(float(exact[j]) * math.comb(j, k) * math.comb(4 - j, 2 - k) / 6 for j in range(1, 5))
        assert math.exp(less.log_p[k - 1]) == pytest.approx(chance, rel=1e-12)


def test_a_guarantee_counts_steps_and_fresh_draws():
    from privamp import amplify, compose

    one = amplify(Gaussian(2.0), Poisson(0.1))
    three = compose(one, 3)
    assert isinstance(one, Guarantee)
    assert (one.steps, three.steps) == (1, 3)
    assert one.fresh() == one
    assert one.delta(np.array([0.5, 1.0])).shape == (2,)
    assert isinstance(one.delta(0.5), float)
    assert one.delta(1e5) >= 5e-324  # what is not zero does not vanish
    stated = one.stated(epsilon=0.5)
    assert stated["delta_upper"] == one.delta(0.5)
    assert stated["delta_lower"] == one.lower.delta(0.5)
    assert "epsilon_upper" not in stated
    both = one.stated(epsilon=0.5, delta=1e-5)
    assert (both["epsilon_upper"], both["epsilon_lower"]) == (one.epsilon(1e-5), one.lower.epsilon(1e-5))
    pure = one.stated()
    assert (pure["delta_upper"], pure["epsilon_upper"], pure["neighbors"], pure["steps"]) == (
        0.0,
        None,
        "add-remove",
        1,
    )
    assert "degrades" not in pure
    assert "scope" not in pure


@pytest.mark.parametrize("steps", [2, 3, 7, 50])
@pytest.mark.parametrize("delta", [1e-3, 0.00731, 1e-9])
def test_what_is_lost_in_every_step_adds_up_and_is_not_rounded_down(steps, delta):
    """Each step loses delta at every epsilon, as (0, delta)-DP may: a chain of disjoint losses loses the sum."""
    log_delta = math.log(delta)
    step = Curve(lambda epsilon: np.full_like(np.asarray(epsilon, dtype=float), log_delta))
    with mpmath.workdps(40):
        exact = mpmath.log(steps * mpmath.exp(mpmath.mpf(log_delta)))
        assert exact <= float(chain_curve(step, step, steps)(np.zeros(1))[0]) <= exact + 1e-11
        lines = Lines(step)
        assert exact <= float(Chain([(lines, lines)] * steps).table().log_v[0]) <= exact + 1e-12
