"""What surrounds the forward pass of a step: seeds for dropout that come from the key, and the model's own losses."""

from typing import TYPE_CHECKING, Any

import torch

from . import own_losses
from .learner import PrivateLoss
from .seeding import Surroundings, seed_of

if TYPE_CHECKING:
    from .run import Run


class ForwardPass:
    """Hooks around the whole module; they act only while the run listens."""

    def __init__(self, run: "Run") -> None:
        self._run = run
        self._open: list[tuple[Surroundings, Any]] = []
        self.hooks = [
            run.module.register_forward_pre_hook(lambda m, args: self._begin()),
            run.module.register_forward_hook(lambda m, args, out: self._end(out), always_call=True),
        ]

    def _begin(self) -> None:
        """Dropout and the like are drawn from the attempt; losses of the model's own are one per record."""
        run = self._run
        if not run.recorder.is_listening:
            return
        around = Surroundings(run.device)
        around.seed(seed_of(run.seed_key()))
        losses = own_losses.OwnLosses(run.recorder.expected) if run.has_own_loss else None
        if losses is not None:
            losses.__enter__()
        self._open.append((around, losses))

    def _end(self, output: Any) -> Any:
        if not self._open:
            return None
        around, losses = self._open.pop()
        around.restore()
        if losses is None:
            return None
        losses.__exit__(None, None, None)
        if output is None or not torch.is_grad_enabled():
            return None
        loss = own_losses.found_in(output)
        own_losses.require_one_each(loss, self._run.recorder.expected)
        return own_losses.put_into(output, PrivateLoss(loss, self._run)) if self._run.is_waiting else None


def with_penalty(penalty: Any, module: Any, parameters: list[Any], gradients: list[Any]) -> list[Any]:
    """The gradient of a term of the parameters alone, which are public: added after the noise, and not clipped."""
    if penalty is None:
        return gradients
    with torch.enable_grad():
        found = torch.autograd.grad(penalty(module), parameters, allow_unused=True)
    return [g if more is None else g + more.to(g.dtype) for g, more in zip(gradients, found, strict=True)]
