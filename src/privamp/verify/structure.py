"""Structural checks of a design, before its numbers are compared."""

from collections.abc import Iterator
from fractions import Fraction

from ..core.design import Design
from ..core.population import Population
from .answers import check_answers
from .report import Tally
from .symmetry import collect

FEWEST_CASES = 20
EMPTY_ROUNDS = 400  # enough to see an empty sample of probability 1/20 but for one time in 10^8


def check_structure(design_class: type[Design], cases: list[tuple[Design, int | Population]]) -> Tally:
    """Theorems are complete, cases are enough and different, laws are exact, and nothing drawn is shown."""
    violations = [*_theorems(design_class), *_cases(design_class, cases)]
    for design, population in cases:
        violations += [f"{design} on {population} records: {problem}" for problem in _case(design, population)]
    return Tally("structure", len(cases) + len(design_class.theorems), len(cases), tuple(violations))


def _theorems(design_class: type[Design]) -> Iterator[str]:
    theorems = design_class.theorems
    if not theorems:
        yield f"{design_class.__name__} has no theorem, so its samples cannot be certified; add one"
    for theorem in theorems:
        for part in ("name", "cite", "needs", "gives"):
            if not getattr(theorem, part):
                yield f"theorem {theorem.name!r} has no text for {part!r}"


def _cases(design_class: type[Design], cases: list[tuple[Design, int | Population]]) -> Iterator[str]:
    different = len({(design.identity, str(population)) for design, population in cases})
    if different < FEWEST_CASES:
        yield f"small_cases gives {different} different cases, at least {FEWEST_CASES} are needed"
    gives = {theorem.gives for theorem in design_class.theorems}
    for relation in sorted({str(design.natural) for design, _ in cases if design.natural.kind not in gives}):
        yield f"no theorem gives the natural relation, {relation}"
    if len({design for design, _ in cases}) != len({design.identity for design, _ in cases}):
        yield (
            "two different designs share an identity, from which the keys of draws are derived: "
            f"{design_class.__name__}"
        )


def _case(design: Design, size: int | Population) -> Iterator[str]:
    population = Population.of(size)
    pairs = list(design.law(population))
    if any(not isinstance(chance, (Fraction, int)) or chance < 0 for _, chance in pairs):
        yield "the law has a probability that is not a fraction of at least 0"
        return
    law = collect(pairs)
    if sum(law.values()) != 1:
        yield f"the law sums to {float(sum(law.values()))!r}, not to exactly 1"
    if any(tuple(sorted(units)) != tuple(units) for units, _ in pairs):
        yield "the law gives a sample whose ids are not sorted"
    if law.get((), Fraction(0)) * 20 >= 1:
        yield from _empty(design, population)
    yield from _silent(design, population)
    yield from check_answers(design, population, law)


def _empty(design: Design, population: Population) -> Iterator[str]:
    """An empty sample is a legal outcome: it is returned, never redrawn."""
    from ..testing import seeded_key

    key = seeded_key(1)
    for r in range(EMPTY_ROUNDS):
        subkey = design.subkey(key, population.label, r)
        drawn = design.finish(design.merge([design.partial(population.batch(), subkey)]), subkey)
        if drawn.positions.size == drawn.counts.size == drawn.weights.size == 0:
            return
    yield "the law allows an empty sample but none was drawn"


def _silent(design: Design, population: Population) -> Iterator[str]:
    """Neither the design nor a sample shows what was drawn."""
    from ..testing import seeded_key

    before = repr(design)
    shown = {repr(design.draw(population, seeded_key(0), r)) for r in range(3)}
    if len(shown) > 1 or repr(design) != before:
        yield "the repr of a sample or of the design depends on what was drawn"
