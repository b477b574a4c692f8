"""The public choices of an adjusted estimate, checked once.

Every field is also a keyword of `adjust`.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, TypedDict

from numpy.typing import ArrayLike

from ..errors import InvalidInput
from ..validation import in_range, one_of, positive


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class AdjustOptions:
    """The public choices of an adjusted estimate, and the columns of the draw that need not be given again."""

    bounds: Any = None  # (lowest, highest), or a number; one per question, per stratum, or {question: {stratum: pair}}
    epsilon: float | None = None
    delta: float = 0.0
    noise: str = "laplace"
    classes: ArrayLike | None = None  # a column: respondents represent the people of their class
    class_sizes: Mapping[Any, float] | list[Any] | None = None  # public sizes, or names where sizes are secret
    margins: Mapping[str, Any] | None = None  # {name: (column, {category: public total})}
    domain: ArrayLike | None = None  # a column: one estimate for every name in `domains`
    domains: Any = None
    denominator: ArrayLike | None = None  # of a ratio
    denominator_bounds: Any = None
    population: Any = None  # the public number of records, or one per stratum
    variance_share: float = 0.2
    stratum: ArrayLike | None = None
    cluster: ArrayLike | None = None
    probability: ArrayLike | None = None
    label: str | None = None  # names the data set that a design draws from; a stored key needs it
    design_effect: bool = False  # whether to release it too, from `variance_share`

    def __post_init__(self) -> None:
        in_range(0, 1, open_ends=True, variance_share=self.variance_share)
        one_of(("laplace", "gaussian"), noise=self.noise)
        if self.bounds is None:
            raise InvalidInput(
                "bounds must be two public numbers (lowest, highest) between which the values lie, got none instead"
            )
        if self.epsilon is None:
            raise InvalidInput("adjust needs epsilon, the privacy loss of the release")
        positive(epsilon=self.epsilon)
        if (self.domain is None) != (self.domains is None):
            raise InvalidInput("domain= is a column, and domains= the public list of its names: give both or none")
        if (self.denominator is None) != (self.denominator_bounds is None):
            raise InvalidInput("a ratio needs denominator= and its public denominator_bounds=: give both or none")
        if self.classes is not None and self.margins is not None:
            raise InvalidInput("give the classes as one of the margins, with their public totals; or omit margins")
        if self.class_sizes is not None and self.classes is None:
            raise InvalidInput("class_sizes= needs classes=, the column with each record's class")

    @property
    def columns(self) -> dict[str, Any]:
        """The columns of the draw, where they are given again."""
        return {"stratum": self.stratum, "cluster": self.cluster, "probability": self.probability}


class AdjustKeywords(TypedDict, total=False):
    """The fields of `AdjustOptions`, as keywords of a call."""

    bounds: Any
    epsilon: float | None
    delta: float
    noise: str
    classes: ArrayLike | None
    class_sizes: Mapping[Any, float] | list[Any] | None
    margins: Mapping[str, Any] | None
    domain: ArrayLike | None
    domains: Any
    denominator: ArrayLike | None
    denominator_bounds: Any
    population: Any
    variance_share: float
    stratum: ArrayLike | None
    cluster: ArrayLike | None
    probability: ArrayLike | None
    label: str | None
    design_effect: bool
