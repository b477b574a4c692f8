"""The suite of checks that every design must pass, the library's own and those of other authors.

Upper bounds are checked against exact results on small cases (linear program over all mechanisms;
enumerated sums with real noise), lower bounds too, tight theorems must be equal, the sampler must follow its
law, and every check must catch a planted mistake.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from itertools import product
from typing import Any

import numpy as np

from ..core.design import Design
from ..core.neighbors import Neighbors
from ..core.population import Population
from ..errors import InvalidInput
from ..numerics.log_domain import FloatArray
from ..validation import whole
from .claims import NOISES, claims_of, claims_or_none, is_proved, pure
from .enumerate import exact_deltas
from .exact import directed_together, programs
from .report import Report, Tally
from .sampler import FALSE_ALARM, contaminated, draws, follows_law, same_in_pieces
from .sides import deltas, failed, largest_losses
from .structure import check_structure
from .symmetry import collect

Case = tuple[Design, int | Population]
Progress = Callable[[int, int], None]  # cases done, cases in all

SLACK = 1e-9  # an upper bound may be this far below the linear program's value
EQUAL = 1e-6  # a tight bound may be this far above it
DELTA_SLACK = 1e-12
ATTACK_SLACK = 1e-9
RELATIONS = (Neighbors.ADD_REMOVE, Neighbors.REPLACE_ONE)
DRAWS = 2000  # samples per tested case: enough to see 30% of a fair coin's draws replaced
POINTS = 4  # epsilons per enumerated sum
_TOGETHER = 32  # cases whose programs are solved as one


def kind_of(given: object) -> str:
    """What was given instead of a class, in words."""
    return f"the class {given.__name__}" if isinstance(given, type) else f"a value of type {type(given).__name__}"


def check_design(
    design_class: type[Design], *, checks: int = 200, seed: int = 0, progress: Progress | None = None
) -> Report:
    """Run every check on a design's small cases.

    `checks` is how many pure bounds and how many deltas are compared with the truth (at least), each on its own case:
    design, population, relations, mechanism, epsilon. `seed` draws them, so a report can be repeated.
    """
    if not (isinstance(design_class, type) and issubclass(design_class, Design)):
        raise InvalidInput(
            f"check_design takes the class of a design (Poisson, not Poisson(0.1)), got {kind_of(design_class)}; "
            "use check_schedule for schedules"
        )
    whole(1, checks=checks)
    cases = list(design_class.small_cases())
    plan = _Plan(cases, checks, np.random.default_rng(seed), seed, progress)
    tallies = [check_structure(design_class, cases)]
    if cases:
        tallies += [*check_pure(plan), check_delta(plan), *plan.theorem_tallies(), *check_sampler(plan)]
    return Report(design_class.__name__, tuple(tallies))


@dataclass(slots=True)
class _Plan:
    """What to compare: the cases, how many numbers, and the randomness that picks them."""

    cases: list[Case]
    checks: int
    random: np.random.Generator
    seed: int
    progress: Progress | None
    done: int = 0
    theorems: dict[str, "_Count"] = field(default_factory=dict)

    def theorem(self, label: str) -> "_Count":
        """Comparisons of one theorem under one pair of relations."""
        return self.theorems.setdefault(label, _Count(f"alone: {label}", fresh=False))

    def theorem_tallies(self) -> list[Tally]:
        """One line per theorem and pair of relations."""
        return [count.tally() for _, count in sorted(self.theorems.items())]

    def relations(self) -> list[tuple[Neighbors, Neighbors]]:
        """(mechanism, result) pairs to ask for: every result some theorem gives, narrower scopes too."""
        theorems = type(self.cases[0][0]).theorems
        gives = {theorem.gives for theorem in theorems}
        narrower = {Neighbors(t.gives, scope=t.scope): None for t in theorems if t.scope != "anywhere"}
        results = [*(out for out in RELATIONS if out.kind in gives), *narrower]
        return list(product(RELATIONS, results))

    def some(self, things: Sequence[Any], count: int) -> list[Any]:
        """`count` of the things in random order, all of them when there are fewer."""
        return [things[i] for i in self.random.permutation(len(things))[:count]]

    def step(self, total: int) -> None:
        """Report one more case done."""
        self.done += 1
        if self.progress:
            self.progress(self.done, max(total, self.done))


def check_pure(plan: _Plan) -> Iterator[Tally]:
    """epsilon' of pure mechanisms: upper bounds above, attacks below, tight theorems equal to the truth."""
    targets = [
        (case, into, out)
        for case, (into, out) in product(plan.cases, plan.relations())
        if _has_neighbors(case, out) and _answers(into, out, case)
    ]
    upper, lower = _Count("pure upper bounds"), _Count("pure attacks", fresh=False)
    tight, teeth = (
        _Count("tight theorems", fresh=False),
        _Count("bounds 1% too small are caught", fresh=False),
    )
    each = -(-plan.checks // max(len(targets), 1))
    chosen = [(*target, plan.random.uniform(0.05, 3.0, each).tolist()) for target in plan.some(targets, plan.checks)]
    for ((design, population), into, out, epsilons), truths in zip(chosen, _truths(chosen), strict=True):
        for epsilon, both in zip(epsilons, truths, strict=True):
            mechanism, truth = pure(epsilon, into, design, Population.of(population)), float(np.max(both))
            case = f"{design} on {population} records, epsilon {epsilon:.6g} under {into} → {out}"
            claims = claims_of(mechanism, design, out)
            guarantee = claims.guarantee
            bound = guarantee.epsilon()
            wrong = failed(largest_losses(guarantee.upper, out), both, SLACK, out)
            upper.compare(wrong is None, f"{case}: {wrong}")
            for label, claim in claims.alone:
                wrong = failed(largest_losses(claim, out), both, SLACK, out)
                plan.theorem(label).compare(wrong is None, f"{case}, by {label}: {wrong}")
            if guarantee.lower is not None:
                attack = guarantee.lower.epsilon()
                lower.compare(
                    attack <= truth + SLACK or _is_reached(attack, design, epsilon, into, out),
                    f"{case}: the LOWER bound (attack) {attack:.9g} is above the truth {truth:.9g}",
                )
            if claims.is_called_tight:
                tight.compare(
                    bound <= truth + EQUAL,
                    f"{case}: the UPPER bound {bound:.9g} is declared tight but is above the truth {truth:.9g}",
                )
                if bound > 100 * EQUAL:  # 1% of less could be the slack of a tight theorem
                    teeth.compare(0.99 * bound < truth - SLACK, f"{case}: a bound 1% too small was not caught")
        plan.step(plan.checks)
    yield from (count.tally() for count in (upper, tight, lower, teeth))


def _truths(chosen: Sequence[tuple[Case, Neighbors, Neighbors, list[float]]]) -> Iterator[FloatArray]:
    """The exact epsilons of every target in both directions, shape (n, 2): small programs solved many at a time."""
    for start in range(0, len(chosen), _TOGETHER):
        some = chosen[start : start + _TOGETHER]
        pairs = [programs(design, population, out, into.kind) for (design, population), into, out, _ in some]
        asked = [(program, target[-1]) for target, found in zip(some, pairs, strict=True) for program in found]
        solved = iter(directed_together(asked))
        yield from (np.max([next(solved) for _ in found], axis=0) for found in pairs)


def _is_reached(attack: float, design: Design, epsilon: float, into: Neighbors, out: Neighbors) -> bool:
    """Whether the attack is possible on another population that the guarantee covers."""
    return any(attack <= float(np.max(p.directed([epsilon]))) + SLACK for p in _elsewhere(design, into, out))


@lru_cache(maxsize=64)
def _elsewhere(design: Design, into: Neighbors, out: Neighbors) -> list[Any]:
    return [p for q in design.also_attacked(out) for p in programs(design, q, out, into.kind)]


def check_delta(plan: _Plan) -> Tally:
    """delta of noisy sums: no upper bound below the exact value, no attack above it or above the bound."""
    count = _Count("delta of noisy sums")
    probes = dict.fromkeys((plan.cases[-1][0], plan.cases[0][0]))  # instances of a class may differ in their relations
    asked = [
        (into, out, make)
        for (into, out), make in product(plan.relations(), NOISES)
        for noise in [make(plan.random, into)]
        if any(is_proved(noise, probe, out) for probe in probes)
    ]
    combinations = [(case, *ask) for case, ask in product(plan.cases, asked) if _has_neighbors(case, ask[1])]
    rounds = -(-plan.checks // (POINTS * max(len(combinations), 1)))
    for (design, population), into, out, make in plan.some(combinations * rounds, -(-plan.checks // POINTS)):
        mechanism = make(plan.random, into)
        claims = claims_or_none(mechanism, design, out)
        if claims is not None:
            epsilons = np.append(plan.random.uniform(0.0, 3.0, POINTS - 1), plan.random.uniform(-1.0, 0.0))
            truths, guarantee = exact_deltas(design, mechanism, population, out, epsilons), claims.guarantee
            bounds, reported = deltas(guarantee.upper, epsilons, out), np.asarray(guarantee.delta(epsilons))
            attacks = np.asarray(guarantee.lower.delta(epsilons)) if guarantee.lower else np.zeros(POINTS)
            alone = [(label, deltas(claim, epsilons, out)) for label, claim in claims.alone]
            for i, e in enumerate(epsilons):
                case = f"{mechanism} by {design} on {population} records, {out}, delta({e:.6g})"
                for label, claimed in alone:
                    wrong = failed(claimed[:, i], truths[:, i], DELTA_SLACK, out)
                    plan.theorem(label).compare(wrong is None, f"{case}, by {label}: {wrong}")
                wrong = failed(bounds[:, i], truths[:, i], DELTA_SLACK, out)
                wrong = wrong or _too_strong(attacks[i], np.max(truths[:, i]), reported[i])
                count.compare(wrong is None, f"{case}: {wrong}")
        plan.step(plan.checks)
    return count.tally()


def _too_strong(attack: float, truth: float, bound: float) -> str | None:
    """None, or what a lower bound is above."""
    if attack <= min(truth + ATTACK_SLACK, bound):
        return None
    what = f"the truth {truth:.9g}" if attack > truth + ATTACK_SLACK else f"the upper bound {bound:.9g}"
    return f"the LOWER bound (attack) {attack:.9g} is above {what}"


def check_sampler(plan: _Plan) -> Iterator[Tally]:
    """Draws follow the law, whole or in batches, and a sampler broken in 30% of its draws is caught."""
    from ..testing import seeded_key

    follows, pieces = _Count("sampler follows its law"), _Count("batches draw the same sample", fresh=False)
    control = _Count("broken samplers are caught", fresh=False)
    chosen = plan.some(plan.cases, max(4, min(len(plan.cases), plan.checks // 25)))
    for design, size in chosen:
        population, key, case = Population.of(size), seeded_key(plan.seed), f"{design} on {size} records"
        law, observed = collect(design.law(population)), draws(design, population, key, DRAWS)
        problem = follows_law(observed, law, FALSE_ALARM / len(chosen))
        follows.compare(problem is None, f"{case}: {problem}")
        problem = same_in_pieces(design, population, key, rounds=3)
        pieces.compare(problem is None, f"{case}: {problem}")
        if len(law) > 1:
            caught = follows_law(contaminated(observed, law, plan.seed), law, FALSE_ALARM / len(chosen))
            control.compare(caught is not None, f"{case}: the law test did not notice a broken sampler")
        plan.step(plan.checks)
    yield from (count.tally() for count in (follows, pieces, control))


class _Count:
    """Comparisons of one kind as they are made."""

    def __init__(self, kind: str, fresh: bool = True) -> None:
        self.kind, self.fresh, self.comparisons, self.violations = kind, fresh, 0, list[str]()

    def compare(self, fine: bool, violation: str) -> None:
        self.comparisons += 1
        if not fine:
            self.violations.append(violation)

    def tally(self) -> Tally:
        return Tally(self.kind, self.comparisons, self.comparisons * self.fresh, tuple(self.violations))


def _has_neighbors(case: Case, out: Neighbors) -> bool:
    return Population.of(case[1]).size > 0 or out.kind == "add-remove"


def _answers(into: Neighbors, out: Neighbors, case: Case) -> bool:
    return is_proved(pure(1.0, into, case[0], Population.of(case[1])), case[0], out)
