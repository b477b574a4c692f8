"""`privamp demo`: the same job under four designs, their guarantees and errors, and one thing to remember."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from ...numerics.printing import shown_up
from ..console import emit, grid, say, waiting
from ..options import Json

if TYPE_CHECKING:
    from .job import Result

EXAMPLES = """\
Examples:
  privamp demo

  privamp demo --out . --json"""


def demo(
    out: Annotated[Path, typer.Option("--out", metavar="DIR", help="Folder for the picture.")] = Path("."),
    json: Json = False,
) -> None:
    """Run one job under four sampling designs, and compare their guarantees and errors. Takes seconds.

    The data are synthetic, but the samples and the noise are really drawn, so every run differs a little;
    the guarantees do not. The picture needs matplotlib (pip install 'privamp\\[plots]').
    """
    from ...report.pictures import draw_demo
    from . import job as job

    picture, without = _picture(out)
    with waiting("drawing, releasing, certifying", quiet=json) as advance:
        ages, results = job.synthetic_ages(), []
        for done, design in enumerate(job.designs(), 1):
            results.append(job.run(design, ages))
            advance(done, 6)
        limits = job.reference_points()
        truth = {"mean_age": float(ages.mean()), "seniors": int((ages > 65).sum())}
        if picture is not None:
            draw_demo(results, truth["mean_age"], limits["everyone"], picture)
    if json:
        answer = {"delta": job.DELTA, "neighbors": "replace-one", "truth_not_private": truth, "epsilon": limits}
        emit(answer | {"designs": [vars(result) for result in results], "picture": picture and str(picture)})
    else:
        _print(results, truth)
        _remember(results, limits)
        say(f"Picture: {picture}" if picture else without)
        size = f"--size {job.DRAWS} --population {job.PEOPLE}"
        say(f"Next: privamp compare {size} --mechanism gaussian:sigma={job.SIGMA:g}")


def _picture(out: Path) -> tuple[Path | None, str]:
    """Where the picture goes; or None and a sentence about what is missing."""
    from ...errors import MissingExtra
    from ...report.pictures import check_picture

    picture = _folder(out) / "privamp-demo.png"
    try:
        check_picture(picture)
    except MissingExtra as error:
        return None, f"No picture: {error}"
    return picture, ""


def _folder(out: Path) -> Path:
    from ...errors import InvalidInput

    try:
        out.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        why = error.strerror or "no reason given"
        raise InvalidInput(f"cannot make the folder {str(out)!r} ({why}); choose another with --out") from None
    return out


def _print(results: "list[Result]", truth: dict[str, float]) -> None:
    from .job import DELTA, DRAWS, PEOPLE

    say(
        f"{PEOPLE:,} made-up people; two questions (mean age, how many are over 65) to one sample of {DRAWS} draws.\n"
        f"The noise is the same everywhere, only the way of drawing differs. Guarantees: replace-one, δ = {DELTA:g}.\n"
    )
    rows = [
        [
            *(r.label, r.interval, f"{r.touched:.0f}"),
            *_noisy(r.mean_age, r.mean_age_error, ".1f"),
            *_noisy(r.seniors, r.seniors_error, ",.0f"),
        ]
        for r in results
    ]
    rows.append(["the truth *", "", "", f"{truth['mean_age']:.1f}", "", f"{truth['seniors']:,}", ""])
    heads = ["<design", "ε", "people read", "mean age", "typically", "over 65", "typically"]
    grid("What is released, and its guarantee", heads, rows)
    say(
        "ε: smaller is more private; 'a to b': an attack reaches a, the proof certifies b.\n"
        "±: one standard deviation, sampling and noise. *: not private, shown only because the people are made up.\n"
    )


def _remember(results: "list[Result]", limits: dict[str, float]) -> None:
    from .job import DRAWS, QUESTIONS

    together = shown_up(limits["one_sample"], decimals=2)
    first, last, everyone = results[0], results[-1], limits["everyone"]
    than = "more than" if (last.epsilon_lower or 0.0) > everyone else "where"
    say("The one thing to remember", "bold green")
    say(
        f"Ask for ε at your δ, for the design you actually draw with. The same {DRAWS} draws cost {first.interval} "
        "under\n"
        f"  {first.label} and {last.interval} under {last.label}, {than} asking everybody\n"
        f"  with the same noise costs ({shown_up(everyone, decimals=2)}).\n"
        f"  And amplify once per draw: {QUESTIONS} questions to one WOR sample cost {together};\n"
        f"amplifying each one and adding up would claim {shown_up(limits['false_claim'], decimals=2)}, which is "
        "false.\n"
    )


def _noisy(value: float, error: float, style: str) -> list[str]:
    return [f"{value:{style}}", f"± {error:{style}}"]
