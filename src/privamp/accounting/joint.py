"""Several mechanisms on ONE sample: composed inside the sample, then amplified once.

Amplifying each and adding up is false: ten 0.5-DP queries on one 10% Poisson sample lose up to 2.7563, not 0.6285.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any

from ..chance.stream import Stream
from ..core.influence import Influence
from ..core.mechanism import ONE, Change, Mechanism
from ..core.multiplicity import Multiplicity
from ..core.neighbors import Neighbors
from ..core.profile import Profile
from ..errors import InvalidInput
from ..mechanisms.black_box import PureDP, all_say_yes, opposite_all_say_yes
from ..mechanisms.gaussian import Gaussian
from .composition import composed_profile


@dataclass(frozen=True, slots=True)
class Joint(Mechanism):
    """Several mechanisms, fixed in advance, that are all run on the same sample.

    >>> from privamp import Poisson, PureDP, amplify
    >>> round(amplify(Joint([PureDP(0.5)] * 10), Poisson(0.1)).epsilon(), 4)
    2.7563
    """

    mechanisms: tuple[Mechanism, ...]

    def __init__(self, mechanisms: Sequence[Mechanism]) -> None:
        if not mechanisms:
            raise InvalidInput("Joint needs at least one mechanism, got an empty list instead")
        flat = [part for m in mechanisms for part in (m.mechanisms if isinstance(m, Joint) else (m,))]
        object.__setattr__(self, "mechanisms", tuple(flat))
        scopes = {m.neighbors.scope for m in flat} - {"anywhere"}
        if len(scopes) > 1:
            raise InvalidInput(
                f"a Joint covers one relation, and its mechanisms are stated {' and '.join(sorted(scopes))}; "
                "state them for one scope, or for replacements anywhere"
            )

    @property
    def neighbors(self) -> Neighbors:  # type: ignore[override]
        """Add/remove only when every part is stated for it; no wider than the scope of any part."""
        if all(m.neighbors.kind == "add-remove" for m in self.mechanisms):
            return Neighbors.ADD_REMOVE
        scopes = {m.neighbors.scope for m in self.mechanisms} - {"anywhere"}
        return replace(Neighbors.REPLACE_ONE, scope=scopes.pop()) if scopes else Neighbors.REPLACE_ONE

    @property
    def assumes(self) -> tuple[str, ...]:  # type: ignore[override]
        """What any of the parts assumes."""
        return tuple(dict.fromkeys(a for m in self.mechanisms for a in m.assumes))

    @property
    def is_gaussian(self) -> bool:  # type: ignore[override]
        """All parts Gaussian: together they are one Gaussian."""
        return all(isinstance(m, Gaussian) for m in self.mechanisms)

    def profile(self, neighbors: Neighbors, change: Change = ONE) -> Profile:
        """Gaussians add up exactly; everything else composes by privacy-loss distributions."""
        self.check_scope(neighbors.scope)
        if self.is_gaussian and change.norm is None:
            return self._one_gaussian().profile(neighbors, change)
        return _composed(self.mechanisms, neighbors.per_record, change)

    @property
    def influence(self) -> Influence | None:
        """The parts' together, when they are of one kind and in one norm."""
        parts = [m.influence for m in self.mechanisms]
        known = [part for part in parts if part is not None]
        if len(known) < len(parts) or len({(part.kind, part.p) for part in known}) > 1:
            return None
        return Influence.total(known)

    def in_stratum(self, name: str | int) -> Mechanism:
        """Every part as records of this stratum meet it."""
        return Joint([m.in_stratum(name) for m in self.mechanisms])

    def mixture(self, neighbors: Neighbors, law: Multiplicity) -> Profile | None:
        """Known when all parts are Gaussian, or all are pure black boxes."""
        if self.is_gaussian:
            return self._one_gaussian().mixture(neighbors, law)
        boxes = self._pure_boxes()
        return all_say_yes([(m.epsilon, m.records_apart(neighbors)) for m in boxes], law) if boxes else None

    def opposite_mixture(self, chance: float, records: int = 1) -> Profile | None:
        """Known when all parts are Gaussian, or all are pure black boxes and each person has one record."""
        if self.is_gaussian:
            return self._one_gaussian().opposite_mixture(chance, records)
        boxes = self._pure_boxes() if self.neighbors.kind == "add-remove" and records == 1 else []
        return opposite_all_say_yes([m.epsilon for m in boxes], chance) if boxes else None

    def release(self, value: Sequence[Any], stream: Stream) -> list[Any]:
        """One answer per mechanism, for one value each."""
        if len(value) != len(self.mechanisms):
            raise InvalidInput(
                f"a Joint of {len(self.mechanisms)} mechanisms needs as many values, got {len(value)} instead"
            )
        return [m.release(v, stream) for m, v in zip(self.mechanisms, value, strict=True)]

    def _pure_boxes(self) -> list[PureDP]:
        boxes = [m for m in self.mechanisms if isinstance(m, PureDP)]
        return boxes if len(boxes) == len(self.mechanisms) else []

    def _one_gaussian(self) -> Gaussian:
        """k Gaussian releases look like one with the root sum of squares of their shifts."""
        parts = [m for m in self.mechanisms if isinstance(m, Gaussian)]
        steps = [m.records_apart(self.neighbors) for m in parts]
        total = sum((s * m.sensitivity / m.sigma) ** 2 for s, m in zip(steps, parts, strict=True)) ** 0.5
        return Gaussian(1.0, total, neighbors=self.neighbors)


@lru_cache(maxsize=4096)
def _composed(mechanisms: tuple[Mechanism, ...], neighbors: Neighbors, change: Change) -> Profile:
    profiles: dict[Mechanism, Profile] = {m: m.profile(neighbors, change).rounded_up() for m in set(mechanisms)}
    return composed_profile([profiles[m] for m in mechanisms])
