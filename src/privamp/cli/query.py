"""`privamp query`: questions about a table, answered from a sample or from all records."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from .completion import columns
from .console import waiting
from .options import BudgetFile, BudgetLabel, Json, Report, opened_budget, read_pair
from .released import ReleaseOutput, check_page

if TYPE_CHECKING:
    from ..core.release import Release
    from ..queries import Question, Table

EXAMPLES = """\
Examples:
  privamp example schools > schools.csv

  privamp query schools.csv --mean enroll --bounds 0:2000 --epsilon 1

  privamp query schools.csv --count --by level --values E,M,H --rate 0.5 --epsilon 1

  privamp query schools.csv --median enroll --mean enroll --bounds 0:2000 --by level --values E,M,H \\
      --epsilon 2 --delta 1e-6 --json"""

Columns = list[str] | None


def query(
    file: Annotated[Path, typer.Argument(metavar="FILE", help="The records: .csv, .parquet or .feather, or a folder.")],
    epsilon: Annotated[float, typer.Option("--epsilon", metavar="E", help="The total privacy loss of all answers.")],
    count: Annotated[bool, typer.Option("--count", help="The number of records.")] = False,
    total: Annotated[
        Columns, typer.Option("--sum", metavar="COLUMN", help="The sum of a column.", autocompletion=columns)
    ] = None,
    mean: Annotated[
        Columns, typer.Option("--mean", metavar="COLUMN", help="The mean of a column.", autocompletion=columns)
    ] = None,
    variance: Annotated[
        Columns, typer.Option("--variance", metavar="COLUMN", help="The variance of a column.", autocompletion=columns)
    ] = None,
    median: Annotated[
        Columns, typer.Option("--median", metavar="COLUMN", help="The median of a column.", autocompletion=columns)
    ] = None,
    quantile: Annotated[
        Columns, typer.Option("--quantile", metavar="COLUMN:P", help="A quantile of a column, e.g. income:0.9.")
    ] = None,
    proportion: Annotated[
        Columns,
        typer.Option(
            "--proportion",
            metavar="COLUMN[=VALUE]",
            help="The proportion of records that are true, or have this value.",
        ),
    ] = None,
    histogram: Annotated[
        Columns, typer.Option("--histogram", metavar="COLUMN:BINS", help="Counts in equal bins between the bounds.")
    ] = None,
    bounds: Annotated[
        Columns,
        typer.Option(
            "--bounds", metavar="[COLUMN=]LOW:HIGH", help="PUBLIC range of the values, of all columns or of one."
        ),
    ] = None,
    by: Annotated[
        str | None,
        typer.Option("--by", metavar="COLUMN", help="One answer for each of its values.", autocompletion=columns),
    ] = None,
    values: Annotated[
        str | None,
        typer.Option("--values", metavar="A,B,…", help="The PUBLIC values of --by. An empty one means missing."),
    ] = None,
    person: Annotated[
        str | None,
        typer.Option(
            "--person",
            metavar="COLUMN",
            help="Column with the person of each record: protects persons.",
            autocompletion=columns,
        ),
    ] = None,
    records: Annotated[
        int,
        typer.Option("--records", metavar="J", help="Maximum number of records kept per person, by a keyed choice."),
    ] = 1,
    rate: Annotated[float, typer.Option("--rate", metavar="Q", help="Sample each record with this probability.")] = 1.0,
    delta: Annotated[float, typer.Option("--delta", metavar="D", help="Above 0 for Gaussian noise.")] = 0.0,
    confidence: Annotated[
        float, typer.Option("--confidence", metavar="P", help="Confidence level of the intervals.")
    ] = 0.95,
    budget: BudgetFile = None,
    budget_population: BudgetLabel = None,
    report: Report = None,
    json: Json = False,
) -> None:
    """Answer questions about a table for one total epsilon: counts, sums, means, quantiles, histograms, by groups.

    Answers are about the whole table, even from a sample, with an interval for noise and sampling. Numbers are clipped
    to the bounds; a record without a number is left out of that answer. Records in groups that are not listed are not
    counted. Each run draws a fresh sample, and its epsilon adds to that of other runs.
    """
    from ..designs.poisson import Poisson
    from ..queries import open_table
    from ..validation import in_range

    in_range(0, 1, open_ends=True, confidence=confidence)
    check_page(report)
    paid = opened_budget(budget, budget_population)
    table = open_table(file, budget=paid, person=person, records=records).sample(Poisson(rate))
    asked = {"sum": total, "mean": mean, "variance": variance, "median": median, "quantile": quantile}
    asked |= {"proportion": proportion, "histogram": histogram}
    questions = _questions(table, count, asked, _ranges(bounds))
    if by is not None or values is not None:
        questions = [question.by(*_groups(by, values)) for question in questions]
    with waiting("reading", quiet=json):
        found = table.plan(questions).run(epsilon=epsilon, delta=delta)
    groups = {"": found[0]} if len(found) == 1 else _flat(questions, found)
    title = questions[0].name if len(found) == 1 else "answers"
    head: dict[str, Any] = {"questions": [question.name for question in questions], "rate": rate}
    drawn = "every record" if rate == 1.0 else f"each record with probability {rate:g}"
    told = ReleaseOutput(groups, title, head, [("drawn", drawn)], delta=delta or None, level=confidence)
    told.tell(json=json, report=report)


def _flat(questions: "list[Question]", found: "list[Release]") -> "dict[str, Release]":
    """Every number of every answer, under its own name."""
    return {
        f"{question.name}: {name}" if name else question.name: release[name] if name else release
        for question, release in zip(questions, found, strict=True)
        for name in release.names or ("",)
    }


def _questions(
    table: "Table", count: bool, asked: dict[str, Columns], ranges: dict[str, tuple[float, float]]
) -> "list[Question]":
    from ..errors import InvalidInput

    made: list[Question] = [table.count()] if count else []
    for what, named in asked.items():
        for text in named or []:
            made.append(_question(table, what, text, ranges))
    if not made:
        raise InvalidInput("there is no question; give --count, --mean COLUMN or --median COLUMN, or see --help")
    if any(question in made[:at] for at, question in enumerate(made)):
        raise InvalidInput("a question is asked twice; ask it once")
    return made


def _question(table: "Table", what: str, text: str, ranges: dict[str, tuple[float, float]]) -> "Question":
    if what == "proportion":
        column, equals, value = text.partition("=")
        return table.proportion(column, value if equals else None)
    column, number = (text, "") if what not in ("quantile", "histogram") else _split(what, text)
    pair = ranges.get(column, ranges.get(""))
    table.kind_of(column)
    if pair is None:
        from ..errors import InvalidInput

        raise InvalidInput(f"--{what} {column} needs --bounds LOW:HIGH, the public range of its values")
    if what == "histogram":
        return table.histogram(column, _number(number, int, "a number of bins"), pair)
    if what == "quantile":
        return table.quantile(column, _number(number, float, "a probability"), pair)
    several = {"sum": table.sum, "mean": table.mean, "variance": table.variance, "median": table.median}
    made: Question = several[what](column, pair)
    return made


def _split(what: str, text: str) -> tuple[str, str]:
    from ..errors import InvalidInput

    column, colon, number = text.rpartition(":")
    if not colon:
        raise InvalidInput(f"--{what} is COLUMN:{'BINS' if what == 'histogram' else 'P'}, got {text!r} instead")
    return column, number


def _number(text: str, kind: type, what: str) -> Any:
    from ..errors import InvalidInput

    try:
        return kind(text)
    except ValueError:
        raise InvalidInput(f"{what} was expected after the colon, got {text!r} instead") from None


def _ranges(bounds: Columns) -> dict[str, tuple[float, float]]:
    """Bounds by column; "" is for all columns without their own."""
    found = {}
    for text in bounds or []:
        column, _, pair = text.rpartition("=")
        found[column] = read_pair(pair)
    return found


def _groups(by: str | None, values: str | None) -> tuple[str, list[str | None]]:
    from ..errors import InvalidInput

    if by is None or values is None:
        raise InvalidInput(
            "--by COLUMN and --values A,B,… must be given together, because which values occur is private"
        )
    return by, [value.strip() or None for value in values.split(",")]
