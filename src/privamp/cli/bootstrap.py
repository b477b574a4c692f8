"""`privamp bootstrap`: an estimate, its standard error and its interval, private, from one file."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from .amplify import answers, findings
from .console import emit, facts, grid, number, say, waiting
from .options import Json
from .survey.options import DropMissing

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from ..bootstrap import Result

EXAMPLES = """\
Examples:
  privamp bootstrap schools.csv --column enroll --statistic mean --bounds 0,2000 --epsilon 1 --delta 1e-6

  privamp bootstrap schools.csv --column enroll --statistic quantile:0.9 --bounds 0,2000 \\
      --method m-out-of-n --report report.html --json"""


def bootstrap(
    file: Annotated[Path, typer.Argument(metavar="FILE", help="The records: .csv, .csv.gz, .parquet or .npz.")],
    column: Annotated[str, typer.Option("--column", metavar="COLUMN", help="The column that is asked about.")],
    statistic: Annotated[
        str,
        typer.Option("--statistic", metavar="WORD", help="mean, variance, median, quantile:0.9 or regression."),
    ] = "mean",
    bounds: Annotated[
        list[str] | None,
        typer.Option(
            "--bounds", metavar="LOW,HIGH", help="PUBLIC range of the column; for a regression one more per --on."
        ),
    ] = None,
    on: Annotated[
        list[str] | None, typer.Option("--on", metavar="COLUMN", help="A column that a regression explains with.")
    ] = None,
    method: Annotated[
        str, typer.Option("--method", metavar="WORD", help="subsampling, m-out-of-n, double or little.")
    ] = "subsampling",
    epsilon: Annotated[float, typer.Option("--epsilon", metavar="E", help="What the release may cost.")] = 1.0,
    delta: Annotated[float, typer.Option("--delta", metavar="D", help="Above 0, far below 1/n.")] = 1e-6,
    resamples: Annotated[
        str | None, typer.Option("--resamples", metavar="B", help="How many; SUBSETS,EACH for --method little.")
    ] = None,
    size: Annotated[
        str | None, typer.Option("--size", metavar="M", help="Entries of a resample; FIRST,M for two stages.")
    ] = None,
    confidence: Annotated[float, typer.Option("--confidence", metavar="P", help="Of the interval.")] = 0.95,
    jobs: Annotated[int | None, typer.Option("--jobs", metavar="J", help="Cores to use; all when not given.")] = None,
    drop_missing: DropMissing = False,
    report: Annotated[Path | None, typer.Option("--report", metavar="FILE", help="Write a page, .html.")] = None,
    json: Json = False,
) -> None:
    """Release an estimate with its standard error and confidence interval, for one (epsilon, delta) altogether.

    Values are cut to the bounds, which must be public, as must the number of records; one that is missing or no number
    counts as the middle of them. What is not given (resample size,
    number of resamples) is chosen by a rule that sees neither the data nor anything computed from them. The interval
    counts the sampling error, the error of resampling and the noise, and that the spread itself is only estimated.

    Each run draws with a fresh key, and its epsilon adds to that of other runs.
    """
    from ..bootstrap import run
    from .survey.population import DROPPED, READABLE

    limits = _limits(bounds, statistic, on or [])
    many, entries = _counts(resamples, "resamples"), _counts(size, "size")
    if report is not None:
        _check_page(report)
    with waiting("resampling", quiet=json) as advance:
        values = _values(file, [column, *(on or [])], drop_missing)
        asked = _statistic(statistic, limits, on or [])
        found = run(
            values, asked, bounds=limits[0] if isinstance(asked, str) else None, method=method, epsilon=epsilon,
            delta=delta, resamples=many, size=entries, confidence=confidence, jobs=jobs, progress=advance,
        )  # fmt: skip
        answer = found.to_json()
        privacy = answers(found.privacy, epsilon=epsilon, delta=None)
        privacy["assumes"] += [READABLE] + [DROPPED] * drop_missing
        if report is not None:
            _page(found, column, statistic, limits, report, privacy["assumes"])
    head = {"statistic": statistic, "column": column, "bounds": [list(pair) for pair in limits]}
    if json:
        page = {"report": str(report)} if report else {}
        emit(head | {k: v for k, v in answer.items() if k != "privacy"} | privacy | page)
    else:
        _tell(found, head, privacy)
        if report:
            say(f"Report: {report}")


def _limits(bounds: list[str] | None, statistic: str, on: list[str]) -> list[tuple[float, float]]:
    """One pair per column, the asked column first."""
    from ..errors import InvalidInput

    if (statistic == "regression") != bool(on):
        raise InvalidInput("a regression needs --on COLUMN (one or more), and only a regression takes it")
    if not bounds:
        raise InvalidInput(f"a {statistic} needs --bounds LOW,HIGH, between which the values lie; they must be public")
    if len(bounds) != 1 + len(on):
        raise InvalidInput(f"--bounds is needed once per column ({1 + len(on)} times), got it {len(bounds)} times")
    return [_pair(text) for text in bounds]


def _pair(text: str) -> tuple[float, float]:
    import math

    from ..errors import InvalidInput

    try:
        low, high = (float(end) for end in text.replace(":", ",").split(","))
    except ValueError:
        low = high = math.nan
    if not (math.isfinite(low) and math.isfinite(high) and low < high):
        raise InvalidInput(f"--bounds must be LOW,HIGH with LOW < HIGH, both finite numbers, got {text!r} instead")
    return low, high


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
    """The asked column, or (X, y)."""
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


def _check_page(path: Path) -> None:
    import os

    from ..errors import InvalidInput

    if path.suffix.lower() not in (".html", ".htm"):
        raise InvalidInput(f"a report must be named .html, got {path.name!r} instead")
    if not path.parent.is_dir() or not os.access(path.parent, os.W_OK) or path.is_dir():
        raise InvalidInput(f"cannot write {str(path)!r}; choose a file in a folder that exists and is writable")


def _drawn(found: "Result") -> str:
    procedure = found.plan.procedure
    stages = ", then ".join(
        f"{size} {'without' if kind == 'wor' else 'with'} replacement"
        for kind, size in zip(procedure.kinds, procedure.sizes, strict=True)
    )
    shared = f", {procedure.each} resamples of each first stage" if procedure.each > 1 else ""
    return f"{procedure.method}: {procedure.groups} times {stages} of {procedure.population:,}{shared}"


def _rows(found: "Result") -> list[list[str]]:
    return [
        [
            f.name, number(f.value, 6), number(f.standard_error), number(f.standard_error_sampling),
            number(f.standard_error_noise), number(f.interval[0], 6), number(f.interval[1], 6),
        ]
        for f in found.findings
    ]  # fmt: skip


def _heads(found: "Result") -> list[str]:
    return ["<what", "estimate", "± all", "± sampling", "± noise", f"{100 * found.plan.confidence:g}% from", "to"]


def _tell(found: "Result", head: dict[str, Any], privacy: dict[str, Any]) -> None:
    grid(f"{head['statistic']} of {head['column']}", _heads(found), _rows(found))
    facts([
        ("drawn", _drawn(found)),
        *((f"spent: {cost}", what) for cost, what in found.spent),
        ("relation", f"{found.privacy.neighbors} (the number of records is public)"),
        *findings(privacy),
    ])  # fmt: skip


def _page(
    found: "Result", column: str, statistic: str, limits: list[tuple[float, float]], path: Path, assumes: list[str]
) -> None:
    from dataclasses import replace

    from ..report.html import Report

    level = f"{100 * found.plan.confidence:g}%"
    page = Report(f"{statistic} of {column}", f"A private bootstrap estimate with its {level} confidence interval.")
    heads = [head.lstrip("<") for head in _heads(found)]
    page.add_table(heads, _rows(found), "Errors are standard errors; '± all' also counts the resampling.")
    page.add_text(
        f"Drawn: {_drawn(found)}.\n\nValues are cut to {', '.join(f'[{low:g}, {high:g}]' for low, high in limits)}.",
        "How it was made",
    )
    page.add_table(["on what", "budget"], [[what, cost] for cost, what in found.spent], "What the budget was spent on.")
    page.add_guarantee(replace(found.privacy, assumes=tuple(assumes)), epsilon=found.plan.epsilon)
    page.write(path)
