"""Event trees of dp-accounting as guarantees: `guarantee_of(event, neighbors)`.

How events are read (by dp-accounting's own documentation; where it is silent, the weaker guarantee):

- `GaussianDpEvent(z)`, `LaplaceDpEvent(z)`: a sum of rows of norm at most C, with noise of scale z C. One record more
  moves it by C; one record replaced moves it by 2C, so under replace-one the shift is 2/z.
- An event inside a sampling event runs on the sample: several of them run on the same sample and are a `Joint`.
- A data set of n records has neighbours of n - 1 and of n + 1 records under add/remove: designs that need to know n are
  certified for both. Under replace-one n is public.
- `MixtureOfGaussiansDpEvent` is about one record that is added or removed.
"""

import math
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

from ..accounting.composition import compose
from ..accounting.joint import Joint
from ..amplification import amplify
from ..core.design import Design
from ..core.guarantee import Guarantee
from ..core.mechanism import Mechanism
from ..core.neighbors import Neighbors
from ..designs.poisson import Poisson
from ..designs.simple_random import WithoutReplacement
from ..designs.truncated_poisson import TruncatedPoisson
from ..designs.with_replacement import WithReplacement
from ..errors import InvalidInput
from ..mechanisms.black_box import PureDP
from ..mechanisms.gaussian import Gaussian
from ..validation import whole
from .dp_mechanisms import NotPrivate, counted, down, gaussian_of, listed, mechanism_of
from .peers import answered, imported

with imported("dp-accounting", "privamp.adapters.dp_events"):
    from dp_accounting import dp_event as dp

__all__ = ["EVENTS", "NotPrivate", "guarantee_of"]

EVENTS = "the events say what was run, in dp-accounting's units: rows of norm at most C, noise of noise_multiplier C"
_MOST = 10_000  # mechanisms on one sample that are no Gaussians
_NOBODY = ("count", "sampling_probability", "sample_size", "truncated_batch_size")  # with these, size 0 reads no record
Step = tuple[Mechanism, Design, int]


def guarantee_of(event: Any, neighbors: Neighbors) -> Guarantee:
    """The guarantee of everything in the event tree, under `neighbors` (for one record).

    >>> tree = dp.SelfComposedDpEvent(dp.PoissonSampledDpEvent(0.01, dp.GaussianDpEvent(1.0)), 1000)
    >>> f"{guarantee_of(tree, Neighbors.ADD_REMOVE).epsilon(1e-5):.2f}"
    '1.83'
    """
    if neighbors not in (Neighbors.ADD_REMOVE, Neighbors.REPLACE_ONE):
        raise InvalidInput(f"events are about one record anywhere, got neighbors={neighbors} instead")
    with answered("dp-accounting", "reading its events"):
        steps = list(_steps(event, 1, neighbors)) or [(PureDP(0.0), Poisson(1.0), 1)]
    whole_tree = compose([compose(amplify(m, design, neighbors), times) for m, design, times in steps])
    return replace(whole_tree, assumes=(*whole_tree.assumes, EVENTS))


def _steps(event: Any, times: int, neighbors: Neighbors) -> Iterator[Step]:
    """Mechanism, design and number of fresh draws, event by event."""
    kind = type(event)
    has_numbers = kind in _SAMPLED or kind in (dp.SelfComposedDpEvent, dp.TruncatedSubsampledGaussianDpEvent)
    if kind is dp.NoOpDpEvent or (has_numbers and any(getattr(event, name, None) == 0 for name in _NOBODY)):
        return
    if kind is dp.ComposedDpEvent:
        for part in listed(event):
            yield from _steps(part, times, neighbors)
    elif kind is dp.SelfComposedDpEvent:
        yield from _steps(event.event, times * counted(event), neighbors)
    elif kind in _SAMPLED:
        inner = _together(event.event)
        if inner is not None:
            yield inner, _SAMPLED[kind](event, neighbors), times
    elif kind is dp.TruncatedSubsampledGaussianDpEvent:
        yield gaussian_of(event), _truncated(event, neighbors), times
    else:
        mechanism = mechanism_of(event)
        if mechanism is not None:
            yield mechanism, _everybody(mechanism, neighbors), times


def _together(event: Any) -> Mechanism | None:
    """All that runs on one sample, as one mechanism; None where nothing does."""
    parts = [(m, times) for m, times in _on_one_sample(event, 1) if m is not None]
    if not parts:
        return None
    gaussians = [(m.sigma, times) for m, times in parts if isinstance(m, Gaussian)]
    if len(gaussians) == len(parts):
        if len(parts) == 1 and parts[0][1] == 1:
            return parts[0][0]
        return Gaussian(down(math.fsum(times / sigma**2 for sigma, times in gaussians) ** -0.5, 4))
    whole(1, _MOST, mechanisms_on_one_sample=sum(times for _, times in parts))
    return Joint([m for m, times in parts for _ in range(times)])


def _on_one_sample(event: Any, times: int) -> Iterator[tuple[Mechanism | None, int]]:
    kind = type(event)
    if kind is dp.ComposedDpEvent:
        for part in listed(event):
            yield from _on_one_sample(part, times)
    elif kind is dp.SelfComposedDpEvent:
        if counted(event):
            yield from _on_one_sample(event.event, times * counted(event))
    elif kind in _SAMPLED or kind is dp.TruncatedSubsampledGaussianDpEvent:
        raise InvalidInput(
            f"a {kind.__name__} inside another sampling event is not supported; state one design for both"
        )
    else:
        yield mechanism_of(event), times


def _everybody(mechanism: Mechanism, neighbors: Neighbors) -> Design:
    """No sampling: for replaced records, the bound of simple random sampling depends on size/population alone."""
    if mechanism.neighbors.kind == "add-remove":
        return Poisson(1.0)
    if neighbors != Neighbors.REPLACE_ONE:
        raise InvalidInput(f"{type(mechanism).__name__} of all records reveals their number; use replace-one")
    return WithoutReplacement(1, 1)


def _truncated(event: Any, neighbors: Neighbors) -> Design:
    rate, most = event.sampling_probability, event.truncated_batch_size
    whole(1, dataset_size=event.dataset_size)
    n = int(event.dataset_size)
    if neighbors == Neighbors.REPLACE_ONE:
        return TruncatedPoisson(rate, most, n, n)
    return TruncatedPoisson(rate, most, n - 1, n + 1)


def _known_size(event: Any, neighbors: Neighbors) -> int:
    """The smallest data set of a neighbouring pair."""
    whole(1, source_dataset_size=event.source_dataset_size)
    return int(event.source_dataset_size) - (neighbors == Neighbors.ADD_REMOVE)


with imported("dp-accounting", "privamp.adapters.dp_events"):
    _SAMPLED: dict[type, Callable[[Any, Neighbors], Design]] = {
        dp.PoissonSampledDpEvent: lambda event, neighbors: Poisson(event.sampling_probability),
        dp.SampledWithoutReplacementDpEvent: lambda event, neighbors: WithoutReplacement(
            event.sample_size, _known_size(event, neighbors)
        ),
        dp.SampledWithReplacementDpEvent: lambda event, neighbors: WithReplacement(
            event.sample_size, _known_size(event, neighbors)
        ),
    }
