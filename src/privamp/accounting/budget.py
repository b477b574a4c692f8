"""A budget over many samples and releases, stored in a file that processes share and that survives crashes.

    budget = Budget.create("study.db", population="patients", epsilon=3, delta=1e-6)
    with budget.reserve(guarantee, note="mean age"):      # on disk before any noise is drawn
        answer = release()

Reserve, spend, commit. What is reserved counts at once. It is given back only by `cancel()`, before `spend()`, and
`with` spends on entry; a crash, an exception or a forgotten commit leaves it counted, because noise may have been drawn
and seen. Each step is on disk before it is acknowledged. The limit is a filter, so every release may be chosen by the
answers before it.

Code that releases something takes `budget: Budget | None` and wraps the noise in `charged(budget, guarantee)`.
"""

import contextlib
import os
import threading
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from types import TracebackType
from typing import Any, NoReturn, Self, Unpack

from ..core.guarantee import Guarantee
from ..core.neighbors import Neighbors
from ..errors import InvalidInput
from ..validation import whole
from .amounts import cost_amounts, limit_amounts, number_of
from .budget_chain import ANSWERED, CANCELLED, FAILED, RESERVED, SPENT, canonical
from .budget_file import exists
from .budget_log import Entry, entries_of
from .budget_origin import plain
from .budget_store import Checked, Head, Store
from .filters import Filter, LimitOptions, Release, filter_within
from .sample_ledger import EarlierReleases, SamplePayment, check_terms, earlier_releases

_LAST = 2**62  # number of an entry
_NO_WIDTH = "\u200b\u2060\ufeff"
DISJOINT = "no record of this population was also counted, or released, under another label or outside the budget"


@dataclass(frozen=True, slots=True)
class Status:
    """The state of a budget, by the name of what its rule adds up."""

    limit: dict[str, float]
    spent: dict[str, float]  # what is reserved included
    reserved: dict[str, float]  # without an answer yet: under way, or crashed
    left: dict[str, float]


class Reservation:
    """A cost set aside for one release. Ends with `commit` (the answer was returned) or, before `spend`, with `cancel`.

    `with` spends at once, and is entered once: what is released again is reserved again.
    """

    __slots__ = ("_budget", "_lock", "_process", "_state", "_told", "number")

    def __init__(self, budget: "Budget", number: int, state: str = RESERVED) -> None:
        self._budget = budget
        self.number = number
        self._state = state
        self._told: dict[str, Any] = {}
        self._process = os.getpid()
        self._lock = threading.Lock()

    def spend(self) -> None:
        """Record that noise is about to be drawn; from here on the cost cannot be returned."""
        with self._mine():
            if self._state == CANCELLED:
                raise InvalidInput("this reservation was cancelled, so it pays for nothing; reserve again")
            if self._state in (ANSWERED, FAILED):
                raise InvalidInput(
                    f"this reservation is {self._state} and does not pay for a second release; reserve again for "
                    "each release"
                )
            if self._state == RESERVED:
                self._go_on(SPENT)

    def describe(self, certificate: Mapping[str, Any]) -> None:
        """The certificate of the release, if it is known only afterwards; stored when the reservation ends."""
        self._told = _purchase(None, certificate=certificate)

    def commit(self) -> None:
        """Record that the answer was returned."""
        if self._state in (RESERVED, CANCELLED):
            self.spend()
        self._end(ANSWERED)

    def cancel(self, reason: str = "") -> None:
        """Return the cost: possible only before noise is drawn."""
        with self._mine():
            if self._state != RESERVED:
                raise InvalidInput(
                    "only a reservation whose noise was not drawn can be cancelled, and this one is spent"
                )
            self._go_on(CANCELLED, {"reason": reason})

    def _end(self, state: str) -> None:
        with self._mine():
            if self._state == SPENT:
                self._go_on(state, self._told)

    def _go_on(self, state: str, facts: dict[str, Any] | None = None) -> None:
        self._budget._store.change(self._budget._number, self.number, state, facts or {})
        self._state = state

    @contextlib.contextmanager
    def _mine(self) -> Iterator[None]:
        if self._process != os.getpid():
            raise InvalidInput("a reservation belongs to the process that made it, and this is a fork; reserve here")
        with self._lock:
            yield

    def __enter__(self) -> Self:
        self.spend()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        if self._process == os.getpid():
            self._end(ANSWERED if kind is None else FAILED)

    def __reduce__(self) -> NoReturn:
        raise InvalidInput(
            "a reservation belongs to the process that made it and cannot be copied; reserve in that process"
        )

    def __repr__(self) -> str:
        return f"Reservation({self._budget.population!r}, entry={self.number}, state={self._state!r})"


