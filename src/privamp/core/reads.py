"""What a design reads of a record besides its id, so that every engine can find it, check its type and clip it."""

import math
from dataclasses import dataclass
from typing import Any, Protocol

from numpy.typing import ArrayLike

from ..numerics.log_domain import FloatArray
from .influence import Influence


class RuleLike(Protocol):
    """What engines and jobs need from an importance rule (rules/rule.py)."""

    @property
    def radius(self) -> float | None:
        """Every record is clipped to a ball of this radius; None: there is none."""

    @property
    def p(self) -> float:
        """The norm that the rule uses."""

    @property
    def farthest(self) -> float | None:
        """The largest norm of the domain, or None where it is not known."""

    @property
    def influence(self) -> Influence | None:
        """The influence that the rule is made for, if only the norm matters."""

    def norms(self, records: Any) -> FloatArray:
        """The norm of every record."""

    def weights(self, records: Any) -> FloatArray:
        """One over the chance of every record."""

    def weights_of_norms(self, norms: ArrayLike) -> FloatArray:
        """The same for records of these norms."""


@dataclass(frozen=True, slots=True)
class Numbers:
    """Numbers in a public range: engines clip them to it, and missing ones count as 0 before that."""

    low: float = -math.inf
    high: float = math.inf


@dataclass(frozen=True, slots=True)
class Labels:
    """Whole numbers or text; if their public list is given, no engine draws a record with another one."""

    names: tuple[str | int, ...] | range | None = None
    as_text: bool = False  # a whole number means its text
    are_alike: bool = False  # the design treats all of them alike, so their numbering does not matter


@dataclass(frozen=True, slots=True)
class Vectors:
    """The record itself, as an importance rule reads it: one number or several."""

    rule: RuleLike


Read = Numbers | Labels | Vectors
