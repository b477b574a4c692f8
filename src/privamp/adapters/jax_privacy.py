"""JAX Privacy: batches by key as a batch-selection strategy, with its event; and its own strategies as plans.

`KeyedSelection(plan, mechanism)` is a `BatchSelectionStrategy`: every round of a schedule, drawn by one key, once. Its
`event()` holds the certificate of the whole plan, for `privamp.adapters.dp_accounting.GuaranteeAccountant`.

`plan_of(strategy, num_examples, neighbors)` gives the schedule that a strategy of JAX Privacy draws, if privamp has a
theorem for it, or raises. JAX Privacy multiplies its noise multiplier z by the sensitivity under the accountant's
relation: for rows of norm 1 that is `Gaussian(z)` under add/remove, `Gaussian(2 z)` under replace-one.
"""

from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..chance.keys import Key
from ..core.ledger import BudgetLike
from ..core.mechanism import Mechanism
from ..core.neighbors import Neighbors
from ..core.population import Population
from ..core.schedule import Schedule
from ..designs.poisson import Poisson
from ..designs.simple_random import WithoutReplacement
from ..designs.truncated_poisson import TruncatedPoisson
from ..designs.with_replacement import WithReplacement
from ..errors import InvalidInput
from ..schedules.balls_in_bins import BallsInBins
from ..schedules.cyclic_poisson import CyclicPoisson
from ..schedules.rounds import Rounds
from ..validation import whole
from .batches import KeyedBatches
from .dp_accounting import GuaranteeEvent
from .peers import answered, imported

with imported("jax-privacy", "privamp.adapters.jax_privacy"):
    from jax_privacy import batch_selection as theirs
    from jax_privacy.batch_selection import BatchSelectionStrategy

AR, RO = Neighbors.ADD_REMOVE, Neighbors.REPLACE_ONE


class KeyedSelection(BatchSelectionStrategy):
    """The batches of all rounds of `plan`, drawn by `key`, for one release by `mechanism` each.

    Formal guarantee of `batch_iterator`: the rounds are those that `plan` draws by the key; a second iterator is
    refused, because it would draw the same rounds again. `population` is the number of examples, or a `Population` with
    the columns that the design reads.
    """

    def __init__(
        self,
        plan: Schedule,
        population: Population | int,
        mechanism: Mechanism,
        *,
        key: Key | None = None,
        budget: BudgetLike | None = None,
        delta: float | None = None,
    ) -> None:
        self.batches = KeyedBatches(plan, population, mechanism, key=key, budget=budget, delta=delta)

    def batch_iterator(self, num_examples: int, rng: Any = None) -> Iterator[NDArray[np.int64]]:
        """Batches of positions, one per round; the key draws them, so there is no `rng` to give."""
        if rng is not None:
            raise InvalidInput("the key draws the batches, and a seed would not be secret; omit rng")
        if num_examples != self.batches.size:
            raise InvalidInput("the number of examples must be that of the population; use the same number for both")
        if self.batches.left < self.batches.plan.steps:
            raise InvalidInput("these batches are already being drawn; make a KeyedSelection with a fresh key")
        return self.batches.take(self.batches.plan.steps)

    def event(self, neighbors: Neighbors | None = None) -> GuaranteeEvent:
        """The whole plan as an event of dp-accounting; it counts once."""
        return GuaranteeEvent.of(self.batches.guarantee(neighbors))


def plan_of(strategy: Any, num_examples: int, neighbors: Neighbors) -> Schedule:
    """What a strategy of JAX Privacy draws, as a schedule that `amplify` certifies under `neighbors`.

    The law is theirs; that NumPy's generator has a secret seed and is pseudo-random remains an assumption.
    """
    reader = _PLANS.get(type(strategy))
    if reader is None or neighbors not in (AR, RO):
        raise InvalidInput(
            f"privamp has no theorem for {type(strategy).__name__} under {neighbors}; it reads "
            f"{', '.join(kind.__name__ for kind in _PLANS)} for one record"
        )
    whole(1, num_examples=num_examples)
    with answered("jax-privacy", "reading a strategy"):
        return reader(strategy, int(num_examples), neighbors)  # NumPy's short numbers overflow at n - 1 and n + 1


def _cyclic(strategy: Any, n: int, neighbors: Neighbors) -> Schedule:
    rate, steps = float(strategy.sampling_prob), strategy.iterations  # float32 divided by turns would be rounded down
    cap, turns = strategy.truncated_batch_size, strategy.cycle_length
    if turns == 1:
        low, high = (n, n) if neighbors == RO else (max(n - 1, 0), n + 1)
        return Rounds(Poisson(rate) if cap is None else TruncatedPoisson(rate, cap, low, high), steps)
    if cap is not None:
        raise InvalidInput("privamp has no theorem for truncated batches of groups that take turns; omit the cap")
    if neighbors != AR or strategy.partition_type != theirs.PartitionType.INDEPENDENT:
        raise InvalidInput(
            "groups that take turns are certified for add-remove with independent groups; an equal split moves other "
            "records when one is added: use partition_type=PartitionType.INDEPENDENT"
        )
    return CyclicPoisson(rate / turns, turns, steps)


def _one_bin(strategy: Any, n: int, neighbors: Neighbors) -> Schedule:
    if strategy.iterations > strategy.cycle_length:
        raise InvalidInput(
            "privamp certifies bins that are drawn again in every epoch, and these are drawn only once; use at most "
            "cycle_length iterations, or KeyedSelection(BallsInBins(rounds, epochs), …)"
        )
    return BallsInBins(strategy.cycle_length)


def _fixed(strategy: Any, n: int, neighbors: Neighbors) -> Schedule:
    kind = WithReplacement if strategy.replace else WithoutReplacement
    return Rounds(kind(strategy.batch_size, n - (neighbors == AR)), strategy.iterations)


with imported("jax-privacy", "privamp.adapters.jax_privacy"):
    _PLANS = {
        theirs.CyclicPoissonSampling: _cyclic,
        theirs.BallsInBinsSampling: _one_bin,
        theirs.FixedBatchSampling: _fixed,
    }
