"""Public facts as JSON and back: mechanisms, designs, rules and relations are frozen dataclasses, so they are data.

Only dataclasses of privamp are read back, and those a program has registered. Numbers keep every digit.
"""

import math
from collections.abc import Callable
from dataclasses import fields, is_dataclass
from fractions import Fraction
from importlib import import_module
from typing import Any, TypeVar

import numpy as np

from ..errors import InvalidInput
from .identity import Named, function_named
from .words import add_word

_PACKAGE = __name__.partition(".")[0]
_REGISTERED: dict[str, type] = {}
GROUP = "privamp.designs"  # of entry points
T = TypeVar("T")


def register(kind: type[T]) -> type[T]:
    """Register your own design, schedule or mechanism, `kind`: a decorator above `@dataclass(frozen=True, …)`.

    Certificates can then name it, and if it has a `word`, spec strings can too. In an installed package, name the
    class under the entry point group `privamp.designs`, by its word; then the command line finds it as well.
    """
    _check_frozen(kind)
    _REGISTERED[_name(kind)] = kind
    word = getattr(kind, "word", None)
    if word is not None and kind.__module__.partition(".")[0] != _PACKAGE:
        add_word(word, kind)
    return kind


def load_installed(named: str) -> bool:
    """Register what an installed package offers under this word, or as this `module:class`; False: nothing."""
    from importlib.metadata import entry_points

    found = [one for one in entry_points(group=GROUP) if named in (one.name, one.value)]
    for one in found:
        try:
            register(one.load())
        except (ImportError, AttributeError) as error:
            raise InvalidInput(
                f"an installed package offers {named!r} as {one.value}, which cannot be loaded "
                f"({type(error).__name__}); repair it or uninstall it"
            ) from None
    return bool(found)


def written(value: Any) -> Any:
    """A value as JSON; raises InvalidInput if it is not data (a function, an array of records)."""
    if isinstance(value, np.generic):
        value = value.item()
    if value is None or isinstance(value, (bool, int, str)):
        return value
    if isinstance(value, float):
        return value if math.isfinite(value) else {"number": repr(value)}
    if isinstance(value, Fraction):
        return {"fraction": str(value)}
    if isinstance(value, (tuple, list)):
        return [written(part) for part in value]
    if isinstance(value, dict):
        return {"pairs": [[written(key), written(part)] for key, part in value.items()]}
    if isinstance(value, Named):
        return {"function": value.name, "version": value.version}
    if is_dataclass(value) and not isinstance(value, type):
        _check_frozen(type(value))
        return {"is": _name(type(value)), "with": {name: written(getattr(value, name)) for name in _given(type(value))}}
    raise InvalidInput(
        f"a {type(value).__name__} cannot be written as JSON; give functions a name and a version with "
        "Named(name, version, function)"
    )


def functions_in(data: Any) -> list[str]:
    """The functions that a reader of this data must have, with name and version."""
    if isinstance(data, dict):
        if "function" in data:
            return [f"function {data['function']!r}, version {data['version']!r}"]
        data = list(data.values())
    return [name for part in data for name in functions_in(part)] if isinstance(data, list) else []


def read_back(data: Any) -> Any:
    """The value that was written."""
    if isinstance(data, list):
        return tuple(read_back(part) for part in data)
    if not isinstance(data, dict):
        return data
    reader = _READERS.get(next(iter(data), ""))
    if reader is None:
        raise InvalidInput(f"this is not a value written by privamp: it has the keys {', '.join(map(str, data))}")
    return reader(data)


def _name(kind: type) -> str:
    module = kind.__module__
    inside = module.removeprefix(f"{_PACKAGE}.")
    return f"{inside}.{kind.__qualname__}" if inside != module else f"{module}:{kind.__qualname__}"


def _given(kind: type) -> list[str]:
    return [field.name for field in fields(kind) if field.init]


def _check_frozen(kind: type) -> None:
    if not is_dataclass(kind) or not kind.__dataclass_params__.frozen:  # type: ignore[attr-defined]
        raise InvalidInput(f"{kind.__name__} must be a frozen dataclass to be written as JSON")


def _class(name: str) -> type:
    if name in _REGISTERED:
        return _REGISTERED[name]
    if ":" in name and load_installed(name) and name in _REGISTERED:
        return _REGISTERED[name]
    if ":" in name:
        raise InvalidInput(f"recomputing needs {name}, which this program does not know; register it first")
    module, _, own = name.rpartition(".")
    try:
        kind = getattr(import_module(f"{_PACKAGE}.{module}"), own)
    except (ImportError, AttributeError, ValueError):
        raise InvalidInput(f"this version of privamp has no {name!r}") from None
    if not isinstance(kind, type):
        raise InvalidInput(f"{name!r} is not a class")
    _check_frozen(kind)
    return kind


def _dataclass(data: dict[str, Any]) -> Any:
    kind = _class(str(data["is"]))
    given = {name: read_back(part) for name, part in data.get("with", {}).items()}
    try:
        return kind(**given)
    except TypeError:
        raise InvalidInput(f"{data['is']} takes {', '.join(_given(kind))}, got {', '.join(given)} instead") from None


_READERS: dict[str, Callable[[dict[str, Any]], Any]] = {
    "is": _dataclass,
    "function": lambda data: function_named(str(data["function"]), str(data["version"])),
    "number": lambda data: float(data["number"]),
    "fraction": lambda data: Fraction(data["fraction"]),
    "pairs": lambda data: {read_back(key): read_back(part) for key, part in data["pairs"]},
}
