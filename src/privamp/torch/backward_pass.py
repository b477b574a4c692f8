"""One backward pass that hands out the derivative of every recorded output as soon as it is known.

The pass stops at the recorded outputs below which there are no others: no gradient of a parameter is computed. What is
handed out is not kept here, so what nobody needs any more is free before the pass is over.
"""

from collections.abc import Callable
from typing import Any

import torch

Tensor = Any
Found = Callable[[int, Tensor | None], None]
"""(number of the edge, derivative or None if the loss does not depend on it)."""


def go_back(loss: Tensor, edges: list[Any], found: Found) -> None:
    """Differentiate a loss by all of these edges of its graph."""
    last = lowest(edges)
    hooks = [_tap(edge, at, found) for at, edge in enumerate(edges) if at not in last]
    try:
        backs = list(torch.autograd.grad(loss, [edges[at] for at in last], allow_unused=True))
    finally:
        for hook in hooks:
            hook.remove()
    for number, at in enumerate(last):
        back, backs[number] = backs[number], None
        found(at, back)


def _tap(edge: Any, at: int, found: Found) -> Any:
    def tapped(backs: tuple[Tensor | None, ...]) -> None:
        found(at, backs[edge.output_nr])

    return edge.node.register_prehook(tapped)


def lowest(edges: list[Any]) -> list[int]:
    """The numbers of the edges below which there is no other one."""
    nodes = {edge.node for edge in edges}
    dead: set[Any] = set()  # no recorded output is below
    return [at for at, edge in enumerate(edges) if not _has_below(edge.node, nodes, dead)]


def above(loss: Tensor, edges: list[Any]) -> tuple[list[Any], set[int]]:
    """On what a loss depends in some way that passes no edge before: edges, and the ids of parameters."""
    wanted = {edge.node for edge in edges}
    seen: set[Any] = set()
    todo, found = [loss.grad_fn], set()
    while todo:
        node = todo.pop()
        if node is None or node in seen:
            continue
        seen.add(node)
        if node in wanted:
            found.add(node)
        else:
            todo += [below for below, _ in node.next_functions]
    leaves = {id(node.variable) for node in seen if hasattr(node, "variable")}
    return [edge for edge in edges if edge.node in found], leaves


def _has_below(node: Any, nodes: set[Any], dead: set[Any]) -> bool:
    seen, todo = set(), [node]
    while todo:
        for below, _ in todo.pop().next_functions:
            if below is None or below in seen or below in dead:
                continue
            if below in nodes:
                return True
            seen.add(below)
            todo.append(below)
    dead |= seen
    return False
