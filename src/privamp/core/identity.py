"""The canonical identity of a design: one text for equal designs on every machine, another one for every other design.

The subkey of a draw is derived from it, so equal identities draw the same sample and share its ledger. It holds the
name of the class and its fields, nested designs, rules and mappings included; never `repr`, which anyone can override.

Numbers count by their value: 1, 1.0 and np.int64(1) are one, and so are .5 and Fraction(1, 2). A function counts by the
name and the version its author gives it (`Named`), because nothing else about it can be compared. Version 1.
"""

import hashlib
import math
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, fields, is_dataclass
from fractions import Fraction
from numbers import Integral, Real
from typing import Any

import numpy as np

from ..errors import InvalidInput
from ..validation import in_order

VERSION = 1
_PACKAGE = __name__.partition(".")[0]
_LONGEST = 1000  # characters; longer texts are replaced by a digest
_FUNCTIONS: dict[tuple[str, str], Callable[..., Any]] = {}


@dataclass(frozen=True, slots=True)
class Named:
    """Your own function with a name and a version, so that designs and certificates can refer to it.

    Change the version whenever the function changes its results: functions with the same name and version are assumed
    to be the same.

    >>> Named("twice", "1", lambda x: 2 * x)(3)
    6
    """

    name: str
    version: str
    function: Callable[..., Any] = field(repr=False, compare=False)

    def __post_init__(self) -> None:
        if not (isinstance(self.name, str) and self.name and isinstance(self.version, str) and self.version):
            raise InvalidInput('a function needs a name and a version, both text: Named("norms", "1", function)')
        if not callable(self.function):
            raise InvalidInput(f"Named takes a function, got a {type(self.function).__name__} instead")
        _FUNCTIONS[self.name, self.version] = self.function

    def __call__(self, *given: Any) -> Any:
        """Call the function."""
        return self.function(*given)


def function_named(name: str, version: str) -> Named:
    """The function registered under this name and version."""
    if (name, version) not in _FUNCTIONS:
        raise InvalidInput(
            f"recomputing needs the function {name!r} in version {version!r}, which this program does not know; "
            "define it with Named(name, version, function) first"
        )
    return Named(name, version, _FUNCTIONS[name, version])


def identity(thing: Any) -> str:
    """The identity of a design or a schedule, with its version in front."""
    text = _text(thing)
    if len(text) > _LONGEST:
        text = f"{class_name(type(thing))}#{hashlib.sha256(text.encode('utf-8', 'surrogatepass')).hexdigest()}"
    return f"{VERSION}:{text}"


def class_name(kind: type) -> str:
    """The name of a class, without the file it is in; with the module for classes of other packages."""
    if kind.__module__.partition(".")[0] == _PACKAGE:
        return kind.__qualname__
    version = getattr(kind, "version", None)
    return f"{kind.__module__}:{kind.__qualname__}" + (f"@{version}" if isinstance(version, (int, str)) else "")


def plain(value: Any) -> Any:
    """A number, or a tuple of them, as Python types, which designs store."""
    value = _of_python(value)
    if isinstance(value, (tuple, list)):
        return tuple(map(plain, value))
    if isinstance(value, Fraction):
        return int(value) if value.denominator == 1 else float(value)
    return value


def keep_plain(thing: Any) -> None:
    """Store the numbers of a frozen dataclass as Python types, so that equal designs draw and print the same."""
    for one in fields(thing):
        object.__setattr__(thing, one.name, plain(getattr(thing, one.name)))


def keep_doubles(thing: Any) -> None:
    """Store the numbers of NumPy, JAX and torch in a frozen dataclass as Python's own, and leave the rest as it is."""
    for name in thing.__dataclass_fields__:
        value = getattr(thing, name, None)
        found = _doubles(value)
        if found is not value:
            object.__setattr__(thing, name, found)


def _doubles(value: Any) -> Any:
    return tuple(map(_doubles, value)) if type(value) is tuple else _of_python(value)


