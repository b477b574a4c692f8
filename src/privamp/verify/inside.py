"""The content of an object, its text and its named parts, for `traces`."""

import functools
import io
import re
import types
import weakref
from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import is_dataclass
from itertools import islice
from typing import Any

import numpy as np

Parts = list[tuple[str, Any]]

_PLAIN = (type(None), str, bytes, bool, int, float, complex, type(Ellipsis), type(NotImplemented), range, slice)
_MOST = 100_000  # entries of an iterator that are read
_LIBRARY = re.compile(r"site-packages|[\\/]lib[\\/]python|^<frozen")
_ADDRESS = re.compile(r"\b0x[0-9a-fA-F]+")
_PACKAGE = __name__.partition(".")[0]
_HIDDEN = ("__dict__", "__weakref__", "__abstractmethods__", "_abc_impl")


def is_plain(value: Any) -> bool:
    """Whether the object is nothing but its text: exactly one of Python's built-in types, or a NumPy number."""
    return type(value) in _PLAIN or (isinstance(value, np.generic) and type(value).__module__ == "numpy")


def plain_text(value: Any) -> str:
    """Every digit of it."""
    if isinstance(value, np.generic):
        return array_text(np.asarray(value))
    return value.hex() if isinstance(value, float) else repr(value)


def array_text(array: Any) -> str:
    """Type, shape and every byte; entries of objects are parts, not text."""
    content = "" if array.dtype.hasobject else array.tobytes().hex()
    return f"{array.dtype} {array.shape} {content}"


def named(kind: type) -> str:
    """A class by its name."""
    return f"{kind.__module__}.{kind.__qualname__}"


def parts(value: Any) -> tuple[str, Parts]:
    """The text of an object, and everything in it by name."""
    for kinds, look in _LOOKS:
        if isinstance(value, kinds):
            return look(value)
    for needed, look in _BY_METHODS:
        if all(hasattr(value, name) for name in needed):
            return look(value)
    return _object(value)


def _array(value: Any) -> tuple[str, Parts]:
    array = np.asarray(value)
    entries = list(array.ravel()) if array.dtype.hasobject else []
    return array_text(array), [*_numbered(entries), *_attributes(value)]


def _mapping(value: Any) -> tuple[str, Parts]:
    inside = list(value.items())
    keys = [(f".key[{place}]", key) for place, (key, _) in enumerate(inside)]
    return "", [*keys, *((f"[{_shown(key)}]", part) for key, part in inside), *_attributes(value)]


def _sequence(value: Any) -> tuple[str, Parts]:
    return "", [*_numbered(value), *_attributes(value)]


def _iterator(value: Any) -> tuple[str, Parts]:
    """What it yields, and how it ends."""
    found: list[Any] = []
    try:
        found.extend(islice(value, _MOST))
    except Exception as error:
        found.append(error)
    return "", [*_numbered(found), *_attributes(value)]


def _function(value: Any) -> tuple[str, Parts]:
    cells = [cell.cell_contents for cell in value.__closure__ or () if _is_filled(cell)]
    given = [("()", cells), (".defaults", value.__defaults__), (".more_defaults", value.__kwdefaults__)]
    return value.__qualname__, [*given, (".code", value.__code__), *_attributes(value)]


def _is_filled(cell: Any) -> bool:
    try:
        return cell.cell_contents is not cell
    except ValueError:
        return False


def _class(value: Any) -> tuple[str, Parts]:
    """A class made by the job is inspected; one of a module is identified by its name."""
    inside = value.__dict__ if "<locals>" in value.__qualname__ else {}
    return named(value), [(f".{name}", part) for name, part in inside.items() if not _is_hidden(name)]


def _is_hidden(name: str) -> bool:
    return name in _HIDDEN or (name.startswith("__") and name.endswith("__"))


def _frame(value: Any) -> tuple[str, Parts]:
    frame = getattr(value, "cr_frame", None) or getattr(value, "ag_frame", None)
    return value.__qualname__, [] if frame is None else [(".locals", dict(frame.f_locals))]


def _io(value: Any) -> tuple[str, Parts]:
    held = value.getvalue() if hasattr(value, "getvalue") and not value.closed else getattr(value, "name", None)
    return "", [(".content", held), *_attributes(value)]


def _tensor(value: Any) -> tuple[str, Parts]:
    held = value.detach().cpu()
    plain = held.float() if str(held.dtype) == "torch.bfloat16" else held
    grad = value.grad if value.is_leaf else None
    return f"{held.dtype} {array_text(plain.numpy())}", [(".grad", grad), *_attributes(value)]


def _pandas(value: Any) -> tuple[str, Parts]:
    axes = [[list(axis), list(axis.names), str(axis.dtype)] for axis in value.axes]
    table = value.to_frame() if value.ndim == 1 else value
    columns = [(f".iloc[:, {place}]", np.asarray(table.iloc[:, place])) for place in range(table.shape[1])]
    kinds = [str(kind) for kind in table.dtypes]
    return f"{kinds} {getattr(value, 'name', None)!r}", [(".axes", axes), *columns, (".attrs", value.attrs)]


def _polars(value: Any) -> tuple[str, Parts]:
    return f"{value.schema}", [(f"[{name!r}]", value[name].to_list()) for name in value.columns]


