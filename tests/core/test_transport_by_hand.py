"""Values of transport plans, of the pieces of size paths and of hubs, from their formulas pair by pair."""

import math

import numpy as np
import pytest

from privamp import ApproxDP, Gaussian, Laplace, Neighbors, PureDP
from privamp.core import size_paths
from privamp.core.hub_plan import Hub, _through
from privamp.core.mechanism import Change
from privamp.core.size_paths import Chords, Ladder, _after, _best_path, _coefficients, _line_of, _log_bounds, _log_term
from privamp.core.transport import Components, best_plan, has_noise, independent, is_covered, mixed, scaled, stakes_of

AR = Neighbors.ADD_REMOVE
NOISE = Gaussian(1.3)


def divergence(records, epsilon, noise=NOISE):
    """H_gamma of noise so many records apart, gamma = e^epsilon of either sign."""
    if records == 0:
        return max(1.0 - math.exp(epsilon), 0.0)
    return float(noise.profile(AR, Change(copies=int(records))).delta(epsilon))


@pytest.mark.parametrize("noise", [Gaussian(1.3), Laplace(2.0), ApproxDP(0.5, 1e-3)])
def test_stakes_are_divergences_at_distances_and_epsilons_of_any_sign(noise):
    apart, epsilons = np.array([[0.0], [1.0], [3.0]]), np.array([-2.0, -0.1, 0.0, 0.1, 0.7])
    found = np.exp(stakes_of(noise)(apart, epsilons))
    expected = [[divergence(d, e, noise) for e in epsilons] for d in (0, 1, 3)]
    assert found == pytest.approx(np.array(expected), rel=1e-9, abs=1e-12)


def test_whom_plans_are_for():
    assert [has_noise(m) for m in (Laplace(1.0), Gaussian(1.0), ApproxDP(1.0, 0.1), PureDP(1.0))] == [True] * 3 + [
        False
    ]
    replaced = Neighbors.REPLACE_ONE
    assert [has_noise(m) for m in (Laplace(1.0, neighbors=replaced), PureDP(1.0, replaced))] == [False, False]
    assert [is_covered(m) for m in (Laplace(1.0), PureDP(1.0), ApproxDP(1.0, 0.1))] == [False, False, True]


def three():
    far = np.array([[0.0, 1.0, math.nan], [1.0, 0.0, 2.0], [2.0, 3.0, 1.0]])
    return Components.of([0.5, 0.3, 0.2], [0.4, 0.4, 0.2], far)


def value(pi, rho, apart, epsilon):
    """sum of pi H_{alpha rho/pi}."""
    total = 0.0
    for a, b, d in zip(pi.ravel(), rho.ravel(), apart.ravel(), strict=True):
        if a > 0:
            total += a if b == 0 else a * divergence(d, epsilon + math.log(b / a))
    return total


@pytest.mark.parametrize("epsilon", [0.0, 0.3, 0.6, 1.0])
def test_a_mixture_of_plans_costs_its_pairs(epsilon):
    """pi and alpha rho between the plans at 0 and at 1, linear in alpha."""
    parts, stakes = three(), stakes_of(NOISE)
    plans = [(best_plan(parts, stakes, e)[0], e) for e in (0.0, 1.0)]
    share = math.expm1(epsilon) / math.expm1(1.0)
    pi = (1 - share) * plans[0][0][0] + share * plans[1][0][0]
    rho = ((1 - share) * plans[0][0][1] + share * math.e * plans[1][0][1]) / math.exp(epsilon)
    found = math.exp(mixed(parts, stakes, *plans, np.array([epsilon]))[0])
    assert found == pytest.approx(value(pi, rho, parts.apart, epsilon), rel=1e-6)
    many = mixed(parts, stakes, *plans, np.linspace(0.0, 1.0, 40_001))
    assert many[round(40_000 * epsilon)] == pytest.approx(math.log(found), abs=1e-9)  # in pieces
    assert mixed(parts, stakes, plans[0], plans[0], np.empty(0)).size == 0
    alone = math.exp(mixed(parts, stakes, plans[0], plans[0], np.array([epsilon]))[0])
    assert alone == pytest.approx(value(*plans[0][0], parts.apart, epsilon), rel=1e-6)


