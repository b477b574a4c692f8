"""A mechanism: what is computed on the sample, and how well it hides the difference between two samples."""

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import wraps
from typing import Any, ClassVar

from ..chance.stream import Stream
from ..errors import NoTheorem
from ..numerics.log_domain import FloatArray
from ..validation import nonnegative, positive, whole
from .identity import keep_doubles
from .influence import Influence
from .line_attack import Places
from .multiplicity import Multiplicity
from .neighbors import Neighbors
from .profile import Profile
from .row_sums import RowBound
from .tape import heard

IDEALISED = "idealised real arithmetic"


@dataclass(frozen=True, slots=True)
class Change:
    """How the changed record enters the sample: `copies` times, with a weight, with its own norm."""

    copies: int = 1
    weight: float = 1.0
    norm: float | None = None  # None: the mechanism's declared sensitivity

    def __post_init__(self) -> None:
        whole(1, copies=self.copies)
        positive(weight=self.weight)
        if self.norm is not None:
            nonnegative(norm=self.norm)


ONE = Change()


def _of_plain_numbers(check: Callable[[Any], None]) -> Callable[[Any], None]:
    """Check a mechanism after its numbers are Python's own: in single precision a curve would come out too small."""

    @wraps(check)
    def checked(self: Any) -> None:
        keep_doubles(self)
        check(self)

    return checked


class Mechanism(ABC):
    """Frozen dataclass per kind. `neighbors` is the relation its parameters are stated for."""

    neighbors: Neighbors
    assumes: ClassVar[tuple[str, ...]] = ()
    hides_vectors: ClassVar[bool] = False  # the profile holds for several numbers released together
    is_gaussian: ClassVar[bool] = False  # proved for Gaussian noise (Kahane's comparison)
    any_event: ClassVar[bool] = False  # a pure black box: every event its epsilon allows may be one of its events

    def __init_subclass__(cls, **named: Any) -> None:
        super().__init_subclass__(**named)
        if "release" in vars(cls):  # mechanisms of other packages are taped too
            cls.release = heard(cls.release)  # type: ignore[method-assign,assignment]
        if "__post_init__" in vars(cls):
            cls.__post_init__ = _of_plain_numbers(vars(cls)["__post_init__"])  # type: ignore[method-assign,assignment]

    def __post_init__(self) -> None:
        keep_doubles(self)

    @abstractmethod
    def profile(self, neighbors: Neighbors, change: Change = ONE) -> Profile:
        """delta(epsilon) between two samples that differ by `change` under the given relation."""

    @property
    def influence(self) -> Influence | None:
        """How far a record of given norm and weight moves the release, or None where that is not known."""
        return None

    @property
    def row_bound(self) -> RowBound | None:
        """How long the row of one record may be in a sum of rows, or None where that is not declared."""
        return None

    @property
    def covering(self) -> "Mechanism | None":
        """A mechanism of which this one is post-processing, sample by sample: its upper bounds hold here too. Its
        attacks need not be attacks on this mechanism.
        """
        return None

    @property
    def is_covered_exactly(self) -> bool:
        """Whether nothing more than the covering mechanism's curve is known about this one, so that using it loses
        nothing."""
        return self.covering is not None

    @abstractmethod
    def release(self, value: Any, stream: Stream) -> Any:
        """The value with fresh noise from a cryptographic stream."""

    def family(self, neighbors: Neighbors) -> Callable[[FloatArray, FloatArray], FloatArray] | None:
        """log delta(epsilon) at several distances at once, f(copies, epsilon) by broadcasting, or None.

        Only for symmetric profiles; the same numbers as `profile`, many times faster for multiset samples.
        """
        return None

    def mixture(self, neighbors: Neighbors, law: Multiplicity) -> Profile | None:
        """Exact profile of a real worst pair when the record appears u times with law p_u, or None.

        P = sum_u p_u M(u copies), Q = M(no copy): realised by a sum with all other records at one end of
        the range. A lower bound for every design with that law.
        """
        return None

    def in_stratum(self, name: str | int) -> "Mechanism":
        """The mechanism for records of one stratum: with their own sensitivity, if it is declared.

        Inside one stratum "within stratum" is anywhere.
        """
        if self.neighbors.scope != "within stratum":
            return self
        return replace(self, neighbors=replace(self.neighbors, scope="anywhere"))  # type: ignore[type-var]

    def opposite_mixture(self, chance: float, records: int = 1) -> Profile | None:
        """Exact replace-one profile when each of two opposite records is kept with `chance`, or None.

        `records`: each of two people has so many, kept independently.
        """
        return None

    def on_a_line(self, p: Places, q: Places) -> Profile | None:
        """A lower bound on the profile of two sums with the noise at places p and q (in add/remove steps), or None."""
        return None

    @property
    def line_step(self) -> float:
        """How far one record moves a number, in units of the noise that is added to it; 0 where this does not apply."""
        return 0.0

    def log_slope(self, places: FloatArray) -> FloatArray | None:
        """log of the noise's density one add/remove step after `places` (in steps) over that at them, or None.

        Falls along the line.
        """
        return None

    @property
    def is_pure(self) -> bool:
        """Whether a single release is pure DP under the mechanism's own relation."""
        return self.profile(self.neighbors).largest_loss < float("inf")

    def check_scope(self, scope: str) -> None:
        """NoTheorem when records may move farther than the mechanism is stated for."""
        own = self.neighbors.scope
        if own not in ("anywhere", scope):
            raise NoTheorem(
                f"{type(self).__name__} is stated for {self.neighbors}, which says nothing about records that move "
                f"{'farther' if scope == 'anywhere' else scope} or samples drawn across strata or clusters; draw by "
                "Stratified, or state its sensitivity for replacements anywhere"
            )

    def records_apart(self, neighbors: Neighbors) -> int:
        """How many of the mechanism's own steps one step of `neighbors` takes (1 or 2), or NoTheorem."""
        self.check_scope(neighbors.scope)
        if neighbors.kind == self.neighbors.kind:
            return 1
        if neighbors.kind == "replace-one":
            return 2  # remove one, add one
        raise NoTheorem(
            f"{type(self).__name__} is stated for replace-one neighbours, which says nothing about add-remove; "
            "state its sensitivity with neighbors=Neighbors.ADD_REMOVE"
        )
