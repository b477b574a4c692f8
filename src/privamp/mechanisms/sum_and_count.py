"""Sums and counts of groups, released together: one step of private k-means.

Every record belongs to one of k groups; it adds w·x to that group's sum and w to its count. With norm noise of
scale b_s on the sums and Laplace noise of scale b_c on the counts the log density moves by at most
(1/b_c + ||x||_p/b_s) w, so the release is that many epsilon-DP and its curve is at most Laplace's. With Gaussian
noise the shift is w (||x||²/sigma_s² + 1/sigma_c²)^(1/2) standard deviations, exactly. Which group a record
belongs to may depend on everything released before.
"""

from dataclasses import dataclass
from typing import Any, ClassVar

from ..chance.stream import Stream
from ..core.influence import Influence
from ..core.mechanism import IDEALISED, ONE, Change, Mechanism
from ..core.multiplicity import Multiplicity
from ..core.neighbors import Neighbors
from ..core.profile import Profile
from ..errors import InvalidInput
from .gaussian import Gaussian, gaussian_curve
from .gaussian_mixture import gaussian_mixture
from .laplace import Laplace, laplace_curve
from .norm_noise import NormNoise


@dataclass(frozen=True, slots=True)
class SumAndCount(Mechanism):
    """Noise on k sums of vectors and on the k counts beside them.

    `sums` states the largest norm of a record as its sensitivity; `counts` counts records, so its sensitivity is 1.

    >>> step = SumAndCount(NormNoise(scale=40.0, dimension=54), Laplace(scale=10.0))
    >>> round(step.profile(Neighbors.ADD_REMOVE).epsilon(), 6)
    0.125
    """

    sums: NormNoise | Laplace | Gaussian
    counts: Laplace | Gaussian

    assumes: ClassVar[tuple[str, ...]] = (IDEALISED,)
    hides_vectors: ClassVar[bool] = True

    def __post_init__(self) -> None:
        if not isinstance(self.sums, (NormNoise, Laplace, Gaussian)) or not isinstance(
            self.counts, (Laplace, Gaussian)
        ):
            raise InvalidInput(
                "SumAndCount takes norm, Laplace or Gaussian noise for the sums, Laplace or Gaussian for counts"
            )
        if isinstance(self.sums, Gaussian) != isinstance(self.counts, Gaussian):
            raise InvalidInput("the noise of the sums and of the counts must be both Gaussian or both pure")
        if {self.sums.neighbors.kind, self.counts.neighbors.kind} != {"add-remove"}:
            raise InvalidInput("sums and counts must be stated for neighbors=Neighbors.ADD_REMOVE")
        if self.counts.sensitivity != 1:
            raise InvalidInput(f"counts must have sensitivity 1, got {self.counts.sensitivity!r} instead")

    @property
    def neighbors(self) -> Neighbors:  # type: ignore[override]
        """Add/remove: a record comes or goes with its sum and its count."""
        return Neighbors.ADD_REMOVE

    @property
    def influence(self) -> Influence:
        """1/b_c + u/b_s, or the root of 1/sigma_c² + u²/sigma_s²."""
        if isinstance(self.sums, Gaussian) and isinstance(self.counts, Gaussian):
            return Influence("gaussian", 1.0 / self.counts.sigma, 1.0 / self.sums.sigma, 2.0, True)
        p = self.sums.p if isinstance(self.sums, NormNoise) else 1.0
        return Influence("pure", 1.0 / self.counts.scale, 1.0 / self.sums.scale, p)  # type: ignore[union-attr]

    def profile(self, neighbors: Neighbors, change: Change = ONE) -> Profile:
        """Laplace's or the Gaussian curve at the whole shift, symmetric."""
        shift = self._shift(neighbors, change)
        return Profile.symmetric(laplace_curve(shift) if self.influence.kind == "pure" else gaussian_curve(shift))

    def mixture(self, neighbors: Neighbors, law: Multiplicity) -> Profile | None:
        """The exact profile of (sum_u p_u N(u s), N(0)) for Gaussian noise."""
        return gaussian_mixture(self._shift(neighbors, ONE), law) if self.influence.kind == "gaussian" else None

    def _shift(self, neighbors: Neighbors, change: Change) -> float:
        norm = self.sums.sensitivity if change.norm is None else change.norm
        steps = change.copies * change.weight * self.records_apart(neighbors)
        return float(self.influence.at(norm)) * steps

    def release(self, value: Any, stream: Stream) -> tuple[Any, Any]:
        """(sums, counts), each with its own noise: arrays of shape (k, dimension) and (k,)."""
        sums, counts = value
        return self.sums.release(sums, stream), self.counts.release(counts, stream)
