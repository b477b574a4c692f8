"""Gaussian noise: the value plus N(0, sigma^2), l2 sensitivity.

Profile, theta = shift/sigma: delta(eps) = Phi(theta/2 - eps/theta) - e^eps Phi(-theta/2 - eps/theta),
computed as phi(x) [M(x) - M(x + theta)], x = eps/theta - theta/2, M the Mills ratio: accurate far below 1e-300.
Exact in every dimension, because the noise is rotation invariant. Balle & Wang 2018, Theorem 8.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from scipy.special import log_ndtr

from ..chance.stream import Stream
from ..core.influence import Influence
from ..core.line_attack import Places, seen_on_a_line
from ..core.mechanism import IDEALISED, ONE, Change, Mechanism
from ..core.multiplicity import Multiplicity
from ..core.neighbors import Neighbors, check_relation
from ..core.profile import Curve, Profile
from ..core.row_sums import RowBound
from ..numerics.log_domain import FloatArray, as_floats, log_mills_gap
from ..validation import in_range
from .gaussian_mixture import gaussian_mixture, opposite_gaussians
from .noise import check_sizes, like, numbers, on_grid, shift_of
from .opposite_mixtures import opposite_mixtures

_CELLS = 2400  # of an attack's output


def gaussian_curve(theta: float) -> Curve:
    """Standard normal noise moved by theta."""
    if theta == 0.0:
        return Curve(lambda epsilon: np.full_like(epsilon, -np.inf), 0.0)

    def log_delta(epsilon: FloatArray) -> FloatArray:
        with np.errstate(over="ignore"):
            return log_mills_gap(epsilon / theta - 0.5 * theta, theta)

    return Curve(log_delta)


@dataclass(frozen=True, slots=True)
class Gaussian(Mechanism):
    """Continuous Gaussian noise of standard deviation `sigma` on a sum.

    `sensitivity` is the most that one change of the data moves the sum (l2 norm), under the relation `neighbors`. The
    release on all the data has the exact profile of two normal laws sensitivity/sigma apart.

    >>> f"{Gaussian(sigma=1.0).profile(Neighbors.ADD_REMOVE).delta(1.0):.6f}"
    '0.126937'
    """

    sigma: float
    sensitivity: float = 1.0
    neighbors: Neighbors = Neighbors.ADD_REMOVE

    assumes: ClassVar[tuple[str, ...]] = (IDEALISED,)
    hides_vectors: ClassVar[bool] = True
    is_gaussian: ClassVar[bool] = True

    def __post_init__(self) -> None:
        check_sizes(self.sensitivity, sigma=self.sigma)
        check_relation(self.neighbors)

    def profile(self, neighbors: Neighbors, change: Change = ONE) -> Profile:
        """The exact curve, symmetric."""
        shift = shift_of(self, self.sensitivity, neighbors, change)
        return Profile.symmetric(gaussian_curve(shift / self.sigma))

    def family(self, neighbors: Neighbors) -> Callable[[FloatArray, FloatArray], FloatArray]:
        """All distances at once."""
        theta = shift_of(self, self.sensitivity, neighbors, ONE) / self.sigma
        return lambda copies, epsilon: log_mills_gap(epsilon / (copies * theta) - 0.5 * copies * theta, copies * theta)

    def mixture(self, neighbors: Neighbors, law: Multiplicity) -> Profile | None:
        """The exact profile of (sum_u p_u N(u s), N(0))."""
        return gaussian_mixture(shift_of(self, self.sensitivity, neighbors, ONE) / self.sigma, law)

    def opposite_mixture(self, chance: float, records: int = 1) -> Profile | None:
        """The exact profile of ((1-q)N(0) + qN(s), (1-q)N(0) + qN(-s)), s the add-remove shift.

        With several records, of sum_u p_u N(u s) against sum_u p_u N(-u s), p_u binomial.
        """
        in_range(0, 1, chance=chance)
        if self.neighbors.kind != "add-remove":
            return None
        if records > 1:
            return opposite_mixtures(self.sensitivity / self.sigma, Multiplicity.binomial(records, float(chance)))
        return opposite_gaussians(self.sensitivity / self.sigma, float(chance))

    def on_a_line(self, p: Places, q: Places) -> Profile | None:
        """Cells of the output, near the places and far out."""
        if self.neighbors.kind != "add-remove":
            return None
        theta = self.sensitivity / self.sigma
        moved = [{at * theta: chance for at, chance in law.items()} for law in (p, q)]
        places = as_floats([at for law in moved for at in law])
        near = np.linspace(np.min(places) - 9.0, np.max(places) + 9.0, _CELLS)
        far = np.linspace(0.05, 28.0, _CELLS // 8)
        edges = np.concatenate([(near[0] - far)[::-1], near, near[-1] + far])
        return seen_on_a_line(lambda x: as_floats(log_ndtr(-x)), edges, moved[0], moved[1])

    @property
    def line_step(self) -> float:
        """Sensitivity over sigma."""
        return self.sensitivity / self.sigma

    def log_slope(self, places: FloatArray) -> FloatArray | None:
        """-theta^2 (2 f + 1)/2."""
        return -0.5 * self.line_step**2 * (2.0 * places + 1.0)

    @property
    def influence(self) -> Influence | None:
        """u/sigma for a record of l2 norm u."""
        return Influence("gaussian", 0.0, 1.0 / self.sigma, 2.0, True) if self.neighbors.kind == "add-remove" else None

    @property
    def row_bound(self) -> RowBound:
        """A row's l2 norm."""
        replaced = self.neighbors.kind == "replace-one"
        return RowBound(self.sensitivity, 2.0, self.sigma, are_replaced=replaced)

    def release(self, value: Any, stream: Stream) -> Any:
        """The value with independent Gaussian noise on every entry."""
        array = numbers(value)
        return like(value, on_grid(array + self.sigma * stream.normals(array.shape), self.sigma))
