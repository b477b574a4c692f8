"""Opacus: accountants by privamp, for its own Poisson batches and for batches by any design or schedule.

Opacus clips every row of a batch to C and adds noise of noise_multiplier * C; under replace-one a record moves by 2C.

Its sampler compares a multiple of 2^-24 with the rate, so a record is drawn with the rate rounded up to such a
multiple: that rate is certified. One step with several backward passes (`accumulated_iterations` k > 1) adds up k fresh
batches, in which a record may appear k times. Opacus refuses that for its own Poisson batches and counts it as one
batch of rate k q for others, which underestimates the cost; here it is rejected where Opacus reports it. Splitting one
batch (`BatchMemoryManager`) is fine; several batches under one noise by `signal_skip_step` look the same: see
`assumes`.
"""

import math
from dataclasses import replace
from typing import Any

from ..accounting.composition import compose
from ..amplification import amplify
from ..core.guarantee import Guarantee
from ..core.neighbors import Neighbors
from ..core.written import read_back, written
from ..designs.poisson import Poisson
from ..errors import InvalidInput
from ..mechanisms.gaussian import Gaussian
from .peers import answered, imported
from .torch import KeyedBatchSampler, keyed_loader

with imported("opacus", "privamp.adapters.opacus"):
    from opacus import PrivacyEngine
    from opacus.accountants import register_accountant

    from .opacus_steps import OWN_BATCHES, CountedSteps

__all__ = ["KeyedBatchSampler", "PlannedAccountant", "PoissonAccountant", "engine_for", "keyed_loader"]

_GRID = 2.0**24  # of torch.rand


class PoissonAccountant(CountedSteps):
    """For Opacus' own loader with `poisson_sampling=True`: `PrivacyEngine(accountant="privamp")`.

    `neighbors` is the relation that is reported: add/remove, as Opacus has it, unless it is set to another one. Steps
    are certified as planned: their number and noise must not depend on the data.
    """

    neighbors = Neighbors.ADD_REMOVE

    def state_dict(self, destination: Any = None) -> Any:
        """The steps, and the relation that is reported."""
        return super().state_dict(destination) | {"neighbors": written(self.neighbors)}

    def load_state_dict(self, state_dict: Any) -> None:
        """Go on from such a state; raises where steps counted here would be forgotten."""
        super().load_state_dict(state_dict)
        if "neighbors" in state_dict:
            self.neighbors = read_back(state_dict["neighbors"])

    @classmethod
    def mechanism(cls) -> str:
        """The name under which Opacus registers it."""
        return "privamp"

    def guarantee(self) -> Guarantee:
        """All steps so far, with theorems and assumptions."""
        if not self.history:
            raise InvalidInput("no step was made yet, so there is nothing to certify; train first")
        found = compose([
            compose(amplify(Gaussian(noise), Poisson(math.ceil(rate * _GRID) / _GRID), self.neighbors), steps)
            for noise, rate, steps in self.history
        ])  # fmt: skip
        kept = (line for line in found.assumes if line not in Poisson.assumes)  # no key of privamp draws here
        return replace(found, assumes=(*kept, OWN_BATCHES))


class PlannedAccountant(CountedSteps):
    """For batches of a `KeyedBatchSampler`: its whole plan is certified, and a step with less noise raises."""

    def __init__(self, sampler: KeyedBatchSampler, neighbors: Neighbors | None = None) -> None:
        super().__init__()
        noise = sampler.batches.mechanism
        if not isinstance(noise, Gaussian) or noise.neighbors.kind != "add-remove":
            raise InvalidInput(
                "Opacus adds Gaussian noise to sums of clipped rows; plan batches for "
                "Gaussian(noise_multiplier * clip, sensitivity=clip)"
            )
        self._sampler, self._neighbors, self._least = sampler, neighbors, noise.sigma / noise.sensitivity

    @classmethod
    def mechanism(cls) -> str:
        """A name of its own in checkpoints."""
        return "privamp-planned"

    def step(self, *, noise_multiplier: float, sample_rate: float) -> None:
        """Count a step of the plan; raises before the parameters change if its noise is below the planned one."""
        if noise_multiplier < self._least * (1.0 - 1e-12):
            raise InvalidInput(
                f"noise_multiplier must be at least {self._least:g} as planned, got {noise_multiplier!r} instead"
            )
        if len(self) >= self._sampler.batches.drawn:
            raise InvalidInput(
                "this step's batch was not drawn by the plan, so it is not certified; give make_private the loader "
                "of keyed_loader and poisson_sampling=False"
            )
        super().step(noise_multiplier=noise_multiplier, sample_rate=sample_rate)

    def load_state_dict(self, state_dict: Any) -> None:
        """Raise: steps of another run are not covered by this plan."""
        raise InvalidInput(
            "a plan covers only the batches drawn by its own key, not the steps of a saved run; load the model by "
            "itself, and compose the guarantees of both runs"
        )

    def guarantee(self) -> Guarantee:
        """That of the whole plan, however many of its steps were made."""
        return self._sampler.guarantee(self._neighbors)


def engine_for(sampler: KeyedBatchSampler, neighbors: Neighbors | None = None, **options: Any) -> PrivacyEngine:
    """A PrivacyEngine that accounts for the sampler's batches: then `make_private(…, poisson_sampling=False)`."""
    with answered("opacus", "making an engine"):
        engine = PrivacyEngine(accountant="privamp", **options)
        engine.accountant = PlannedAccountant(sampler, neighbors)
        return engine


with answered("opacus", "registering an accountant"):
    register_accountant("privamp", PoissonAccountant, force=True)
