"""Seeds, for tests and examples only. NOTHING MADE HERE IS PRIVATE.

A seed can be guessed, so the noise can be subtracted and the sample redrawn by anyone. Every key and stream
made here carries `is_test=True`, and so does everything derived from it. This is the only place in privamp
that accepts a seed; for real data use `Key.generate()` and `Stream.from_os()`.

>>> seeded_key(1).is_test
True
"""

from collections.abc import Iterator
from contextlib import contextmanager
from hashlib import blake2b

from .chance.keys import Key, build
from .chance.seeds import DOOR
from .chance.stream import Stream
from .validation import whole

__all__ = ["seeded_key", "seeded_stream", "seeds_allowed"]


def seeded_key(seed: int) -> Key:
    """Return the TEST key of a seed. NOT PRIVATE: the seed can be guessed."""
    whole(0, 2**64 - 1, seed=seed)
    secret = blake2b(int(seed).to_bytes(8, "little"), digest_size=32, person=b"privamp testing").digest()
    return build(secret, is_test=True)


def seeded_stream(seed: int) -> Stream:
    """Return the TEST stream of a seed. NOT PRIVATE: the seed can be guessed."""
    return Stream(seeded_key(seed))


@contextmanager
def seeds_allowed() -> Iterator[None]:
    """Let estimators take a `random_state` inside this block. NOT PRIVATE: their guarantees say so."""
    before = DOOR.set(seeded_key)
    try:
        yield
    finally:
        DOOR.reset(before)
