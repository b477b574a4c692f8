"""Personal profiles: how the loss of a record grows with its weight, on the data without sampling.

LinearProfile    epsilon(w, x) = c(x) w, pure: every weighted sum with Laplace or norm noise, private k-means
GaussianProfile  a shift of s(x) w standard deviations of Gaussian noise
GeneralProfile   any epsilon(w, x) with its derivative in w, exp∘epsilon strongly convex in w
"""

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, ClassVar, Literal, Self

import numpy as np
from numpy.typing import ArrayLike

from ..core.influence import Influence
from ..core.mechanism import Mechanism
from ..errors import InvalidInput, NoTheorem
from ..numerics.log_domain import FloatArray, as_floats
from ..numerics.row_norms import norms

Source = Influence | Callable[[Any], ArrayLike]


class PersonalProfile(ABC):
    """What all profiles have in common: their kind, and one number per record."""

    kind: ClassVar[Literal["pure", "gaussian"]]

    @property
    @abstractmethod
    def influence(self) -> Influence | None:
        """The influence as a function of the norm, if only the norm matters."""

    @abstractmethod
    def influences(self, records: Any) -> FloatArray:
        """One number per record."""


@dataclass(frozen=True, slots=True, repr=False)
class _OneNumber(PersonalProfile):
    source: Source

    def __post_init__(self) -> None:
        if isinstance(self.source, Influence):
            if self.source.kind != self.kind:
                raise InvalidInput(
                    f"{type(self).__name__} takes a {self.kind} influence, got a {self.source.kind} one instead"
                )
        elif not callable(self.source):
            raise InvalidInput(
                f"{type(self).__name__} takes an Influence or a function of the records, "
                f"got {type(self.source).__name__} instead"
            )

    @classmethod
    def of(cls, mechanism: Mechanism) -> Self:
        """The profile of a mechanism's release (a Joint for several releases from one sample)."""
        influence = mechanism.influence
        if influence is None or influence.kind != cls.kind:
            raise NoTheorem(
                f"{type(mechanism).__name__} has no {cls.kind} influence, so {cls.__name__} does not describe it"
            )
        return cls(influence)

    @property
    def influence(self) -> Influence | None:
        """None when a function of the records was given."""
        return self.source if isinstance(self.source, Influence) else None

    def influences(self, records: Any) -> FloatArray:
        """c(x) or s(x) for every record, at least 0."""
        if isinstance(self.source, Influence):
            return self.source.at(norms(records, self.source.p))
        values = as_floats(self.source(records))
        if values.ndim != 1 or not np.all((values >= 0) & np.isfinite(values)):
            raise InvalidInput("the influence must be one finite number of at least 0 per record; check its function")
        return values

    def __repr__(self) -> str:
        name = self.source if isinstance(self.source, Influence) else getattr(self.source, "__qualname__", "function")
        return f"{type(self).__name__}({name})"


@dataclass(frozen=True, slots=True, repr=False)
class LinearProfile(_OneNumber):
    """epsilon(w, x) = c(x) w; `source` is an `Influence` or a function that gives c for all records.

    >>> from privamp import Laplace
    >>> LinearProfile.of(Laplace(scale=4.0)).influences([[1.0, -1.0], [0.0, 4.0]]).round(9).tolist()
    [0.5, 1.0]
    """

    kind: ClassVar[Literal["pure", "gaussian"]] = "pure"


@dataclass(frozen=True, slots=True, repr=False)
class GaussianProfile(_OneNumber):
    """A shift of s(x) w standard deviations; `source` is an `Influence` or a function that gives s for all records."""

    kind: ClassVar[Literal["pure", "gaussian"]] = "gaussian"


@dataclass(frozen=True, slots=True, repr=False)
class GeneralProfile:
    """Any pure profile: `epsilon(w, X)` and its `derivative(w, X)` in w, arrays with one entry per record.

    `strong_convexity(X)` gives mu > 0 such that exp(epsilon(w, x)) is mu-strongly convex in w >= 1.
    """

    epsilon: Callable[[FloatArray, Any], ArrayLike]
    derivative: Callable[[FloatArray, Any], ArrayLike]
    strong_convexity: Callable[[Any], ArrayLike]

    kind: ClassVar[Literal["pure", "gaussian"]] = "pure"

    @property
    def influence(self) -> None:
        """None: there is no single number."""
        return None

    def __repr__(self) -> str:
        return f"GeneralProfile({getattr(self.epsilon, '__qualname__', 'function')})"
