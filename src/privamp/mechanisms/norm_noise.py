"""Norm noise for vectors: density proportional to e^(-||z||_p / scale) in `dimension` dimensions, l_p
sensitivity.

The log density is 1/scale-Lipschitz in the p-norm, so the mechanism is (shift/scale)-DP, and for every p >= 1
and dimension its profile is at most Laplace's, delta(eps) <= 1 - e^((eps - theta)/2), theta = shift/scale
(the loss is Lipschitz in the shift; THEORY section 2). Exact when p = 1 or dimension = 1.

Drawing: radius Gamma(dimension, scale) times a direction from the cone measure of the p-sphere. For p = 1
that is independent Laplace noise, for p = 2 a normalised Gaussian, for p = inf a uniform point on the cube's
surface, else normalised signed Gamma(1/p)^(1/p). An exponential radius (as in the code of the IS paper) is
not private.
"""

import math
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from ..chance.stream import Stream
from ..core.influence import Influence
from ..core.mechanism import IDEALISED, ONE, Change, Mechanism
from ..core.multiplicity import Multiplicity
from ..core.neighbors import Neighbors, check_relation
from ..core.profile import Profile
from ..core.row_sums import RowBound
from ..errors import InvalidInput
from ..numerics.log_domain import FloatArray
from ..validation import in_range, whole
from .laplace import laplace_curve
from .laplace_mixture import laplace_mixture
from .noise import check_sizes, numbers, on_grid, shift_of


def directions(p: float, shape: tuple[int, ...], stream: Stream) -> FloatArray:
    """Points of p-norm 1 from the cone measure, along the last axis."""
    if p == math.inf:
        points = 2.0 * stream.uniforms(shape) - 1.0
    elif p == 1.0:
        points = stream.laplaces(shape)
    elif p == 2.0:
        points = stream.normals(shape)
    else:  # Gamma(1/p)^(1/p) = Gamma(1 + 1/p)^(1/p) U, which does not underflow for large p
        sizes = stream.gammas(1.0 + 1.0 / p, shape) ** (1.0 / p) * stream.uniforms(shape)
        points = stream.signs(shape) * sizes
    points = points / np.max(np.abs(points), axis=-1, keepdims=True)
    return np.asarray(points / np.linalg.norm(points, ord=p, axis=-1, keepdims=True))


@dataclass(frozen=True, slots=True)
class NormNoise(Mechanism):
    """Noise with density proportional to e^(-||z||_p/scale).

    It hides a sum of vectors with `dimension` entries, of which one change moves the sum by at most `sensitivity` in
    the norm `p` (1 to infinity) under the relation `neighbors`. The release on all the data is (sensitivity/scale)-DP
    under that relation.

    >>> NormNoise(scale=4.0, dimension=10, sensitivity=2.0).profile(Neighbors.ADD_REMOVE).epsilon()
    0.5
    """

    scale: float
    dimension: int
    p: float = 2.0
    sensitivity: float = 1.0
    neighbors: Neighbors = Neighbors.ADD_REMOVE

    assumes: ClassVar[tuple[str, ...]] = (IDEALISED,)
    hides_vectors: ClassVar[bool] = True

    def __post_init__(self) -> None:
        check_sizes(self.sensitivity, scale=self.scale)
        whole(1, dimension=self.dimension)
        in_range(1, math.inf, p=self.p)
        check_relation(self.neighbors)

    @property
    def is_exact(self) -> bool:
        """Whether the curve is attained and not only an upper bound."""
        return self.p == 1.0 or self.dimension == 1

    def profile(self, neighbors: Neighbors, change: Change = ONE) -> Profile:
        """Laplace's curve, symmetric: exact when p = 1 or dimension = 1, otherwise an upper bound."""
        shift = shift_of(self, self.sensitivity, neighbors, change)
        return Profile.symmetric(laplace_curve(shift / self.scale))

    def mixture(self, neighbors: Neighbors, law: Multiplicity) -> Profile | None:
        """Laplace's exact mixture when the curve is exact, else None."""
        if not self.is_exact:
            return None
        return laplace_mixture(shift_of(self, self.sensitivity, neighbors, ONE) / self.scale, law)

    @property
    def influence(self) -> Influence | None:
        """u/scale for a record of p-norm u."""
        if self.neighbors.kind != "add-remove":
            return None
        return Influence("pure", 0.0, 1.0 / self.scale, self.p, self.is_exact)

    @property
    def row_bound(self) -> RowBound:
        """A row's p-norm."""
        replaced = self.neighbors.kind == "replace-one"
        return RowBound(self.sensitivity, self.p, self.scale, are_replaced=replaced, width=self.dimension)

    def release(self, value: Any, stream: Stream) -> Any:
        """Vectors along the last axis, each with its own noise."""
        array = numbers(value)
        if array.ndim == 0 or array.shape[-1] != self.dimension:
            raise InvalidInput(f"the last axis must be {self.dimension} long, got shape {array.shape}")
        radius = self.scale * stream.gammas(float(self.dimension), array.shape[:-1])
        return on_grid(array + radius[..., None] * directions(self.p, array.shape, stream), self.scale)
