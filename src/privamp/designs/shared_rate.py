"""Proportional allocation of a target sample size: the rate size/n, n the secret number of records, in every stratum.

Each stratum of N_h records gives its N_h size/n, rounded at random (or by a rule) and drawn without replacement.
One more record changes the rate of every stratum. Let a = e^eps, n at least the public `at_least`, M eps-DP under
add/remove, k strata:

Theorem 1 (random rounding). One record more: log(1 + r(a-1) + r(1-r)(a^2-1)) + r(a-1), r = size/(at_least + 1).
One replaced: log(1 + r(a^2-1)) inside its stratum, 2 log(1 + r(a-1) + r(1-r)(a^2-1)) across strata, r =
size/at_least.
Theorem 2 (floor, half-up, ceil). One record more: max(eps, log(1 + q(a^2-1))) + (k-1) eps, for all other strata
may jump together. One replaced: log(1 + q'(a^2-1)) inside, 2 max(eps, log(1 + q(a^2-1))) across. Proofs:
docs/designs/proportional.md.
"""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from fractions import Fraction
from itertools import product
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from ..chance.keyed import keyed_pairs
from ..chance.keys import Key
from ..chance.stream import Stream
from ..core.design import Design, Units
from ..core.hub_plan import Hub
from ..core.identity import keep_plain
from ..core.line_attack import Places
from ..core.mechanism import Mechanism
from ..core.multiplicity import Multiplicity
from ..core.neighbors import Neighbors
from ..core.population import Batch, Population
from ..core.profile import Profile
from ..core.reads import Labels, Read
from ..core.sample import Drawn
from ..core.theorem import Theorem
from ..core.transport import has_noise, through_hubs
from ..core.words import Word
from ..errors import InvalidInput, NoTheorem
from ..numerics.entries import texts_of
from ..numerics.log_domain import FloatArray, log_mix
from ..validation import one_of, whole
from . import rounded_size as rounded
from . import rounded_transport as transport
from .fixed_size import BottomK
from .flips import Flips, exchanged, one_more
from .keyed_order import all_once, draw_size, joined, ordered, sizes_then_subsets
from .moved_sums import best, largest_loss, worst_event
from .moves import moved
from .multiplicity import shared_absence
from .pure_only import is_black_box, lower_profile, pure_epsilon, upper_profile
from .strata_seen import sizes_seen

AR, RO = Neighbors.ADD_REMOVE, Neighbors.REPLACE_ONE
_LARGEST = 100.0  # epsilon: events of black boxes are considered up to this value
PAGE, TRANSPORT = "docs/designs/proportional.md, shared rate", "docs/transport.md, Thm 6"


@dataclass(frozen=True, slots=True)
class Labelled:
    """Every record's place in the keyed order, and its stratum."""

    front: BottomK = field(repr=False)
    strata: NDArray[Any] = field(repr=False)


def _added(design: "SharedRate", mechanism: Mechanism, neighbors: Neighbors) -> Profile:
    epsilon, rate = pure_epsilon(mechanism, AR), Fraction(design.size, design.at_least + 1)
    if design.rounding != "random":
        return upper_profile(design.stratum_loss(epsilon) + (design.strata - 1) * epsilon)
    return upper_profile(rounded.random_added(rate, epsilon) + float(rate) * float(np.expm1(min(epsilon, 700.0))))


def _replaced(design: "SharedRate", mechanism: Mechanism, neighbors: Neighbors) -> Profile:
    share = rounded.share_replaced(design.rate, design.rounding)
    return upper_profile(float(log_mix(float(share), 2.0 * pure_epsilon(mechanism, AR))))


def _moved(design: "SharedRate", mechanism: Mechanism, neighbors: Neighbors) -> Profile:
    epsilon = pure_epsilon(mechanism, AR)
    twice = 2.0 * design.stratum_loss(epsilon)
    if design.strata == 1 or epsilon > _LARGEST:
        return upper_profile(twice)
    share = rounded.share_replaced(design.rate, design.rounding)
    inside = float(log_mix(float(share), 2.0 * epsilon))
    through = largest_loss(moved(design.components()), epsilon)
    return upper_profile(min(twice, max(inside * (1.0 + 1e-12), through)))


