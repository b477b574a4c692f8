"""A chain of events written by hand: what may follow what, and what each event does to the totals of its budget."""

import json
from hashlib import sha256

import pytest

from privamp.accounting.amounts import cost_amounts, limit_amounts, number_of
from privamp.accounting.budget_chain import (
    BEGINNING,
    Broken,
    Event,
    Replay,
    Totals,
    after,
    check_links,
    link,
    read_event,
)
from privamp.errors import InvalidInput, NoTheorem

DRAW, OTHER = b"d" * 16, b"e" * 16


class Chain:
    """Events with right hashes, whatever they say."""

    def __init__(self):
        self.events, self.replay = [], Replay()

    def add(self, kind, budget, entry=None, main=0, delta=0, totals=(0, 0, 0, 0), draw=None, facts=None, time="t"):
        number = len(self.events) + 1
        found = Event(number, kind, budget, entry, time, main, delta, *totals, draw, json.dumps(facts or {}), b"")
        previous = self.events[-1].hash if self.events else BEGINNING
        found = found._replace(hash=link(previous, found))
        self.replay.feed(found)  # raises Broken for what cannot follow
        self.events.append(found)
        return number

    def refuses(self, *given, match, **named):
        """Whatever is refused was not fed to this chain."""
        copy = Chain()
        for event in self.events:
            copy.replay.feed(event)
            copy.events.append(event)
        with pytest.raises(Broken, match=match):
            copy.add(*given, **named)


@pytest.fixture
def chain():
    """A store and a budget, event 2, of 100 units and 50 of delta."""
    made = Chain()
    made.add("store", 0, facts={"store": "s"})
    made.add("budget", 2, facts={"population": "p", "limits": [100, 50]})
    return made


def test_a_hash_is_of_the_one_before_and_of_all_fields():
    event = Event(7, "spent", 2, 5, "now", 1, 2, 3, 4, 5, 6, DRAW, "{}", b"")
    text = f"7 spent 2 5 now 1 2 3 4 5 6 {DRAW.hex()} {{}}"
    assert link(BEGINNING, event) == sha256(bytes(32) + text.encode()).digest()
    assert event.totals == Totals(3, 4, 5, 6)
    without = event._replace(entry=None, draw=None)
    assert link(DRAW, without) == sha256(DRAW + b"7 spent 2 - now 1 2 3 4 5 6 - {}").digest()
    for wrong in (event._replace(time="a b"), event._replace(kind="a b"), event._replace(facts="[]")):
        with pytest.raises(Broken, match="wrong kind"):
            link(BEGINNING, wrong)


def test_a_row_has_the_types_of_its_columns():
    row = (7, "spent", 2, 5, "now", 1, 2, 3, 4, 5, 6, DRAW, "{}", b"h")
    assert read_event(row) == Event(*row)
    assert read_event((*row[:3], None, *row[4:11], None, *row[12:])).entry is None
    for at, wrong in ((0, "7"), (3, "5"), (5, 1.0), (11, "d"), (13, "h"), (0, True)):
        with pytest.raises(Broken, match="wrong kind"):
            read_event((*row[:at], wrong, *row[at + 1 :]))


def test_links_are_followed_from_a_number(chain):
    assert check_links(BEGINNING, chain.events, 0) == (2, chain.events[-1].hash)
    assert check_links(chain.events[0].hash, chain.events[1:], 1) == (2, chain.events[1].hash)
    with pytest.raises(Broken, match="entry 1 is missing"):
        check_links(BEGINNING, chain.events[1:], 0)
    with pytest.raises(Broken, match="entry 2 does not match"):
        check_links(BEGINNING, chain.events[1:], 1)


@pytest.mark.parametrize(
    ("kind", "before", "expected"),
    [
        ("reserved", None, (13, 24, 10, 12)),
        ("spent", None, (13, 24, 10, 12)),
        ("answered", None, (13, 24, 7, 8)),
        ("spent", "reserved", (10, 20, 7, 8)),
        ("cancelled", "reserved", (7, 16, 4, 4)),
        ("answered", "spent", (10, 20, 4, 4)),
        ("failed", "spent", (10, 20, 4, 4)),
    ],
)
def test_what_an_event_does_to_totals(kind, before, expected):
    """A new entry costs 3 and 4; it is open until it is answered, fails or is cancelled; only the last gives back."""
    assert after(Totals(10, 20, 7, 8), kind, before, 3, 4) == expected


