"""A claim: which mechanism, on which design, for which neighbours, how many times. A guarantee is made of claims."""

from dataclasses import dataclass
from typing import Any

from ..validation import whole
from .neighbors import Neighbors
from .written import read_back, written


@dataclass(frozen=True, slots=True)
class Claim:
    """`times` fresh draws by `design`, each with one run of `mechanism`.

    Without a design (None) `mechanism` has a guarantee of its own: its method `guarantee()` computes it from its public
    fields, as for rules, filters and whole jobs.

    Comparable, hashable and picklable: equal claims give equal numbers on every machine.

    `neighbors` is the relation that the guarantee is about.

    >>> from privamp import Laplace, Neighbors, Poisson
    >>> one = Claim(Laplace(2.0), Poisson(0.1), Neighbors.ADD_REMOVE)
    >>> one == Claim.from_json(one.to_json())
    True
    """

    mechanism: Any
    design: Any
    neighbors: Neighbors
    times: int = 1

    def __post_init__(self) -> None:
        whole(1, times=self.times)

    def to_json(self) -> dict[str, Any]:
        """The claim as data, or InvalidInput when a part of it is a function."""
        return {
            "mechanism": written(self.mechanism),
            "design": written(self.design),
            "neighbors": written(self.neighbors),
            "times": self.times,
        }

    @classmethod
    def from_json(cls, data: dict[str, Any]) -> "Claim":
        """The claim that `to_json` wrote."""
        return cls(*(read_back(data[name]) for name in ("mechanism", "design", "neighbors", "times")))
