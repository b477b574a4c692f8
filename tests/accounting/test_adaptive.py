"""The recursion over accumulated losses: against enumeration, plain composition and planted mistakes."""

import math
from itertools import product

import numpy as np
import pytest

from privamp import (
    Gaussian,
    Guarantee,
    InvalidInput,
    Laplace,
    Neighbors,
    WithoutReplacement,
    WithReplacement,
    amplify,
    compose,
)
from privamp.accounting import adaptive, gaussian_rounds
from privamp.accounting.adaptive import Recursion, Window, adaptive_delta, adaptive_deltas, steps_of
from privamp.accounting.blocks import QUADRATURE
from privamp.accounting.gaussian_rounds import Block, GaussianRounds
from privamp.accounting.mixed_pairs import without_mixtures
from privamp.accounting.triangle_cells import Cell, first_cells
from privamp.core.curves import pair_profile
from privamp.core.multiplicity import Multiplicity
from privamp.core.profile import Profile
from privamp.mechanisms.gaussian_mixture import gaussian_mixture, opposite_gaussians
from privamp.mechanisms.gaussian_triangles import triangle_delta

RO = Neighbors.REPLACE_ONE


def best(pairs, rounds, log_ratio, epsilon):
    """The exact value of the game: every pair in every state, outcome by outcome."""
    if rounds == 0:
        return max(1.0 - math.exp(epsilon - log_ratio), 0.0)
    return max(
        sum(p * best(pairs, rounds - 1, log_ratio + math.log(p / q), epsilon) for p, q in zip(*pair, strict=True))
        for pair in pairs
    )


def made_up(seed):
    random = np.random.default_rng(seed)
    p, q = random.dirichlet(np.ones(3)), random.dirichlet(np.ones(3))
    return [(p.tolist(), q.tolist()), (q.tolist(), p.tolist())]


def profiles(pairs):
    return [pair_profile(np.log(p), np.log(q)) for p, q in pairs]


@pytest.mark.parametrize("seed", range(4))
def test_the_recursion_encloses_the_exact_game(seed):
    pairs = made_up(seed)
    above, below = (
        adaptive_delta(profiles(pairs), 3, interval=0.01, reach=9.0, upper=upper)[1] for upper in (True, False)
    )
    for i in (0, 40, 100, 250):
        exact = best(pairs, 3, 0.0, 0.01 * i)
        assert below[i] <= exact <= above[i]
        assert above[i] <= exact * 1.01 + 1e-4


def best_in_order(families, log_ratio, epsilon):
    """The exact game when every round has a family of its own."""
    if not families:
        return max(1.0 - math.exp(epsilon - log_ratio), 0.0)
    return max(
        sum(p * best_in_order(families[1:], log_ratio + math.log(p / q), epsilon) for p, q in zip(*pair, strict=True))
        for pair in families[0]
    )


def test_rounds_of_several_kinds_are_followed_in_their_order():
    first, last = made_up(11), made_up(9)
    caught = 0
    for epsilon in (0.0, 0.4, 1.0, 2.0):
        i = round(epsilon / 0.01)
        exact = best_in_order([first, first, last], 0.0, epsilon)
        above, below = (
            adaptive_deltas([(profiles(first), 2), (profiles(last), 1)], interval=0.01, reach=9.0, upper=upper)[1][i]
            for upper in (True, False)
        )
        assert below <= exact <= above <= exact * 1.02 + 1e-4
        other = best_in_order([last, first, first], 0.0, epsilon)
        caught += other < below or above < other  # the other order would have been told apart
    assert caught


def test_turning_beats_one_direction_and_the_one_direction_recursion_is_caught():
    pairs = made_up(7)
    one = adaptive_delta(profiles(pairs[:1]), 3, interval=0.01, reach=9.0)[1]
    caught = [i for i in range(0, 300, 20) if one[i] < best(pairs, 3, 0.0, 0.01 * i) - 1e-9]
    assert caught


def test_one_pair_is_plain_composition():
    mechanism = Laplace(3.0)
    epsilons, delta = adaptive_delta([mechanism.profile(Neighbors.ADD_REMOVE)], 5, interval=0.005, reach=4.0)
    plain = compose(amplify(mechanism, WithoutReplacement(5, 5), RO), 5)
    alone = compose(amplify(Laplace(3.0, neighbors=RO), WithoutReplacement(5, 5)), 5)
    assert plain.epsilon() > alone.epsilon()
    composed = np.asarray(alone.lower.delta(epsilons[::40][:7]))
    assert np.all(delta[::40][:7] >= composed)
    np.testing.assert_allclose(delta[::40][:7], alone.delta(epsilons[::40][:7]), rtol=1e-2)  # of the grid


@pytest.mark.parametrize("above", [0.05, 0.5])
def test_what_is_above_a_narrow_window_is_bounded_by_its_chord(above):
    pairs = made_up(2)
    steps = steps_of(profiles(pairs), 0.01, upper=True)
    narrow, wide = Window(0.01, 900, round(above / 0.01)), Window(0.01, 900, 900)
    found, full = (Recursion(steps, window, upper=True).advance(3)[: narrow.below + 1] for window in (narrow, wide))
    assert np.all(found >= full - 1e-12)
    for i in (0, 40, 100, 250):
        exact = best(pairs, 3, 0.0, 0.01 * i)
        assert exact <= found[900 - i]
        assert above < 0.1 or found[900 - i] <= exact * 1.01 + 1e-4


