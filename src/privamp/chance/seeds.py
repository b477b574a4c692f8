"""Whether seeds are accepted: only inside `privamp.testing.seeds_allowed()`."""

from collections.abc import Callable
from contextvars import ContextVar

from ..errors import InvalidInput
from .keys import Key

DOOR: ContextVar[Callable[[int], Key] | None] = ContextVar("DOOR", default=None)


def key_of_seed(seed: int) -> Key:
    """The test key of a seed, inside `privamp.testing.seeds_allowed()` only."""
    seeded = DOOR.get()
    if seeded is None:
        raise InvalidInput(
            "random_state makes the noise predictable, so it is accepted only in tests; leave it None, or run inside "
            "`with privamp.testing.seeds_allowed():`, which marks the guarantee NOT PRIVATE"
        )
    return seeded(seed)
