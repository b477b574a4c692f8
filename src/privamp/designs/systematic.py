"""Systematic sampling: every `step`-th record from a random start.

order="random": the list is shuffled secretly first. Given the size all subsets are then equally likely, and the
size is n/step rounded at random: the law of Proportional(1/step), with its theorems, for every number of records.

order="slots": a record's slot is its id modulo `step`, a public function of the record alone; one slot is drawn.
That is one of k = step clusters. With a = e^eps, q = 1/k, at most c = `max_slot` records in any slot:
    one record more, exactly the supremum:        log(1 + (a-1) q/(q + (1-q) a^-(2c-1)))
    one replaced inside its slot, the supremum:   log(1 + (a^2-1) q/(q + (1-q) a^-(2c-2)))
    one replaced by any other: no more than that.

order="sorted", or any order by rank, is refused: one insertion shifts all later records into another slot, and
the loss grows with the sample (at n = 4, step 2, eps = 1 it is 2.62). Proofs: docs/designs/systematic.md.
"""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any, ClassVar, Literal

import numpy as np
from numpy.typing import NDArray

from ..chance.keys import Key
from ..chance.stream import Stream
from ..core.design import Design, Units
from ..core.identity import keep_plain
from ..core.mechanism import Mechanism
from ..core.neighbors import Neighbors
from ..core.population import Batch, Population
from ..core.profile import Profile
from ..core.sample import Drawn
from ..core.theorem import Theorem
from ..core.transport import has_noise
from ..core.weighting import Weighting
from ..core.words import Word
from ..errors import InvalidInput, NoTheorem
from ..numerics.log_domain import FloatArray
from ..validation import one_of, whole
from . import cluster_loss as cluster
from .cluster import ClusterSampling
from .fixed_size import BottomK
from .keyed_order import SizeOnly, all_once, ordered
from .proportional import FixedShare, Proportional, any_number, bounded_number
from .pure_only import is_black_box, lower_profile, pure_epsilon, upper_profile
from .stratified import certified

AR, RO = Neighbors.ADD_REMOVE, Neighbors.REPLACE_ONE
PAGE = "docs/designs/systematic.md"
_REFUSED = (
    "order 'sorted' has no guarantee: one more record shifts all records after it, so the loss grows with the sample; "
    "use order='random' (a secret shuffle), order='slots' (by id), or stratify by the attribute and draw in each one"
)


@dataclass(frozen=True, slots=True)
class Slots:
    """The records seen in the drawn slot, and how many were seen in each."""

    positions: NDArray[np.int64] = field(repr=False)
    counts: NDArray[np.int64] = field(repr=False)


def _shuffled(design: "Systematic", mechanism: Mechanism, neighbors: Neighbors) -> Profile:
    _loss(design, mechanism, "random")
    return any_number(design, mechanism, neighbors)


def _shuffled_bounded(design: "Systematic", mechanism: Mechanism, neighbors: Neighbors) -> Profile:
    _loss(design, mechanism, "random")
    return bounded_number(design, mechanism, neighbors)


def _slot_added(design: "Systematic", mechanism: Mechanism, neighbors: Neighbors) -> Profile:
    return upper_profile(design.slot_added(_loss(design, mechanism, "slots")))


def _slot_replaced(design: "Systematic", mechanism: Mechanism, neighbors: Neighbors) -> Profile:
    return upper_profile(design.slot_replaced(_loss(design, mechanism, "slots")))


def _slot_moved(design: "Systematic", mechanism: Mechanism, neighbors: Neighbors) -> Profile:
    return upper_profile(design.slot_replaced(_loss(design, mechanism, "slots")))


def _shuffled_noise(design: "Systematic", mechanism: Mechanism, neighbors: Neighbors) -> Profile:
    if design.order != "random":
        raise NoTheorem("this theorem is about order 'random'")
    return certified(Proportional(design.share, at_most=design.at_most), mechanism, neighbors)


def _slot_noise(design: "Systematic", mechanism: Mechanism, neighbors: Neighbors) -> Profile:
    if design.order != "slots":
        raise NoTheorem("this theorem is about order 'slots'")
    return certified(ClusterSampling(1, design.step, design.max_slot or 1), mechanism, neighbors)


def _loss(design: "Systematic", mechanism: Mechanism, order: str) -> float:
    epsilon = pure_epsilon(mechanism, AR)
    if design.order != order:
        raise NoTheorem(f"this theorem is about order {order!r}")
    return epsilon


