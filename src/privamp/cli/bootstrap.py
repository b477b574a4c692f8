"""`privamp bootstrap`: a private estimate with its standard error and interval, from one file."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from .console import waiting, warn
from .options import BudgetFile, BudgetLabel, Json, Report, opened_budget, read_pair
from .released import ReleaseOutput, check_page
from .survey.options import DropMissing

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from ..bootstrap import Result

EXAMPLES = """\
Examples:
  privamp example schools > schools.csv

  privamp bootstrap schools.csv --column enroll --statistic mean --bounds 0:2000 --epsilon 1 --delta 1e-6

  privamp bootstrap schools.csv --column enroll --statistic quantile:0.9 --bounds 0:2000 \\
      --method m-out-of-n --report report.html --json"""


def bootstrap(
    file: Annotated[Path, typer.Argument(metavar="FILE", help="The records: .csv, .csv.gz, .parquet or .npz.")],
    column: Annotated[str, typer.Option("--column", metavar="COLUMN", help="The column to analyse.")],
    statistic: Annotated[
        str,
        typer.Option("--statistic", metavar="WORD", help="mean, variance, median, quantile:P[:BINS] or regression."),
    ] = "mean",
    bounds: Annotated[
        list[str] | None,
        typer.Option(
            "--bounds", metavar="LOW:HIGH", help="PUBLIC range of the column; for a regression one more per --on."
        ),
    ] = None,
    on: Annotated[
        list[str] | None, typer.Option("--on", metavar="COLUMN", help="An explanatory column of a regression.")
    ] = None,
    method: Annotated[
        str,
        typer.Option("--method", metavar="WORD", help="subsampling, m-out-of-n, double, little, or direct (a mean)."),
    ] = "subsampling",
    epsilon: Annotated[float, typer.Option("--epsilon", metavar="E", help="The privacy loss of the release.")] = 1.0,
    delta: Annotated[
        float, typer.Option("--delta", metavar="D", help="The delta of the release: above 0, far below 1/n.")
    ] = 1e-6,
    resamples: Annotated[
        str | None,
        typer.Option("--resamples", metavar="B", help="Number of resamples; SUBSETS,EACH for --method little."),
    ] = None,
    size: Annotated[
        str | None, typer.Option("--size", metavar="M", help="Size of a resample; FIRST,M for two stages.")
    ] = None,
    confidence: Annotated[
        float, typer.Option("--confidence", metavar="P", help="Confidence level of the interval.")
    ] = 0.95,
    jobs: Annotated[int | None, typer.Option("--jobs", metavar="J", help="Number of cores; all by default.")] = None,
    drop_missing: DropMissing = False,
    budget: BudgetFile = None,
    budget_population: BudgetLabel = None,
    report: Report = None,
    json: Json = False,
) -> None:
    """Release an estimate with its standard error and confidence interval, for one total (epsilon, delta).

    Values are clipped to the bounds. The bounds and the number of records must be public. A value that is missing or
    not a number counts as the middle of the bounds. By default, the resample size and the
    number of resamples are chosen from public facts, never from the data. The interval
    accounts for sampling, resampling and noise, and for the spread itself being estimated.

    Each run draws with a fresh key, and its epsilon adds to that of other runs.
    """
    from ..bootstrap import run
    from .survey.population import DROPPED, READABLE

    limits = _limits(bounds, statistic, on or [])
    many, entries = _counts(resamples, "resamples"), _counts(size, "size")
    check_page(report)
    paying = opened_budget(budget, budget_population)
    with waiting("resampling", quiet=json) as advance:
        values = _values(file, [column, *(on or [])], drop_missing)
        asked = _statistic(statistic, limits, on or [])
        found = run(
            values, asked, bounds=limits[0] if isinstance(asked, str) else None, method=method, epsilon=epsilon,
            delta=delta, resamples=many, size=entries, confidence=confidence, jobs=jobs, progress=advance,
            budget=paying,
        )  # fmt: skip
    head = {"statistic": statistic, "column": column, "bounds": [list(pair) for pair in limits]}
    spent = [(f"spent: {cost}", what) for cost, what in found.spent]
    ReleaseOutput(
        {"": found}, f"{statistic} of {column}", head, [("drawn", _drawn(found)), *spent], epsilon=epsilon,
        assumes=[READABLE] + [DROPPED] * drop_missing, level=confidence, more=_facts(found),
    ).tell(json=json, report=report)  # fmt: skip


def _limits(bounds: list[str] | None, statistic: str, on: list[str]) -> list[tuple[float, float]]:
    """One pair per column, the column itself first."""
    from ..errors import InvalidInput

    if (statistic == "regression") != bool(on):
        raise InvalidInput("--on COLUMN (one or more) is needed for a regression, and only for that")
    if not bounds:
        raise InvalidInput(f"a {statistic} needs --bounds LOW:HIGH, the public range of its values")
    if len(bounds) != 1 + len(on):
        raise InvalidInput(f"--bounds must be given once per column ({1 + len(on)} times), got it {len(bounds)} times")
    return [read_pair(_colon(text)) for text in bounds]


def _colon(text: str) -> str:
    """LOW,HIGH is the form of the previous version."""
    if text.count(",") != 1 or ":" in text:
        return text
    warn("--bounds LOW,HIGH is now LOW:HIGH; the old form will be removed in the next version")
    return text.replace(",", ":")


def _counts(text: str | None, what: str) -> list[int] | None:
    from ..errors import InvalidInput

    if text is None:
        return None
    try:
        return [int(part) for part in text.split(",")]
    except ValueError:
        raise InvalidInput(f"--{what} must be one or two whole numbers such as 80 or 80,2, got {text!r}") from None


def _statistic(statistic: str, limits: list[tuple[float, float]], on: list[str]) -> Any:
    from ..bootstrap import Regression

    return Regression((*limits[1:], limits[0]), ("intercept", *on)) if on else statistic


def _values(file: Path, columns: list[str], drop_missing: bool) -> Any:
    """The column, or (X, y)."""
    import numpy as np

    if file.name.lower().endswith(".npz"):
        table = _arrays(file, columns)
    else:
        from .survey.population import read_records

        roles: dict[str, Any] = {"column": columns[0], **{f"on {k}": name for k, name in enumerate(columns[1:])}}
        records = read_records(file, **roles)
        table = np.stack([records.numbers(role) for role in roles], axis=1)
    if drop_missing:
        table = table[~np.any(np.isnan(table), axis=1)]
    return table[:, 0] if len(columns) == 1 else (table[:, 1:], table[:, 0])


def _arrays(file: Path, columns: list[str]) -> "NDArray[Any]":
    """Columns of an .npz file."""
    import numpy as np

    from ..errors import InvalidInput
    from .tables import arrays

    stored = arrays(file, columns)
    found = [np.asarray(stored[name], dtype=np.float64) for name in columns]
    if any(a.ndim != 1 or a.size != found[0].size for a in found):
        raise InvalidInput("the arrays must each be one column, all of the same length")
    return np.stack(found, axis=1)


def _drawn(found: "Result") -> str:
    procedure = found.plan.procedure
    if procedure.method == "direct":
        return f"direct: one release from all {procedure.population:,} records"
    stages = ", then ".join(
        f"{size} {'without' if kind == 'wor' else 'with'} replacement"
        for kind, size in zip(procedure.kinds, procedure.sizes, strict=True)
    )
    shared = f", {procedure.each} resamples of each first stage" if procedure.each > 1 else ""
    return f"{procedure.method}: {procedure.groups} times {stages} of {procedure.population:,}{shared}"


def _facts(found: "Result") -> dict[str, Any]:
    """How it was made, for machines."""
    names = ("confidence", "method", "population", "sizes", "groups", "resamples_of_each")
    spent = [{"budget": cost, "on": what} for cost, what in found.spent]
    return {name: found.details[name] for name in names} | {"spent": spent}
