"""`privamp compare`: several designs, one mechanism, one relation."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from ..numerics.printing import as_asked
from .completion import designs
from .console import emit, grid, lower, number, say, upper, waiting, warn
from .options import Json, MechanismSpec, Records, Steps, check_counts, given

if TYPE_CHECKING:
    from ..core.design import Design
    from ..core.mechanism import Mechanism
    from ..core.neighbors import Neighbors
    from ..report.advice import Advice
    from ..report.comparison import Comparison, Row

EXAMPLES = """\
Examples:
  privamp compare --size 400 --population 1000 --mechanism gaussian:sigma=2 --plot compare.png

  privamp compare --design wor:size=200,population=10000 \\
      --design multistage:wor=118,wr=200,population=10000 \\
      --mechanism gaussian:sigma=4,sensitivity=2 --delta 1e-5 --json"""


def compare(
    mechanism: MechanismSpec,
    design: Annotated[
        list[str] | None,
        typer.Option(
            "--design",
            metavar="SPEC",
            help="A design; repeat the option, at equal expected size.",
            autocompletion=designs,
        ),
    ] = None,
    size: Annotated[
        int | None, typer.Option("--size", metavar="M", help="Instead of --design: five designs of this size.")
    ] = None,
    population: Annotated[
        int | None, typer.Option("--population", metavar="N", help="Number of records, if a design does not give it.")
    ] = None,
    neighbors: Annotated[
        str, typer.Option("--neighbors", metavar="RELATION", help="One relation for all: replace-one or add-remove.")
    ] = "replace-one",
    delta: Annotated[float, typer.Option("--delta", metavar="D", help="Rank by epsilon at this delta.")] = 1e-6,
    epsilon: Annotated[
        float, typer.Option("--epsilon", metavar="E", help="Show delta at this epsilon; also MUST's base epsilon.")
    ] = 1.0,
    steps: Steps = 1,
    records_per_person: Records = 1,
    plot: Annotated[
        Path | None, typer.Option("--plot", metavar="FILE", help="Save a picture (.png or .svg) or a page (.html).")
    ] = None,
    json: Json = False,
) -> None:
    """Rank designs by their epsilon at a fixed delta, all under one relation.

    Every design gets the same mechanism. If a Poisson design is in the list, the mechanism's sensitivity is interpreted
    for add-remove, because Poisson's theorems need that; designs of fixed size then use its replace-one profile (one
    record out, another in: twice the sensitivity), so no design is favoured. Otherwise it is for the relation
    compared. Set neighbors=... in the spec to override this.
    """
    from ..report.advice import advise
    from ..report.comparison import Question, compare_designs
    from ..report.pictures import FORMATS, check_picture

    _check(delta, epsilon, steps, population)
    if plot is not None:
        check_picture(plot, (*FORMATS, ".html"))
    plans = _designs(design, size, population)
    wanted, noise = _mechanism(mechanism, plans, neighbors)
    wanted = wanted.for_person(records_per_person)
    with waiting("comparing", quiet=json):
        found = compare_designs(plans, Question(noise, wanted, delta, epsilon, steps), population)
        advice = advise(found)
        if plot is not None:
            _draw(found, mechanism, plot)
    _show(found, advice, mechanism, plot, json)
    if any(row.failed for row in found.rows):
        raise typer.Exit(1)


def _check(delta: float, epsilon: float, steps: int, population: int | None) -> None:
    from ..validation import in_range, positive, whole

    in_range(0, 1, open_ends=True, delta=delta)
    positive(epsilon=epsilon)
    check_counts(steps=steps)
    if population is not None:
        whole(1, population=population)


def _designs(specs: list[str] | None, size: int | None, population: int | None) -> "list[Design]":
    from .. import spec
    from ..errors import InvalidInput

    if bool(specs) == (size is not None):
        raise InvalidInput("give --design (several times), or --size M with --population N for a ready-made list")
    if size is not None and population is None:
        raise InvalidInput("--size needs --population, the number of records to draw from")
    ready = [] if specs else _ready_made(size or 0, population or 0)
    with given("--design"):
        return [spec.design(text) for text in specs or ready]


def _ready_made(size: int, population: int) -> list[str]:
    """One-stage designs and the two-stage ones of MUST, whose first stage keeps half the population."""
    from ..validation import whole

    whole(1, population, size=size)
    half = max(population // 2, 1)
    return [
        f"poisson:rate={size / population!r}",
        f"wor:size={size},population={population}",
        f"wr:size={size},population={population}",
        f"multistage:wor={half},wr={size},population={population}",
        f"multistage:wr={half},wr={size},population={population}",
    ]


def _mechanism(text: str, plans: "list[Design]", relation: str) -> "tuple[Neighbors, Mechanism]":
    """The relation compared, and one mechanism for all designs."""
    from .. import spec
    from ..core.neighbors import Neighbors

    wanted = Neighbors.parse(relation)
    needs = {spec.stated_for(plan, wanted) for plan in plans}
    with given("--mechanism"):
        return wanted, spec.mechanism(text, Neighbors.ADD_REMOVE if Neighbors.ADD_REMOVE in needs else wanted)


def _show(found: "Comparison", advice: "tuple[Advice, ...]", mechanism: str, plot: Path | None, json: bool) -> None:
    from ..report.comparison import ADVICE, WHY_NOT_EPS_PRIME

    notes = [WHY_NOT_EPS_PRIME] if any(row.aligned for row in found.rows) else []
    notes += [ADVICE] if found.has_repeats else []
    uneven = found.uneven()
    if uneven:
        warn(uneven)
    for row in found.rows:
        if row.guarantee and row.guarantee.degrades:
            warn(f"{row.label} makes the release LESS private than the mechanism on all the data")
    if json:
        answer = _answer(found, mechanism) | {"notes": notes, "advice": [one.to_json() for one in advice]}
        emit(answer | ({"plot": str(plot)} if plot else {}))
        return
    _tables(found, mechanism)
    for note in (*notes, *(one.sentence() for one in advice)):
        say(note)
    if plot:
        say(f"Picture: {plot}")


def _answer(found: "Comparison", mechanism: str) -> dict[str, object]:
    asked, ranked = found.question, enumerate(found.rows, 1)
    return {
        "neighbors": asked.neighbors.kind,
        **({"records_per_person": asked.neighbors.records} if asked.neighbors.unit == "person" else {}),
        "mechanism": mechanism,
        "mechanism_neighbors": asked.mechanism.neighbors.kind,
        "population": found.population,
        "steps": asked.steps,
        "delta": asked.delta,
        "epsilon": asked.epsilon,
        "designs": [{"rank": rank if row.guarantee else None} | row.to_json() for rank, row in ranked],
    }


def _tables(found: "Comparison", mechanism: str) -> None:
    asked, at = found.question, as_asked(found.question.epsilon)
    fresh = f", {asked.steps} fresh draws" if asked.steps > 1 else ""
    records = f"{found.population:,} records, " if found.population else ""
    say(f"{records}{mechanism} (sensitivity for {asked.mechanism.neighbors.kind}), {asked.neighbors}{fresh}")
    grid(
        f"Ranked by ε at δ = {as_asked(asked.delta)}",
        ["", "<design", "ε certified", "ε attack", f"δ({at}) cert.", "attack", "draws", "distinct"],
        ([*_guarantee(rank, row)] for rank, row in enumerate(found.rows, 1)),
        best=0 if len(found.rows) > 1 and found.rows[0].guarantee else None,
    )
    for row in found.rows:
        if row.reason:
            say(f"{row.label}: {row.reason}")
    once = " of one draw" if asked.steps > 1 else ""
    views = [_view(row) for row in found.rows if row.aligned]
    if views:
        grid(f"MUST's view{once}, base ε = {at}", ["<design", "η", "ε'", "<type", "ε'/ε", "δ'-δ"], views)


def _draw(found: "Comparison", mechanism: str, path: Path) -> None:
    """The picture; a page also has the ranking and the theorems and assumptions of every design."""
    from ..report.html import Report
    from ..report.pictures import comparison_figure, save

    figure, asked = comparison_figure(found), found.question
    if path.suffix.lower() != ".html":
        save(figure, path)
        return
    fresh = f", {asked.steps:,} fresh draws" if asked.steps > 1 else ""
    page = Report("Designs compared", f"{mechanism}, {asked.neighbors}{fresh}")
    at, rows = as_asked(asked.epsilon), [[*_guarantee(rank, row)] for rank, row in enumerate(found.rows, 1)]
    header = ["rank", "design", "ε certified", "ε attack", f"δ({at}) certified", "δ attack", "draws", "distinct"]
    page.add_table(header, rows, f"Ranked by ε at δ = {as_asked(asked.delta)}")
    page.add_figure(figure, "δ(ε) of every design: solid lines are certified, dashed ones are attacks")
    for row in found.rows:
        if row.guarantee is not None:
            page.add_guarantee(row.guarantee, epsilon=asked.epsilon, delta=asked.delta, heading=row.label)
    page.write(path)


def _guarantee(rank: int, row: "Row") -> list[str]:
    sizes = [number(row.expected_size, 6), number(row.expected_distinct, 4)]
    if row.guarantee is None:
        return ["", row.label, "no number" if row.failed else "no theorem", "", "", "", *sizes]
    bounds = [upper(row.epsilon_upper), lower(row.epsilon_lower), upper(row.delta_upper), lower(row.delta_lower)]
    return [str(rank), row.label, *bounds, *sizes]


def _view(row: "Row") -> list[str]:
    assert row.aligned is not None
    view = row.aligned
    return [row.label, number(row.eta), upper(view.epsilon), view.kind, number(view.ratio), f"{view.difference:+.3g}"]
