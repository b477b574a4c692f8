"""The gradients of one batch: their norms, and then their weighted sum, from uses of parameters (`uses.py`)."""

import itertools
from functools import partial
from typing import Any

import torch

from .layers import Part
from .precision import full_precision, shortened
from .scratch import Lease, Scratch
from .uses import Measured, Written, measured, precision_of

Tensor = Any
Gradients = list[tuple[Any, Tensor]]
_Found = tuple[Any, Any, Any, Measured]  # parameter, its rows or None for all, precision of the sum


class Recorded:
    """One batch: the norms of its gradients, and then their weighted sum. In full precision, whatever the model's.

    Uses come as the backward pass finds them. A parameter that is used once is measured at once, so what is held of it
    is what its sum needs; `often` are the ids of the others, whose uses must all be there first.
    """

    def __init__(self, kind: str, scratch: Scratch, often: set[int], *, written: bool = False) -> None:
        self._kind, self._lease, self._often, self._is_written = kind, Lease(scratch), often, written
        self._waiting: list[Part] = []
        self._found: list[_Found] = []
        self._squares: list[Tensor] = []

    def hear(self, parts: list[Part]) -> None:
        """Uses of parameters by one call of a layer; called in full precision."""
        self._waiting += [part for part in parts if id(part.parameter) in self._often]
        self._measure([part for part in parts if id(part.parameter) not in self._often])

    def finish(self, nothing: Tensor) -> None:
        """Everything was heard. `nothing` is 0 for records that have a gradient at all; others have no number there,
        and as norm."""
        with torch.no_grad(), full_precision(self._kind):
            self._measure(self._waiting)
            self._waiting = []
            self.norms: Tensor = (sum_of(self._squares) + nothing if self._squares else nothing).sqrt()
            self.on_host = self.norms.cpu()  # the one wait for the device
            if not bool(torch.isfinite(self.on_host).all()):
                usable = torch.isfinite(self.norms)
                self._found = [(*where, one.only(usable)) for *where, one in self._found]

    def _measure(self, parts: list[Part]) -> None:
        for found in _measured(parts, self._lease, self._is_written):
            self._found.append(found)
            self._squares.append(found[-1].squares)

    def written(self) -> list[tuple[Any, tuple[int, int] | None, Tensor]]:
        """(parameter, its rows or None for all, gradients of the records), if they were written out."""
        return [(parameter, rows, one.rows) for parameter, rows, _, one in self._found]

    def weighted(self, weights: Tensor) -> Gradients:
        """(parameter, sum over records of weight times gradient), for every trainable parameter."""
        sums: dict[int, tuple[Any, Tensor]] = {}
        device = self.norms.device
        short = {dtype: shortened(weights, dtype).to(device) for dtype in {dtype for *_, dtype, _ in self._found}}
        with torch.no_grad(), full_precision(self._kind):
            for parameter, rows, dtype, one in self._found:
                total = one.summed(short[dtype])
                if rows is None:
                    sums[id(parameter)] = parameter, total
                else:
                    none = torch.zeros(parameter.shape, dtype=total.dtype, device=total.device)
                    sums.setdefault(id(parameter), (parameter, none))[1][slice(*rows)] = total
        return list(sums.values())

    def give_back(self) -> None:
        """Everything of this batch is done: its memory may serve the next one."""
        self._found = []
        self._lease.give_back()


def sum_of(squares: list[Tensor]) -> Tensor:
    """Added up in one pass."""
    return squares[0] if len(squares) == 1 else torch.stack(squares).sum(dim=0)


def _measured(parts: list[Part], lease: Lease, written: bool) -> list[_Found]:
    """Each parameter, or each of the maps packed into it, with all of its uses together."""
    groups: dict[int, list[Part]] = {}
    for part in parts:
        groups.setdefault(id(part.parameter), []).append(part)
    found = []
    for group in groups.values():
        parameter, ranges = group[0].parameter, {part.rows for part in group}
        if _overlap(ranges):
            group, ranges = [_as_whole(part) for part in group], {None}
        for rows in ranges:
            uses = [part.use for part in group if part.rows == rows]
            shape = parameter.shape if rows is None else (rows[1] - rows[0], *parameter.shape[1:])
            product = partial(_product, lease, (id(parameter), rows))
            one = measured(uses, shape, product=product, written=written)
            found.append((parameter, rows, precision_of(uses[0]), one))
    return found


def _product(lease: Lease, place: Any, part: int, a: Tensor, b: Tensor) -> Tensor:
    return lease.product((place, part), a, b)


def _overlap(ranges: set[Any]) -> bool:
    """Whether some rows are used as parts of different maps, so that their gradients must be added up first."""
    if ranges == {None}:
        return False
    given = sorted(rows for rows in ranges if rows is not None)
    return None in ranges or any(a[1] > b[0] for a, b in itertools.pairwise(given))


def _as_whole(part: Part) -> Part:
    """The gradient of the whole parameter, written out."""
    if part.rows is None:
        return part
    start, stop = part.rows
    rows = part.use.written((stop - start, *part.parameter.shape[1:]))
    whole = rows.new_zeros(rows.shape[0], *part.parameter.shape)
    whole[:, start:stop] = rows
    return Part(part.parameter, Written(whole))
