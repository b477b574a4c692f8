"""The engine: a module, an optimiser, a criterion and a data set in; the same loop as before, with a guarantee, out."""

import os
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import torch

from ...chance.keys import Key, build
from ...core.design import Design
from ...core.guarantee import NOT_PRIVATE, Guarantee
from ...core.neighbors import Neighbors
from ...core.population import Population
from ...errors import BudgetExceeded, InvalidInput
from ...validation import one_of, whole
from . import checkpoint as files
from .batches import Batches, CoinBatches, DesignBatches
from .dpis import DPISBatches, DPISPlan
from .loader import BatchSource
from .plan import SAMPLERS, Plan, calibrated
from .records import Records, refuse_sampler
from .run import Run

_USED: set[bytes] = set()  # keys that have drawn in this process


@dataclass(frozen=True, slots=True)
class Progress:
    """After a step. `loss` is the mean over the drawn batch: SECRET, for the eyes of those who hold the data."""

    step: int
    steps: int
    secret_loss: float = field(repr=False)
    secret_batch: int = field(repr=False)


class PrivacyEngine:
    """Trains a torch module with differential privacy on batches drawn by importance, uniformly or by a design.

        engine = PrivacyEngine()
        model, optimizer, criterion, loader = engine.make_private(
            module=model, optimizer=optimizer, criterion=criterion, data_loader=loader,
            sample_rate=0.05, steps=1000, target_epsilon=3.0, target_delta=1e-5, max_grad_norm=1.0, public_size=60000,
            sampler="importance",
        )

    then the usual loop (zero_grad, forward, criterion, backward, step), or `engine.train()`. One engine, one run.
    """

    def __init__(self, *, key: Key | None = None) -> None:
        self._key = key or Key.generate()
        self._run: Run | None = None
        self._saved_to: Path | None = None
        self._neighbors: Neighbors | None = None

    def make_private(
        self,
        *,
        module: Any,
        optimizer: Any,
        criterion: Any,
        data_loader: Any,
        steps: int,
        max_grad_norm: float,
        sample_rate: float | None = None,
        public_size: int | None = None,
        noise_multiplier: float | None = None,
        target_epsilon: float | None = None,
        target_delta: float | None = None,
        sampler: str | Design = "importance",
        growth: float | None = None,
        floor: float | None = None,
        neighbors: Neighbors | None = None,
        max_physical_batch_size: int | None = None,
        steps_per_epoch: int | None = None,
        ids: Iterable[Any] | None = None,
        checkpoint: str | os.PathLike[str] | None = None,
        checkpoint_every: int | None = None,
        **dpis: Any,
    ) -> tuple[Any, Any, Any, BatchSource]:
        """Attach the run to the module and the optimiser; returns module, optimizer, criterion, batches.

        `sample_rate` is the largest chance of a record to be drawn in a step, `public_size` a public (rough) number of
        records that sums are divided by, `max_grad_norm` the clip. Give `noise_multiplier` (noise over clip), or
        `target_epsilon` and `target_delta` for all `steps`. `sampler` is "uniform" (DP-SGD), "importance",
        "importance-reject", "dpis" (with the options of `DPISPlan`), or a design. `growth` and `floor` steer how a
        record's last gradient norm bounds its next (floor: a norm, clip/100 by default). With a `checkpoint` the run is
        saved there (a SECRET file) every `checkpoint_every` steps, and taken up again if the file exists.
        """
        if self._run is not None:
            raise InvalidInput(
                "this engine already has a run, whose rate and noise cannot change; make a new PrivacyEngine"
            )
        self._neighbors = neighbors
        whole(1, steps=steps)
        if checkpoint_every is not None:
            whole(1, checkpoint_every=checkpoint_every)
        plan = _planned(
            sampler, steps, max_grad_norm, sample_rate, public_size, noise_multiplier, target_epsilon, target_delta,
            growth, floor, max_physical_batch_size, steps_per_epoch, neighbors, dpis,
        )  # fmt: skip
        plan.guarantee(1, neighbors)  # a design without a theorem is refused before anything is drawn
        records = Records(data_loader, next(module.parameters()).device)
        population = Population(range(records.size) if ids is None else ids)
        if population.size != records.size:
            raise InvalidInput("ids must name every record of the data set once, but their number differs")
        stored = None
        if checkpoint is not None and Path(checkpoint).exists():
            stored = files.read(checkpoint)
            self._key = _stored_key(stored)
        self._claim_key(resumed=stored is not None)
        batches = _batches(plan, population, self._key)
        self._run = run = Run(plan, batches, self._key, module, optimizer, criterion, records)
        if stored is not None:
            self.load_state_dict(stored)
        if checkpoint is not None:
            self._keep(Path(checkpoint), checkpoint_every or max(1, steps // 100))
        epoch = steps_per_epoch or _epoch_of(plan)
        return module, optimizer, run.criterion, BatchSource(run, epoch)

    @property
    def step(self) -> int:
        """Steps taken."""
        return self._running.step

    @property
    def plan(self) -> Plan | DPISPlan:
        """The public plan of the run."""
        return self._running.plan

    @property
    def is_finished(self) -> bool:
        """Whether all certified steps are taken."""
        return self._running.is_finished

    def train(self, steps: int | None = None, on_step: Callable[[Progress], None] | None = None) -> int:
        """Take `steps` more steps, all that are left by default; returns how many were taken.

        Stops early only when the filter of "dpis" closes. `on_step` is called after every step.
        """
        run = self._running
        wanted = run.plan.steps - run.step if steps is None else steps
        whole(0, steps=wanted)
        for taken in range(wanted):
            try:
                loss, drawn = self._one_step(run)
            except BudgetExceeded:
                if taken == 0 and wanted:
                    raise
                return taken
            if on_step is not None:
                on_step(Progress(run.step, run.plan.steps, loss, drawn))
        return wanted

    @staticmethod
    def _one_step(run: Run) -> tuple[float, int]:
        total, drawn = 0.0, 0
        for part in run.parts(padded=True):
            size = part.positions.size
            records = run.padded_positions(part)
            losses = run.losses(run.records.take(records)) if size else torch.zeros(0, device=run.device)
            run.backward(losses)
            run.optimizer.step()
            total, drawn = total + float(losses.detach()[:size].sum()), drawn + size
        return total / max(drawn, 1), drawn

    def guarantee(self, neighbors: Neighbors | None = None) -> Guarantee:
        """What all the planned steps cost together, taken or not."""
        return self._marked(self.plan.guarantee(None, neighbors or self._neighbors))

    def spent(self, neighbors: Neighbors | None = None) -> Guarantee | None:
        """What the steps taken so far cost, or None before the first; for "dpis" the limit that holds throughout."""
        if self.step == 0:
            return None
        return self._marked(self.plan.guarantee(self.step, neighbors or self._neighbors))

    def get_epsilon(self, delta: float) -> float:
        """Epsilon of the steps taken so far."""
        spent = self.spent()
        return spent.epsilon(delta) if spent is not None else 0.0

    def state_dict(self) -> dict[str, Any]:
        """Everything needed to go on. SECRET: it holds the key and what is remembered of every record."""
        run = self._running
        return {
            "format": files.FORMAT,
            "plan": run.plan.facts(),
            "step": run.step,
            "device": run.device.type,
            "model": run.module.state_dict(),
            "optimizer": run.optimizer.state_dict(),
            "secret": {
                "key": torch.frombuffer(bytearray(self._key.secret_bytes()), dtype=torch.uint8),
                "is_test": self._key.is_test,
                "records": run.records.size,
                "batches": files.packed(run.batches.state()),
            },
        }

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Go on from a state of a run with the same plan, records and key."""
        run = self._running
        _same_plan(state["plan"], run.plan.facts())
        if _stored_key(state) != self._key:
            raise InvalidInput(
                "this state belongs to another run; resume it with PrivacyEngine.make_private(checkpoint=…)"
            )
        if state["secret"]["records"] != run.records.size:
            raise InvalidInput(
                "the data set has another number of records than when the state was saved; give the same data"
            )
        if state["device"] != run.device.type:
            raise InvalidInput(
                f"the run was made on {state['device']} and this module is on {run.device.type}, where a repeated step "
                "would come out slightly different under the same noise; resume it where it was made"
            )
        try:
            run.module.load_state_dict(state["model"])
            run.optimizer.load_state_dict(state["optimizer"])
        except (RuntimeError, ValueError, KeyError):
            raise InvalidInput("the module or optimizer is not the one that was saved; build them as before") from None
        run.batches.restore(files.unpacked(state["secret"]["batches"]))
        run.step = int(state["step"])

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the state to a SECRET file (readable by you alone), whole or not at all."""
        files.write(path, self.state_dict(), secret=True)

    def publish(self, path: str | os.PathLike[str], *, delta: float = 1e-6) -> None:
        """Write the model, the plan and its guarantee to a file that may be shared."""
        run = self._running
        facts = {"format": files.FORMAT, "plan": run.plan.facts(), "step": run.step, "model": run.module.state_dict()}
        files.write(path, {**facts, "guarantee": self.guarantee().to_json(delta=delta)}, secret=False)

    def detach(self) -> None:
        """Take the hooks off the module and the optimiser; the run is over."""
        self._running.detach()

    def __repr__(self) -> str:
        if self._run is None:
            return "PrivacyEngine(no run)"
        return f"PrivacyEngine(sampler={self.plan.sampler!s}, step={self.step} of {self.plan.steps})"

    @property
    def _running(self) -> Run:
        if self._run is None:
            raise InvalidInput("this engine has no run yet; call make_private first")
        return self._run

    def _marked(self, guarantee: Guarantee) -> Guarantee:
        return replace(guarantee, assumes=(*guarantee.assumes, NOT_PRIVATE)) if self._key.is_test else guarantee

    def _claim_key(self, *, resumed: bool) -> None:
        """The same key twice would draw the same coins and noise for another run."""
        if self._key.fingerprint in _USED and not resumed and not self._key.is_test:
            raise InvalidInput(
                "this key has already trained a model, and its noise must not be used twice; take a fresh one"
            )
        _USED.add(self._key.fingerprint)

    def _keep(self, path: Path, every: int) -> None:
        """Save now, so that the key outlives a crash, and then every so many steps and at the end."""
        run = self._running
        self.save(path)

        def after_step() -> None:
            if run.step % every == 0 or run.is_finished:
                self.save(path)

        run.after_step = after_step


def device(name: str) -> Any:
    """The torch device of a name such as "cpu" or "cuda", or a sentence when it is not there."""
    try:
        found = torch.device(name)
    except RuntimeError:
        raise InvalidInput(f"device must be cpu, cuda or cuda:N, got {name!r} instead") from None
    if found.type == "cuda" and (found.index or 0) >= torch.cuda.device_count():
        raise InvalidInput(f"{name} was asked for but torch sees {torch.cuda.device_count()} CUDA devices; use cpu")
    return found


def _planned(
    sampler: Any,
    steps: int,
    clip: float,
    rate: float | None,
    public_size: int | None,
    noise: float | None,
    epsilon: float | None,
    delta: float | None,
    growth: float | None,
    floor: float | None,
    physical: int | None,
    epoch: int | None,
    neighbors: Neighbors | None,
    dpis: dict[str, Any],
) -> Plan | DPISPlan:
    if not isinstance(sampler, (str, Design)):
        refuse_sampler(sampler)
        raise InvalidInput(
            f"sampler must be one of {', '.join(SAMPLERS)} or a design, got {type(sampler).__name__} instead"
        )
    if isinstance(sampler, str):
        one_of(SAMPLERS, sampler=sampler)
    if public_size is None:
        public_size = getattr(sampler, "population", None)
    if public_size is None:
        raise InvalidInput(
            "public_size is missing: a public (rough) number of records to divide by, since the true one is secret"
        )
    if (epsilon is None) != (delta is None) or (noise is None) == (epsilon is None):
        raise InvalidInput("give either noise_multiplier, or both target_epsilon and target_delta")
    options: dict[str, Any] = {} if growth is None else {"growth": growth}
    options["floor"] = clip / 100 if floor is None else floor
    if sampler == "dpis":
        return _dpis(steps, clip, rate, public_size, epsilon, delta, physical, epoch, {**options, **dpis})
    if dpis:
        raise InvalidInput(f"{min(dpis)} is an option of sampler='dpis' or unknown; leave it out")
    if noise is None:
        noise = calibrated(sampler, rate, steps, epsilon or 0.0, delta or 0.0, neighbors)
    return Plan(
        sampler=sampler, steps=steps, noise_multiplier=noise, clip=clip, public_size=public_size, rate=rate,
        physical_batch=physical, **options,
    )  # fmt: skip


def _dpis(
    steps: int,
    clip: float,
    rate: float | None,
    public_size: int,
    epsilon: float | None,
    delta: float | None,
    physical: int | None,
    epoch: int | None,
    options: dict[str, Any],
) -> DPISPlan:
    if epsilon is None or delta is None:
        raise InvalidInput("sampler='dpis' chooses its noise while training; give target_epsilon and target_delta")
    unknown = options.keys() - set(DPISPlan.__slots__)
    if unknown:
        raise InvalidInput(f"{min(unknown)} is not an option of sampler='dpis'; see privamp.torch.DPISPlan")
    return DPISPlan(
        rate=rate if rate is not None else 0.0, steps=steps, epsilon=epsilon, delta=delta, clip=clip,
        public_size=public_size, physical_batch=physical, steps_per_epoch=epoch, **options,
    )  # fmt: skip


def _batches(plan: Plan | DPISPlan, population: Population, key: Key) -> Batches:
    if isinstance(plan, DPISPlan):
        return DPISBatches(plan, population, key)
    return (DesignBatches if isinstance(plan.sampler, Design) else CoinBatches)(plan, population, key)


def _epoch_of(plan: Plan | DPISPlan) -> int:
    """Steps after which as many records are expected as there are."""
    if isinstance(plan, DPISPlan):
        return plan.epoch
    return max(1, round(plan.public_size / plan.normaliser))


def _stored_key(state: dict[str, Any]) -> Key:
    secret = state["secret"]
    return build(bytes(secret["key"].tolist()), is_test=bool(secret["is_test"]))


def _same_plan(stored: dict[str, Any], asked: dict[str, Any]) -> None:
    for name in asked:
        if stored.get(name) != asked[name]:
            raise InvalidInput(
                f"the saved run has {name}={stored.get(name)!r} and this one asks for {asked[name]!r}; a run cannot "
                "change on the way: resume it as it was, or start a new one with a new checkpoint"
            )
