"""A theorem: what it needs from the mechanism, what it gives, and how to evaluate it."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from ..errors import NoTheorem
from .mechanism import Mechanism
from .neighbors import Kind, Neighbors
from .profile import Profile


def _always(mechanism: Mechanism) -> bool:
    return True


@dataclass(frozen=True, slots=True)
class Theorem:
    """One proved statement about one design.

    `bound(design, mechanism, neighbors)` returns an upper bound on the profile of the release.

    `name` and `cite` are what `Guarantee.because` prints. `needs` and `gives` are the relations of the mechanism's
    profile and of the result. `tight` says that some mechanism reaches the bound. `applies(mechanism)` restricts it,
    for example to Gaussian noise, and `scope` to replacements "within stratum" or "within cluster". `groups`: `bound`
    handles a person with several records itself; `people`: it is about such persons only; `of_parts`: the designs of
    the strata say what they need; `settles`: no other theorem can be better, so none is evaluated; `searches`: a
    program is solved for every number, so searches leave it out if another theorem applies.
    """

    name: str
    cite: str
    needs: Kind  # relation in which the mechanism's profile is used
    gives: Kind  # relation of the result
    tight: bool  # exact: reached by some mechanism it applies to (for pure ones, what the linear program finds)
    bound: Callable[[Any, Mechanism, Neighbors], Profile]
    applies: Callable[[Mechanism], bool] = _always
    scope: str = "anywhere"  # where the replaced record may move: "within stratum", "within cluster"
    groups: bool = False  # `bound` itself handles a person with several records
    people: bool = False  # about people with several records alone
    of_parts: bool = False  # the theorems of the strata's designs state their own needs
    settles: bool = False  # exact for every mechanism it applies to: no other theorem is evaluated
    searches: bool = False  # solves a program, which is slow

    def speaks_of(self, neighbors: Neighbors) -> bool:
        """Whether it covers the relation; a theorem about all replacements covers those within a stratum too."""
        if self.people and neighbors.records == 1:
            return False
        return self.gives == neighbors.kind and self.scope in ("anywhere", neighbors.scope)

    def check_needs(self, mechanism: Mechanism) -> None:
        """Raise NoTheorem unless the mechanism's profile is known under the relation that the proof uses."""
        if self.needs == "add-remove" != mechanism.neighbors.kind and not self.of_parts:
            raise NoTheorem(
                f"{type(mechanism).__name__} is stated for replace-one neighbours, which says nothing about "
                "add-remove; state its sensitivity with neighbors=Neighbors.ADD_REMOVE"
            )

    def covers(self, mechanism: Mechanism, neighbors: Neighbors) -> bool:
        """Whether it may be used: it covers the relation, its needs are met, and it applies to the mechanism. Raises
        NoTheorem, with the reason, if it covers the relation but its needs are not met.
        """
        if not self.speaks_of(neighbors):
            return False
        self.check_needs(mechanism)
        return self.applies(mechanism)

    @property
    def relation(self) -> str:
        """What it gives, in words: with the scope of a replaced record."""
        return self.gives if self.scope == "anywhere" else f"{self.gives} {self.scope}"

    def __str__(self) -> str:
        return f"{self.name} [{self.needs} → {self.relation}] ({self.cite})"
