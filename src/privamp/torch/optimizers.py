"""Which optimisers and schedulers a run takes, what a step may leave, and the settings that a replayed step needs."""

import math
from typing import Any

import torch

from ..errors import InvalidInput


def settings_of(optimizer: Any) -> list[dict[str, Any]]:
    """The settings of each parameter group, such as its learning rate."""
    return [{name: value for name, value in group.items() if name != "params"} for group in optimizer.param_groups]


def check_optimizer(optimizer: Any, parameters: list[Any]) -> None:
    """Raise unless the optimiser makes one pass over exactly these parameters."""
    if not isinstance(optimizer, torch.optim.Optimizer):
        raise InvalidInput(f"optimizer must be a torch optimizer, got {type(optimizer).__name__} instead")
    if isinstance(optimizer, torch.optim.LBFGS):
        raise InvalidInput(
            "LBFGS evaluates the loss several times per step; use SGD, Adam or another one-pass optimizer"
        )
    given = {id(p) for group in optimizer.param_groups for p in group["params"] if p.requires_grad}
    if given != {id(p) for p in parameters}:
        raise InvalidInput(
            "the optimizer must hold exactly the trainable parameters of the module, but they differ; build it from "
            "module.parameters() and freeze what should not be trained"
        )


def check_others(optimizer: Any, parameters: list[Any]) -> None:
    """Raise if the optimiser would move a parameter that came in, or was freed, after the run began."""
    known = {id(p) for p in parameters}
    for group in optimizer.param_groups:
        if any(p.grad is not None and id(p) not in known for p in group["params"]):
            raise InvalidInput(
                "the optimizer holds a parameter that the run does not train, with a gradient that carries no noise; "
                "add parameters, or unfreeze them, before make_private"
            )


def check_scheduler(scheduler: Any) -> None:
    """Raise for a scheduler that follows secret values."""
    if isinstance(scheduler, torch.optim.lr_scheduler.ReduceLROnPlateau):
        raise InvalidInput(
            "ReduceLROnPlateau follows a loss, which is secret and has no noise; use a scheduler that depends only "
            "on the step"
        )


def require_finite(parameters: list[Any], step: int) -> None:
    """Stop before the next step if this one made parameters that are not finite: they are released anyway."""
    largest = torch._foreach_norm([p.detach() for p in parameters if p.numel()], math.inf)
    kinds = {norm.dtype for norm in largest}
    alike = largest if len(kinds) == 1 else [norm.double() for norm in largest]
    if not math.isfinite(float(torch.stack(alike).amax())):  # the largest is no number if any of them is none
        raise InvalidInput(
            f"the parameters are no longer finite numbers after step {step}, so training stops and nothing of the "
            "next step is drawn; start again with a smaller learning rate and the rest of the budget"
        )