def test_the_best_plan_is_no_worse_than_others_and_near_the_least():
    parts, stakes = three(), stakes_of(NOISE)
    for epsilon in (0.0, 0.5, 2.0):
        plan, worth = best_plan(parts, stakes, epsilon)
        assert worth == pytest.approx(value(*plan, parts.apart, epsilon), rel=1e-6)
        random, least = np.random.default_rng(1), math.inf
        for _ in range(40):
            wild = scaled(parts, (random.random((3, 3)) ** 4, random.random((3, 3)) ** 4), math.exp(epsilon))
            least = min(least, value(*wild, parts.apart, epsilon))
        own = independent(parts)
        assert worth <= min(least, value(*own, parts.apart, epsilon)) * (1 + 1e-9)


def test_components_without_a_chance_are_left_out_and_turned():
    parts = Components.of([0.5, 0.0, 0.5], [1.0, 0.0], [[0, 1], [2, 3], [4, 5]])
    assert (parts.p.tolist(), parts.q.tolist(), parts.apart.tolist()) == ([0.5, 0.5], [1.0], [[0.0], [4.0]])
    assert parts.turned.apart.tolist() == [[0.0, 4.0]]
    assert (parts.turned.p.tolist(), parts.turned.q.tolist()) == ([1.0], [0.5, 0.5])


def test_a_plan_that_costs_nothing_is_kept_free():
    """One component on each side and nothing apart: pi is p and a little more, rho all of q, and the cost is 0."""
    parts = Components.of([1.0], [1.0], [[0.0]])
    pi, rho = independent(parts)
    assert (pi[0, 0], rho[0, 0]) == (pytest.approx(1.0, abs=2e-10), pytest.approx(1.0, abs=2e-10))
    assert math.exp(mixed(parts, stakes_of(NOISE), ((pi, rho), 0.1), ((pi, rho), 0.1), np.array([0.1]))[0]) == 0.0
    empty = scaled(three(), (np.zeros((3, 3)), np.zeros((3, 3))), 1.0)  # every row to its nearest pair
    assert [int(np.argmax(row)) for row in empty[0]] == [0, 1, 2]


def on_a_line(p, q):
    t = np.linspace(-40.0, 40.0, 800_001)
    one, other = (sum(c * np.exp(-0.5 * ((t - d) / 1.3) ** 2) for d, c in law.items()) for law in (p, q))
    total = np.sum(np.exp(-0.5 * (t / 1.3) ** 2))
    return [np.maximum(one - math.exp(e) * other, 0.0).sum() / total for e in (0.0, 0.3, 1.0, 2.0)]


@pytest.mark.parametrize(
    ("p", "q"),
    [
        ({0: 0.4, 1: 0.35, 3: 0.25}, {0: 0.5, 2: 0.3, 4: 0.2}),
        ({1: 0.6, 2: 0.4}, {0: 0.3, 1: 0.7}),
        ({0: 1.0}, {2: 1.0}),
    ],
)
def test_a_hub_of_many_components_loses_nothing_on_a_line(p, q):
    """Components of Q lie on the other side: H between the two mixtures, never below and within a hundredth."""
    found = np.exp(_through(Hub(p, q), stakes_of(NOISE))(np.array([0.0, 0.3, 1.0, 2.0])))
    exact = np.array(on_a_line(p, {-d: chance for d, chance in q.items()}))
    assert np.all(found >= exact * (1 - 1e-6))
    assert found == pytest.approx(exact, rel=1e-2)
    assert _through(Hub(p, q), stakes_of(NOISE))(np.zeros((2, 0))).shape == (2, 0)


# --- pieces of size paths


def test_chords_of_divergences_lie_above_them_and_near():
    stakes = Chords.of(stakes_of(NOISE))
    orders = np.array([-9.9, -3.001, -0.37, 0.0, 0.123, 2.0, 8.8])
    for apart in (1, 2):
        exact = np.array([divergence(apart, order) for order in orders])
        found = stakes.at(apart, orders)
        assert np.all(found >= exact)
        assert found == pytest.approx(exact, rel=1e-4, abs=1e-8)
        assert stakes.at(apart, np.array([-11.0, -np.inf])).tolist() == [1.0, 1.0]
        assert stakes.at(apart, np.array([31.0]))[0] >= 0.0


def test_a_term_is_held_times_a_divergence_and_at_a_negative_order_what_is_missing():
    stakes = Chords.of(stakes_of(NOISE))
    less, held = np.array([0.3, 0.0, -0.4, 0.5, 0.0]), np.array([0.5, 0.5, 0.5, 0.0, 0.0])
    found = np.exp(_log_term(less, held, 1, stakes))
    expected = [0.5 * divergence(1, math.log(0.6)), 0.5, 0.9, 0.0, 0.0]
    assert found == pytest.approx(expected, rel=1e-4)


