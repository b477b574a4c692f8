"""Heads and audit trails: the signed content of a store, checked on a machine without the store.

A head is the number and hash of a store's newest event. Kept elsewhere it is an anchor: a store that does not have
that event is an older copy, or another one. A trail is the whole chain as lines of JSON, ended by its head; a replay of
it recomputes every hash, total and state. A signature says whose word the head is; it is bound to the store.
"""

import json
from collections.abc import Iterable, Iterator
from dataclasses import asdict, dataclass
from typing import Any

from ..chance.keys import Key
from ..chance.signatures import is_signed, public_key, sign
from ..errors import InvalidInput, PrivampError
from .budget_chain import Broken, Event, Replay, Totals, canonical, read_event
from .budget_origin import now
from .budget_store import Head, Store

_FORMAT = "privamp budget"
_BYTES = ("draw", "hash")


@dataclass(frozen=True, slots=True)
class Trail:
    """What a trail proves."""

    head: Head
    totals: dict[str, Totals]  # by population
    clock_went_back: int
    signed_by: str | None  # a public key


def signed_head(head: Head, key: Key | None) -> dict[str, Any]:
    """A head as JSON, with a signature when there is a key."""
    told: dict[str, Any] = {"format": _FORMAT, **asdict(head), "time": now()}
    if key is None:
        return told
    if key.is_test:
        raise InvalidInput("a test key cannot sign; use a key file")
    told["public_key"] = public_key(key)
    return told | {"signature": sign(key, canonical(told).encode())}


def read_head(text: str, public: str | None = None) -> tuple[Head, str | None]:
    """A head, and who signed it; with a public key, only one that this key signed."""
    try:
        told = json.loads(text)
        head = Head(str(told["store"]), int(told["number"]), str(told["hash"]))
        if told["format"] != _FORMAT:
            raise ValueError
    except (ValueError, TypeError, KeyError):
        raise InvalidInput("this is not the head of a budget store; use the output of 'privamp budget head'") from None
    signature = told.pop("signature", None)
    by = told.get("public_key")
    if signature is not None and not is_signed(str(by), canonical(told).encode(), str(signature)):
        raise PrivampError("the signature does not match this head: one of them was changed; get both again")
    if public is not None and (signature is None or by != public):
        raise PrivampError("the head is not signed by the given key; ask its owner for a signed one")
    return head, None if signature is None else str(by)


def check_anchor(store: Store, head: Head) -> None:
    """Raise if the store does not have this head among its events."""
    if head.store != store.id:
        raise PrivampError(f"the head is of another store than {store.path.name}; give the right one")
    if not store.has(head):
        raise PrivampError(
            f"{store.path.name} does not have entry {head.number} of the head: it was replaced by an older copy, or "
            "its entries were changed; restore the newest one"
        )


def trail(store: Store, key: Key | None) -> Iterator[str]:
    """Lines of JSON: every event, then the head."""
    head = None
    for event in store.events():
        head = Head(store.id, event.number, event.hash.hex())
        yield json.dumps(_told(event), ensure_ascii=False)
    assert head is not None  # a store has a first event
    yield json.dumps(signed_head(head, key), ensure_ascii=False)


def check_trail(lines: Iterable[str], public: str | None = None) -> Trail:
    """Replay a trail; raises if it is inconsistent."""
    replay, last = Replay(), None
    try:
        for line in lines:
            if last is not None:
                raise Broken("it continues after its head")
            told = json.loads(line)
            if json.dumps(told, ensure_ascii=False) != line.removesuffix("\n"):
                raise Broken(f"line {replay.number + 1} is not in canonical form")
            if isinstance(told, dict) and "format" in told:
                last = line
            else:
                replay.feed(_event(told))
    except (Broken, ValueError, TypeError, KeyError, AttributeError) as error:
        where = str(error) if isinstance(error, Broken) else f"line {replay.number + 1} cannot be read"
        raise InvalidInput(f"the trail is damaged or was changed ({where}); ask for a new one") from None
    if last is None:
        raise InvalidInput("the trail has no head at its end, so it may be truncated; ask for a complete one")
    head, by = read_head(last, public)
    if (head.store, head.number, head.hash) != (replay.store, replay.number, replay.hash.hex()):
        raise InvalidInput(
            "the head of the trail is not its last entry, so entries are missing; ask for a complete one"
        )
    totals = {label: replay.totals[budget] for budget, label in replay.labels.items()}
    return Trail(head, totals, replay.clock_went_back, by)


def _told(event: Event) -> dict[str, Any]:
    told = event._asdict()
    for name in _BYTES:
        told[name] = None if told[name] is None else told[name].hex()
    return told | {"facts": event.told}


def _event(told: dict[str, Any]) -> Event:
    row = dict(told)
    for name in _BYTES:
        digits = row[name]
        row[name] = None if digits is None else bytes.fromhex(digits)
        if digits is not None and row[name].hex() != digits:
            raise Broken("a line has digits in another form")
    row["facts"] = canonical(row["facts"])
    if tuple(sorted(row)) != tuple(sorted(Event._fields)):
        raise Broken("a line has fields that it should not have, or lacks some")
    return read_event(tuple(row[name] for name in Event._fields))