def test_pairs_below_a_mixture_are_left_out_and_only_those():
    between = ([0.5, 0.3, 0.2], [0.35, 0.3, 0.35])
    one, other = ([0.6, 0.3, 0.1], [0.25, 0.3, 0.45]), ([0.42, 0.3, 0.28], [0.42, 0.3, 0.28])
    steps = steps_of(profiles([between, one, other]), 0.01, upper=True)
    left = without_mixtures(steps, 0.01)
    assert [step.first for step in left] == [steps[1].first]  # `one` alone dominates both
    assert all(step.above <= 1e-12 for step in left)
    for seed in range(4):
        family = made_up(seed)
        family.append((np.mean([pair[0] for pair in family], axis=0).tolist(), family[0][1]))
        window = Window(0.01, 900, 900)
        steps = steps_of(profiles(family), 0.01, upper=True)
        all_pairs, fewer = (Recursion(s, window, upper=True).advance(3) for s in (steps, without_mixtures(steps, 0.01)))
        assert np.all(fewer >= all_pairs - 1e-12)
        assert np.all(fewer <= all_pairs + 1e-11)


def test_a_pair_above_its_mixture_somewhere_stays():
    """One has the larger total variation distance, the other the larger loss: leaving either out would lower delta."""
    near, far = ([0.55, 0.2, 0.25], [0.25, 0.2, 0.55]), ([0.3, 0.6, 0.1], [0.1, 0.6, 0.3])
    assert len(without_mixtures(steps_of(profiles([near, far]), 0.01, upper=True), 0.01)) == 2


def test_a_family_needs_pairs_and_rounds():
    with pytest.raises(InvalidInput, match="at least one pair"):
        adaptive_delta([], 3, interval=0.1, reach=1.0)
    with pytest.raises(InvalidInput):
        adaptive_delta([Laplace(1.0).profile(RO)], 0, interval=0.1, reach=1.0)


def plane(chance, r, s, d, epsilon):
    """H of three Gaussians in the plane, on a fine grid."""
    along = (r * r - s * s + d * d) / (2 * d)
    across = math.sqrt(max(r * r - along * along, 0.0))
    axis = np.linspace(-9.0, 9.0, 1501)
    x, y = np.meshgrid(axis, axis)

    def density(a, b):
        return np.exp(-0.5 * ((x - a) ** 2 + (y - b) ** 2)) / (2 * math.pi)

    alpha = math.exp(epsilon)
    height = chance * density(along, across) - (alpha - 1) * (1 - chance) * density(0, 0)
    return np.maximum(height - alpha * chance * density(along - d, across), 0).sum() * (axis[1] - axis[0]) ** 2


@pytest.mark.parametrize(("r", "s", "d"), [(0.8, 0.6, 1.0), (0.9, 0.9, 0.7), (2.0, 2.0, 2.0), (1.0, 0.9, 0.3)])
def test_triangles_against_the_plane(r, s, d):
    for epsilon in (0.1, 1.0):
        found = float(triangle_delta(0.1, r, s, d, np.array([epsilon]))[0])
        assert found == pytest.approx(plane(0.1, r, s, d, epsilon), rel=1e-3)


def test_triangles_on_a_line_are_the_known_pairs():
    at = np.array([0.0, 0.01, 0.1, 0.5, 1.0])
    mixture = np.exp(gaussian_mixture(1.0, Multiplicity.binomial(1, 0.05)).forward(at))
    assert np.allclose(triangle_delta(0.05, 1.0, 0.0, 1.0, at), mixture, rtol=1e-8)
    opposite = np.exp(opposite_gaussians(0.5, 0.05).forward(at))
    assert np.allclose(triangle_delta(0.05, 0.5, 0.5, 1.0, at), opposite, rtol=1e-6, atol=1e-15)


def test_cells_cover_what_matters_and_their_corners_dominate():
    random = np.random.default_rng(3)
    cells = first_cells()
    for axis in (0, 1):
        cells = [part for cell in cells for part in cell.halves()[axis]]
    at = np.array([0.0, 0.05, 0.3, 1.0])
    for _ in range(60):
        r, s = random.uniform(0, 1, 2)
        if r + s < 1:
            continue
        d = 1.0 if r * r + s * s <= 1 else math.sin(math.asin(r) + math.asin(s))
        inside = [c for c in cells if c.r0 <= r <= c.r1 and c.s0 <= s <= c.s1]
        assert inside
        for cell in inside:
            widest = cell.distance("ball")
            bound = triangle_delta(0.1, cell.r1, max(cell.s0, widest - cell.r1), widest, at)
            assert np.all(bound >= triangle_delta(0.1, r, s, d, at) * (1 - 1e-4))


