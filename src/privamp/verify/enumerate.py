"""The exact delta of a tiny case: a noisy sum over a sample whose law is known.

Every assignment of extreme values to the records turns the law of the sample into a law of the sum; noise
makes it a mixture, and the hockey-stick divergence between the two mixtures of a pair of neighbours is a
true lower bound of the release's delta: every upper bound must exceed it.

Continuous noise is integrated over cells by its distribution function. Grouping outcomes into cells is
post-processing, so the sum over cells of [P - e^eps Q]+ never exceeds the truth; cells in which the sign
changes are split until what is lost is below 1e-11. Discrete noise is summed point by point, and the tail
left out is below 1e-17. Rounding (at most 1e-14 (1 + e^eps)) is subtracted. So the value returned is at most
the divergence of a real pair, and at least the worst of the enumerated pairs less about 1e-11.
"""

import math
from collections.abc import Iterator, Mapping, Sequence
from itertools import combinations_with_replacement, product
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from numpy.typing import ArrayLike

from ..core.neighbors import Neighbors
from ..numerics.log_domain import FloatArray, as_floats
from .exact import steps_of_both
from .noise import Noise, noise_of, sum_values
from .symmetry import Law, alike, collect

if TYPE_CHECKING:
    from ..core.design import Design
    from ..core.mechanism import Mechanism
    from ..core.population import Population

Direction = Literal["both", "forward", "backward"]
_CELLS = 512
_SPLITS = 3  # rounds that cut a cell with a sign change
_PIECES = 32
_REFINED = 16  # assignments looked at closely; far-off clusters make many of them equal to many digits
_NOISE = 1e-13  # a relative difference of densities that may be rounding
_ROUNDING = 1e-14


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
    values = sum_values(mechanism) if values is None else values
    noise = noise_of(mechanism)
    found = []
    for one, other in design.neighboring(population, neighbors):
        first, second = collect(design.law(one)), collect(design.law(other))
        steps = steps_of_both(design, one, other)
        sums = _sums(first, second, values) if steps is None else _weighted_sums(first, second, steps, noise)
        found.append(_worst(noise, *sums, as_floats(epsilon), direction))
    best = np.max(found, axis=0)
    return float(best) if np.ndim(epsilon) == 0 else best


def exact_deltas(
    design: "Design", mechanism: "Mechanism", population: "int | Population", neighbors: Neighbors, epsilon: FloatArray
) -> FloatArray:
    """The largest delta in each direction, shape (2, n); the larger in both under replace-one, which knows no order."""
    if neighbors.kind == "replace-one":
        return np.tile(exact_delta(design, mechanism, population, neighbors, epsilon), (2, 1))
    ways: tuple[Direction, ...] = ("forward", "backward")
    return np.stack(
        [exact_delta(design, mechanism, population, neighbors, epsilon, direction=direction) for direction in ways]
    )


def exact_delta_of_laws(
    first: Mapping[float, Any], second: Mapping[float, Any], mechanism: "Mechanism", epsilon: ArrayLike
) -> Any:
    """The delta at epsilon between two laws {sum: probability} of a sum to which the mechanism adds noise."""
    centres = np.array(sorted({*first, *second}), dtype=np.float64)
    p, q = (np.array([[float(law.get(c, 0)) for c in centres.tolist()]]) for law in (first, second))
    best = _worst(noise_of(mechanism), centres, p, q, as_floats(epsilon))
    return float(best) if np.ndim(epsilon) == 0 else best


def _sums(first: Law, second: Law, values: Sequence[float]) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Possible sums (K,), and the two laws of the sum under every assignment (A, K) of values to ids."""
    groups = alike(first, second)
    ids = [i for group in groups for i in group]
    return _laws(first, second, ids, np.array([sum(choice, ()) for choice in _assignments(groups, values)]))


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
    centres = np.unique(np.concatenate([s.ravel() for s in sums]))
    laws = []
    for s, law in zip(sums, (first, second), strict=True):
        weights = np.zeros((len(assigned), centres.size))
        chances = np.broadcast_to([float(p) for p in law.values()], s.shape)
        np.add.at(weights, (np.arange(len(assigned))[:, None], np.searchsorted(centres, s)), chances)
        laws.append(weights)
    return centres, laws[0], laws[1]


def _assignments(groups: tuple[tuple[int, ...], ...], values: Sequence[float]) -> Iterator[tuple[Any, ...]]:
    """Values for every id, up to swaps of ids that both laws treat alike."""
    return product(*(combinations_with_replacement(values, len(group)) for group in groups))


def _worst(
    noise: Noise, centres: FloatArray, p: FloatArray, q: FloatArray, epsilon: FloatArray, direction: Direction = "both"
) -> FloatArray:
    """The largest divergence over rows and both directions, or one, at each epsilon."""
    ways = {"forward": [(p, q)], "backward": [(q, p)], "both": [(p, q), (q, p)]}[direction]
    rows = np.unique(np.concatenate([np.stack(way, 1) for way in ways]), axis=0)
    p, q = rows[:, 0], rows[:, 1]
    divergence = _summed if noise.is_discrete else _integrated
    a = np.exp(epsilon.ravel())
    found = as_floats([divergence(noise, centres, p, q, float(x)) for x in a]) - _ROUNDING * (1.0 + a)
    return as_floats(np.maximum(found, 0.0).reshape(epsilon.shape))


def _summed(noise: Noise, centres: FloatArray, p: FloatArray, q: FloatArray, a: float) -> float:
    points = np.arange(math.floor(centres[0] - noise.reach), math.ceil(centres[-1] + noise.reach) + 1)
    masses = noise.density(points[None, :] - centres[:, None])
    return float(np.maximum((p - a * q) @ masses, 0.0).sum(axis=1).max())


def _integrated(noise: Noise, centres: FloatArray, p: FloatArray, q: FloatArray, a: float) -> float:
    edges = np.union1d(np.linspace(centres[0] - noise.reach, centres[-1] + noise.reach, _CELLS + 1), centres)
    coarse = np.maximum((p - a * q) @ _cells(noise, centres, edges), 0.0).sum(axis=1)
    closest = np.argsort(coarse)[-_REFINED:]
    return max(_refined(noise, centres, p[i] - a * q[i], edges) for i in closest)


def _refined(noise: Noise, centres: FloatArray, weights: FloatArray, edges: FloatArray) -> float:
    """The integral of [sum_k weights[k] density(t - centres[k])]+, cells split where the sign changes."""
    for _ in range(_SPLITS):
        densities = noise.density(edges - centres[:, None])
        positive = weights @ densities > _NOISE * (np.abs(weights) @ densities)
        change = np.flatnonzero(positive[1:] != positive[:-1])
        cuts = np.linspace(edges[change], edges[change + 1], _PIECES + 1)
        edges = np.union1d(edges, cuts.ravel())
    return float(np.maximum(weights @ _cells(noise, centres, edges), 0.0).sum())


def _cells(noise: Noise, centres: FloatArray, edges: FloatArray) -> FloatArray:
    """Mass (K, cells) of the noise around each centre between the edges, the two ends unbounded.

    Centres are edges and the noise is symmetric, so a cell lies on one side of every centre and its mass is a
    difference of two tails, which keeps its digits far out.
    """
    tails = noise.below(-np.abs(edges - centres[:, None]))
    return np.concatenate([tails[:, :1], np.abs(np.diff(tails, axis=1)), tails[:, -1:]], axis=1)
