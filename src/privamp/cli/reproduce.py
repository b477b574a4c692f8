"""`privamp reproduce`: figures and tables of the papers, made again and held against what is printed."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from .console import emit, grid, say, waiting
from .options import Json

if TYPE_CHECKING:
    from ..papers.registry import Entry

EXAMPLES = """\
Examples:
  privamp reproduce list

  privamp reproduce must-table-s1 --out out

  privamp reproduce must-table-7"""


def reproduce(
    name: Annotated[str, typer.Argument(metavar="list|NAME", help="'list', or the name of an entry.")],
    out: Annotated[Path, typer.Option("--out", metavar="DIR", help="Folder for the files it writes.")] = Path("out"),
    full: Annotated[
        bool, typer.Option("--full", help="The paper's whole setting where the default is a quick version (minutes).")
    ] = False,
    json: Json = False,
) -> None:
    """Make a paper's figure or table again, with the printed numbers beside ours.

    Exit code 1 says that a number came out otherwise than expected.
    """
    from ..papers.registry import entries, entry

    if name == "list":
        _listed(entries(), json)
    else:
        _run(entry(name), out, full, json)


def _listed(entries: "dict[str, Entry]", json: bool) -> None:
    if json:
        fields = ("name", "paper", "title", "summary")
        emit({"entries": [{field: getattr(entry, field) for field in fields} for entry in entries.values()]})
        return
    rows = ([entry.name, entry.paper, f"{entry.title}: {entry.summary}"] for entry in entries.values())
    grid("Reproductions", ["<name", "<paper", "<what"], rows)
    say("Run one with: privamp reproduce NAME")


def _run(entry: "Entry", out: Path, full: bool, json: bool) -> None:
    from ..errors import InvalidInput

    try:
        out.mkdir(parents=True, exist_ok=True)
        with waiting(entry.title, quiet=json):
            outcome = (entry.full if full and entry.full else entry.run)(out)
    except OSError as error:
        why = error.strerror or "no reason given"
        raise InvalidInput(f"cannot write into {str(out)!r} ({why}); choose another folder with --out") from None
    if json:
        emit({"name": entry.name, "ok": outcome.ok, "text": outcome.text, "files": [str(f) for f in outcome.files]})
    else:
        say(outcome.text)
        for file in outcome.files:
            say(f"wrote {file}")
    if not outcome.ok:
        raise typer.Exit(1)
