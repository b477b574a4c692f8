"""How per-record gradients are computed: by the rule of the parameter's layer, or record by record if it has none.

heard       layers with a rule (`layers.py`)
replaced    attention and recurrent layers, which are computed in steps
own         parameters of modules that contain layers, such as a class token: one row per record instead of the
            parameter, if broadcasting gives the same result (checked on made-up records)
alone       everything else: the module's forward pass runs record by record (`alone.py`)
"""

from dataclasses import dataclass, field
from typing import Any

from torch import nn

from ..errors import InvalidInput
from .alone import Alone
from .attention import Attention, is_plain
from .layers import layer_keeps_statistics, rule_of
from .recurrent import Cell, Recurrent
from .replaced import Replaced, is_replaced

_LISTS = (nn.ParameterList, nn.ParameterDict)


@dataclass
class Layout:
    """Modules by name, and parameters by name."""

    heard: dict[str, Any] = field(default_factory=dict)
    replaced: dict[str, tuple[Any, type[Replaced]]] = field(default_factory=dict)
    own: dict[str, Any] = field(default_factory=dict)
    still: list[Any] = field(default_factory=list)  # norms that stay in evaluation mode


def layout_of(module: Any, apart: frozenset[str] = frozenset()) -> Layout:
    """The method for every module; those named in `apart` run record by record. Rejects layers that mix records."""
    found, inside, ruled = Layout(), [""][:0], set()
    for name, layer in module.named_modules():
        _look_at_norm(name, layer, found)
        if any(name.startswith(f"{above}.") or above == "" for above in inside):
            continue  # handled as part of a larger one
        trained = {n: p for n, p in layer._parameters.items() if p is not None and p.requires_grad}
        kind = _replacement(layer, name in apart)
        if kind is not None and any(p.requires_grad for p in layer.parameters()):
            found.replaced[name] = (layer, kind)
            inside.append(name)
        elif trained and rule_of(layer) is not None:
            _refuse_options(name, layer)
            found.heard[name] = layer
            ruled |= {id(p) for p in trained.values()}
        else:
            found.own |= {f"{name}.{n}" if name else n: p for n, p in trained.items()}
    found.own = {name: p for name, p in found.own.items() if id(p) not in ruled}
    if not (found.heard or found.replaced or found.own):
        raise InvalidInput("the module has no trainable parameters; set requires_grad on those to be trained")
    return found


def holder_of(module: Any, name: str) -> str:
    """The name of the module whose forward pass uses this parameter; parameter lists have none."""
    holder = name.rpartition(".")[0]
    while isinstance(module.get_submodule(holder), _LISTS):
        holder = holder.rpartition(".")[0]
    return holder


def _replacement(layer: Any, is_apart: bool) -> type[Replaced] | None:
    if is_apart:
        return Alone
    is_patched = "forward" in vars(layer) and not is_replaced(layer)
    if isinstance(layer, nn.MultiheadAttention) and type(layer).forward is nn.MultiheadAttention.forward:
        return Attention if is_plain(layer) and not is_patched else Alone
    for kind in (nn.LSTM, nn.GRU, nn.RNN):
        if isinstance(layer, kind) and type(layer).forward is kind.forward and not is_patched:
            return Recurrent
    for kind in (nn.LSTMCell, nn.GRUCell, nn.RNNCell):
        if isinstance(layer, kind) and type(layer).forward is kind.forward and not is_patched:
            return Cell
    own = [p for p in layer._parameters.values() if p is not None and p.requires_grad]
    if "parametrizations" in layer._modules:
        return Alone
    is_small = not any(True for below in layer.children() for _ in below.parameters())
    return Alone if own and is_small and rule_of(layer) is None and not isinstance(layer, _LISTS) else None


def _look_at_norm(name: str, layer: Any, found: Layout) -> None:
    is_batch = isinstance(layer, nn.modules.batchnorm._BatchNorm)
    if not (is_batch or layer_keeps_statistics(layer)):
        return
    if layer.training or layer.running_mean is None:
        raise InvalidInput(
            f"layer {name!r} is a {type(layer).__name__}, which mixes the records of a batch, so no record has a "
            "gradient of its own; use GroupNorm or LayerNorm, or put it into evaluation mode before make_private, so "
            "that its statistics stay fixed"
        )
    found.still.append(layer)


def _refuse_options(name: str, layer: Any) -> None:
    if isinstance(layer, nn.Embedding) and (layer.max_norm is not None or layer.scale_grad_by_freq or layer.sparse):
        where = f"layer {name!r}" if name else "the module itself"
        raise InvalidInput(f"{where} (Embedding) must not use max_norm, scale_grad_by_freq or sparse; omit them")
