"""The system of the DPIS paper with its errors corrected: released sums, rejection, adaptive clipping, two budget
phases.

Every epoch releases K, a noisy sum of gradient norms, and draws record i with probability b*bound_i/K. That is one step
of DP-SGD at rate r = bC/K with multiplier m = sigma_G N C/K. Corrected (docs/errata.md): bounds never exceed C; the
sampled sum of norms, scaled by 1/p after summing, has multiplier sigma_K p; the sum for the next clip goes over all
records, so it is not sampled; sums are divided by b once; the length of an epoch is public. sigma_G depends on earlier
releases, so the budget is a filter of one Rényi order fixed in advance, and training stops before it would be exceeded.
"""

import math
from dataclasses import InitVar, dataclass, replace
from typing import Any

import numpy as np

from ..accounting.amounts import Amounts, cost_amounts, number_of
from ..accounting.filters import RenyiFilter, added
from ..accounting.renyi import loss_within
from ..core.guarantee import Guarantee
from ..core.mechanism import IDEALISED
from ..core.neighbors import Neighbors
from ..core.population import Population
from ..core.sample import SeededSample
from ..designs.poisson import Poisson
from ..errors import BudgetExceeded, Infeasible, InvalidInput
from ..mechanisms.gaussian import Gaussian
from ..numerics.log_domain import FloatArray
from ..numerics.roots import NumericalFailure, least_passing
from ..validation import in_range, nonnegative, positive, whole
from .batches import Arrays, Batch, ImportanceBatches, Ints, Norms
from .importance import THEOREM, ImportanceRule
from .plan import facts_of, shown, stated, take_old_name
from .sampled_gaussian import renyi_step

_LOSS = "renyi_loss"
_ORDERS = (*range(2, 33), *range(34, 65, 2), *range(68, 129, 4), 160, 192, 256)
_SMALLEST, _LARGEST = 1e-2, 1e5  # of sigma_G
_SLACK = 1e-9  # of the limit: each cost is rounded up a little when it is counted


