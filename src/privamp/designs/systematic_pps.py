"""Systematic sampling with probabilities proportional to public sizes: one random start decides everything.

Units stand in a public order with public sizes M_h, M in all. A start r is drawn from 0 to M - 1, and unit h is taken
when one of the points r, r + M, ..., r + (n-1)M falls among its n M_h places: its chance is exactly pi_h = n M_h/M < 1.
All records of a taken unit are kept (one, or up to a public cap). Which records there are decides nothing, so both a
record more in a public unit and a record replaced inside its unit are covered.

Theorem 9. A start without the record gives a sample that is e_k steps from those with it, e_k the records that at most
differ between the units of the two: all public. With w_k the chances of such samples, `one_in_several` has the loss
under pure, Gaussian and other mechanisms. It is below the unamplified one; with many units per sample, hardly.

Refused: private sizes, or a private list of units. One unit more moves all units behind it, and the loss grows with the
sample (tests/designs/test_systematic_pps.py runs the counterexample). Proof: docs/designs/pps.md.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import lru_cache
from itertools import pairwise
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from ..chance.keys import Key
from ..chance.stream import Stream
from ..core.identity import keep_in_order, keep_plain
from ..core.mechanism import Mechanism
from ..core.multiplicity import Multiplicity
from ..core.neighbors import Neighbors
from ..core.population import Population
from ..core.profile import Profile
from ..core.theorem import Theorem
from ..core.weighting import Weighting
from ..errors import InvalidInput
from ..numerics.log_domain import FloatArray
from ..validation import whole
from .clustered import Clustered, Ints
from .one_in_several import Kind, merged, theorems
from .pure_only import is_black_box, lower_profile, pure_epsilon

AR, RO = Neighbors.ADD_REMOVE, Neighbors.REPLACE_ONE
WITHIN = replace(RO, scope="within cluster")
PAGE = "docs/designs/pps.md, Thm 9"
_FEW = 64  # samples up to which every distance is looked at
_ATTACKED = 6


def _kinds(design: "SystematicPPS") -> tuple[Kind, ...]:
    return _all_kinds(design.sizes, design.chosen, design.caps)


@dataclass(frozen=True, slots=True)
class SystematicPPS(Clustered):
    """Take `chosen` of the units by a random start and a fixed interval through their public `sizes`, in their order.

    `max_size` is a public bound on the records of every unit, or one per unit: 1 where units are the records. `labels`
    are the units' public names in that order, 0, 1, ... when None. The population's column `cluster` says which unit a
    record belongs to.

    >>> from privamp import PureDP, amplify
    >>> design = SystematicPPS(sizes=(3, 2, 4, 1), chosen=2)
    >>> round(amplify(PureDP(1.0), design).epsilon(), 6)
    0.992199
    """

    sizes: tuple[int, ...]  # M_h, public, in the public order
    chosen: int  # n
    max_size: int | tuple[int, ...] = 1  # records of a unit, at most
    labels: tuple[str, ...] | None = None

    natural: ClassVar[Neighbors] = AR
    theorems: ClassVar[tuple[Theorem, ...]] = theorems(
        "Systematic by public size", PAGE, _kinds, added=True, exact=False
    )

    def __post_init__(self) -> None:
        keep_in_order(self, "sizes", "max_size", "labels")
        keep_plain(self)
        if not isinstance(self.sizes, tuple) or not self.sizes:
            raise InvalidInput(f"sizes must be one whole number per unit, got {self.sizes!r} instead")
        for size in self.sizes:
            whole(1, sizes=size)
        whole(1, 2**63, **{"the sum of sizes": self.total})
        self.check_clusters()
        whole(1, self.clusters, chosen=self.chosen)
        if self.chosen * max(self.sizes) >= self.total and self.clusters > 1:
            raise InvalidInput(
                f"a unit of size {max(self.sizes)} of {self.total} would always be drawn among {self.chosen}; split "
                "it into smaller units, or draw fewer units"
            )

    @property
    def spec(self) -> str | None:
        """What the words of a spec can say: units without labels, one cap for all."""
        if self.labels is not None or isinstance(self.max_size, tuple):
            return None
        cap = f",max_size={self.max_size}" if self.max_size > 1 else ""
        return f"systematic-pps:sizes={'+'.join(map(str, self.sizes))},chosen={self.chosen}{cap}"

    @property
    def clusters(self) -> int:  # type: ignore[override]
        """The number of units, public."""
        return len(self.sizes)

    @property
    def total(self) -> int:
        """M."""
        return sum(self.sizes)

    @property
    def chances(self) -> FloatArray:
        """pi_h."""
        if self.clusters == 1:
            return np.ones(1)
        return self.chosen * np.asarray(self.sizes, dtype=np.float64) / self.total

    def weights(self, population: Population) -> FloatArray | None:
        """One over the chance of a record's unit; 0 for one that is never drawn."""
        return np.append(1.0 / self.chances, 0.0)[self.numbers_of(population.columns["cluster"])]

    def weighting(self, records: int, known: float | None, columns: Mapping[str, Any]) -> Weighting | None:
        """1/pi. One start does not show how starts differ: the variance is bounded by how far totals can lie apart."""
        weight = np.append(1.0 / self.chances, 0.0)[self.numbers_of(np.asarray(columns["cluster"]))]
        heaviest, nothing = float(np.max(1.0 / self.chances)), np.zeros(records)
        farthest = max(float(np.sum((np.asarray(self.caps) / self.chances)[list(s)])) for s, _ in self.samples())
        refusal = "" if self.clusters == 1 else "one start does not show how starts differ"
        most = farthest**2 if self.clusters > 1 else 0.0
        return Weighting(weight, heaviest, 1.0, 0.0, nothing, 0.0, 0.0, most, cap=max(self.caps), refusal=refusal)

    def samples(self) -> list[tuple[tuple[int, ...], Fraction]]:
        """The different sets of units, each with its chance."""
        return [(units, Fraction(places, self.total)) for units, places in _starts(self.sizes, self.chosen)]

    def kinds(self) -> tuple[Kind, ...]:
        """What each record is up against, units that are alike once."""
        return _kinds(self)

    def appearances(self, records: int = 1) -> Multiplicity:
        """A person whose records all are in the likeliest unit, the worst case: all at once or not at all."""
        p = float(np.max(self.chances))
        log_p = np.full(records, -np.inf)
        log_p[-1] = np.log(p)
        return Multiplicity(float(np.log1p(-p)) if p < 1.0 else -np.inf, log_p)

    def expected_size(self, population: int) -> float:
        """At most the caps of the units that are taken."""
        return float(np.sum(self.chances * np.asarray(self.caps)))

    expected_distinct = expected_size

    def drawn_clusters(self, subkey: Key) -> Ints:
        """The units under the points of one keyed start."""
        start = int(Stream(subkey.subkey("start")).below(self.total, 1)[0])
        return np.array(_at(self.sizes, self.chosen, start), dtype=np.int64)

    def cluster_law(self, sizes: Sequence[int]) -> Iterator[tuple[tuple[int, ...], Fraction]]:
        """Starts that take the same units, taken together."""
        yield from self.samples()

    @classmethod
    def small_cases(cls) -> Iterator[tuple["SystematicPPS", Population]]:
        """Up to five units of up to two records, all full."""
        cases: tuple[tuple[tuple[int, ...], int, int], ...] = (
            ((1,), 1, 1), ((2,), 1, 2), ((1, 1), 1, 1), ((1, 1), 1, 2), ((3, 1), 1, 1), ((3, 1), 1, 2), ((2, 3), 1, 2),
            ((1, 1, 1), 1, 1), ((1, 1, 1), 2, 1), ((2, 1, 1), 1, 1), ((3, 2, 2), 2, 1), ((2, 2, 1), 2, 1),
            ((3, 2, 4), 2, 1), ((1, 1, 1, 1), 2, 1), ((2, 1, 2, 1), 2, 1), ((1, 2, 3, 2), 2, 1), ((3, 2, 3, 2), 3, 1),
            ((1, 1, 1, 1, 1), 2, 1), ((1, 2, 1, 2, 1), 2, 1), ((2, 1), 1, 1), ((4, 3), 1, 1),
        )  # fmt: skip
        for sizes, chosen, cap in cases:
            design = cls(sizes, chosen, cap)
            yield design, design.sized([cap] * len(sizes))

    def neighboring(
        self, population: int | Population, neighbors: Neighbors
    ) -> Iterator[tuple[Population, Population]]:
        """A record less, or another one, in every unit; full units are the worst, so `population` is the larger one."""
        one = Population.of(population)
        units = self.numbers_of(one.columns["cluster"])
        new = np.uint64(int(one.ids.max(initial=0)) + 1)
        for unit in range(self.clusters):
            mine = np.flatnonzero(units == unit)[:1]
            if mine.size and neighbors.kind == AR.kind:
                yield one, Population(np.delete(one.ids, mine), cluster=np.delete(one.columns["cluster"], mine))
            elif mine.size:
                other = one.ids.copy()
                other[mine] = new
                yield one, Population(other, cluster=one.columns["cluster"])

    def attacks(self, mechanism: Mechanism, neighbors: Neighbors) -> dict[Any, Profile]:
        """One record alone stands out; or, for noise, the units that come with it do, too."""
        if neighbors.records > 1:
            return {}
        steps = 1 if neighbors.kind == AR.kind else 2
        if is_black_box(mechanism, neighbors):
            return {None: lower_profile(max(self._nearest(pure_epsilon(mechanism, AR), steps)))}
        found = {}
        for unit in self._likeliest[:1]:
            for label, places in self._lines(unit, steps):
                attack = mechanism.on_a_line(*places)
                if attack is not None:
                    found[label] = attack
        return found

    def attack(self, mechanism: Mechanism, neighbors: Neighbors) -> Profile | None:
        """The best of them."""
        found = self.attacks(mechanism, neighbors)
        return Profile.maximum(found.values()) if found else None

    @property
    def _likeliest(self) -> list[int]:
        """Units that an attack looks at."""
        order: list[int] = np.argsort(-self.chances, kind="stable").tolist()
        return order[:_ATTACKED]

    def _nearest(self, epsilon: float, steps: int) -> Iterator[float]:
        """A black box that looks for samples with the record: others by their distance from the nearest of them."""
        found = self.samples()
        for unit in self._likeliest:
            inside = [set(s) for s, _ in found if unit in s]
            chance = float(sum((p for s, p in found if unit in s), Fraction(0)))
            caps = np.asarray(self.caps)
            near = [(float(p), min(int(sum(caps[h] for h in own ^ set(s))) for own in inside))
                    for s, p in found if unit not in s]  # fmt: skip
            yield Kind(chance, merged(near)).loss(epsilon, steps)

    def _lines(self, unit: int, steps: int) -> Iterator[tuple[Any, tuple[dict[float, float], dict[float, float]]]]:
        q = float(self.chances[unit])
        if q < 1.0:
            yield ("alone", q), ({float(steps): q, 0.0: 1.0 - q}, {0.0: 1.0})
        caps = self.caps
        before: dict[float, float] = {}
        after: dict[float, float] = {}
        with_it = set().union(*(s for s, _ in self.samples() if unit in s))
        for s, p in self.samples():
            at = float(sum(caps[h] if h in with_it else -caps[h] for h in s))
            there = at - steps if unit in s else at
            before[at] = before.get(at, 0.0) + float(p)
            after[there] = after.get(there, 0.0) + float(p)
        yield ("with its units", q, unit), (before, after)