def _added_transport(design: "SharedRate", mechanism: Mechanism, neighbors: Neighbors) -> Profile:
    if design.rounding != "random":
        kept = float(rounded.share_kept_at_most(design.rate, design.rounding))
        return through_hubs(transport.by_rule(kept, design.strata - 1), mechanism)
    rate = design.size / (design.at_least + 1)
    flips = Flips.of(rate, design.strata - 1)
    own = transport.hubs_up_to(rate)[0].p
    return Profile.maximum([one_more(own, flips, mechanism), exchanged(rate, flips, mechanism)])


def _replaced_transport(design: "SharedRate", mechanism: Mechanism, neighbors: Neighbors) -> Profile:
    share = rounded.share_replaced(design.rate, design.rounding)
    return shared_absence(Multiplicity.binomial(1, float(share)), mechanism, RO)


def _moved_transport(design: "SharedRate", mechanism: Mechanism, neighbors: Neighbors) -> Profile:
    inside = _replaced_transport(design, mechanism, neighbors)
    if design.strata == 1:
        return inside
    return Profile.maximum([inside, through_hubs(moved(design.components()), mechanism)]).symmetrised()


@dataclass(frozen=True, slots=True)
class SharedRate(Design):
    """Draw about `size` records, each stratum its proportional share; needs the column `stratum`.

    The rate is size/n for the secret number of records n, of which `at_least` is a public lower bound; `strata` is the
    public number of strata. `rounding` of each stratum's share is "random", "floor", "half-up" or "ceil". A record
    changes the rate of all records, which the guarantee includes.

    >>> from privamp import PureDP, amplify
    >>> round(amplify(PureDP(1.0), SharedRate(size=100, at_least=10_000, strata=5)).epsilon(), 6)
    0.094537
    """

    size: int  # the wanted sample size
    at_least: int  # public lower bound on the number of records
    strata: int  # how many strata there may be, public
    rounding: rounded.Rounding = "random"

    natural: ClassVar[Neighbors] = AR
    unweighted: ClassVar[str] = "its rate is a public size over the secret number of records"
    theorems: ClassVar[tuple[Theorem, ...]] = (
        Theorem("Shared rate, one record more", PAGE, AR.kind, AR.kind, False, _added),
        Theorem("Shared rate, one moved", PAGE, AR.kind, RO.kind, False, _moved),
        Theorem("Shared rate, one replaced", PAGE, AR.kind, RO.kind, False, _replaced, scope="within stratum"),
        Theorem(
            "Shared rate, one record more, transport", TRANSPORT, AR.kind, AR.kind, False, _added_transport, has_noise
        ),
        Theorem("Shared rate, one moved, transport", TRANSPORT, AR.kind, RO.kind, False, _moved_transport, has_noise),
        Theorem(
            "Shared rate, one replaced, transport", TRANSPORT, AR.kind, RO.kind, False, _replaced_transport, has_noise,
            scope="within stratum",
        ),
    )  # fmt: skip

    word: ClassVar[Word | None] = Word(
        "shared-rate", ("size", "at_least", "strata"), ("rounding",), ("size", "at_least", "strata"), ("rounding",)
    )

    def __post_init__(self) -> None:
        keep_plain(self)
        whole(1, size=self.size)
        whole(self.size, at_least=self.at_least)
        whole(1, strata=self.strata)
        one_of(rounded.ROUNDINGS, rounding=self.rounding)

    @property
    def rate(self) -> Fraction:
        """The largest rate that can occur."""
        return Fraction(self.size, self.at_least)

    def components(self) -> tuple[Hub, ...]:
        """One record more in a stratum, at any rate up to the largest (the rate stays: for moves between strata)."""
        if self.rounding == "random":
            return transport.hubs_up_to(float(self.rate))
        return transport.by_rule(float(rounded.share_kept_at_most(self.rate, self.rounding)))

    @property
    def reads(self) -> Mapping[str, Read]:
        """The column `stratum`, any label."""
        return {"stratum": Labels()}

    def weights(self, population: Population) -> FloatArray | None:
        """Number of records over `size` with random rounding; secret, as the number of records is."""
        return np.full(population.size, population.size / self.size) if self.rounding == "random" else None

    def stratum_loss(self, epsilon: float) -> float:
        """What one record more in one stratum loses at any rate up to the largest."""
        if self.rounding == "random":
            return rounded.random_added_at_most(self.rate, epsilon)
        return rounded.deterministic_added(float(rounded.share_kept_at_most(self.rate, self.rounding)), epsilon)

    def partial(self, batch: Batch, subkey: Key) -> Labelled:
        """Every record of the batch with its place in the keyed order and its stratum."""
        high, low = keyed_pairs(subkey, batch.ids)
        return Labelled(BottomK(high, low, batch.positions, int(batch.ids.size)), _labels(batch.column("stratum")))

    def merge(self, parts: Iterable[Labelled]) -> Labelled:
        """The ids and strata of all batches: shares need the number of all records."""
        found = list(parts)
        return Labelled(joined(p.front for p in found), _together([p.strata for p in found]))

    def finish(self, part: Labelled, subkey: Key) -> Drawn:
        """Each stratum's share, first in its part of the order."""
        front, drawn = part.front, [np.empty(0, dtype=np.int64)]
        names = np.unique(part.strata)
        self._check(front.seen, names.size)
        rate = Fraction(self.size, front.seen)
        for name in names:
            mine = part.strata == name
            share = BottomK(front.high[mine], front.low[mine], front.positions[mine], int(np.sum(mine)))
            weights = rounded.size_weights(rate, share.seen, self.rounding)
            drawn.append(ordered(share)[: draw_size(weights, Stream(subkey.subkey("size", str(name))))])
        return all_once(np.sort(np.concatenate(drawn)))

    def _check(self, records: int, strata: int) -> None:
        if records < self.at_least:
            raise InvalidInput(
                f"the design declares at least {self.at_least} records but fewer were given; declare a bound that is "
                "true"
            )
        if strata > self.strata:
            raise InvalidInput(f"the design declares {self.strata} strata but more were given; declare all of them")

    def law(self, population: Population) -> Iterator[tuple[Units, Fraction]]:
        """Independent draws in the strata."""
        strata = population.columns["stratum"]
        rate = Fraction(self.size, population.size)
        parts = []
        for name in np.unique(strata):
            ids = sorted(int(i) for i in population.ids[strata == name])
            parts.append(list(sizes_then_subsets(ids, rounded.size_weights(rate, len(ids), self.rounding))))
        for choice in product(*parts):
            chance = Fraction(1)
            for _, p in choice:
                chance *= p
            yield tuple(sorted(i for units, _ in choice for i in units)), chance

    def appearances(self, records: int = 1) -> Multiplicity:
        """At most this often: the rate is largest when there are fewest records."""
        if records > 1:
            raise NoTheorem("how many of a person's records are drawn depends on the secret number of records")
        return Multiplicity.binomial(1, float(self.rate))

    def expected_size(self, population: int) -> float:
        """The wanted size."""
        return float(self.size)

    def expected_distinct(self, population: int) -> float:
        """No record is drawn twice."""
        return float(self.size)

    def neighboring(
        self, population: int | Population, neighbors: Neighbors
    ) -> Iterator[tuple[Population, Population]]:
        """A new record in any stratum, in addition to or in the place of any stratum's first."""
        old = Population.of(population)
        ids, strata = old.ids, old.columns["stratum"]
        for name in range(self.strata):
            grown = np.append(ids, ids.max() + np.uint64(1)), np.append(strata, name)
            if neighbors.kind == AR.kind:
                yield Population(grown[0], stratum=grown[1]), old
                continue
            for gone in {int(np.flatnonzero(strata == left)[0]) for left in np.unique(strata)}:
                if neighbors.scope == "anywhere" or strata[gone] == name:
                    yield Population(np.delete(grown[0], gone), stratum=np.delete(grown[1], gone)), old
        if old.size == self.at_least and np.unique(strata).size > 1:  # all records in one stratum, as in `attack`
            more, first = np.append(ids, ids.max() + np.uint64(1)), 0 if neighbors.kind == AR.kind else 1
            alike = np.zeros(more.size, dtype=strata.dtype)
            yield Population(more[first:], stratum=alike[first:]), Population(ids, stratum=alike[:-1])

    def attack(self, mechanism: Mechanism, neighbors: Neighbors) -> Profile | None:
        """The largest of several attacks."""
        found = self.attacks(mechanism, neighbors)
        return Profile.maximum(found.values()) if found else None

    def attacks(self, mechanism: Mechanism, neighbors: Neighbors) -> dict[Any, Profile]:
        """Everybody in one stratum, the changed record against all others; several, with strata's sizes seen."""
        if neighbors.records > 1:
            return {}
        newcomers = 1 if neighbors.kind == AR.kind else 0
        chance = self.size / (self.at_least + newcomers)
        scenes: dict[str, tuple[Places, Places]]
        scenes = {} if chance >= 1.0 else {"one stratum": ({2.0: chance, 0.0: 1.0 - chance}, {0.0: 1.0})}
        if self.rounding == "random" and self.strata > 1 and neighbors.scope == "anywhere":
            scenes |= sizes_seen(self.size, self.at_least, self.strata, neighbors.kind)
        if not is_black_box(mechanism, neighbors):
            return dict(best(scenes, mechanism))
        epsilon = pure_epsilon(mechanism, AR)
        event = worst_event(scenes.values(), mechanism, AR)
        alone = lower_profile(float(log_mix(chance, 2.0 * epsilon)))
        return {None: alone if event is None else Profile.maximum([alone, event])}

    @classmethod
    def small_cases(cls) -> Iterator[tuple["SharedRate", Population]]:
        """Two or three strata of 0 to 3 records, every rounding."""
        shapes = ([0, 0, 1, 1], [0, 1, 1], [0, 0, 0, 1], [0, 0, 1, 2], [0, 0, 0, 1, 1], [1, 1])
        for labels, (size, rounding) in product(
            shapes, ((1, "random"), (2, "random"), (1, "half-up"), (2, "floor"), (1, "ceil"))
        ):
            if size <= len(labels):
                people = Population(len(labels), stratum=np.array(labels))
                yield cls(size, len(labels), max(labels) + 1, rounding), people  # type: ignore[arg-type]


def _labels(column: NDArray[Any]) -> NDArray[Any]:
    """Labels that can be sorted: of a list with several types the text of each; what is no label is one stratum."""
    if column.dtype.kind == "f":
        return _texts(column) if np.isnan(column).any() else column + 0.0  # one zero
    return _texts(column) if column.dtype.kind == "O" else column


def _together(batches: list[NDArray[Any]]) -> NDArray[Any]:
    """The labels of all batches, as texts if those of one are: a missing label renames no other."""
    is_mixed = any(labels.dtype.kind == "O" for labels in batches)
    return np.concatenate([_texts(labels) for labels in batches] if is_mixed else batches)


def _texts(labels: NDArray[Any]) -> NDArray[Any]:
    if labels.dtype.kind == "O":
        return texts_of([_text(label) for label in labels.tolist()])
    names, which = np.unique(labels + 0.0 if labels.dtype.kind == "f" else labels, return_inverse=True)
    return texts_of([_text(name) for name in names])[which]


def _text(label: Any) -> str:
    """What the stratum's size is drawn by."""
    is_label = isinstance(label, (str, int, float, np.generic)) and label == label
    return str(label) if is_label else ""