def ladder():
    return Ladder(
        *(np.array([row]) for row in ([0.1, 0.2, 0.1], [0.2, 0.25, 0.15], [0.05, 0.1, 0.05], [0.3, 0.3, 0.2]))
    )


def test_coefficients_are_rounded_outward():
    one, epsilon = ladder(), np.array([0.0, 0.7])
    c, b, e = _coefficients(one, epsilon)
    for row, alpha in enumerate(np.exp(epsilon)):
        plain = one.p_out[0] - alpha * one.q_out[0]
        off = 1e-10 * (one.p_out[0] + alpha * one.q_out[0])
        assert c[row] == pytest.approx(plain + off, abs=1e-14)
        assert b[row] == pytest.approx(one.p_in[0] * (1 + 1e-10), abs=1e-14)
        assert e[row] == pytest.approx(alpha * one.q_in[0] * (1 - 1e-10), abs=1e-14)
    assert _after(np.array([[1.0, 2.0, 3.0]])).tolist() == [[0.0, 1.0, 2.0]]
    turned = one.turned
    assert (turned.p_in is one.q_in, turned.q_out is one.p_out) == (True, True)
    assert one.some([0]).p_in.tolist() == one.p_in.tolist()


def test_the_best_sequence_moves_by_a_record_at_most_and_bounds_what_any_gives(monkeypatch):
    line, stakes = _line_of(NOISE, 16.0), Chords.of(stakes_of(NOISE))
    epsilons = np.array([0.0, 0.4])
    c, b, e = _coefficients(ladder(), epsilons)
    best = _best_path(c, b, e, line)
    assert best.shape == (2, 3)
    assert np.all(np.abs(np.diff(best, axis=1)) <= line.step)
    best = best.reshape(2, 1, 3)
    bound = np.exp(_log_bounds(ladder(), line, stakes, epsilons, best))
    random = np.random.default_rng(2)
    for _ in range(20):
        some = np.clip(best + random.integers(-30, 31), 0, line.place.size - 1)
        assert np.all(np.exp(_log_bounds(ladder(), line, stakes, epsilons, some)) >= bound * (1 - 5e-3))
    for piece in (1, 3, 10**9):  # worked on together or one by one
        monkeypatch.setattr(size_paths, "_PIECE", piece)
        assert np.exp(_log_bounds(ladder(), line, stakes, epsilons, best)) == pytest.approx(bound, rel=1e-12)
        monkeypatch.setattr(size_paths, "_MOST", piece)
        assert np.array_equal(size_paths._best_paths(ladder(), line, epsilons), best)


def test_a_line_has_places_from_far_below_to_a_little_above():
    for noise, lowest in ((Gaussian(1.3), -12.0), (Laplace(1.3), -45.0)):
        line = _line_of(noise, 16.0)
        assert line.step == math.ceil(16.0 / 1.3)
        assert line.place[0] == pytest.approx(lowest * 1.3 - 2.0, abs=1.0 / line.step)
        assert line.place[-1] == pytest.approx(4.0 * 1.3, abs=1.0 / line.step)
        assert np.diff(line.place) == pytest.approx(1.0 / line.step)
        assert line.slope == pytest.approx(np.exp(noise.log_slope(line.place)))
        assert line.before == pytest.approx(np.exp(noise.log_slope(line.place - 1.0)))
    assert size_paths.is_on_a_line(Gaussian(1.0))
    assert not size_paths.is_on_a_line(PureDP(1.0))
    assert not size_paths.is_on_a_line(Gaussian(1.0, neighbors=Neighbors.REPLACE_ONE))


def test_what_goes_to_a_pair_without_anything_opposite_counts_in_full():
    """pi is a half at each of two pairs, rho nothing at the second: that half is lost, also on the way to a plan."""
    parts = Components.of([0.5, 0.5], [1.0], [[0.0], [1.0]])
    plan = np.array([[0.5], [0.5]]), np.array([[1.0], [0.0]])
    other = np.array([[0.5], [0.0]]), np.array([[1.0], [0.0]])
    for end in (plan, other):
        found = mixed(parts, stakes_of(NOISE), (plan, 0.3), (end, 0.6), np.array([0.3]))
        assert math.exp(found[0]) == pytest.approx(0.5)
