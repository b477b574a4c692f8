"""`privamp theorem`: statement and proof of the theorems that guarantees cite."""

from typing import Annotated

import typer

from .completion import theorems
from .console import emit, grid, say
from .options import Json

EXAMPLES = """\
Examples:
  privamp theorem
  privamp theorem poisson-1
  privamp theorem "Stratified, one record [add-remove → add-remove] (docs/designs/stratified.md, Thm 1)"
  privamp theorem cluster-8 --bibtex"""


def theorem(
    name: Annotated[
        str | None,
        typer.Argument(
            metavar="ID", help="An id, or a line of 'because'; without it, all are listed.", autocompletion=theorems
        ),
    ] = None,
    bibtex: Annotated[bool, typer.Option("--bibtex", help="Print only the BibTeX entry.")] = False,
    json: Json = False,
) -> None:
    """Print a theorem: statement, proof, the test that checks it, and how to cite it.

    The text ships with the package, so it matches the version that computed the number.
    """
    from dataclasses import asdict

    from ..proofs import cited, proof, proofs

    found = list(proofs().values()) if name is None else [proof(each) for each in cited(name) or (name,)]
    if json:
        emit({"theorems": [asdict(each) for each in found]})
    elif bibtex:
        typer.echo("\n\n".join(dict.fromkeys(each.bibtex for each in found)))
    elif name is None:
        grid("Theorems", ["<id", "<title", "<page"], ([each.id, each.title, f"docs/{each.page}"] for each in found))
    else:
        for each in found:
            say(f"{each.id}  (docs/{each.page}, checked by {each.test})", "bold")
            typer.echo(f"\n{each.plain}\n\n{each.bibtex}\n")