@dataclass(frozen=True, slots=True, kw_only=True)
class DPISPlan:
    """The public choices of a run. Expected batch b = rate * population, as in the paper."""

    rate: float
    steps: int
    epsilon: float
    delta: float
    clip: float  # C, of the first epoch
    population: int | None = None
    growth: float = 5.0  # k
    floor: float = 0.01  # gL
    steps_per_epoch: int | None = None  # None: 1/rate
    split: float = 0.8  # a_E: share of the epochs that assume the worst of later ones
    size_noise: float | None = None  # sigma_N; None: 0.02 population
    sum_noise: float | None = None  # sigma_K; None: 0.02 population
    external_clip: float | None = None  # C*; None: the clip stays as it is
    quantile: float = 1.0  # lambda
    order: int | None = None  # of the Rényi filter; None: the best for DP-SGD at this rate
    physical_batch: int | None = None
    public_size: InitVar[int | None] = None  # the old name of `population`

    sampler = "dpis"

    def __post_init__(self, public_size: int | None) -> None:
        take_old_name(self, public_size)
        in_range(0, 0.5, sample_rate=self.rate)
        positive(sample_rate=self.rate, target_epsilon=self.epsilon, quantile=self.quantile)
        in_range(0, 1, open_ends=True, target_delta=self.delta)
        in_range(0, 1, split=self.split)
        whole(1, steps=self.steps, population=self.population, steps_per_epoch=self.epoch)
        for name in ("size_noise", "sum_noise", "external_clip"):
            if getattr(self, name) is not None:
                positive(**{name: getattr(self, name)})
        ImportanceRule(self.rate, self.clip, self.growth, self.floor)
        if self.order is not None:
            whole(2, 256, order=self.order)

    @property
    def size(self) -> int:
        """The public number of records."""
        return int(self.population or 0)

    @property
    def epoch(self) -> int:
        """Steps between two sums of norms."""
        return self.steps_per_epoch if self.steps_per_epoch is not None else max(1, round(1.0 / self.rate))

    @property
    def epochs(self) -> int:
        """How many there are, the last one perhaps shorter."""
        return -(-self.steps // self.epoch)

    @property
    def noises(self) -> tuple[float, float]:
        """sigma_N and sigma_K."""
        usual = 0.02 * self.size
        return self.size_noise or usual, self.sum_noise or usual

    def sums(self, rate: float, order: int) -> tuple[float, float]:
        """Costs of the sampled sum of norms and of the sum for the next clip (over all records, so not sampled)."""
        sigma = self.noises[1]
        star = 0.5 * order / sigma**2 if self.external_clip is not None else 0.0
        return renyi_step(rate, sigma * rate, order), star

    def fixed(self, rate: float, order: int, done: int = 0) -> float:
        """The cost of the remaining sums after `done` epochs."""
        sampled, star = self.sums(rate, order)
        clips = self.epochs - max(done, 1)  # the first epoch opens without a sum for the clip
        return sampled * (self.epochs - done) + star * clips

    def filter(self) -> RenyiFilter:
        """The limit, at one order chosen now."""
        order = self.order if self.order is not None else self._best_order()
        return RenyiFilter(float(order), self.epsilon, self.delta)

    def _best_order(self) -> int:
        """The order at which plain DP-SGD at this rate would need the least noise."""
        noises = [(self._least_noise(order), order) for order in _ORDERS]
        found: list[tuple[float, int]] = [(sigma, order) for sigma, order in noises if sigma is not None]
        if not found:
            raise Infeasible(
                f"the sums of norms alone exceed epsilon {self.epsilon:g} at delta {self.delta:g}; allow a larger "
                "epsilon, fewer epochs or more sum_noise and size_noise"
            )
        return min(found)[1]

    def _least_noise(self, order: int) -> float | None:
        try:
            limit = loss_within(float(order), self.epsilon, self.delta)
            rest = limit - 0.5 * order / self.noises[0] ** 2 - self.fixed(self.rate, order)
            return least_passing(
                lambda s: self.steps * renyi_step(self.rate, s, order) - rest, _SMALLEST, _LARGEST, relative=1e-3
            )
        except (Infeasible, NumericalFailure):
            return None

    def plot(self) -> Any:
        """A matplotlib figure of the limit's delta(epsilon) (pip install 'privamp[plots]')."""
        return self.guarantee().plot()

    def _repr_html_(self) -> str:
        """The plan as notebooks show it."""
        return shown(self)

    def facts(self) -> dict[str, Any]:
        """Names and values, for reports and to distinguish runs."""
        return {"sampler": "dpis", **facts_of(self)}

    def guarantee(self, steps: int | None = None, neighbors: Neighbors | None = None) -> Guarantee:
        """The filter's limit, however much of it was spent and however often training stopped."""
        if neighbors not in (None, Neighbors.ADD_REMOVE):
            raise InvalidInput(f"this sampler is certified only for add-remove, got {neighbors} instead")
        total = replace(self.filter().guarantee(), assumes=(IDEALISED, *Poisson.assumes))
        return stated(total, (THEOREM,))


class DPISBatches(ImportanceBatches):
    """Batches of the paper's system, with its releases and their budget."""

    def __init__(self, plan: DPISPlan, population: Population) -> None:
        self.plan, self.limit = plan, plan.filter()
        self._order = int(self.limit.order)
        self._limit_loss = self.limit.limits[_LOSS]
        self._population, self._openings = population, 0
        self._spent: Amounts = {_LOSS: 0}
        self._epoch = -1
        self._size = 0.0  # N~, released
        self._sum = 0.0  # K~, released
        self._clip = plan.clip
        self._multiplier = math.nan  # m
        self._norms = np.zeros(population.size)
        self.bounds = np.full(population.size, plan.clip)

    @property
    def clip(self) -> float:  # type: ignore[override]
        """C of this epoch."""
        return self._clip

    @property
    def spent(self) -> float:
        """The Rényi loss so far: public, because it follows from the releases."""
        return number_of(_LOSS, self._spent[_LOSS])

    @property
    def rule(self) -> ImportanceRule:
        """The rule of this epoch."""
        return ImportanceRule(self._rate, self._clip, self.plan.growth, self.plan.floor, rejects=True)

    @property
    def _batch(self) -> float:
        return self.plan.rate * self.plan.size  # b

    @property
    def _rate(self) -> float:
        return min(self._batch * self._clip / self._sum, 1.0)  # r

    @property
    def mechanism(self) -> Gaussian:
        """Noise of standard deviation m C."""
        return Gaussian(self._multiplier * self._clip, sensitivity=self._clip)

    @property
    def normaliser(self) -> float:
        """N~ r."""
        return self._size * self._rate

    @property
    def gradient_noise(self) -> float:
        """sigma_G in the paper's units (its Figure 1)."""
        return self._multiplier * self._sum / (self._size * self._clip)

    def prepare(self, step: int, norms: Norms) -> None:
        """Open an epoch if one begins, and check the filter before anything of the step is drawn."""
        if self._epoch < 0:
            self._release_size()
        if step // self.plan.epoch != self._epoch:
            self._open(step // self.plan.epoch, norms)
        self._check(self._step_cost)

    def begin(self, step: int) -> None:
        """Charge for the step before anything is drawn for it."""
        self._charge(self._step_cost)

    def draw(self, step: int) -> Batch:
        """The Poisson sample at this epoch's rate r, thinned by bound/C."""
        drawn = self._handed_out(step, Poisson(self._rate))
        return self._thinned(Batch(step, drawn.positions, drawn.counts, np.empty(0)))

    def remember(self, batch: Batch, norms: FloatArray) -> None:
        """Bounds and norms of the drawn records."""
        super().remember(batch, norms)
        self._norms[batch.positions] = _finite(norms)

    def _release_size(self) -> None:
        """Release the noisy number of records N~, once per run."""
        sigma = self.plan.noises[0]
        self._pay(0.5 * self._order / sigma**2)
        noisy = self._released("size", 1.0, Gaussian(sigma, sensitivity=1.0), np.ones(self._population.size))
        self._size = max(noisy, 2.0 * self._batch)

    def _open(self, epoch: int, norms: Norms) -> None:
        """Release the sums, move the clip, choose the noise of the epoch."""
        sigma, chance = self.plan.noises[1], min(self._batch / self._size, 1.0)
        sampled_cost, star_cost = self.plan.sums(chance, self._order)
        moves = epoch > 0 and self.plan.external_clip is not None
        self._pay(sampled_cost + (star_cost if moves else 0.0))
        everybody: Ints = np.arange(self._population.size, dtype=np.int64)
        fresh = _finite(norms(everybody))
        if moves:
            self._clip = self._next_clip(sigma)
        self._norms = fresh
        noise = Gaussian(sigma * self._clip * chance, sensitivity=self._clip)
        noisy = self._released("sum of norms", chance, noise, self._norms) / chance
        smallest = self._batch * self._clip * (1.0 + 1e-9)
        self._sum = min(max(noisy, smallest), self._size * self._clip)
        self.bounds = self.rule.remembered(self._norms)
        self._multiplier = self._choose(epoch, chance)
        self._epoch = epoch
        self.save()  # stored before it is used

    def _next_clip(self, sigma: float) -> float:
        """C of this epoch, from a noisy sum of the last known norms of all records."""
        largest = float(self.plan.external_clip or 0.0)
        noise = Gaussian(sigma * largest, sensitivity=largest)
        star = self._released("sum for the clip", 1.0, noise, self._norms)
        return min(max(self.plan.quantile * star / self._size, 1e-3 * self.plan.clip), largest)

    def _choose(self, epoch: int, chance: float) -> float:
        """The least multiplier with which this epoch and the remaining ones fit into the rest of the budget."""
        plan, share = self.plan, self._sum / (self._size * self._clip)  # K~/(N~ C)
        left = plan.steps - epoch * plan.epoch
        now = min(plan.epoch, left)
        left_loss = self._limit_loss * (1.0 - _SLACK) - self.spent - plan.fixed(chance, self._order, epoch + 1)
        assumes_worst = epoch < plan.split * plan.epochs

        def excess(sigma: float) -> float:
            here = renyi_step(self._rate, sigma / share, self._order)
            later = renyi_step(chance, sigma, self._order) if assumes_worst else here
            return now * here + (left - now) * later - left_loss

        try:
            return least_passing(excess, _SMALLEST, _LARGEST) / share
        except NumericalFailure:
            raise BudgetExceeded(
                f"the budget of epsilon {plan.epsilon:g} has no room for epoch {epoch + 1}, so training stops before it"
            ) from None

    @property
    def _step_cost(self) -> float:
        return renyi_step(self._rate, self._multiplier, self._order)

    def _released(self, what: str, chance: float, noise: Gaussian, values: FloatArray) -> float:
        """The noisy sum of one number per record, each clipped to the sensitivity, over a fresh Poisson sample."""
        self._openings += 1  # an epoch that is opened again after an error is a new draw
        sample = Poisson(chance).draw(self._population, self._key.subkey(what), round=self._openings)
        return float(SeededSample.if_test(sample)._planned([noise], None, "training").release(noise, values))

    def _check(self, cost: float) -> None:
        nonnegative(cost=cost)
        self.limit.check(self._spent, cost_amounts({_LOSS: cost}), "training stops here")

    def _charge(self, cost: float) -> None:
        self._check(cost)
        self._spent = added(self._spent, cost_amounts({_LOSS: cost}))

    def _pay(self, cost: float) -> None:
        """Charge for a release beside the steps, and store that, before it is made."""
        self._charge(cost)
        self.side_releases += 1
        self.save()
        self.claim()

    def state(self) -> Arrays:
        """Everything released and all bounds and norms."""
        numbers = {name: getattr(self, name) for name in ("_epoch", "_size", "_sum", "_clip", "_multiplier")}
        paid = {"spent": self._spent[_LOSS], "side_releases": self.side_releases}
        return {**numbers, **paid, "norms": self._norms.copy(), "bounds": self.bounds.copy()}

    def restore(self, state: Arrays, now: Arrays) -> None:
        """Restore a run."""
        for name in ("_epoch", "_size", "_sum", "_clip", "_multiplier"):
            setattr(self, name, state[name])
        self._spent = {_LOSS: max(int(state["spent"]), int(now["spent"]))}
        self.side_releases = max(int(state.get("side_releases", 0)), self.side_releases)
        self._norms = np.array(state["norms"], dtype=np.float64)
        self.bounds = np.array(state["bounds"], dtype=np.float64)


def _finite(norms: FloatArray) -> FloatArray:
    """A norm that is not a number counts as 0 in sums, like its gradient."""
    return np.where(np.isfinite(norms), norms, 0.0)
