"""Rounds: the same design, drawn afresh in every round.

Formal guarantee: the composition of `steps` copies of the design's own theorem, adaptively; the relation is the
design's. `amplify(mechanism, Rounds(design, T))` equals `compose(amplify(mechanism, design), T)`.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from fractions import Fraction
from itertools import product
from math import prod

from ..chance.keys import Key
from ..core.design import Design
from ..core.identity import keep_plain
from ..core.neighbors import Neighbors
from ..core.population import Population
from ..core.reads import Read
from ..core.sample import Drawn
from ..core.schedule import Meetings, OneOf, Schedule
from ..errors import InvalidInput
from ..numerics.log_domain import FloatArray
from ..validation import whole


@dataclass(frozen=True, slots=True)
class Rounds(Schedule):
    """`steps` fresh draws of one design.

    >>> from privamp import Gaussian, Poisson, amplify
    >>> f"{amplify(Gaussian(1.0), Rounds(Poisson(0.01), 100)).epsilon(1e-6):.3f}"
    '0.954'
    """

    design: Design
    steps: int

    def __post_init__(self) -> None:
        if not isinstance(self.design, Design):
            raise InvalidInput(f"Rounds needs a design, got {type(self.design).__name__} instead")
        whole(1, steps=self.steps)
        keep_plain(self)

    @property
    def repeated(self) -> Design:
        """The design."""
        return self.design

    def begun(self, steps: int) -> "Rounds":
        """The first rounds."""
        whole(1, self.steps, steps=steps)
        return replace(self, steps=steps)

    @property
    def spec(self) -> str | None:
        """The design's own spec comes last."""
        return None if self.design.spec is None else f"rounds:steps={self.steps},design={self.design.spec}"

    @property
    def reads(self) -> Mapping[str, Read]:
        """The columns that the design reads."""
        return self.design.reads

    @property
    def decides_alone(self) -> bool:
        """Whether the design decides record by record."""
        return self.design.decides_alone

    @property
    def weight(self) -> float | None:
        """The design's weight, the same in every round."""
        return self.design.weight

    def weights(self, population: Population) -> FloatArray | None:
        """The design's weights, the same in every round."""
        return self.design.weights(population)

    @property
    def natural(self) -> Neighbors:
        """The relation of the design's theorems."""
        return self.design.natural

    def blocks(self) -> tuple[tuple[Design | OneOf, int], ...]:
        """The design, `steps` times."""
        return ((self.design, self.steps),)

    def drawn(self, population: Population | int, key: Key, step: int) -> Drawn:
        """The design's sample of round `step`."""
        self._check_step(step)
        return self.design.draw(population, key, step).reveal_secret()

    def law(self, population: Population) -> Iterator[tuple[Meetings, Fraction]]:
        """All combinations of the design's samples."""
        for chosen in product(list(self.design.law(population)), repeat=self.steps):
            yield tuple(units for units, _ in chosen), prod((chance for _, chance in chosen), start=Fraction(1))

    @classmethod
    def small_cases(cls) -> Iterator[tuple["Rounds", int]]:
        """Poisson rounds with up to two others."""
        from ..designs.poisson import Poisson

        for rate, steps, others in product((0.25, 0.5), (1, 2, 3), (0, 1)):
            yield cls(Poisson(rate), steps), others
