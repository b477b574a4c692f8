"""Stratified sampling: every stratum is sampled separately, by its own design.

The strata are drawn independently, so the samples of all other strata can be held fixed: to a change inside stratum s
the release is a mechanism on the sample of s alone. With delta_s the profile that the design of s gives,

Theorem 1 (add/remove). delta' = max_s delta_s, at every eps and in each direction.
Theorem 2 (replace-one within a stratum). delta' = max_s delta_s under replace-one.
Theorem 3 (replace-one anywhere). The larger of Theorem 2 and, for a record that leaves s and one that enters t,
delta'(x + y) <= delta_s(x) + e^x delta_t(y) with both under add/remove; for pure M the sum eps_s(P||Q) + eps_t(Q||P),
exact when both terms are. One that leaves for no named stratum is below both terms' sum, and at delta_s where s is
the only stratum. SD Def 7.1 prints the larger of the two losses: false.
Which stratum a record is in must be public for Theorems 1 and 2. Proofs: docs/designs/stratified.md.
"""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from fractions import Fraction
from itertools import combinations_with_replacement, permutations, product
from math import isfinite, prod
from typing import Any, ClassVar

import numpy as np

from ..chance.keys import Key
from ..core.curves import directed_curve
from ..core.design import Design, Units
from ..core.hub_plan import Hub
from ..core.mechanism import Mechanism
from ..core.multiplicity import Multiplicity
from ..core.neighbors import Neighbors
from ..core.population import Batch, Population
from ..core.profile import Curve, Profile
from ..core.reads import Labels, Read
from ..core.sample import Drawn
from ..core.tabled import tabled
from ..core.theorem import Theorem
from ..core.transport import has_noise, through_hubs
from ..errors import InvalidInput, NoTheorem
from ..numerics.log_domain import FloatArray
from . import moved_sums
from .moves import between
from .poisson import Poisson
from .pure_only import is_black_box, pure_epsilon, upper_profile
from .simple_random import WithoutReplacement
from .strata import joined, neighboring, split, within

AR, RO = Neighbors.ADD_REMOVE, Neighbors.REPLACE_ONE
WITHIN = Neighbors("replace-one", scope="within stratum")
Name = str | int
Case = tuple[Design, Mechanism]
PAGE = "docs/designs/stratified.md"
NEVER_DRAWN = "a record in a stratum that the design does not name is never drawn, and counts in no answer"
_SHARES = np.linspace(0.0, 1.0, 33)  # divisions of epsilon between leaving and entering; every one is sound
_MOST_PAIRED = 16  # different strata up to which all pairs are looked at


def certified(design: Design, mechanism: Mechanism, neighbors: Neighbors) -> Profile:
    """The smallest bound of all theorems of a design, or the reason why there is none."""
    bounds, reasons = [], []
    known = [m for m in (mechanism, mechanism.covering) if m is not None]
    for theorem in design.theorems:
        try:
            covered = next((m for m in known if theorem.covers(m, neighbors)), None)
            if covered is not None:
                bounds.append(theorem.bound(design, covered, neighbors))
        except NoTheorem as error:
            reasons.append(str(error))
    if not bounds:
        raise NoTheorem(reasons[0] if reasons else f"{design} has no theorem under {neighbors.kind}")
    return Profile.minimum(bounds)


def _in_each(design: "Stratified", mechanism: Mechanism, neighbors: Neighbors) -> dict["Case", Profile]:
    """The bound of every stratum; a thousand strata may share a few designs, each evaluated once."""
    plain = replace(neighbors.per_record, scope="anywhere")
    cases = dict.fromkeys((part, mechanism.in_stratum(name)) for name, part in design.strata)
    return {case: certified(*case, plain) for case in cases}


def _worst_stratum(design: "Stratified", mechanism: Mechanism, neighbors: Neighbors) -> Profile:
    return Profile.maximum(_in_each(design, mechanism, neighbors).values())


