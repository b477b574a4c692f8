"""Steps of Opacus, and which of them an accountant may count: one batch, one clipped sum, one noise.

An optimizer with adaptive clipping also releases how many rows were not clipped, which sets the next bound; a record
moves that count by 1, but Opacus accounts for it as if by 1/2. A sampler in a half-precision default dtype draws with a
rate far above the one it is given, because torch.rand has few values there.
"""

from abc import abstractmethod
from collections.abc import Callable
from typing import Any

import torch
from opacus.accountants import IAccountant

from ..core.guarantee import Guarantee
from ..errors import InvalidInput
from ..validation import in_range, positive
from .peers import answered

# Noise is on the sum of the clipped rows of one batch, and nothing else is released.
_READ = ("DPOptimizer", "DPOptimizerFastGradientClipping")
_FINE = (torch.float32, torch.float64)

OWN_BATCHES = (
    "every step of Opacus is one batch of its Poisson sampler, drawn by torch's generator, perhaps split in parts, and "
    "never several batches under one noise"
)


def check_step(optimizer: Any) -> None:
    """Raise for steps that release more than is certified, or from other batches."""
    if type(optimizer).__name__ not in _READ:
        raise InvalidInput(
            f"privamp counts the steps of {' and '.join(_READ)}, got {type(optimizer).__name__} instead, which may "
            "release more than one noisy sum (adaptive clipping does); choose another clipping"
        )
    if torch.get_default_dtype() not in _FINE:
        raise InvalidInput(
            f"Opacus draws batches by torch.rand, which is too coarse in {torch.get_default_dtype()}; keep torch's "
            "default dtype at float32 and convert the model instead"
        )
    if optimizer.accumulated_iterations != 1:
        raise InvalidInput(
            f"one step adds up {optimizer.accumulated_iterations} fresh batches, in which a record may appear as "
            "often; make one backward pass per step, or split a batch with BatchMemoryManager"
        )


class CountedSteps(IAccountant):
    """What both accountants share: a history in Opacus' own form, and steps of one batch each."""

    def __init__(self) -> None:
        self.history: list[tuple[float, float, int]] = []

    def __len__(self) -> int:
        return sum(steps for _, _, steps in self.history)

    def step(self, *, noise_multiplier: float, sample_rate: float) -> None:
        """Count one step; equal ones in a row are counted together."""
        positive(noise_multiplier=noise_multiplier)
        in_range(0, 1, sample_rate=sample_rate)
        noise_multiplier, sample_rate = float(noise_multiplier), float(sample_rate)  # a tensor may change later
        noise, rate, steps = self.history[-1] if self.history else (noise_multiplier, sample_rate, 0)
        if (noise, rate) == (noise_multiplier, sample_rate):
            self.history[-1:] = [(noise, rate, steps + 1)]
        else:
            self.history.append((noise_multiplier, sample_rate, 1))

    def load_state_dict(self, state_dict: Any) -> None:
        """Go on from the steps of a state; raises where steps counted here would be forgotten."""
        if len(self):
            raise InvalidInput(
                f"loading would forget the {len(self)} steps counted so far; load into a new engine before training, "
                "and compose the guarantees of both"
            )
        with answered("opacus", "loading a state"):
            super().load_state_dict(state_dict)
            self.history = [(float(noise), float(rate), int(steps)) for noise, rate, steps in self.history]

    def get_optimizer_hook_fn(self, sample_rate: float) -> Callable[[Any], None]:
        """Called by the optimizer before it changes a parameter."""

        def count(optimizer: Any) -> None:
            with answered("opacus", "counting a step"):
                check_step(optimizer)
                self.step(noise_multiplier=optimizer.noise_multiplier, sample_rate=sample_rate)

        return count

    @abstractmethod
    def guarantee(self) -> Guarantee:
        """The guarantee of the steps."""

    def get_epsilon(self, delta: float, *ignored: Any, **also_ignored: Any) -> float:
        """The certified epsilon; options of other accountants (orders, errors) are ignored."""
        return self.guarantee().epsilon(delta) if self.history else 0.0
