"""Nanoseconds per normal of the noise of training, on one thread.

    python benchmarks/training_noise.py [--count 5800000] [--rounds 9] [--device cuda]

Rows: the exact numbers on the grid; as a float32 vector; added to a sum on the grid, which is what a step does; the
same words through Box & Muller in double precision (what privamp did before); torch.randn; and Opacus' secure mode,
which adds up four normals per number. Opacus wants a cryptographic generator (torchcsprng) for it; here it gets
torch's own, so its row is a lower bound. Rows take turns, and the least time of each is printed. With `--device cuda`
vectors are made on the GPU: by the processor and copied, and by the GPU itself.
"""

import argparse
import math
import time
from collections.abc import Callable

import numpy as np
import torch

from privamp import Key
from privamp.chance.grid_normals import normal_blocks
from privamp.chance.stream import Stream
from privamp.mechanisms.gaussian import Gaussian
from privamp.torch.device_normals import makes_noise
from privamp.torch.grid import Grid, normals

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
    print(f"the GPU makes its own noise: {makes_noise(device)}")

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


if __name__ == "__main__":
    main()
