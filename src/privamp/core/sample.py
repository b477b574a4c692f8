"""A drawn sample and its ledger. What was drawn is secret; the only ways to get an answer out are `release` and `run`.

A sample drawn with a test key (`SeededSample`) has its own ledger, so that a seed gives the same answers every time.
"""

import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ..chance.keys import Key
from ..chance.stream import Stream
from ..errors import InvalidInput
from ..numerics.log_domain import FloatArray
from .guarantee import Guarantee
from .influence import clipped
from .ledger import REGISTRY, BudgetLike, Finished, Ledger, Limit, Payment, certificate_of, check_budget
from .log import logger
from .mechanism import Mechanism
from .neighbors import Neighbors
from .row_sums import RowBound, checked_center, checked_rows

if TYPE_CHECKING:
    from .design import Design


@dataclass(frozen=True, slots=True)
class Drawn:
    """What a design drew: secret. `positions` index the population's ids.

    Where weights were made for records of certain p-norms, `lengths` are those: nothing longer may get the weight.
    """

    positions: NDArray[np.int64] = field(repr=False)
    counts: NDArray[np.int64] = field(repr=False)
    weights: FloatArray = field(repr=False)
    lengths: FloatArray | None = field(default=None, repr=False)
    p: float = 2.0

    @classmethod
    def joined(cls, parts: Iterable["Drawn"]) -> "Drawn":
        """Several draws joined into one, ordered by position."""
        nobody = np.empty(0, dtype=np.int64)
        several = [cls(nobody, nobody, np.empty(0)), *parts]
        positions = np.concatenate([part.positions for part in several])
        order = np.argsort(positions, kind="stable")
        counts, weights = (np.concatenate([getattr(part, name) for part in several]) for name in ("counts", "weights"))
        return cls(positions[order], counts[order], weights[order], *_lengths(several, order))

    def fitted(self, kept: ArrayLike) -> NDArray[Any]:
        """One row per kept record, each shortened to the length that its weight was made for."""
        rows = np.asarray(kept)
        if self.lengths is None:
            return rows
        if rows.dtype.kind not in "biuf":
            raise InvalidInput(f"rows must be numbers, one row per record, got {rows.dtype} instead")
        flat = rows if rows.ndim == 1 else rows.reshape(len(rows), math.prod(rows.shape[1:]))
        return clipped(flat, self.lengths, self.p).reshape(rows.shape)


def _lengths(parts: list[Drawn], order: NDArray[np.intp]) -> tuple[FloatArray | None, float]:
    """Lengths of all parts in one norm: the smallest p of them, because a p-norm falls as p grows."""
    p = min((part.p for part in parts if part.lengths is not None), default=2.0)
    if all(part.lengths is None for part in parts):
        return None, p
    free = [np.full(part.positions.size, np.inf) if part.lengths is None else part.lengths for part in parts]
    return np.concatenate(free)[order], p


@dataclass(frozen=True, slots=True)
class Bounded:
    """A statistic whose sensitivity holds by construction: each record's part is clipped inside it.

    For jobs that `privamp.verify.check_release` checks; they add no assumption.
    """

    statistic: Callable[[Any], Any]

    def __call__(self, drawn: Any) -> Any:
        """The statistic of what was drawn."""
        return self.statistic(drawn)


