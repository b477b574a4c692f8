"""Poisson importance sampling: every record has its own coin and, if kept, a weight.

The probability q(x) and the weight w(x) <= 1/q(x) are a rule's: public functions of the record alone.

Theorem 1 (add/remove, one record; IS Thm 6). If the release on weighted data has curve d_{w,x} for a record x of
weight w, the sampled release has for that record

    D(P||Q)(log(1 + q(e^eps - 1))) <= q d_{w,x}(eps),    D(Q||P)(eps) <= A d_{w,x}(eps + log q - log A),

A = 1 - e^eps (1 - q), eps >= 0. For a pure profile epsilon(w, x): psi(x) = log(1 + q(e^epsilon(w,x) - 1)), exactly.
Theorem 2 (worst case). For a release whose influence the rule was made for: the rule's own certified number.
Theorem 3 (worst case, any influence). The supremum over cells of the declared ball.

Weighted sampling makes a job faster, not more private: for pure linear profiles psi(x) >= epsilon(1, x) for every
probability.
Proofs: docs/designs/importance.md.
"""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from ..chance.keyed import keyed_numbers
from ..chance.keys import Key
from ..core.curves import pure_curve
from ..core.design import Design, Units
from ..core.influence import Influence
from ..core.mechanism import Mechanism
from ..core.multiplicity import Multiplicity
from ..core.neighbors import Neighbors
from ..core.population import Batch, Population
from ..core.profile import Profile
from ..core.reads import Read, Vectors
from ..core.sample import Drawn
from ..core.theorem import Theorem
from ..errors import InvalidInput, NoTheorem
from ..numerics.log_domain import FloatArray, as_floats
from ..numerics.row_norms import norms
from ..rules.cells import worst_of_cells
from ..rules.coreset import coreset
from ..rules.privacy_constrained import privacy_constrained
from ..rules.profiles import GaussianProfile, LinearProfile
from ..rules.rounded import probabilities_below
from ..rules.rule import Rule
from ..rules.sampled_curves import amplified, record_profile
from ..rules.uniform import Uniform, uniform
from ..rules.variance_optimal import variance_optimal
from .coins import coin_law

AR = Neighbors.ADD_REMOVE
Part = tuple[NDArray[np.int64], FloatArray, FloatArray]  # positions, weights, norms


def _matched(design: "ImportanceSampling", mechanism: Mechanism, neighbors: Neighbors) -> Profile:
    design.rule.check_public()
    rule, influence = design.rule, _influence(mechanism)
    if rule.influence is None or not influence.is_covered_by(rule.influence):
        raise NoTheorem(
            "the rule was made for another release: its influence does not cover that of the mechanism; make the rule "
            "with LinearProfile.of(mechanism) or GaussianProfile.of(mechanism)"
        )
    return rule.worst_profile()


def _by_cells(design: "ImportanceSampling", mechanism: Mechanism, neighbors: Neighbors) -> Profile:
    return worst_of_cells(design.rule, design.in_norm_of_the_rule(_influence(mechanism)))


def _at_the_radius(design: "ImportanceSampling", mechanism: Mechanism, neighbors: Neighbors) -> Profile:
    rule = design.rule
    if not isinstance(rule, Uniform):
        raise NoTheorem("this theorem is about the uniform rule")
    influence = design.in_norm_of_the_rule(_influence(mechanism))
    w = rule.weights_of_norms(as_floats([rule.radius]))
    return record_profile(influence.kind, probabilities_below(w), influence.at(rule.radius) * w)


def _influence(mechanism: Mechanism) -> Influence:
    if mechanism.influence is None:
        raise NoTheorem(
            f"{type(mechanism).__name__} does not state how far a record of a given norm and weight moves it; "
            "importance "
            "sampling needs Laplace, NormNoise, Gaussian or SumAndCount stated for add-remove, or a Joint of one kind"
        )
    return mechanism.influence


