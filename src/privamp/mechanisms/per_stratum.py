"""One noise, but each stratum has its own sensitivity: what a weighted survey estimate needs.

A stratum mean over n_h records enters the estimate with weight N_h/(N n_h), so a record of a thinly sampled stratum
moves it further than one of a stratum that is counted in full. A stratified design amplifies each stratum separately,
with its own sensitivity; using the largest for all would waste budget.
"""

from dataclasses import dataclass, replace
from typing import Any

from ..chance.stream import Stream
from ..core.mechanism import ONE, Change, Mechanism
from ..core.neighbors import Neighbors
from ..core.profile import Profile
from ..errors import InvalidInput, NoTheorem
from ..validation import positive
from .fixed_point import ExactGaussian, ExactLaplace, GridUnits
from .gaussian import Gaussian
from .laplace import Laplace

Noise = Laplace | Gaussian | ExactLaplace | ExactGaussian
Sensitivities = tuple[tuple[str | int, float], ...]


@dataclass(frozen=True, slots=True)
class PerStratum(Mechanism):
    """Laplace or Gaussian noise, in floats or exact, whose sensitivity is declared stratum by stratum.

    Exact noise states what one record adds, so where records are replaced it is half of what a replacement moves.

    >>> noise = PerStratum(Laplace(2.0, neighbors=Neighbors.REPLACE_ONE), (("small", 1.0), ("large", 4.0)))
    >>> noise.in_stratum("small").profile(Neighbors.REPLACE_ONE).epsilon()
    0.5
    """

    noise: Noise
    sensitivities: Sensitivities

    def __post_init__(self) -> None:
        if not isinstance(self.noise, Noise):
            kind = type(self.noise).__name__
            raise InvalidInput(f"noise must be Laplace or Gaussian, exact or not, got {kind} instead")
        if not self.sensitivities:
            raise InvalidInput("sensitivities must name at least one stratum, got none instead")
        names = [name for name, _ in self.sensitivities]
        if len(set(names)) < len(names):
            raise InvalidInput("sensitivities must name every stratum once, got a repeated name instead")
        for _, sensitivity in self.sensitivities:
            positive(sensitivity=sensitivity)

    @property
    def neighbors(self) -> Neighbors:  # type: ignore[override]
        """Replacements within a stratum."""
        kind = self.noise.neighbors
        return replace(kind, scope="within stratum") if kind.kind == "replace-one" else kind

    @property
    def assumes(self) -> tuple[str, ...]:  # type: ignore[override]
        """What the noise assumes."""
        return self.noise.assumes

    @property
    def hides_vectors(self) -> bool:  # type: ignore[override]
        """Whether the noise hides vectors."""
        return self.noise.hides_vectors

    def in_stratum(self, name: str | int) -> Mechanism:
        """The noise with this stratum's sensitivity."""
        for stratum, sensitivity in self.sensitivities:
            if stratum == name:
                return replace(self.noise, sensitivity=sensitivity)
        raise InvalidInput(
            f"no sensitivity is declared for stratum {name!r}; declare one for every stratum of the design"
        )

    def profile(self, neighbors: Neighbors, change: Change = ONE) -> Profile:
        """The worst stratum's."""
        own = self.noise.neighbors.kind
        if own == "replace-one" and neighbors.kind == own and neighbors.scope != "within stratum":
            raise NoTheorem(
                "sensitivities by stratum do not cover a record that changes its stratum; ask for "
                "Neighbors('replace-one', scope='within stratum'), and declare several releases as one plan"
            )
        largest = max(sensitivity for _, sensitivity in self.sensitivities)
        return replace(self.noise, sensitivity=largest).profile(neighbors, change)

    def release(self, value: Any, stream: Stream) -> Any:
        """The value with the noise; exact noise takes sums in units of its grid."""
        if isinstance(self.noise, (ExactLaplace, ExactGaussian)) and not isinstance(value, GridUnits):
            raise InvalidInput("exact noise by strata takes sums in units of its grid; mark them with in_grid_units")
        return self.noise.release(value, stream)