def _at(sizes: tuple[int, ...], chosen: int, start: int) -> list[int]:
    """The units under the points of a start; whole numbers of any length."""
    total = sum(sizes)
    ends, run = [], 0
    for size in sizes:
        run += chosen * size
        ends.append(run)
    found, h = [], 0
    for point in range(start, chosen * total, total):
        while ends[h] <= point:
            h += 1
        found.append(h)
    return sorted(set(found))


@lru_cache(maxsize=64)
def _starts(sizes: tuple[int, ...], chosen: int) -> tuple[tuple[tuple[int, ...], int], ...]:
    """(units, number of starts): the sample changes where a unit's end comes under a point."""
    total, run, turns = sum(sizes), 0, {0}
    for size in sizes:
        run += chosen * size
        turns.add(run % total)
    borders = [*sorted(turns), total]
    found: dict[tuple[int, ...], int] = {}
    for start, end in pairwise(borders):
        units = tuple(_at(sizes, chosen, start))
        found[units] = found.get(units, 0) + end - start
    return tuple(found.items())


@lru_cache(maxsize=64)
def _all_kinds(sizes: tuple[int, ...], chosen: int, caps: tuple[int, ...]) -> tuple[Kind, ...]:
    """Every unit's chance with the law of the farthest distances, no kind twice."""
    starts, total = _starts(sizes, chosen), sum(sizes)
    held: NDArray[np.int64] = np.zeros((len(starts), len(sizes)), dtype=np.int64)
    for j, (units, _) in enumerate(starts):
        held[j, list(units)] = np.asarray(caps)[list(units)]
    places = np.array([n for _, n in starts], dtype=object)
    apart = _apart(held, np.asarray(caps)) if len(starts) <= _FEW else None
    largest = sorted(held.sum(axis=1).tolist(), reverse=True)
    kinds: dict[Kind, None] = {}
    changed = range(len(sizes)) if apart is not None else [int(np.argmax(sizes))]  # the loss grows with the chance
    for h in changed:
        inside = held[:, h] > 0
        chance = float(Fraction(int(places[inside].sum()), total))
        if apart is None:
            others: tuple[tuple[float, int], ...] = ((1.0 - chance, int(largest[0] + largest[1])),)
        else:
            far = apart[np.ix_(inside, ~inside)].max(axis=0) if not inside.all() else []
            rest = [float(Fraction(int(n), total)) for n in places[~inside]]
            others = merged((w, int(e)) for w, e in zip(rest, far, strict=True))
        kinds[Kind(chance, others)] = None
    return tuple(kinds)


def _apart(held: NDArray[np.int64], caps: NDArray[np.int64]) -> NDArray[np.int64]:
    """Records that are in one sample and not in the other, every unit full."""
    one = (held > 0).astype(np.int64)
    size = held.sum(axis=1)
    shared = (one * caps) @ one.T
    return np.asarray(size[:, None] + size[None, :] - 2 * shared)