@dataclass(frozen=True, slots=True)
class Systematic(FixedShare):
    """Keep every `step`-th record of a secretly shuffled list, or one of `step` public slots.

    order="random" shuffles with the key, and `at_most` may give a public upper bound on the number of records.
    order="slots" draws one of `step` public slots, an id modulo `step`, of at most `max_slot` records each: a cluster
    sample, and protected like one.

    >>> from privamp import PureDP, amplify
    >>> round(amplify(PureDP(1.0), Systematic(10)).epsilon(), 6)
    0.55781
    """

    step: int  # k
    order: Literal["random", "slots"] = "random"
    max_slot: int | None = None  # c: a public bound on every slot's size, for order="slots"
    at_most: int | None = None  # a public bound on the number of records, for order="random", when there is one

    natural: ClassVar[Neighbors] = AR
    theorems: ClassVar[tuple[Theorem, ...]] = (
        Theorem("Systematic, secret order", f"{PAGE}, Thm 1", AR.kind, AR.kind, True, _shuffled),
        Theorem("Systematic, secret order, one replaced", f"{PAGE}, Thm 1", AR.kind, RO.kind, False, _shuffled),
        Theorem("Systematic, secret order, bounded", f"{PAGE}, Thm 1", AR.kind, AR.kind, True, _shuffled_bounded),
        Theorem(
            "Systematic, secret order, bounded, one replaced",
            f"{PAGE}, Thm 1",
            AR.kind,
            RO.kind,
            False,
            _shuffled_bounded,
        ),
        Theorem("Systematic, slots", f"{PAGE}, Thm 2", AR.kind, AR.kind, True, _slot_added),
        Theorem("Systematic, slots, one moved", f"{PAGE}, Thm 2", AR.kind, RO.kind, False, _slot_moved),
        Theorem(
            "Systematic, slots, one replaced",
            f"{PAGE}, Thm 2",
            AR.kind,
            RO.kind,
            True,
            _slot_replaced,
            scope="within cluster",
        ),
        *(
            Theorem(f"Systematic, {what}, transport", cite, AR.kind, gives, False, bound, has_noise, scope=scope)
            for what, cite, gives, bound, scope in (
                ("secret order", "docs/transport.md, Thm 4", AR.kind, _shuffled_noise, "anywhere"),
                ("secret order, one replaced", "docs/transport.md, Thm 4", RO.kind, _shuffled_noise, "anywhere"),
                ("slots", "docs/transport.md, Thm 2", AR.kind, _slot_noise, "anywhere"),
                ("slots, one moved", "docs/transport.md, Thm 2", RO.kind, _slot_noise, "anywhere"),
                ("slots, one replaced", "docs/transport.md, Thm 2", RO.kind, _slot_noise, "within cluster"),
            )
        ),
    )

    word: ClassVar[Word | None] = Word(
        "systematic", ("step",), ("order", "max_slot", "at_most"), ("step", "max_slot", "at_most"), ("order",)
    )

    def __post_init__(self) -> None:
        keep_plain(self)
        whole(1, step=self.step)
        one_of(("random", "slots", "sorted"), order=self.order)
        if self.order not in ("random", "slots"):
            raise NoTheorem(_REFUSED)
        if self.at_most is not None:
            whole(1, at_most=self.at_most)
        if self.order == "slots":
            whole(1, max_slot=self.max_slot)
        elif self.max_slot is not None:
            raise InvalidInput(f"max_slot is only for order 'slots', got {self.max_slot!r} with order 'random' instead")

    @property
    def share(self) -> Fraction:
        """One in `step`."""
        return Fraction(1, self.step)

    @property
    def treats_alike(self) -> bool:
        """Slots go by the id."""
        return self.order == "random"

    @property
    def how(self) -> str:
        """A random start rounds at random."""
        return "random"

    def weights(self, population: Population) -> FloatArray | None:
        """`step`, in either order."""
        return np.full(population.size, float(self.step))

    def weighting(self, records: int, known: float | None, columns: Mapping[str, Any]) -> Weighting | None:
        """A fixed share; or one slot of `step`, whose spread no sample shows."""
        if self.order == "random":
            return FixedShare.weighting(self, records, known, columns)
        step, cap = float(self.step), self.max_slot or 1
        most = step * (step - 1.0) * cap**2 * step / max(step - 1, 1)
        refusal = "" if step == 1 else "one drawn slot does not show how slots differ; use order='random'"
        nothing = np.zeros(records)
        return Weighting(np.full(records, step), step, 1.0, 0.0, nothing, 0.0, 0.0, most, cap=cap, refusal=refusal)

    @property
    def holds_everyone(self) -> bool:
        """The secret order is of all records; a slot is not."""
        return self.order == "random"

    def slot_added(self, epsilon: float) -> float:
        """Theorem 2: epsilon when a slot has one record more."""
        return cluster.added(epsilon, 1.0, self._log_rest(epsilon))

    def slot_replaced(self, epsilon: float) -> float:
        """One record replaced inside its slot."""
        return cluster.replaced(epsilon, 1.0, self._log_rest(epsilon))

    def _log_rest(self, epsilon: float) -> float:
        cap = self.max_slot or 1
        return cluster.log_rest_equal(epsilon, 1.0, cap - 1, cap, 1.0 / self.step)

    def _start(self, subkey: Key) -> int:
        return int(Stream(subkey.subkey("start")).below(self.step, 1)[0])

    def partial(self, batch: Batch, subkey: Key) -> Any:
        """The whole keyed order, or the drawn slot's records."""
        if self.order == "random":
            return SizeOnly.partial(self, batch, subkey)
        slots = _slots_of(batch.ids, self.step)
        kept = batch.positions[slots == self._start(subkey)]
        return Slots(kept, np.bincount(slots, minlength=self.step).astype(np.int64))

    def merge(self, parts: Iterable[Any]) -> Any:
        """The records seen in the drawn slot, or the ids of all batches."""
        if self.order == "random":
            return SizeOnly.merge(self, parts)
        found = list(parts)
        return Slots(np.sort(np.concatenate([p.positions for p in found])), sum(p.counts for p in found))

    def finish(self, part: Any, subkey: Key) -> Drawn:
        """Every `step`-th record of the order, or the slot."""
        if isinstance(part, BottomK):
            self.check_population(part.seen)
            return all_once(ordered(part)[self._start(subkey) :: self.step])
        if np.max(part.counts) > (self.max_slot or 0):
            raise InvalidInput(
                f"the design declares at most {self.max_slot} records in a slot but one has more; declare a cap that "
                "is true"
            )
        return all_once(part.positions)

    def law(self, population: Population) -> Iterator[tuple[Units, Fraction]]:
        """The rounded size and all its subsets, or the slots."""
        if self.order == "random":
            yield from SizeOnly.law(self, population)
            return
        for start in range(self.step):
            yield tuple(sorted(int(i) for i in population.ids if int(i) % self.step == start)), self.share

    def neighboring(
        self, population: int | Population, neighbors: Neighbors
    ) -> Iterator[tuple[Population, Population]]:
        """Secret order: all sizes. Slots: full ones, a record more in slot 0 or replaced, in it or from another.

        A slot is a cluster: a record that moves to another slot is not replaced within it.
        """
        if self.order == "random":
            yield from FixedShare.neighboring(self, population, neighbors)
            return
        full = np.arange(self.step * (self.max_slot or 1), dtype=np.uint64)
        new = np.uint64(full.size)  # belongs to slot 0
        if neighbors.kind == AR.kind:
            yield Population(full), Population(full[1:])
            return
        yield Population(full), Population([*full[1:], new])
        if self.step > 1 and neighbors.scope == "anywhere":
            yield Population(full[full != 1]), Population(full[1:])

    @classmethod
    def small_cases(cls) -> Iterator[tuple["Systematic", int]]:
        """Intervals of 1 to 4 on up to 5 records in secret order, and small slots."""
        for step in range(1, 5):
            for n in (0, 1, 3, 4):
                yield cls(step, at_most=n + 1), n
        for step, cap in ((1, 1), (1, 3), (2, 1), (2, 2), (2, 3), (3, 1), (3, 2), (4, 1)):
            yield cls(step, "slots", cap), step * cap

    def attacks(self, mechanism: Mechanism, neighbors: Neighbors) -> dict[Any, Profile]:
        """Those of a fixed share, or of a cluster."""
        return (FixedShare if self.order == "random" else Design).attacks(self, mechanism, neighbors)

    def attack(self, mechanism: Mechanism, neighbors: Neighbors) -> Profile | None:
        """The worst event of a black box: full slots, one record changed inside one; or the worst number of records."""
        if self.order == "random":
            return FixedShare.attack(self, mechanism, neighbors)
        if not is_black_box(mechanism, neighbors):
            return ClusterSampling(1, self.step, self.max_slot or 1).attack(mechanism, neighbors)
        loss = self.slot_added if neighbors.kind == AR.kind else self.slot_replaced
        return lower_profile(loss(pure_epsilon(mechanism, AR)))


def _slots_of(ids: NDArray[Any], step: int) -> NDArray[np.int64]:
    if ids.dtype.kind != "u":
        raise InvalidInput(
            f"slots need whole-number ids, got an array of {ids.dtype} instead; number the records publicly, "
            "or use order='random'"
        )
    return (ids % np.uint64(step)).astype(np.int64)
