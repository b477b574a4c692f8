"""Everything that can be read off an object, as text by path: two runs of a job must leave the same traces.

Attributes with a leading underscore count too: they travel when the object is pickled. What is secret by design (keys,
streams, samples) is named and not opened, because every other check protects it.
"""

from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np

from ..chance.keys import Key
from ..chance.stream import Stream
from ..core.guarantee import Guarantee
from ..core.ledger import Finished, Ledger
from ..core.sample import Drawn, Sample

_SECRET = (Key, Stream, Sample, Drawn, Ledger, Finished)
_DEEPEST = 12


def traces(value: Any) -> dict[str, str]:
    """Path → what is there."""
    return dict(_walk(value, "result", (), 0))


def difference(one: Mapping[str, str], other: Mapping[str, str]) -> str | None:
    """The first path where two traces differ, or None. Never what is there: it may be a record."""
    paths = [path for path in {**one, **other} if one.get(path) != other.get(path)]
    return paths[0] if paths else None


def _walk(value: Any, path: str, above: tuple[int, ...], depth: int) -> Iterator[tuple[str, str]]:
    kind = type(value).__name__
    if isinstance(value, _SECRET) or id(value) in above or depth > _DEEPEST:
        yield path, kind
        return
    if isinstance(value, Guarantee):
        yield path, f"{value!r} {value.assumes}"
        return
    inside = _parts(value)
    if inside is None:
        yield path, _text(value)
        return
    yield path, kind
    for name, part in inside:
        yield from _walk(part, f"{path}{name}", (*above, id(value)), depth + 1)


def _parts(value: Any) -> list[tuple[str, Any]] | None:
    """The named parts of a container or an object, None for what has no parts."""
    if value is None or isinstance(value, (str, bytes, bool, int, float, complex, np.generic, np.ndarray, type)):
        return None
    if isinstance(value, Mapping):
        return [(f"[{key!r}]", part) for key, part in value.items()]
    if isinstance(value, (list, tuple)):
        return [(f"[{place}]", part) for place, part in enumerate(value)]
    if isinstance(value, (set, frozenset)):
        return [(f"[{place}]", part) for place, part in enumerate(sorted(value, key=repr))]
    if callable(value) and not hasattr(value, "__dataclass_fields__") and not getattr(value, "__dict__", None):
        return None
    for name in ("to_pydict", "to_dict"):
        if hasattr(value, name) and not hasattr(value, "__dataclass_fields__"):
            return [(f".{name}()", getattr(value, name)())]
    return _attributes(value)


def _attributes(value: Any) -> list[tuple[str, Any]] | None:
    names = list(getattr(value, "__dict__", {}))
    for kind in type(value).__mro__:
        slots = kind.__dict__.get("__slots__", ())
        names += [slots] if isinstance(slots, str) else list(slots)
    present = [name for name in dict.fromkeys(names) if hasattr(value, name) and not name.startswith("__")]
    return [(f".{name}", getattr(value, name)) for name in present] if present else None


def _text(value: Any) -> str:
    if hasattr(value, "detach"):  # a tensor
        value = value.detach().cpu().double().numpy()
    if isinstance(value, (np.ndarray, np.generic)):
        array = np.asarray(value)
        content = repr(array.tolist()) if array.dtype == object else array.tobytes().hex()
        return f"{array.dtype} {array.shape} {content}"
    if isinstance(value, float):
        return value.hex()
    plain: Any = object.__repr__
    if callable(value) or type(value).__repr__ is plain:
        return getattr(value, "__qualname__", type(value).__name__)
    return repr(value)
