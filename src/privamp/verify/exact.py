"""The exact amplified epsilon of a tiny case, over all epsilon-DP mechanisms, by linear programming.

An event of an epsilon-DP mechanism is a function g > 0 of the sample with g(S) <= e^(eps d(S,T)) g(T), and
every such g (scaled) is one. The tight epsilon' is the largest log of sum P(S) g(S) / sum P'(S) g(S), in
both orders: a linear-fractional program, normalised by sum P' g = 1 (Charnes & Cooper 1962).

Nodes. Any g on the possible samples extends to all samples (McShane), so a node set suffices when it holds a
shortest path between any two possible samples. Add/remove: all sub-multisets of possible samples (down
from S to the intersection of S and T, then up to T). Replace-one: all multisets of the same size in which no
id appears more often than in some possible sample (swap one id at a time). Then constraints on adjacent
pairs imply all others; imposing all pairs is numerically unreliable. Samples of different sizes are
unrelated under replace-one, and the largest ratio of the sizes counts.

Weighted samples (add/remove): a record may count for several steps, or for part of one, so that removing it
costs its own length times epsilon.
"""

import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from fractions import Fraction
from functools import lru_cache
from itertools import product
from typing import TYPE_CHECKING

import numpy as np

from ..core.neighbors import Kind, Neighbors
from ..errors import NoTheorem
from ..numerics.log_domain import FloatArray
from ..validation import nonnegative, one_of
from .fractional import Block, Graph, optimal
from .symmetry import Law, Orbit, Units, alike, collect, fold

if TYPE_CHECKING:
    from ..core.design import Design
    from ..core.population import Population

_BATCH = 64  # blocks solved at once
_VARIABLES = 4000  # and their variables


def exact_epsilon(
    design: "Design",
    population: "int | Population",
    neighbors: Neighbors,
    epsilon: float,
    mechanism_neighbors: Neighbors | None = None,
) -> float:
    """The smallest epsilon' true of every epsilon-DP mechanism on a sample by this design.

    `population` is the number of records (under add/remove, of the smaller population). The mechanism is
    epsilon-DP under `mechanism_neighbors` (the same relation when None).
    """
    metric = (mechanism_neighbors or neighbors).kind
    return max(program.epsilon(epsilon) for program in programs(design, population, neighbors, metric))


def exact_epsilon_of_laws(
    first: Mapping[Units, Fraction], second: Mapping[Units, Fraction], epsilon: float, metric: Kind
) -> float:
    """The largest log ratio, in both orders, between two laws of a sample read by epsilon-DP mechanisms.

    >>> half = Fraction(1, 2)
    >>> old, new = {(0,): half, (1,): half}, {(1,): half, (2,): half}
    >>> round(exact_epsilon_of_laws(old, new, 1.0, "replace-one"), 6)
    0.620115
    """
    return Program(first, second, metric).epsilon(epsilon)


def programs(
    design: "Design", population: "int | Population", neighbors: Neighbors, metric: Kind
) -> "tuple[Program, ...]":
    """One program per pair of neighbouring populations, to be solved at several epsilons."""
    return tuple(
        Program(collect(design.law(one)), collect(design.law(other)), metric, steps_of_both(design, one, other))
        for one, other in design.neighboring(population, neighbors)
    )


def steps_of_both(design: "Design", one: "Population", other: "Population") -> dict[int, float] | None:
    """How many of the mechanism's steps every record of two populations counts for; None: one each."""
    first, second = design.moves(one), design.moves(other)
    return None if first is None or second is None else {**first, **second}


class Program:
    """Two laws folded by symmetry, with the graph of samples between them."""

    __slots__ = ("nodes", "tasks")

    def __init__(self, first: Law, second: Law, metric: Kind, steps: Mapping[int, float] | None = None) -> None:
        one_of(("add-remove", "replace-one"), metric=metric)
        first, second = collect(first.items()), collect(second.items())
        groups = alike(first, second) if steps is None else tuple((i,) for i in sorted(steps))
        p, q = fold(first, groups), fold(second, groups)
        graphs = _graphs(frozenset(p) | frozenset(q), metric)
        if steps is not None:
            if metric != "add-remove":
                raise NoTheorem("weighted samples are compared under add-remove only")
            graphs = tuple(_with_lengths(graph, [steps[i] for (i,) in groups]) for graph in graphs)
        self.nodes = sum(len(graph.nodes) for graph in graphs)  # variables of one linear program
        self.tasks = [  # (graph, p, q) per graph and direction
            (graph, _masses(one, graph), _masses(other, graph)) for graph in graphs for one, other in ((p, q), (q, p))
        ]

    def epsilon(self, epsilon: float) -> float:
        """The tight epsilon' for mechanisms with this epsilon; inf when nothing bounds it."""
        return self.epsilons([epsilon])[0]

    def epsilons(self, epsilons: Sequence[float]) -> list[float]:
        """The same at many epsilons, all solved as one block-diagonal program (a tenth of the time)."""
        return [float(r) for r in _ratios([(self, epsilons)])[0].max(axis=1)]

    def directed(self, epsilons: Sequence[float]) -> FloatArray:
        """The tight epsilon' of the first law over the second, and of the second over the first, shape (n, 2)."""
        return directed_together([(self, epsilons)])[0]


