"""One event of dp-accounting on its data, as a mechanism of privamp."""

import math
from collections.abc import Callable, Sequence
from typing import Any

from ..core.identity import plain
from ..core.mechanism import Mechanism
from ..errors import InvalidInput
from ..mechanisms.discrete_laplace import DiscreteLaplace
from ..mechanisms.gaussian import Gaussian
from ..mechanisms.laplace import Laplace
from ..mechanisms.randomized_response import RandomizedResponse
from ..validation import in_range, whole
from .moved_gaussians import MovedGaussians
from .peers import imported

with imported("dp-accounting", "privamp.adapters.dp_events"):
    from dp_accounting import dp_event as dp


class NotPrivate(InvalidInput):
    """The event has no privacy: every accountant reports an infinite epsilon and delta 1."""


def mechanism_of(event: Any) -> Mechanism | None:
    """One event on its data; None if it releases nothing."""
    reader = _LEAVES.get(type(event))
    if reader is None:
        known = ", ".join(kind.__name__ for kind in _LEAVES)
        raise InvalidInput(
            f"privamp reads no {type(event).__name__}; it reads {known}, and samples and compositions of them"
        )
    return reader(event)


def counted(event: Any) -> int:
    """How often a SelfComposedDpEvent repeats its event; as Python's number, because NumPy's short ones overflow."""
    whole(0, count=event.count)
    return int(event.count)


def listed(event: Any) -> Sequence[Any]:
    """The events of a ComposedDpEvent; an iterator would be empty when it is read again."""
    if not isinstance(event.events, Sequence):
        raise InvalidInput(f"ComposedDpEvent needs a list of events, got {type(event.events).__name__} instead")
    return event.events


def gaussian_of(event: Any) -> Mechanism:
    """Standard deviation `noise_multiplier` for rows of norm 1."""
    return Gaussian(_noise(event.noise_multiplier))


def _noise(multiplier: Any) -> Any:
    number = plain(multiplier)  # what is computed from it has the precision of Python's numbers
    if number == 0:
        raise NotPrivate("an event without noise has no guarantee")
    return number


def _response(event: Any) -> Mechanism | None:
    p, k = plain(event.noise_parameter), plain(event.num_buckets)
    in_range(0, 1, noise_parameter=p)
    whole(1, num_buckets=k)
    if k == 1 or p == 1:
        return None
    return RandomizedResponse(_up(math.log1p(k * (1.0 - _noise(p)) / p)), k)


def _nothing_private(event: Any) -> Mechanism:
    raise NotPrivate("a NonPrivateDpEvent has no guarantee: epsilon is infinite")


def _up(value: float) -> float:
    return math.nextafter(math.nextafter(value, math.inf), math.inf)


def down(value: float, steps: int = 2) -> float:
    """A little less noise, so that rounding never makes a guarantee smaller."""
    for _ in range(steps):
        value = math.nextafter(value, 0.0)
    return value


with imported("dp-accounting", "privamp.adapters.dp_events"):
    _LEAVES: dict[type, Callable[[Any], Mechanism | None]] = {
        dp.NoOpDpEvent: lambda event: None,
        dp.NonPrivateDpEvent: _nothing_private,
        dp.GaussianDpEvent: gaussian_of,
        dp.LaplaceDpEvent: lambda event: Laplace(_noise(event.noise_multiplier)),
        dp.DiscreteLaplaceDpEvent: lambda event: DiscreteLaplace(
            down(1.0 / _noise(event.noise_parameter)), event.sensitivity
        ),
        dp.RandomizedResponseDpEvent: _response,
        dp.MixtureOfGaussiansDpEvent: lambda event: MovedGaussians(
            _noise(event.standard_deviation), tuple(event.sensitivities), tuple(event.sampling_probs)
        ),
    }
