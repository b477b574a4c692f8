"""A recording of what every mechanism was given before its noise, for the checks in `privamp.verify`.

While a tape is running nothing is private: the first run of a job draws its noise from a test stream and keeps it; a
second run, on a neighbouring data set, gets the same answers. So the job does the same with its answers in both runs,
and every difference between them comes from the changed record.

Mechanisms are recorded automatically (`Mechanism.release`). Code that adds noise without a mechanism calls `through`.
"""

import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from copy import deepcopy
from dataclasses import dataclass, field
from functools import wraps
from typing import Any

from ..chance.stream import Stream

Noisy = Callable[[Stream], Any]


@dataclass(frozen=True, slots=True)
class Taken:
    """One release: the mechanism, what it was given, and what it answered."""

    mechanism: Any
    value: Any = field(repr=False)
    answer: Any = field(repr=False)
    form: str = ""  # type and shape of its answer


class Tape:
    """The releases of one run, in order. `answers` are returned as long as there are any."""

    def __init__(self, stream: Stream, answers: Sequence[Any] = ()) -> None:
        self.taken: list[Taken] = []
        self._stream, self._answers = stream, answers
        self._lock = threading.RLock()

    def take(self, mechanism: Any, value: Any, noisy: Noisy) -> Any:
        """Record the value; answer with noise, or as in the first run.

        The noise is drawn either way, so that a mechanism can reject the value, and the form of its answer is known.
        """
        with self._lock:
            place, kept = len(self.taken), deepcopy(value)
            fresh = noisy(self._stream)
            answer = fresh if place >= len(self._answers) else deepcopy(self._answers[place])
            self.taken.append(Taken(mechanism, kept, deepcopy(answer), _form(fresh)))
            return answer


def _form(answer: Any) -> str:
    """Type and shape of an answer, which are public."""
    if isinstance(answer, (list, tuple)):
        return f"{type(answer).__name__} of {', '.join(map(_form, answer))}"
    facts = [str(getattr(answer, name)) for name in ("dtype", "shape") if hasattr(answer, name)]
    return " ".join([type(answer).__name__, *facts])


_tape: Tape | None = None
_INSIDE = threading.local()  # a mechanism that uses another one is one release


@contextmanager
def taping(tape: Tape) -> Iterator[Tape]:
    """Record every release of this process, in all its threads."""
    global _tape
    before, _tape = _tape, tape
    try:
        yield tape
    finally:
        _tape = before


def through(mechanism: Any, value: Any, stream: Stream, noisy: Noisy) -> Any:
    """`noisy(stream)`, recorded if a tape is running."""
    tape = _tape
    if tape is None or getattr(_INSIDE, "release", False):
        return noisy(stream)
    _INSIDE.release = True
    try:
        return tape.take(mechanism, value, noisy)
    finally:
        _INSIDE.release = False


def heard(release: Callable[[Any, Any, Stream], Any]) -> Callable[[Any, Any, Stream], Any]:
    """A mechanism's `release`, recorded."""
    if getattr(release, "is_heard", False):  # a dataclass with slots is made twice
        return release

    @wraps(release)
    def taped(self: Any, value: Any, stream: Stream) -> Any:
        return through(self, value, stream, lambda source: release(self, value, source))

    taped.is_heard = True  # type: ignore[attr-defined]
    return taped
