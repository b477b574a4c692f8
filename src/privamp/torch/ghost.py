"""Hooks that record the input and the output gradient of each layer, and compute norms and weighted sums.

One forward and one backward pass per batch; the backward pass stops at the layers' outputs, so no gradient of a
parameter is computed twice. Nothing of a batch is used once its weighted sum is made; only memory is used again.
"""

import contextlib
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import nn

from ..errors import InvalidInput
from .backward_pass import go_back
from .compiled import outside
from .half_products import is_kept
from .layers import Part, rule_of
from .layout import Layout, layout_of
from .memory_format import channels_first, channels_last
from .precision import HALF, as_cast, full_precision, widened
from .recorded import Recorded
from .scratch import Scratch
from .swapping import Slots, row_each, slots_of, swap
from .uses import Written

Tensor = Any


Parts = Callable[[Tensor, Tensor], list[Part]]


@dataclass(slots=True)
class _Call:
    """`may_keep_halves`: its parts may be of bfloat16 numbers, where those are added up in float32."""

    name: str
    parameters: tuple[Any, ...] = field(repr=False)
    parts: Parts = field(repr=False)
    inputs: Tensor = field(repr=False)
    edge: Any = field(repr=False)
    shape: Any  # of the output
    may_keep_halves: bool = False

    def found(self, back: Tensor) -> list[Part]:
        """Uses of parameters, from the derivative of the output; what went in is let go."""
        inputs, self.inputs = self.inputs, None
        back = back.reshape(self.shape)
        if not (self.may_keep_halves and is_kept(back) and is_kept(inputs)):
            back = widened(back)
            inputs = inputs.to(back.dtype) if inputs.is_floating_point() else inputs  # ids stay ids
        return self.parts(inputs, back)


