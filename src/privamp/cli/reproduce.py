"""`privamp reproduce`: figures and tables of the papers, recomputed and compared with the printed numbers."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from .completion import reproductions
from .console import emit, grid, say, waiting
from .options import Json

if TYPE_CHECKING:
    from ..papers.registry import Entry

EXAMPLES = """\
Examples:
  privamp reproduce

  privamp reproduce must-table-s1 --out out

  privamp reproduce is-streaming"""


def reproduce(
    name: Annotated[
        str,
        typer.Argument(
            metavar="[list|all|NAME]",
            help="'list' (the default), 'all', or the name of an entry.",
            autocompletion=reproductions,
        ),
    ] = "list",
    out: Annotated[Path, typer.Option("--out", metavar="DIR", help="Folder for output files.")] = Path("out"),
    full: Annotated[
        bool,
        typer.Option("--full/--quick", help="Run the paper's full setting; --quick, the default, is smaller."),
    ] = False,
    report: Annotated[
        Path | None,
        typer.Option("--report", metavar="DIR", help="With 'all': the folder for the page with every verdict."),
    ] = None,
    json: Json = False,
) -> None:
    """Recompute a figure or table of a paper, with the printed numbers next to ours.

    'all' runs every entry, which takes minutes, and writes one page with all verdicts.

    Exit code 1 means that a number differs from what was expected.
    """
    from ..errors import InvalidInput
    from ..papers.registry import entries, entry

    if report and name != "all":
        raise InvalidInput("--report is only for 'all'; a single entry writes its page into --out")
    if name == "list":
        _listed(entries(), json)
    elif name == "all":
        _all(entries(), report or out, full, json)
    else:
        _run(entry(name), out, full, json)


def _all(entries: "dict[str, Entry]", folder: Path, full: bool, json: bool) -> None:
    from ..papers.all_of_them import as_text, in_a_sentence, run_all, totals, write_report

    with _into(folder), waiting("every entry", quiet=json) as advance:
        results = run_all(entries.values(), folder, full, advance)
        files = write_report(results, folder)
    ok = all(result.ok for result in results)
    if json:
        by_entry = {r.entry.name: {"ok": r.ok, "seconds": r.seconds, "kinds": dict(r.kinds)} for r in results}
        said = {"text": in_a_sentence(results), "counts": totals(results), "entries": by_entry}
        emit({"ok": ok} | said | {"files": [str(file) for file in files]})
    else:
        say(as_text(results))
        for file in files:
            say(f"wrote {file}")
    if not ok:
        raise typer.Exit(1)


@contextmanager
def _into(folder: Path) -> Iterator[None]:
    """A folder that cannot be written to is one sentence, said before anything is computed."""
    from ..atomic_files import check_draft
    from ..errors import InvalidInput

    try:
        folder.mkdir(parents=True, exist_ok=True)
        check_draft(folder / "draft")  # a folder that exists may be read-only: told before minutes of work, not after
        yield
    except OSError as error:
        why = error.strerror or "no reason given"
        raise InvalidInput(
            f"cannot write into {str(folder)!r} ({why}); choose another folder with --out or --report"
        ) from None


def _listed(entries: "dict[str, Entry]", json: bool) -> None:
    if json:
        fields = ("name", "paper", "title", "summary")
        emit({"entries": [{field: getattr(entry, field) for field in fields} for entry in entries.values()]})
        return
    rows = ([entry.name, entry.paper, f"{entry.title}: {entry.summary}"] for entry in entries.values())
    grid("Reproductions", ["<name", "<paper", "<what"], rows)
    say("Run one with: privamp reproduce NAME, all with: privamp reproduce all --report DIR")


def _run(entry: "Entry", out: Path, full: bool, json: bool) -> None:
    with _into(out), waiting(entry.title, quiet=json):
        outcome = entry.reproduce(out, full)
    if json:
        emit({"name": entry.name, "ok": outcome.ok, "text": outcome.text, "files": [str(f) for f in outcome.files]})
    else:
        say(outcome.text)
        for file in outcome.files:
            say(f"wrote {file}")
    if not outcome.ok:
        raise typer.Exit(1)
