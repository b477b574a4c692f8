import os
import threading
import time
import warnings

import numpy as np
import pytest

from privamp.chance.stream import Stream
from privamp.testing import seeded_stream

pytestmark = pytest.mark.skipif(not hasattr(os, "fork"), reason="this system does not fork")
SIZE = 64


def in_child(work):
    """Fork, run work() -> bytes in the child, return (process id, end of a pipe to read)."""
    ours, theirs = os.pipe()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # Python 3.12: fork with threads, meant here
        child = os.fork()
    if child == 0:
        code = 1
        try:
            os.write(theirs, work())
            code = 0
        finally:
            os._exit(code)
    os.close(theirs)
    return child, ours


def collect(child, ours):
    deadline = time.monotonic() + 10
    while (ended := os.waitpid(child, os.WNOHANG))[0] == 0:
        if time.monotonic() > deadline:
            os.kill(child, 9)
            os.waitpid(child, 0)
            pytest.fail("the child hangs: a lock was not released across the fork")
        time.sleep(0.005)
    assert ended[1] == 0
    with os.fdopen(ours, "rb") as pipe:
        return np.frombuffer(pipe.read(), np.uint64)


def words_in_parent_and_two_children(stream):
    stream.words(5)  # leaves words ready in the buffer, which a careless child would repeat
    children = [in_child(lambda: stream.words(SIZE).tobytes()) for _ in range(2)]
    return [stream.words(SIZE), *(collect(*child) for child in children)]


def test_streams_from_the_system_never_share_noise_across_forks():
    words = words_in_parent_and_two_children(Stream.from_os())
    assert len(np.unique(np.concatenate(words))) == 3 * SIZE


def test_keyed_streams_stay_a_function_of_their_key():
    """Also the broken twin of the test above: noise from one keyed stream is shared, as documented."""
    words = words_in_parent_and_two_children(seeded_stream(1))
    assert len(np.unique(np.concatenate(words))) == SIZE


def test_grandchildren_are_fresh_too():
    stream = Stream.from_os()

    def work():
        grandchild = in_child(lambda: stream.words(SIZE).tobytes())
        return stream.words(SIZE).tobytes() + collect(*grandchild).tobytes()

    below = collect(*in_child(work))
    assert len(np.unique(np.concatenate([below, stream.words(SIZE)]))) == 3 * SIZE


def test_the_parent_goes_on_undisturbed():
    stream, twin = seeded_stream(2), seeded_stream(2)
    first = stream.words(3)
    collect(*in_child(lambda: stream.words(SIZE).tobytes()))
    assert np.array_equal(np.concatenate([first, stream.words(3)]), twin.words(6))


def test_a_fork_while_threads_draw_does_not_hang():
    stream, stop = Stream.from_os(), threading.Event()

    def draw():
        while not stop.is_set():
            stream.words(2000)

    threads = [threading.Thread(target=draw) for _ in range(3)]
    for thread in threads:
        thread.start()
    try:
        seen = [collect(*in_child(lambda: stream.words(SIZE).tobytes())) for _ in range(10)]
    finally:
        stop.set()
        for thread in threads:
            thread.join()
    assert len(np.unique(np.concatenate(seen))) == 10 * SIZE
