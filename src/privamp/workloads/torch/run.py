"""One training run: drawn batches in, private gradients out, step by step and never a step too many."""

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import torch

from ...chance.keys import Key
from ...errors import BudgetExceeded, InvalidInput
from ...numerics.log_domain import FloatArray
from .batches import Batch, Batches, Ints
from .criterion import PrivateCriterion
from .dpis import DPISPlan
from .ghost import GradientRecorder
from .noise import normals
from .plan import Plan
from .precision import sum_dtype
from .records import Records

Tensor = Any

_PADDED = {"cuda": 64}  # batches of `engine.train` are filled up to a multiple, so that few sizes are ever planned for


class Run:
    """Holds the step counter and the sums of the step in progress. Everything inside is secret but `step`."""

    def __init__(
        self,
        plan: Plan | DPISPlan,
        batches: Batches,
        key: Key,
        module: Any,
        optimizer: Any,
        criterion: Any,
        records: Records,
    ) -> None:
        self.plan, self.batches, self.module, self.optimizer, self.records = plan, batches, module, optimizer, records
        self.criterion = PrivateCriterion(criterion, self)
        self.step = 0  # steps taken
        self.after_step: Callable[[], None] = lambda: None
        self._noise_key, self._forward_key = key.subkey("noise"), key.subkey("forward")
        self._recorder = GradientRecorder(module)
        self.parameters = [p for p in module.parameters() if p.requires_grad]
        _check_optimizer(optimizer, self.parameters)
        self._buffers = _versions(module)
        self._sums: dict[int, Tensor] = {}
        self._done: list[tuple[Batch, FloatArray]] = []
        self._part: Batch | None = None  # handed out, backward not yet called
        self._is_measured = False  # backward called, optimizer step not yet
        self._is_last = True
        self._padding = 0  # records behind the part that weigh nothing
        self._has_number = False  # whether a loss of the step in progress is a number
        self._number = 0  # of the part within its step
        self._random: list[Any] = []
        self._hooks = [
            optimizer.register_step_pre_hook(lambda opt, args, kwargs: self._before_optimizer(args, kwargs)),
            optimizer.register_step_post_hook(lambda opt, args, kwargs: self._after_optimizer()),
            module.register_forward_pre_hook(lambda m, args: self._seed()),
            module.register_forward_hook(lambda m, args, out: self._unseed(), always_call=True),
        ]

    @property
    def device(self) -> Any:
        """Where the parameters are."""
        return self.parameters[0].device

    @property
    def is_finished(self) -> bool:
        """Whether every certified step was taken."""
        return self.step >= self.plan.steps

    @property
    def is_waiting(self) -> bool:
        """Whether a batch was handed out whose losses are expected."""
        return self._part is not None

    def detach(self) -> None:
        """Take every hook off the module and the optimiser."""
        self._recorder.detach()
        for hook in self._hooks:
            hook.remove()

    def parts(self, *, padded: bool = False) -> Iterator[Batch]:
        """The batch of the next step, in parts that fit into memory; each must be worked through before the next.

        With `padded` the losses of `padded_positions` are expected.
        """
        if self.is_finished:
            raise BudgetExceeded(
                f"all {self.plan.steps} certified steps are taken, so no further batch is drawn; "
                "plan more steps in a new run"
            )
        self._require_finite()
        self._sums, self._done = {}, []
        self._part, self._is_measured, self._has_number = None, False, False
        self.batches.prepare(self.step, self.norms)
        batch = self.batches.draw(self.step)
        size = self.plan.physical_batch or max(batch.positions.size, 1)
        starts = range(0, max(batch.positions.size, 1), size)
        for number, start in enumerate(starts):
            part = batch.part(start, start + size)
            self._part, self._is_measured, self._number = part, False, number
            self._is_last = start + size >= batch.positions.size
            self._padding = self._missing(part.positions.size) if padded else 0
            self._recorder.listen(part.positions.size + self._padding)
            yield part
            if self._part is not None or self._is_measured:
                raise InvalidInput(
                    "a batch was left unfinished; call loss.backward() and optimizer.step() for every batch"
                )

    def _missing(self, drawn: int) -> int:
        """How many records fill a part up, without going over what memory was promised."""
        missing = -drawn % _PADDED.get(self.device.type, 1)
        most = self.plan.physical_batch
        return missing if most is None else min(missing, most - drawn)

    def padded_positions(self, part: Batch) -> Ints:
        """Its records, some of them once more with weight 0."""
        return np.resize(part.positions, part.positions.size + self._padding)

    def backward(self, losses: Tensor) -> None:
        """Measure the gradients of a part and add their weighted sum to the step's."""
        part = self._part
        if part is None:
            raise InvalidInput("backward was called twice for one batch, or without a batch; call it once per batch")
        size = part.positions.size
        if losses.shape[0] != size + self._padding:
            raise InvalidInput(
                "the losses must be those of the batch that was drawn, one per record, but their number differs"
            )
        self._part, self._is_measured = None, True
        if size == 0:
            return
        recorded = self._recorder.measure(losses)
        norms = recorded.norms.cpu().numpy()[:size]
        self._require_a_number(losses)
        weights = np.zeros(losses.shape[0])
        weights[:size] = self.batches.coefficients(part, norms)
        self._done.append((part, norms))
        for parameter, gradient in recorded.weighted(torch.from_numpy(weights).to(self.device)):
            held = self._sums.get(id(parameter))
            self._sums[id(parameter)] = gradient if held is None else held.add_(gradient)
        if self._buffers != _versions(self.module):
            raise InvalidInput(
                "a buffer of the module changed in the forward pass, which would publish statistics of the records "
                "without noise; use layers that keep no running statistics"
            )

    def norms(self, positions: Ints) -> FloatArray:
        """Gradient norms of any records under the current parameters: secret."""
        found = [np.empty(0)]
        size = self.plan.physical_batch or 1024
        for start in range(0, positions.size, size):
            batch = self.records.take(positions[start : start + size])
            self._number = -1 - start // size
            self._recorder.listen(min(size, positions.size - start))
            found.append(self._recorder.measure(self.losses(batch)).norms.cpu().numpy())
        return np.concatenate(found)

    def losses(self, batch: Any) -> Tensor:
        """One loss per record of a batch (inputs..., target)."""
        *inputs, target = batch
        return self.criterion.losses(self.module(*inputs), target)

    def _before_optimizer(self, args: Any, kwargs: Any) -> None:
        if any(callable(a) for a in args) or kwargs.get("closure") is not None:
            raise InvalidInput("optimizer.step takes no closure here, since a step is computed once; leave it out")
        if not self._is_measured:
            raise InvalidInput("there is no gradient to step with; draw a batch and call loss.backward() first")
        if self._is_last:
            self._release()
        else:
            for parameter in self.parameters:
                parameter.grad = None  # nothing moves until the step is complete

    def _release(self) -> None:
        """The noisy, normalised sum as the gradient of every parameter, also when nobody was drawn."""
        deviation, normaliser = self.batches.noise
        total = sum(p.numel() for p in self.parameters)
        key, dtype = self._noise_key.subkey(self.step), sum_dtype(self.parameters[0].dtype)
        noise = normals(key, total, self.device, dtype, deviation / normaliser)
        start = 0
        for parameter in self.parameters:
            piece = noise[start : start + parameter.numel()].view_as(parameter)
            held = self._sums.get(id(parameter))
            noisy = piece if held is None else piece.add_(held, alpha=1.0 / normaliser)
            parameter.grad = noisy.to(parameter.dtype)  # rounded to half precision only now
            start += parameter.numel()

    def _after_optimizer(self) -> None:
        self._is_measured = False
        if not self._is_last:
            return
        if self._done:
            self.batches.remember(*_joined(self._done))
        else:
            self.batches.remember(Batch(self.step, _NOBODY, _NOBODY, np.empty(0)), np.empty(0))
        self._sums, self._done = {}, []
        self.step += 1
        self.after_step()

    def _require_finite(self) -> None:
        total = torch.stack([p.detach().sum().to(torch.float64) for p in self.parameters])
        if not bool(torch.isfinite(total).all()):
            raise InvalidInput(
                f"the parameters are no longer finite numbers after step {self.step}, so training stops and nothing of "
                "the next step is drawn; start again with a smaller learning rate, on what is left of the budget"
            )

    def _require_a_number(self, losses: Tensor) -> None:
        """One record without a loss counts as nothing, since a stop would tell about it. When nobody has one it is the
        model or the criterion: stop, before anything of the step is released. A lone record is not enough for that."""
        self._has_number = self._has_number or bool(torch.isfinite(losses.detach()).any())
        drawn = losses.shape[0] - self._padding + sum(part.positions.size for part, _ in self._done)
        if self._is_last and drawn > 1 and not self._has_number:
            self._is_measured = False
            raise InvalidInput(
                "no record of the batch has a loss that is a finite number, so training stops before step "
                f"{self.step + 1} and nothing of it is released; mend the model, the criterion or the data, and resume"
            )

    def _seed(self) -> None:
        """Dropout and the like are drawn from (key, step) too: a repeated step must be the same step."""
        if not self._recorder.is_listening:
            return
        seed = int.from_bytes(self._forward_key.subkey(self.step, self._number).fingerprint[:7], "little")
        self._random.append((torch.get_rng_state(), torch.cuda.get_rng_state() if self.device.type == "cuda" else None))
        torch.default_generator.manual_seed(seed)
        if self.device.type == "cuda":
            torch.cuda.manual_seed(seed)

    def _unseed(self) -> None:
        if self._random:
            cpu, cuda = self._random.pop()
            torch.set_rng_state(cpu)
            if cuda is not None:
                torch.cuda.set_rng_state(cuda)


_NOBODY: Ints = np.empty(0, np.int64)


def _joined(done: list[tuple[Batch, FloatArray]]) -> tuple[Batch, FloatArray]:
    if len(done) == 1:
        return done[0]
    parts = [part for part, _ in done]
    whole = Batch(
        parts[0].step,
        np.concatenate([p.positions for p in parts]),
        np.concatenate([p.counts for p in parts]),
        np.concatenate([p.bounds for p in parts]),
    )
    return whole, np.concatenate([norms for _, norms in done])


def _versions(module: Any) -> dict[str, tuple[int, int]]:
    return {name: (buffer.data_ptr(), buffer._version) for name, buffer in module.named_buffers()}


def _check_optimizer(optimizer: Any, parameters: list[Any]) -> None:
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
            "module.parameters() and freeze what should not learn"
        )
