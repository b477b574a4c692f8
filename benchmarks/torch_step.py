"""One private training step of small models, beside Opacus' ghost clipping and plain torch.

    python benchmarks/torch_step.py [--models cnn mlp vit encoder] [--batch N] [--device NAME] [--threads N] [--pad N]

`importance` draws `batch` records out of those that DP-SGD at the matched rate would compute: its gradients are
compared with Opacus at the same number of candidates, and with Opacus at the matched rate (batch/saved records).
`plain` is a step of torch without privacy on as many records, drawn at random; `plain-last` the same with the pictures'
channels last in memory, as privamp puts them on a CPU. Opacus' ghost clipping has no rule for attention and for
parameters outside layers, so the transformers (`vit`, `encoder`, by default with 64 gradients) have no row of it.
Whole steps are timed: drawing, forward, norms, weighted sum, noise, optimiser. Times are medians after a warm-up, on
CUDA by events, on one CPU thread by the processor's time, so that other work on the machine does not count. Memory is
the largest amount held during a step beyond what stood there before, on Linux and CUDA.
"""

import argparse
import gc
import math
import random
import statistics
import subprocess
import sys
import time
import warnings
from collections.abc import Callable
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import torch
from torch import nn
from torch.utils.data import TensorDataset

from privamp import Key
from privamp.torch import PrivacyEngine, run
from privamp.torch.memory_format import channels_last

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


class ViT(nn.Module):
    """49 patches of a picture and a class token, three layers 64 wide: 152,650 parameters."""

    def __init__(self) -> None:
        super().__init__()
        self.cut = nn.Conv2d(1, 64, 4, 4)
        self.token, self.places = nn.Parameter(torch.zeros(1, 1, 64)), nn.Parameter(torch.zeros(1, 50, 64))
        self.layers, self.norm, self.out = layers(64, 3), nn.LayerNorm(64), nn.Linear(64, 10)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        cut = self.cut(x).flatten(2).transpose(1, 2)
        every = torch.cat([self.token.expand(len(x), -1, -1), cut], dim=1) + self.places
        return self.out(self.norm(self.layers(every)[:, 0]))


class Encoder(nn.Module):
    """Texts of 64 words out of 5,000, two layers 128 wide."""

    def __init__(self) -> None:
        super().__init__()
        self.words, self.places = nn.Embedding(WORDS, 128), nn.Parameter(torch.zeros(1, LENGTH, 128))
        self.layers, self.out = layers(128, 2), nn.Linear(128, 10)

    def forward(self, ids: torch.Tensor) -> torch.Tensor:
        return self.out(self.layers(self.words(ids) + self.places).mean(dim=1))


def layers(width: int, count: int) -> nn.Module:
    one = nn.TransformerEncoderLayer(width, 4, 4 * width, dropout=0.0, batch_first=True, norm_first=True)
    return nn.TransformerEncoder(one, count, enable_nested_tensor=False)


MODELS: dict[str, Callable[[], nn.Module]] = {"cnn": cnn, "mlp": mlp, "vit": ViT, "encoder": Encoder}
TRANSFORMERS = ("vit", "encoder")  # smaller batches, and no row of Opacus
WORDS, LENGTH = 5000, 64


def data(device: torch.device, model: str = "cnn") -> tuple[torch.Tensor, torch.Tensor]:
    torch.manual_seed(0)
    labels = torch.randint(0, 10, (RECORDS,), device=device)
    if model == "encoder":
        return torch.randint(0, WORDS, (RECORDS, LENGTH), device=device), labels
    return torch.randn(RECORDS, 1, 28, 28, device=device), labels


def ours(model: str, batch: int, device: torch.device, sampler: str) -> Callable[[], None]:
    """One step of the engine whose expected number of drawn records is `batch`."""
    module = MODELS[model]().to(device)
    rate = batch / RECORDS / (SAVED if sampler == "importance" else 1.0)
    engine = PrivacyEngine(key=Key.generate())
    engine.make_private(
        module=module, optimizer=torch.optim.SGD(module.parameters(), 0.01), criterion=nn.CrossEntropyLoss(),
        data_loader=TensorDataset(*data(device, model)), sample_rate=rate, steps=10**6, noise_multiplier=1.0,
        max_grad_norm=1.0, population=RECORDS, sampler=sampler,
    )  # fmt: skip
    if sampler == "importance":
        engine._run.batches.bounds[:] = SAVED  # the bounds of a run under way
        engine._run.batches.remember = lambda batch, norms: engine._run.batches.rule.remembered(norms)
    return lambda: engine._one_step(engine._run)


