"""Noise on rows that hold more than the record: a record of norm u adds a row of a known larger norm.

A mean counts its records, an error estimate adds squares: each record's row is its own numbers and a few more. With
`per_record` and `per_norm` public, the row's norm is at most

    per_record + per_norm u                       for pure noise,
    sqrt(per_record^2 + (per_norm u)^2)           for Gaussian noise,

and everything proved about the noise holds at that norm.
"""

import math
from dataclasses import dataclass, replace
from typing import Any

from ..chance.stream import Stream
from ..core.influence import Influence
from ..core.mechanism import ONE, Change, Mechanism
from ..core.neighbors import Neighbors
from ..core.profile import Profile
from ..errors import NoTheorem
from ..numerics.rounding import number_up
from ..validation import nonnegative, positive


@dataclass(frozen=True, slots=True)
class AugmentedRows(Mechanism):
    """`noise` on the rows of records of norm up to `radius`.

    >>> from privamp import Laplace
    >>> mean = AugmentedRows(Laplace(scale=4.0), radius=1.0, per_record=1.0)  # a sum, and a count beside it
    >>> mean.profile(Neighbors.ADD_REMOVE).epsilon()
    0.5
    """

    noise: Mechanism
    radius: float
    per_record: float = 0.0
    per_norm: float = 1.0

    def __post_init__(self) -> None:
        positive(radius=self.radius, per_norm=self.per_norm)
        nonnegative(per_record=self.per_record)
        if self.noise.influence is None:
            raise NoTheorem(
                f"{type(self.noise).__name__} does not state how far a row of a given norm moves it; use Laplace, "
                "Gaussian or NormNoise"
            )

    @property
    def neighbors(self) -> Neighbors:  # type: ignore[override]
        """The relation of the noise: an influence is about records that are added or removed."""
        return self.noise.neighbors

    @property
    def assumes(self) -> tuple[str, ...]:  # type: ignore[override]
        """What the noise assumes."""
        return self.noise.assumes

    @property
    def hides_vectors(self) -> bool:  # type: ignore[override]
        """Whether the noise hides vectors."""
        return self.noise.hides_vectors

    def in_stratum(self, name: str | int) -> Mechanism:
        """The same rows with the noise for records of one stratum."""
        return replace(self, noise=self.noise.in_stratum(name))

    def longest(self, norm: float) -> float:
        """How long the row of a record of this norm may be."""
        if self.per_record == 0.0:
            return self.per_norm * norm
        pure = self._base.kind == "pure"
        own = self.per_norm * norm
        return self.per_record + own if pure else number_up(math.hypot(self.per_record, own))

    def profile(self, neighbors: Neighbors, change: Change = ONE) -> Profile:
        """That of the noise at the length of the row."""
        norm = self.radius if change.norm is None else change.norm
        return self.noise.profile(neighbors, replace(change, norm=self.longest(norm)))

    @property
    def _base(self) -> Influence:
        base = self.noise.influence
        assert base is not None  # checked on construction
        return base

    @property
    def influence(self) -> Influence:
        """The noise's, per record and per unit of the record's own norm."""
        base = self._base
        record, norm = base.per_norm * self.per_record, base.per_norm * self.per_norm
        record = number_up(record + base.per_record if base.kind == "pure" else math.hypot(record, base.per_record))
        return replace(
            base, per_record=record, per_norm=number_up(norm) if self.per_norm != 1.0 else norm, is_exact=False
        )

    def release(self, value: Any, stream: Stream) -> Any:
        """The noise's release."""
        return self.noise.release(value, stream)