class Budget:
    """A limit on everything released about one population. Create it with `create`, reopen it with `open`.

    `store` is an open file of budgets, and `population` the label of the people in it. What is spent is written before
    noise is drawn, and a release that would pass the limit raises BudgetExceeded: all releases together keep the limit,
    also when each was chosen by the answers before it (docs/ledger.md).
    """

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
        limit: Filter | None = None,
        shared: bool = False,
        **within: Unpack[LimitOptions],
    ) -> "Budget":
        """A new budget in a new file, or for another population in an existing store.

        Give `epsilon`, and perhaps `delta`, `rule` ('pure', 'basic', 'renyi' or 'gdp'; by default pure for delta 0,
        else renyi), `order` (of renyi) and `neighbors`; or a filter as `limit`. Nothing is overwritten. A new file
        belongs to its owner alone (mode 0600), and with `shared` to its group too (0660).
        """
        if not isinstance(population, str) or not _is_label(population):
            raise InvalidInput(
                f"population must be a label in plain text without spaces around it, got {population!r} instead"
            )
        if (limit is None) == (within.get("epsilon") is None):
            raise InvalidInput("a budget needs either an epsilon or a filter as its limit")
        if limit is None:
            limit = filter_within(**within)
        if limit.neighbors.scope != "anywhere":
            raise InvalidInput(f"a budget protects records anywhere, got a limit {limit.neighbors.scope} instead")
        if min(limit_amounts(limit.limits).values()) == 0 and limit.rule != "basic":
            raise InvalidInput("the limit is below the smallest amount the store counts (1e-15); use a larger one")
        if not exists(path):
            return cls(Store.make(path, population, limit, shared=shared), population)
        store = Store(path)
        if shared and not store.shared:
            raise InvalidInput(
                f"{store.path.name} is readable only by its owner, and that cannot be changed; create another file"
            )
        store.add_budget(population, limit)
        return cls(store, population)

    @classmethod
    def open(cls, path: str | os.PathLike[str], population: str | None = None, *, read_only: bool = False) -> "Budget":
        """The budget of a population; its label is optional if the store has only one.

        With `read_only` it pays for nothing, and works where the file cannot be written.
        """
        store = Store(path, read_only=read_only)
        if population is None:
            known = store.populations()
            if len(known) != 1:
                listed = ", ".join(map(repr, known)) or "none"
                raise InvalidInput(f"the store has {len(known)} budgets ({listed}); give the population")
            population = known[0]
        return cls(store, population)

    @property
    def neighbors(self) -> Neighbors:
        """The relation that the limit is stated for."""
        return self.limit.neighbors

    @property
    def path(self) -> Path:
        """The store's file."""
        return self._store.path

    def reserve(
        self,
        release: Release,
        *,
        note: str = "",
        delta: float | None = None,
        draw: bytes | None = None,
        key: bytes | None = None,
        job: str = "",
        columns: Iterable[str] = (),
        certificate: Mapping[str, Any] | None = None,
    ) -> Reservation:
        """Set aside, on disk, what a mechanism on all the data or a certified release costs, or raise BudgetExceeded.

        `delta` is the share a release takes under the basic rule; `draw` names a sample (Sample.charge gives it), which
        is charged only once, because what is asked of one draw does not simply add up. What is bought can be told for
        those who read the log: the fingerprint of the `key`, the `job`, its `columns`, a `certificate` in JSON's terms.
        """
        facts = _purchase(note, key, job, columns, certificate)
        return Reservation(self, self._add(release, facts, delta, draw, RESERVED))

    def pay_for_sample(
        self,
        release: Release,
        *,
        draw: bytes,
        terms: Mapping[str, Any],
        note: str = "",
        delta: float | None = None,
        key: bytes | None = None,
        certificate: Mapping[str, Any] | None = None,
        again: bool = True,
    ) -> SamplePayment:
        """Charge a sample for everything its terms (a plan or a limit, as text) allow, or continue it under the same
        terms.

        `Sample.charge` calls this. The first program pays; later ones that draw the same sample get its past, unless
        they may not come `again`.
        """
        before = self._store.sample(self._number, draw)
        if before is None:
            facts = _purchase(note, key, certificate=certificate) | plain({"terms": dict(terms)})
            try:
                return SamplePayment(self, self._add(release, facts, delta, draw, RESERVED), EarlierReleases())
            except InvalidInput:  # another program may have charged it just now
                before = self._store.sample(self._number, draw)
                if before is None:
                    raise
        if not again:
            raise InvalidInput("this draw was already charged, here or in another run; draw with a fresh key")
        paid, releases = before
        check_terms(paid, plain(dict(terms)))
        return SamplePayment(self, paid.number, earlier_releases(releases))

    def spend(self, release: Release, *, note: str = "", delta: float | None = None, job: str = "") -> None:
        """Reserve and commit in one step, for noise that is drawn right afterwards."""
        self._add(release, _purchase(note, job=job), delta, None, ANSWERED)

    def cancel(self, number: int, reason: str) -> None:
        """Return the cost of a program that crashed before it drew noise; refused for any other entry."""
        if not str(reason).strip():
            raise InvalidInput("cancelling needs a reason, which is stored in the log; give one")
        whole(1, _LAST, entry=number)
        self._store.change(self._number, number, CANCELLED, {"reason": str(reason)})

    def _add(self, release: Release, facts: dict[str, Any], delta: float | None, draw: bytes | None, state: str) -> int:
        if draw is not None and not (isinstance(draw, bytes) and draw):
            raise InvalidInput(f"draw must be the identity of a sample in bytes, got a {type(draw).__name__} instead")
        cost = cost_amounts(self.limit.cost(release, delta))
        if draw is None and isinstance(release, Guarantee) and release.draws:
            draw, *others = release.draws
            if others:  # an entry names one sample, by which a second charge of it is refused
                raise InvalidInput(
                    f"this guarantee is about {1 + len(others)} samples, but each must be charged separately, once; "
                    "reserve the guarantee of each sample, which costs the same"
                )
        return self._store.reserve(self._number, self.limit, cost, facts, draw, state)

    def status(self) -> Status:
        """Limit, spent, reserved and left."""
        limits = limit_amounts(self.limit.limits)
        totals = self._store.totals(self._number)
        spent, reserved = (dict(zip(limits, part, strict=False)) for part in (totals[:2], totals[2:]))
        left = {name: limits[name] - spent[name] for name in limits}
        return Status(
            *({name: number_of(name, part[name]) for name in limits} for part in (limits, spent, reserved, left))
        )

    def log(self, last: int | None = None) -> list[Entry]:
        """Every reservation with its time, note, cost and state, oldest first; `last` keeps the newest few."""
        if last is not None:
            whole(1, _LAST, last=last)
        first = 1 if last is None else self._store.first_of_last(self._number, last)
        return entries_of(self._store.events(first), self._number, tuple(self.limit.limits))

    def head(self) -> Head:
        """The number and hash of the store's newest event: stored elsewhere, it reveals when an older copy is
        restored."""
        return self._store.head()

    def verify(self) -> Checked:
        """Check the whole store, all populations of it; raises if anything is inconsistent."""
        return self._store.verify()

    def backup(self, target: str | os.PathLike[str]) -> Checked:
        """A complete and checked copy in a new file. It does not contain later spends."""
        return self._store.backup(target)

    def guarantee(self) -> Guarantee:
        """The guarantee of all releases together, if each was charged to this budget: its limit."""
        return replace(self.limit.guarantee(), assumes=(DISJOINT,))

    def __repr__(self) -> str:
        facts = ", ".join(f"{name}={value}" for name, value in self.limit.facts().items())
        return f"Budget({self.path.name!r}, population={self.population!r}, {self.limit.rule}, {facts})"

    def __reduce__(self) -> Any:
        return _reopened, (str(self.path), self.population, self._store.read_only)


def _is_label(text: str) -> bool:
    """No spaces around it, or of no width in it: two labels that look the same would be two budgets."""
    return bool(text) and text == text.strip() and not set(text) & set(_NO_WIDTH) and plain(text) == text


def _reopened(path: str, population: str, read_only: bool) -> Budget:
    return Budget.open(path, population, read_only=read_only)


def _purchase(
    note: str | None,
    key: bytes | None = None,
    job: str = "",
    columns: Iterable[str] = (),
    certificate: Mapping[str, Any] | None = None,
) -> dict[str, Any]:
    """What an entry pays for, as JSON; unknown facts are left out."""
    told = {
        "note": None if note is None else str(note),
        "key": None if key is None else bytes(key).hex(),
        "job": str(job) or None,
        "columns": [str(column) for column in columns] or None,
        "certificate": None if certificate is None else dict(certificate),
    }
    facts: dict[str, Any] = plain({name: value for name, value in told.items() if value is not None})
    try:
        canonical(facts)
    except (TypeError, ValueError):
        raise InvalidInput("a certificate must consist of finite numbers, texts, lists and objects of JSON") from None
    return facts
