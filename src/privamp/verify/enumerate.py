"""The exact delta of a tiny case: a noisy sum over a sample whose law is known.

Every assignment of extreme values to the records turns the law of the sample into a law of the sum; noise
makes it a mixture, and the hockey-stick divergence between the two mixtures of a pair of neighbours is a
true lower bound of the release's delta: every upper bound must exceed it. So are queries that see the number of the
other records drawn, where one record moves them by no more than a sum.

The integral (divergence.py) never exceeds the truth and is at most 1e-11 below it; the tail of discrete noise left out
is below 1e-17. Rounding (at most 1e-14 (1 + e^eps)) is subtracted. So the value returned is at most the divergence of a
real pair, and at least the worst of the enumerated pairs less about 1e-11.
"""

import math
from collections.abc import Iterator, Mapping, Sequence
from itertools import combinations_with_replacement, product
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from numpy.typing import ArrayLike

from ..core.neighbors import Neighbors
from ..numerics.log_domain import FloatArray, as_floats
from .divergence import largest_divergences
from .exact import steps_of_both
from .noise import Noise, noise_of, sum_values
from .symmetry import Law, alike, collect

if TYPE_CHECKING:
    from ..core.design import Design
    from ..core.mechanism import Mechanism
    from ..core.population import Population

Direction = Literal["both", "forward", "backward"]
_ROUNDING = 1e-14
_LONGEST_WALK = 5  # others: 243 walks


def exact_delta(
    design: "Design",
    mechanism: "Mechanism",
    population: "int | Population",
    neighbors: Neighbors,
    epsilon: ArrayLike,
    values: Sequence[float] | None = None,
    direction: Direction = "both",
) -> Any:
    """The largest delta at epsilon of a noisy sum on a sample, over neighbours and values of the records.

    `direction` "forward" is D(P || Q), P the first data set of a pair: under add/remove the one with the record.

    Records take every combination of `values`; by default those at the ends and the middle of the range
    that the mechanism's sensitivity allows. A float for a float, an array for an array.
    """
    asked = as_floats(epsilon)
    forward, backward = _directed(design, mechanism, population, neighbors, asked, values)
    best = {"forward": forward, "backward": backward, "both": np.maximum(forward, backward)}[direction]
    return float(best) if np.ndim(epsilon) == 0 else best


def exact_deltas(
    design: "Design", mechanism: "Mechanism", population: "int | Population", neighbors: Neighbors, epsilon: FloatArray
) -> FloatArray:
    """The largest delta in each direction, shape (2, n); the larger in both under replace-one, which has no order."""
    both = np.stack(_directed(design, mechanism, population, neighbors, epsilon))
    return np.broadcast_to(both.max(axis=0), both.shape) if neighbors.kind == "replace-one" else both


def _directed(
    design: "Design",
    mechanism: "Mechanism",
    population: "int | Population",
    neighbors: Neighbors,
    epsilon: FloatArray,
    values: Sequence[float] | None = None,
) -> tuple[FloatArray, FloatArray]:
    """The largest delta of each direction at each epsilon."""
    values = sum_values(mechanism) if values is None else values
    noise = noise_of(mechanism)
    found = []
    for one, other in design.neighboring(population, neighbors):
        first, second = collect(design.law(one)), collect(design.law(other))
        steps = steps_of_both(design, one, other)
        sums = _sums(first, second, values) if steps is None else _weighted_sums(first, second, steps, noise)
        found.append(_worst(noise, *sums, epsilon))
        if steps is None and mechanism.neighbors.kind == "add-remove" and not noise.is_discrete:
            here, there = set(one.ids.tolist()), set(other.ids.tolist())
            signs = {i: (i in here) - (i in there) for i in here | there}
            walks = _by_size(first, second, signs, max(values))
            found += [] if walks is None else [_worst(noise, *walks, epsilon)]
    forward, backward = np.max(found, axis=0)
    return forward, backward


def exact_delta_of_laws(
    first: Mapping[float, Any], second: Mapping[float, Any], mechanism: "Mechanism", epsilon: ArrayLike
) -> Any:
    """The delta at epsilon between two laws {sum: probability} of a sum to which the mechanism adds noise."""
    centres = np.array(sorted({*first, *second}), dtype=np.float64)
    p, q = (np.array([[float(law.get(c, 0)) for c in centres.tolist()]]) for law in (first, second))
    best = np.maximum(*_worst(noise_of(mechanism), centres, p, q, as_floats(epsilon)))
    return float(best) if np.ndim(epsilon) == 0 else best


