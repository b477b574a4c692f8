"""Sizes along a chain: never below the truth or an attack, near the attack, and blind spots are caught."""

import numpy as np
import pytest
from scipy.stats import norm

from privamp import Gaussian, Laplace, Neighbors, PureDP, RandomSize, TruncatedPoisson, amplify, compose
from privamp.core.size_paths import Ladder, bounded, paths
from privamp.designs.kept_sizes import of_heads, of_sizes
from privamp.errors import DegradingDesign
from privamp.numerics.size_chain import largest_of, replaced
from privamp.verify import exact_delta

AR, RO = Neighbors.ADD_REMOVE, Neighbors.REPLACE_ONE


def worst_walk(ladder: Ladder, sigma: float, alpha: float, tries: int = 300) -> float:
    """The best event "the noisy sum is positive" over random sequences with steps of at most 1, both directions."""
    rng, best = np.random.default_rng(7), 0.0
    sizes = ladder.p_in.shape[1]
    for _ in range(tries):
        steps = rng.choice([-1.0, -0.5, 0.0, 0.5, 1.0], sizes) * rng.choice([0.0, 1.0])
        f = np.cumsum(steps) + rng.uniform(-4.0, 1.0) * sigma
        for one in (ladder, ladder.turned):
            p = one.p_out[0] @ norm.cdf(f / sigma) + one.p_in[0] @ norm.cdf((f + 1.0) / sigma)
            q = one.q_out[0] @ norm.cdf(f / sigma) + one.q_in[0] @ norm.cdf((f - 1.0) / sigma)
            best = max(best, float(p - alpha * q))
    return best


def some_ladders() -> dict[str, Ladder]:
    return {
        "spread": of_sizes(np.array([0.0, 0.2, 0.1, 0.4, 0.0, 0.3])),
        "uniform": of_sizes(np.full(9, 1.0 / 9.0)),
        "heads": of_heads(0.4, 3, [6], AR.kind),
        "heads, swapped": of_heads(0.4, 3, [6], RO.kind),
    }


@pytest.mark.parametrize("name", some_ladders())
@pytest.mark.parametrize("sigma", [0.7, 2.0])
def test_no_sequence_is_above_the_bound_and_the_best_is_near(name: str, sigma: float) -> None:
    ladder = some_ladders()[name]
    bound = bounded(ladder, Gaussian(sigma))
    for epsilon in (0.05, 0.4, 1.3):
        assert worst_walk(ladder, sigma, float(np.exp(epsilon))) <= bound.delta(epsilon)
    attacks = [Gaussian(sigma).on_a_line(*scene) for scene in paths(ladder, Gaussian(sigma)).values()]
    lower = max(attack.rounded_down().epsilon(1e-6) for attack in attacks if attack is not None)
    assert lower <= bound.epsilon(1e-6) <= 1.08 * lower


def test_a_bound_that_forgets_the_other_record_would_be_caught() -> None:
    whole = some_ladders()["uniform"]
    wrong = Ladder(whole.p_in, whole.p_out, 0.0 * whole.q_in, whole.q_out + whole.q_in)
    (scene, *_) = paths(whole, Gaussian(1.0)).values()
    attack = Gaussian(1.0).on_a_line(*scene)
    assert attack is not None
    assert attack.rounded_down().epsilon(1e-3) > bounded(wrong, Gaussian(1.0)).epsilon(1e-3)


@pytest.mark.parametrize(
    ("design", "population", "relation"),
    [
        (RandomSize((0.1, 0.3, 0.2, 0.4)), 3, RO),
        (TruncatedPoisson(0.5, 2, 3, 4), 3, AR),
        (TruncatedPoisson(0.5, 2, 3, 4), 3, RO),
    ],
)
def test_the_enumerated_truth_is_below(design: RandomSize | TruncatedPoisson, population: int, relation) -> None:
    for sigma, epsilon in ((1.0, 0.5), (2.0, 0.2)):
        truth = exact_delta(design, Gaussian(sigma), population, relation, epsilon, values=(-1.0, 0.0, 1.0))
        assert truth <= amplify(Gaussian(sigma), design, relation).delta(epsilon)