def _anywhere(design: "Stratified", mechanism: Mechanism, neighbors: Neighbors) -> Profile:
    within = _worst_stratum(design, mechanism, neighbors)
    if len(design.strata) == 1:
        return _alone(design, mechanism, within)
    moves = [_moved(*pair) for pair in _out_and_in(design, mechanism)]
    found = Profile.maximum([within, *moves]).symmetrised()
    return tabled(found) if _is_dear(design) else found


def _is_dear(design: "Stratified") -> bool:
    """Whether some stratum's bound is no formula that is evaluated at once."""
    return any(part.equal_chances is None for _, part in design.strata)


def _alone(design: "Stratified", mechanism: Mechanism, within: Profile) -> Profile:
    """A record may also leave the only stratum for none, where it is never drawn; with others that is below a move."""
    return Profile.maximum([within, _worst_stratum(design, mechanism, AR)]).symmetrised()


def _out_and_in(design: "Stratified", mechanism: Mechanism) -> list[tuple[Profile, Profile]]:
    """Bounds of the record that leaves and of the one that enters, for every two strata in one order."""
    bounds = _in_each(design, mechanism, AR)
    for case, bound in bounds.items():
        if case[0].equal_chances is None:
            bounds[case] = tabled(bound, 1)
    times = Counter((part, mechanism.in_stratum(name)) for name, part in design.strata)
    if len(bounds) > _MOST_PAIRED:  # one sound pair instead of a million
        worst = Profile.maximum(bounds.values())
        return [(worst, worst)]
    pairs = combinations_with_replacement(bounds, 2)
    return [(bounds[s], bounds[t]) for s, t in pairs if s != t or times[s] > 1]


def _anywhere_transport(design: "Stratified", mechanism: Mechanism, neighbors: Neighbors) -> Profile:
    """What is drawn in both strata at once, by its distance from a usual sample."""
    within = _worst_stratum(design, mechanism, neighbors)
    if len(design.strata) == 1:
        return _alone(design, mechanism, within)
    moves = through_hubs(_kinds_of_moves(design, mechanism), mechanism)
    if not _is_dear(design):
        return Profile.maximum([within, moves]).symmetrised()
    return tabled(Profile.maximum([within, tabled(moves.symmetrised(), 1)]).symmetrised())


def _kinds_of_moves(design: "Stratified", mechanism: Mechanism) -> list[Hub]:
    if any(mechanism.in_stratum(name) != mechanism for name, _ in design.strata):
        raise NoTheorem("strata with sensitivities of their own have no common distance")
    times = Counter(part for _, part in design.strata)
    pairs = [(s, t) for s, t in combinations_with_replacement(times, 2) if s != t or times[s] > 1]
    worst = [between(out, into) for s, t in pairs for out, into in product(s.components(), t.components())]
    if len(worst) > _MOST_PAIRED:
        raise NoTheorem(f"{len(worst)} kinds of moves between strata are more than the {_MOST_PAIRED} looked at")
    return worst


def _anywhere_pure(design: "Stratified", mechanism: Mechanism, neighbors: Neighbors) -> Profile:
    """The same for any event of a black box."""
    within, epsilon = _worst_stratum(design, mechanism, neighbors), pure_epsilon(mechanism, AR)
    if len(design.strata) == 1:
        return _alone(design, mechanism, within)
    moves = upper_profile(moved_sums.largest_loss(_kinds_of_moves(design, mechanism), epsilon))
    return Profile.maximum([within, moves]).symmetrised()


def _moved(out: Profile, into: Profile) -> Profile:
    """A record leaves one stratum and one enters another: P has the first and not the second, Q the reverse."""
    there = out.forward.largest_loss + into.backward.largest_loss
    back = into.forward.largest_loss + out.backward.largest_loss
    return Profile(
        _divided(out.forward, into.backward, directed_curve(there, back)),
        _divided(into.forward, out.backward, directed_curve(back, there)),
    )


