"""Adaptively chosen releases that each lose no more than a Gaussian one: squared shifts add up.

Exact Gaussian noise is post-processing of continuous noise of a slightly smaller sigma (docs/exact_noise.md, Thm 3), so
what holds for continuous releases chosen adaptively (docs/ledger.md, Thm 3) covers it.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, ClassVar

from ..chance.stream import Stream
from ..core.influence import Influence
from ..core.mechanism import ONE, Change, Mechanism
from ..core.neighbors import Neighbors
from ..core.profile import Profile
from ..errors import InvalidInput
from ..numerics.log_domain import FloatArray
from .gaussian import Gaussian, gaussian_curve
from .noise import shift_of


@dataclass(frozen=True, slots=True)
class GaussianLosses(Mechanism):
    """All of the mechanisms together; for certification only, it releases nothing."""

    mechanisms: tuple[Mechanism, ...]

    neighbors: ClassVar[Neighbors] = Neighbors.ADD_REMOVE  # type: ignore[misc]
    hides_vectors: ClassVar[bool] = True

    def __post_init__(self) -> None:
        if not all(covers(mechanism) for mechanism in self.mechanisms):
            raise InvalidInput("every mechanism must be Gaussian noise, exact or not, stated for add-remove")

    @property
    def assumes(self) -> tuple[str, ...]:  # type: ignore[override]
        """What any of the parts assumes."""
        return tuple(dict.fromkeys(a for m in self.mechanisms for a in m.assumes))

    def profile(self, neighbors: Neighbors, change: Change = ONE) -> Profile:
        """The Gaussian curve at the root of the sum of squared shifts, symmetric."""
        shifts = [_shift(mechanism, neighbors, change) for mechanism in self.mechanisms]
        return Profile.symmetric(gaussian_curve(math.hypot(*shifts) * (1.0 + 1e-15)))

    @property
    def covering(self) -> Gaussian:
        """One continuous release at the root of the sum of squared shifts (docs/ledger.md, Thm 3)."""
        shifts = [_shift(mechanism, self.neighbors, ONE) for mechanism in self.mechanisms]
        return Gaussian(1.0, math.hypot(*shifts) * (1.0 + 1e-15))

    def family(self, neighbors: Neighbors) -> Callable[[FloatArray, FloatArray], FloatArray]:
        """All distances at once, as `profile` has them."""
        return self.covering.family(neighbors)

    def release(self, value: Any, stream: Stream) -> Any:
        """Raise: the parts were released one by one."""
        raise InvalidInput("these releases were made one by one; release each mechanism itself")


def covers(mechanism: Mechanism) -> bool:
    """Whether the loss of a mechanism is known to be at most a Gaussian one, proportional to one record's norm."""
    found: Influence | None = mechanism.influence
    return (
        found is not None and found.kind == "gaussian" and found.per_record == 0 and hasattr(mechanism, "sensitivity")
    )


def _shift(mechanism: Mechanism, neighbors: Neighbors, change: Change) -> float:
    moved = shift_of(mechanism, mechanism.sensitivity, neighbors, change)  # type: ignore[attr-defined]
    return float(mechanism.influence.at(moved))  # type: ignore[union-attr]
