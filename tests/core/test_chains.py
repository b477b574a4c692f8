"""Groups by iterating the trade-off function: exact where a chain attains it, never below any chain."""

import math

import numpy as np
import pytest
from scipy.optimize import linprog

from privamp import ApproxDP, Gaussian, Laplace, Neighbors, PureDP
from privamp.core import chains
from privamp.core.curves import approx_curve, group, out_and_in, pair_profile
from privamp.core.multiplicity import Multiplicity
from privamp.core.profile import Profile
from privamp.mechanisms.discrete_laplace import discrete_laplace_curve

AR, RO = Neighbors.ADD_REMOVE, Neighbors.REPLACE_ONE
AT = np.array([0.0, 0.03, 0.2, 0.7, 1.4, 3.0])


def hockey_stick(p, q, epsilons):
    return np.array([np.maximum(p - math.exp(e) * q, 0.0).sum() for e in epsilons])


@pytest.mark.parametrize("records", [2, 3, 5, 40])
def test_a_pure_box_is_discrete_laplace_and_noise_is_its_own_group(records):
    box = group(PureDP(0.4).profile(AR), records).log_delta(AT)
    np.testing.assert_allclose(box, discrete_laplace_curve(0.4, records)(AT), rtol=1e-9, atol=1e-9)
    for kind in (Gaussian, Laplace):
        followed = group(kind(2.0).profile(AR), records).log_delta(AT)
        exact = kind(2.0, sensitivity=float(records)).profile(AR).log_delta(AT)
        live = np.isfinite(exact)
        assert np.all(followed[live] >= exact[live])
        np.testing.assert_allclose(followed[live], exact[live], atol=1e-3)


def test_both_directions_of_a_sampled_pair_hold_for_every_product_chain():
    """R_i: i of J records answered by P, the others by Q; a chain whose steps are the pair itself."""
    random = np.random.default_rng(5)
    for _ in range(40):
        p, q = random.dirichlet(np.ones(3)), random.dirichlet(np.ones(3))
        one = pair_profile(np.log(p), np.log(q))
        both = group(one, 2)
        every, nobody = np.outer(p, p).ravel(), np.outer(q, q).ravel()
        assert np.all(np.exp(both.forward(AT)) >= hockey_stick(every, nobody, AT) - 1e-12)
        assert np.all(np.exp(both.backward(AT)) >= hockey_stick(nobody, every, AT) - 1e-12)


def largest_group_delta(one, records, epsilon, outcomes=24):
    """The largest R_J(A) - e^eps R_0(A) over chains on a few outcomes with H_e^x(R_i+1 || R_i) <= delta(x), a program.

    Only the chances of nested half lines are variables: R_i(A_k), A_1 in A_2 in ..., k = outcomes.
    """
    xs = np.linspace(-2.5, 2.5, 41)
    size = records + 1
    rows, limits = [], []
    # test A alone: R_i+1(A) <= e^x R_i(A) + delta(x)
    for i in range(records):
        for x in xs:
            row = np.zeros(size)
            row[i + 1], row[i] = 1.0, -math.exp(x)
            own = one.forward if x >= 0 else one.backward
            delta = math.exp(float(own(abs(x))))
            limits.append(delta if x >= 0 else 1.0 - math.exp(x) + math.exp(x) * delta)
            rows.append(row)
    cost = np.zeros(size)
    cost[-1], cost[0] = -1.0, math.exp(epsilon)
    return -linprog(cost, A_ub=np.array(rows), b_ub=limits, bounds=[(0, 1)] * size).fun


@pytest.mark.parametrize("records", [2, 4])
def test_the_curve_is_the_optimum_of_the_linear_program_over_tests(records):
    pairs = {
        "box": PureDP(0.5).profile(AR),
        "approx": Profile.symmetric(approx_curve(0.5, 1e-3)),
        "sampled": Gaussian(1.0).mixture(AR, Multiplicity.binomial(1, 0.3)),
    }
    for name, one in pairs.items():
        followed = group(one, records)
        for epsilon in (0.0, 0.25, 1.0):
            optimum = largest_group_delta(one, records, epsilon)  # fewer constraints: not below the true optimum
            found = math.exp(float(followed.forward(epsilon)))
            assert found <= optimum * (1 + 1e-3) + 1e-9, (name, epsilon)
            assert found >= optimum * (1 - 2e-2) - 1e-9, (name, epsilon)


def test_a_chain_with_a_dropped_step_is_caught():
    one = Gaussian(1.0).profile(AR)
    exact = Gaussian(1.0, sensitivity=3.0).profile(AR).log_delta(AT)
    short = chains.chain_curve(one.forward, one.backward, 2)(AT)
    assert np.all(short < exact)


def test_groups_of_boxes_are_never_looser_than_the_closed_bound():
    at = np.linspace(0.0, 4.0, 41)
    closed = (np.exp(at) - 1.0) / np.expm1(np.maximum(at, 1e-12) / 3.0) * np.exp(approx_curve(0.5, 1e-6)(at / 3.0))
    found = ApproxDP(0.5, 1e-6).profile(AR, change_of(3)).delta(at)
    assert np.all(found[1:] <= np.minimum(closed[1:], 1.0) * (1 + 1e-12))
    assert PureDP(0.5).profile(RO).epsilon() == pytest.approx(1.0)
    assert PureDP(0.5).profile(RO).delta(0.0) == pytest.approx(0.3934693, abs=1e-7)


def change_of(copies):
    from privamp.core.mechanism import Change

    return Change(copies=copies)


def test_many_records_fall_back_and_no_loss_stays_none():
    many = group(Gaussian(50.0).profile(AR), 1000)
    assert many.delta(30.0) >= Gaussian(50.0, sensitivity=1000.0).profile(AR).delta(30.0)
    nothing = group(PureDP(0.0).profile(AR), 5)
    assert nothing.epsilon() == 0.0
    assert nothing.delta(0.0) == 0.0


def test_a_point_next_to_alpha_one_needs_no_logarithm_of_zero():
    """Of the two points around alpha = 1 one may be 1e-17 times as near as the other."""
    a, b = np.array([1.02074059e-06, 1.0 - 1.02074059e-06]), np.array([1.27764342e-05, 1.0 - 1.27764342e-05])
    assert chains._chord_at_one((-0.5, -1.0), (1e-18, -2.0)) == pytest.approx(-2.0)
    found = np.exp(out_and_in(pair_profile(np.log(a), np.log(b))).forward(np.array([0.0, 0.5])))
    p, q = np.outer(a, b).ravel(), np.outer(b, a).ravel()
    assert np.all(found >= [np.maximum(p - np.exp(e) * q, 0.0).sum() for e in (0.0, 0.5)])
