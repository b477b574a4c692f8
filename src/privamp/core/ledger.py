"""Ledgers: what was released from every draw, and the registry that knows whether a draw is fresh.

A draw is identified by the fingerprint of its own key. Its ledger is opened by the first release and kept as long as
the process lives: the same key, design, label and round are the same sample, drawn again or not. A sample whose plan is
used up no longer needs a ledger; only its identity and its total are kept, and samples with the same releases share one
total.
"""

import math
import os
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass, field, replace
from typing import Any, Protocol

from ..chance.keys import Key
from ..errors import InvalidInput
from .guarantee import NOT_PRIVATE, Guarantee
from .mechanism import Mechanism
from .neighbors import Neighbors
from .terms import in_words

_REUSED = (
    "this key has already drawn for this {job}, and drawing with it again is not a fresh draw; use a fresh key "
    "(Key.generate()), or none"
)


class Limit(Protocol):
    """What a sample needs from a filter (accounting/filters.py)."""

    @property
    def neighbors(self) -> Neighbors:
        """The relation that the limit is stated for."""

    @property
    def theorem(self) -> str:
        """The theorem behind the limit."""

    def admit_after(self, used: Mapping[str, int], release: Mechanism) -> dict[str, int]:
        """How much of the limit is used after `release`; raises BudgetExceeded if that would exceed it."""

    def whole(self) -> Mechanism:
        """One mechanism that covers everything that may be released."""


class EarlierReleases(Protocol):
    """What earlier programs released from the same sample (accounting/sample_ledger.py)."""

    @property
    def releases(self) -> int:
        """How many releases were made from the sample before."""

    @property
    def has_claims(self) -> bool:
        """Whether the privacy of one of them was declared by the caller."""

    @property
    def has_functions(self) -> bool:
        """Whether the sensitivity of one of them was declared by the caller."""

    @property
    def assumes(self) -> tuple[str, ...]:
        """What their mechanisms assume."""


class Payment(Protocol):
    """A budget's record of one sample: every release is written to it."""

    @property
    def past(self) -> EarlierReleases:
        """What was released before, by other programs."""

    def record(self, mechanism: Mechanism, number: int, limit: "Limit | None", *, claimed: bool, trusted: bool) -> None:
        """Record release `number` (from 0) durably before its noise is drawn, or refuse it."""

    def commit(self) -> None:
        """Record that the answer was returned."""


class BudgetLike(Protocol):
    """What a sample needs from a budget (accounting/budget.py)."""

    @property
    def neighbors(self) -> Neighbors:
        """The relation that the budget's limit is stated for."""

    def pay_for_sample(
        self,
        release: Guarantee,
        *,
        draw: bytes,
        terms: Mapping[str, Any],
        note: str = "",
        delta: float | None = None,
        key: bytes | None = None,
        certificate: Mapping[str, Any] | None = None,
        again: bool = True,
    ) -> Payment:
        """Set the cost aside durably, or continue a sample that was paid for under the same terms."""

    def reserve(
        self,
        release: Guarantee,
        *,
        note: str = "",
        delta: float | None = None,
        draw: bytes | None = None,
        key: bytes | None = None,
        job: str = "",
        certificate: Mapping[str, Any] | None = None,
    ) -> Any:
        """Set the cost aside durably; as a context it is spent on entry."""


