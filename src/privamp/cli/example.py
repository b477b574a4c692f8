"""`privamp example`: small synthetic files for all examples of the command line."""

from pathlib import Path
from typing import Annotated

import typer

from .console import emit, grid
from .options import Json

EXAMPLES = """\
Examples:
  privamp example

  privamp example schools > schools.csv

  privamp example pictures --out pictures.npz"""


def example(
    name: Annotated[
        str | None, typer.Argument(metavar="NAME", help="Name of the example; without it, all are listed.")
    ] = None,
    out: Annotated[
        Path | None, typer.Option("--out", metavar="FILE", help="Write it to this new file instead of printing it.")
    ] = None,
    json: Json = False,
) -> None:
    """Print or write example data: synthetic, the same on every machine, free to use (CC0)."""
    from ..datasets import find, names
    from ..errors import InvalidInput

    if name is None:
        if out is not None:
            raise InvalidInput(f"--out {out.name} needs the NAME of an example: {', '.join(names())}")
        found = [find(each) for each in names()]
        if json:
            emit({"examples": [{"name": each.name, "about": each.about, "ending": each.ending} for each in found]})
        else:
            grid("Example data", ["<name", "<what it is", "<file"], ([e.name, e.about, e.ending] for e in found))
        return
    chosen = find(name)
    if out is None and not json:
        typer.echo(chosen.text(), nl=False)
        return
    if out is None:
        raise InvalidInput(f"--json needs --out FILE{chosen.ending}: the example itself is printed otherwise")
    chosen.write(out)
    if json:
        emit({"name": name, "written": str(out)})
