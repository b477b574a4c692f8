"""The public arguments that sums and means share, and the noise that they name.

Noise is "laplace" (records measured in l1), "gaussian" (l2) or "norm" (l_p, of which only an idealised version is
known).
"""

import math
from dataclasses import InitVar, dataclass, field
from typing import Any

import numpy as np
from scipy.special import gammaln

from ..core.bounds import is_number, pairs_of
from ..core.design import Design
from ..core.mechanism import Mechanism
from ..core.neighbors import Neighbors, check_relation
from ..core.release import renamed
from ..errors import InvalidInput
from ..mechanisms.fixed_point import ExactGaussian, ExactLaplace
from ..mechanisms.gaussian import Gaussian
from ..mechanisms.laplace import Laplace
from ..mechanisms.norm_noise import NormNoise
from ..numerics.log_domain import FloatArray
from ..numerics.row_norms import clipped, norms
from ..rules.norm_histogram import NormHistogram
from ..rules.rule import Rule
from ..validation import in_range, one_of, positive, whole

NOISES = ("laplace", "norm", "gaussian")


@dataclass(frozen=True, slots=True, kw_only=True)
class SumOptions:
    """Checked arguments; nothing here depends on a record."""

    bounds: Any = None
    epsilon: float | None = None
    delta: float = 0.0
    noise: str = "laplace"
    sampler: str | Rule | Design | None = None
    sample_size: float | None = None
    scale: float | None = None  # of the noise in the answer
    population: int | None = None
    error_share: float = 0.0
    arithmetic: str = ""  # "exact" or "idealised"; by default exact where it is known
    p: float = 2.0  # of norm noise
    neighbors: Neighbors | None = None
    norms: NormHistogram | None = None  # public norms of the records, to size a privacy-constrained sample by
    label: str | None = field(default=None, repr=False)  # of the data set, as in Population; a stored key needs it
    radius: InitVar[float | None] = None  # the old name of a number as bounds

    def __post_init__(self, radius: float | None) -> None:
        if radius is not None and self.bounds is None:
            renamed("radius", "bounds", 4)
            object.__setattr__(self, "bounds", radius)
        if self.bounds is None:
            raise InvalidInput(
                "bounds must be a number (the largest norm of a record) or a public range (lowest, highest), got "
                "none instead"
            )
        several = isinstance(self.bounds, (list, tuple, np.ndarray)) and np.ndim(self.bounds) > 0
        pairs_of(self.bounds, len(self.bounds) if several else 1)
        if self.noise == "norm" and self.arithmetic == "exact":
            raise InvalidInput("norm noise is only known in idealised arithmetic; use laplace or gaussian noise")
        known = "idealised" if self.noise == "norm" else "exact"
        object.__setattr__(self, "arithmetic", self.arithmetic or known)
        self._check_together()
        for name in ("epsilon", "scale", "sample_size"):
            if getattr(self, name) is not None:
                positive(**{name: getattr(self, name)})
        if self.population is not None:
            whole(1, population=self.population)
        if self.norms is not None and not isinstance(self.norms, NormHistogram):
            raise InvalidInput(f"norms must be a NormHistogram, got {type(self.norms).__name__} instead")
        in_range(0, 1, error_share=self.error_share)
        if self.neighbors is not None:
            check_relation(self.neighbors)

    def _check_together(self) -> None:
        """Check that the arguments fit together."""
        one_of(NOISES, noise=self.noise)
        one_of(("exact", "idealised"), arithmetic=self.arithmetic)
        in_range(0, 1, delta=self.delta)
        in_range(1, math.inf, p=self.p)
        if self.noise == "gaussian" and not 0 < self.delta < 1:
            raise InvalidInput(f"delta must be strictly between 0 and 1 for gaussian noise, got {self.delta!r} instead")
        if self.noise != "gaussian" and self.delta:
            raise InvalidInput(f"delta must be 0 for {self.noise} noise, got {self.delta!r} instead")

    @property
    def norm(self) -> float:
        """The norm in which records are clipped and measured."""
        return {"laplace": 1.0, "gaussian": 2.0}.get(self.noise, self.p)

    @property
    def is_exact(self) -> bool:
        """Whether sums are whole numbers on a grid."""
        return self.arithmetic == "exact"

    @property
    def public_records(self) -> int | None:
        """The number of records, if the design declares it and it is public under the relation."""
        design = self.sampler
        if not isinstance(design, Design) or self.neighbors not in (None, design.natural):
            return None
        return None if design.natural.kind == "add-remove" else design.public_size

    def middle(self, columns: int) -> tuple[float, ...]:
        """The middle of the bounds of every column, from which records can be measured; 0 where there is no choice.

        A rule, and public norms of the records, measure them from 0.
        """
        if is_number(self.bounds) or isinstance(self.sampler, Rule) or self.norms is not None:
            return (0.0,) * columns
        return tuple(low / 2.0 + high / 2.0 for low, high in pairs_of(self.bounds, columns))

    def longest(self, centre: tuple[float, ...]) -> float:
        """The norm of the longest record, measured from `centre`, that the bounds allow: the radius."""
        if is_number(self.bounds):
            return float(self.bounds)
        pairs = pairs_of(self.bounds, len(centre))
        far = [max(c - low, high - c) for c, (low, high) in zip(centre, pairs, strict=True)]
        return float(norms(np.array([far]), self.norm)[0])

    def cut(self, x: FloatArray, centre: tuple[float, ...]) -> FloatArray:
        """Records within the bounds, each by itself, measured from `centre`."""
        if not is_number(self.bounds):
            x = np.clip(x, *np.array(pairs_of(self.bounds, x.shape[1])).T) - np.array(centre)
        return clipped(x, self.longest(centre), self.norm)

    def mechanism(self, scale: float, width: int, longest: float, grid: float) -> Mechanism:
        """The noise for rows of `width` numbers and norm up to `longest`."""
        if self.noise == "norm":
            return NormNoise(scale, width, self.norm, longest)
        if self.is_exact:
            return (ExactLaplace if self.noise == "laplace" else ExactGaussian)(scale, longest, grid)
        return (Laplace if self.noise == "laplace" else Gaussian)(scale, longest)

    def noise_error(self, mechanism: Mechanism, width: int) -> float:
        """The standard deviation of the noise in one coordinate."""
        scale = float(getattr(mechanism, "sigma" if self.noise == "gaussian" else "scale"))
        if self.noise == "gaussian":
            return scale
        if self.noise == "laplace":
            return math.sqrt(2.0) * scale
        return scale * math.sqrt(width * (width + 1.0) * _mean_square(width, self.norm))


def _mean_square(d: int, p: float) -> float:
    """E[u_1^2] for a point of the cone measure on the p-sphere: a ratio of moments of Gamma(1/p)^(1/p)."""
    if p == math.inf:
        return (1.0 + (d - 1.0) / 3.0) / d
    return math.exp(gammaln(3.0 / p) - gammaln(1.0 / p) + gammaln(d / p) - gammaln((d + 2.0) / p))
