"""Linear-fractional programs over functions on a graph: the largest p.g / q.g with g[tail] <= a g[head].

Normalised by q.g = 1 (Charnes & Cooper 1962), solved by HiGHS. Every extreme g is a^f with a whole-valued f
that changes by at most 1 along an edge (a spanning tree of constraints holds with equality). The solver's g
is rounded to such an f, made feasible, and its ratio recomputed: the answer is reached by a real g, so it
never exceeds the truth but by rounding (1e-13 relative). When the solver's own optimum is more than 1e-7
away, or it fails, the program is solved again in better scaled variables, and in the end an error is raised.
Steps of other lengths, g[tail] <= a^length g[head], are for weighted samples: there f is not whole-valued and is not
rounded, only made feasible, which again never exceeds the truth.
"""

import math
from collections.abc import Iterator
from dataclasses import dataclass, field, replace

import numpy as np
from numpy.typing import NDArray

from ..numerics.log_domain import FloatArray, as_floats
from ..numerics.roots import NumericalFailure
from .symmetry import Orbit

_AGREE = 1e-7  # largest gap between the solver's optimum and the recomputed one
_EASY = 4.0  # log ratios up to here need no second, better scaled solution
_ROUNDS = 8
_SMALLEST = 1e-4  # epsilons are halved down to here when the solver fails


@dataclass(frozen=True, slots=True)
class Graph:
    """Samples (orbits) one step apart; edges in both directions, g[tail] <= a g[head]."""

    nodes: tuple[Orbit, ...]
    tails: NDArray[np.intp]
    heads: NDArray[np.intp]
    lengths: FloatArray | None = field(default=None)  # of the steps; None: all one, and f is whole-valued


@dataclass(frozen=True, slots=True)
class Block:
    """Maximise p.g / q.g over one graph at one epsilon; `place` is whose answer it is."""

    place: tuple[int, int, int]  # program, epsilon, graph and direction
    graph: Graph
    p: FloatArray
    q: FloatArray
    epsilon: float
    levels: FloatArray  # the best f known; the program is solved in y = g / e^(epsilon f), which is well scaled
    value: float = -math.inf  # the log ratio of that f
    agreed: bool = False  # whether the solver's own optimum was that value


def optimal(blocks: list[Block]) -> Iterator[Block]:
    """Each block at its optimum; large ratios are solved again, scaled by their own solution."""
    for _ in range(_ROUNDS):
        solved = _solve(blocks)
        if solved is None and len(blocks) > 1:  # one failing block makes the whole program fail
            for block in blocks:
                yield from optimal([block])
            return
        if solved is None:
            break
        again: list[Block] = []
        for block, y in zip(blocks, solved, strict=True):
            better, optimum = _improved(block, y)
            best = better if better.value > block.value else block
            agreed = abs(best.value - optimum) <= _AGREE
            if agreed and better.value <= max(_EASY, block.value + _AGREE):
                yield best
            else:
                again.append(replace(best, agreed=agreed))
        blocks = again
        if not blocks:
            return
    yield from (block if block.agreed else _from_smaller_epsilon(block) for block in blocks)


def _from_smaller_epsilon(block: Block) -> Block:
    """The optimum when the solver fails: start from the whole-valued f that is best at half the epsilon."""
    if block.value > -math.inf or block.epsilon < _SMALLEST:
        raise NumericalFailure("the linear program could not be solved with any scaling of its variables")
    half = next(optimal([replace(block, epsilon=block.epsilon / 2)]))
    return next(optimal([_with_levels(block, half.levels)]))


def _with_levels(block: Block, levels: FloatArray) -> Block:
    """The block with another f and its log ratio."""
    p, q = _scaled(replace(block, levels=levels))
    return replace(block, levels=levels, value=math.log(float(p.sum()) / float(q.sum())))


def _improved(block: Block, y: FloatArray) -> tuple[Block, float]:
    """The block with the extreme f next to the solver's y, and the log ratio of y itself."""
    p, q = _scaled(block)
    f = _levels(block.graph, block.levels, y, block.epsilon)
    return _with_levels(block, f), math.log(float(p @ y) / float(q @ y))


def _scaled(block: Block) -> tuple[FloatArray, FloatArray]:
    scale = np.exp(block.epsilon * (block.levels - block.levels.max()))
    return block.p * scale, block.q * scale


def _solve(blocks: list[Block]) -> list[FloatArray] | None:
    """One block-diagonal program, each block normalised to q.g = 1; None when the solver fails."""
    from scipy.optimize import linprog  # slow to import
    from scipy.sparse import csr_array

    starts = np.concatenate([[0], np.cumsum([b.p.size for b in blocks])])
    p, q = zip(*(_scaled(b) for b in blocks), strict=True)
    tails = np.concatenate([b.graph.tails + s for b, s in zip(blocks, starts[:-1], strict=True)])
    heads = np.concatenate([b.graph.heads + s for b, s in zip(blocks, starts[:-1], strict=True)])
    rows = tails.size
    entries = np.column_stack([np.ones(rows), -np.concatenate([_slopes(b) for b in blocks])])
    ends = np.column_stack([tails, heads])
    adjacent = csr_array((entries.ravel(), ends.ravel(), np.arange(0, 2 * rows + 1, 2)), shape=(rows, int(starts[-1])))
    total = csr_array((np.concatenate([x / x.sum() for x in q]), np.arange(starts[-1]), starts))
    result = linprog(
        -np.concatenate([x / x.sum() for x in p]),
        A_ub=adjacent,
        b_ub=np.zeros(rows),
        A_eq=total,
        b_eq=np.ones(len(blocks)),
        method="highs-ds",
        options={"primal_feasibility_tolerance": 1e-10, "dual_feasibility_tolerance": 1e-10},
    )
    return np.split(np.asarray(result.x), starts[1:-1]) if result.status == 0 else None


def _slopes(block: Block) -> FloatArray:
    """g[tail] <= a g[head] in terms of y: a e^(epsilon (f[head] - f[tail])), between 1 and a^2."""
    f, length = block.levels, _lengths(block.graph)
    return as_floats(np.exp(block.epsilon * (length + f[block.graph.heads] - f[block.graph.tails])))


def _lengths(graph: Graph) -> FloatArray:
    return np.ones(graph.tails.size) if graph.lengths is None else graph.lengths


def _levels(graph: Graph, start: FloatArray, y: FloatArray, epsilon: float) -> FloatArray:
    """Numbers f, at most a step's length apart along it, with e^(epsilon f) close to y e^(epsilon start)."""
    with np.errstate(divide="ignore"):
        f: FloatArray = start + np.log(np.maximum(y, 0.0) / y.max()) / epsilon
    f = np.rint(f) if graph.lengths is None else f
    length = _lengths(graph)
    while True:
        raised = f.copy()
        np.maximum.at(raised, graph.tails, f[graph.heads] - length)
        if np.array_equal(raised, f):
            return f
        f = raised
