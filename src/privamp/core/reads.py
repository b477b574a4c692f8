"""What a design reads of a record besides its id, so that every engine can find it, check its type and cut it."""

import math
from dataclasses import dataclass
from typing import Any, Protocol

from numpy.typing import ArrayLike

from ..numerics.log_domain import FloatArray
from .influence import Influence


class RuleLike(Protocol):
    """An importance rule (rules/rule.py): what engines and jobs need of one."""

    @property
    def radius(self) -> float | None:
        """Every record is clipped to a ball of this radius; None: there is none."""

    @property
    def p(self) -> float:
        """Which norm decides."""

    @property
    def farthest(self) -> float | None:
        """The largest norm of the domain, or None where it is not known."""

    @property
    def influence(self) -> Influence | None:
        """Where the norm is all that counts."""

    def norms(self, records: Any) -> FloatArray:
        """What the rule measures of every record."""

    def weights(self, records: Any) -> FloatArray:
        """One over the chance of every record."""

    def weights_of_norms(self, norms: ArrayLike) -> FloatArray:
        """The same for records of these norms."""


@dataclass(frozen=True, slots=True)
class Numbers:
    """Numbers of a public range: an engine may cut them to it, and what is missing counts as 0 before that."""

    low: float = -math.inf
    high: float = math.inf


@dataclass(frozen=True, slots=True)
class Labels:
    """Whole numbers or text; where the public list of them is given, no engine draws a record with another one."""

    names: tuple[str | int, ...] | range | None = None
    as_text: bool = False  # a whole number is meant as its text
    are_alike: bool = False  # the design treats all of them alike, so that it does not matter which has which number


@dataclass(frozen=True, slots=True)
class Vectors:
    """The record itself, as an importance rule looks at it: one number or several."""

    rule: RuleLike


Read = Numbers | Labels | Vectors