def _sums(first: Law, second: Law, values: Sequence[float]) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Possible sums (K,), and the two laws of the sum under every assignment (A, K) of values to ids."""
    groups = alike(first, second)
    ids = [i for group in groups for i in group]
    return _laws(first, second, ids, np.array([sum(choice, ()) for choice in _assignments(groups, values)]))


def _by_size(
    first: Law, second: Law, signs: Mapping[int, int], step: float
) -> tuple[FloatArray, FloatArray, FloatArray] | None:
    """The same for queries that count the changed record and see the others' number: f(others) + step, or - step.

    f takes every walk with steps -1, 0 and 1 times `step`, so one record more or less moves the query by a step at
    most. None where no record is changed or the walks are too many.
    """
    drawn = [np.array([[_others(units, signs), _counted(units, signs)] for units in law]) for law in (first, second)]
    most = int(max(part[:, 0].max() for part in drawn))
    if not any(signs.values()) or most > _LONGEST_WALK:
        return None
    moves = np.array(list(product((-1.0, 0.0, 1.0), repeat=most))).reshape(3**most, most)
    walks = np.hstack([np.zeros((len(moves), 1)), np.cumsum(moves, axis=1)])
    sums = [np.round(step * (walks[:, part[:, 0]] + part[:, 1]), 9) for part in drawn]
    return _placed(sums, (first, second))


def _others(units: Sequence[int], signs: Mapping[int, int]) -> int:
    return sum(signs[i] == 0 for i in units)


def _counted(units: Sequence[int], signs: Mapping[int, int]) -> int:
    return sum(signs[i] for i in units)


def _weighted_sums(
    first: Law, second: Law, steps: Mapping[int, float], noise: Noise
) -> tuple[FloatArray, FloatArray, FloatArray]:
    """The same for weighted records: each adds its weighted norm, to one side, the other, or across.

    Discrete noise hides whole numbers: contributions are rounded toward zero, as they must be before it is added.
    """
    ids = sorted(steps)
    steps = {i: float(math.floor(steps[i])) if noise.is_discrete else steps[i] for i in ids}
    return _laws(first, second, ids, np.array(list(product(*((-steps[i], 0.0, steps[i]) for i in ids)))), digits=15)


def _laws(
    first: Law, second: Law, ids: Sequence[int], assigned: FloatArray, digits: int = 9
) -> tuple[FloatArray, FloatArray, FloatArray]:
    drawn = [np.array([[units.count(i) for i in ids] for units in law], dtype=float) for law in (first, second)]
    sums = [np.round(assigned @ times.reshape(len(times), len(ids)).T, digits) for times in drawn]
    return _placed(sums, (first, second))


def _placed(sums: Sequence[FloatArray], both: tuple[Law, Law]) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Where the sums (A, samples) lie (K,), and the two laws (A, K) of where."""
    centres = np.unique(np.concatenate([s.ravel() for s in sums]))
    laws = []
    for s, law in zip(sums, both, strict=True):
        weights = np.zeros((len(s), centres.size))
        chances = np.broadcast_to([float(p) for p in law.values()], s.shape)
        np.add.at(weights, (np.arange(len(s))[:, None], np.searchsorted(centres, s)), chances)
        laws.append(weights)
    return centres, laws[0], laws[1]


def _assignments(groups: tuple[tuple[int, ...], ...], values: Sequence[float]) -> Iterator[tuple[Any, ...]]:
    """Values for every id, up to swaps of ids that both laws treat alike."""
    return product(*(combinations_with_replacement(values, len(group)) for group in groups))


def _worst(
    noise: Noise, centres: FloatArray, p: FloatArray, q: FloatArray, epsilon: FloatArray
) -> tuple[FloatArray, FloatArray]:
    """The largest divergence over rows at each epsilon, of p from q and of q from p."""
    a = np.exp(epsilon.ravel())
    rows = np.unique(_mirrored(centres, np.stack([p, q], 1)), axis=0)
    p, q = rows[:, 0], rows[:, 1]
    tables = (x - r * y for x, y in ((p, q), (q, p)) for r in a)
    found = largest_divergences(noise, centres, tables).reshape(2, -1)
    forward, backward = (np.maximum(d - _ROUNDING * (1.0 + a), 0.0).reshape(epsilon.shape) for d in found)
    return as_floats(forward), as_floats(backward)


def _mirrored(centres: FloatArray, pairs: FloatArray) -> FloatArray:
    """One of each pair of laws and its mirror image, which is as far apart under symmetric noise."""
    if not np.array_equal(centres, -centres[::-1]):
        return pairs
    there, back = pairs, pairs[:, :, ::-1]
    differ = (there != back).reshape(len(pairs), -1)
    first = np.argmax(differ, axis=1)[:, None]
    sizes = (np.take_along_axis(x.reshape(len(pairs), -1), first, 1) for x in (there, back))
    smaller = np.less(*sizes)
    return np.where(smaller[:, :, None], there, back)