class GradientRecorder:
    """Attached to a module; listens only between `listen` and `measure`. `apart`: modules computed record by record."""

    def __init__(self, module: Any, apart: frozenset[str] = frozenset()) -> None:
        self._module, self.apart = module, apart
        self.layout: Layout = layout_of(module, apart)
        self._follows: dict[tuple[str, int], list[bool]] = {}  # does an input belong to records? known by trial
        self._is_learning = False
        self._scratch = Scratch()
        self._records: int | None = None
        self.shapes: dict[str, int] = {}  # dimensions of length 1 between the records and an own parameter; -1: its own
        self._own = Slots([], [])
        self._is_going_back = False
        self._depth = 0  # of calls of the module itself
        self.is_half = False  # some layer computes in half precision, by autocast inside the module perhaps
        self.is_channels_last, self.may_be_channels_last = False, True  # inputs of convolutions; known by trial
        self.forget()
        self.eager = eager = outside(module)
        rules = {name: rule_of(layer) for name, layer in self.layout.heard.items()}
        self._replaced = [kind(self, name, layer) for name, (layer, kind) in self.layout.replaced.items()]
        self._hooks = [
            layer.register_forward_hook(
                eager(lambda m, args, kwargs, out, name=name: self._heard(name, m, rules[name], args, kwargs, out)),
                with_kwargs=True,
            )
            for name, layer in self.layout.heard.items()
        ]
        tables = {n: m for n, m in module.named_modules() if isinstance(m, nn.Embedding)} | self.layout.heard
        self._tables = tables
        self._hooks += [
            layer.register_forward_pre_hook(
                eager(lambda m, a, k, name=name: self._entering(name, m, a, k)), with_kwargs=True
            )
            for name, layer in tables.items()
        ]
        self._hooks += [
            module.register_forward_pre_hook(eager(lambda m, args: self._begins(m))),
            module.register_forward_hook(eager(lambda m, args, out: self._ends(m, out)), always_call=True),
        ]

    def listen(self, records: int) -> None:
        """Expect one forward pass of so many records."""
        self.forget()
        self._records = self._size = records
        self._depth = 0

    def forget(self) -> None:
        """Drop what was heard, and expect nothing."""
        self._size = 0
        self._records = None
        self._calls: list[_Call] = []
        self.heard_outside = False  # a part of the module was called, and not the module
        self._strangers: list[Tensor] = []  # which records have ids that an embedding does not know
        self._turns: dict[str, int] = {}

    @property
    def expected(self) -> int:
        """How many records the pass has."""
        return self._size

    @contextlib.contextmanager
    def channels_first(self) -> Iterator[None]:
        """Convolutions are computed as the model's code says, until the block ends."""
        before, self.is_channels_last = self.is_channels_last, False
        try:
            yield
        finally:
            self.is_channels_last = before

    @contextlib.contextmanager
    def learning(self) -> Iterator[None]:
        """Forward passes of made-up batches show which inputs follow their size: those do at every size."""
        self._is_learning = True
        try:
            yield
        finally:
            self._is_learning = False

    def edges(self) -> tuple[list[str], list[Any]]:
        """Names of the recorded layers, and where their outputs enter the graph."""
        return [call.name for call in self._calls], [call.edge for call in self._calls]

    @property
    def is_listening(self) -> bool:
        """Whether a forward pass is expected."""
        return self._records is not None

    @property
    def is_tapping(self) -> bool:
        """Whether layers compute by steps: while listening, and where checkpoints compute again on the way back."""
        return self._records is not None or self._is_going_back

    def detach(self) -> None:
        """Take the hooks off the module."""
        for hook in self._hooks:
            hook.remove()
        for replaced in self._replaced:
            replaced.restore()

    def following(self, name: str, tensors: list[Tensor]) -> list[bool]:
        """Which of the inputs of this call belong to records, a row each; the others belong to all."""
        if self._is_going_back:
            return self._followed(name)
        turn = self._turns.get(name, 0)
        self._turns[name] = turn + 1
        now = [t.shape[:1] == (self.expected,) for t in tensors]
        if self._is_learning:
            known = self._follows.get((name, turn), now)
            self._follows[name, turn] = [a and b for a, b in zip(known, now, strict=True)]
        known = self._follows.get((name, turn), [True] * len(now))
        if len(known) != len(now) or any(k and not n for k, n in zip(known, now, strict=True)):
            raise _not_apart(name)
        if any(not k and t.requires_grad and self._is_learning for k, t in zip(known, tensors, strict=True)):
            raise _not_apart(name)  # computed from what was trained, so it should be the records'
        return known

    def _followed(self, name: str) -> list[bool]:
        """On the way back, where checkpoints compute again in another order."""
        every = [known for (called, _), known in self._follows.items() if called == name]
        if any(known != every[0] for known in every):
            raise InvalidInput(
                f"layer {name!r} is called with inputs of records and with inputs of all, and computed again on the "
                "way back; leave it out of activation checkpointing"
            )
        return every[0] if every else [True]

    def for_each(self, name: str, x: Tensor) -> Tensor:
        """An input with a row per record: what belongs to all is given to each."""
        if self.following(name, [x])[0]:
            return x
        return x.expand(self._size, *(x.shape[1:] if x.shape[:1] == (1,) else x.shape))

    def hear(
        self, name: str, used: Iterable[Any], inputs: Tensor, output: Tensor, parts: Parts, *, is_linear: bool = False
    ) -> None:
        """A use of these parameters from this input to this output."""
        if self._records is None or not torch.is_grad_enabled() or not output.requires_grad:
            return
        self.heard_outside |= self._depth == 0
        self.is_half |= output.dtype in HALF
        if inputs.shape[:1] != (self._records,) or output.shape[:1] != (self._records,):
            raise _not_apart(name)
        # The edge is taken now: an activation that works in place would move it later.
        edge = torch.autograd.graph.get_gradient_edge(_whole(output))
        parameters = tuple(p for p in used if p is not None and p.requires_grad)
        self._calls.append(_Call(name, parameters, parts, inputs, edge, output.shape, is_linear))

    def hear_rows(self, name: str, parameter: Any, rows: Tensor) -> None:
        """A tensor with a row per record stands for this parameter."""
        self.hear(name, [parameter], rows.detach(), rows, lambda _, back: [Part(parameter, Written(back))])

    def _heard(self, name: str, layer: Any, rule: Any, args: Any, kwargs: Any, output: Tensor) -> None:
        if self._records is not None and torch.is_grad_enabled() and self._is_own(name, layer):
            inputs = (args[0] if args else next(iter(kwargs.values()))).detach()
            used, is_linear = layer._parameters.values(), isinstance(layer, nn.Linear)
            self.hear(name, used, inputs, output, lambda a, back: rule(layer, a, back), is_linear=is_linear)

    def _entering(self, name: str, layer: Any, args: Any, kwargs: Any) -> Any:
        """What belongs to all records is given to each; ids that no row of a table has become 0.

        Records with such ids count as nothing: to stop would tell.
        """
        if not self.is_tapping or not (args or kwargs) or not self._is_own(name, layer):
            return None
        first = None if args else next(iter(kwargs))
        x = args[0] if args else kwargs[first]
        if name in self.layout.heard and torch.is_grad_enabled():
            x = self.for_each(name, x)
            x = channels_last(x) if self.is_channels_last and isinstance(layer, nn.Conv2d) else x
            x = as_cast(x) if isinstance(layer, nn.Linear) else x
        if isinstance(layer, nn.Embedding) and x.shape[:1] == (self._size,):
            is_row = (x >= 0) & (x < layer.num_embeddings)
            self._strangers.append(~(is_row.flatten(1).all(dim=1) if x.dim() > 1 else is_row))
            x = x.where(is_row, torch.zeros_like(x))
        return ((x, *args[1:]), kwargs) if args else (args, {**kwargs, first: x})

    def _is_own(self, name: str, layer: Any) -> bool:
        """Whether it is the layer that got the hook, and not one in a copy of the module, which has the hook too."""
        return self._tables[name] is layer

    def _begins(self, module: Any) -> None:
        """The forward pass of the whole module begins: own parameters get a row per record."""
        if self._records is None or module is not self._module:
            return
        self._depth += 1
        for norm in self.layout.still:
            norm.training = False  # also after model.train()
        if self.shapes and torch.is_grad_enabled():
            swap(self._own, self._own_rows())

    def _ends(self, module: Any, output: Any = None) -> Any:
        if module is not self._module:
            return None
        self._depth = max(0, self._depth - 1)
        if self.shapes:
            swap(self._own, self._own.parameters)
        return channels_first(output) if self.is_channels_last and self._records is not None else None

    def give_rows(self, shapes: dict[str, int]) -> None:
        """Own parameters of these names get a row per record, with so many dimensions of length 1 after it (-1: the
        parameter's first dimension, of length 1, becomes that of records).
        """
        self.shapes, self._own = shapes, slots_of(self._module, [self.layout.own[name] for name in shapes])

    def _own_rows(self) -> list[Tensor]:
        every = []
        for (name, between), parameter in zip(self.shapes.items(), self._own.parameters, strict=True):
            one = parameter if between < 0 else parameter.reshape(1, *[1] * between, *parameter.shape)
            every.append(row_each(one, (self._size, *one.shape[1:])))
            self.hear_rows(name, parameter, every[-1])
        return every

    @contextlib.contextmanager
    def _going_back(self, size: int) -> Iterator[None]:
        """Where checkpoints compute again, it is as in the forward pass, but nothing is heard."""
        self._is_going_back, self._size = True, size
        if self.shapes:
            swap(self._own, self._own_rows())
        try:
            yield
        finally:
            self._is_going_back, self._strangers = False, []
            self._ends(self._module)

    def measure(self, losses: Tensor, *, written: bool = False) -> Recorded:
        """Norms of the gradients of `losses`, one loss per record of the pass that was heard; `written`: write them
        all out."""
        calls, strangers, size = self._calls, self._strangers, self._size
        self.forget()
        expected = {*self.layout.heard, *self.layout.replaced, *self.layout.own}
        silent = expected - {call.name for call in calls}
        if silent:
            raise InvalidInput(
                f"layer {min(silent)!r} has trainable parameters but took no part in the batch; call the model once "
                "per batch, call layers as modules (not through their weights), freeze what is not used, and "
                "checkpoint activations with use_reentrant=False"
            )
        counted = Counter(id(parameter) for call in calls for parameter in call.parameters)
        often = {number for number, count in counted.items() if count > 1}
        recorded = Recorded(losses.device.type, self._scratch, often, written=written)

        def hear(call: _Call, back: Tensor | None) -> None:
            if back is not None:
                with torch.no_grad(), full_precision(losses.device.type):
                    recorded.hear(call.found(back))

        if losses.requires_grad:  # else no record has a gradient, which must not stop the run
            with self._going_back(size):
                go_back(losses.sum(), [call.edge for call in calls], lambda at, back: hear(calls[at], back))
        nothing = losses.detach().double() * 0.0
        for unknown in strangers:
            nothing = nothing.masked_fill(unknown, torch.nan)
        recorded.finish(nothing)
        return recorded


def _whole(output: Tensor) -> Tensor:
    """What the output is a view of, if it is all of that in another shape: an activation that works in place puts
    another view in place of this one.
    """
    base = output._base
    is_same = base is not None and base.grad_fn is not None and base.numel() == output.numel()
    return base if is_same and base.is_contiguous() and output.is_contiguous() else output


def _not_apart(name: str) -> InvalidInput:
    return InvalidInput(
        f"layer {name!r} must keep records apart in its first dimension, but its input or output has another length "
        "there than the batch; use batch-first layers, and between drawing and step the model only on the batch"
    )
