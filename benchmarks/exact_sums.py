"""The two prices of exact sums: time of a step over one with sums in floating point, and more noise.

    python benchmarks/exact_sums.py [--batch 256] [--rounds 15]

One CPU thread, DP-SGD steps on models of torch_models.py; rows take turns, and medians of processor time count.
The noise is larger by the share that pays for rounding to the grid: the same for all sums, since the sum in floating
point is rounded to the same grid, once.
"""

import argparse
from collections.abc import Callable

import torch
from torch import nn
from torch.utils.data import TensorDataset
from torch_models import MODELS, data
from torch_step import RECORDS, milliseconds

from privamp import Key
from privamp.torch import PrivacyEngine
from privamp.torch.grid import Grid

CPU = torch.device("cpu")
WAYS = {
    "floating point": {},
    "exact": {"exact_sums": True},
    "exact, parts of 64": {"exact_sums": True, "max_physical_batch_size": 64},
    "exact, one by one": {"exact_sums": True, "max_physical_batch_size": 1},
}


def started(make: Callable[[], nn.Module], batch: int, options: dict[str, object]) -> tuple[Callable[[], None], float]:
    """A step, and the share by which its noise is larger."""
    module, engine = make(), PrivacyEngine(key=Key.generate())
    engine.make_private(
        module=module, optimizer=torch.optim.SGD(module.parameters(), 0.01), criterion=nn.CrossEntropyLoss(),
        data_loader=TensorDataset(*data(CPU, "cnn", RECORDS)), sample_rate=batch / RECORDS, steps=10**6,
        noise_multiplier=1.0, max_grad_norm=1.0, population=RECORDS, sampler="uniform", **options,
    )  # fmt: skip
    run = engine._run
    grid = Grid(run.batches.mechanism, sum(p.numel() for p in run.parameters), run.batches.normaliser)
    return lambda: engine._one_step(run), grid.price


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--batch", type=int, default=256)
    parser.add_argument("--rounds", type=int, default=15)
    options = parser.parse_args()
    torch.set_num_threads(1)
    for model in ("cnn", "mlp"):
        made = [started(MODELS[model], options.batch, way) for way in WAYS.values()]
        times = milliseconds([step for step, _ in made], CPU, options.rounds)
        for way, taken, (_, price) in zip(WAYS, times, made, strict=True):
            print(f"{model:4} {way:20} {taken / times[0]:6.2f} of the time, noise larger by a share of {price:.1e}")


if __name__ == "__main__":
    main()
