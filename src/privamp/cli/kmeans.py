"""`privamp kmeans`: centres of a table that may be published, from one command."""

import os
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from ..numerics.printing import as_asked, shown_up
from .amplify import answers, findings
from .console import emit, facts, grid, number, say, upper, waiting, warn
from .options import BudgetFile, BudgetLabel, Json, Report, opened_budget

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from ..kmeans.estimator import PrivateKMeans

EXAMPLES = """\
Examples:
  privamp kmeans points.csv --k 4 --epsilon 1 --radius 1 --out centres.csv

  privamp kmeans points.csv --k 4 --epsilon 1 --delta 1e-6 --size 500 --columns x,y --radius private \\
      --out private.csv --report report.html --json"""

_SAMPLERS = ("privacy-constrained", "coreset", "uniform", "none")
_FEW = 12  # columns that a table shows


def kmeans(
    file: Annotated[Path, typer.Argument(metavar="FILE", help="The records: .csv, .csv.gz, .parquet or .npz.")],
    k: Annotated[int, typer.Option("--k", metavar="K", help="How many centres.")],
    out: Annotated[Path, typer.Option("--out", metavar="FILE", help="Where the centres go, .csv.")],
    epsilon: Annotated[float, typer.Option("--epsilon", metavar="E", help="What the whole fit may cost.")] = 1.0,
    delta: Annotated[
        float, typer.Option("--delta", metavar="D", help="0: pure, norm noise. Above 0: Gaussian noise.")
    ] = 0.0,
    radius: Annotated[
        str | None,
        typer.Option("--radius", metavar="R", help="PUBLIC bound on the distance from the centre, or 'private'."),
    ] = None,
    center: Annotated[
        str | None,
        typer.Option("--center", metavar="X,Y,…", help="PUBLIC centre, the origin when not given, or 'private'."),
    ] = None,
    columns: Annotated[
        str | None, typer.Option("--columns", metavar="A,B,…", help="Columns to use; all when not given.")
    ] = None,
    sampler: Annotated[
        str, typer.Option("--sampler", metavar="WORD", help="privacy-constrained, coreset, uniform or none.")
    ] = "privacy-constrained",
    size: Annotated[
        float | None, typer.Option("--size", metavar="M", help="Expected sample size; chosen when not given.")
    ] = None,
    noise: Annotated[
        str | None, typer.Option("--noise", metavar="WORD", help="norm or gaussian; by --delta when not given.")
    ] = None,
    iterations: Annotated[int, typer.Option("--iterations", metavar="T", help="At most so many steps.")] = 10,
    drop_missing: Annotated[
        bool,
        typer.Option(
            "--drop-missing", help="Leave out records with an empty entry, which counts as the centre's otherwise."
        ),
    ] = False,
    overwrite: Annotated[bool, typer.Option("--overwrite", help="Replace files that exist.")] = False,
    report: Report = None,
    cost_not_private: Annotated[
        bool,
        typer.Option(
            "--cost-not-private", help="Also tell the k-means cost of all records: NOT PRIVATE, not for release."
        ),
    ] = False,
    jobs: Annotated[int | None, typer.Option("--jobs", metavar="J", help="Cores to use; all when not given.")] = None,
    budget: BudgetFile = None,
    budget_population: BudgetLabel = None,
    json: Json = False,
) -> None:
    """Release k centres of a table under differential privacy, add/remove of one record.

    Records farther than the radius from the centre are shortened to it, none is dropped. Radius, centre and columns
    must be public; 'private' estimates the first two out of the budget. A sample by importance is read instead of all
    records: it is faster, and the guarantee is for everybody. How many records there are is secret and not shown. No
    record is refused: an entry that is empty or no number counts as the centre's, an infinite one is shortened.

    Each run draws with a fresh key, and its epsilon adds to that of other runs.
    """
    from ..kmeans.estimator import PrivateKMeans

    _check_files(file, out, report, overwrite)
    model = PrivateKMeans(
        n_clusters=k, epsilon=epsilon, delta=delta, sampler=_sampler(sampler), sample_size=size,
        noise=noise or ("gaussian" if delta else "norm"), radius=_radius(radius), center=_center(center),
        n_iter=iterations, n_jobs=jobs,
    )  # fmt: skip
    paying = opened_budget(budget, budget_population)
    with waiting("clustering", quiet=json) as advance:
        names, table = _table(file, columns, drop_missing)
        model.set_params(progress=lambda step, steps, _: advance(step, steps))
        model.fit(table, budget=paying)
        cost = -model.score(table) / max(len(table), 1) if cost_not_private else None
        del table
        privacy = answers(model.guarantee_, epsilon=None, delta=delta or None)
        page = _page(model, names, cost).encode("utf-8") if report else None
    _write({out: _csv(model, names)} | ({report: page} if report and page else {}))
    if json:
        written = {"out": str(out)} | ({"report": str(report)} if report else {})
        emit(_answer(model, names) | ({"cost_not_private": cost} if cost is not None else {}) | privacy | written)
    else:
        _tell(model, names, privacy)
        say(f"Centres: {out}" + (f"\nReport: {report}" if report else ""))
    if cost is not None and not json:
        warn(f"NOT PRIVATE: mean squared distance of all records to their centre {cost:.6g}; do not release it")


