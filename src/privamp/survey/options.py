"""The public choices of an estimate, checked once.

Every field is also a keyword of `estimate`.
"""

from dataclasses import dataclass
from typing import Any, TypedDict

from numpy.typing import ArrayLike

from ..errors import InvalidInput
from ..mechanisms.fixed_point import ExactGaussian, ExactLaplace
from ..mechanisms.gaussian import Gaussian
from ..mechanisms.laplace import Laplace
from ..validation import in_range, one_of, positive

Declared = Laplace | Gaussian | ExactLaplace | ExactGaussian


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class EstimateOptions:
    """The public choices of an estimate, and the columns of the draw that need not be given again."""

    bounds: Any = None  # (lowest, highest), a number, or one of them per stratum
    epsilon: float | None = None
    delta: float = 0.0
    noise: str = "laplace"
    mechanism: Declared | None = None  # noise as it is, instead of epsilon
    by: ArrayLike | None = None
    groups: Any = None
    population: Any = None  # the public number of records, or one per stratum
    weights: str = "horvitz-thompson"
    sd: Any = None
    variance_share: float = 0.2
    stratum: ArrayLike | None = None
    cluster: ArrayLike | None = None
    probability: ArrayLike | None = None
    label: str | None = None  # names the data set that a design draws from; a stored key needs it
    design_effect: bool = False  # whether to release it too, from `variance_share`

    def __post_init__(self) -> None:
        one_of(("horvitz-thompson", "hajek"), weights=self.weights)
        in_range(0, 1, open_ends=True, variance_share=self.variance_share)
        if self.bounds is None:
            raise InvalidInput(
                "bounds must be two public numbers (lowest, highest) between which the values lie, got none instead"
            )
        if (self.epsilon is None) == (self.mechanism is None):
            raise InvalidInput("estimate needs either epsilon (noise is calibrated) or mechanism (noise is declared)")
        if self.epsilon is not None:
            positive(epsilon=self.epsilon)
        if self.groups is not None and self.by is None:
            raise InvalidInput("groups= needs by=, the column with each record's group")

    @property
    def share(self) -> float:
        """Of the budget, for the sampling error."""
        return self.variance_share if self.sd is None else 0.0

    @property
    def law(self) -> str:
        """Of the noise, "laplace" or "gaussian"."""
        if self.mechanism is None:
            return self.noise
        return "laplace" if isinstance(self.mechanism, (Laplace, ExactLaplace)) else "gaussian"

    @property
    def columns(self) -> dict[str, Any]:
        """The columns of the draw, where they are given again."""
        return {"stratum": self.stratum, "cluster": self.cluster, "probability": self.probability}


class EstimateKeywords(TypedDict, total=False):
    """The fields of `EstimateOptions`, as keywords of a call."""

    bounds: Any
    epsilon: float | None
    delta: float
    noise: str
    mechanism: Declared | None
    by: ArrayLike | None
    groups: Any
    population: Any
    weights: str
    sd: Any
    variance_share: float
    stratum: ArrayLike | None
    cluster: ArrayLike | None
    probability: ArrayLike | None
    label: str | None
    design_effect: bool