@dataclass(slots=True)
class Ledger:
    """Every mechanism run on one sample, in order; a `plan` or a `filter` is set before the first of them."""

    plan: tuple[Mechanism, ...] | None = None
    filter: Limit | None = None
    payment: Payment | None = field(default=None, repr=False)
    has_claims: bool = False  # something was run whose privacy the caller declared
    has_functions: bool = False  # a function was released whose sensitivity the caller declared
    functions: bool = True  # whether functions may be released, and procedures run
    is_closed: bool = False  # a budget refused the charge: nothing more is released
    past_assumes: tuple[str, ...] = ()  # of releases by earlier programs, where a limit was continued
    _entries: list[Mechanism] = field(default_factory=list)
    _used: dict[str, int] = field(default_factory=dict, repr=False)  # of the filter's limit
    _process: int = field(default_factory=os.getpid, repr=False)
    _lock: threading.Lock = field(default_factory=threading.Lock, repr=False, compare=False)

    @property
    def entries(self) -> tuple[Mechanism, ...]:
        """What was run so far."""
        return tuple(self._entries)

    def declare(self, mechanisms: Iterable[Mechanism], functions: bool = True) -> None:
        """Fix the whole plan before the first release, which allows the tightest composition."""
        plan = tuple(mechanisms)
        with self._lock:
            self._check_unused("a plan must be declared")
            self.plan, self.functions = plan, functions

    def limit(self, filter: Limit, functions: bool = True) -> None:
        """Set the limit of adaptively chosen releases."""
        if filter.neighbors.records > 1:
            raise InvalidInput(
                f"the limit of a sample is stated for one record, got {filter.neighbors}; "
                "ask the sample's guarantee for persons instead"
            )
        with self._lock:
            self._check_unused("a limit must be set")
            self.filter, self.functions = filter, functions

    def pay(self, reserve: Callable[[], Payment]) -> None:
        """Charge everything this sample may release, once. A refused charge closes the sample."""
        with self._lock:
            self._check_open()
            if self.plan is None and self.filter is None:
                raise InvalidInput("a sample is charged as a whole: declare its plan or set its limit first")
            if self._entries or self.payment is not None:
                raise InvalidInput("a sample must be charged once and before its first release")
            self.is_closed = True  # until the charge succeeds
            self.payment = reserve()
            self._continue(self.payment.past)
            self.is_closed = False

    def _continue(self, past: EarlierReleases) -> None:
        """Continue after what earlier programs released from the same sample."""
        self.has_claims |= past.has_claims
        self.has_functions |= past.has_functions
        self.past_assumes = past.assumes
        if self.plan is not None:
            self._entries.extend(self.plan[: past.releases])

    def terms(self) -> dict[str, Any]:
        """The plan or the limit in words, the same in every program that states it."""
        plan = None if self.plan is None else [in_words(mechanism) for mechanism in self.plan]
        known: dict[str, Any] = {"limit": in_words(self.filter)} if plan is None else {"plan": plan}
        return known if self.functions else known | {"functions": False}

    def register(self, mechanism: Mechanism, *, claimed: bool = False, trusted: bool = False) -> int:
        """Register the mechanism before its noise is drawn; returns how many there are now."""
        with self._lock:
            self._check_open()
            if (claimed or trusted) and not self.functions:
                raise InvalidInput(
                    "functions=False was declared for this sample; release arrays, or declare it without that"
                )
            number = len(self._entries)
            if self.plan is not None and (number >= len(self.plan) or self.plan[number] != mechanism):
                raise InvalidInput(_not_planned(number, len(self.plan), mechanism))
            used = self._used if self.filter is None else self.filter.admit_after(self._used, mechanism)
            if self.payment is not None:
                self.payment.record(mechanism, number, self.filter, claimed=claimed, trusted=trusted)
            self.has_claims |= claimed
            self.has_functions |= trusted
            self._entries.append(mechanism)
            self._used = used
            return number + 1

    @property
    def is_used_up(self) -> bool:
        """Whether nothing can be released any more: every mechanism of the plan was run."""
        return self.plan is not None and len(self._entries) >= len(self.plan) and not self.is_closed

    def total(self) -> "Finished":
        """What is kept of a ledger that is used up."""
        return Finished(self.plan or (), self.has_claims, self.has_functions, self.functions, self.past_assumes)

    def _check_unused(self, what: str) -> None:
        self._check_process()
        if self._entries or self.plan is not None or self.filter is not None:
            raise InvalidInput(f"{what} once and before the first release from a sample")

    def _check_open(self) -> None:
        self._check_process()
        if self.is_closed:
            raise InvalidInput("a budget refused the charge for this sample, so it is closed; draw a fresh sample")

    def _check_process(self) -> None:
        if self._process != os.getpid():
            raise InvalidInput(
                "a sample's ledger belongs to the process that opened it, and this is a fork of it; "
                "release in that process, or draw a fresh sample here"
            )


def _not_planned(number: int, planned: int, mechanism: Mechanism) -> str:
    """Why a release is refused that the declared plan does not have next."""
    if number >= planned:
        return (
            f"this sample has given all answers of its declared plan, {planned} release{'s' if planned > 1 else ''}, "
            "and gives no more; ask everything at once, or draw a fresh sample"
        )
    return (
        f"release {number + 1} is {mechanism}, which the declared plan does not have there; "
        "follow the plan or draw a fresh sample"
    )