def _sampler(text: str) -> str | None:
    from ..validation import one_of

    one_of(_SAMPLERS, sampler=text)
    return None if text == "none" else text


def _radius(text: str | None) -> float | str:
    from ..errors import InvalidInput

    if text is None:
        raise InvalidInput(
            "--radius is missing: give a public bound on the distance of records from the centre, or say "
            "'--radius private' to estimate one out of the budget"
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
    """Names that can be written, before anything is read."""
    from ..errors import InvalidInput
    from ..extras import need
    from .tables import ENDINGS, check_file

    if not file.name.lower().endswith(ENDINGS):
        raise InvalidInput(f"the records must be named .csv, .csv.gz, .parquet or .npz, got {file.name!r} instead")
    check_file(file)
    if out.suffix.lower() != ".csv":
        raise InvalidInput(f"the centres must be named .csv, got {out.name!r} instead")
    if report is not None and report.suffix.lower() not in (".html", ".htm"):
        raise InvalidInput(f"a report must be named .html, got {report.name!r} instead")
    if report is not None:
        need("matplotlib", "the report's picture")
    for path in (out, report):
        if path is None:
            continue
        if os.path.realpath(path) == os.path.realpath(file):
            raise InvalidInput(f"{str(path)!r} is the input; write to another file")
        if os.path.lexists(path) and not overwrite:
            raise InvalidInput(f"{str(path)!r} exists already; choose another name, or say --overwrite")
        if not path.parent.is_dir() or not os.access(path.parent, os.W_OK) or path.is_dir():
            raise InvalidInput(f"cannot write {str(path)!r}; choose a file in a folder that exists and is writable")


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


def _csv(model: "PrivateKMeans", names: list[str]) -> bytes:
    import csv
    from io import StringIO

    buffer = StringIO()
    writer = csv.writer(buffer, lineterminator="\n")
    writer.writerow(["centre", "noisy_count", *names])
    for at, (count, row) in enumerate(zip(model.counts_, model.cluster_centers_, strict=True), 1):
        writer.writerow([at, float(count), *map(float, row)])
    return buffer.getvalue().encode("utf-8")


def _write(contents: dict[Path, bytes]) -> None:
    """All files or none."""
    from ..atomic_files import write_atomically
    from ..errors import InvalidInput

    new = [path for path in contents if not os.path.lexists(path)]
    try:
        for path, data in contents.items():
            write_atomically(path, data)
    except OSError as error:
        for path in new:
            path.unlink(missing_ok=True)
        why = error.strerror or "no reason given"
        raise InvalidInput(f"cannot write {str(error.filename or 'a file')!r} ({why}); nothing was written") from None


def _answer(model: "PrivateKMeans", names: list[str]) -> dict[str, Any]:
    return {
        "k": model.n_clusters,
        "columns": names,
        "sampler": model.sampler or "none",
        "noise": model.noise,
        "radius": model.radius_,
        "center": model.center_.tolist(),
        "centres": model.cluster_centers_.tolist(),
        "noisy_counts": model.counts_.tolist(),
        "noisy_records": model.n_records_,
        "expected_sample_size": model.sample_size_,
        "steps_run": model.n_iter_,
        "budget": [{"what": what, "epsilon": cost, "delta": delta} for what, cost, delta in model.budget_],
    }


def _rows(model: "PrivateKMeans", columns: int) -> list[list[str]]:
    centres = model.cluster_centers_[:, :columns]
    return [
        [str(at), f"{count:,.0f}", *(number(float(x)) for x in row)]
        for at, (count, row) in enumerate(zip(model.counts_, centres, strict=True), 1)
    ]


def _about(model: "PrivateKMeans") -> list[tuple[str, str]]:
    """What was done, in public or released numbers."""
    fitted = model._fitted
    kind = "estimated privately" if model.radius == "private" else "public"
    who = (
        "all records" if model.sampler is None else f"{model.sampler}, about {model.sample_size_:,.0f} of them expected"
    )
    return [
        ("records", f"about {model.n_records_:,.0f} (noisy)"),
        ("sample", who),
        ("steps", f"{model.n_iter_}, each {_noise(fitted.plan.mechanisms[0])} in units of the radius"),
        ("ball", f"radius {number(model.radius_, 6)} ({kind})"),
    ]


def _noise(step: Any) -> str:
    parts = [(m, getattr(m, "scale", None) or getattr(m, "sigma", None)) for m in (step.sums, step.counts)]
    kinds = {"NormNoise": "norm", "Laplace": "Laplace", "Gaussian": "Gaussian"}
    words = [f"{kinds[type(m).__name__]} noise {number(scale)}" for m, scale in parts]
    return f"{words[0]} on sums and {words[1]} on counts"


def _tell(model: "PrivateKMeans", names: list[str], privacy: dict[str, Any]) -> None:
    shown = names[: _FEW - 4]
    more = f" (the first {len(shown)} of {len(names)} columns; all are in the file)" if len(names) > len(shown) else ""
    grid(f"{model.n_clusters} centres{more}", ["centre", "noisy count", *shown], _rows(model, len(shown)))
    costs = [(f"spent: {upper(e)}", what + (f", delta {as_asked(d)}" if d else "")) for what, e, d in model.budget_]
    facts([*_about(model), *costs, ("relation", str(model.guarantee_.neighbors)), *findings(privacy)])


def _page(model: "PrivateKMeans", names: list[str], cost: float | None) -> str:
    from ..numerics.printing import as_asked
    from ..report.centres import picture_of_centres
    from ..report.html import Report as Page

    at = f" and delta {as_asked(model.delta)}" if model.delta else ""
    page = Page(
        f"{model.n_clusters} private centres",
        f"k-means with epsilon {as_asked(model.epsilon or 0.0)}{at} under add/remove of one record.",
    )
    picture = picture_of_centres(model.cluster_centers_, model.counts_, names, model.center_, model.radius_)
    page.add_figure(picture, "The released centres and their noisy counts.")
    few = names[:_FEW]
    caption = "Centres" + (f", first {len(few)} of {len(names)} columns." if len(names) > len(few) else ".")
    page.add_table(["centre", "noisy count", *few], _rows(model, len(few)), caption)
    page.add_table(["what", "how"], _about(model), "How it was made.")
    rows = [[what, shown_up(spent), as_asked(d)] for what, spent, d in model.budget_]
    page.add_table(["what", "epsilon", "delta"], rows, "What the budget was spent on.")
    page.add_guarantee(model.guarantee_, delta=model.delta or None)
    if cost is not None:
        page.add_text(
            f"Mean squared distance of all records to their nearest centre: {cost:.6g}. It was computed from the "
            "records without noise. Do not release this page.",
            "NOT PRIVATE: a diagnostic",
        )
    return page.html()
