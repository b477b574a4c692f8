"""`privamp budget migrate|rotate-key`: move to a new store format or to a new key."""

from pathlib import Path
from typing import Annotated, Any

import typer

from ..console import emit, grid, one_line, say
from ..options import Json

MIGRATE_EXAMPLES = """\
Examples:
  privamp example old-study --out old.db

  privamp budget migrate old.db new.db"""
ROTATE_EXAMPLES = """\
Examples:
  privamp example study --out study.db

  privamp sample --new-key auditor.key

  privamp budget rotate-key study.db --key auditor.key

  privamp budget rotate-key study.db --key auditor.key --new-key next.key --json"""
CHANGES = (
    "these samples cannot be drawn again with another key, so the rest of their plans and limits is lost; a new key "
    "draws other records and needs its own charge, and what was spent stays spent"
)


def migrate(
    old: Annotated[Path, typer.Argument(metavar="OLD", help="A budget store of version 1; it is only read.")],
    new: Annotated[Path, typer.Argument(metavar="NEW", help="The new file.")],
    json: Json = False,
) -> None:
    """Copy a version 1 budget store into a new one of the current version, and check it.

    Everything that was spent stays spent. An open reservation may have drawn noise, so it counts as spent. The old file
    is not changed; make sure that no program still spends from it.
    """
    from ...accounting.budget_migration import migrate as migrated
    from .audit import say_verified, verified_facts

    say_verified(verified_facts(migrated(old, new)) | {"copy": str(new)}, json)


def rotate_key(
    file: Annotated[Path, typer.Argument(metavar="FILE", help="The budget store.")],
    key: Annotated[str, typer.Option("--key", metavar="KEY", help="The old key: a file, env:NAME or keyring:NAME.")],
    new_key: Annotated[
        str | None,
        typer.Option("--new-key", metavar="KEY", help="Create a fresh key there: a new file, or keyring:NAME."),
    ] = None,
    sample: Annotated[
        list[str] | None,
        typer.Option(
            "--sample", metavar="FILE", help="Also check whether this sample file was drawn with the old key."
        ),
    ] = None,
    json: Json = False,
) -> None:
    """List the samples that change when a key is replaced, and create the new key.

    Without --new-key it only lists them. The old key is not changed: keep it for as long as its samples are needed.
    """
    from ...accounting.budget import Budget
    from ...accounting.budget_store import Store
    from ...tables.key_providers import provider

    old = provider(key).key_id
    store = Store(file, read_only=True)
    found = [
        _sample(label, entry)
        for label in store.populations()
        for entry in Budget(store, label).log()
        if entry.key == old and entry.draw is not None
    ]
    files = [{"file": path, "changes": _drawn_by(path) == old} for path in sample or []]
    fresh = None if new_key is None else _made(new_key)
    told = {"key": old, "new_key": fresh, "samples": found, "files": files, "changes": CHANGES}
    if json:
        emit(told)
        return
    rows = [
        [str(s["entry"]), one_line(s["population"]), one_line(s["what"]), s["state"], str(s["releases"])] for s in found
    ]
    if rows:
        grid(f"samples of the key {old}", ["entry", "<population", "<what", "<state", "releases"], rows)
        say(f"{len(rows)} samples change: {CHANGES}.")
    else:
        say(f"no sample in this store was drawn with the key {old}")
    for each in files:
        say(f"{one_line(str(each['file']))}: {'drawn with it' if each['changes'] else 'drawn with another key'}")
    if fresh is not None:
        say(f"new key: {fresh} at {one_line(str(new_key))}")


def _sample(population: str, entry: Any) -> dict[str, Any]:
    what = "; ".join(filter(None, (entry.job, entry.note)))
    return {"population": population, "entry": entry.number, "what": what, "state": entry.state} | {
        "releases": entry.releases,
        "draw": entry.draw,
    }


def _drawn_by(path: str) -> str:
    from ...tables import sources
    from ...tables.secret_files import described_in

    return str(described_in(sources.files(path).pieces, path)["key_fingerprint"])


def _made(place: str) -> str:
    from ...errors import InvalidInput
    from ...tables.key_providers import provider

    make = getattr(provider(place), "make", None)
    if make is None:
        raise InvalidInput(f"a key cannot be created at {place!r}; give a new file, or keyring:NAME")
    return str(make().fingerprint.hex())
