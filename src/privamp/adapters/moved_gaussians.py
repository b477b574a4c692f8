"""A Gaussian sum that one record moves by one of several distances, each with a known chance.

Theorem (add/remove). Let a record move the sum by at most c_i with chance p_i, independently of the noise N(0, s^2 I).
The pair (sum_i p_i N(c_i, s^2), N(0, s^2)) dominates, also for vectors of these lengths (Choquette-Choo et al. 2024,
arXiv:2310.15526), and its profile is exact (mechanisms/gaussian_mixture.py).

Chances that are floating-point numbers add up to 1 nearly. A missing part is counted as the largest move, an excess is
taken from the smallest ones: of all laws that the chances may mean this one has the largest moves, and a pair with
larger moves dominates.
"""

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, ClassVar, NoReturn

import numpy as np

from ..chance.stream import Stream
from ..core.identity import keep_plain
from ..core.mechanism import IDEALISED, ONE, Change, Mechanism
from ..core.neighbors import Neighbors
from ..core.profile import Profile
from ..errors import InvalidInput, NoTheorem
from ..mechanisms.gaussian_mixture import moved_gaussians
from ..numerics.log_domain import as_floats
from ..validation import in_range, nonnegative, positive

_CLOSE = 1e-9  # of the total of the chances from 1


@dataclass(frozen=True, slots=True)
class MovedGaussians(Mechanism):
    """Noise of standard deviation `sigma` on a sum that a record moves by `moves[i]` with chance `chances[i]`.

    What the chances miss of 1, by rounding, is the chance of the largest move.

    >>> mixture = MovedGaussians(1.0, (0.0, 1.0), (0.9, 0.1))
    >>> f"{mixture.profile(Neighbors.ADD_REMOVE).delta(1.0):.6f}"
    '0.000207'
    """

    sigma: float
    moves: tuple[float, ...]
    chances: tuple[float, ...]

    neighbors: ClassVar[Neighbors] = Neighbors.ADD_REMOVE  # type: ignore[misc]
    assumes: ClassVar[tuple[str, ...]] = (IDEALISED,)
    hides_vectors: ClassVar[bool] = True

    def __post_init__(self) -> None:
        keep_plain(self)
        positive(sigma=self.sigma)
        if not self.moves or len(self.moves) != len(self.chances):
            raise InvalidInput(
                f"every move needs its own chance, got {len(self.moves)} moves and {len(self.chances)} chances"
            )
        for move, chance in zip(self.moves, self.chances, strict=True):
            nonnegative(move=move)
            in_range(0, 1, chance=chance)
        total = math.fsum(self.chances)
        if abs(total - 1.0) > _CLOSE:
            raise InvalidInput(f"the chances of all moves must add up to 1, got {total!r} instead")

    def profile(self, neighbors: Neighbors, change: Change = ONE) -> Profile:
        """The exact pair, in both directions; for one record that is added or removed."""
        if neighbors != Neighbors.ADD_REMOVE or change != ONE:
            raise NoTheorem(
                "MovedGaussians covers one record that is added or removed, not replaced, repeated or weighted "
                "records; use add-remove, drawn without copies"
            )
        shifts, at = np.unique(np.asarray(self.moves) / self.sigma, return_inverse=True)
        chances = as_floats(_completed(shifts.size, at, self.chances))
        live = (shifts > 0.0) & (chances > 0.0)
        return moved_gaussians(shifts[live], chances[live])

    def release(self, value: Any, stream: Stream) -> NoReturn:
        """Raise: the moves describe a release made elsewhere."""
        raise NoTheorem("MovedGaussians describes a release made elsewhere and adds no noise; use Gaussian(sigma)")


def _completed(size: int, at: Any, chances: tuple[float, ...]) -> list[float]:
    """The chances of all shifts, in rising order: from the largest on, until they are 1; rounded up but for no move."""
    exact = [Fraction(0)] * size
    for index, chance in zip(at.ravel(), chances, strict=True):
        exact[index] += Fraction(chance)
    exact[-1] += max(1 - sum(exact, Fraction(0)), Fraction(0))
    left = Fraction(1)
    for place in reversed(range(size)):
        exact[place] = min(exact[place], left)
        left -= exact[place]
    return [_up(chance) for chance in exact]


def _up(chance: Fraction) -> float:
    near = float(chance)
    return near if Fraction(near) >= chance else math.nextafter(near, 1.0)
