"""`privamp budget head|verify|backup`: what an auditor needs, without write access to the store."""

import json as json_text
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from ..console import emit, facts, one_line
from ..options import Json

if TYPE_CHECKING:
    from ...accounting.budget_chain import Totals
    from ...accounting.budget_store import Head
    from ...chance.keys import Key

HEAD_EXAMPLES = """\
Examples:
  privamp example study --out study.db

  privamp sample --new-key auditor.key

  privamp budget head study.db

  privamp budget head study.db --key auditor.key > head.json"""
VERIFY_EXAMPLES = """\
Examples:
  privamp example study --out study.db

  privamp budget head study.db > head.json

  privamp budget log study.db --jsonl > trail.jsonl

  privamp budget verify study.db

  privamp budget verify study.db --head head.json --json

  privamp budget verify trail.jsonl"""
BACKUP_EXAMPLES = """\
Examples:
  privamp example study --out study.db

  privamp budget backup study.db copy.db"""

File = Annotated[Path, typer.Argument(metavar="FILE", help="The budget store.")]
SigningKey = Annotated[
    Path | None, typer.Option("--key", metavar="KEY", help="The signing key: a key file, env:NAME or keyring:NAME.")
]


def head(file: File, key: SigningKey = None) -> None:
    """Print the number and hash of the newest entry, as one line of JSON to keep elsewhere.

    The hash covers every entry up to it. Keep it where the store's users cannot change it (a notebook, another machine,
    a commit): 'budget verify --head' then detects if an older copy of the store was restored.
    """
    from ...accounting.budget_store import Store
    from ...accounting.budget_trail import signed_head

    print(json_text.dumps(signed_head(Store(file, read_only=True).head(), signing_key(key))))


def verify(
    file: Annotated[Path, typer.Argument(metavar="FILE", help="A budget store, or a trail made by 'log --jsonl'.")],
    head: Annotated[
        Path | None, typer.Option("--head", metavar="FILE", help="A saved head: the store must still contain it.")
    ] = None,
    public_key: Annotated[
        str | None,
        typer.Option("--public-key", metavar="HEX", help="Required signer of the head or the trail."),
    ] = None,
    json: Json = False,
) -> None:
    """Check a whole store, or its exported trail: recompute every hash, total and state."""
    from ...chance.signatures import check_public_key
    from ...errors import InvalidInput

    public = None if public_key is None else check_public_key(public_key)
    if _is_trail(file):
        if head is not None:
            raise InvalidInput("--head is only for a store, because a trail has its own head; omit it")
        say_verified(_verified_trail(file, public), json)
        return
    if public is not None and head is None:
        raise InvalidInput("a store itself is not signed, so --public-key needs --head, or a trail as FILE")
    say_verified(_verified_store(file, head, public), json)


def backup(
    file: File,
    target: Annotated[Path, typer.Argument(metavar="COPY", help="The new file.")],
    json: Json = False,
) -> None:
    """Write a complete copy of a store, even while programs use it, and check the copy.

    A copy does not contain later spends. Restoring it loses them, which 'verify --head' detects.
    """
    from ...accounting.budget_store import Store

    say_verified(verified_facts(Store(file, read_only=True).backup(target)) | {"copy": str(target)}, json)


def signing_key(file: Path | None) -> "Key | None":
    """The key at this location."""
    from ...tables.key_providers import provider

    return None if file is None else provider(file).key()


def _is_trail(file: Path) -> bool:
    from ...errors import InvalidInput

    try:
        with file.open("rb") as opened:
            return opened.read(1) == b"{"
    except (OSError, ValueError) as error:
        why = getattr(error, "strerror", None) or "invalid file name"
        raise InvalidInput(f"{str(file)!r} cannot be read ({why}); give a budget store or a trail") from None


def _verified_trail(file: Path, public: str | None) -> dict[str, Any]:
    from ...accounting.budget_trail import check_trail
    from ...errors import InvalidInput

    try:
        with file.open(encoding="utf-8", newline="\n") as lines:
            found = check_trail(lines, public)
    except UnicodeDecodeError:
        raise InvalidInput("the trail is damaged or was changed (it is not text); ask for a new one") from None
    return verified_facts(found) | {"signed_by": found.signed_by}


def _verified_store(file: Path, head: Path | None, public: str | None) -> dict[str, Any]:
    from ...accounting.budget_store import Store
    from ...accounting.budget_trail import check_anchor, read_head
    from ...errors import InvalidInput

    store = Store(file, read_only=True)
    checked = store.verify()
    told = verified_facts(checked) | {"seconds": checked.seconds}
    if head is None:
        return told
    try:
        text = head.read_text(encoding="utf-8")
    except (OSError, ValueError):
        raise InvalidInput(f"the head {str(head)!r} cannot be read; give the output of 'privamp budget head'") from None
    kept, by = read_head(text, public)
    check_anchor(store, kept)
    return told | {"anchored_at": kept.number, "signed_by": by}


def verified_facts(checked: Any) -> dict[str, Any]:
    """The result of verifying a chain, for people and for JSON."""
    found: Head = checked.head
    totals: dict[str, Totals] = checked.totals
    return {
        "store": found.store,
        "number": found.number,
        "hash": found.hash,
        "populations": sorted(totals),
        "clock_went_back": checked.clock_went_back,
    }


def say_verified(told: dict[str, Any], json: bool) -> None:
    """Print it."""
    if json:
        emit({"verified": True} | told)
        return
    rows = [
        ("verified", f"{told['number']} entries, each bound to all before it"),
        ("populations", one_line(", ".join(told["populations"]))),
        ("head", told["hash"]),
    ]
    if "anchored_at" in told:
        rows.append(("anchor", f"entry {told['anchored_at']}, the head, is in it"))
    if "signed_by" in told:
        rows.append(("signed by", told["signed_by"] or "nobody: anyone could have written it"))
    if told["clock_went_back"]:
        rows.append(("clock", f"went back {told['clock_went_back']} times; the order is that of the entries"))
    if "seconds" in told:
        rows.append(("took", f"{told['seconds']:.2f} s"))
    if "copy" in told:
        rows.append(("copy", told["copy"]))
    facts(rows)
