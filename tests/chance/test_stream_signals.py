"""Noise in a signal handler: refused in the middle of a draw, given outside of one, never a hang."""

import os
import signal
import subprocess
import sys
import textwrap

import pytest

from privamp import PrivampError
from privamp.chance import stream as module
from privamp.chance.stream import Stream

pytestmark = pytest.mark.skipif(not hasattr(signal, "setitimer"), reason="this system has no such timers")


@pytest.fixture
def in_the_middle(monkeypatch):
    """Run something in the middle of the next draw, as a signal handler would be."""

    def plant(work):
        whole, done = Stream._next, []

        def interrupted(self, n):
            if not done:
                done.append(True)
                work()
            return whole(self, n)

        monkeypatch.setattr(Stream, "_next", interrupted)

    return plant


def test_a_handler_in_the_middle_of_a_draw_is_refused_and_the_draw_goes_on(in_the_middle):
    stream, seen = Stream.from_os(), []

    def handler():
        with pytest.raises(PrivampError, match="signal handler asked for noise in the middle of a draw"):
            Stream.from_os().words(4)
        seen.append(True)

    in_the_middle(handler)
    assert stream.words(8).size == 8
    assert seen == [True]
    assert stream.words(8).size == 8


def test_a_handler_that_stops_a_draw_leaves_the_streams_usable(in_the_middle):
    def handler():
        raise KeyboardInterrupt

    in_the_middle(handler)
    with pytest.raises(KeyboardInterrupt):
        Stream.from_os().words(8)
    assert module._drawing is None
    assert Stream.from_os().words(8).size == 8


def test_a_draw_that_a_draw_itself_calls_is_refused(monkeypatch):
    """As where the handler is `stream.words`, and the signal comes right after the mark is set."""
    first, second = Stream.from_os(), Stream.from_os()
    monkeypatch.setattr(Stream, "_unshared", second.words)
    with pytest.raises(PrivampError, match="in the middle of a draw"):
        first.words(4)
    assert module._drawing is None


def test_a_mark_that_was_left_behind_does_not_stop_later_draws(monkeypatch):
    """A second Ctrl-C can hit the very line that clears the mark."""

    def gone():
        return sys._getframe()

    monkeypatch.setattr(module, "_drawing", gone())
    assert Stream.from_os().words(8).size == 8


def test_a_fork_in_the_middle_of_a_draw_gives_the_child_no_words_of_its_parent(in_the_middle):
    stream, ours = Stream.from_os(), os.getpid()
    in_the_middle(lambda: os.fork() and os.wait())
    try:
        words = stream.words(8)
    except PrivampError:
        os._exit(0 if os.getpid() != ours else 3)
    if os.getpid() != ours:
        os._exit(4)
    assert words.size == 8


def test_timers_that_draw_all_the_time_hang_nothing():
    """A real signal, thousands of times, in a process of its own."""
    program = """
        import signal
        from privamp import PrivampError
        from privamp.chance.stream import Stream
        stream, seen = Stream.from_os(), {"given": 0, "refused": 0}
        def handler(*_):
            try:
                stream.words(3)
                seen["given"] += 1
            except PrivampError:
                seen["refused"] += 1
        signal.signal(signal.SIGALRM, handler)
        signal.setitimer(signal.ITIMER_REAL, 0.0005, 0.0005)
        while min(seen.values()) < 20:
            stream.words(50_000)
        signal.setitimer(signal.ITIMER_REAL, 0)
        print(len(set(stream.words(64).tolist())))
    """
    run = [sys.executable, "-c", textwrap.dedent(program)]
    done = subprocess.run(run, capture_output=True, text=True, timeout=60, check=True)
    assert done.stdout.strip() == "64"
