"""Multi-stage sampling (MUST): each stage draws from the entries of the stage before it.

The record starts as 1 of n. A stage "wr" from N entries to m makes u of j copies with law Binomial(m, j/N), a stage
"wor" with law Hypergeometric(N, j, m); the composed kernels give its law p_u.

Theorem A (replace-one → replace-one). delta'(eps') <= sum_u p_u delta_u(log(1 + (e^eps' - 1)/eta)), delta_u the
replace-one profile at distance u. MUST Theorem 4 with the repaired proof (stagewise monotone coupling).
Theorem B (Gaussian noise; "wr", "wor, wr", "wr, wr"). Near the attack: shared_copies.py.
Theorem B' (pure, replace-one → replace-one). Work back from the last stage: "wor" m of N turns eps into
log(1 + (m/N)(e^eps - 1)), "wr" turns it into m log(1 + (e^eps - 1)/N). Proved for every chain; for "wr" alone and
"wor, wr" it equals log sum_u p_u e^(u eps). Proofs: docs/designs/multistage.md.

Theorem C (pure). The same by how many entries differ at every stage: stage_counts.py.
Theorem D (first stage "wor", any mechanism). Simple random sampling of whatever the rest of the chain does:
delta'(eps) = q delta_rest(log(1 + (e^eps - 1)/q)), q = m/n.

Add/remove is refused: the tempting one-sided pair is false for chains.
"""

import math
from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction
from itertools import product
from typing import ClassVar

import numpy as np

from ..chance.stream import Stream
from ..core.curves import pure_curve
from ..core.design import Units
from ..core.identity import keep_plain
from ..core.mechanism import Mechanism
from ..core.multiplicity import Multiplicity
from ..core.neighbors import Neighbors
from ..core.population import Population
from ..core.profile import Curve, Profile
from ..core.theorem import Theorem
from ..errors import InvalidInput, NoTheorem
from ..numerics.log_domain import FloatArray, log_expm1, log_mix
from ..validation import in_order, whole
from .exact_law import with_replacement, without_replacement
from .fixed_size import FixedSize, Ints, occupancy
from .multiplicity import replaced
from .shared_copies import copies_bound
from .stage_counts import chain_loss
from .stratified import certified

RO = Neighbors.REPLACE_ONE
Stages = tuple[tuple[str, int], ...]
_LONG = 2  # stages after the first one: theorems of shorter chains are as near


def _theorem_b(design: "MultiStage", mechanism: Mechanism, neighbors: Neighbors) -> Profile:
    return copies_bound(design.stages, design.population, mechanism)


def _stage_by_stage(design: "MultiStage", mechanism: Mechanism, neighbors: Neighbors) -> Profile:
    epsilon = mechanism.profile(RO).largest_loss
    for kind, entries, draws in reversed(design.sized_stages):
        if kind == "wor":
            epsilon = float(log_mix(draws / entries, epsilon))
        else:
            epsilon = draws * float(log_mix(1.0 / entries, epsilon))
    return Profile.symmetric(pure_curve(epsilon))


def _by_counts(design: "MultiStage", mechanism: Mechanism, neighbors: Neighbors) -> Profile:
    epsilon = mechanism.profile(RO).largest_loss
    return Profile.symmetric(pure_curve(chain_loss(design.sized_stages, neighbors.records, epsilon)))


def _after_the_first(design: "MultiStage", mechanism: Mechanism, neighbors: Neighbors) -> Profile:
    (kind, entries, draws), *rest = design.sized_stages
    if kind != "wor" or len(rest) < _LONG:
        raise NoTheorem("this theorem is about longer chains whose first stage is without replacement")
    after, share = certified(MultiStage(design.stages[1:], draws), mechanism, RO).symmetrised(), draws / entries

    def log_delta(epsilon: FloatArray) -> FloatArray:
        return math.log(share) + after.forward(np.logaddexp(0.0, log_expm1(epsilon) - math.log(share)))

    return Profile.symmetric(Curve(log_delta, float(log_mix(share, after.largest_loss))))