def directed_together(asked: Sequence[tuple[Program, Sequence[float]]]) -> list[FloatArray]:
    """What `directed` says of each program at its epsilons, many programs solved as one."""
    return [
        np.stack([np.max(ratios[:, start::2], axis=1, initial=0.0) for start in (1, 2)], axis=1)
        for ratios in _ratios(asked)
    ]


def _ratios(asked: Sequence[tuple[Program, Sequence[float]]]) -> list[FloatArray]:
    """For each program one row per epsilon; after a zero, a column per graph and direction in turn."""
    found: list[FloatArray] = []
    blocks: list[Block] = []
    for k, (program, epsilons) in enumerate(asked):
        for epsilon in epsilons:
            nonnegative(epsilon=epsilon)
        ratios = np.zeros((len(epsilons), 1 + len(program.tasks)))  # a ratio below one never counts
        for (i, epsilon), (j, (graph, p, q)) in product(enumerate(epsilons), enumerate(program.tasks, start=1)):
            known = _without_solving(p, q, epsilon)
            if known is None:
                blocks.append(Block((k, i, j), graph, p, q, epsilon, np.zeros(p.size)))
            else:
                ratios[i, j] = known
        found.append(ratios)
    for batch in _batches(blocks):
        for block in optimal(batch):
            k, i, j = block.place
            found[k][i, j] = block.value
    return found


def _batches(blocks: Sequence[Block]) -> Iterator[list[Block]]:
    """Blocks that are solved at once, in order: never so many variables that one large program is slower than two."""
    batch: list[Block] = []
    for block in blocks:
        if batch and (len(batch) == _BATCH or sum(b.p.size for b in batch) + block.p.size > _VARIABLES):
            yield batch
            batch = []
        batch.append(block)
    if batch:
        yield batch


def _masses(law: Mapping[Orbit, Fraction], graph: Graph) -> FloatArray:
    return np.array([float(law.get(node, 0)) for node in graph.nodes])


@lru_cache(maxsize=4096)
def _graphs(support: frozenset[Orbit], metric: Kind) -> tuple[Graph, ...]:
    """The connected graphs that hold all possible samples: one, or one per sample size."""
    if metric == "add-remove":
        return (_walk(support, _smaller),)
    caps = tuple(max(o[k][0] for o in support) for k in range(len(next(iter(support)))))
    sizes: dict[int, set[Orbit]] = {}
    for o in support:
        sizes.setdefault(sum(map(sum, o)), set()).add(o)
    return tuple(_walk(starts, lambda o: _swapped(o, caps)) for _, starts in sorted(sizes.items()))


def _walk(starts: Iterable[Orbit], steps: Callable[[Orbit], Iterator[Orbit]]) -> Graph:
    """Everything reachable from `starts`, numbered in the order found."""
    number = {o: i for i, o in enumerate(sorted(starts))}
    queue = list(number)
    links: set[tuple[int, int]] = set()
    for o in queue:  # grows while it is read
        for other in steps(o):
            if other not in number:
                number[other] = len(number)
                queue.append(other)
            if other != o:
                links |= {(number[o], number[other]), (number[other], number[o])}
    ends = np.array(sorted(links), dtype=np.intp).reshape(-1, 2)
    return Graph(tuple(queue), ends[:, 0], ends[:, 1])


def _with_lengths(graph: Graph, lengths: list[float]) -> Graph:
    """Every step as long as the record that it adds or removes; here every id is a group of its own."""
    drawn = np.array([[group[0] for group in node] for node in graph.nodes], dtype=np.float64)
    changed = np.abs(drawn[graph.tails] - drawn[graph.heads])
    return replace(graph, lengths=changed @ np.asarray(lengths))


def _smaller(o: Orbit) -> Iterator[Orbit]:
    """One id drawn once less."""
    return (_changed(o, k, times, -1) for k, group in enumerate(o) for times in set(group) if times > 0)


def _swapped(o: Orbit, caps: tuple[int, ...]) -> Iterator[Orbit]:
    """One draw given to another id."""
    for less in _smaller(o):
        for k, group in enumerate(less):
            for times in set(group):
                if times < caps[k]:
                    yield _changed(less, k, times, 1)


def _changed(o: Orbit, k: int, times: int, by: int) -> Orbit:
    group = list(o[k])
    group[group.index(times)] = times + by
    return (*o[:k], tuple(sorted(group, reverse=True)), *o[k + 1 :])


def _without_solving(p: FloatArray, q: FloatArray, epsilon: float) -> float | None:
    if not p.any():
        return -math.inf
    if not q.any():
        return math.inf
    return math.log(p.sum() / q.sum()) if epsilon == 0.0 or p.size == 1 else None