@dataclass(frozen=True, slots=True)
class Finished:
    """What is left of a ledger whose plan is used up: its total. Samples with the same releases share one."""

    plan: tuple[Mechanism, ...]
    has_claims: bool = False
    has_functions: bool = False
    functions: bool = True
    past_assumes: tuple[str, ...] = ()
    filter: None = None
    payment: None = None

    @property
    def entries(self) -> tuple[Mechanism, ...]:
        """What was run."""
        return self.plan

    def declare(self, mechanisms: Iterable[Mechanism], functions: bool = True) -> None:
        """Refuse: a finished sample cannot be changed."""
        raise InvalidInput("a plan must be declared once and before the first release from a sample")

    def limit(self, filter: Limit, functions: bool = True) -> None:
        """Refuse: a finished sample cannot be changed."""
        raise InvalidInput("a limit must be set once and before the first release from a sample")

    def pay(self, reserve: Callable[[], Payment]) -> None:
        """Refuse: a finished sample has nothing left to charge."""
        raise InvalidInput("a sample must be charged once and before its first release")

    def register(self, mechanism: Mechanism, *, claimed: bool = False, trusted: bool = False) -> int:
        """Refuse: a finished sample answers nothing more."""
        raise InvalidInput(_not_planned(len(self.plan), len(self.plan), mechanism))

    def terms(self) -> dict[str, Any]:
        """Refuse: a finished sample has no terms left to agree on."""
        raise InvalidInput("a sample must be charged once and before its first release")


class Registry:
    """Every draw of this process from which something was released."""

    def __init__(self) -> None:
        self._known: dict[bytes, Ledger | Finished] = {}
        self._totals: dict[Finished, Finished] = {}
        self._lock = threading.Lock()

    def __len__(self) -> int:
        return len(self._known)

    def find(self, draw: bytes) -> Ledger | Finished | None:
        """The ledger of a draw that was used before."""
        return self._known.get(draw)

    def opened(self, draw: bytes, unused: Ledger) -> Ledger | Finished:
        """The ledger of a draw; `unused` if nothing was released from it so far."""
        return self._known.setdefault(draw, unused)

    def settle(self, draw: bytes) -> None:
        """Keep only the total of a ledger whose plan is used up."""
        with self._lock:
            ledger = self._known.get(draw)
            if isinstance(ledger, Ledger) and ledger.is_used_up:
                total = ledger.total()
                self._known[draw] = self._totals.setdefault(total, total)

    def claim(self, draw: bytes, job: str) -> None:
        """Reserve a draw as a whole, once: for jobs that certify all their rounds beforehand."""
        with self._lock:
            if draw in self._known:
                raise InvalidInput(_REUSED.format(job=job))
            self._known[draw] = self._totals.setdefault(Finished(()), Finished(()))

    def clear(self) -> None:
        """Forget everything, like a new process: for tests."""
        self._known.clear()
        self._totals.clear()

    @contextmanager
    def set_aside(self) -> Iterator[None]:
        """Start with an empty registry, then restore it: for checks that repeat a job."""
        known, self._known = self._known, {}
        try:
            yield
        finally:
            self._known = known


REGISTRY = Registry()


def check_budget(budget: Any) -> None:
    """Raise unless this is a budget, before anything is drawn or charged."""
    if not hasattr(budget, "pay_for_sample"):
        raise InvalidInput(
            f"budget must be a Budget, got a {type(budget).__name__} instead; open its file with Budget.open(path)"
        )


@contextmanager
def whole_job(
    job: str,
    key: Key,
    certify: Callable[[Neighbors | None], Guarantee],
    budget: BudgetLike | None = None,
    delta: float | None = None,
) -> Iterator[Callable[[Guarantee], None]]:
    """Context for a job that draws many times with one key and is certified as a whole before its first draw.

    Yields a function that takes the final guarantee, if more is known at the end; the budget's entry then shows the
    certificate of that guarantee instead of the one that was charged. The job's identity is put into the registry, so
    that the key draws only once for this job. The budget is charged once, with the certificate and that identity; if it
    refuses, nothing was drawn and the key is still fresh. Test keys may draw again, and no budget counts them.
    """
    draw = key.subkey("job", job).fingerprint
    paid = None
    if budget is not None:
        check_budget(budget)
        guarantee = certify(budget.neighbors)
        if key.is_test:
            guarantee = replace(guarantee, assumes=(*guarantee.assumes, NOT_PRIVATE))
        facts: dict[str, Any] = {"draw": draw, "key": key.fingerprint, "certificate": certificate_of(guarantee, delta)}
        paid = budget.reserve(guarantee, note=job, job=job, delta=delta, **facts)
    try:
        if not key.is_test:
            REGISTRY.claim(draw, job)
    except InvalidInput:
        if paid is not None:
            paid.cancel("the key was used before")
        raise
    with paid or nullcontext():
        yield lambda done: None if paid is None else paid.describe(certificate_of(done, delta))


def certificate_of(guarantee: Guarantee, delta: float | None = None) -> dict[str, Any]:
    """The certificate of a charge: at this delta, or pure, or at epsilon 1 if neither is finite."""
    is_pure = math.isfinite(guarantee.epsilon())
    asked = {"delta": delta} if delta else {} if is_pure else {"epsilon": 1.0}
    found: dict[str, Any] = guarantee.to_json(**asked)["certificate"]
    return found
