"""Random guarantees with extreme parameters: refused, or numbers that agree. The longer search is slow."""

import numpy as np
import pytest

import soak_cases as soak
from privamp import Neighbors, Poisson, PrivampError, PureDP, amplify
from privamp.core.curves import pair_attack, pair_profile, rare_event
from privamp.core.multiplicity import Multiplicity
from privamp.mechanisms.fixed_point import ExactLaplace


def case(seed):
    """A mechanism, a design, a relation and a number of rounds; None when the parameters are refused."""
    draws = soak.Draws(seed)
    try:
        return draws.mechanism(), draws.design(), draws.relation(), draws.pick(1, 1, 1, 2, 50)
    except PrivampError:
        return None


# each of these was wrong once: crashes, lower bounds above upper ones
@pytest.mark.parametrize(
    "seed", [2, 3, 4, 9, 11, 16, 20, 31, 39, 54, 58, 61, 65, 1157, 1175, 1257, 2304, 3055, 3272, 3284]
)
def test_random_guarantees_hold_together(seed):
    chosen = case(seed)
    assert chosen is None or not soak.problems(*chosen[:3])


@pytest.mark.slow
@pytest.mark.parametrize("block", range(20))
def test_many_random_guarantees_hold_together(block):
    found = {}
    for seed in range(1000 + 25 * block, 1025 + 25 * block):
        chosen = case(seed)
        if chosen is not None and (wrong := soak.problems(*chosen)):
            found[seed] = wrong
    assert not found


@pytest.mark.parametrize("loss", [1e-300, 1e-13, 1e-6, 1.0, 700.0])
def test_a_rare_event_keeps_all_digits_of_its_loss(loss):
    assert rare_event(loss).largest_loss == loss


def test_differences_of_large_logarithms_are_rounded_down():
    """Log chances of -600 are known to 1e-13, so a difference of 1e-13 may be nothing at all."""
    one, other = np.array([-600.0, -1e-260]), np.array([-600.0 - 1.2e-13, -1e-260])
    assert pair_profile(one, other).largest_loss > 1e-13
    assert pair_attack(one, other).largest_loss == 0.0
    tiny = ExactLaplace(scale=98925797500.9327).mixture(Neighbors.REPLACE_ONE, Multiplicity.binomial(1, 5e-6))
    assert tiny.rounded_down().epsilon() <= 2.0 / 98925797500.0 * 5e-6


def test_a_tiny_rate_keeps_its_digits_in_the_attack_on_a_swap():
    """log(rate) was log1p(rate - 1): at 3e-12 it was off by 1.5e-5, and the attack above the bound by as much."""
    found = amplify(PureDP(2800.0), Poisson(2.969359187287678e-12), Neighbors.REPLACE_ONE)
    assert found.lower.epsilon() <= found.epsilon() <= found.lower.epsilon() + 1e-9
