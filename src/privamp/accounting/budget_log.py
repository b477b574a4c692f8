"""The log of a budget: one line for each entry, assembled from the events of the chain."""

from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from typing import Any

from .amounts import number_of
from .budget_chain import BUDGET, RELEASED, STORE, Event


@dataclass(frozen=True, slots=True)
class Entry:
    """One reservation: what it costs, what it pays for, who made it, and how it ended."""

    number: int
    time: str
    note: str
    cost: dict[str, float]
    state: str
    ended: str | None = None  # when it got its state, where that was later
    reason: str = ""  # why it was cancelled
    job: str = ""
    columns: tuple[str, ...] = ()
    certificate: dict[str, Any] | None = field(default=None, repr=False)
    releases: int = 0  # made from the sample that it pays for
    draw: str | None = None  # the identity of the sample, in hexadecimal digits
    key: str | None = None  # the identity of the key that it was drawn with
    user: str = ""
    host: str = ""
    process: int = 0
    program: str = ""
    version: str = ""


def entries_of(events: Iterable[Event], budget: int, names: tuple[str, ...]) -> list[Entry]:
    """The entries of one budget that are opened in these events, oldest first."""
    found: dict[int, Entry] = {}
    for event in events:
        if event.budget != budget or event.kind in (STORE, BUDGET):
            continue
        if event.entry is None:
            found[event.number] = _opened(event, names)
        elif event.entry in found and event.kind == RELEASED:
            found[event.entry] = replace(found[event.entry], releases=event.told["release"])
        elif event.entry in found:
            told, before = event.told, found[event.entry]
            found[event.entry] = replace(
                before,
                state=event.kind,
                ended=event.time,
                reason=told.get("reason", ""),
                certificate=told.get("certificate", before.certificate),
            )
    return list(found.values())


def _opened(event: Event, names: tuple[str, ...]) -> Entry:
    facts = event.told
    return Entry(
        number=event.number,
        time=event.time,
        note=facts["note"],
        cost={name: number_of(name, units) for name, units in zip(names, (event.main, event.delta), strict=False)},
        state=event.kind,
        job=facts.get("job", ""),
        columns=tuple(facts.get("columns", ())),
        certificate=facts.get("certificate"),
        draw=None if event.draw is None else event.draw.hex(),
        key=facts.get("key"),
        **{name: facts[name] for name in ("user", "host", "process", "program", "version")},
    )
