"""What a job releases: a value, the two errors it has, an interval, and the guarantee it was released under."""

import math
import warnings
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from importlib import import_module
from operator import attrgetter
from typing import Any, Protocol

import numpy as np

from ..errors import InvalidInput
from ..numerics.half_width import half_width
from ..validation import in_range
from .guarantee import SCHEMA, Guarantee

_OLD = {
    "privacy": "guarantee",
    "estimate": "value",
    "standard_error_noise": "noise_error",
    "standard_error_sampling": "sampling_error",
    "variance_source": "sampling_error_is",
    "noise": "law",
    "relation": "guarantee.neighbors",
}
_STATE = ("value", "noise_error", "sampling_error", "guarantee", "law", "sampling_error_is", "names", "details")
_NO_ERROR = (
    "the sampling error of this release is not known, so it has no interval; give it from public facts, or let the "
    "job estimate it from part of the budget"
)


class Law(Protocol):
    """How the errors of a release are distributed, where that is more than a normal error plus noise."""

    def interval(self, level: float) -> tuple[Any, Any]:
        """The interval that covers with probability `level`."""

    def standard_error(self) -> Any:
        """The standard error of noise and sampling together."""


class Release:
    """A released value. All of it may be published; the guarantee covers everything together.

    Parameters
    ----------
    value : a number, an array of them, or arrays by name, such as the parameters of a model.
    noise_error : standard error of the noise, of one coordinate; None where it is not known.
    sampling_error : standard error of sampling; None where it is not known. Neither includes the bias of clipping.
    guarantee : the `Guarantee`, or a function that computes it when needed.
    law : the distribution of the noise, "laplace", "gaussian" or "norm"; or a `Law` with its own interval.
    sampling_error_is : where the sampling error comes from, in words.
    names : one for each coordinate, where they have names.
    details : further released numbers and public facts of the job; they are attributes, too. `epsilon` and `delta`
        among them are what the job was asked for.

    Pickles and deep-copies hold the guarantee as a certificate does, and evaluate it again.
    """

    value: Any
    noise_error: Any
    sampling_error: Any
    law: "str | Law"
    sampling_error_is: str
    names: tuple[str, ...]
    details: Mapping[str, Any]

    def __init__(
        self,
        value: Any,
        noise_error: Any,
        sampling_error: Any,
        guarantee: Guarantee | Callable[[], Guarantee],
        law: "str | Law" = "gaussian",
        sampling_error_is: str = "unknown",
        names: tuple[str, ...] = (),
        details: Mapping[str, Any] | None = None,
    ) -> None:
        given = (value, noise_error, sampling_error, guarantee, law, sampling_error_is, tuple(names), details or {})
        for name, part in zip(_STATE, given, strict=True):
            self.__dict__["_certify" if name == "guarantee" else name] = part

    def __setattr__(self, name: str, value: Any) -> None:
        raise AttributeError(f"a release cannot be changed, got a new {name!r}")

    @cached_property
    def guarantee(self) -> Guarantee:
        """The guarantee of this release and of everything else released from the same sample until this is first
        read."""
        found: Guarantee | Callable[[], Guarantee] = self.__dict__["_certify"]
        if not isinstance(found, Guarantee):
            found = self.__dict__["_certify"] = found()  # the closure holds secrets, so it is dropped
        return found

    @property
    def standard_error(self) -> Any:
        """Sampling and noise together; None where one of them is not known."""
        if not isinstance(self.law, str):
            return self.law.standard_error()
        if self.sampling_error is None or self.noise_error is None:
            return None
        return _plain_number(np.hypot(self.sampling_error, self.noise_error))

    def interval(self, level: float = 0.95) -> tuple[Any, Any]:
        """A two-sided confidence interval, (low, high), of each coordinate separately.

        A normal sampling error plus the law of the noise; it does not include the bias of clipping.
        """
        in_range(0, 1, open_ends=True, level=level)
        if not isinstance(self.law, str):
            return self.law.interval(level)
        if self.sampling_error is None:
            raise InvalidInput(_NO_ERROR)
        kind = self.law
        wide = np.vectorize(lambda s, n: half_width(float(s), float(n), kind, level), otypes=[float])
        half = np.broadcast_to(wide(self.sampling_error, self.noise_error), np.shape(self.value))
        return _plain_number(self.value - half), _plain_number(self.value + half)

    def __getitem__(self, name: str) -> "Release":
        """One coordinate by its name, such as a regression coefficient."""
        if name not in self.names:
            raise InvalidInput(f"this release has {', '.join(map(repr, self.names)) or 'no names'}, got {name!r}")
        return self._coordinate(self.names.index(name))

    def _coordinate(self, at: int) -> "Release":
        def part(whole: Any) -> Any:
            if whole is None:
                return None
            return _plain_number(np.atleast_1d(np.broadcast_to(whole, np.shape(self.value)))[at])

        law = self.law if isinstance(self.law, str) else _Coordinate(self.law, at)
        errors = part(self.noise_error), part(self.sampling_error)
        own = self.names[at : at + 1]
        return type(self)(part(self.value), *errors, self.guarantee, law, self.sampling_error_is, own, self.details)

    def __iter__(self) -> Iterator["Release"]:
        """The named coordinates, each a release of its own."""
        return (self._coordinate(at) for at in range(len(self.names)))

    def numbers(self, level: float = 0.95) -> dict[str, Any]:
        """The value, its errors and its interval as JSON values: infinite and unknown ones are None."""
        known = self.sampling_error is not None or not isinstance(self.law, str)
        return {
            "value": plain(self.value),
            "noise_error": plain(self.noise_error),
            "sampling_error": plain(self.sampling_error),
            "sampling_error_is": self.sampling_error_is,
            "standard_error": plain(self.standard_error),
            "interval": [plain(end) for end in self.interval(level)] if known else None,
            "level": level,
        }

    def to_json(self, level: float = 0.95) -> dict[str, Any]:
        """A dictionary for machines: numbers, details, and the guarantee with its certificate."""
        details = {name: plain(part) for name, part in self.details.items() if name not in ("epsilon", "delta")}
        named = {"names": list(self.names)} if self.names else {}
        return {"schema": SCHEMA, **self.numbers(level), **named, **details, "guarantee": self.certificate()}

    def certificate(self) -> dict[str, Any]:
        """The guarantee at the epsilon or the delta that was asked for, as `Guarantee.from_json` reads it."""
        delta, epsilon = self.details.get("delta") or None, self.details.get("epsilon")
        if delta is None and epsilon is not None and not math.isfinite(self.guarantee.epsilon()):
            return self.guarantee.to_json(epsilon=epsilon)
        return self.guarantee.to_json(delta=delta)

    def plot(self) -> Any:
        """A matplotlib figure of the value and its interval (pip install 'privamp[plots]')."""
        return import_module("..report.release", __package__).picture_of(self)

    def _repr_html_(self) -> str:
        """The release as notebooks show it."""
        text: str = import_module("..report.release", __package__).fragment_of(self)
        return text

    def __repr__(self) -> str:
        errors = f"noise_error={_short(self.noise_error)}, sampling_error={_short(self.sampling_error)}"
        return f"Release(value={_short(self.value)}, {errors})"

    def __eq__(self, other: object) -> bool:
        """Whether the same numbers were released with the same errors; guarantees are not compared."""
        if not isinstance(other, Release):
            return NotImplemented
        mine, yours = ((plain(r.value), plain(r.noise_error), plain(r.sampling_error), r.names) for r in (self, other))
        return mine == yours

    __hash__ = None  # type: ignore[assignment]

    def __reduce__(self) -> Any:
        return type(self), tuple(getattr(self, name) for name in _STATE)

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_") or "details" not in self.__dict__:
            raise AttributeError(name)
        if name in self.details:
            return self.details[name]
        if name in _OLD:
            renamed(name, _OLD[name])
            return attrgetter(_OLD[name])(self)
        raise AttributeError(f"this release has no {name!r}; it has {', '.join([*_STATE[:6], *self.details])}")

    def __dir__(self) -> list[str]:
        return sorted({*super().__dir__(), *self.details})


