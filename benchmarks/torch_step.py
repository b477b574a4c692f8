"""One private training step on the paper's small CNN and on an MLP, beside Opacus' ghost clipping and plain torch.

    python benchmarks/torch_step.py [--batch 256] [--device cpu|cuda] [--threads N] [--pad 64]

`importance` draws `batch` records out of those that DP-SGD at the matched rate would compute: its gradients are
compared with Opacus at the same number of candidates, and with Opacus at the matched rate (batch/saved records).
`plain` is a step of torch without privacy on as many records, drawn at random.
Whole steps are timed: drawing, forward, norms, weighted sum, noise, optimiser. Times are medians after a warm-up, on
CUDA by events, on one CPU thread by the processor's time, so that other work on the machine does not count. Memory is
the largest amount held during a step beyond what stood there before, on Linux and CUDA.
"""

import argparse
import gc
import math
import statistics
import subprocess
import sys
import time
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch
from torch import nn
from torch.utils.data import TensorDataset

from privamp import Key
from privamp.torch import PrivacyEngine, run

warnings.filterwarnings("ignore")

SAVED = 0.45  # share of the matched rate's gradients that importance sampling computes
RECORDS = 20000


def cnn() -> nn.Module:
    """The paper's network for MNIST, 26,010 parameters."""
    return nn.Sequential(
        nn.Conv2d(1, 16, 8, 2, padding=3), nn.Tanh(), nn.MaxPool2d(2, 1), nn.Conv2d(16, 32, 4, 2), nn.Tanh(),
        nn.MaxPool2d(2, 1), nn.Flatten(), nn.Linear(512, 32), nn.Tanh(), nn.Linear(32, 10),
    )  # fmt: skip


def mlp() -> nn.Module:
    return nn.Sequential(nn.Flatten(), nn.Linear(784, 256), nn.Tanh(), nn.Linear(256, 10))


MODELS = {"cnn": cnn, "mlp": mlp}


def data(device: torch.device) -> tuple[torch.Tensor, torch.Tensor]:
    torch.manual_seed(0)
    return torch.randn(RECORDS, 1, 28, 28, device=device), torch.randint(0, 10, (RECORDS,), device=device)


def ours(make: Callable[[], nn.Module], batch: int, device: torch.device, sampler: str) -> Callable[[], None]:
    """One step of the engine whose expected number of drawn records is `batch`."""
    module = make().to(device)
    rate = batch / RECORDS / (SAVED if sampler == "importance" else 1.0)
    engine = PrivacyEngine(key=Key.generate())
    engine.make_private(
        module=module, optimizer=torch.optim.SGD(module.parameters(), 0.01), criterion=nn.CrossEntropyLoss(),
        data_loader=TensorDataset(*data(device)), sample_rate=rate, steps=10**6, noise_multiplier=1.0,
        max_grad_norm=1.0, population=RECORDS, sampler=sampler,
    )  # fmt: skip
    if sampler == "importance":
        engine._run.batches.bounds[:] = SAVED  # the bounds of a run under way
        engine._run.batches.remember = lambda batch, norms: engine._run.batches.rule.remembered(norms)
    return lambda: engine._one_step(engine._run)


def on_poisson_batches(
    module: nn.Module, optimizer: Any, criterion: Any, batch: int, device: torch.device
) -> Callable[[], None]:
    """One step of the usual loop on a fresh Poisson sample."""
    x, y = data(device)

    def step() -> None:
        drawn = torch.nonzero(torch.rand(RECORDS, device=device) < batch / RECORDS).flatten()
        optimizer.zero_grad()
        criterion(module(x[drawn]), y[drawn]).backward()
        optimizer.step()

    return step


def opacus(make: Callable[[], nn.Module], batch: int, device: torch.device) -> Callable[[], None]:
    """One step of Opacus' ghost clipping on `batch` records, with its own noise."""
    from opacus.grad_sample import GradSampleModuleFastGradientClipping
    from opacus.optimizers import DPOptimizerFastGradientClipping
    from opacus.utils.fast_gradient_clipping_utils import DPLossFastGradientClipping

    module = GradSampleModuleFastGradientClipping(make().to(device), max_grad_norm=1.0, use_ghost_clipping=True)
    optimizer = DPOptimizerFastGradientClipping(
        torch.optim.SGD(module.parameters(), 0.01), noise_multiplier=1.0, max_grad_norm=1.0, expected_batch_size=batch
    )
    criterion = DPLossFastGradientClipping(module, optimizer, nn.CrossEntropyLoss())
    return on_poisson_batches(module, optimizer, criterion, batch, device)


