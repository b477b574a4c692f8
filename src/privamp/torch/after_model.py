"""What a training loop does between the model and the loss: it must keep records apart as the model does.

The loop cannot be tried on made-up records, so every batch is looked at: half of the losses must have a derivative of
exactly 0 by the rows of the other half in what the model gave. If some of that has no rows of records, or is hidden in
an object, the outputs of the layers next to the loss are looked at, too. Which half differs from step to step, first
those whose number has a binary digit, then those that lack it: that one record's loss looks at another record is seen
at one step in twice as many as there are digits. In-batch negatives and centred outputs fail at once. What a loop does
to records before the model (mixing pictures), or to numbers that are detached, leaves no trace, and stays an
assumption.
"""

from typing import Any

import torch
from torch.utils import _pytree as trees

from ..errors import InvalidInput

Tensor = Any
_NO_RECORDS = (bool, int, float, str, type(None))


class Outputs:
    """What the model gave in the passes of a batch, where it enters the graph."""

    def __init__(self) -> None:
        self._rows: dict[int, set[Any]] = {}  # output -> rows per record, at every size tried; None: no such number
        self.forget()
        self._scales: tuple[float, ...] | None = None  # of the losses, the same in every batch

    def forget(self) -> None:
        """A new batch."""
        self._edges: list[tuple[int, Any]] = []
        self._is_hidden = False  # something that the model gave cannot be looked at

    def learn(self, output: Any, records: int) -> None:
        """A pass of made-up records shows which outputs have rows of records."""
        for at, one in _tensors(output):
            rows, rest = divmod(one.shape[0], records) if one.dim() else (0, 0)
            self._rows.setdefault(at, set()).add(None if rest or not rows else rows)

    def hear(self, output: Any, records: int) -> None:
        """A pass of a batch."""
        self._is_hidden |= not all(isinstance(leaf, (torch.Tensor, *_NO_RECORDS)) for leaf in _leaves(output))
        for at, one in _tensors(output):
            rows = self._rows.get(at, {None})
            if len(rows) == 1 and rows != {None} and one.dim() and one.shape[0] == records * next(iter(rows)):
                self._edges.append((records, torch.autograd.graph.get_gradient_edge(one)))
            else:
                self._is_hidden = True

    def require_scales(self, scales: tuple[float, ...]) -> None:
        """Raise unless losses are multiplied by the numbers that they were in the first batch."""
        if self._scales is None:
            self._scales = scales
        pairs = zip(scales, self._scales, strict=False)
        if len(scales) != len(self._scales) or not all(abs(a - b) <= 1e-9 * abs(b) for a, b in pairs):
            raise InvalidInput(
                "the loss must be multiplied by the same number in every batch: one that follows the batch, such as "
                "its size, lets a record change what others add, and then steps taken so have no guarantee; leave it "
                "out, or change the learning rate instead"
            )

    def require_apart(self, losses: Tensor, step: int, layers: list[Any]) -> None:
        """Raise if the loss of one record depends on what the model gave for another; `layers`: where the outputs of
        the layers next to the loss enter the graph."""
        edges = [edge for records, edge in self._edges if records == len(losses)]
        is_hidden = self._is_hidden
        self.forget()
        if len(losses) < 2 or not losses.requires_grad:
            return
        if is_hidden:
            edges += layers
        if not edges:
            return
        bit = step // 2 % (len(losses) - 1).bit_length()
        is_asked = (torch.arange(len(losses), device=losses.device) >> bit) & 1 != step % 2
        backs = torch.autograd.grad(losses, edges, is_asked.to(losses.dtype), retain_graph=True, allow_unused=True)
        for back in backs:
            if back is None:
                continue
            others = back.reshape(len(losses), -1)[~is_asked]
            if bool(((others != 0) & torch.isfinite(others)).any()):
                raise InvalidInput(
                    "records are mixed: the loss of one record depends on what the model gave for another; keep them "
                    "apart between the model and the criterion (no in-batch negatives, no mean of the batch)"
                )


def _tensors(output: Any) -> list[tuple[int, Tensor]]:
    """Tensors in an output that can be differentiated, with their places."""
    return [(at, t) for at, t in enumerate(_leaves(output)) if isinstance(t, torch.Tensor) and t.requires_grad]


def _leaves(output: Any) -> list[Any]:
    found = output if isinstance(output, dict) else trees.tree_leaves(output)
    values = list(found.values()) if isinstance(found, dict) else found
    return [leaf for value in values for leaf in trees.tree_leaves(value)]