@dataclass(frozen=True)
class _Coordinate:
    """The law of one coordinate of a release."""

    law: Any
    at: int

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_") or "law" not in self.__dict__:
            raise AttributeError(name)
        return getattr(self.law, name)

    def interval(self, level: float) -> tuple[Any, Any]:
        low, high = self.law.interval(level)
        return _plain_number(np.atleast_1d(low)[self.at]), _plain_number(np.atleast_1d(high)[self.at])

    def standard_error(self) -> Any:
        return _plain_number(np.atleast_1d(self.law.standard_error())[self.at])


def renamed(old: str, new: str, level: int = 3) -> None:
    """Warn that a name has changed; the old one works for one version."""
    warnings.warn(
        f"{old!r} is now {new!r}; the old name will be removed in the next version", DeprecationWarning, level
    )


def plain(value: Any) -> Any:
    """Numbers and arrays as JSON values; infinite and unknown ones are None."""
    if isinstance(value, (np.ndarray, list, tuple)):
        return [plain(part) for part in value]
    if isinstance(value, Mapping):
        return {str(name): plain(part) for name, part in value.items()}
    if isinstance(value, (float, np.floating)):
        return float(value) if math.isfinite(value) else None
    return value.item() if isinstance(value, np.generic) else value


def _plain_number(value: Any) -> Any:
    return float(value) if np.ndim(value) == 0 else value


def _short(value: Any) -> str:
    if value is None:
        return "None"
    if isinstance(value, Mapping):
        return "{" + ", ".join(value) + "}"
    return (
        f"{float(value):.6g}" if np.ndim(value) == 0 else np.array2string(np.asarray(value), precision=4, threshold=8)
    )