def _of_python(value: Any) -> Any:
    """A single number of an array library as Python's own: in its own precision, sums would be rounded down."""
    if isinstance(value, (float, int)) and not isinstance(value, np.generic):
        return value
    if isinstance(value, np.generic) or getattr(value, "ndim", None) == 0:
        value = value.item()
        return float(value) if isinstance(value, np.longdouble) else value
    return value


def keep_in_order(thing: Any, *names: str) -> None:
    """Store these fields of a frozen dataclass as tuples if they are iterable; sets and mappings are rejected."""
    for name in names:
        value = in_order(name, getattr(thing, name))
        if isinstance(value, Iterable) and not isinstance(value, (str, tuple)):
            object.__setattr__(thing, name, tuple(value))


def _text(value: Any) -> str:
    if isinstance(value, np.generic):
        value = value.item()
    write = _OF_PYTHON.get(type(value)) or next((w for kind, w in _WRITERS if isinstance(value, kind)), None)
    if write is not None:
        return write(value)
    own = getattr(value, "identity_fields", None)
    if callable(own) and not isinstance(value, type):
        return _object(value, own())
    if is_dataclass(value) and not isinstance(value, type):
        return _object(value, {f.name: getattr(value, f.name) for f in fields(value) if f.init and f.compare})
    if callable(value):
        raise InvalidInput(
            "a function inside a design needs a name and a version, so that its draws can be told apart from "
            'others; use Named("its name", "1", function)'
        )
    raise InvalidInput(
        f"a {type(value).__name__} inside a design has no identity, so its draws cannot be distinguished from "
        "others; use a frozen dataclass"
    )


def _object(value: Any, parts: Mapping[str, Any]) -> str:
    return f"{class_name(type(value))}({','.join(f'{name}={_text(parts[name])}' for name in sorted(parts))})"


def _number(value: Any) -> str:
    if not isinstance(value, Fraction):  # a fraction may be too large for a float
        if math.isnan(value):
            raise InvalidInput("the numbers of a design must not be nan")
        if math.isinf(value):
            return "inf" if value > 0 else "-inf"
    if type(value) is float:
        return str(int(value)) if value.is_integer() else value.hex()
    exact = Fraction(value) if isinstance(value, (int, float, Fraction)) else Fraction(float(value))
    if exact.denominator == 1:
        return str(exact.numerator)
    try:
        close = float(exact)
    except OverflowError:
        close = math.inf
    return close.hex() if math.isfinite(close) and Fraction(close) == exact else f"{exact}"


def _quoted(value: str) -> str:
    return "'" + value.replace("\\", "\\\\").replace("'", "\\'") + "'"


def _mapping(value: Mapping[Any, Any]) -> str:
    return "{" + ",".join(sorted(f"{_text(key)}:{_text(part)}" for key, part in value.items())) + "}"


def _array(value: np.ndarray[Any, Any]) -> str:
    return f"array{list(value.shape)}[{','.join(_text(part) for part in value.ravel().tolist())}]"


_WRITERS: tuple[tuple[Any, Callable[[Any], str]], ...] = (
    (type(None), lambda value: "none"),
    (bool, lambda value: "true" if value else "false"),
    (Integral, lambda value: str(int(value))),
    (Real, _number),
    (str, _quoted),
    (bytes, lambda value: f"bytes {value.hex()}"),
    (Named, lambda value: f"function({_quoted(value.name)},{_quoted(value.version)})"),
    (Mapping, _mapping),
    ((tuple, list), lambda value: "[" + ",".join(map(_text, value)) + "]"),
    (np.ndarray, _array),
)
_OF_PYTHON = {  # exactly these types, which most fields have: the same writers, found at once
    kind: next(write for kinds, write in _WRITERS if issubclass(kind, kinds))
    for kind in (type(None), bool, int, float, str, bytes, tuple, list, dict)
}