def _divided(out: Curve, into: Curve, pure: Curve) -> Curve:
    """delta(x + y) <= delta_out(x) + e^x delta_into(y), and the other way round, over many divisions of epsilon."""
    is_pure = isfinite(pure.largest_loss)

    def log_delta(epsilon: FloatArray) -> FloatArray:
        x = epsilon[..., None] * _SHARES  # y is the same the other way round
        leaves, enters = out(x), into(x)
        routes = np.minimum(np.logaddexp(leaves, x + enters[..., ::-1]), np.logaddexp(enters, x + leaves[..., ::-1]))
        best: FloatArray = np.min(routes, axis=-1)
        return np.minimum(best, pure(epsilon)) if is_pure else best

    return Curve(log_delta, pure.largest_loss)


class _Natural:
    """Add/remove for the class; replace-one within a stratum where every stratum's design is stated for replace-one."""

    def __get__(self, design: "Stratified | None", owner: Any = None) -> Neighbors:
        if design is None or any(part.natural.kind == AR.kind for _, part in design.strata):
            return AR
        return WITHIN


@dataclass(frozen=True, slots=True)
class Part:
    """What each stratum has contributed so far, by name; and no records, in the columns of the data."""

    strata: dict[Name, Any] = field(repr=False)
    nobody: Batch = field(default_factory=lambda: Batch(np.empty(0, dtype=np.uint64)), repr=False)


