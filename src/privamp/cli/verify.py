"""`privamp verify`: recompute a certificate that somebody else made."""

import sys
from pathlib import Path
from typing import Annotated, Any

import typer

from .console import emit, facts, say, waiting
from .options import Json

EXAMPLES = """\
Examples:
  privamp amplify --design poisson:rate=0.01 --mechanism gaussian:sigma=1 --epsilon 1 --json > certificate.json

  privamp verify certificate.json"""

_LARGEST = 2**24  # bytes


def verify(
    certificate: Annotated[Path, typer.Argument(help="JSON with a certificate; '-' reads standard input.")],
    json: Json = False,
) -> None:
    """Recompute every number of a certificate from its claims, and report whether they agree.

    A certificate is what Guarantee.to_json() returns and what commands print with --json. Exit code 1 when a number, a
    theorem, an assumption or the digest does not agree.
    """
    from ..amplification import evaluated
    from ..core.certificate import claims_of, disagreements, read_certificate

    data = _read(certificate)
    inside = read_certificate(data)
    claims = claims_of(data)
    with waiting("recomputing", quiet=json):
        wrong = disagreements(data, evaluated(claims))
    if json:
        emit({"agrees": not wrong, "made_by": inside.get("privamp"), "claims": len(claims), "disagreements": wrong})
    else:
        facts([*_claimed(claims), ("made by", f"privamp {inside.get('privamp')}"), *_cited(inside)])
        for sentence in wrong:
            say(f"  does not agree: {sentence}", "red")
        say("Every number agrees." if not wrong else f"{len(wrong)} DISAGREEMENTS.")
    if wrong:
        raise typer.Exit(1)


def _read(path: Path) -> Any:
    from ..core.certificate import parsed
    from ..errors import InvalidInput

    try:
        content = sys.stdin.read(_LARGEST + 1) if str(path) == "-" else path.read_text(encoding="utf-8")
    except (OSError, ValueError):
        raise InvalidInput(f"{str(path)!r} must be a readable JSON file with a certificate") from None
    if len(content) > _LARGEST:
        raise InvalidInput(f"{str(path)!r} must hold at most {_LARGEST:,} characters: no certificate is as long")
    data = parsed(content)
    if not isinstance(data, dict):
        raise InvalidInput(f"{str(path)!r} must hold one JSON object, the certificate")
    return data


def _claimed(claims: tuple[Any, ...]) -> list[tuple[str, str]]:
    return [
        (f"{claim.times:,} draw{'s' * (claim.times > 1)}", f"{claim.mechanism} on {claim.design}, {claim.neighbors}")
        for claim in claims
    ]


def _cited(inside: Any) -> list[tuple[str, str]]:
    because, assumes = (map(str, inside.get(name) or ()) for name in ("because", "assumes"))
    return [*(("because", cite) for cite in because), *(("assumes", what) for what in assumes)]
