"""A budget store as a hash chain: every event is bound to all events before it, and replaying them gives every total.

Event n is hashed as SHA-256(hash of event n-1, then its fields as one line of text), starting from 32 zero bytes. An
event states the totals of its budget after it, so the newest event of a budget is enough to know where it stands, and
a replay recomputes each of them. Nothing is ever changed: a reservation that ends is one more event.

An entry is opened by an event without `entry` and ends by events that name it:

    reserved -> spent -> answered or failed        noise may have been drawn from `spent` on
    reserved -> cancelled                          the only way that gives a cost back

An entry that pays for a sample (it has a `draw`) is followed by one event `released` for each release from the sample.
"""

import json
from collections.abc import Iterable
from hashlib import sha256
from typing import Any, NamedTuple

STORE, BUDGET = "store", "budget"
RESERVED, SPENT, ANSWERED, FAILED, CANCELLED = "reserved", "spent", "answered", "failed", "cancelled"
RELEASED = "released"

BEGINNING = bytes(32)
OPENING = (RESERVED, SPENT, ANSWERED)
UNSETTLED = (RESERVED, SPENT)
NEXT = {RESERVED: (SPENT, CANCELLED), SPENT: (ANSWERED, FAILED)}
COLUMNS = (
    "number, kind, budget, entry, time, main, delta, main_spent, delta_spent, main_open, delta_open, draw, facts, hash"
)
_TYPES = {  # of COLUMNS
    (int, str, int, entry, str, int, int, int, int, int, int, draw, str, bytes)
    for entry in (int, type(None))
    for draw in (bytes, type(None))
}


class Broken(Exception):
    """The chain is broken; the message says where."""


class Totals(NamedTuple):
    """What a budget has spent, and how much of it has no answer yet, as (main, delta) in units of amounts.py."""

    main_spent: int = 0
    delta_spent: int = 0
    main_open: int = 0
    delta_open: int = 0


class Event(NamedTuple):
    """One link. `budget` is the number of the event that made the budget, `facts` JSON in `canonical` form."""

    number: int
    kind: str
    budget: int
    entry: int | None
    time: str
    main: int
    delta: int
    main_spent: int
    delta_spent: int
    main_open: int
    delta_open: int
    draw: bytes | None
    facts: str
    hash: bytes

    @property
    def totals(self) -> Totals:
        """The totals of the event's budget after it."""
        return Totals(*self[7:11])

    @property
    def told(self) -> dict[str, Any]:
        """What the program stored about the release: job, columns, certificate, draw."""
        found: dict[str, Any] = json.loads(self.facts)
        return found


def read_event(row: tuple[Any, ...]) -> Event:
    """An event from a row of COLUMNS whose types are as they must be."""
    if tuple(map(type, row)) not in _TYPES:
        raise Broken("an entry has a field of the wrong kind")
    return tuple.__new__(Event, row)  # as Event._make, which counts the fields once more


def link(previous: bytes, event: Event) -> bytes:
    """The hash that binds `event` to everything before it."""
    number, kind, budget, entry, time, main, delta = event[:7]
    main_spent, delta_spent, main_open, delta_open, draw, facts = event[7:13]
    if " " in time or " " in kind or facts[:1] != "{":  # so that no two events are the same line
        raise Broken(f"entry {number} has a field of the wrong kind")
    text = (
        f"{number} {kind} {budget} {'-' if entry is None else entry} {time} {main} {delta} "
        f"{main_spent} {delta_spent} {main_open} {delta_open} {'-' if draw is None else draw.hex()} {facts}"
    )
    return sha256(previous + text.encode("utf-8", "surrogatepass")).digest()


def canonical(facts: dict[str, Any]) -> str:
    """JSON in one form only: sorted, without spaces."""
    return json.dumps(facts, sort_keys=True, ensure_ascii=False, separators=(",", ":"), allow_nan=False)


def check_links(previous: bytes, events: Iterable[Event], number: int) -> tuple[int, bytes]:
    """Follow events that come after event `number`; returns the last number and its hash."""
    for event in events:
        number += 1
        if event.number != number:
            raise Broken(f"entry {number} is missing")
        if link(previous, event) != event.hash:
            raise Broken(f"entry {number} does not match the one before it")
        previous = event.hash
    return number, previous


