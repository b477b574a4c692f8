"""`privamp kmeans`: private cluster centres of a table."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from ..numerics.printing import as_asked, shown_up
from .console import number, upper, waiting, warn
from .options import BudgetFile, BudgetLabel, Json, Report, opened_budget, read_pair
from .released import ReleaseOutput, check_files, check_page

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from ..core.release import Release
    from ..kmeans.estimator import PrivateKMeans

EXAMPLES = """\
Examples:
  privamp example points > points.csv

  privamp kmeans points.csv --k 4 --epsilon 1 --radius 1 --out centres.csv

  privamp kmeans points.csv --k 4 --epsilon 1 --delta 1e-6 --size 500 --columns x,y --radius private \\
      --out private.csv --report report.html --json"""

_SAMPLERS = ("privacy-constrained", "coreset", "uniform", "none")
_SHOWN = 12  # names of columns


def kmeans(
    file: Annotated[Path, typer.Argument(metavar="FILE", help="The records: .csv, .csv.gz, .parquet or .npz.")],
    k: Annotated[int, typer.Option("--k", metavar="K", help="Number of centres.")],
    out: Annotated[Path, typer.Option("--out", metavar="FILE", help="Output file for the centres, .csv.")],
    epsilon: Annotated[float, typer.Option("--epsilon", metavar="E", help="The privacy loss of the whole fit.")] = 1.0,
    delta: Annotated[
        float, typer.Option("--delta", metavar="D", help="0: pure, norm noise. Above 0: Gaussian noise.")
    ] = 0.0,
    radius: Annotated[
        str | None,
        typer.Option("--radius", metavar="R", help="PUBLIC bound on the distance from the centre, or 'private'."),
    ] = None,
    center: Annotated[
        str | None,
        typer.Option("--center", metavar="X,Y,…", help="PUBLIC centre, by default the origin, or 'private'."),
    ] = None,
    bounds: Annotated[
        list[str] | None,
        typer.Option(
            "--bounds", metavar="LOW:HIGH", help="Instead of a radius: PUBLIC range of the columns, once or per column."
        ),
    ] = None,
    columns: Annotated[
        str | None, typer.Option("--columns", metavar="A,B,…", help="Columns to use; all by default.")
    ] = None,
    sampler: Annotated[
        str, typer.Option("--sampler", metavar="WORD", help="privacy-constrained, coreset, uniform or none.")
    ] = "privacy-constrained",
    size: Annotated[
        float | None, typer.Option("--size", metavar="M", help="Expected sample size; chosen automatically by default.")
    ] = None,
    noise: Annotated[
        str | None, typer.Option("--noise", metavar="WORD", help="norm or gaussian; chosen by --delta by default.")
    ] = None,
    iterations: Annotated[int, typer.Option("--iterations", metavar="T", help="Maximum number of steps.")] = 10,
    drop_missing: Annotated[
        bool,
        typer.Option(
            "--drop-missing", help="Leave out records with an empty entry, which counts as the centre's otherwise."
        ),
    ] = False,
    overwrite: Annotated[bool, typer.Option("--overwrite", help="Replace existing files.")] = False,
    report: Report = None,
    cost_not_private: Annotated[
        bool,
        typer.Option(
            "--cost-not-private", help="Also show the k-means cost of all records: NOT PRIVATE, not for release."
        ),
    ] = False,
    jobs: Annotated[int | None, typer.Option("--jobs", metavar="J", help="Number of cores; all by default.")] = None,
    budget: BudgetFile = None,
    budget_population: BudgetLabel = None,
    json: Json = False,
) -> None:
    """Release k centres of a table under differential privacy, add/remove of one record.

    Records farther than the radius from the centre are projected onto the ball, not dropped. Radius, centre and columns
    must be public; 'private' estimates the first two from the budget. An importance sample is read instead of all
    records: it is faster, and the guarantee covers all records. The number of records is secret and not shown. No
    record is rejected: an entry that is empty or not a number counts as the centre's, an infinite one is clipped.

    Each run draws with a fresh key, and its epsilon adds to that of other runs.
    """
    from ..kmeans.estimator import PrivateKMeans

    _check_files(file, out, report, overwrite)
    model = PrivateKMeans(
        n_clusters=k, epsilon=epsilon, delta=delta, sampler=_sampler(sampler), sample_size=size,
        noise=noise or ("gaussian" if delta else "norm"), radius=_radius(radius, bounds), center=_center(center),
        bounds=_bounds(bounds), n_iter=iterations, n_jobs=jobs,
    )  # fmt: skip
    paying = opened_budget(budget, budget_population)
    with waiting("clustering", quiet=json) as advance:
        names, table = _table(file, columns, drop_missing)
        model.set_params(progress=lambda step, steps, _: advance(step, steps))
        model.fit(table, budget=paying)
        cost = -model.score(table) / max(len(table), 1) if cost_not_private else None
        del table
        told = _told(model, names, cost)
    told.tell(json=json, report=report, files={"out": (out, _csv(told.first))})
    if cost is not None and not json:
        warn(f"NOT PRIVATE: mean squared distance of all records to their centre {cost:.6g}; do not release it")


def _sampler(text: str) -> str | None:
    from ..validation import one_of

    one_of(_SAMPLERS, sampler=text)
    return None if text == "none" else text


def _bounds(given: list[str] | None) -> Any:
    """One pair for all columns, or one for each."""
    pairs = [read_pair(text) for text in given or []]
    return pairs[0] if len(pairs) == 1 else pairs or None


def _radius(text: str | None, bounds: list[str] | None) -> float | str | None:
    from ..errors import InvalidInput

    if text is None and bounds:
        return None
    if text is None:
        raise InvalidInput(
            "--radius is missing: give a public bound on the distance of records from the centre, --bounds LOW:HIGH of "
            "the columns, or use '--radius private' to estimate one from the budget"
        )
    if text == "private":
        return text
    try:
        return float(text)
    except ValueError:
        raise InvalidInput(f"--radius must be a number above 0 or 'private', got {text!r} instead") from None


def _center(text: str | None) -> list[float] | str | None:
    from ..errors import InvalidInput

    if text is None or text == "private":
        return text
    try:
        return [float(part) for part in text.split(",")]
    except ValueError:
        raise InvalidInput(f"--center must be numbers such as 0.5,0,2 or 'private', got {text!r} instead") from None


def _check_files(file: Path, out: Path, report: Path | None, overwrite: bool) -> None:
    """Check the file names before anything is read."""
    from ..errors import InvalidInput
    from ..extras import need
    from .tables import ENDINGS, check_file

    if not file.name.lower().endswith(ENDINGS):
        raise InvalidInput(f"the records must be named .csv, .csv.gz, .parquet or .npz, got {file.name!r} instead")
    check_file(file)
    if out.suffix.lower() != ".csv":
        raise InvalidInput(f"the centres must be named .csv, got {out.name!r} instead")
    check_page(report)
    if report is not None:
        need("matplotlib", "the report's picture")
    check_files(file, [out, report], overwrite=overwrite)


def _table(file: Path, columns: str | None, drop_missing: bool) -> "tuple[list[str], NDArray[Any]]":
    """Column names and numbers, one row per record."""
    import numpy as np

    from ..errors import InvalidInput
    from .tables import table_of_arrays, table_of_columns

    wanted = [name.strip() for name in columns.split(",")] if columns is not None else None
    if wanted is not None and (len(set(wanted)) < len(wanted) or "" in wanted):
        raise InvalidInput(f"--columns must be different names such as a,b,c, got {columns!r} instead")
    names, table = (table_of_arrays if file.name.lower().endswith(".npz") else table_of_columns)(file, wanted)
    if drop_missing and table.dtype.kind == "f":
        table = table[~np.isnan(table).any(axis=1)]
    return names, table


def _csv(found: "Release") -> bytes:
    import csv
    from io import StringIO

    buffer = StringIO()
    writer = csv.writer(buffer, lineterminator="\n")
    writer.writerow(["centre", "noisy_count", *found.details["columns"]])
    for at, (count, row) in enumerate(zip(found.details["counts"], found.value, strict=True), 1):
        writer.writerow([at, float(count), *map(float, row)])
    return buffer.getvalue().encode("utf-8")


def _told(model: "PrivateKMeans", names: list[str], cost: float | None) -> ReleaseOutput:
    """What was released, with the names of its columns."""
    from ..core.release import Release
    from ..report.centres import picture_of_centres

    made = model.result_
    details = {**made.details, "columns": names}
    found = Release(
        made.value, made.noise_error, None, made.guarantee, made.law, made.sampling_error_is, made.names, details
    )
    at = f" and delta {as_asked(model.delta)}" if model.delta else ""
    spent = [(f"spent: {upper(e)}", what + (f", delta {as_asked(d)}" if d else "")) for what, e, d in model.budget_]
    rows = [[what, shown_up(each), as_asked(d)] for what, each, d in model.budget_]
    return ReleaseOutput(
        {"": found}, f"{model.n_clusters} private centres", _head(model, names), _about(model, names), printed=spent,
        delta=model.delta or None, called="Centres", more=_more(model, cost),
        summary=f"k-means with epsilon {as_asked(model.epsilon or 0.0)}{at} under add/remove of one record.",
        picture=(lambda: picture_of_centres(found), "The released centres and their noisy counts."),
        tables=[(["what", "epsilon", "delta"], rows, "What the budget was spent on, each number rounded up.")],
        not_private=None if cost is None else (
            "NOT PRIVATE: a diagnostic",
            f"Mean squared distance of all records to their nearest centre: {cost:.6g}. It was computed from the "
            "records without noise. Do not release this page.",
        ),
    )  # fmt: skip


def _head(model: "PrivateKMeans", names: list[str]) -> dict[str, Any]:
    return {"k": model.n_clusters, "columns": names, "sampler": model.sampler or "none", "noise": model.noise}


def _more(model: "PrivateKMeans", cost: float | None) -> dict[str, Any]:
    """How it was made; the centres are also given in one list."""
    return {
        "radius": model.radius_,
        "center": model.center_.tolist(),
        "centres": model.cluster_centers_.tolist(),
        "noisy_counts": model.counts_.tolist(),
        "noisy_records": model.n_records_,
        "expected_sample_size": model.sample_size_,
        "columns_used": [int(at) for at in model.columns_used_],
        "steps_run": model.n_iter_,
        "budget": [{"what": what, "epsilon": each, "delta": delta} for what, each, delta in model.budget_],
        **({"cost_not_private": cost} if cost is not None else {}),
    }


def _about(model: "PrivateKMeans", names: list[str]) -> list[tuple[str, str]]:
    """What was done, in public or released numbers."""
    fitted = model._fitted
    kind = "estimated privately" if model.radius == "private" else "public"
    who = (
        "all records" if model.sampler is None else f"{model.sampler}, about {model.sample_size_:,.0f} of them expected"
    )
    return [
        ("columns", _columns_used(model, names)),
        ("records", f"about {model.n_records_:,.0f} (noisy)"),
        ("sample", who),
        ("steps", f"{model.n_iter_} after the overall mean, each {_noise(fitted.plan.mechanisms[-1])}, in radii"),
        ("ball", f"radius {number(model.radius_, 6)} ({kind})"),
    ]


def _columns_used(model: "PrivateKMeans", names: list[str]) -> str:
    """The columns in which the centres differ; in the others the noise hides every difference."""
    used = set(model.columns_used_.tolist())
    left = [name for at, name in enumerate(names) if at not in used]
    if not left:
        return f"centres differ in all {len(names)}"
    shown = ", ".join(left[:_SHOWN]) + (f" and {len(left) - _SHOWN} more" if len(left) > _SHOWN else "")
    return f"centres differ in {len(used)} of {len(names)}; at the overall mean in {shown}"


def _noise(step: Any) -> str:
    parts = [(m, getattr(m, "scale", None) or getattr(m, "sigma", None)) for m in (step.sums, step.counts)]
    kinds = {"NormNoise": "norm", "Laplace": "Laplace", "Gaussian": "Gaussian"}
    words = [f"{kinds[type(m).__name__]} noise {number(scale)}" for m, scale in parts]
    return f"{words[0]} on sums and {words[1]} on counts"