@dataclass(frozen=True, slots=True)
class ImportanceSampling(Design):
    """Keep each record with the probability given by a rule, and weight it by the inverse.

    The records are the column `column` of the population: one row (or number) each. What a record adds to a release,
    before its weight, must be no longer than the record, clipped to the rule's radius: the guarantee covers only
    the columns the rule reads. `Sample.release` shortens rows that are longer. Counts need a mechanism that allows for
    them, `SumAndCount`.

    >>> from privamp import Laplace, LinearProfile, amplify, privacy_constrained
    >>> noise = Laplace(scale=10.0)
    >>> rule = privacy_constrained(LinearProfile.of(noise), epsilon=1.0, radius=4.0)
    >>> amplify(noise, ImportanceSampling(rule)).epsilon()
    1.0
    """

    rule: Rule
    column: str = "x"

    natural: ClassVar[Neighbors] = AR
    trades_privacy: ClassVar[bool] = True
    unweighted: ClassVar[str] = "its records carry weights of its own, for the noise that its rule was made for"
    theorems: ClassVar[tuple[Theorem, ...]] = (
        Theorem(
            "importance sampling, the rule's own release",
            "IS Thm 6; docs/designs/importance.md, Thm 2",
            AR.kind,
            AR.kind,
            False,
            _matched,
        ),
        Theorem(
            "importance sampling, cells of the ball",
            "docs/designs/importance.md, Thm 3",
            AR.kind,
            AR.kind,
            False,
            _by_cells,
        ),
        Theorem(
            "uniform weights, at the radius",
            "IS Thm 6; docs/designs/importance.md, Thm 4",
            AR.kind,
            AR.kind,
            True,
            _at_the_radius,
        ),
    )

    decides_alone: ClassVar[bool] = True
    assumes: ClassVar[tuple[str, ...]] = (
        *Design.assumes,
        "what a record adds to a release, before its weight, is no longer than the record that the rule looked at, "
        "clipped to the rule's radius",
    )

    def __post_init__(self) -> None:
        if not isinstance(self.rule, Rule):
            raise InvalidInput(
                f"rule must be a rule such as privacy_constrained(…), got {type(self.rule).__name__} instead"
            )

    @property
    def reads(self) -> Mapping[str, Read]:
        """The records themselves."""
        return {self.column: Vectors(self.rule)}

    @property
    def weighing_rule(self) -> Rule | None:
        """The rule that gives each record its weight."""
        return self.rule

    def weights(self, population: Population) -> FloatArray | None:
        """One over each record's probability; as secret as the record."""
        return self.rule.weights(population.columns[self.column])

    def in_norm_of_the_rule(self, influence: Influence) -> Influence:
        """An influence as a function of the norm by which the rule decides."""
        if self.rule.p == influence.p or influence.p > self.rule.p:  # ||x||_p falls as p grows
            return replace(influence, p=self.rule.p)
        if self.rule.p == 2.0:
            return influence.in_l2(getattr(self.rule, "dimension", None))
        raise NoTheorem(
            f"the rule uses the {self.rule.p:g}-norm of records, but the mechanism the {influence.p:g}-norm; use one "
            "norm for both"
        )

    def appearances(self, records: int = 1) -> Multiplicity:
        """Binomial at the largest probability of the domain."""
        end = self.rule.farthest
        largest = float(self.rule.of_norms(as_floats([end]))[0]) if end is not None and np.isfinite(end) else 1.0
        return Multiplicity.binomial(records, largest)

    @property
    def number_bound(self) -> int | None:
        """That of the rule: a record at the end of the domain is kept most often."""
        return self.rule.number_bound

    def partial(self, batch: Batch, subkey: Key) -> Part:
        """Positions, weights and norms of the kept records of one batch."""
        records = batch.column(self.column)
        kept, weights = self.rule.kept(records, keyed_numbers(subkey, batch.ids))
        return batch.at(kept), weights, self.rule.norms(records[kept])

    def merge(self, parts: Iterable[Part]) -> Part:
        """The same of all batches, in order of position."""
        positions, weights, lengths = (np.concatenate(list(part)) for part in zip(*parts, strict=True))
        order = np.argsort(positions, kind="stable")
        return positions[order], weights[order], lengths[order]

    def finish(self, part: Part, subkey: Key) -> Drawn:
        """Every kept record once, with its weight."""
        positions, weights, lengths = part
        return Drawn(positions, np.ones(positions.size, dtype=np.int64), weights, lengths, self.rule.p)

    def personal(self, mechanism: Mechanism, neighbors: Neighbors, record: Any) -> Profile | None:
        """Theorem 1 at one record."""
        if neighbors != AR:
            return None
        self.rule.check_public()
        row = np.atleast_2d(as_floats(record))
        influence = _influence(mechanism)
        w = self.rule.weights(row)
        q, theta = probabilities_below(w), influence.at(norms(row, influence.p)) * w
        own = record_profile(influence.kind, q, theta)
        if influence.kind == "gaussian":
            return own
        return Profile.minimum([own, Profile.symmetric(pure_curve(float(amplified(q, theta)[0])))])

    def law(self, population: Population) -> Iterator[tuple[Units, Fraction]]:
        """All subsets, by their coins."""
        q = self.rule.probabilities(population.batch().column(self.column))
        yield from coin_law(population, [Fraction(chance) for chance in q.tolist()])

    def moves(self, population: Population) -> dict[int, float] | None:
        """Norm times weight."""
        x = population.batch().column(self.column)
        moves = np.linalg.norm(as_floats(x), axis=1) * self.rule.weights(x)
        return {int(i): float(move) for i, move in zip(population.ids, moves, strict=True)}

    def neighboring(
        self, population: int | Population, neighbors: Neighbors
    ) -> Iterator[tuple[Population, Population]]:
        """Newcomers of several norms up to the radius, and removals."""
        population = Population.of(population)
        x = as_floats(population.columns[self.column])
        ids = population.ids
        new = int(ids.max()) + 1 if ids.size else 0
        for norm in self._probes():
            row = np.zeros((1, x.shape[1]))
            row[0, 0] = norm
            columns: dict[str, Any] = {self.column: np.concatenate([x, row])}
            yield Population(np.append(ids, np.uint64(new)), **columns), population
        for at in range(ids.size):
            left = np.arange(ids.size) != at
            rest: dict[str, Any] = {self.column: x[left]}
            yield population, Population(ids[left], **rest)

    def _probes(self) -> list[float]:
        end = self.rule.farthest
        return [] if end is None or not np.isfinite(end) else [end, 0.5 * end, 0.1 * end]

    @classmethod
    def small_cases(cls) -> Iterator[tuple["ImportanceSampling", Population]]:
        """Every kind of rule, with up to two records of its domain."""
        # weighted norms stay below 3, or the linear program would have to tell e^20 from 1
        pure, counted = (LinearProfile(Influence("pure", a, 0.8)) for a in (0.0, 0.1))
        normal = GaussianProfile(Influence("gaussian", 0.1, 0.8))
        rules = [
            privacy_constrained(pure, 1.0, radius=1.0, max_weight=20.0),
            privacy_constrained(counted, 1.2, radius=1.0, max_weight=10.0),
            privacy_constrained(counted, 0.9, radius=1.0, max_weight=3.0),
            privacy_constrained(normal, 3.0, 1e-3, radius=0.8, max_weight=20.0),
            privacy_constrained(normal, 1.0, 0.1, radius=0.7, max_weight=5.0),
            uniform(pure, rate=0.4, radius=1.0),
            uniform(normal, rate=0.7, radius=1.5),
            coreset(counted, share=0.3, size=1.0, population=3.0, mean_squared_norm=1.0, radius=0.8),
            coreset(pure, share=0.05, size=1.0, population=5.0, mean_squared_norm=0.1, radius=0.6),
            variance_optimal(pure, kappa=0.8, radius=1.5),
            variance_optimal(counted, kappa=0.6, radius=2.0, floor=0.1),
        ]
        for rule in rules:
            for shares in ((), (0.6,), (0.3, -1.0)):
                x = np.asarray([[share * float(rule.radius or 1.0)] for share in shares]).reshape(len(shares), 1)
                yield cls(rule), Population(len(shares), f"shares {shares}", x=x)

    def attack(self, mechanism: Mechanism, neighbors: Neighbors) -> Profile | None:
        """Records along one axis, of several norms: each one's own exact pair, the largest of them."""
        found = self.attacks(mechanism, neighbors)
        return Profile.maximum(found.values()) if found else None

    def attacks(self, mechanism: Mechanism, neighbors: Neighbors) -> dict[Any, Profile]:
        """The exact pair of a record of each norm."""
        influence = mechanism.influence
        if influence is None or not influence.is_exact or neighbors != AR:
            return {}
        found = {}
        for norm in self._probes():
            u = as_floats([norm])
            w = self.rule.weights_of_norms(u)
            move = influence.at(u) * (1.0 - 2.0**-47) * w
            found[norm] = record_profile(influence.kind, probabilities_below(w), move)
        return found
