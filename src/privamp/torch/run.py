"""One training run: draws batches, computes private gradients, and never takes more steps than certified."""

import contextlib
import os
import secrets
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

import numpy as np
import torch

from ..chance.keyed import keyed_numbers
from ..chance.keys import Key
from ..errors import BudgetExceeded, InvalidInput
from ..numerics.log_domain import FloatArray
from . import computing, made_up
from .adding import ExactSums, FloatSums, Sums
from .banded_noise import BandedNoise
from .batches import Batch, Batches, Ints, joined
from .dpis import DPISPlan
from .forward_pass import ForwardPass, with_penalty
from .ghost import GradientRecorder
from .learner import Learner, PrivateCriterion
from .optimizers import check_optimizer, check_others, check_scheduler, require_finite, settings_of
from .plan import Plan
from .records import Records
from .release import check_grid, noisy_gradients
from .team import Team
from .trial import Trial
from .unchanged import Unchanged

if TYPE_CHECKING:
    from .keeping import Keeper

Tensor = Any
_PADDED = {"cuda": 64}  # batches of `engine.train` are filled up to a multiple, so that few sizes are ever planned for
_TRIED = 3  # made-up records


class Run:
    """Holds the step counter and the sums of the step in progress. Everything inside except the counters is secret.

    A stretch is what a run does between two crashes. It makes a step at most once, so (stretch, step) is the attempt
    that coins, noise and seeds are derived from.
    """

    def __init__(
        self, plan: Plan | DPISPlan, batches: Batches, key: Key, learner: Learner, records: Records, team: Team
    ) -> None:
        module, optimizer = learner.module, learner.optimizer
        self.team = team
        self.plan, self.batches, self.module, self.optimizer, self.records = plan, batches, module, optimizer, records
        self.compute, self.scheduler = learner.compute, learner.scheduler
        self.criterion = PrivateCriterion(learner.criterion, self)
        self.has_own_loss, self._penalty = learner.criterion is None, learner.penalty
        self.most = plan.physical_batch  # records held in memory at a time
        self.step = 0  # steps taken
        self.charged = 0  # steps begun, which is what is paid for
        self.stretch = 0
        self.is_paid = False  # by a budget
        self.is_recorded = False  # in a checkpoint or a budget
        self.before_step: Callable[[], None] = lambda: None  # pays for it
        self.after_step: Callable[[], None] = lambda: None
        self.keeper: Keeper | None = None
        self._process = os.getpid()
        self._attempt = object()  # at the step in progress, by one pass over its parts
        self.parameters = [p for p in module.parameters() if p.requires_grad]
        if not isinstance(plan, DPISPlan):  # which chooses its noise later
            check_grid(batches, self.parameters)
        self.recorder = GradientRecorder(module)
        check_optimizer(optimizer, self.parameters)
        check_scheduler(learner.scheduler)
        self.unchanged = Unchanged(module)
        size = sum(p.numel() for p in self.parameters)
        self._sums: Sums = ExactSums(batches, size) if getattr(plan, "is_exact", False) else FloatSums()
        self._done: list[tuple[Batch, FloatArray]] = []
        self._part: Batch | None = None  # handed out, backward not yet called
        self._lost: Any = None  # which records of the part cannot be read
        self._is_measured = False  # backward called, optimizer step not yet
        self._is_last = True
        self._is_begun = False  # the step is paid for and its noisy sum not yet made
        self._is_stuck = False  # its noisy sum is made, and the step does not count as taken yet
        self._is_replayed = False
        self._padding = 0  # records behind the part that weigh nothing
        self._place: tuple[str | int, ...] = ("made up", 0)
        self._secret = key
        self._bands = BandedNoise(getattr(plan, "bands", 1), keeps=learner.keeps_noise)
        batches.begin_run(key)
        self.begin_stretch(1)
        self.passes = ForwardPass(self)
        self._hooks = [
            optimizer.register_step_pre_hook(lambda opt, args, kwargs: self._before_optimizer(args, kwargs)),
            optimizer.register_step_post_hook(lambda opt, args, kwargs: self._after_optimizer()),
            *self.passes.hooks,
        ]
        try:
            if learner.example is not None:
                records.require_like(learner.example)
            tried = learner.example if learner.example is not None else records.made_up(_TRIED)
            self._blank = made_up.rows(tried, slice(0, 1))
            self.trial = Trial(self, tried)
            self.trial.require()
        except BaseException:
            self.detach()
            raise

    def begin_stretch(self, number: int) -> None:
        """Coins, noise and seeds from now on come from (key, run, stretch, nonce), never used before."""
        self.stretch = number
        nonce = b"" if self._secret.is_test else secrets.token_bytes(16)  # a copied checkpoint goes on elsewhere
        self._key = self._secret.subkey("session", number, self.team.same_bytes(nonce))
        self.batches.begin_stretch(self._key)
        self._bands.begin_anew()
        self._is_begun = self._is_stuck = False

    def measure_apart(self, names: frozenset[str]) -> None:
        """Compute these modules record by record from now on, since their gradients have no rule."""
        self.recorder.detach()
        before, self.recorder = self.recorder, GradientRecorder(self.module, names)
        self.recorder.is_half = before.is_half

    @property
    def device(self) -> Any:
        """The device of the model's parameters."""
        return self.parameters[0].device

    @property
    def left(self) -> int:
        """Steps that may still be made: those begun and lost in a crash are spent."""
        return min(self.plan.steps - self.step, self.plan.steps - self.charged + self._is_begun)

    @property
    def is_finished(self) -> bool:
        """Whether every certified step was taken."""
        return self.left <= 0

    @property
    def is_waiting(self) -> bool:
        """Whether a batch was handed out whose losses are expected."""
        return self._part is not None

    def named_parameters(self) -> list[tuple[str, Any]]:
        """Trainable parameters in the order of `parameters`."""
        return [(name, p) for name, p in self.module.named_parameters() if p.requires_grad]

    def detach(self) -> None:
        """Take every hook off the module and the optimiser."""
        self.recorder.detach()
        for hook in self._hooks:
            hook.remove()

    def parts(self, *, padded: bool = False) -> Iterator[Batch]:
        """The batch of the next step, in parts that fit into memory; each must be worked through before the next.

        With `padded` the losses of the padded part are expected.
        """
        if self.is_finished:
            raise BudgetExceeded(
                f"all {self.plan.steps} certified steps were taken, so no further batch is drawn; plan more steps in "
                "a new run"
            )
        require_finite(self.parameters, self.step)
        self.trial.require()
        self._sums.forget()
        self._done = []
        self._part, self._is_measured = None, False
        self._begin()
        self._attempt = mine = object()
        batch = self.team.share(self.batches.drawn(self.step, self.charged - 1))
        size = self.most or max(batch.positions.size, 1)
        starts = range(0, max(batch.positions.size, 1), size)
        for number, start in enumerate(starts):
            if self._attempt is not mine:
                raise InvalidInput(
                    f"another pass over the batches began after step {batch.step + 1} was drawn in this one; finish "
                    "one pass before the next"
                )
            part = batch.part(start, start + size)
            self._part, self._is_measured, self._place = part, False, (self.step, number)
            self._is_last = start + size >= batch.positions.size
            self._padding = self._missing(part.positions.size) if padded else int(part.positions.size == 0)
            self.recorder.listen(part.positions.size + self._padding)
            self.passes.forget()
            yield part
            if self._attempt is mine and (self._part is not None or (self._is_measured and self._is_last)):
                raise InvalidInput(
                    "a batch was left unfinished; call loss.backward() and optimizer.step() for every batch (in place "
                    "of gradient accumulation: max_physical_batch_size)"
                )

    def _begin(self) -> None:
        """Charge for the step and record the attempt, before anything of it is drawn."""
        self._require_own_process()
        if self._is_begun:
            return  # drawn since the last resume and never released: the same attempt
        if self._is_stuck:  # the optimiser failed: what was released is spent, and is not drawn again
            self.begin_stretch(self.stretch + 1)
        self.batches.prepare(self.step, self.norms)
        self._record(self._record_begun)
        self.batches.begin(self.step)
        self.charged += 1
        self._is_begun = True

    def _record(self, write: Callable[[], None]) -> None:
        """Write to the checkpoint, the journal or the budget's store, in the first process; the others wait for it."""
        if self.is_recorded:
            self.team.on_first(write)

    def _record_begun(self) -> None:
        if self.keeper is not None:
            begun = {"kind": "begun", "step": self.step, "session": self.stretch, "number": self.charged + 1}
            self.keeper.append(begun)
        self.before_step()

    def _record_done(self) -> None:
        self.after_step()
        if self.keeper is not None:
            self.keeper.after_step()

    def _missing(self, drawn: int) -> int:
        """How many records pad a part, within the memory limit."""
        missing = -drawn % _PADDED.get(self.device.type, 1)
        return missing if self.most is None else min(missing, self.most - drawn)

    def read(self, part: Batch) -> Any:
        """The records of a part, some of them once more with weight 0; a made-up one if no one was drawn."""
        if part.positions.size == 0:
            return self._blank
        positions = np.resize(part.positions, part.positions.size + self._padding)
        batch, self._lost = self._taken(positions)
        return batch

    def _taken(self, positions: Ints) -> tuple[Any, Any]:
        numbers = keyed_numbers(self._key.subkey("reading", self.step), positions.astype(np.uint64), 0)
        return self.records.take(positions, (numbers >> np.uint64(8)).astype(np.int64), self._blank)

    def losses(self, part: Batch) -> tuple[Tensor | None, Ints | None]:
        """One loss for each record of a part, and where in it they stand if not everybody has one."""
        if part.positions.size == 0:
            return None, None
        return self._tolerant(self.read(part), part.positions.size + self._padding)

    def _tolerant(self, batch: Any, count: int) -> tuple[Tensor | None, Ints | None]:
        return computing.tolerant(self, batch, count)

    def backward(self, losses: Tensor | None, some: Ints | None = None) -> None:
        """Measure the gradients of a part and add their weighted sum to the step's."""
        part = self._part
        if part is None:
            raise InvalidInput("backward was called twice for one batch, or without a batch; call it once per batch")
        size, lost = part.positions.size, self._lost
        everybody = np.arange(size + self._padding)
        at = everybody if some is None else some
        if losses is not None and losses.shape != at.shape:
            raise InvalidInput(
                "the losses must be those of the batch that was drawn, one per record, got another number"
            )
        norms = np.full(everybody.size, np.nan)
        if losses is None or size == 0:
            self.recorder.forget()
        else:
            recorded = self.recorder.measure(losses, written=self._sums.is_exact)
            norms[at] = recorded.on_host.numpy()
            if lost is not None:
                norms[lost] = np.nan
            weights = np.zeros(everybody.size)
            weights[:size] = self.batches.coefficients(part, norms[:size])
            self._sums.add(recorded, torch.from_numpy(weights[at]))
            recorded.give_back()
        self._done.append((part, norms[:size]))
        self.unchanged.require_same()
        for modes in self.passes.heard():
            self.trial.require(modes)
        self._part, self._is_measured, self._lost = None, True, None

    def norms(self, positions: Ints) -> FloatArray:
        """Gradient norms of any records under the current parameters: secret."""
        found = [np.empty(0)]
        size = self.most or 1024
        for start in range(0, positions.size, size):
            some = positions[start : start + size]
            batch, lost = self._taken(some)
            self._place = (self.step, -1 - start // size)
            self.recorder.listen(some.size)
            losses, at = self._tolerant(batch, some.size)
            norms = np.full(some.size, np.nan)
            if losses is not None:
                norms[slice(None) if at is None else at] = self.recorder.measure(losses).on_host.numpy()
            if lost is not None:
                norms[lost] = np.nan
            found.append(norms)
        return np.concatenate(found)

    def _before_optimizer(self, args: Any, kwargs: Any) -> None:
        if self._is_replayed:
            return
        if any(callable(a) for a in args) or kwargs.get("closure") is not None:
            raise InvalidInput("optimizer.step takes no closure here, because a step is computed only once; omit it")
        check_others(self.optimizer, self.parameters)
        if not self._is_measured:
            raise InvalidInput(
                "there is no gradient to step with; draw a batch, and call backward() on the loss that the "
                "returned criterion gives (with criterion=None: the model)"
            )
        if self._is_last:
            self._release()
        else:
            for parameter in self.parameters:
                parameter.grad = None  # nothing moves until the step is complete

    def _release(self) -> None:
        """The noisy, normalised sum as the gradient of every parameter, stored first; even when no one was drawn."""
        self._require_own_process()
        if not self._is_begun:
            raise InvalidInput("this batch belongs to a step that is over; draw the next one")
        sums = self.team.added_up(self.parameters, self._sums)
        self._is_begun, self._is_stuck = False, True  # before: whatever interrupts what follows, no noise is made twice
        gradients = self.team.from_first(
            self.parameters, lambda: noisy_gradients(self._noise_key, self.parameters, sums, self.batches, self._bands)
        )
        gradients = with_penalty(self._penalty, self.module, self.parameters, gradients)
        self._done = [self.team.all_norms(self._done)]
        self._record(lambda: None if self.keeper is None else self.keeper.append(self._entry(gradients)))
        self._sums.forget()
        for parameter, gradient in zip(self.parameters, gradients, strict=True):
            parameter.grad = gradient

    def _noise_key(self, before: int) -> Key:
        """The key of the noise of so many steps before, in this stretch."""
        return self._key.subkey("noise", self.step - before)

    def _entry(self, gradients: list[Tensor]) -> dict[str, Any]:
        batch, norms = joined(self._done)
        secret = {"positions": batch.positions, "norms": norms}
        return {
            "kind": "noisy",
            "step": self.step,
            "session": self.stretch,
            "gradients": [g.detach().cpu() for g in gradients],
            "groups": settings_of(self.optimizer),
            "secret": {name: torch.from_numpy(np.ascontiguousarray(v)) for name, v in secret.items()},
        }

    def replay(self, entry: dict[str, Any]) -> None:
        """Repeat a step from its stored noisy sum, at no further cost."""
        positions, norms = (entry["secret"][name].numpy() for name in ("positions", "norms"))
        for group, settings in zip(self.optimizer.param_groups, entry["groups"], strict=True):
            group.update(settings)
        for parameter, gradient in zip(self.parameters, entry["gradients"], strict=True):
            parameter.grad = gradient.to(parameter.device)
        self._is_replayed = True
        try:
            self.optimizer.step()
        finally:
            self._is_replayed = False
        nothing = np.zeros(positions.size)
        self._finish(Batch(self.step, positions, nothing.astype(np.int64), nothing), norms)

    def _after_optimizer(self) -> None:
        if self._is_replayed:
            return
        self._is_measured = False
        if self._is_last:
            done, self._done = joined(self._done), []
            self._finish(*done)
            self._record(self._record_done)

    def _finish(self, batch: Batch, norms: FloatArray) -> None:
        self.batches.remember(batch, norms)
        self.step += 1
        self._is_stuck = False  # not before: interrupted in between, the step is over and its noise used
        if self.scheduler is not None:
            self.scheduler.step()

    def restored(self) -> None:
        """The module was loaded from a file: its buffers are as they should be."""
        self.unchanged.restart()

    def _require_own_process(self) -> None:
        if self._process != os.getpid():
            raise InvalidInput(
                "a run belongs to the process that began it, and this is a fork of it, which would draw the same noise "
                "again; make the engine in this process"
            )

    def seed_key(self) -> Key:
        """What dropout and the like are drawn from in this pass."""
        return self._key.subkey("forward", *self._place)

    @contextlib.contextmanager
    def placed(self, *place: str | int) -> Iterator[None]:
        """Forward passes meanwhile draw by another seed."""
        before, self._place = self._place, place
        try:
            yield
        finally:
            self._place = before
