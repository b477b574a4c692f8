"""A certificate: a guarantee as JSON that somebody else can recompute, and the check that does it.

It holds the claims (mechanism, design, relation, times), every number that was asked for, the theorems and the
assumptions, the version of privamp that made it, and a digest of all that. The digest catches a changed character; the
recomputation catches a changed number, design or theorem whose digest was recomputed. Neither proves who wrote it.
"""

import hashlib
import json
import math
from collections.abc import Iterator, Mapping
from importlib import import_module
from typing import Any

from ..errors import InvalidInput
from .claim import Claim
from .guarantee import NOT_PRIVATE, SCHEMA, Guarantee
from .written import functions_in

FORMAT = 1
_AGREE = 1e-9  # processors and libraries differ in last digits, which root finding may enlarge
_ASKED = (("epsilon", "delta"), ("delta", "epsilon"))  # given, answered
_NAMES = {f"{name}{end}" for name in ("epsilon", "delta") for end in ("", "_upper", "_lower")}


def certificate(guarantee: Guarantee, numbers: Mapping[str, Any]) -> dict[str, Any]:
    """The certificate of a guarantee with these numbers; it has no claims if a part of the guarantee cannot be
    serialised."""
    try:
        claims: list[Any] | None = [claim.to_json() for claim in guarantee.claims] or None
    except InvalidInput:
        claims = None
    needs = sorted(set(functions_in(claims)))
    content = {
        "format": FORMAT,
        "privamp": import_module(__name__.partition(".")[0]).__version__,
        "claims": claims,
        "numbers": dict(numbers),
        "because": list(guarantee.because),
        "assumes": list(guarantee.assumes),
        "draws": sorted(draw.hex() for draw in guarantee.draws),
    }
    if needs:
        content["needs"] = needs  # recomputing needs these functions, which only their author has
    return content | {"digest": _digest(content)}


def parsed(text: str) -> Any:
    """The JSON of a certificate; duplicate names are rejected, because another parser may read the other one."""
    try:
        return json.loads(text, object_pairs_hook=_once)
    except InvalidInput:
        raise
    except (ValueError, RecursionError):
        raise InvalidInput(
            "a certificate must be JSON, and this text is not; give the output of --json or Guarantee.to_json()"
        ) from None


def _once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) < len(pairs):
        raise InvalidInput("a name appears twice in this certificate, so it was not made by privamp")
    return found


def read_certificate(data: Mapping[str, Any]) -> Mapping[str, Any]:
    """The certificate inside an answer of privamp, or the answer itself; unknown formats are rejected."""
    inside = data.get("certificate", data)
    if not isinstance(inside, Mapping) or "format" not in inside or "claims" not in inside:
        raise InvalidInput(
            "this is not a certificate: it has no format and no claims; make one with Guarantee.to_json()"
        )
    if not isinstance(inside.get("numbers"), Mapping):
        raise InvalidInput("this certificate is damaged: its numbers are not a JSON object")
    if inside["format"] != FORMAT:
        raise InvalidInput(
            f"this certificate has format {inside['format']!r}, and this privamp reads format {FORMAT}; "
            f"use privamp {inside.get('privamp', 'of its time')}"
        )
    if inside["claims"] is None:
        raise InvalidInput(
            "this certificate cannot be recomputed: a part of its guarantee is a function without a name and a "
            "version, or was composed of parts without claims"
        )
    return inside


def claims_of(data: Mapping[str, Any]) -> tuple[Claim, ...]:
    """The claims of a certificate."""
    try:
        return tuple(Claim.from_json(claim) for claim in read_certificate(data)["claims"])
    except (KeyError, TypeError, AttributeError):
        raise InvalidInput("the claims of this certificate are damaged: a part of them is missing") from None


def draws_of(data: Mapping[str, Any]) -> frozenset[bytes]:
    """Which samples the certificate is about: releases from one sample do not compose like fresh draws."""
    try:
        return frozenset(bytes.fromhex(draw) for draw in read_certificate(data).get("draws", ()))
    except (TypeError, ValueError):
        raise InvalidInput("the draws of this certificate are damaged: they must be hexadecimal digits") from None