def test_reference_settings() -> None:
    """What telling the size costs: 2.328, 7.277 and 1.973 without the chain."""
    sized = amplify(Gaussian(2.0), RandomSize.uniform(50, 150, 1000))
    assert 0.77 < sized.lower.epsilon(1e-6) < sized.epsilon(1e-6) < 0.793
    capped = amplify(Gaussian(1.0), TruncatedPoisson(0.1, 100, 1000, 1001))
    assert 4.38 < capped.lower.epsilon(1e-6) < capped.epsilon(1e-6) < 4.45
    many = compose(amplify(Gaussian(4.0), TruncatedPoisson(0.1, 100, 1000, 1001)), 100)
    assert many.lower.epsilon(1e-6) < many.epsilon(1e-6) < 1.93
    noisy = amplify(Laplace(1.0), TruncatedPoisson(0.1, 120, 800, 1000))
    assert noisy.epsilon(1e-6) < 1.01 * noisy.lower.epsilon(1e-6)


def test_the_pure_chain_of_several_pairs_is_the_largest_of_them() -> None:
    t = np.array([0.0, 0.2, 0.1, 0.4, 0.0, 0.3])
    one = of_sizes(t)
    found, known = largest_of(one.p_in, one.p_out, one.q_in, one.q_out, 0.8), replaced(t, 0.8)
    assert found.lower == pytest.approx(known.lower, rel=1e-9)
    each = [of_heads(0.3, 4, [n], AR.kind) for n in range(5, 30)]
    all_of_them = of_heads(0.3, 4, range(5, 30), AR.kind)
    values = [largest_of(e.p_in, e.p_out, e.q_in, e.q_out, 0.8).upper for e in each]
    together = largest_of(all_of_them.p_in, all_of_them.p_out, all_of_them.q_in, all_of_them.q_out, 0.8)
    assert together.lower <= max(values) <= together.upper * (1.0 + 1e-11)


@pytest.mark.parametrize(
    ("design", "epsilon", "truth"),
    [
        (TruncatedPoisson(0.3, 290, 400, 401), 2.0, 1.09752),
        (TruncatedPoisson(0.3, 290, 400, 401), 5.0, 3.97933),
        (TruncatedPoisson(0.05, 60, 120, 121), 5.0, 2.1667),
    ],
)
def test_rare_sizes_count_under_pure_mechanisms(design, epsilon, truth):
    """An event may weigh a size by e^(epsilon s): leaving out sizes of chance 1e-40 gave 1.07046, 3.81163, 2.1247."""
    for mechanism in (PureDP(epsilon), Laplace(1.0 / epsilon)):
        found = amplify(mechanism, design, Neighbors.ADD_REMOVE)
        assert truth - 1e-4 <= found.epsilon() <= truth + 1e-4
        assert found.lower.epsilon(0.0) <= found.epsilon()


def test_sizes_too_rare_for_floats_are_not_followed():
    with pytest.warns(DegradingDesign):
        found = amplify(PureDP(5.0), TruncatedPoisson(0.01, 400, 1000, 1001), Neighbors.ADD_REMOVE)
    assert found.epsilon() > 5.0


@pytest.mark.parametrize(
    ("design", "sigma", "neighbors", "epsilon"),
    [
        (RandomSize(np.array([0, 3, 1, 0, 3, 0, 2, 2]) / 11), 0.83, Neighbors.REPLACE_ONE, 9.42),
        (TruncatedPoisson(0.2, 2, 15, 16), 0.6, Neighbors.REPLACE_ONE, 0.55),
    ],
)
def test_an_attack_rounds_its_sums_to_steps_of_one(design, sigma, neighbors, epsilon):
    """Rounding halves of floats made a step of two, and an attack of up to 1.94 times the bound."""
    found = amplify(Gaussian(sigma), design, neighbors)
    assert found.lower.delta(epsilon) <= found.delta(epsilon)


@pytest.mark.parametrize("numbers", [range(40, 80), range(20, 140)])
def test_a_range_of_numbers_costs_what_its_worst_number_costs(numbers: range) -> None:
    """Pairs must not be given sequences that suit another: a range cost up to a hundred times its worst."""
    together = bounded(of_heads(0.5, 30, numbers, RO.kind), Gaussian(2.0))
    alone = [bounded(of_heads(0.5, 30, [n], RO.kind), Gaussian(2.0)) for n in numbers[::5]]
    for epsilon in (0.5, 1.0, 2.0, 3.0):
        worst = max(one.delta(epsilon) for one in alone)
        assert 0.9 * worst <= together.delta(epsilon) <= 1.25 * worst


def test_bounds_fall_evenly_in_epsilon() -> None:
    """Every epsilon has a sequence of its own: one that four of them shared left stairs, twice too high."""
    bound = bounded(of_heads(0.5, 30, [39], RO.kind), Gaussian(4.2))
    deltas = np.array([bound.delta(epsilon) for epsilon in np.linspace(0.9, 1.04, 8)])
    assert np.all(np.diff(np.log(deltas)) < -0.2)
