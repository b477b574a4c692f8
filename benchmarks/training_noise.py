"""Nanoseconds per normal of the noise of training, and per record of its coins, on one thread.

    python benchmarks/training_noise.py [--count 5800000] [--rounds 9] [--device cuda]

Rows: the exact numbers on the grid; as a float32 vector; added to a sum on the grid, which is what a step does; the
same words through Box & Muller in double precision (what privamp did before); torch.randn; and Opacus' secure mode,
which adds up four normals per number. Opacus wants a cryptographic generator (torchcsprng) for it; here it gets
torch's own, so its row is a lower bound. Rows take turns, and the least time of each is printed. With `--device cuda`
vectors are made on the GPU: by the processor and copied, and by the GPU itself.

Coins are drawn by the processor on every device, one for each record and step, whether it is drawn or not: a record
that is not drawn costs nothing else. What a step copies to a GPU are the positions of the drawn records, their weights,
and the key of the noise; and back come their norms.
"""

import argparse
import math
import time
from collections.abc import Callable

import numpy as np
import torch
from torch import nn
from torch.utils.data import TensorDataset

from privamp import Key
from privamp.chance.grid_normals import normal_blocks
from privamp.chance.stream import Stream
from privamp.mechanisms.gaussian import Gaussian
from privamp.torch import PrivacyEngine
from privamp.torch.device_normals import makes_noise
from privamp.torch.grid import Grid, normals
from privamp.torch.normalised import has_kernel

CPU = torch.device("cpu")
MASK = 2**52 - 1


def box_muller(stream: Stream, count: int) -> torch.Tensor:
    noise = torch.empty(count)
    for start in range(0, count, 2**14):
        piece = noise[start : start + 2**14]
        pairs = -(-len(piece) // 2)
        words = torch.from_numpy(stream.words(2 * pairs).view(np.int64).reshape(pairs, 2))
        uniforms = (words.bitwise_right_shift_(12).bitwise_and_(MASK).double() + 0.5).mul_(2.0**-52)
        radius = uniforms[:, 0].log().mul_(-2.0).sqrt_()
        angle = uniforms[:, 1] * (2.0 * math.pi)
        piece[0::2] = torch.cos(angle).mul_(radius)
        piece[1::2] = torch.sin(angle).mul_(radius)[: len(piece) // 2]
    return noise


def on_gpu(count: int, device: torch.device) -> dict[str, Callable[[], object]]:
    stream = Stream(Key.generate())
    print(f"the GPU makes its own noise: {makes_noise(device)}; layer norms by one kernel: {has_kernel(device)}")

    def finished(make: Callable[[], object]) -> Callable[[], object]:
        return lambda: (make(), torch.cuda.synchronize(device))

    return {
        "made and copied": finished(lambda: normals(stream, count, CPU, torch.float32).to(device)),
        "float32 vector": finished(lambda: normals(stream, count, device, torch.float32)),
        "torch.randn": finished(lambda: torch.randn(count, device=device)),
    }


def rows(count: int) -> dict[str, Callable[[], object]]:
    stream = Stream(Key.generate())
    parameter = torch.nn.Parameter(torch.zeros(count))
    sums = {id(parameter): torch.randn(count)}
    grid = Grid(Gaussian(1.0, sensitivity=1.0), count, 256.0)
    found = {
        "numbers on the grid": lambda: [None for _ in normal_blocks(stream, count)],
        "float32 vector": lambda: normals(stream, count, CPU, torch.float32),
        "added to a sum": lambda: grid.noisy(stream, [parameter], sums, torch.float32),
        "Box & Muller, double": lambda: box_muller(stream, count),
        "torch.randn": lambda: torch.randn(count),
    }
    try:
        from opacus.optimizers.optimizer import _generate_noise
    except ImportError:
        print("opacus is not installed: its row is left out")
        return found
    secure = {"generator": torch.Generator().manual_seed(0), "secure_mode": True}
    return {**found, "Opacus, secure mode": lambda: _generate_noise(1.0, sums[id(parameter)], **secure)}


def tell_coins(records: int, rate: float, device: torch.device, steps: int = 30) -> None:
    """Drawing alone, with nothing computed."""
    for sampler in ("uniform", "importance"):
        module, engine = nn.Linear(1, 2).to(device), PrivacyEngine(key=Key.generate())
        engine.make_private(
            module=module, optimizer=torch.optim.SGD(module.parameters(), 0.1), criterion=nn.CrossEntropyLoss(),
            data_loader=TensorDataset(torch.zeros(records, 1), torch.zeros(records).long()), sample_rate=rate,
            steps=10**6, noise_multiplier=1.0, max_grad_norm=1.0, population=records, sampler=sampler,
        )  # fmt: skip
        batches, least, drawn = engine._run.batches, math.inf, 0
        for step in range(steps):
            began = time.perf_counter()
            drawn = batches.draw(step).positions.size
            least = min(least, time.perf_counter() - began)
        kilobytes = (drawn * (8 + 4) + 32) / 1024  # to the device; 8 bytes a norm come back
        print(
            f"coins, {sampler:10} {records:8} records: {1e9 * least / records:6.2f} ns a record and step, "
            f"{1e6 * least:6.0f} us a step; {drawn} drawn, {kilobytes:.1f} KiB to the device"
        )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--count", type=int, default=5_800_000)
    parser.add_argument("--rounds", type=int, default=9)
    parser.add_argument("--device", type=torch.device, default=CPU)
    options = parser.parse_args()
    torch.set_num_threads(1)
    every = rows(options.count) if options.device == CPU else on_gpu(options.count, options.device)
    least = dict.fromkeys(every, math.inf)
    for _ in range(options.rounds):
        for name, make in every.items():
            began = time.perf_counter()
            make()
            least[name] = min(least[name], time.perf_counter() - began)
    for name, seconds in least.items():
        each = 1e9 * seconds / options.count
        print(f"{name:22} {each:6.2f} ns a normal, {seconds / least['torch.randn']:5.2f} of torch.randn")
    for records, rate in ((20_000, 256 / 20_000), (20_000, 4096 / 20_000), (1_000_000, 4096 / 1_000_000)):
        tell_coins(records, rate, options.device)


if __name__ == "__main__":
    main()
