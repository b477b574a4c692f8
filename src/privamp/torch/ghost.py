"""Hooks that record the input and the output gradient of each layer, and compute norms and weighted sums.

One forward and one backward pass per batch; the backward pass stops at the layers' outputs, so no gradient of a
parameter is computed twice. Nothing of a batch is kept once its weighted sum is made.
"""

from dataclasses import dataclass, field
from typing import Any

import torch
from torch import nn

from ..errors import InvalidInput
from .layers import Gradients, Measured, measure_of
from .precision import full_precision, shortened, widened

Tensor = Any

_MIXING = (nn.modules.batchnorm._BatchNorm,)  # InstanceNorm too, when it keeps running statistics


@dataclass(slots=True)
class _Call:
    name: str
    layer: Any
    inputs: Tensor = field(repr=False)
    edge: Any = field(repr=False)


class GradientRecorder:
    """Attached to a module; records only between `listen` and `measure`."""

    def __init__(self, module: Any) -> None:
        self._layers = trainable_layers(module)
        self._calls: list[_Call] = []
        self._records: int | None = None
        self._strangers: list[Tensor] = []  # which records have ids that an embedding does not know
        self._hooks = [
            layer.register_forward_hook(lambda m, args, out, name=name: self._heard(name, m, args, out))
            for name, layer in self._layers.items()
        ]
        tables = [layer for layer in module.modules() if isinstance(layer, nn.Embedding)]
        self._hooks += [layer.register_forward_pre_hook(lambda m, args: self._within(m, args)) for layer in tables]

    def listen(self, records: int) -> None:
        """Expect one forward pass of so many records."""
        self._calls, self._records, self._strangers = [], records, []

    def forget(self) -> None:
        """Drop what was recorded, and expect nothing."""
        self._calls, self._records, self._strangers = [], None, []

    def edges(self) -> tuple[list[str], list[Any]]:
        """Names of the recorded layers, and where their outputs enter the graph."""
        return [call.name for call in self._calls], [call.edge for call in self._calls]

    @property
    def is_listening(self) -> bool:
        """Whether a forward pass is expected."""
        return self._records is not None

    def detach(self) -> None:
        """Take the hooks off the module."""
        for hook in self._hooks:
            hook.remove()

    def _heard(self, name: str, layer: Any, arguments: tuple[Any, ...], output: Tensor) -> None:
        if self._records is None or not torch.is_grad_enabled():
            return
        inputs = arguments[0].detach()
        if inputs.shape[:1] != (self._records,) or output.shape[:1] != (self._records,):
            raise InvalidInput(
                f"layer {name!r} must keep records apart in its first dimension, but its input or output has another "
                "length there than the batch; use batch-first layers, and between drawing and step call the model "
                "only on the batch"
            )
        # The edge is taken now: an activation that works in place would move it later.
        self._calls.append(_Call(name, layer, inputs, torch.autograd.graph.get_gradient_edge(output)))

    def _within(self, table: Any, arguments: tuple[Any, ...]) -> tuple[Any, ...] | None:
        """Ids that are not in the table become 0, and their records count as nothing: an error would leak
        information."""
        if self._records is None or not arguments or arguments[0].shape[:1] != (self._records,):
            return None
        ids = arguments[0]
        is_row = (ids >= 0) & (ids < table.num_embeddings)
        self._strangers.append(~(is_row.flatten(1).all(dim=1) if ids.dim() > 1 else is_row))
        return (ids.where(is_row, torch.zeros_like(ids)), *arguments[1:])

    def measure(self, losses: Tensor) -> "Recorded":
        """Norms of the gradients of `losses`, one loss per record of the recorded pass."""
        calls, self._calls, self._records = self._calls, [], None
        strangers, self._strangers = self._strangers, []
        silent = self._layers.keys() - {call.name for call in calls}
        if silent:
            raise InvalidInput(
                f"layer {min(silent)!r} has trainable parameters but took no part in the batch; call the model once "
                "per batch, call layers as modules (not through their weights), and freeze what is not used"
            )
        backs = torch.autograd.grad(losses.sum(), [call.edge for call in calls], allow_unused=True)
        heard: dict[str, tuple[Any, list[Tensor], list[Tensor]]] = {}
        for call, back in zip(calls, backs, strict=True):
            if back is not None:
                _, inputs, sent = heard.setdefault(call.name, (call.layer, [], []))
                inputs.append(_alike(call.inputs, back))
                sent.append(widened(back))
        counts = torch.isfinite(losses.detach())
        for unknown in strangers:
            counts = counts & ~unknown
        return Recorded(list(heard.values()), counts)


