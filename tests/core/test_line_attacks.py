"""Which of several attacks are kept."""

from privamp import Neighbors, Poisson, PureDP, amplify
from privamp.core.line_attack import best_of

AR = Neighbors.ADD_REMOVE


def test_the_best_at_small_deltas_and_the_best_at_a_small_epsilon_are_kept():
    """A rare large loss against a frequent small one; a smaller one still is best nowhere."""
    rare = amplify(PureDP(8.0), Poisson(0.001)).upper
    frequent, small = (PureDP(epsilon).profile(AR) for epsilon in (0.5, 0.1))
    attacks = {"small": small, "rare": rare, "frequent": frequent}
    assert rare.epsilon(1e-6) > frequent.epsilon(1e-6) > small.epsilon(1e-6)
    assert frequent.delta(0.01) > small.delta(0.01) > rare.delta(0.01)
    found = best_of(attacks)
    assert list(found) == ["frequent", "rare"]
    assert found["rare"] is rare
    assert best_of({}) == {}
    assert list(best_of({"rare": rare, "small": small})) == ["rare", "small"]
    assert list(best_of({"frequent": frequent, "small": small})) == ["frequent"]
