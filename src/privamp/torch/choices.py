"""From the options of `make_private` to a plan and its source of batches."""

from dataclasses import dataclass, replace
from typing import Any

from ..core.design import Design
from ..core.neighbors import Neighbors
from ..core.population import Population
from ..core.schedule import Schedule
from ..errors import InvalidInput
from ..validation import one_of, positive, whole
from .batches import Batches, DesignBatches, ImportanceBatches
from .classes import expected_batch
from .dpis import DPISBatches, DPISPlan
from .plan import SAMPLERS, Plan, calibrated, check_steps
from .records import refuse_sampler
from .scheduled import ScheduleBatches


@dataclass(frozen=True, slots=True, kw_only=True)
class Choices:
    """The options of `make_private` that a plan is made of."""

    sampler: Any
    steps: int | None
    clip: float
    rate: float | None
    population: Any
    noise: float | None
    epsilon: float | None
    delta: float | None
    growth: float | None
    floor: float | None
    physical: int | None
    epoch: int | None
    bands: int | None
    neighbors: Neighbors | None
    sums: str
    dpis: dict[str, Any]

    @property
    def shape(self) -> dict[str, Any]:
        """How a record's last norm bounds its next."""
        given = {} if self.growth is None else {"growth": self.growth}
        return {**given, "floor": self.clip / 100 if self.floor is None else self.floor}


def planned(chosen: Choices) -> Plan | DPISPlan:
    """The plan that these options describe."""
    positive(max_grad_norm=chosen.clip)
    if not isinstance(chosen.clip, (int, float)):
        chosen = replace(chosen, clip=float(chosen.clip))
    sampler, steps = _drawn_by(chosen.sampler, chosen.steps)
    if not isinstance(sampler, (str, Design, Schedule)):
        refuse_sampler(sampler)
        given = f"the class {sampler.__name__}" if isinstance(sampler, type) else type(sampler).__name__
        raise InvalidInput(
            f"sampler must be one of {', '.join(SAMPLERS)}, a design or a schedule such as Poisson(0.01), got {given} "
            "instead"
        )
    if isinstance(sampler, str):
        one_of(SAMPLERS, sampler=sampler)
    population, expected = expected_batch(sampler, chosen.population)
    if population is None:
        population = getattr(sampler, "public_size", None)
    if population is None:
        raise InvalidInput(
            "population is missing: give a public (rough) number of records to divide by, because the true one is "
            "secret"
        )
    epsilon, delta, noise = chosen.epsilon, chosen.delta, chosen.noise
    if (epsilon is None) != (delta is None) or (noise is None) == (epsilon is None):
        raise InvalidInput("give either noise_multiplier, or both target_epsilon and target_delta")
    if sampler == "dpis":
        return _dpis(chosen, population, steps)
    if chosen.dpis:
        raise InvalidInput(f"{min(chosen.dpis)} is unknown, or an option of sampler='dpis' only; omit it")
    if noise is None:
        noise = calibrated(sampler, chosen.rate, steps, epsilon or 0.0, delta or 0.0, chosen.neighbors)
    usual = sampler.apart if isinstance(sampler, Schedule) else 1
    return Plan(
        sampler=sampler, steps=steps, noise_multiplier=noise, clip=chosen.clip, population=population,
        rate=chosen.rate, physical_batch=chosen.physical, bands=usual if chosen.bands is None else chosen.bands,
        expected=expected, sums=chosen.sums, **chosen.shape,
    )  # fmt: skip


def _drawn_by(sampler: Any, steps: int | None) -> tuple[Any, int]:
    """The sampler and the number of steps, which a schedule knows; rounds of one design are that design."""
    if steps is None and not isinstance(sampler, Schedule):
        raise InvalidInput("steps is missing: give the number of steps of the run, such as steps=1000")
    found = sampler.steps if steps is None else steps
    whole(1, steps=found)
    if isinstance(sampler, Schedule) and sampler.repeated is not None:
        check_steps(sampler, found)
        return sampler.repeated, found
    return sampler, found


def _dpis(chosen: Choices, population: int, steps: int) -> DPISPlan:
    if chosen.bands is not None or chosen.sums != "float":
        given = "exact_sums" if chosen.bands is None else "bands"
        raise InvalidInput(f"{given} is not an option of sampler='dpis'; omit it")
    if chosen.epsilon is None or chosen.delta is None:
        raise InvalidInput("sampler='dpis' chooses its noise while training; give target_epsilon and target_delta")
    options = {**chosen.shape, **chosen.dpis}
    unknown = options.keys() - set(DPISPlan.__slots__)
    if unknown:
        raise InvalidInput(f"{min(unknown)} is not an option of sampler='dpis'; see privamp.torch.DPISPlan")
    return DPISPlan(
        rate=chosen.rate if chosen.rate is not None else 0.0, steps=steps, epsilon=chosen.epsilon,
        delta=chosen.delta, clip=chosen.clip, population=population, physical_batch=chosen.physical,
        steps_per_epoch=chosen.epoch, **options,
    )  # fmt: skip


def batches_of(plan: Plan | DPISPlan, population: Population) -> Batches:
    """The source of a plan's batches."""
    if isinstance(plan, DPISPlan):
        return DPISBatches(plan, population)
    if isinstance(plan.sampler, Schedule):
        return ScheduleBatches(plan, population, plan.sampler)
    is_plain = isinstance(plan.sampler, Design) or plan.sampler == "uniform"
    return (DesignBatches if is_plain else ImportanceBatches)(plan, population)


def kind_of_sums(exact: bool, physical: int | None, device: Any) -> str:
    """How gradients are added up: only a CPU computes a record alone in the same way every time."""
    if not exact:
        return "float"
    return "exact, one by one" if physical == 1 and device.type == "cpu" else "exact"


def epoch_of(plan: Plan | DPISPlan) -> int:
    """Steps after which as many records are expected as there are."""
    if isinstance(plan, DPISPlan):
        return plan.epoch
    return max(1, round(plan.size / plan.normaliser))
