"""The public plan of a training run, fixed before the first step, and the guarantee it has."""

import math
from dataclasses import InitVar, dataclass, fields, replace
from importlib import import_module
from typing import Any, cast

from ..accounting.composition import compose
from ..amplification import amplify
from ..calibration import calibrate
from ..core.design import Design
from ..core.guarantee import Guarantee
from ..core.mechanism import IDEALISED
from ..core.neighbors import Neighbors
from ..core.release import renamed
from ..core.schedule import Schedule
from ..designs.poisson import Poisson
from ..errors import InvalidInput
from ..mechanisms.gaussian import Gaussian
from ..validation import in_range, one_of, positive, whole
from .importance import THEOREM, ImportanceRule

SAMPLERS = ("uniform", "importance", "importance-reject", "dpis")

ONLY_PARAMETERS = (
    "only the parameters after a step are seen, and nothing is steered by secrets: losses, norms, batch sizes and "
    "checkpoints stay secret (no learning rate that follows the loss)"
)
OWN_LOSS = (
    "a record's tensors, loss and gradient depend on no other record of its batch (tried on made-up records of the "
    "data's shape, which is public), but for rounding"
)
NO_STOP = "the run does not stop because of a record: engine.train() never does, a loop of one's own must not"
AS_ZERO = (
    "a record whose loss or gradient is no finite number counts as zero; how many do is secret, so nothing tells, "
    "even if all of them do"
)
SAME_DATA = "the data set stays as it is until the run ends, also between a crash and the resume"

ROUNDED_ALONE = "per-record gradients rounded independently of the batch"
_NOISES = (1e-2, 1e6)  # multipliers to choose from
SUMS = ("float", "exact", "exact, one by one")

Sampler = str | Design | Schedule


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """All public facts about a run. Noise of standard deviation `noise_multiplier * clip` is added.

    With several `bands` that noise is shared between rounds (`banded_noise.py`), which costs no privacy.
    """

    sampler: Sampler
    steps: int
    noise_multiplier: float
    clip: float
    population: int | None = None  # n0: the sum is divided by the expected sample size of this many records
    rate: float | None = None  # r; None when a design or a schedule draws
    growth: float = 2.0
    floor: float = 0.01
    physical_batch: int | None = None  # records held in memory at a time
    bands: int = 1  # of the noise
    expected: float | None = None  # size of a batch, where the design cannot tell (rates by class)
    sums: str = "float"  # exact: every record's gradient is rounded by itself, and whole numbers are added
    public_size: InitVar[int | None] = None  # the old name of `population`

    def __post_init__(self, public_size: int | None) -> None:
        take_old_name(self, public_size)
        whole(1, steps=self.steps, population=self.population)
        positive(noise_multiplier=self.noise_multiplier, max_grad_norm=self.clip, expected=self.expected or 1.0)
        if self.physical_batch is not None:
            whole(1, max_physical_batch_size=self.physical_batch)
        check_bands(self.sampler, self.bands)
        one_of(SUMS, sums=self.sums)
        if self.is_exact and self.bands > 1:
            raise InvalidInput(
                f"exact_sums needs noise on the grid, which several bands do not keep, got bands={self.bands} as well; "
                "use bands=1, or omit exact_sums"
            )
        if isinstance(self.sampler, (Design, Schedule)):
            check_design(self.sampler, self.size, self.rate)
            check_steps(self.sampler, self.steps)
        else:
            check_rate(self.rate)
            self.rule  # noqa: B018 (checks growth and floor)

    @property
    def size(self) -> int:
        """The public number of records."""
        return int(self.population or 0)

    @property
    def is_exact(self) -> bool:
        """Whether the sums of a step are exact."""
        return self.sums != "float"

    @property
    def design(self) -> Design:
        """The design that draws one step: for importance sampling, Poisson at the largest rate."""
        return self.sampler if isinstance(self.sampler, Design) else Poisson(float(self.rate or 0.0))

    @property
    def rule(self) -> ImportanceRule:
        """The sampling rule of the Poisson samplers."""
        rejects = self.sampler == "importance-reject"
        return ImportanceRule(float(self.rate or 0.0), float(self.clip), self.growth, self.floor, rejects)

    @property
    def normaliser(self) -> float:
        """What the noisy sum is divided by: a public number."""
        if self.expected is not None:
            return self.expected
        if isinstance(self.sampler, Schedule):
            return self.size / float(self.sampler.weight or math.inf)
        return self.design.expected_size(self.size)

    def guarantee(self, steps: int | None = None, neighbors: Neighbors | None = None) -> Guarantee:
        """The guarantee of `steps` of the run, all of them by default; under add/remove unless the design or
        `neighbors` is different."""
        noise, count = _noise(self.noise_multiplier), steps or self.steps
        if isinstance(self.sampler, Schedule):
            return stated(self._labelled(amplify(noise, self.sampler.begun(count), neighbors)), ())
        total = self._labelled(compose(amplify(noise, self.design, neighbors), count))
        return stated(total, () if isinstance(self.sampler, Design) or self.sampler == "uniform" else (THEOREM,))

    def _labelled(self, guarantee: Guarantee) -> Guarantee:
        """What is assumed about rounding: of everything, of per-record gradients, or nothing."""
        if not self.is_exact:
            return guarantee
        kept = tuple(text for text in guarantee.assumes if text != IDEALISED)
        return replace(guarantee, assumes=(ROUNDED_ALONE, *kept) if self.sums == "exact" else kept)

    def plot(self) -> Any:
        """A matplotlib figure of delta(epsilon) of the whole run, from both sides (pip install 'privamp[plots]')."""
        return self.guarantee().plot()

    def _repr_html_(self) -> str:
        """The plan as notebooks show it."""
        return shown(self)

    def facts(self) -> dict[str, Any]:
        """Names and values, for reports and to distinguish runs."""
        facts = {**facts_of(self), "sampler": str(self.sampler)}
        usual = {"bands": 1, "expected": None, "sums": "float"}  # not told, as before there were such fields
        return {name: fact for name, fact in facts.items() if name not in usual or fact != usual[name]}


