"""The ledger of a sample, kept in the budget's store under the identity of its draw.

A sample is charged once, for a plan or a limit, and may then be used by many programs: the same key, label and round
draw the same people. Every release is one more event of the chain, written before its noise is drawn. A program that
draws the sample again and states the same plan, or the same limit, continues where the last one stopped; whatever was
asked before counts, also by a program that crashed. Other terms are refused, because one charge was certified for them.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from ..core.ledger import Limit
from ..core.mechanism import Mechanism
from ..errors import InvalidInput
from .amounts import Amounts
from .budget_chain import CANCELLED, Event

if TYPE_CHECKING:
    from .budget import Budget

_OTHER_TERMS = (
    "this sample was already charged, here or in another run, for {terms}, and releases from one draw do not simply "
    "add up; declare the same to continue it, or draw with a fresh key or a fresh round"
)


@dataclass(frozen=True, slots=True)
class EarlierReleases:
    """What programs before this one released from a sample."""

    releases: int = 0
    used: tuple[tuple[str, int], ...] = ()  # of a limit, in units of amounts.py
    has_claims: bool = False
    has_functions: bool = False
    assumes: tuple[str, ...] = ()


def earlier_releases(releases: list[Event]) -> EarlierReleases:
    """The sum of a sample's release events, oldest first."""
    told = [event.told for event in releases]
    if not told:
        return EarlierReleases()
    return EarlierReleases(
        releases=len(told),
        used=tuple(told[-1]["used"].items()),
        has_claims=any(fact["claimed"] for fact in told),
        has_functions=any(fact["trusted"] for fact in told),
        assumes=tuple(dict.fromkeys(sentence for fact in told for sentence in fact["assumes"])),
    )


def check_terms(charged: Event, terms: Mapping[str, Any]) -> None:
    """Refuse to continue a sample under other terms than it was charged for."""
    before = charged.told.get("terms")
    if before != dict(terms):
        words = {"plan": "another plan", "limit": "another limit"}
        raise InvalidInput(_OTHER_TERMS.format(terms=words.get(next(iter(before or {}), ""), "other uses")))


class SamplePayment:
    """The payment of a sample: every release is written down under it, in this program and in later ones."""

    __slots__ = ("_budget", "number", "past")

    def __init__(self, budget: "Budget", number: int, past: EarlierReleases) -> None:
        self._budget = budget
        self.number = number
        self.past = past

    def record(
        self, mechanism: Mechanism, number: int, limit: Limit | None, *, claimed: bool = False, trusted: bool = False
    ) -> None:
        """Write release `number` (from 0) down, before its noise is drawn; refuses what another program used up."""

        def facts(releases: int, used: Amounts) -> dict[str, Any]:
            if limit is None and releases != number:
                raise InvalidInput(
                    f"another program has made release {releases} of this sample's plan in the meantime; draw the "
                    "sample again to continue after it"
                )
            if limit is not None:
                used = limit.admit_after(used, mechanism)
            return {
                "release": releases + 1,
                "mechanism": str(mechanism),
                "used": used,
                "claimed": claimed,
                "trusted": trusted,
                "assumes": list(mechanism.assumes),
            }

        self._budget._store.release(self._budget._number, self.number, facts)

    def commit(self) -> None:
        """The answer was given out."""
        self._budget._store.answered(self._budget._number, self.number)

    def cancel(self, reason: str = "") -> None:
        """Give the cost back: possible only while nothing was released."""
        self._budget._store.change(self._budget._number, self.number, CANCELLED, {"reason": reason})

    def __repr__(self) -> str:
        return f"SamplePayment({self._budget.population!r}, entry={self.number})"