@dataclass(frozen=True, slots=True)
class MultiStage(FixedSize):
    """Stages ("wor", size) and ("wr", size), drawn one after the other.

    `stages` are at least one and end in the sample; each draws from the result of the one before, the first from the
    public number of records `population`. The guarantee is about replacing one record.

    >>> round(MultiStage([("wor", 118), ("wr", 200)], population=10000).appearances().eta, 8)
    0.00964894
    """

    stages: Stages
    population: int

    natural: ClassVar[Neighbors] = RO
    theorems: ClassVar[tuple[Theorem, ...]] = (
        Theorem(
            "Multi-stage sampling, Theorem A",
            "docs/designs/multistage.md, after MUST Thm 4",
            RO.kind,
            RO.kind,
            False,
            replaced,
            groups=True,
        ),
        Theorem(
            "Multi-stage sampling, Theorem B (Gaussian, last stage with replacement)",
            "docs/designs/multistage.md, Thm B",
            RO.kind,
            RO.kind,
            False,
            _theorem_b,
            applies=lambda m: m.is_gaussian,
        ),
        Theorem(
            "Multi-stage sampling, stage by stage",
            "docs/designs/multistage.md, Thm B'",
            RO.kind,
            RO.kind,
            False,
            _stage_by_stage,
            applies=lambda m: math.isfinite(m.profile(RO).largest_loss),
        ),
        Theorem(
            "Multi-stage sampling, by numbers of copies",
            "docs/designs/multistage.md, Thm C",
            RO.kind,
            RO.kind,
            False,
            _by_counts,
            applies=lambda m: math.isfinite(m.profile(RO).largest_loss),
            groups=True,
        ),
        Theorem(
            "Multi-stage sampling, first stage apart",
            "docs/designs/multistage.md, Thm D",
            RO.kind,
            RO.kind,
            False,
            _after_the_first,
        ),
    )

    def __post_init__(self) -> None:
        whole(1, population=self.population)
        stages = tuple((str(kind), size) for kind, size in in_order("stages", self.stages))
        if not stages:
            raise InvalidInput("stages must hold at least one stage such as ('wor', 100), got none instead")
        object.__setattr__(self, "stages", stages)
        keep_plain(self)
        for kind, entries, draws in self.sized_stages:
            if kind not in ("wor", "wr"):
                raise InvalidInput(f"a stage must be 'wor' or 'wr', got {kind!r} instead")
            whole(1, entries if kind == "wor" else None, **{f"size of stage {kind}": draws})

    @property
    def sized_stages(self) -> tuple[tuple[str, int, int], ...]:
        """Each stage with the number of entries it draws from."""
        sizes = [self.population, *(size for _, size in self.stages)]
        return tuple((kind, sizes[i], size) for i, (kind, size) in enumerate(self.stages))

    @property
    def spec(self) -> str | None:
        """The stages in their order, then the population."""
        stages = "".join(f"{kind}={size}," for kind, size in self.stages)
        return f"multistage:{stages}population={self.population}"

    @property
    def draws(self) -> int:
        """Entries of the last stage."""
        return self.stages[-1][1]

    @property
    def most_distinct(self) -> int:
        """No stage can bring back what an earlier one left out."""
        return min(size for _, size in self.stages)

    def hits(self, stream: Stream, population: int) -> Ints:
        """Follow anonymous cells through the stages."""
        kind, size = self.stages[0]
        cells: Ints = np.arange(size) if kind == "wor" else stream.below(population, size).astype(np.int64)
        for kind, size in self.stages[1:]:
            picks = stream.choose(cells.size, size) if kind == "wor" else stream.below(cells.size, size)
            cells = cells[picks]
        return occupancy(cells)

    def appearances(self, records: int = 1) -> Multiplicity:
        """The composed kernels, started at `records` of the population."""
        (kind, entries, draws), *rest = self.sized_stages
        specials = min(records, entries)
        if kind == "wor":
            law = Multiplicity.hypergeometric(entries, specials, draws)
        else:
            law = Multiplicity.binomial(draws, specials / entries)
        for kind, entries, draws in rest:
            through = law.then_without_replacement if kind == "wor" else law.then_with_replacement
            law = through(entries, draws)
        return law

    def law(self, population: Population) -> Iterator[tuple[Units, Fraction]]:
        """All multisets, by composing the exact stage laws."""
        laws: dict[Units, Fraction] = {tuple(sorted(int(i) for i in population.ids)): Fraction(1)}
        for kind, size in self.stages:
            stage = without_replacement if kind == "wor" else with_replacement
            after: dict[Units, Fraction] = {}
            for units, chance in laws.items():
                for kept, weight in stage(units, size):
                    after[kept] = after.get(kept, Fraction(0)) + chance * weight
            laws = after
        yield from laws.items()

    @classmethod
    def small_cases(cls) -> Iterator[tuple["MultiStage", int]]:
        """One to three stages out of 2 to 4 records."""
        for population in range(2, 5):
            for length in (1, 2, 3):
                for kinds in product(("wor", "wr"), repeat=length):
                    sizes = (min(population, 3), 2, 1 if length == 3 and kinds[2] == "wor" else 2)
                    yield cls(tuple(zip(kinds, sizes, strict=False)), population), population

    def attack(self, mechanism: Mechanism, neighbors: Neighbors) -> Profile | None:
        """A sum with all other records at one end of the range and the changed one at the other."""
        return mechanism.mixture(RO, self.appearances(neighbors.records)) if neighbors.kind == RO.kind else None