def _alike(inputs: Tensor, back: Tensor) -> Tensor:
    """What went in, as numbers of the kind of what came back; ids stay ids."""
    return inputs.to(widened(back).dtype) if inputs.is_floating_point() else inputs


class Recorded:
    """One batch: the norms of its gradients, and then their weighted sum. In full precision, whatever the model's.

    `counts` says which records have a gradient at all; the norm of others is not a number.
    """

    def __init__(self, heard: list[tuple[Any, list[Tensor], list[Tensor]]], counts: Tensor) -> None:
        self._kind, self._dtypes = counts.device.type, [backs[0].dtype for _, _, backs in heard]
        with torch.no_grad(), full_precision(self._kind):
            measured = _measured(heard)
            squares = sum((m.squares for m in measured), start=torch.zeros_like(counts, dtype=torch.float64))
            self.norms: Tensor = torch.where(counts, squares.sqrt(), torch.nan)
            usable = torch.isfinite(self.norms)
            if not bool(usable.all()):  # 0 times nan is nan, so those records leave the sum altogether
                measured = _measured(
                    [(m, [_only(t, usable) for t in i], [_only(t, usable) for t in b]) for m, i, b in heard]
                )
        self._measured = measured

    def weighted(self, weights: Tensor) -> Gradients:
        """(parameter, sum over records of weight times gradient), for every trainable parameter."""
        with torch.no_grad(), full_precision(self._kind):
            given = zip(self._measured, self._dtypes, strict=True)
            return [pair for m, dtype in given for pair in m.weighted(shortened(weights, dtype))]


def _measured(heard: list[tuple[Any, list[Tensor], list[Tensor]]]) -> list[Measured]:
    found = []
    for layer, inputs, backs in heard:
        measure = measure_of(layer)
        if measure is None:
            raise InvalidInput(
                f"the gradients of a {type(layer).__name__} cannot be measured record by record; freeze it or "
                "replace it"
            )
        found.append(measure(layer, inputs, backs))
    return found


def _only(values: Tensor, usable: Tensor) -> Tensor:
    shape = (-1, *[1] * (values.dim() - 1))
    return torch.where(usable.reshape(shape), values, torch.zeros((), dtype=values.dtype, device=values.device))


def trainable_layers(module: Any) -> dict[str, Any]:
    """Layers with trainable parameters, by name; raises for those that cannot be measured record by record."""
    found: dict[str, Any] = {}
    owners: dict[int, str] = {}
    for name, layer in module.named_modules():
        _refuse_mixing(name, layer)
        own = [p for p in layer.parameters(recurse=False) if p.requires_grad]
        if not own:
            continue
        _refuse_unknown(name, layer)
        for parameter in own:
            if id(parameter) in owners:
                raise InvalidInput(
                    f"layers {owners[id(parameter)]!r} and {name!r} share a parameter, whose gradient would be counted "
                    "twice; give each its own, or call one layer twice"
                )
            owners[id(parameter)] = name
        found[name] = layer
    if not found:
        raise InvalidInput("the module has no trainable parameters; set requires_grad on what should learn")
    return found


def _refuse_mixing(name: str, layer: Any) -> None:
    running = isinstance(layer, nn.modules.instancenorm._InstanceNorm) and layer.track_running_stats
    if running or (isinstance(layer, _MIXING)):
        raise InvalidInput(
            f"layer {name!r} is a {type(layer).__name__}, which mixes the records of a batch, so no record has a "
            "gradient of its own; use GroupNorm or LayerNorm"
        )


def _refuse_unknown(name: str, layer: Any) -> None:
    kind = type(layer).__name__
    where = f"layer {name!r}" if name else "the module itself"
    if measure_of(layer) is None:
        raise InvalidInput(
            f"{where} ({kind}) has trainable parameters and no rule for the norms of its gradients; build it from "
            "Linear, Conv1d, Conv2d, Embedding, LayerNorm, GroupNorm and privamp.torch.LSTM, or freeze it"
        )
    if isinstance(layer, nn.Embedding) and (layer.max_norm is not None or layer.scale_grad_by_freq or layer.sparse):
        raise InvalidInput(f"{where} ({kind}) must not use max_norm, scale_grad_by_freq or sparse; turn them off")
    if getattr(layer, "padding_mode", "zeros") != "zeros":
        raise InvalidInput(f"{where} ({kind}) must pad with zeros, got {layer.padding_mode!r} instead")