class Replay:
    """Replays a chain from its first event and recomputes every total and state."""

    def __init__(self) -> None:
        self.number = 0
        self.hash = BEGINNING
        self.store = ""
        self.totals: dict[int, Totals] = {}
        self.labels: dict[int, str] = {}
        self.last: dict[int, tuple[int, bytes]] = {}  # newest event of each budget
        self.clock_went_back = 0
        self._limits: dict[int, tuple[int, int]] = {}
        self._unsettled: dict[int, Event] = {}  # entry -> the event that gave its state
        self._costs: dict[int, Event] = {}  # entry -> the event that opened it
        self._draws: set[tuple[int, bytes]] = set()
        self._samples: dict[int, int] = {}  # entry of a sample that drew noise -> its budget
        self._time = ""

    def feed(self, event: Event) -> None:
        """One event more; raises Broken when it cannot follow."""
        number, kind, budget, entry, time = event[:5]
        self.number += 1
        if number != self.number or link(self.hash, event) != event.hash:
            raise Broken(f"entry {self.number} does not match the one before it")
        self.hash = event.hash
        if kind == STORE:
            self._begin(event)
        elif kind == BUDGET:
            self._found(event)
        elif budget not in self.totals:
            raise Broken(f"entry {number} belongs to no budget")
        elif entry is None:
            self._open(event)
        elif kind == RELEASED:
            self._release(event)
        else:
            self._change(event)
        if budget:
            self.last[budget] = (number, event.hash)
        self.clock_went_back += time < self._time
        self._time = time

    def _begin(self, event: Event) -> None:
        if event.number != 1 or event.budget or event.entry is not None or any(event.totals):
            raise Broken(f"entry {event.number} is not the beginning of a store")
        self.store = str(_facts(event, "store")["store"])

    def _found(self, event: Event) -> None:
        if event.number == 1 or event.budget != event.number or event.entry is not None or any(event.totals):
            raise Broken(f"entry {event.number} is not the beginning of a budget")
        facts = _facts(event, "population", "limits")
        label = facts["population"]
        main, delta = facts["limits"]
        if label in self.labels.values():
            raise Broken(f"entry {event.number} makes a budget that already exists")
        self.labels[event.number] = label
        self.totals[event.number] = Totals()
        self._limits[event.number] = (int(main), int(delta))

    def _open(self, event: Event) -> None:
        kind, main, delta = event.kind, event.main, event.delta
        if kind not in OPENING or main < 0 or delta < 0:
            raise Broken(f"entry {event.number} cannot open anything")
        if event.draw is not None:
            if (event.budget, event.draw) in self._draws:
                raise Broken(f"entry {event.number} charges a sample a second time")
            self._draws.add((event.budget, event.draw))
        if kind in UNSETTLED:
            self._unsettled[event.number] = self._costs[event.number] = event
        self._expect(event, after(self.totals[event.budget], kind, None, main, delta))

    def _release(self, event: Event) -> None:
        if self._samples.get(event.entry or 0) != event.budget or event.draw is not None or event.main or event.delta:
            raise Broken(f"entry {event.number} releases from a sample that was not paid for")
        self._expect(event, self.totals[event.budget])

    def _change(self, event: Event) -> None:
        entry = event.entry or 0
        state = self._unsettled.pop(entry, None)
        if state is None or event.kind not in NEXT[state.kind] or event.draw is not None:
            raise Broken(f"entry {event.number} ends what was not open")
        opened = self._costs[entry]
        if (opened.budget, opened.main, opened.delta) != (event.budget, event.main, event.delta):
            raise Broken(f"entry {event.number} differs from the reservation it ends")
        if event.kind in UNSETTLED:
            self._unsettled[entry] = event
        else:
            del self._costs[entry]
        if event.kind == CANCELLED and opened.draw is not None:
            self._draws.discard((event.budget, opened.draw))
        if event.kind == SPENT and opened.draw is not None:
            self._samples[entry] = event.budget
        self._expect(event, after(self.totals[event.budget], event.kind, state.kind, event.main, event.delta))

    def _expect(self, event: Event, totals: Totals) -> None:
        main, delta = self._limits[event.budget]
        if event[7:11] != totals:
            raise Broken(f"entry {event.number} states a total that is not the sum of the entries")
        if min(totals) < 0 or totals.main_spent > main or totals.delta_spent > delta:
            raise Broken(f"entry {event.number} exceeds its limit")
        self.totals[event.budget] = totals


def after(totals: Totals, kind: str, before: str | None, main: int, delta: int) -> Totals:
    """The totals once an entry of this cost goes from state `before` (None: it is new) to `kind`."""
    counts = (kind != CANCELLED) - (before is not None)
    open_ = (kind in UNSETTLED) - (before in UNSETTLED)
    main_spent, delta_spent, main_open, delta_open = totals
    return Totals(
        main_spent + counts * main, delta_spent + counts * delta, main_open + open_ * main, delta_open + open_ * delta
    )


def _facts(event: Event, *needed: str) -> dict[str, Any]:
    try:
        facts = event.told
        if all(name in facts for name in needed):
            return facts
    except (ValueError, TypeError):
        pass
    raise Broken(f"entry {event.number} lacks required facts")