def plain(make: Callable[[], nn.Module], batch: int, device: torch.device) -> Callable[[], None]:
    """One step of torch on `batch` records, without clipping or noise."""
    module, criterion = make().to(device), nn.CrossEntropyLoss()
    optimizer = torch.optim.SGD(module.parameters(), 0.01)
    return on_poisson_batches(module, optimizer, criterion, batch, device)


def milliseconds(steps: list[Callable[[], None]], device: torch.device, repeats: int = 30) -> list[float]:
    """Medians, in turn rather than one after the other: what else the machine does then meets all of them alike."""
    times: list[list[float]] = [[] for _ in steps]
    for turn in range(repeats + 5):
        for step, found in zip(steps, times, strict=True):
            taken = timed(step, device)
            if turn >= 5:  # after the warm-up
                found.append(taken)
    return [statistics.median(found) for found in times]


def timed(step: Callable[[], None], device: torch.device) -> float:
    if device.type == "cuda":
        start, stop = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
        start.record()
        step()
        stop.record()
        torch.cuda.synchronize()
        return float(start.elapsed_time(stop))
    clock = time.process_time if torch.get_num_threads() == 1 else time.perf_counter
    began = clock()
    step()
    return 1e3 * (clock() - began)


def megabytes(which: str, model: str, batch: int, device: torch.device) -> float:
    """What a step needs on top of what stands there before it."""
    step = made(which, model, batch, device)
    if device.type == "cuda":
        step()
        torch.cuda.synchronize()
        gc.collect()  # what an earlier run left in cycles would be freed in the middle
        held = torch.cuda.memory_allocated()
        torch.cuda.reset_peak_memory_stats()
        step()
        return (torch.cuda.max_memory_allocated() - held) / 2**20
    step()
    try:
        Path("/proc/self/clear_refs").write_text("5")  # the peak starts from here
    except OSError:
        return math.nan
    held = _status("VmRSS")
    for _ in range(3):
        step()
    return (_status("VmHWM") - held) / 2**10


def _status(name: str) -> int:
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith(name))


def made(which: str, model: str, batch: int, device: torch.device) -> Callable[[], None]:
    if which in ("opacus", "plain"):
        return (opacus if which == "opacus" else plain)(MODELS[model], batch, device)
    return ours(MODELS[model], batch, device, which)


def memory_in_a_child(which: str, model: str, batch: int, device: torch.device, threads: int) -> float:
    if device.type == "cuda":
        return megabytes(which, model, batch, device)
    arguments = ["--memory", which, "--model", model, "--batch", str(batch), "--threads", str(threads)]
    return float(subprocess.check_output([sys.executable, __file__, *arguments], text=True).split()[-1])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--batch", type=int, default=256)
    parser.add_argument("--device", default="cuda" if torch.cuda.is_available() else "cpu")
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--memory", help=argparse.SUPPRESS)
    parser.add_argument("--model", help=argparse.SUPPRESS)
    parser.add_argument("--pad", type=int, help="fill batches up to a multiple of this; 64 on CUDA when not given")
    options = parser.parse_args()
    torch.set_num_threads(options.threads)
    if options.pad:
        run._PADDED = {options.device: options.pad}
    device = torch.device(options.device)
    if options.memory:
        print(megabytes(options.memory, options.model, options.batch, device))
        return
    matched = round(options.batch / SAVED)
    try:
        import opacus as _  # noqa: F401

        rivals = [("opacus", options.batch), ("opacus", matched)]
    except ImportError:
        print("opacus is not installed: its rows are left out")
        rivals = []
    print(
        f"torch {torch.__version__}, {device}, {options.threads} threads; {RECORDS} records; one step, median ms; MiB"
    )
    for model in MODELS:
        others = [("plain", options.batch), ("plain", matched), *rivals]
        rows = [("importance", options.batch), ("uniform", options.batch), ("uniform", matched), *others]
        steps = [made(which, model, batch, device) for which, batch in rows]
        found = dict(zip(rows, milliseconds(steps, device), strict=True))
        for which, batch in rows:
            held = memory_in_a_child(which, model, batch, device, options.threads)
            print(f"{model:4} {which:11} {batch:5} gradients {found[which, batch]:9.2f} ms {held:8.1f} MiB")
        ours_ms = found["importance", options.batch]
        for which, batch in others:
            print(f"{model:4} importance against {which} with {batch} gradients: {ours_ms / found[which, batch]:.2f}")
        for batch in (options.batch, matched):
            share = found["uniform", batch] / found["plain", batch]
            print(f"{model:4} uniform against plain with {batch} gradients: {share:.2f}")


if __name__ == "__main__":
    main()