def test_the_life_of_entries(chain):
    one = chain.add("reserved", 2, main=30, delta=5, totals=(30, 5, 30, 5))
    chain.add("spent", 2, one, 30, 5, (30, 5, 30, 5))
    two = chain.add("spent", 2, main=20, delta=1, totals=(50, 6, 50, 6))
    chain.add("answered", 2, one, 30, 5, (50, 6, 20, 1))
    three = chain.add("reserved", 2, main=10, totals=(60, 6, 30, 1))
    chain.add("cancelled", 2, three, 10, 0, (50, 6, 20, 1))
    chain.add("failed", 2, two, 20, 1, (50, 6, 0, 0))
    chain.add("answered", 2, main=50, delta=44, totals=(100, 50, 0, 0))
    assert chain.replay.totals == {2: (100, 50, 0, 0)}
    assert chain.replay.labels == {2: "p"}
    assert chain.replay.store == "s"
    assert chain.replay.last[2] == (10, chain.events[-1].hash)
    chain.refuses("answered", 2, main=1, totals=(101, 50, 0, 0), match="exceeds its limit")
    chain.refuses("answered", 2, delta=1, totals=(100, 51, 0, 0), match="exceeds its limit")
    for ended in (one, two, three):
        chain.refuses("failed", 2, ended, 30, 5, (100, 50, 0, 0), match="what was not open")


@pytest.mark.parametrize(
    ("kind", "entry", "main", "delta", "totals", "match"),
    [
        ("answered", 3, 30, 5, (30, 5, 0, 0), "what was not open"),  # of what is only reserved
        ("failed", 3, 30, 5, (30, 5, 0, 0), "what was not open"),
        ("spent", 4, 30, 5, (30, 5, 30, 5), "what was not open"),
        ("spent", 3, 31, 5, (30, 5, 30, 5), "differs from the reservation"),
        ("spent", 3, 30, 4, (30, 5, 30, 5), "differs from the reservation"),
        ("spent", 3, 30, 5, (30, 5, 30, 6), "not the sum"),
        ("spent", 3, 30, 5, (30, 5, 31, 5), "not the sum"),
        ("spent", 3, 30, 5, (29, 5, 30, 5), "not the sum"),
        ("spent", 3, 30, 5, (30, 4, 30, 5), "not the sum"),
        ("cancelled", None, 0, 0, (30, 5, 30, 5), "cannot open"),
        ("failed", None, 0, 0, (30, 5, 30, 5), "cannot open"),
        ("reserved", None, -1, 0, (29, 5, 29, 5), "cannot open"),
        ("reserved", None, 0, -1, (30, 4, 30, 4), "cannot open"),
        ("released", 3, 0, 0, (30, 5, 30, 5), "not paid for"),
    ],
)
def test_what_cannot_follow_a_reservation(chain, kind, entry, main, delta, totals, match):
    chain.add("reserved", 2, main=30, delta=5, totals=(30, 5, 30, 5))
    chain.refuses(kind, 2, entry, main, delta, totals, match=match)


def test_costs_of_0_are_entries(chain):
    chain.add("answered", 2)
    one = chain.add("reserved", 2)
    chain.add("cancelled", 2, one)
    assert chain.replay.totals == {2: (0, 0, 0, 0)}


def test_an_entry_ends_in_its_own_budget(chain):
    other = chain.add("budget", 3, facts={"population": "q", "limits": [100, 50]})
    one = chain.add("reserved", 2, main=30, totals=(30, 0, 30, 0))
    chain.refuses("spent", other, one, 30, 0, (30, 0, 30, 0), match="differs from the reservation")
    chain.refuses("answered", 4, main=1, totals=(1, 0, 0, 0), match="belongs to no budget")
    chain.add("spent", 2, one, 30, 0, (30, 0, 30, 0))
    assert chain.replay.totals == {2: (30, 0, 30, 0), 3: (0, 0, 0, 0)}


def test_a_sample_is_charged_once_and_released_from_after_that(chain):
    one = chain.add("reserved", 2, main=30, totals=(30, 0, 30, 0), draw=DRAW)
    chain.refuses("reserved", 2, main=30, totals=(60, 0, 60, 0), draw=DRAW, match="a second time")
    chain.refuses("released", 2, one, totals=(30, 0, 30, 0), match="not paid for")  # no noise was drawn yet
    chain.refuses("spent", 2, one, 30, 0, (30, 0, 30, 0), draw=DRAW, match="what was not open")
    chain.add("spent", 2, one, 30, 0, (30, 0, 30, 0))
    chain.add("released", 2, one, totals=(30, 0, 30, 0))
    chain.add("released", 2, one, totals=(30, 0, 30, 0))
    for wrong in ({"main": 1}, {"delta": 1}, {"draw": DRAW}):
        chain.refuses("released", 2, one, totals=(30, 0, 30, 0), match="not paid for", **wrong)
    chain.refuses("released", 2, one, totals=(31, 0, 30, 0), match="not the sum")
    other = chain.add("budget", 7, facts={"population": "q", "limits": [100, 50]})
    chain.refuses("released", other, one, match="not paid for")
    chain.add("answered", 2, one, 30, 0, (30, 0, 0, 0))
    chain.add("released", 2, one, totals=(30, 0, 0, 0))
    chain.add("reserved", 7, main=30, totals=(30, 0, 30, 0), draw=DRAW)  # another budget pays for itself
    chain.add("reserved", 2, main=3, totals=(33, 0, 3, 0), draw=OTHER)


