"""Which steps of Opacus an accountant may count: one batch, one clipped sum, one noise.

An optimizer with adaptive clipping also releases how many rows were not clipped, which sets the next bound; a record
moves that count by 1, but Opacus accounts for it as if by 1/2. A sampler in a half-precision default dtype draws with a
rate far above the one it is given, because torch.rand has few values there.
"""

from typing import Any

import torch

from ..errors import InvalidInput

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
