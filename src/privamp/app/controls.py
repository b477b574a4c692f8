"""The controls of a view: each field of its state has a range, a label and a name in the URL.

A state is a frozen dataclass whose fields are made by `number`, `whole` and `choice`. `read` makes one from a URL's
query: invalid values are replaced by the default, with a message.
"""

import math
from collections.abc import Callable, Mapping
from dataclasses import Field, dataclass, field, fields
from typing import Any, TypeVar
from urllib.parse import urlencode

import numpy as np

from ..errors import InvalidInput

T = TypeVar("T")
_PER_DECADE, _SHOWN = 20, 40  # positions of a logarithmic slider; characters of a bad value in a sentence


@dataclass(frozen=True, slots=True)
class Control:
    """One control: a slider over `stops`, a choice among `options`, or a text that `check` accepts."""

    kind: str  # "whole", "number", "choice" or "text"
    label: str
    low: float = 0.0
    high: float = 0.0
    stops: tuple[float, ...] = ()
    options: tuple[tuple[str, str], ...] = ()  # (value, what it says); of a text: (name, example)
    hint: str = ""
    check: Callable[[str], str] | None = None  # of a text: as it is kept; raises `InvalidInput`

    def read(self, text: str) -> Any:
        """The value of a text; raises `InvalidInput` if it is not valid."""
        if self.check is not None:
            return self.check(text)
        shown = repr(text if len(text) <= _SHOWN else text[:_SHOWN] + "…")
        if self.kind == "choice":
            if text not in dict(self.options):
                raise InvalidInput(f"{self.label} must be one of {', '.join(dict(self.options))}, got {shown} instead")
            return text
        try:
            value = float(text) if len(text) <= _SHOWN else math.nan
        except ValueError:
            value = math.nan
        rule = f"from {plain(self.low)} to {plain(self.high)}"
        what = "a whole number" if self.kind == "whole" else "a number"
        if not self.low <= value <= self.high or (self.kind == "whole" and value != int(value)):
            raise InvalidInput(f"{self.label} must be {what} {rule}, got {shown} instead")
        return int(value) if self.kind == "whole" else value

    def position(self, value: float) -> int:
        """The stop of the slider that is nearest to a value."""
        return int(np.argmin(np.abs(np.log(np.asarray(self.stops)) - math.log(value))))


def whole(default: int, low: int, high: int, label: str, hint: str = "") -> Any:
    """A whole number from `low` (at least 1) to `high`, on a logarithmic slider."""
    return _made(default, Control("whole", label, low, high, _stops(low, high, whole=True), hint=hint))


def number(default: float, low: float, high: float, label: str, hint: str = "") -> Any:
    """A positive number from `low` to `high`, on a logarithmic slider."""
    return _made(default, Control("number", label, low, high, _stops(low, high, whole=False), hint=hint))


def choice(default: str, options: Mapping[str, str], label: str, hint: str = "") -> Any:
    """One of several words; `options` says what each means."""
    return _made(default, Control("choice", label, options=tuple(options.items()), hint=hint))


def text(default: str, label: str, check: Callable[[str], str], examples: Mapping[str, str], hint: str = "") -> Any:
    """A text that `check` brings into its usual form, with examples to start from."""
    return _made(default, Control("text", label, options=tuple(examples.items()), check=check, hint=hint))


def controls(state: Any) -> dict[str, Control]:
    """The controls of a state or of its class, by the names of the fields."""
    return {each.name: _control(each) for each in fields(state) if "control" in each.metadata}


def read(kind: type[T], query: Mapping[str, str]) -> tuple[T, tuple[str, ...]]:
    """The state that a query describes, and a sentence for each value that could not be used."""
    found: dict[str, Any] = {}
    notes: list[str] = []
    for name, control in controls(kind).items():
        if name not in query:
            continue
        try:
            found[name] = control.read(query[name])
        except InvalidInput as error:
            notes.append(f"{error}; the page shows its default.")
    return kind(**found), tuple(notes)


def query(state: Any) -> str:
    """The state as a query, ready for a URL; defaults are left out."""
    changed = {
        each.name: getattr(state, each.name)
        for each in fields(state)
        if "control" in each.metadata and getattr(state, each.name) != each.default
    }
    return urlencode({name: plain(value) for name, value in changed.items()})


def plain(value: Any) -> str:
    """The shortest text that reads as this number."""
    if isinstance(value, float) and value == int(value) and abs(value) < 1e9:
        return str(int(value))
    return f"{value}"


def _made(default: Any, control: Control) -> Any:
    return field(default=default, metadata={"control": control})


def _control(each: "Field[Any]") -> Control:
    control: Control = each.metadata["control"]
    return control


def _stops(low: float, high: float, *, whole: bool) -> tuple[float, ...]:
    """Numbers of two digits, spread evenly on a logarithmic scale."""
    count = max(2, round(_PER_DECADE * math.log10(high / low)) + 1)
    rounded = (float(f"{value:.1e}") for value in np.geomspace(low, high, count))
    kept = (min(max(float(round(value)) if whole else value, low), high) for value in rounded)
    return tuple(sorted(set(kept)))