def test_a_cell_that_forgets_the_other_corner_is_caught():
    cell = Cell(0.9, 1.0, 0.0, 0.3)
    at = np.array([0.3])
    wrong = triangle_delta(0.1, cell.r0, cell.s1, cell.distance("ball"), at)
    assert wrong < triangle_delta(0.1, 0.99, 0.05, 1.0, at)


def test_small_rounds_hold_every_adaptive_attack(monkeypatch):
    """Three rounds, attacks that pick one of six triangles in every state, on a grid of their own."""
    monkeypatch.setattr(gaussian_rounds, "_POINTS", 1200)
    monkeypatch.setattr(gaussian_rounds, "_MOST_CELLS", 40)
    monkeypatch.setattr(gaussian_rounds, "_QUICK_POINTS", 300)
    rounds = GaussianRounds(1.0, "ball", 3, 10)
    block = Block(rounds, 3, 4.0)
    angles = [(1.0, 0.0), (0.0, 1.0), (0.6, 0.8), (0.8, 0.6), (0.5, 0.5), (0.3, 0.7)]
    family = []
    for r, s in angles:
        sides = [_curve(0.3, max(a, 1e-6), b, 1.0) for a, b in ((r, s), (s, r))]
        family.append(Profile(*sides))
    attack = adaptive_delta(family, 3, interval=0.004, reach=4.0, upper=False)[1]
    for epsilon in (0.2, 0.5, 1.0, 2.0):
        i, j = round(epsilon / 0.004), math.floor(epsilon / block.window.interval)
        assert attack[i] <= block.upper[j]
        assert block.upper[j] <= block.lower[block.finer * j] * 1.05 + 1e-6


def _curve(chance, r, s, d):
    from privamp.core.profile import Curve

    s = min(s, math.hypot(r, d) * (1 - 1e-6))

    def log_delta(epsilon):
        flat = np.minimum(np.ravel(epsilon), 60.0)
        values = triangle_delta(chance, r, s, d, flat) * (1 - 1e-4) - 1e-14
        with np.errstate(divide="ignore"):
            return np.log(np.maximum(values, 0.0)).reshape(np.shape(epsilon))

    return Curve(log_delta)


def test_compose_follows_rounds_names_the_theorem_and_is_recomputed(monkeypatch):
    monkeypatch.setattr(gaussian_rounds, "_POINTS", 1200)
    monkeypatch.setattr(gaussian_rounds, "_MOST_CELLS", 24)
    monkeypatch.setattr(gaussian_rounds, "_QUICK_POINTS", 300)
    one = amplify(Gaussian(2.0), WithoutReplacement(5, 50), RO)
    plain, followed = compose(one, 10), compose(one, 10, adaptive=True)
    assert followed.lower.epsilon(1e-5) < followed.epsilon(1e-5) < plain.epsilon(1e-5)
    assert followed.epsilon(1e-5) < 1.03 * followed.lower.epsilon(1e-5)
    assert any("rounds.md" in reason for reason in followed.because)
    assert followed.steps == 10
    again = Guarantee.from_json(followed.to_json(delta=1e-5))
    assert again.epsilon(1e-5) == followed.epsilon(1e-5)
    assert QUADRATURE in followed.assumes  # its error is estimated, not proved
    assert QUADRATURE in again.assumes
    assert QUADRATURE in compose(followed, 2).assumes
    assert QUADRATURE not in plain.assumes
    twice = compose(followed, 2)
    assert followed.epsilon(1e-5) < twice.epsilon(1e-5) < compose(one, 20).epsilon(1e-5)


def test_what_is_not_known_composes_as_before():
    for mechanism, design in product((Gaussian(2.0), Laplace(2.0)), (WithoutReplacement(5, 50),)):
        one = amplify(mechanism, design, Neighbors.ADD_REMOVE)
        assert compose(one, 5, adaptive=True).epsilon(1e-5) == compose(one, 5).epsilon(1e-5)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("design", "sigma", "rounds", "delta", "low", "high"),
    [
        (WithoutReplacement(100, 1000), 4.0, 100, 1e-6, 2.6819, 2.683),
        (WithoutReplacement(256, 60000), 2.0, 1000, 1e-5, 0.7308, 0.7315),
        (WithReplacement(100, 1000), 4.0, 100, 1e-6, 2.787, 2.82),
    ],
)
def test_reference_settings_are_enclosed(design, sigma, rounds, delta, low, high):
    followed = compose(amplify(Gaussian(sigma), design, RO), rounds, adaptive=True)
    assert low < followed.lower.epsilon(delta) < followed.epsilon(delta) < high


def test_threads_do_not_change_the_answer(monkeypatch) -> None:
    window = Window(0.002, 800, 104)
    steps = steps_of(GaussianRounds(1.0, "ball", 3, 500).attacks() * 3, 0.002, upper=True)
    monkeypatch.setattr(adaptive, "_WORTH_THREADS", 1)
    found = []
    for count in (1, 3):
        monkeypatch.setattr(adaptive, "cores", lambda count=count: count)
        found.append(Recursion(steps, window, upper=True).advance(5))
    assert np.array_equal(*found)
