"""`privamp audit bounds`: how close certified numbers are to the best attacks."""

from typing import TYPE_CHECKING, Annotated

import typer

from ..console import emit, grid, lower, upper, waiting
from ..options import Json

if TYPE_CHECKING:
    from ...report.bounds import Bound

EXAMPLES = """\
Examples:
  privamp audit bounds
  privamp audit bounds --rounds 100 --only poisson"""


def bounds(
    rounds: Annotated[int, typer.Option("--rounds", metavar="K", help="Number of fresh draws to compose.")] = 1,
    only: Annotated[str, typer.Option("--only", metavar="TEXT", help="Only designs whose name contains TEXT.")] = "",
    markdown: Annotated[bool, typer.Option("--markdown", help="Print the table for the documentation.")] = False,
    json: Json = False,
) -> None:
    """Compare every certified epsilon with the best known attack: all designs, relations and kinds of noise.

    A ratio of 1 means that the bound is optimal. Mechanisms are stated for add-remove; pure ones are compared at
    delta 0, the others at 1e-6.
    """
    from dataclasses import asdict

    from ...errors import InvalidInput
    from ...report.bounds import DESIGNS, NOISES, RELATIONS
    from ...report.bounds import bounds as all_bounds
    from ...validation import whole

    whole(1, 10**6, rounds=rounds)
    number = sum(only.lower() in name.lower() for name in DESIGNS) * len(NOISES) * len(RELATIONS)
    if not number:
        raise InvalidInput(f"no design has {only!r} in its name; omit --only to see all names")
    found = []
    with waiting("evaluating bounds", quiet=json) as advance:
        for row in all_bounds(rounds, only):
            found.append(row)
            advance(len(found), number)
    if json:
        emit({"bounds": [asdict(row) | {"ratio": row.ratio} for row in found]})
    elif markdown:
        typer.echo(_markdown(found))
    else:
        heads = ["<design", "<relation", "<noise", "upper", "lower", "ratio"]
        grid(f"epsilon of {rounds} fresh draw{'s' if rounds > 1 else ''}", heads, (_cells(row) for row in found))


def _cells(row: "Bound") -> list[str]:
    if row.upper is None:
        return [row.design, row.relation, row.noise, "none proved", "", ""]
    return [row.design, row.relation, row.noise, upper(row.upper), _attack(row), _ratio(row)]


def _attack(row: "Bound") -> str:
    return "none known" if row.lower is None else lower(row.lower)


def _ratio(row: "Bound") -> str:
    return "" if row.ratio is None else f"{row.ratio:.3f}"


def _markdown(rows: "list[Bound]") -> str:
    """One line per design and relation, one column per noise: upper bound and, in brackets, its ratio to the attack."""
    noises = list(dict.fromkeys(row.noise for row in rows))
    lines = [f"| design | relation | {' | '.join(noises)} |", "|---|---|" + "---|" * len(noises)]
    for design, relation in dict.fromkeys((row.design, row.relation) for row in rows):
        cells = [_cell(row) for row in rows if (row.design, row.relation) == (design, relation)]
        lines.append(f"| {design} | {relation} | {' | '.join(cells)} |")
    return "\n".join(lines)


def _cell(row: "Bound") -> str:
    if row.upper is None:
        return "—"
    return f"{upper(row.upper)} ({_ratio(row) or 'no attack'})"
