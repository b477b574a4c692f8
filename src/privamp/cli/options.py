"""Options that several commands share, and help with examples."""

import math
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from typer.core import TyperCommand

from .completion import designs, mechanisms

if TYPE_CHECKING:
    from ..accounting.budget import Budget
    from ..core.design import Design
    from ..core.neighbors import Neighbors
    from ..core.schedule import Schedule

DesignSpec = Annotated[
    str,
    typer.Option(
        "--design", metavar="SPEC", help="How the sample is drawn, e.g. poisson:rate=0.01", autocompletion=designs
    ),
]
MechanismSpec = Annotated[
    str,
    typer.Option(
        "--mechanism",
        metavar="SPEC",
        help="What is computed on it, e.g. gaussian:sigma=4,sensitivity=2",
        autocompletion=mechanisms,
    ),
]
Relation = Annotated[
    str | None,
    typer.Option("--neighbors", metavar="RELATION", help="add-remove or replace-one; by default the design's own."),
]
Steps = Annotated[int, typer.Option("--steps", metavar="K", help="Number of fresh draws, each with its own release.")]
Records = Annotated[
    int, typer.Option("--records-per-person", metavar="J", help="Protect a person with up to J records.")
]
Report = Annotated[Path | None, typer.Option("--report", metavar="FILE", help="Write a report, .html.")]
BudgetFile = Annotated[
    Path | None,
    typer.Option("--budget", metavar="FILE", help="Charge this budget first (privamp budget create); it may refuse."),
]
BudgetLabel = Annotated[
    str | None,
    typer.Option("--budget-population", metavar="LABEL", help="Which budget of the file, if it has several."),
]
Json = Annotated[bool, typer.Option("--json", help="Print one JSON object.")]

_MOST_STEPS, _MOST_QUERIES = 10**9, 10**6


@contextmanager
def given(option: str) -> Iterator[None]:
    """Put the option before a refusal of what was given after it."""
    from ..errors import InvalidInput

    try:
        yield
    except InvalidInput as error:
        raise InvalidInput(f"{option}: {error}") from None


class ExampleCommand(TyperCommand):
    """A command whose epilog is printed unchanged, so that examples can be pasted."""

    def format_help(self, ctx: Any, formatter: Any) -> None:
        """The usual help, then the examples."""
        examples, text = self.epilog, self.help or ""
        self.epilog = None
        self.help = "\n\n".join(" ".join(part.split()) for part in text.split("\n\n"))  # reflowed
        try:
            super().format_help(ctx, formatter)
        finally:
            self.epilog, self.help = examples, text
        formatter.write(f"{examples}\n" if examples else "")


def check_counts(*, steps: int = 1, queries: int = 1) -> None:
    """Counts that make sense and fit into memory."""
    from ..validation import whole

    whole(1, _MOST_STEPS, steps=steps)
    whole(1, _MOST_QUERIES, queries=queries)


def relation(text: str | None, design: "Design | Schedule", records: int = 1) -> "Neighbors":
    """The requested relation: the design's own by default, for a person with `records` records."""
    from ..core.neighbors import Neighbors

    chosen = Neighbors.parse(text) if text is not None else design.natural
    return chosen.for_person(records)


def read_pair(text: str) -> tuple[float, float]:
    """Public bounds, LOW:HIGH."""
    from ..errors import InvalidInput

    low, colon, high = text.partition(":")
    try:
        ends = float(low), float(high)
    except ValueError:
        ends = (math.nan, math.nan)
    if not colon or not (math.isfinite(ends[0]) and math.isfinite(ends[1]) and ends[0] < ends[1]):
        raise InvalidInput(f"--bounds must be LOW:HIGH with LOW < HIGH, both finite numbers, got {text!r} instead")
    return ends


def opened_budget(path: Path | None, label: str | None) -> "Budget | None":
    """The budget that a command charges, opened before anything is read."""
    from ..accounting.budget import Budget
    from ..errors import InvalidInput

    if path is None:
        if label is not None:
            raise InvalidInput("--budget-population needs --budget FILE, the file with that budget")
        return None
    return Budget.open(path, label)


def population_label(given: str | None) -> str:
    """The label of a population with a stored key; required, because file names do not identify data."""
    from ..errors import InvalidInput

    if given is None or not given.strip():
        raise InvalidInput(
            "a sample that can be drawn again needs --label TEXT, which names the population: the same key and label "
            "give the same random numbers, and file names do not identify data; choose a label and keep it"
        )
    return given
