"""Modules compiled with `torch.compile`: the hooks that record gradients run outside the compiled code.

Every hook ends a compiled piece, so what is compiled lies between trainable layers. The compiled module is the one that
is tried on made-up records. One that is compiled later was never tried, so it is refused.
"""

import sys
from collections.abc import Callable
from typing import Any

import torch

from ..errors import InvalidInput


def is_compiled(module: Any) -> bool:
    """Whether the module or a part of it is compiled."""
    return any(
        type(part).__name__ == "OptimizedModule" or getattr(part, "_compiled_call_impl", None) is not None
        for part in module.modules()
    )


def outside(module: Any) -> Callable[[Any], Any]:
    """Wraps hooks of this module so that they are not compiled."""
    return torch.compiler.disable if is_compiled(module) else lambda hook: hook


def refuse_compiling() -> None:
    """Raise if what runs now is being compiled, or was called by compiled code: hooks of a compiled module are not."""
    if "torch._dynamo" not in sys.modules:
        return
    asked = getattr(torch._C._dynamo.eval_frame, "get_eval_frame_callback", None)
    if asked is not None and asked() not in (None, False):
        raise InvalidInput(
            "the module was compiled after make_private, which tried it as it was before; give make_private the "
            "compiled module, as in module=torch.compile(module)"
        )
