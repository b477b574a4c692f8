"""Hooks around the forward pass of a step: dropout seeds derived from the key, and the model's own losses."""

from typing import TYPE_CHECKING, Any

import torch

from ..errors import InvalidInput
from . import own_losses
from .after_model import Outputs
from .backward_pass import above
from .compiled import outside, refuse_compiling
from .learner import PrivateLoss
from .seeding import Surroundings, seed_of
from .shared_inputs import SharedInputs, without_count

if TYPE_CHECKING:
    from .run import Run
    from .trial import Modes


class ForwardPass:
    """Hooks around the whole module; they act only while gradients are recorded."""

    def __init__(self, run: "Run") -> None:
        self._run = run
        self._open: list[tuple[Surroundings, Any]] = []
        self._outputs, self._shared = Outputs(), SharedInputs()
        self._modes: set[Modes] = set()
        self._own_rows: dict[Any, int] = {}  # per record, of each loss that the model computes
        eager = outside(run.module)
        self.hooks = [
            run.module.register_forward_pre_hook(
                eager(lambda m, args, kwargs: self._begin(args, kwargs) if m is run.module else None), with_kwargs=True
            ),
            run.module.register_forward_hook(
                eager(lambda m, args, out: self._end(out) if m is run.module else None), always_call=True
            ),  # a copy of the module has these hooks, too
        ]

    def forget(self) -> None:
        """A new batch."""
        self._outputs.forget()
        self._shared.forget()
        self._modes = set()

    def heard(self) -> "list[Modes]":
        """The training modes in which the model was called on the batch; forgets it."""
        found = list(self._modes)
        self.forget()
        return found

    def require_apart(self, losses: Any, scales: tuple[float, ...]) -> None:
        """Raise if a training loop mixes records after the model, or multiplies losses by a number of the batch."""
        self._outputs.require_scales(scales)
        recorder = self._run.recorder
        if recorder.heard_outside:
            raise InvalidInput(
                "the loop called a part of the module, or its forward method, where no check sees how records are kept "
                "apart; call the module itself, and put into its forward method what joins the parts"
            )
        edges = recorder.edges()[1]
        layers, leaves = above(losses, edges)
        if edges and any(id(p) in leaves for p in self._run.parameters):
            raise InvalidInput(
                "the loop uses a parameter of the module by itself, where its gradient is not measured; put that into "
                "the module's forward method, and give a term of the parameters alone as penalty= to make_private"
            )
        if not self._run.has_own_loss:
            self._outputs.require_apart(losses, self._run.step, layers)

    def _begin(self, args: Any, kwargs: dict[str, Any]) -> Any:
        """Seed dropout and the like from the attempt; make the model's own losses one per record."""
        run = self._run
        if not run.recorder.is_listening:
            return None
        refuse_compiling()
        run.unchanged.begin()
        kept = without_count(kwargs) if run.has_own_loss else kwargs
        if not run.trial.is_trying:
            self._modes.add(run.trial.modes())
            if torch.is_grad_enabled():
                self._shared.require_same(args, kept, run.recorder.expected)
        around = Surroundings(run.device)
        around.seed(seed_of(run.seed_key()))
        losses = self._own_losses() if run.has_own_loss else None
        if losses is not None:
            losses.__enter__()
        self._open.append((around, losses))
        return None if len(kept) == len(kwargs) else (args, kept)

    def _own_losses(self) -> own_losses.OwnLosses:
        recorder, modes = self._run.recorder, self._run.trial.modes()
        return own_losses.OwnLosses(recorder.expected, lambda at, rows: self._own_rows.setdefault((modes, at), rows))

    def _end(self, output: Any) -> Any:
        if not self._open:
            return None
        around, losses = self._open.pop()
        around.restore()
        self._run.unchanged.end()
        if losses is None:
            self._look_at(output)
            return None
        losses.__exit__(None, None, None)
        if output is None or not torch.is_grad_enabled():
            return None
        loss = own_losses.found_in(output)
        own_losses.require_one_each(loss, self._run.recorder.expected)
        return own_losses.put_into(output, PrivateLoss(loss, self._run)) if self._run.is_waiting else None

    def _look_at(self, output: Any) -> None:
        run = self._run
        if output is not None and torch.is_grad_enabled():
            look = self._outputs.learn if run.trial.is_trying else self._outputs.hear
            look(output, run.recorder.expected)


def with_penalty(penalty: Any, module: Any, parameters: list[Any], gradients: list[Any]) -> list[Any]:
    """The gradient of a penalty on the parameters, which are public: added after the noise and not clipped."""
    if penalty is None:
        return gradients
    with torch.enable_grad():
        found = torch.autograd.grad(penalty(module), parameters, allow_unused=True)
    return [g if more is None else g + more.to(g.dtype) for g, more in zip(gradients, found, strict=True)]