def shown(plan: Any) -> str:
    """A plan of a training run as notebooks show it."""
    text: str = import_module("..report.shown_plans", __package__).training_fragment(plan)
    return text


def facts_of(plan: Any) -> dict[str, Any]:
    """The fields of a plan, under the names that they have in checkpoints and budgets."""
    stored = {"population": "public_size"}
    return {stored.get(field.name, field.name): getattr(plan, field.name) for field in fields(plan)}


def take_old_name(plan: Any, public_size: int | None) -> None:
    """`public_size` is the old name of `population`."""
    if public_size is not None and plan.population is None:
        renamed("public_size", "population", 5)
        object.__setattr__(plan, "population", public_size)


def stated(guarantee: Guarantee, theorems: tuple[str, ...]) -> Guarantee:
    """With the theorems and assumptions of training in front of those of the design."""
    return replace(
        guarantee,
        reasons=lambda: (*theorems, *guarantee.reasons()),
        assumes=(*guarantee.assumes, OWN_LOSS, ONLY_PARAMETERS, NO_STOP, AS_ZERO, SAME_DATA),
    )


def check_rate(rate: float | None) -> None:
    """Raise unless the rate is a probability above 0."""
    if rate is None:
        raise InvalidInput("sample_rate is missing; give the largest probability of a record to be drawn, such as 0.01")
    in_range(0, 1, sample_rate=rate)
    positive(sample_rate=rate)


def check_bands(sampler: Sampler, bands: int) -> None:
    """Rounds may share their noise where a record's rounds lie at least as far apart."""
    whole(1, bands=bands)
    most = sampler.apart if isinstance(sampler, Schedule) else 1
    if bands > most:
        raise InvalidInput(
            f"bands must be at most {most} with this sampler, because a record's rounds must be that far apart, got "
            f"{bands} instead; use fewer, or sampler=CyclicPoisson(rate, bands, steps)"
        )


def check_steps(sampler: Design | Schedule, steps: int) -> None:
    """Raise unless the steps are those of the schedule."""
    if isinstance(sampler, Schedule) and steps != sampler.steps:
        raise InvalidInput(f"{sampler} has {sampler.steps} steps, got {steps} instead; omit steps")


def check_design(design: Design | Schedule, population: int, rate: float | None) -> None:
    """Batches may come from the designs and schedules that draw records by their ids alone."""
    if design.reads and design.rates_by_class is None:
        raise InvalidInput(
            f"batches need designs that read only ids, such as Poisson or WithoutReplacement, got "
            f"{type(design).__name__} instead, which reads {', '.join(map(repr, design.reads))}"
        )
    if rate is not None:
        raise InvalidInput(f"{design} already sets the rate; omit sample_rate, got {rate!r} as well")
    if getattr(design, "public_size", None) not in (None, population):
        raise InvalidInput(f"population must be that of {design}, got {population} instead; omit it to use that one")


def calibrated(
    sampler: Sampler,
    rate: float | None,
    steps: int,
    epsilon: float,
    delta: float,
    neighbors: Neighbors | None = None,
) -> float:
    """The least noise multiplier whose whole run is (epsilon, delta)-DP."""
    if not isinstance(sampler, (Design, Schedule)):
        check_rate(rate)
    design = sampler if isinstance(sampler, (Design, Schedule)) else Poisson(float(rate or 0.0))
    in_range(0, 1, open_ends=True, target_delta=delta)
    positive(target_epsilon=epsilon)
    whole(1, steps=steps)
    times = 1 if isinstance(design, Schedule) else steps
    found = calibrate(_noise, design, epsilon=epsilon, delta=delta, steps=times, neighbors=neighbors, within=_NOISES)
    sigma = cast(Gaussian, found).sigma
    if sigma < _NOISES[1]:
        return sigma
    least = amplify(_noise(_NOISES[0]), design, neighbors)  # both ends pass where a target is far above all losses
    return _NOISES[0] if compose(least, times).epsilon(delta) <= epsilon else sigma


def _noise(multiplier: float) -> Gaussian:
    """Noise against a clip of 1: under replace-one a copy moves the sum by 2."""
    return Gaussian(multiplier, sensitivity=1.0, neighbors=Neighbors.ADD_REMOVE)