@dataclass(frozen=True, slots=True, init=False)
class Stratified(Design):
    """One design per stratum; the population's column `stratum` gives each record's stratum.

    `strata` maps each public name to its design, which may be any but a stratified one. A record that stays in its
    stratum is protected as its design does; one that may move pays for leaving one stratum and entering another.

    >>> from privamp import PureDP, amplify
    >>> design = Stratified({"shops": Poisson(0.1), "mines": Poisson(0.5)})
    >>> round(amplify(PureDP(1.0), design).epsilon(), 6)  # the mines'
    0.620115
    """

    strata: tuple[tuple[Name, Design], ...]  # sorted by name

    keeps_apart: ClassVar[str] = WITHIN.scope
    natural: ClassVar[Neighbors] = _Natural()  # type: ignore[assignment]
    theorems: ClassVar[tuple[Theorem, ...]] = (
        Theorem("Stratified, one record", f"{PAGE}, Thm 1", AR.kind, AR.kind, False, _worst_stratum, of_parts=True),
        Theorem(
            "Stratified, replaced in its stratum", f"{PAGE}, Thm 2", RO.kind, RO.kind, False, _worst_stratum,
            scope="within stratum", of_parts=True,
        ),
        Theorem("Stratified, replaced anywhere", f"{PAGE}, Thm 3", AR.kind, RO.kind, False, _anywhere, of_parts=True),
        Theorem(
            "Stratified, replaced anywhere, transport", "docs/transport.md, Thm 7", AR.kind, RO.kind, False,
            _anywhere_transport, has_noise,
        ),
        Theorem(
            "Stratified, replaced anywhere, any event", "docs/transport.md, Thm 7", AR.kind, RO.kind, False,
            _anywhere_pure, lambda mechanism: mechanism.any_event,
        ),
    )  # fmt: skip

    @property
    def spec(self) -> str | None:
        """Each stratum's design in brackets; None where one of them has no spec, or a name is no word."""
        parts = [(name, part.spec) for name, part in self.strata]
        if any(part is None or not str(name).isidentifier() for name, part in parts):
            return None
        return f"stratified:{','.join(f'{name}=[{part}]' for name, part in parts)}"

    def __init__(self, strata: Mapping[Name, Design] | Iterable[tuple[Name, Design]]) -> None:
        pairs = list(strata.items() if isinstance(strata, Mapping) else strata)
        if not pairs:
            raise InvalidInput("strata must name at least one stratum with its design, got none instead")
        for name, design in pairs:
            if not isinstance(name, (str, int, np.integer)) or isinstance(name, bool):
                raise InvalidInput(f"the name of a stratum must be a word or a whole number, got {name!r} instead")
            if isinstance(name, str) and name.endswith("\0"):
                raise InvalidInput("the name of a stratum must not end with a NUL character, got one instead; strip it")
            if not isinstance(design, Design) or isinstance(design, Stratified):
                raise InvalidInput(
                    f"stratum {name!r} needs a design, not a stratified one, got {type(design).__name__} instead"
                )
        named = {str(name) if isinstance(name, str) else int(name): design for name, design in pairs}
        if len(named) < len(pairs):
            raise InvalidInput("every stratum must have its own name, got one twice")
        order = sorted(named, key=lambda name: (isinstance(name, str), name))
        object.__setattr__(self, "strata", tuple((name, named[name]) for name in order))

    @property
    def reads(self) -> Mapping[str, Read]:
        """The stratum, and what its designs look at."""
        inside: dict[str, Read] = {}
        for _, part in self.strata:
            inside = {**part.reads, **inside}
        return {"stratum": Labels(self.names), **inside}

    @property
    def decides_alone(self) -> bool:
        """Whether every stratum's design does."""
        return all(part.decides_alone for _, part in self.strata)

    @property
    def parts(self) -> tuple[tuple[Name, Design], ...]:
        """The strata."""
        return self.strata

    def weights(self, population: Population) -> FloatArray | None:
        """Those of the strata's designs."""
        found = np.zeros(population.size)  # for those that are never drawn
        designs = dict(self.strata)
        for name, records in within(population.batch(), "stratum", self.names).items():
            own = designs[name].weights(Population(records.ids, population.label, **records.columns))
            if own is None:
                return None
            found[records.positions] = own
        return found

    @property
    def holds_everyone(self) -> bool:
        """Whether some stratum's parts do."""
        return any(part.holds_everyone for _, part in self.strata)

    @property
    def most_held(self) -> int | None:
        """The sum over the strata, where each of them has a bound."""
        sizes = [part.most_held for _, part in self.strata]
        return None if None in sizes else sum(size or 0 for size in sizes)

    def decided(self, batch: Batch, subkey: Key) -> Drawn:
        """Stratum by stratum; one that has no record in the batch is not missed."""
        designs, strata = dict(self.strata), within(batch, "stratum", self.names)
        inside = ((designs[name], mine, subkey.subkey("stratum", name)) for name, mine in strata.items())
        return Drawn.joined(design.decided(mine, own) for design, mine, own in inside)

    @property
    def assumes(self) -> tuple[str, ...]:  # type: ignore[override]
        """What any stratum's design assumes, and what becomes of records outside of all strata."""
        every = tuple(dict.fromkeys(words for _, part in self.strata for words in part.assumes))
        return (*every, NEVER_DRAWN)

    @property
    def trades_privacy(self) -> bool:  # type: ignore[override]
        """Whether any stratum's design does."""
        return any(part.trades_privacy for _, part in self.strata)

    @property
    def names(self) -> tuple[Name, ...]:
        """The strata's names, sorted."""
        return tuple(name for name, _ in self.strata)

    def appearances(self, records: int = 1) -> Multiplicity:
        """Of a person whose records are all in the stratum that is drawn most."""
        return max((part.appearances(records) for _, part in self.strata), key=lambda law: law.eta)

    def expected_size(self, population: int) -> float:
        """Unknown: it depends on the sizes of the strata."""
        raise NoTheorem("the expected size depends on the sizes of the strata; use each stratum's design")

    expected_distinct = expected_size

    def partial(self, batch: Batch, subkey: Key) -> Part:
        """Each stratum's design looks at its own records of the batch."""
        designs, found = dict(self.strata), {}
        for name, records in within(batch, "stratum", self.names).items():
            found[name] = designs[name].partial(records, subkey.subkey("stratum", name))
        nobody = Batch(batch.ids[:0], 0, {name: values[:0] for name, values in batch.columns.items()})
        return Part(found, nobody)

    def merge(self, parts: Iterable[Part]) -> Part:
        """Stratum by stratum."""
        several = list(parts)
        together = {name: [part.strata[name] for part in several if name in part.strata] for name in self.names}
        merged = {name: design.merge(together[name]) for name, design in self.strata if together[name]}
        return Part(merged, several[0].nobody) if several else Part(merged)

    def finish(self, part: Part, subkey: Key) -> Drawn:
        """All strata's samples, in the order of the population."""
        return Drawn.joined(self._finished(part, name, design, subkey) for name, design in self.strata)

    def _finished(self, part: Part, name: Name, design: Design, subkey: Key) -> Drawn:
        """A stratum without records gives none; only where numbers of records are public it is refused."""
        own = subkey.subkey("stratum", name)
        if name in part.strata:
            return design.finish(part.strata[name], own)
        if design.natural.kind == RO.kind:
            raise InvalidInput(
                f"the population has no record in stratum {name!r}, which the design names; remove it from the "
                "design, or check the column 'stratum'"
            )
        return design.finish(design.merge([design.partial(part.nobody, own)]), own)

    def law(self, population: Population) -> Iterator[tuple[Units, Fraction]]:
        """The product of the strata's laws."""
        strata = split(population, self.names)
        laws = [list(design.law(strata[name])) for name, design in self.strata]
        for choice in product(*laws):
            drawn: Units = sum((units for units, _ in choice), ())
            yield tuple(sorted(drawn)), prod((p for _, p in choice), start=Fraction(1))

    @classmethod
    def small_cases(cls) -> Iterator[tuple["Stratified", Population]]:
        """Two and three strata of one to three records, by equal and by mixed designs."""
        wor = WithoutReplacement
        two = product(((Poisson(0.1), 1), (Poisson(0.5), 2), (wor(1, 1), 1), (wor(1, 2), 2), (wor(2, 3), 3)), repeat=2)
        three = permutations(((Poisson(0.25), 1), (wor(1, 2), 2), (Poisson(0.9), 1)))
        for case in (*two, *three, ((wor(1, 3), 3),), ((Poisson(0.5), 3),)):
            names = "abc"[: len(case)]
            design = cls(zip(names, (part for part, _ in case), strict=True))
            yield design, joined({name: Population(size) for name, (_, size) in zip(names, case, strict=True)})

    def neighboring(
        self, population: int | Population, neighbors: Neighbors
    ) -> Iterator[tuple[Population, Population]]:
        """One record more or another one in every stratum, and moves from every stratum to every other."""
        return neighboring(self.strata, Population.of(population), neighbors)

    def attack(self, mechanism: Mechanism, neighbors: Neighbors) -> Profile | None:
        """The best of the strata's own attacks."""
        found = self.attacks(mechanism, neighbors)
        return Profile.maximum(found.values()) if found else None

    def attacks(self, mechanism: Mechanism, neighbors: Neighbors) -> dict[Any, Profile]:
        """Those of each stratum, where the record stays where it is, and sums that see it move."""
        plain = replace(neighbors, scope="anywhere")
        found: dict[Any, Profile] = {}
        cases = {(part, mechanism.in_stratum(name)): name for name, part in reversed(self.strata)}
        for (part, own), name in cases.items():
            found |= {(name, label): attack for label, attack in part.attacks(own, plain).items()}
        if neighbors == RO and len(self.strata) > 1 and {own for _, own in cases} == {mechanism}:
            found |= self._seen_moving(mechanism)
        return found

    def _seen_moving(self, mechanism: Mechanism) -> dict[Any, Profile]:
        scenes = moved_sums.of_strata(Counter(part for _, part in self.strata).items())
        if not is_black_box(mechanism, RO):
            return dict(moved_sums.best(scenes, mechanism))
        event = moved_sums.worst_event(scenes.values(), mechanism, AR)
        return {"moved": event} if event else {}
