"""Everything that can be read off an object, as text by path: two runs of a job must leave the same traces.

Attributes with a leading underscore count too: they travel when the object is pickled. So do closures of functions, the
order of a dictionary, and what an iterator yields. Secret objects (keys, streams, samples) are named but not inspected,
because other checks cover them. Globals and files are not seen.
"""

from collections.abc import Iterator, Sequence
from itertools import zip_longest
from typing import Any

from ..chance.keys import Key
from ..chance.stream import Stream
from ..core.guarantee import Guarantee
from ..core.ledger import Finished, Ledger
from ..core.sample import Sample
from .inside import is_plain, named, parts, plain_text

_SECRET = (Key, Stream, Sample, Ledger, Finished)
_PROBES = (0.0, 0.1, 1.0, 3.0)

Traces = tuple[tuple[str, str], ...]
_Seen = dict[int, tuple[str, Any]]  # the object is kept, so that its id is not reused


def traces(value: Any, root: str = "result") -> Traces:
    """(path, what is there), in a fixed order."""
    return tuple(_walk(value, root, {}))


def difference(one: Traces, other: Traces) -> str | None:
    """The first path where two traces differ, or None. Never the content, which may be a record."""
    for a, b in zip_longest(one, other):
        if a != b:
            return str((a or b)[0])
    return None


def _walk(value: Any, path: str, seen: _Seen) -> Iterator[tuple[str, str]]:
    kind = named(type(value))
    if is_plain(value):
        yield path, f"{kind} {plain_text(value)}"
        return
    if id(value) in seen:
        yield path, f"{kind}, the same as {seen[id(value)][0]}"
        return
    seen[id(value)] = path, value
    if isinstance(value, _SECRET):
        yield path, kind
        return
    if isinstance(value, Guarantee):
        yield path, _numbers(value)
        return
    text, inside = parts(value)
    yield path, f"{kind} {text}"
    if isinstance(value, (set, frozenset)):
        inside = _sorted(inside, path)
    for name, part in inside:
        yield from _walk(part, f"{path}{name}", seen)


def _sorted(inside: Sequence[tuple[str, Any]], path: str) -> list[tuple[str, Any]]:
    """A set has no order, so its entries are sorted by their text."""
    entries = sorted((part for _, part in inside), key=lambda part: tuple(_walk(part, path, {})))
    return [(f"[{place}]", part) for place, part in enumerate(entries)]


def _numbers(guarantee: Guarantee) -> str:
    """All digits, because the printed numbers are rounded."""
    known: Any = guarantee.claims or [float(x).hex() for x in guarantee.upper.log_delta(_PROBES)]
    return f"{guarantee!r} {guarantee.assumes} {known}"
