"""The engine: takes a module, an optimiser, a criterion and a data set, and makes the usual training loop private."""

import os
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import torch

from ..chance.keys import Key, given_key
from ..core.design import Design
from ..core.guarantee import NOT_PRIVATE, Guarantee
from ..core.ledger import BudgetLike
from ..core.log import logger
from ..core.neighbors import Neighbors
from ..core.population import UNNAMED, Population
from ..core.release import Release, renamed
from ..core.schedule import Schedule
from ..errors import BudgetExceeded, InvalidInput, PrivampError
from ..validation import whole
from . import checkpoint as files
from .choices import Choices, batches_of, epoch_of, kind_of_sums, planned
from .classes import class_column
from .device_normals import CHACHA20, makes_noise
from .dpis import DPISPlan
from .from_loader import SIZE_IS_PUBLIC, check_loader, filled
from .keeping import Keeper, go_back, share, state_of, stored_key
from .learner import Compute, Learner, device_of, usual
from .loader import BatchSource
from .paying import check_key, open_run
from .plan import AS_ZERO, Plan
from .records import Records
from .run import Run
from .team import Team, unwrapped


@dataclass(frozen=True, slots=True)
class Progress:
    """The state after a step. `loss` is the mean over the drawn batch: SECRET, only for the owner of the data."""

    step: int
    steps: int
    secret_loss: float = field(repr=False)
    secret_batch: int = field(repr=False)


