"""A budget over many samples and releases, kept in a file that processes share and crashes do not fool.

    budget = Budget.create("study.db", population="patients", epsilon=3, delta=1e-6)
    with budget.reserve(guarantee, note="mean age"):      # on disk before any noise is drawn
        answer = release()

Reserve, spend, commit. What is reserved counts at once. It is given back only by `cancel()`, before `spend()` and by
the process that reserved it; a crash, an exception or a forgotten commit leaves it counted, because noise may have
been drawn and seen. The limit is a filter, so every release may be chosen by the answers before it.

Code that releases something takes `budget: Budget | None` and wraps the noise in `charged(budget, guarantee)`.
"""

import contextlib
import os
import threading
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from ..core.guarantee import Guarantee, Part
from ..core.neighbors import Neighbors
from ..errors import InvalidInput
from .amounts import cost_amounts, limit_amounts, number_of
from .budget_store import ANSWERED, CANCELLED, FAILED, RESERVED, Entry, Store
from .filters import Filter, Release, filter_within

DISJOINT = "no record of this population was also counted, or released, under another label or outside the budget"


@dataclass(frozen=True, slots=True)
class Status:
    """Where a budget stands, by the name of what its rule adds up."""

    limit: dict[str, float]
    spent: dict[str, float]  # what is reserved included
    reserved: dict[str, float]  # without an answer yet: under way, or crashed
    left: dict[str, float]


class Reservation:
    """A cost set aside. Ends by `commit` (the answer is out) or, before `spend`, by `cancel`."""

    __slots__ = ("_budget", "_entry", "_lock", "_process", "_state")

    def __init__(self, budget: "Budget", entry: int) -> None:
        self._budget = budget
        self._entry = entry
        self._state = RESERVED
        self._process = os.getpid()
        self._lock = threading.Lock()

    def spend(self) -> None:
        """Noise is about to be drawn: from here on nothing is given back."""
        with self._mine():
            if self._state == CANCELLED:
                raise InvalidInput("this reservation was cancelled and pays for nothing; reserve again")
            if self._state == RESERVED:
                self._state = "spent"

    def commit(self) -> None:
        """The answer was given out."""
        self.spend()
        self._settle(ANSWERED)

    def cancel(self) -> None:
        """Give the cost back: possible only while no noise was drawn."""
        with self._mine():
            if self._state != RESERVED:
                raise InvalidInput("only a reservation whose noise was not drawn can be cancelled; this one is spent")
            self._state = CANCELLED
            self._budget._settle(self._entry, CANCELLED)

    def _settle(self, state: str) -> None:
        with self._mine():
            if self._state == "spent":
                self._budget._settle(self._entry, state)
                self._state = state

    @contextlib.contextmanager
    def _mine(self) -> Iterator[None]:
        if self._process != os.getpid():
            raise InvalidInput("a reservation belongs to the process that made it, and this is a fork; reserve here")
        with self._lock:
            yield

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        if self._process != os.getpid() or self._state == CANCELLED:
            return
        self.spend()
        self._settle(ANSWERED if kind is None else FAILED)

    def __repr__(self) -> str:
        return f"Reservation({self._budget.population!r}, entry={self._entry}, state={self._state!r})"


