"""What is asked for: the public arguments that a sum and a mean share."""

from dataclasses import dataclass, field

from ..core.design import Design
from ..core.neighbors import Neighbors
from ..errors import InvalidInput
from ..rules.norm_histogram import NormHistogram
from ..rules.rule import Rule
from ..validation import in_range, positive, whole
from .noises import check_noise


@dataclass(frozen=True, slots=True, kw_only=True)
class SumOptions:
    """Checked arguments; nothing here depends on a record."""

    radius: float
    epsilon: float | None = None
    delta: float = 0.0
    noise: str = "laplace"
    sampler: str | Rule | Design | None = None
    sample_size: float | None = None
    scale: float | None = None
    population: int | None = None
    error_share: float = 0.0
    arithmetic: str = ""  # "exact" or "idealised"; by default exact where it is known
    p: float = 2.0  # of norm noise
    neighbors: Neighbors | None = None
    norms: NormHistogram | None = None  # public norms of the records, to size a privacy-constrained sample by
    label: str = field(default="population", repr=False)  # names the data set, as in Population

    def __post_init__(self) -> None:
        positive(radius=self.radius)
        if self.noise == "norm" and self.arithmetic == "exact":
            raise InvalidInput("norm noise is only known in idealised arithmetic; use laplace or gaussian noise")
        known = "idealised" if self.noise == "norm" else "exact"
        object.__setattr__(self, "arithmetic", self.arithmetic or known)
        check_noise(self.noise, self.delta, self.arithmetic, self.p)
        for name in ("epsilon", "scale", "sample_size"):
            if getattr(self, name) is not None:
                positive(**{name: getattr(self, name)})
        if self.population is not None:
            whole(1, population=self.population)
        if self.norms is not None and not isinstance(self.norms, NormHistogram):
            raise InvalidInput(f"norms must be a NormHistogram, got {type(self.norms).__name__} instead")
        in_range(0, 1, error_share=self.error_share)
        if self.neighbors is not None and not isinstance(self.neighbors, Neighbors):
            raise InvalidInput("neighbors must be Neighbors.ADD_REMOVE or Neighbors.REPLACE_ONE")
