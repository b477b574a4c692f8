"""From the options of `make_private` to a plan and to where its batches come from."""

from typing import Any

from ..core.design import Design
from ..core.neighbors import Neighbors
from ..core.population import Population
from ..errors import InvalidInput
from ..validation import one_of
from .batches import Batches, DesignBatches, ImportanceBatches
from .dpis import DPISBatches, DPISPlan
from .plan import SAMPLERS, Plan, calibrated
from .records import refuse_sampler


def planned(
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
    """The plan that these options of `make_private` describe."""
    if not isinstance(sampler, (str, Design)):
        refuse_sampler(sampler)
        raise InvalidInput(
            f"sampler must be one of {', '.join(SAMPLERS)} or a design, got {type(sampler).__name__} instead"
        )
    if isinstance(sampler, str):
        one_of(SAMPLERS, sampler=sampler)
    if public_size is None:
        public_size = getattr(sampler, "public_size", None)
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


def batches_of(plan: Plan | DPISPlan, population: Population) -> Batches:
    """Where the batches of a plan come from."""
    if isinstance(plan, DPISPlan):
        return DPISBatches(plan, population)
    is_plain = isinstance(plan.sampler, Design) or plan.sampler == "uniform"
    return (DesignBatches if is_plain else ImportanceBatches)(plan, population)


def epoch_of(plan: Plan | DPISPlan) -> int:
    """Steps after which as many records are expected as there are."""
    if isinstance(plan, DPISPlan):
        return plan.epoch
    return max(1, round(plan.public_size / plan.normaliser))
