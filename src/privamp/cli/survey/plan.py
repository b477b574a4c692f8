"""`privamp survey plan`: candidate designs side by side, before anything is drawn."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from ...numerics.printing import as_asked
from ..console import emit, grid, lower, number, say, upper, waiting
from ..options import Json, given
from .options import (
    EVERYBODY,
    Bounds,
    Cluster,
    Delta,
    DropMissing,
    File,
    OldFile,
    Probability,
    Sd,
    Strata,
    file_of,
    noise_of,
    read_bounds,
    read_sd,
)

if TYPE_CHECKING:
    from ...survey import Plan, PlanRow
    from .population import Records

EXAMPLES = """\
Examples:
  privamp example schools > schools.csv

  privamp survey plan schools.csv --strata level --cluster district \\
      --value enroll --bounds E=0:1600,M=0:4200,H=0:4200 --size 60 --epsilon 1 --plot plan.png

  privamp survey plan schools.csv --strata level --size 60 --epsilon 1 --delta 1e-6 --json

  privamp survey plan schools.csv --size 60 --epsilon 1 --delta 1e-6 --design systematic:step=10 \\
      --design proportional:rate=0.1"""
_GROUPS = {"strata": "strata", "cluster": "clusters"}
UNITS = "no --bounds were given: noise and errors are in units of the range of the values"


def plan(
    size: Annotated[int, typer.Option("--size", metavar="N", help="Number of records to draw.")],
    epsilon: Annotated[float, typer.Option("--epsilon", metavar="E", help="The privacy loss of the release.")],
    file: File = None,
    strata: Strata = None,
    cluster: Cluster = None,
    value: Annotated[
        str | None,
        typer.Option("--value", metavar="COLUMN", help="The column to estimate; read only for --drop-missing."),
    ] = None,
    bounds: Bounds = None,
    sd: Sd = None,
    overall_sd: Annotated[
        float | None, typer.Option("--overall-sd", metavar="SD", help="PUBLIC standard deviation over all records.")
    ] = None,
    overall_mean: Annotated[
        float | None, typer.Option("--overall-mean", metavar="M", help="PUBLIC mean over all records, if known.")
    ] = None,
    icc: Annotated[
        float, typer.Option("--icc", metavar="R", help="Assumed correlation of the values inside a cluster.")
    ] = 0.05,
    delta: Delta = 0.0,
    design: Annotated[
        list[str] | None,
        typer.Option("--design", metavar="SPEC", help="Another design to compare; may be repeated."),
    ] = None,
    probability: Probability = None,
    drop_missing: DropMissing = False,
    plot: Annotated[Path | None, typer.Option("--plot", metavar="FILE", help="Save a picture, .png or .svg.")] = None,
    population: OldFile = None,
    json: Json = False,
) -> None:
    """Compare designs for a survey: the amplified epsilon, the noise needed and the expected error of each.

    Only public facts are used and shown: the sizes of the population, its strata and its clusters (they are
    treated as public here), the bounds, and standard deviations known from elsewhere. Values are never used.
    Without --sd the largest that the bounds allow is assumed; without --bounds errors are in units of the range.

    --design adds more designs, of every kind with public weights, with Laplace or (with --delta) Gaussian
    noise: cluster:… and others that read clusters need --cluster, poisson-pps:… needs --probability.
    """
    from ... import spec
    from ...report.pictures import check_picture, plan_figure, save
    from ...survey import plan as compare
    from .population import read_records

    source = file_of(file, population)
    if plot is not None:
        check_picture(plot)
    with waiting("planning", quiet=json):
        asked = value if drop_missing else None  # if others are left out, which records have a value is public
        records = read_records(
            source, drop_missing=drop_missing, strata=strata, cluster=cluster, value=asked, probability=probability
        )
        frame, names = _frame(records)
        known = read_sd(sd, names)
        with given("--design"):
            chosen = {text: spec.design(text) for text in design or ()}
        found = compare(
            frame, size=size, epsilon=epsilon, bounds=read_bounds(bounds, names), strata=strata and "strata",
            cluster=cluster and "cluster", sd=known, delta=delta, noise=noise_of(delta), icc=icc,
            overall_mean=overall_mean,
            overall_sd=known[EVERYBODY] if known and not strata and overall_sd is None else overall_sd,
            designs=chosen,
        )  # fmt: skip
        if plot is not None:
            save(plan_figure(found), plot)
    notes = [_in_words(note) for note in found.notes] + [UNITS] * (bounds is None)
    if json:
        emit(_answer(found, records, epsilon, delta, notes) | ({"plot": str(plot)} if plot else {}))
        return
    _print(found, records, epsilon, delta, notes)
    if plot:
        say(f"Picture: {plot}")


def _frame(records: "Records") -> tuple[dict[str, Any], list[str]]:
    """The public columns under names of their own, and the strata's names."""
    import numpy as np

    frame: dict[str, Any] = {role: records.text(role) for role in ("strata", "cluster") if role in records.roles}
    names = np.unique(frame["strata"]).tolist() if "strata" in frame else [EVERYBODY]
    if "probability" in records.roles:
        frame["probability"] = records.numbers("probability")
    return frame or {"records": np.arange(records.size)}, names


def _answer(found: "Plan", records: "Records", epsilon: float, delta: float, notes: list[str]) -> dict[str, Any]:
    return {
        "population": records.size,
        "epsilon": epsilon,
        "delta": delta,
        "noise": noise_of(delta),
        "designs": [_row(rank, row) for rank, row in enumerate(found.rows, 1)],
        "recommendation": found.recommendation,
        "reason": found.reason,
        "notes": notes,
    }


def _row(rank: int, row: "PlanRow") -> dict[str, Any]:
    return {
        "rank": rank,
        "name": row.name,
        "neighbors": str(row.relation),
        "amplified_epsilon_upper": row.amplified_upper,
        "amplified_epsilon_lower": row.amplified_lower,
        "noise_scale": row.noise_scale,
        "standard_error": row.standard_error,
        "standard_error_sampling": row.standard_error_sampling,
        "standard_error_noise": row.standard_error_noise,
        "note": _in_words(row.note),
    }


def _in_words(note: str) -> str:
    return note.replace("overall_sd=", "--overall-sd").replace("overall_mean=", "--overall-mean")


def _print(found: "Plan", records: "Records", epsilon: float, delta: float, notes: list[str]) -> None:
    base = as_asked(epsilon)
    at = f"ε = {base}" + (f", δ = {as_asked(delta)}" if delta else "")
    say(f"{records.size:,} records; a mean with {noise_of(delta)} noise at {at}")
    heads = ["<design", "<relation", f"{base} → ε", "at least", "noise", "sampling", "error"]
    grid(
        "Ranked by expected standard error (sampling and noise together)",
        heads,
        (
            [
                row.name, str(row.relation), upper(row.amplified_upper), lower(row.amplified_lower),
                upper(row.noise_scale), number(row.standard_error_sampling), number(row.standard_error),
            ]
            for row in found.rows
        ),
        best=0,
    )  # fmt: skip
    say(f"{base} → ε: what {base}-DP on the sample guarantees for the population; an attack reaches 'at least'.")
    say(f"noise: scale on the mean that reaches {at} with this design.")
    for row in found.rows:
        if row.note:
            say(f"{row.name}: {_in_words(row.note)}")
    for note in notes:
        say(f"Note: {note}")
    say(f"Take {found.recommendation}: {found.reason}.", "bold green")
    groups = [f", of its {what} ({records.roles[role]})" for role, what in _GROUPS.items() if role in records.roles]
    say(f"Treated as public: the sizes of the population{''.join(groups)}.")