def test_a_cancelled_sample_may_be_charged_again(chain):
    one = chain.add("reserved", 2, main=30, totals=(30, 0, 30, 0), draw=DRAW)
    chain.add("cancelled", 2, one, 30, 0)
    two = chain.add("reserved", 2, main=30, totals=(30, 0, 30, 0), draw=DRAW)
    chain.add("spent", 2, two, 30, 0, (30, 0, 30, 0))
    chain.add("failed", 2, two, 30, 0, (30, 0, 0, 0))
    chain.refuses("reserved", 2, main=1, totals=(31, 0, 1, 0), draw=DRAW, match="a second time")


STORE, BUDGET = {"store": "s"}, {"population": "p", "limits": [100, 50]}


@pytest.mark.parametrize(
    "wrong", [{"budget": 1}, {"entry": 1}, {"totals": (1, 0, 0, 0)}, {"totals": (0, 0, 0, 1)}, {"facts": {"a": 1}}]
)
def test_a_store_begins_with_nothing(wrong):
    with pytest.raises(Broken, match=r"beginning of a store|lacks required facts"):
        Chain().add("store", **{"budget": 0, "facts": STORE, **wrong})


def test_a_store_begins_once(chain):
    chain.refuses("store", 0, facts=STORE, match="not the beginning of a store")


@pytest.mark.parametrize(
    ("wrong", "match"),
    [
        ({"budget": 2}, "not the beginning of a budget"),
        ({"entry": 2}, "not the beginning of a budget"),
        ({"totals": (1, 0, 0, 0)}, "not the beginning of a budget"),
        ({"totals": (0, 0, 0, 1)}, "not the beginning of a budget"),
        ({"facts": {"population": "q"}}, "lacks required facts"),
        ({"facts": {"limits": [1, 2]}}, "lacks required facts"),
        ({"facts": BUDGET}, "already exists"),
    ],
)
def test_a_budget_begins_with_nothing(chain, wrong, match):
    given = {"budget": 3, "facts": {"population": "q", "limits": [100, 50]}, **wrong}
    chain.refuses("budget", given.pop("budget"), given.pop("entry", None), match=match, **given)


def test_no_chain_begins_with_a_budget():
    with pytest.raises(Broken, match="not the beginning of a budget"):
        Chain().add("budget", 1, facts=BUDGET)


def test_an_event_out_of_its_place_is_noticed(chain):
    with pytest.raises(Broken, match="entry 3 does not match"):
        chain.replay.feed(chain.events[-1])
    late = chain.events[-1]._replace(number=4)
    with pytest.raises(Broken, match="entry 4 does not match"):
        chain.replay.feed(late._replace(number=3))


def test_a_clock_that_goes_back_is_counted(chain):
    for time in ("t", "s", "s", "u", "a"):
        chain.add("answered", 2, time=time)
    assert chain.replay.clock_went_back == 2


def test_costs_are_rounded_up_and_limits_down():
    assert cost_amounts({"epsilon": 0.1, "delta": 1e-6}) == {"epsilon": 10**14, "delta": 10**12}
    assert cost_amounts({"epsilon": 1.5e-15}) == {"epsilon": 2}
    assert limit_amounts({"epsilon": 1.5e-15, "delta": 2.5e-18}) == {"epsilon": 1, "delta": 2}
    assert number_of("epsilon", 15) == 1.5e-14
    assert number_of("delta", 15) == 1.5e-17
    assert limit_amounts({"epsilon": 0.0}) == {"epsilon": 0}
    most = 2**62
    assert limit_amounts({"epsilon": 4611.686018427387}) == {"epsilon": 4611686018427387000}
    assert most >= 4611686018427387000
    for wrong in (4611.6860184273880, -1e-15):
        with pytest.raises(InvalidInput, match=r"from 0 to 4612"):
            limit_amounts({"epsilon": wrong})
    for none in (float("inf"), float("nan")):
        with pytest.raises(NoTheorem, match="no finite epsilon"):
            cost_amounts({"epsilon": none})