class PrivacyEngine:
    """Trains a torch module with differential privacy on batches drawn by importance, uniformly or by a design.

        engine = PrivacyEngine()
        model, optimizer, criterion, loader = engine.make_private(
            module=model, optimizer=optimizer, criterion=criterion, data_loader=loader,
            sample_rate=0.05, steps=1000, target_epsilon=3.0, target_delta=1e-5, max_grad_norm=1.0, population=60000,
            sampler="importance",
        )

    then the usual loop (zero_grad, forward, criterion, backward, step), or `engine.train()`. One engine, one run. A
    `budget` is charged by `make_private` for all planned steps, before anything is drawn; a run that is resumed from
    its checkpoint is not charged again.
    """

    def __init__(self, *, key: Key | None = None, budget: BudgetLike | None = None, **others: Any) -> None:
        if others:
            raise InvalidInput(
                f"{min(others)} is not an option of PrivacyEngine, which composes privacy-loss distributions and draws "
                "from a cryptographic generator; omit it"
            )
        self._key = given_key(key)
        self._budget = budget
        self._run: Run | None = None
        self._neighbors: Neighbors | None = None
        self._is_size_public = False  # rate and divisor were taken from the data loader

    def make_private(
        self,
        *,
        module: Any,
        optimizer: Any,
        criterion: Any,
        data_loader: Any,
        max_grad_norm: float,
        steps: int | None = None,
        sample_rate: float | None = None,
        population: int | Mapping[Any, int] | None = None,
        noise_multiplier: float | None = None,
        target_epsilon: float | None = None,
        target_delta: float | None = None,
        sampler: str | Design | Schedule = "importance",
        growth: float | None = None,
        floor: float | None = None,
        neighbors: Neighbors | None = None,
        max_physical_batch_size: int | None = None,
        steps_per_epoch: int | None = None,
        bands: int | None = None,
        ids: Iterable[Any] | None = None,
        checkpoint: str | os.PathLike[str] | None = None,
        checkpoint_every: int | None = None,
        scheduler: Any = None,
        compute: Compute | None = None,
        example: Any = None,
        public_size: int | None = None,
        epochs: int | None = None,
        penalty: Callable[[Any], Any] | None = None,
        keep_noise: bool = True,
        classes: Iterable[Any] | None = None,
        exact_sums: bool = False,
        **dpis: Any,
    ) -> tuple[Any, Any, Any, BatchSource]:
        """Attach the run to the module and the optimiser; returns module, optimizer, criterion, batches.

        `sample_rate` is the largest probability that a record is drawn in a step, `population` a public (rough) number
        of records that sums are divided by, `max_grad_norm` the clip. Give `noise_multiplier` (noise over clip), or
        `target_epsilon` and `target_delta` for all `steps`. `sampler` is "uniform" (DP-SGD), "importance",
        "importance-reject", "dpis" (with the options of `DPISPlan`), a design, or a schedule, which knows its `steps`:
        `BallsInBins` (every record once an epoch), or `CyclicPoisson`, whose rounds share their noise in `bands` (its
        own number of them by default, 1: independent noise; with `keep_noise=False` no earlier noise is kept in memory,
        it is made again from the key). `PoissonPPS.by_class` needs the class of every record in `classes`, and a
        `population` by class: {class: public number}. `growth` and `floor` control how a record's last gradient norm
        bounds its next (floor: a norm, clip/100 by default). With a `checkpoint` the run is saved there (a SECRET file,
        and a journal of the steps since) every `checkpoint_every` steps, and resumed if the file exists. A
        `scheduler` is stepped after every step, and kept in the checkpoint.

        Before anything is drawn, the model and the criterion are tried on made-up records of the data's shape: they
        must keep records apart. `example` is a batch of at least 3 made-up records (inputs..., target) for models that
        do not accept arbitrary numbers. `compute(module, criterion, batch)` says how a batch becomes losses if not by
        `criterion(module(*inputs), target)`. `public_size` is the old name of `population`.

        With criterion=None the model returns its own loss, computed from the labels of its batch. `epochs` in place of
        `sample_rate`, `steps` and `population` takes them from the batch size and the length of the data loader, whose
        number of records is then public; a design keeps its rate and a schedule its steps. `penalty(module)` is a term
        of the parameters alone, such as a weight decay. With `exact_sums` the clipped gradient of every record is
        rounded by itself and sums have no rounding error, which takes memory and time; with
        `max_physical_batch_size=1` on a CPU nothing about rounding is assumed then.
        """
        check_loader(data_loader)
        if epochs is not None:
            given = {"sample_rate": sample_rate, "steps": steps, "population": population}
            sizes = filled(data_loader, epochs, sampler, {**given, "steps_per_epoch": steps_per_epoch})
            sample_rate, steps, population, steps_per_epoch = sizes.values()
            self._is_size_public = True
        if public_size is not None and population is None:
            renamed("public_size", "population")
            population = public_size
        if self._run is not None:
            raise InvalidInput(
                "this engine already has a run, whose rate and noise cannot change; make a new PrivacyEngine"
            )
        self._neighbors = neighbors
        if checkpoint_every is not None:
            whole(1, checkpoint_every=checkpoint_every)
        plan = planned(
            Choices(
                sampler=sampler, steps=steps, clip=max_grad_norm, rate=sample_rate, population=population,
                noise=noise_multiplier, epsilon=target_epsilon, delta=target_delta, growth=growth, floor=floor,
                physical=max_physical_batch_size, epoch=steps_per_epoch, bands=bands, neighbors=neighbors, dpis=dpis,
                sums=kind_of_sums(exact_sums, max_physical_batch_size, device_of(module)),
            )
        )  # fmt: skip
        plan.guarantee(1, neighbors)  # a design without a theorem is rejected before anything is drawn
        records = Records(data_loader, device_of(module))
        people = Population(range(records.size) if ids is None else ids, UNNAMED, **class_column(plan.sampler, classes))
        if people.size != records.size:
            raise InvalidInput("ids must have one entry per record of the data set; check their number")
        team = Team(module)
        self._check_team(team, plan, records.size, checkpoint is not None)
        is_stored = checkpoint is not None and Path(checkpoint).exists()
        stored = team.on_first(lambda: files.read(checkpoint or "") if is_stored else None)
        key = team.same_key(self._key) if stored is None else stored_key(stored)
        check_key(key, stored, self._budget)
        learner = Learner(
            module,
            optimizer,
            criterion,
            scheduler=scheduler,
            compute=compute or usual,
            penalty=penalty,
            example=example,
            keeps_noise=keep_noise,
        )
        run = Run(plan, batches_of(plan, people), key, learner, records, team)
        keeper = None
        if checkpoint is not None and team.is_first:
            keeper = Keeper(run, key, Path(checkpoint), checkpoint_every or max(1, plan.steps // 100))
        try:
            run.is_recorded = checkpoint is not None or self._budget is not None
            self._begin(run, key, keeper, resumed=stored is not None)
        except BaseException:
            run.detach()  # a rejected run trains nothing
            raise
        self._key, self._run = key, run
        logger.info("%s; try the model on public records first", AS_ZERO)
        returned = None if criterion is None else run.criterion
        return module, optimizer, returned, BatchSource(run, steps_per_epoch or epoch_of(plan))

    def make_private_with_epsilon(
        self,
        *,
        module: Any,
        optimizer: Any,
        data_loader: Any,
        target_epsilon: float,
        target_delta: float,
        epochs: int,
        max_grad_norm: float,
        criterion: Any = None,
        sampler: str | Design | Schedule = "uniform",
        **options: Any,
    ) -> tuple[Any, Any, Any, BatchSource]:
        """`make_private` as in Opacus: batch size and number of records are those of the data loader.

        Returns module, optimizer, criterion, batches, as Opacus does with ghost clipping. The noise is the smallest
        for which all `epochs` are (target_epsilon, target_delta)-DP; Poisson-sampled DP-SGD unless `sampler` is given,
        such as `BallsInBins(rounds, epochs)` in place of shuffling.
        """
        return self.make_private(
            module=module, optimizer=optimizer, criterion=criterion, data_loader=data_loader, epochs=epochs,
            target_epsilon=target_epsilon, target_delta=target_delta, max_grad_norm=max_grad_norm, sampler=sampler,
            **options,
        )  # fmt: skip

    @property
    def step(self) -> int:
        """The number of steps taken, including those before a resume."""
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
        wanted = max(run.left, 0) if steps is None else steps
        whole(0, steps=wanted)
        for taken in range(wanted):
            try:
                loss, drawn = self._one_step(run, tells_loss=on_step is not None)
            except BudgetExceeded:
                if taken == 0 and wanted:
                    raise
                return taken
            if on_step is not None:
                on_step(Progress(run.step, run.plan.steps, loss, drawn))
        return wanted

    @staticmethod
    def _one_step(run: Run, *, tells_loss: bool = False) -> tuple[float, int]:
        total, drawn = 0.0, 0
        for part in run.parts(padded=True):
            losses, some = run.losses(part)
            run.backward(losses, some)
            run.optimizer.step()
            size = part.positions.size
            if tells_loss and losses is not None:  # which waits for the device
                total += float(losses.detach()[:size].nan_to_num(0.0, 0.0, 0.0).sum())
            drawn += size
        return total / max(drawn, 1), drawn

    def guarantee(self, neighbors: Neighbors | None = None) -> Guarantee:
        """The guarantee of all planned steps, taken or not."""
        return self._marked(self.plan.guarantee(None, neighbors or self._neighbors), self._key, self._running)

    def spent(self, neighbors: Neighbors | None = None) -> Guarantee | None:
        """The guarantee of the steps begun so far, or None before the first; for "dpis" the limit of the whole run."""
        begun = self._running.charged
        if begun == 0 and self._running.batches.side_releases == 0:
            return None
        return self._marked(self.plan.guarantee(max(begun, 1), neighbors or self._neighbors), self._key, self._running)

    def get_epsilon(self, delta: float) -> float:
        """Epsilon of the steps begun so far: a step that was lost in a crash counts."""
        spent = self.spent()
        return spent.epsilon(delta) if spent is not None else 0.0

    def state_dict(self) -> dict[str, Any]:
        """Everything needed to resume. SECRET: it holds the key and the bounds of every record."""
        return state_of(self._running, self._key)

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Return to a state of this run. Steps made since then still count; they are repeated with fresh randomness."""
        go_back(self._running, self._key, state)

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the state to a SECRET file (readable by you alone), atomically."""
        files.write(path, self.state_dict(), secret=True)

    def publish(self, path: str | os.PathLike[str], *, delta: float = 1e-6) -> None:
        """Write the model, the plan and its guarantee to a file that may be shared."""
        files.write(path, self._published(delta), secret=False)

    def published(self, *, delta: float = 1e-6) -> bytes:
        """What `publish` writes."""
        return files.to_bytes(self._published(delta))

    def _published(self, delta: float) -> dict[str, Any]:
        run = self._running
        facts = {
            "format": files.FORMAT,
            "plan": run.plan.facts(),
            "step": run.step,
            "model": unwrapped(run.module).state_dict(),
        }
        return {**facts, "guarantee": self.guarantee().to_json(delta=delta)}

    def result(self, *, delta: float | None = None) -> Release:
        """The trained parameters by name as a `Release`, with the plan as its details.

        `delta` is the one that its certificate is stated at. How far noise and sampling moved a parameter is not known.
        """
        run = self._running
        learned = {name: p.detach().cpu().double().numpy().copy() for name, p in run.named_parameters()}
        details = {**run.plan.facts(), "steps_run": run.step, "delta": delta}
        return Release(learned, None, None, self.guarantee(), details=details)

    def detach(self) -> None:
        """Remove the hooks from the module and the optimiser; the run is over."""
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

    def _check_team(self, team: Team, plan: Plan | DPISPlan, records: int, keeps: bool) -> None:
        if team.size > 1 and isinstance(plan, DPISPlan) and (keeps or self._budget is not None):
            raise InvalidInput(
                "sampler='dpis' records more than steps, which several processes cannot do together; omit checkpoint= "
                "and budget=, or use sampler='importance'"
            )
        facts = {name: fact for name, fact in plan.facts().items() if name != "noise_multiplier"}  # the first one's
        team.check(records, {"checkpoint": keeps, "budget": self._budget is not None, **facts})

    def _begin(self, run: Run, key: Key, keeper: Keeper | None, *, resumed: bool) -> None:
        """Resume the run or create its files, and charge for it; a new run is stored first, so that a crash loses no
        charge. Of several processes the first does both."""
        run.is_paid = self._budget is not None
        run.team.on_first(lambda: self._open(run, key, keeper, resumed=resumed))
        if not run.team.is_first:
            self._pay(run, key, resumed=resumed)
        if resumed and run.team.size > 1:
            share(run, key)

    def _open(self, run: Run, key: Key, keeper: Keeper | None, *, resumed: bool) -> None:
        if keeper is None:
            self._pay(run, key, resumed=False)
        elif resumed:
            with keeper.going_on():
                self._pay(run, key, resumed=True)
        else:
            keeper.begin()
            try:
                self._pay(run, key, resumed=False)
            except PrivampError:
                keeper.remove()
                raise

    def _pay(self, run: Run, key: Key, *, resumed: bool) -> None:
        def certified(neighbors: Neighbors | None) -> Guarantee:
            return self._marked(run.plan.guarantee(None, neighbors), key, run)

        budget = self._budget if run.team.is_first else None
        paid = open_run(run.plan, key, certified, budget, resumed=resumed)
        if paid is not None:
            paid.follow(run)

    def _marked(self, guarantee: Guarantee, key: Key, run: Run) -> Guarantee:
        said = {SIZE_IS_PUBLIC: self._is_size_public, CHACHA20: makes_noise(run.device), NOT_PRIVATE: key.is_test}
        return replace(guarantee, assumes=(*guarantee.assumes, *(text for text, holds in said.items() if holds)))


def device(name: str) -> Any:
    """The torch device of a name such as "cpu" or "cuda"; raises if it is not available."""
    try:
        found = torch.device(name)
    except RuntimeError:
        raise InvalidInput(f"device must be cpu, cuda or cuda:N, got {name!r} instead") from None
    if found.type == "cuda" and (found.index or 0) >= torch.cuda.device_count():
        raise InvalidInput(
            f"{name} is not available, because torch finds {torch.cuda.device_count()} CUDA devices; use cpu"
        )
    return found
