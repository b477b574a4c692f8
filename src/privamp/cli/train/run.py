"""The run behind `privamp train`. Imports torch."""

from collections.abc import Callable
from typing import Any

import torch
from torch import nn
from torch.utils.data import TensorDataset

from ...core.ledger import BudgetLike
from ...errors import InvalidInput
from ...torch import PrivacyEngine, Progress
from ...torch.models import build
from ..console import Advance
from .data import Part, TrainingData

_AT_A_TIME = 2000


class Training:
    """A model, its engine and its held-out records."""

    def __init__(
        self,
        data: TrainingData,
        model: str,
        device: Any,
        learning_rate: float,
        momentum: float,
        plan: dict[str, Any],
        budget: BudgetLike | None = None,
    ) -> None:
        self._tested = None if data.held_out is None else _tensors(data.held_out, device)
        x, y = _tensors(data.training, device)
        self.module = build(model, tuple(x.shape[1:]), data.classes, data.words).to(device)
        learned = [p for p in self.module.parameters() if p.requires_grad]
        self.parameters = sum(p.numel() for p in learned)
        self.engine = PrivacyEngine(budget=budget)
        self.engine.make_private(
            module=self.module, optimizer=torch.optim.SGD(learned, lr=learning_rate, momentum=momentum),
            criterion=nn.CrossEntropyLoss(), data_loader=TensorDataset(x, y), **plan,
        )  # fmt: skip

    def train(self, looks: int, look: Callable[[int], None], advance: Advance) -> None:
        """Run the remaining steps, with about `looks` evaluations on the way and one at the end."""
        steps = self.engine.plan.steps
        every, seen = max(1, steps // looks), -1

        def on_step(progress: Progress) -> None:
            nonlocal seen
            advance(progress.step, steps)
            if progress.step % every == 0 and steps - progress.step >= every:
                seen = progress.step
                look(seen)

        if not self.engine.is_finished:
            self.engine.train(on_step=on_step)
        if seen != self.engine.step:
            look(self.engine.step)

    def held_out(self) -> tuple[float | None, float | None]:
        """Mean loss and accuracy on the held-out records, without noise."""
        if self._tested is None:
            return None, None
        x, y = self._tested
        loss, right = 0.0, 0
        with torch.no_grad():
            for some, truth in zip(x.split(_AT_A_TIME), y.split(_AT_A_TIME), strict=True):
                scores = self.module(some)
                loss += float(nn.functional.cross_entropy(scores, truth, reduction="sum"))
                right += int((scores.argmax(1) == truth).sum())
        return loss / len(y), right / len(y)


def _tensors(part: Part, device: Any) -> tuple[Any, Any]:
    try:
        return torch.from_numpy(part.x).to(device), torch.from_numpy(part.y).to(device)
    except torch.OutOfMemoryError:
        raise InvalidInput("the records do not fit into the device's memory; use --device cpu") from None