class Sample:
    """Records drawn by a design. Indices, counts, weights and the realised size are secret.

    `design.draw(population, key)` makes one; `release`, `run` and `guarantee` are the ways to use it. `ids` are those
    of the whole population, `drawn` says which of them are in the sample and how often, `columns` are what the design
    read. `key` is the draw's own key, and `key_id` the fingerprint of the key it was made from. Every release from one
    draw is registered under its key before noise is added, so the guarantee covers all of them.
    """

    __slots__ = ("_columns", "_drawn", "_ids", "_key", "_key_id", "_unused", "design")

    def __init__(
        self, design: "Design", ids: NDArray[Any], drawn: Drawn, key: Key, key_id: bytes | None = None, **columns: Any
    ) -> None:
        self.design = design
        self._columns = columns  # of the population, as the design read them
        self._ids, self._drawn = ids, drawn
        self._key = key
        self._key_id = key_id  # the fingerprint of the key that this draw's own key comes from
        self._unused = Ledger()

    @property
    def ledger(self) -> Ledger | Finished:
        """What was released from this sample so far, through this object or another one of the same draw."""
        return REGISTRY.find(self._key.fingerprint) or self._unused

    def _opened_ledger(self) -> Ledger | Finished:
        return REGISTRY.opened(self._key.fingerprint, self._unused)

    def _check_scopes(self, *mechanisms: Mechanism) -> None:
        """Raise NoTheorem before anything is released that the design cannot certify."""
        for mechanism in mechanisms:
            mechanism.check_scope(self.design.keeps_apart)

    def declare(self, mechanisms: Iterable[Mechanism], *, functions: bool = True) -> "Sample":
        """Declare every mechanism that will be run on this sample; returns the sample.

        Until the plan is used up, the guarantee assumes what a released function would need; `functions=False` rejects
        functions instead.
        """
        plan = tuple(mechanisms)
        self._check_scopes(*plan)
        self._opened_ledger().declare(plan, functions)
        return self

    def limit(self, filter: Limit, *, functions: bool = True) -> "Sample":
        """Set a limit for adaptively chosen releases, by a filter; returns the sample.

        A release that would exceed the limit raises BudgetExceeded before any noise is drawn. The guarantee is that of
        the limit, however much of it was used; `functions` as in `declare`.
        """
        self._check_scopes(filter.whole())
        self._opened_ledger().limit(filter, functions)
        return self

    def charge(self, budget: BudgetLike, *, note: str = "", delta: float | None = None) -> "Sample":
        """Charge a `Budget` for everything the plan or the limit allows, amplified once; returns the sample.

        If the budget refuses, nothing more is released from this sample. A sample that an earlier program charged to
        the same budget is not charged again: declared with the same plan or limit, it continues where it stopped.
        """
        check_budget(budget)
        ledger = self._opened_ledger()

        def reserve() -> Payment:
            whole = self.guarantee(budget.neighbors)
            return budget.pay_for_sample(
                whole, draw=self._key.fingerprint, terms=ledger.terms(), note=note, delta=delta, key=self._key_id,
                certificate=certificate_of(whole, delta),
            )  # fmt: skip

        ledger.pay(reserve)
        return self

    def release(
        self,
        mechanism: Mechanism,
        statistic: Callable[[Drawn], Any] | ArrayLike,
        *,
        center: ArrayLike | None = None,
    ) -> Any:
        """Register the mechanism, compute the statistic on the sample, add noise.

        `statistic` is an array with one row per record of the population, or a function of the secret `Drawn`. The sum
        of an array over the sample is released: every row is clipped to the mechanism's sensitivity in its own norm
        (and to what an importance rule looked at), missing entries (NaN, masked) count as 0, and the rows are added up
        exactly. Under a mechanism stated for replaced records, rows are clipped to half its sensitivity around the
        public `center` of their range.

        A function is trusted code: that its sensitivity is the declared one becomes an assumption of the guarantee, and
        whatever it stores of its argument, or prints in an error, is outside the guarantee.
        """
        if callable(statistic):
            bounded = isinstance(statistic, Bounded)
            return self._registered(
                mechanism, lambda stream: mechanism.release(statistic(self._drawn), stream), trusted=not bounded
            )
        bound = mechanism.row_bound
        rows = checked_rows(bound, type(mechanism).__name__, statistic, self._ids.size)
        assert bound is not None  # checked_rows refuses that
        middle = checked_center(bound, rows, center)
        return self._registered(
            mechanism, lambda stream: mechanism.release(self._sum(mechanism, bound, rows, middle), stream)
        )

    def _planned(
        self, mechanisms: Iterable[Mechanism], budget: BudgetLike | None, note: str, delta: float | None = None
    ) -> "Sample":
        """For jobs: declare everything that will be released (no functions) and charge it; returns the sample."""
        self.declare(mechanisms, functions=False)
        return self if budget is None else self.charge(budget, note=note, delta=delta)

    def _hand_out(self, mechanism: Mechanism) -> Drawn:
        """Register `mechanism` and pass the drawn records to a job that adds its own noise where the data are (a
        GPU)."""
        self._registered(mechanism, None)
        return self._drawn

    def run(self, mechanism: Mechanism, procedure: Callable[[Drawn, Stream], Any]) -> Any:
        """Register `mechanism`, then run your own `procedure(drawn, stream)`, which must be as private as the mechanism
        says.

        For procedures that privamp does not know, mostly as PureDP(epsilon) or ApproxDP(epsilon, delta). The guarantee
        lists this declaration among its assumptions.
        """
        return self._registered(mechanism, lambda stream: procedure(self._drawn, stream), claimed=True)

    def _registered(
        self,
        mechanism: Mechanism,
        work: Callable[[Stream], Any] | None,
        *,
        claimed: bool = False,
        trusted: bool = False,
    ) -> Any:
        self._check_scopes(mechanism)
        ledger = self._opened_ledger()
        number = ledger.register(mechanism, claimed=claimed, trusted=trusted)
        logger.info("release %d from a sample by %s: %s", number, self.design, mechanism)
        answer = work(self._noise(number)) if work is not None else None
        if ledger.payment is not None:
            ledger.payment.commit()
        REGISTRY.settle(self._key.fingerprint)
        return answer

    def _noise(self, number: int) -> Stream:
        return Stream(self._key.subkey("noise", number)) if self._key.is_test else Stream.from_os()

    def guarantee(self, neighbors: Neighbors | None = None) -> Guarantee:
        """The guarantee of all releases from this sample: composed inside it, then amplified once."""
        from ..amplification import (
            certify_ledger,
        )  # against the import direction: a sample certifies itself

        found = certify_ledger(self.ledger, self.design, neighbors, is_test=self._key.is_test)
        return replace(found, draws=frozenset([self._key.fingerprint]))

    def reveal_secret(self) -> Drawn:
        """The drawn positions, counts and weights, for code that does its own accounting."""
        logger.warning("a sample by %s was opened outside its ledger", self.design)
        return self._drawn

    def _sum(self, mechanism: Mechanism, bound: RowBound, rows: NDArray[Any], center: FloatArray | None) -> Any:
        drawn = self._drawn
        kept = drawn.fitted(rows[drawn.positions])
        own: Callable[[NDArray[Any], Drawn], Any] | None = getattr(mechanism, "total", None)
        return bound.total(kept, drawn, center) if own is None else own(kept, drawn)

    def __repr__(self) -> str:
        return f"{type(self).__name__}(design={self.design}, releases={len(self.ledger.entries)}, contents=secret)"

    def __reduce__(self) -> Any:
        raise InvalidInput(f"a {type(self).__name__} is secret and cannot be pickled; keep the key and draw it again")


class SeededSample(Sample):
    """A sample drawn with a test key. NOT PRIVATE, as its key says."""

    __slots__ = ()

    @classmethod
    def of(cls, sample: Sample) -> "SeededSample":
        """The same draw, with a new ledger."""
        return cls(sample.design, sample._ids, sample._drawn, sample._key, sample._key_id, **sample._columns)

    @classmethod
    def if_test(cls, sample: Sample) -> Sample:
        """A `SeededSample` if the key is a test key, else the sample itself."""
        return cls.of(sample) if sample._key.is_test else sample

    @property
    def ledger(self) -> Ledger:
        """Only what was released through this object."""
        return self._unused

    def _opened_ledger(self) -> Ledger:
        return self._unused