def _arrow(value: Any) -> tuple[str, Parts]:
    text = value.schema.to_string(truncate_metadata=False)
    return text, [(f".columns[{place}]", column.to_pylist()) for place, column in enumerate(value.columns)]


def _listed(value: Any) -> tuple[str, Parts]:
    made = value.to_list() if hasattr(value, "to_list") else value.to_pylist()
    facts = [str(getattr(value, name, "")) for name in ("name", "names", "dtype", "type")]
    return f"{facts}", _numbered(made)


def _object(value: Any) -> tuple[str, Parts]:
    """Attributes, pickled state, and its own text."""
    inside = _attributes(value)
    if isinstance(value, Collection):
        inside += _numbered(value)
    return _said(value), [*inside, *_copied(value, inside), *_properties(value)]


def _said(value: Any) -> str:
    plain: Any = object.__repr__
    return "" if type(value).__repr__ is plain else _shown(value)


def _shown(value: Any) -> str:
    try:
        return _ADDRESS.sub("0x", repr(value))
    except Exception as error:
        return f"{type(error).__name__}: {error}"


def _attributes(value: Any) -> Parts:
    names = [*getattr(value, "__dict__", {})]
    inside = [(f".{name}", part) for name, part in vars(value).items()] if names else []
    for kind in type(value).__mro__:
        slots = kind.__dict__.get("__slots__", ())
        for name in (slots,) if isinstance(slots, str) else slots:
            full = f"_{kind.__name__.lstrip('_')}{name}" if name.startswith("__") and not name.endswith("__") else name
            if name not in _HIDDEN and hasattr(value, full):
                inside.append((f".{full}", getattr(value, full)))
    own = type(value)
    return [*inside, (".__class__", own)] if "<locals>" in own.__qualname__ else inside


def _copied(value: Any, inside: Parts) -> Parts:
    """What a pickle would hold, for objects whose state is not in attributes."""
    if inside and (is_dataclass(value) or type(value).__module__.partition(".")[0] == _PACKAGE):
        return []
    try:
        reduced = value.__reduce_ex__(4)
    except Exception:
        return []
    return [(".reduced", list(reduced[1:3]))] if isinstance(reduced, tuple) and _is_about(value, reduced) else []


def _is_about(value: Any, reduced: tuple[Any, ...]) -> bool:
    return not (len(reduced) > 1 and any(part is value for part in reduced[1]))


def _properties(value: Any) -> Parts:
    """The properties of other packages' classes, which may be computed from anything."""
    found: Parts = []
    for kind in type(value).__mro__:
        for name, member in kind.__dict__.items():
            if isinstance(member, property) and member.fget and _is_own(member.fget):
                found.append((f".{name}", _asked(member.fget, value)))
    return found


def _is_own(getter: Any) -> bool:
    """Whether the getter belongs to the checked program, not to a library."""
    code = getattr(getter, "__code__", None)
    if code is None or str(getter.__module__).partition(".")[0] == _PACKAGE:
        return False
    return not _LIBRARY.search(code.co_filename)


def _asked(getter: Callable[[Any], Any], value: Any) -> Any:
    try:
        return getter(value)
    except Exception as error:
        return f"{type(error).__name__}: {error}"


def _numbered(entries: Any) -> Parts:
    return [(f"[{place}]", part) for place, part in enumerate(entries)]


def _bound(value: Any) -> tuple[str, Parts]:
    about = value.__self__
    return value.__qualname__, [] if isinstance(about, types.ModuleType) else [(".__self__", about)]


def _partial(value: Any) -> tuple[str, Parts]:
    return "", [(".func", value.func), (".args", value.args), (".keywords", value.keywords), *_attributes(value)]


def _code(value: Any) -> tuple[str, Parts]:
    return f"{value.co_qualname} {value.co_code.hex()}", [(".consts", value.co_consts), (".names", value.co_names)]


Look = Callable[[Any], tuple[str, Parts]]
_LOOKS: list[tuple[Any, Look]] = [
    (np.ndarray, _array),
    (memoryview, lambda value: (f"{value.format} {value.shape} {value.tobytes().hex()}", [])),
    (Mapping, _mapping),
    ((list, tuple, set, frozenset), _sequence),
    (type, _class),
    (types.ModuleType, lambda value: (value.__name__, [])),
    (types.FunctionType, _function),
    ((types.MethodType, types.BuiltinMethodType), _bound),
    (functools.partial, _partial),
    (types.CodeType, _code),
    (weakref.ref, lambda value: ("", [("()", value())])),
    ((types.CoroutineType, types.AsyncGeneratorType), _frame),
    (io.IOBase, _io),
    (Iterator, _iterator),
    (np.dtype, lambda value: (str(value), [])),
]
_BY_METHODS: list[tuple[tuple[str, ...], Look]] = [
    (("detach", "cpu", "is_leaf"), _tensor),
    (("iloc", "axes", "attrs"), _pandas),
    (("schema", "to_dicts", "columns"), _polars),
    (("schema", "to_pydict", "columns"), _arrow),
    (("to_list", "dtype"), _listed),
    (("to_pylist", "type"), _listed),
]
