"""A parameter that a forward pass writes is refused, whichever pass wrote it and whatever its sum is."""

import pytest

torch = pytest.importorskip("torch", reason="torch is not installed (make test-torch)")

from torch import nn  # noqa: E402

from privamp.errors import InvalidInput  # noqa: E402
from privamp.torch.unchanged import Unchanged  # noqa: E402


def turned(module):
    """The same numbers in another order: no sum shows it."""
    with torch.no_grad():
        module.weight.copy_(module.weight.flip(0))


@pytest.mark.parametrize("writes", [0, 1, 2])
def test_a_write_in_any_of_several_passes_is_seen(writes):
    module = nn.Linear(2, 3)
    watched = Unchanged(module)
    for number in range(3):
        watched.begin()
        if number == writes:
            turned(module)
        watched.end()
    with pytest.raises(InvalidInput, match="a parameter of the module changed"):
        watched.require_same()
    watched.require_same()  # it was told once


def test_a_write_between_two_passes_is_the_optimizers():
    module = nn.Linear(2, 3)
    watched = Unchanged(module)
    for _ in range(2):
        watched.begin()
        watched.end()
        turned(module)
    watched.require_same()


def test_a_restart_forgets_and_totals_are_compared():
    module = nn.Linear(2, 3)
    watched = Unchanged(module)
    watched.begin()
    turned(module)
    watched.end()
    watched.restart()
    before = watched.totals()
    watched.require_same(before)
    with torch.no_grad():
        module.weight.add_(1.0)
    with pytest.raises(InvalidInput, match="a parameter of the module changed"):
        watched.require_same(before)


def test_a_buffer_that_changes_is_refused():
    module = nn.BatchNorm1d(2)
    watched = Unchanged(module)
    module(torch.ones(3, 2))
    with pytest.raises(InvalidInput, match="a buffer of the module changed"):
        watched.require_same()