def disagreements(data: Mapping[str, Any], again: Guarantee) -> list[str]:
    """One sentence for everything in the certificate that its recomputation does not confirm."""
    inside = read_certificate(data)
    content = {name: part for name, part in inside.items() if name != "digest"}
    found = [] if _digest(content) == inside.get("digest") else ["the digest does not match the content"]
    found += list(_numbers(inside["numbers"], again)) if inside["numbers"] else ["no number is stated"]
    found += [f"{name} is stated, but is not part of a certificate" for name in inside["numbers"] if name not in _NAMES]
    if data is not inside:
        found += [*_numbers(data, again), *_around(data, inside, again)]
    named = inside.get("because", ())  # a hint after the theorem at another way to compose is not a theorem
    unknown = [cite for cite in again.because if cite not in named and cite.partition("; compose(")[0] not in named]
    found += [f"the certificate does not name the theorem that gives its numbers: {cite}" for cite in unknown]
    missing = [what for what in again.assumes if what not in inside.get("assumes", ())]
    return found + [f"the certificate does not name an assumption: {what}" for what in missing]


def _around(data: Mapping[str, Any], inside: Mapping[str, Any], again: Guarantee) -> Iterator[str]:
    """The fields around a certificate must agree with its claims."""
    neighbors = again.neighbors
    persons = neighbors.records if neighbors.unit == "person" else None
    true: dict[str, Any] = {
        "schema": SCHEMA,
        "neighbors": neighbors.kind,
        "steps": again.steps,
        "records_per_person": persons,
        "degrades": again.degrades,
    }
    true["scope"] = None if neighbors.scope == "anywhere" else neighbors.scope
    true["private"] = NOT_PRIVATE not in (*inside.get("assumes", ()), *again.assumes)
    for name, value in true.items():
        stated = data.get(name, value if name in ("schema", "neighbors", "steps", "private") else None) or None
        if stated != (value or None):
            yield f"{name} is stated as {stated!r}, but is {value!r}"
    for name in ("because", "assumes"):
        if name in data and [what for what in inside.get(name, ()) if what not in data[name]]:
            yield f"{name!r} lists less than the certificate does"


def _numbers(stated: Any, again: Guarantee) -> Iterator[str]:
    """Upper bounds must not be below, lower bounds not above the recomputed ones; each needs the epsilon or delta it is
    for."""
    numbers = {name: value for name, value in stated.items() if str(name).lower().startswith(("epsilon", "delta"))}
    wrong = list(_out_of_form(numbers))
    if wrong:
        yield from wrong
        return
    for given, answer in _ASKED:
        if f"{answer}_upper" not in numbers or (answer == "delta" and "epsilon" not in numbers):
            continue
        at = numbers.get(given) or 0.0
        upper, lower = _answers(again, answer, float(at))
        yield from _compared(f"{answer} at {given} {at:g}" if at else answer, numbers[f"{answer}_upper"], upper)
        if numbers.get(f"{answer}_lower") is not None:
            what = f"lower end of {answer} at {given} {at:g}" if at else f"lower end of {answer}"
            yield from _compared(what, numbers[f"{answer}_lower"], lower)


def _out_of_form(numbers: Mapping[str, Any]) -> Iterator[str]:
    """Numbers that are not recomputed: a reader would take them as confirmed."""
    for name, value in numbers.items():
        if name not in _NAMES:
            yield f"{name} is stated, but is not part of a certificate"
        elif not _is_number(value) and not (value is None and name.endswith(("_upper", "_lower"))):
            yield f"{name} is not a number"
    for given, answer in _ASKED:
        if given in numbers and f"{answer}_upper" not in numbers:
            yield f"{given} is stated without {answer}_upper, which is what is certified there"
    is_pure = numbers.get("delta_upper") == 0.0 and "epsilon_upper" in numbers and not numbers.get("delta")
    if "delta_upper" in numbers and "epsilon" not in numbers and not is_pure:
        yield "delta_upper is stated without epsilon"


def _is_number(value: Any) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool)


def _answers(again: Guarantee, answer: str, at: float) -> tuple[float, float | None]:
    lower = again.lower
    if answer == "delta":
        return float(again.delta(at)), float(lower.delta(at)) if lower else None
    return again.epsilon(at), lower.epsilon(at) if lower else None


def _compared(what: str, stated: Any, now: float | None) -> Iterator[str]:
    claimed = math.inf if stated is None else stated
    if now is None or not math.isclose(float(claimed), now, rel_tol=_AGREE):
        yield f"{what} is stated as {claimed!r}, but recomputed as {now!r}"


def _digest(content: Mapping[str, Any]) -> str:
    text = json.dumps(content, sort_keys=True, ensure_ascii=True, separators=(",", ":"))
    return hashlib.sha256(text.encode()).hexdigest()