def on_poisson_batches(
    module: nn.Module, optimizer: Any, criterion: Any, batch: int, records: Any, turned: Any = lambda x: x
) -> Callable[[], None]:
    """One step of the usual loop on a fresh Poisson sample."""
    x, y = records

    def step() -> None:
        drawn = torch.nonzero(torch.rand(RECORDS, device=x.device) < batch / RECORDS).flatten()
        optimizer.zero_grad()
        criterion(module(turned(x[drawn])), y[drawn]).backward()
        optimizer.step()

    return step


def opacus(model: str, batch: int, device: torch.device) -> Callable[[], None]:
    """One step of Opacus' ghost clipping on `batch` records, with its own noise."""
    from opacus.grad_sample import GradSampleModuleFastGradientClipping
    from opacus.optimizers import DPOptimizerFastGradientClipping
    from opacus.utils.fast_gradient_clipping_utils import DPLossFastGradientClipping

    inner = MODELS[model]().to(device)
    module = GradSampleModuleFastGradientClipping(inner, max_grad_norm=1.0, use_ghost_clipping=True)
    optimizer = DPOptimizerFastGradientClipping(
        torch.optim.SGD(module.parameters(), 0.01), noise_multiplier=1.0, max_grad_norm=1.0, expected_batch_size=batch
    )
    criterion = DPLossFastGradientClipping(module, optimizer, nn.CrossEntropyLoss())
    return on_poisson_batches(module, optimizer, criterion, batch, data(device, model))


def plain(model: str, batch: int, device: torch.device, *, last: bool = False) -> Callable[[], None]:
    """One step of torch on `batch` records, without clipping or noise; `last`: channels last in memory."""
    module, criterion = MODELS[model]().to(device), nn.CrossEntropyLoss()
    if last:
        module.to(memory_format=torch.channels_last)
    optimizer = torch.optim.SGD(module.parameters(), 0.01)
    turned = channels_last if last else lambda x: x
    return on_poisson_batches(module, optimizer, criterion, batch, data(device, model), turned)


def milliseconds(steps: list[Callable[[], None]], device: torch.device, repeats: int = 30) -> list[float]:
    """Medians, in turn rather than one after the other: what else the machine does then meets all of them alike.

    The order differs from turn to turn, because a short step is slower after one that filled the caches.
    """
    times: list[list[float]] = [[] for _ in steps]
    order, shuffled = list(zip(steps, times, strict=True)), random.Random(1)
    for turn in range(repeats + 5):
        shuffled.shuffle(order)
        for step, found in order:
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
    if which == "opacus":
        return opacus(model, batch, device)
    if which.startswith("plain"):
        return plain(model, batch, device, last=which == "plain-last")
    return ours(model, batch, device, which)


def memory_in_a_child(which: str, model: str, batch: int, device: torch.device, threads: int) -> float:
    if device.type == "cuda":
        return megabytes(which, model, batch, device)
    arguments = ["--memory", which, "--model", model, "--batch", str(batch), "--threads", str(threads)]
    return float(subprocess.check_output([sys.executable, __file__, *arguments], text=True).split()[-1])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--batch", type=int, help="gradients; 256, or 64 for transformers, when not given")
    parser.add_argument("--models", nargs="*", choices=list(MODELS), default=list(MODELS))
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
    print(
        f"torch {torch.__version__}, {device}, {options.threads} threads; {RECORDS} records; one step, median ms; MiB"
    )
    for model in options.models:
        compare(model, options.batch or (64 if model in TRANSFORMERS else 256), device, options.threads)


def compare(model: str, batch: int, device: torch.device, threads: int) -> None:
    """Print the rows of one model, and the shares."""
    matched = round(batch / SAVED)
    others = [("plain", batch), ("plain", matched)]
    if model == "cnn" and device.type == "cpu":
        others += [("plain-last", batch)]
    if model not in TRANSFORMERS and find_spec("opacus") is not None:
        others += [("opacus", batch), ("opacus", matched)]
    rows = [("importance", batch), ("uniform", batch), ("uniform", matched), *others]
    times = milliseconds([made(which, model, count, device) for which, count in rows], device)
    found = dict(zip(rows, times, strict=True))
    held = {(which, count): memory_in_a_child(which, model, count, device, threads) for which, count in rows}
    for which, count in rows:
        print(f"{model} {which:11} {count:5} gradients {found[which, count]:9.2f} ms {held[which, count]:8.1f} MiB")
    for which, count in others:
        print(f"{model} importance against {which} with {count} gradients: {found[rows[0]] / found[which, count]:.2f}")
    for which, count in others:
        if ("uniform", count) in found:
            time_share, memory = (of["uniform", count] / of[which, count] for of in (found, held))
            print(f"{model} uniform against {which} with {count} gradients: {time_share:.2f}, memory {memory:.2f}")


if __name__ == "__main__":
    main()
