"""Two-sided geometric noise on a count: Ghosh, Roughgarden & Sundararajan 2009.

A count changes by one per record, so noise with chance proportional to e^(-epsilon |k|) is epsilon-DP. The
curve is that of discrete Laplace noise of scale 1/epsilon and whole shift s; see discrete_laplace.py.
"""

import math
from dataclasses import dataclass
from typing import Any

from ..chance.discrete import discrete_laplace, rational_scale
from ..chance.stream import Stream
from ..core.mechanism import ONE, Change, Mechanism
from ..core.multiplicity import Multiplicity
from ..core.neighbors import Neighbors, check_relation
from ..core.profile import Profile
from ..core.row_sums import RowBound
from .discrete_laplace import discrete_laplace_curve, discrete_laplace_mixture
from .noise import check_sizes, like, whole_numbers, whole_shift_of


@dataclass(frozen=True, slots=True)
class GeometricCount(Mechanism):
    """Geometric noise on a whole-number count (sensitivity 1), drawn exactly.

    The noise x has probability proportional to exp(-epsilon |x|): the count of all records is epsilon-DP under the
    relation `neighbors`, in which one change moves it by at most 1.

    >>> GeometricCount(epsilon=0.5).profile(Neighbors.ADD_REMOVE).epsilon()
    0.5
    """

    epsilon: float
    neighbors: Neighbors = Neighbors.ADD_REMOVE

    def __post_init__(self) -> None:
        check_sizes(1, epsilon=self.epsilon)
        check_relation(self.neighbors)
        rational_scale(self._scale)  # rejects an epsilon that cannot be drawn

    @property
    def _scale(self) -> float:
        return math.nextafter(1.0 / self.epsilon, math.inf)  # never less noise than epsilon asks for

    def profile(self, neighbors: Neighbors, change: Change = ONE) -> Profile:
        """The exact curve, symmetric."""
        shift = whole_shift_of(self, 1, neighbors, change)
        return Profile.symmetric(discrete_laplace_curve(self.epsilon, shift))

    def mixture(self, neighbors: Neighbors, law: Multiplicity) -> Profile | None:
        """The exact profile of (sum_u p_u M(u), M(0)) for the noise that is drawn: which is what an attack sees."""
        rate = 1.0 / float(rational_scale(self._scale))
        return discrete_laplace_mixture(rate, whole_shift_of(self, 1, neighbors, ONE), law)

    @property
    def row_bound(self) -> RowBound:
        """Whole numbers, by their l1 norm."""
        replaced = self.neighbors.kind == "replace-one"
        return RowBound(1, 1.0, self._scale, is_whole=True, are_replaced=replaced, width=1)

    def release(self, value: Any, stream: Stream) -> Any:
        """The count (or counts, each protected separately) with geometric noise."""
        array = whole_numbers(value)
        return like(value, array + discrete_laplace(stream, self._scale, array.size).reshape(array.shape))
