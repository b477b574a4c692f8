"""Laplace noise: the value plus noise of density exp(-|z|/scale)/(2 scale), l1 sensitivity.

Profile, theta = shift/scale: delta(eps) = 1 - e^((eps - theta)/2) for 0 <= eps <= theta, 0 above: pure
theta-DP. For a vector with independent noise per entry and l1 norm theta the same curve is an upper bound,
attained when the record moves one entry. Dwork, McSherry, Nissim & Smith 2006.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from ..chance.stream import Stream
from ..core.influence import Influence
from ..core.line_attack import Places, seen_on_a_line
from ..core.mechanism import IDEALISED, ONE, Change, Mechanism
from ..core.multiplicity import Multiplicity
from ..core.neighbors import Neighbors, check_relation
from ..core.profile import Curve, Profile
from ..core.row_sums import RowBound
from ..numerics.log_domain import FloatArray, as_floats, log1mexp
from .laplace_mixture import laplace_mixture
from .noise import check_sizes, like, numbers, on_grid, shift_of

_CELLS = 2000  # of an attack's output


def _log_tail(x: FloatArray) -> FloatArray:
    """log of the chance that Laplace noise of scale 1 exceeds x."""
    half = np.log(0.5) - np.abs(x)
    return as_floats(np.where(x > 0, half, np.log1p(-np.exp(half))))


def laplace_curve(theta: float) -> Curve:
    """Laplace noise of scale 1 moved by theta."""

    def log_delta(epsilon: FloatArray) -> FloatArray:
        return log1mexp(0.5 * np.minimum(epsilon - theta, 0.0))

    return Curve(log_delta, theta)


@dataclass(frozen=True, slots=True)
class Laplace(Mechanism):
    """Continuous Laplace noise of density exp(-|x|/scale)/(2 scale) on a sum.

    `sensitivity` is the most that one change of the data moves the sum (l1 norm), under the relation `neighbors`. The
    release on all the data is (sensitivity/scale)-DP under that relation.

    >>> Laplace(scale=2.0).profile(Neighbors.REPLACE_ONE).epsilon()
    1.0
    """

    scale: float
    sensitivity: float = 1.0
    neighbors: Neighbors = Neighbors.ADD_REMOVE

    assumes: ClassVar[tuple[str, ...]] = (IDEALISED,)
    hides_vectors: ClassVar[bool] = True

    def __post_init__(self) -> None:
        check_sizes(self.sensitivity, scale=self.scale)
        check_relation(self.neighbors)

    def profile(self, neighbors: Neighbors, change: Change = ONE) -> Profile:
        """The exact curve of one entry, symmetric."""
        shift = shift_of(self, self.sensitivity, neighbors, change)
        return Profile.symmetric(laplace_curve(shift / self.scale))

    def family(self, neighbors: Neighbors) -> Callable[[FloatArray, FloatArray], FloatArray]:
        """All distances at once."""
        theta = shift_of(self, self.sensitivity, neighbors, ONE) / self.scale
        return lambda copies, epsilon: log1mexp(0.5 * np.minimum(epsilon - copies * theta, 0.0))

    def mixture(self, neighbors: Neighbors, law: Multiplicity) -> Profile | None:
        """The exact profile of (sum_u p_u Lap(u s), Lap(0))."""
        return laplace_mixture(shift_of(self, self.sensitivity, neighbors, ONE) / self.scale, law)

    def opposite_mixture(self, chance: float, records: int = 1) -> Profile | None:
        """Below the replace-one profile of two opposite records, each kept with `chance`: cells of the output."""
        if records > 1:
            return None
        return self.on_a_line({1.0: chance, 0.0: 1.0 - chance}, {-1.0: chance, 0.0: 1.0 - chance})

    def on_a_line(self, p: Places, q: Places) -> Profile | None:
        """Cells of the output between the places; beyond them the loss does not change."""
        if self.neighbors.kind != "add-remove":
            return None
        theta = self.sensitivity / self.scale
        moved = [{at * theta: chance for at, chance in law.items()} for law in (p, q)]
        places = as_floats([at for law in moved for at in law])
        edges = np.linspace(np.min(places), np.max(places), _CELLS)
        return seen_on_a_line(_log_tail, edges, moved[0], moved[1])

    @property
    def line_step(self) -> float:
        """Sensitivity over scale."""
        return self.sensitivity / self.scale

    def log_slope(self, places: FloatArray) -> FloatArray | None:
        """theta (|f| - |f + 1|)."""
        return self.line_step * (np.abs(places) - np.abs(places + 1.0))

    @property
    def influence(self) -> Influence | None:
        """u/scale for a record of l1 norm u; reached along an axis."""
        return Influence("pure", 0.0, 1.0 / self.scale, 1.0, True) if self.neighbors.kind == "add-remove" else None

    @property
    def row_bound(self) -> RowBound:
        """A row's l1 norm."""
        replaced = self.neighbors.kind == "replace-one"
        return RowBound(self.sensitivity, 1.0, self.scale, are_replaced=replaced)

    def release(self, value: Any, stream: Stream) -> Any:
        """The value with independent Laplace noise on every entry."""
        array = numbers(value)
        return like(value, on_grid(array + self.scale * stream.laplaces(array.shape), self.scale))
