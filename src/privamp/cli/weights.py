"""`privamp weights`: importance-sampling rules as a picture and as numbers."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from ..numerics.printing import as_asked, shown_up
from .console import emit, grid, number, say, upper, waiting
from .options import Json

if TYPE_CHECKING:
    from ..report.overlaid_rules import Overlay
    from ..rules.norm_histogram import NormHistogram

EXAMPLES = """\
Examples:
  privamp weights --epsilon 1 --plot weights.png

  privamp weights --noise gaussian --epsilon 1 --delta 1e-6 --size 50 --population 10000 --plot weights.png

  privamp weights --noise laplace --dimension 10 --epsilon 1 --radius 4 --scale 30 \\
      --norms 1:100,2:500,3:300,4:100 --json"""

_SHOWN = (0.1, 0.5, 1.0)  # of the radius


def weights(
    epsilon: Annotated[
        float, typer.Option("--epsilon", metavar="E", help="The largest privacy loss of a record.")
    ] = 1.0,
    delta: Annotated[
        float, typer.Option("--delta", metavar="D", help="Above 0 for Gaussian noise, 0 for the others.")
    ] = 0.0,
    noise: Annotated[
        str, typer.Option("--noise", metavar="WORD", help="Noise of the sum: laplace (l1), norm (l2) or gaussian (l2).")
    ] = "norm",
    scale: Annotated[float | None, typer.Option("--scale", metavar="B", help="The noise; sigma for gaussian.")] = None,
    size: Annotated[
        float | None,
        typer.Option("--size", metavar="M", help="Instead of --scale: the expected sample size; a tenth by default."),
    ] = None,
    population: Annotated[
        float | None, typer.Option("--population", metavar="N", help="The approximate number of records.")
    ] = None,
    norms: Annotated[
        str | None,
        typer.Option(
            "--norms", metavar="U:N,…", help="PUBLIC guess: N records of norm up to U; evenly spread by default."
        ),
    ] = None,
    radius: Annotated[float, typer.Option("--radius", metavar="R", help="PUBLIC bound on the norm of a record.")] = 1.0,
    dimension: Annotated[int, typer.Option("--dimension", metavar="D", help="Dimension of a record.")] = 2,
    plot: Annotated[Path | None, typer.Option("--plot", metavar="FILE", help="Save a picture, .png or .svg.")] = None,
    json: Json = False,
) -> None:
    """Show which records each rule keeps, with what weight and at what loss, by the norm of a record.

    The privacy-constrained rule is built for the noise and epsilon; uniform, variance-optimal and coreset samples are
    shown at the same noise and the same expected size. Sizes are for the guessed norms, which must be public; losses
    hold for every record up to the radius, whatever the guess. To sample a sum that is released T times (k-means),
    give the noise of one step divided by T (by the square root of T for gaussian).
    """
    from ..report.overlaid_rules import Facts, draw_overlay, overlay
    from ..report.pictures import check_picture

    if plot is not None:
        check_picture(plot)
    _check(scale, size)
    guess = _guess(norms, population, radius)
    facts = Facts(noise, epsilon, delta, radius, dimension, guess)  # type: ignore[arg-type]
    with waiting("making rules", quiet=json):
        found = overlay(facts, scale=scale, size=size)
        if json:
            _emit(found, plot)
        else:
            _print(found)
        if plot is not None:
            draw_overlay(found, plot)
    if plot is not None and not json:
        say(f"Picture: {plot}")


def _check(scale: float | None, size: float | None) -> None:
    from ..errors import InvalidInput
    from ..validation import positive

    if scale is not None and size is not None:
        raise InvalidInput("give --scale (the noise) or --size (the expected sample size), not both")
    if scale is not None:
        positive(scale=scale)
    if size is not None:
        positive(size=size)


def _guess(text: str | None, population: float | None, radius: float) -> "NormHistogram":
    """The guessed norms."""
    from ..errors import InvalidInput
    from ..report.overlaid_rules import even
    from ..rules.norm_histogram import NormHistogram

    if text is None:
        return even(radius, 1000 if population is None else population)
    if population is not None:
        raise InvalidInput("--norms already gives the number of records; omit --population")
    try:
        pairs = [tuple(map(float, part.split(":"))) for part in text.split(",")]
        u, n = zip(*pairs, strict=True)
    except ValueError:
        raise InvalidInput(f"--norms must be pairs such as 0.5:900,1:100, got {text!r} instead") from None
    return NormHistogram(u, n)


def _emit(found: "Overlay", plot: Path | None) -> None:
    import numpy as np

    facts = found.facts
    norms = np.linspace(0.0, facts.radius, 101)
    emit(
        {
            "noise": facts.noise,
            "scale": found.scale,
            "epsilon": facts.epsilon,
            "delta": facts.delta,
            "radius": facts.radius,
            "population": facts.norms.population,
            "neighbors": "add-remove",
            "norms": norms.tolist(),
            "rules": [row.to_json(norms) for row in found.rows],
            "everybody": {"epsilon_upper": found.everybody.epsilon},
            "left_out": found.left_out or None,
            "because": list(dict.fromkeys(row.rule.reason for row in found.rows)),
        }
        | ({"plot": str(plot)} if plot else {})
    )


def _print(found: "Overlay") -> None:

    facts = found.facts
    rows = [*found.rows, found.everybody]
    target = f"epsilon {as_asked(facts.epsilon)}" + (f" at delta {as_asked(facts.delta)}" if facts.delta else "")
    title = f"{facts.noise} noise {upper(found.scale, 6)} on a sum of records of norm up to {facts.radius:g}"
    heads = ["<rule", "epsilon at most", "expected size", "sampling error", f"noise for {target}"]
    body = [
        [row.name, shown_up(row.epsilon, 4), number(row.expected_size), number(row.sampling_error), upper(needed)]
        for row in rows
        for needed in [row.noise_needed]
    ]
    grid(title, heads, body, best=0)
    at = [facts.radius * share for share in _SHOWN]
    heads = ["<by norm", *(f"q at {u:.3g}" for u in at), *(f"loss at {u:.3g}" for u in at)]
    body = [
        [
            row.name,
            *(number(float(q), 3) for q in row.rule.of_norms(at)),
            *(shown_up(float(loss), 3) for loss in row.rule.losses_of_norms(at)),
        ]
        for row in rows
    ]
    grid("Probability and loss of a record", heads, body, best=0)
    if found.left_out:
        say(f"Left out: {found.left_out}.")
    if facts.noise != "gaussian":
        say("Sampling is for speed: no rule makes a record's privacy loss smaller than reading all records does.")
