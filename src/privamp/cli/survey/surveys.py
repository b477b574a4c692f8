"""The design of a survey, stored beside its key, so that `estimate` can draw the same people again from the same frame.

KEY.survey.json holds a list: label, columns, the design as it was drawn (whole sizes, not the options that led to
them), and a digest of the frame under the key. It is as secret as the key, and only its owner may read it.
"""

import json
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from ...chance.keys import Key
    from ...core.design import Design
    from .population import Records

_SCHEMA = 1


@dataclass(frozen=True, slots=True)
class Survey:
    """One draw, described by public facts; `frame` is a keyed digest."""

    label: str
    id: str | None
    strata: str | None
    cluster: str | None
    drop_missing: bool
    spec: str | None  # one of these three gives the design
    size: int | None
    sizes: tuple[tuple[str, int], ...] | None
    frame: str

    def design(self, records: "Records") -> "Design":
        """The design as it was drawn."""
        import numpy as np

        from ... import spec
        from ...designs.simple_random import WithoutReplacement
        from ...designs.stratified import Stratified

        if self.spec is not None:
            return spec.design(self.spec)
        if self.sizes is None:
            return WithoutReplacement(int(self.size or 0), records.size)
        names, counts = np.unique(records.strata(), return_counts=True)
        found = dict(zip(names.tolist(), counts.tolist(), strict=True))
        return Stratified((name, WithoutReplacement(n, found[name])) for name, n in self.sizes)

    def words(self) -> str:
        """The design for people."""
        if self.sizes is not None:
            return "strata of " + ", ".join(f"{name}: {n}" for name, n in self.sizes)
        return self.spec or f"simple random, {self.size}"


def survey_of(
    records: "Records", chosen: "Design", text: str | None, label: str, key: "Key", *, drop_missing: bool,
    cluster: str | None,
) -> Survey:  # fmt: skip
    """The record that `draw` stores."""
    sizes = tuple((str(name), int(getattr(part, "size", 0))) for name, part in chosen.parts) or None
    return Survey(
        label, records.roles.get("id"), records.roles.get("strata"), cluster, drop_missing, text,
        None if text is not None or sizes else int(getattr(chosen, "size", 0)), None if text is not None else sizes,
        frame_digest(records, key),
    )  # fmt: skip


def frame_digest(records: "Records", key: "Key") -> str:
    """A keyed digest of ids, strata and clusters; it reveals nothing without the key."""
    import hmac

    ids = records.ids().tolist() if "id" in records.roles else range(records.size)
    columns = [records.text(role).tolist() for role in ("strata", "cluster") if role in records.roles]
    rows = sorted("\x1f".join(map(str, row)) for row in zip(ids, *columns, strict=True))
    secret = key.subkey("survey frame").secret_bytes()
    return hmac.digest(secret, "\x1e".join(rows).encode("utf-8", "surrogatepass"), "sha256").hex()


def path_of(key_file: Path) -> Path:
    """Where the surveys of a key are stored."""
    return key_file.with_name(f"{key_file.name}.survey.json")


def remember(key_file: Path, survey: Survey) -> None:
    """Store a survey beside its key, once."""
    from ... import atomic_files
    from ...errors import InvalidInput

    path = path_of(key_file)
    known = _read(path) if path.exists() else []
    if survey in known:
        return
    data = {"schema": _SCHEMA, "surveys": [asdict(one) for one in [*known, survey]]}
    try:
        atomic_files.write_atomically(path, json.dumps(data, indent=1).encode(), private=True)
    except OSError as error:
        raise InvalidInput(f"cannot write {str(path)!r} ({error.strerror}); the sample itself was written") from None


def recalled(key_file: Path, label: str | None) -> Survey:
    """The survey that this key drew; `label` where it drew several."""
    from ...errors import InvalidInput

    path = path_of(key_file)
    if not path.is_file():
        raise InvalidInput(
            f"there is no {str(path)!r}, which survey draw writes beside its key; give the key file of the draw"
        )
    found = [one for one in _read(path) if label in (None, one.label)]
    if len(found) != 1:
        raise InvalidInput(
            f"the key {str(key_file)!r} has drawn {len(found)} surveys with this label; choose one with --label, and "
            "draw every survey with its own key or label"
        )
    return found[0]


def _read(path: Path) -> list[Survey]:
    from ...errors import InvalidInput

    try:
        data: Any = json.loads(path.read_text("utf-8"))
        return [_survey(one) for one in data["surveys"]]
    except (OSError, ValueError, KeyError, TypeError):
        raise InvalidInput(f"{str(path)!r} is not a file that survey draw wrote; restore it") from None


def _survey(facts: dict[str, Any]) -> Survey:
    sizes = facts.pop("sizes")
    return Survey(sizes=None if sizes is None else tuple((str(name), int(n)) for name, n in sizes), **facts)