class Budget:
    """A limit on all that is released about one population. Make it with `create`, come back with `open`."""

    __slots__ = ("_number", "_store", "limit", "population")

    def __init__(self, store: Store, population: str) -> None:
        self._store = store
        self.population = population
        self._number, self.limit = store.budget(population)

    @classmethod
    def create(
        cls,
        path: str | os.PathLike[str],
        *,
        population: str,
        epsilon: float | None = None,
        delta: float = 0.0,
        rule: str | None = None,
        order: float | None = None,
        neighbors: Neighbors = Neighbors.ADD_REMOVE,
        limit: Filter | None = None,
    ) -> "Budget":
        """A new budget in a new file, or for a further population in an existing store.

        Give `epsilon` and `delta` (`rule` is 'pure', 'basic', 'renyi' or 'gdp'; by default pure for delta 0, else
        renyi), or a filter as `limit`. Nothing is overwritten.
        """
        if not isinstance(population, str) or not population.strip() or _writable(population) != population:
            raise InvalidInput(f"population must be a label in plain text, got {population!r} instead")
        if (limit is None) == (epsilon is None):
            raise InvalidInput("a budget needs either an epsilon or a filter as its limit")
        if limit is None:
            limit = filter_within(epsilon or 0.0, delta, rule=rule, order=order, neighbors=neighbors)
        if limit.neighbors.scope != "anywhere":
            raise InvalidInput(f"a budget protects records anywhere, got a limit {limit.neighbors.scope} instead")
        if min(limit_amounts(limit.limits).values()) == 0 and limit.rule != "basic":
            raise InvalidInput("the limit is below the smallest amount the store counts (1e-15); take a larger one")
        if not Path(path).exists():
            return cls(Store.make(path, population, limit), population)
        store = Store(path)
        store.add_budget(population, limit)
        return cls(store, population)

    @classmethod
    def open(cls, path: str | os.PathLike[str], population: str | None = None) -> "Budget":
        """The budget of a population; its label may be left out when the store has only one."""
        store = Store(path)
        if population is None:
            known = store.populations()
            if len(known) != 1:
                listed = ", ".join(map(repr, known)) or "none"
                raise InvalidInput(f"the store has {len(known)} budgets ({listed}); say which population is meant")
            population = known[0]
        return cls(store, population)

    @property
    def neighbors(self) -> Neighbors:
        """Whom the limit protects."""
        return self.limit.neighbors

    @property
    def path(self) -> Path:
        """The store's file."""
        return self._store.path

    def reserve(
        self, release: Release, *, note: str = "", delta: float | None = None, draw: bytes | None = None
    ) -> Reservation:
        """Set aside, on disk, what a mechanism on all the data or a certified release costs, or raise BudgetExceeded.

        `delta` is the share a release takes under the basic rule; `draw` names a sample (Sample.charge gives it), which
        is charged only once, because what is asked of one draw does not simply add up.
        """
        return Reservation(self, self._add(release, note, delta, draw, RESERVED))

    def spend(self, release: Release, *, note: str = "", delta: float | None = None) -> None:
        """Reserve and count as answered in one step, for noise that is drawn right afterwards."""
        self._add(release, note, delta, None, ANSWERED)

    def _add(self, release: Release, note: str, delta: float | None, draw: bytes | None, state: str) -> int:
        cost = cost_amounts(self.limit.cost(release, delta))
        return self._store.reserve(self._number, self.limit, cost, _writable(str(note)), draw, state)

    def _settle(self, entry: int, state: str) -> None:
        self._store.settle(self._number, entry, state)

    def status(self) -> Status:
        """Limit, spent, reserved and left."""
        limits = limit_amounts(self.limit.limits)
        spent, reserved = self._store.totals(self._number, tuple(limits))
        left = {name: limits[name] - spent[name] for name in limits}
        return Status(
            *({name: number_of(name, part[name]) for name in limits} for part in (limits, spent, reserved, left))
        )

    def log(self, last: int | None = None) -> list[Entry]:
        """Every reservation with its time, note, cost and state, oldest first."""
        return self._store.entries(self._number, tuple(self.limit.limits), last)

    def guarantee(self) -> Guarantee:
        """What holds for all releases together as long as each went through this budget: its limit."""
        whole = self.limit.whole()
        upper = whole.profile(whole.neighbors).rounded_up()  # costs were counted for persons where the limit is
        return Guarantee(
            neighbors=self.neighbors,
            upper=upper,
            reasons=lambda: (self.limit.theorem,),
            assumes=(DISJOINT,),
            parts=(Part(upper, None),),
        )

    def __repr__(self) -> str:
        facts = ", ".join(f"{name}={value}" for name, value in self.limit.facts().items())
        return f"Budget({self.path.name!r}, population={self.population!r}, {self.limit.rule}, {facts})"

    def __reduce__(self) -> Any:
        return Budget.open, (str(self.path), self.population)


def _writable(text: str) -> str:
    """Text that a file can hold: half characters become question marks."""
    return text.encode("utf-8", "replace").decode("utf-8")


def charged(
    budget: Budget | None, release: Release, *, note: str = "", delta: float | None = None
) -> contextlib.AbstractContextManager[Any]:
    """Around code that draws noise: reserve before it, commit after it; nothing without a budget.

    This is all a workload needs: `with charged(budget, guarantee, note="k-means"): ...` where `guarantee` is what it
    certifies for the whole job. A job on a `Sample` calls `sample.charge(budget)` instead, after `declare` or `limit`.
    """
    if budget is None:
        return contextlib.nullcontext()
    return budget.reserve(release, note=note, delta=delta)
