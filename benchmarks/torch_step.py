"""One private training step of several models, beside Opacus' ghost clipping and plain torch.

    python benchmarks/torch_step.py [--models cnn mlp vit encoder] [--batch N ...] [--device NAME] [--pad N]
    python benchmarks/torch_step.py --models vit-small encoder-128 --batch 4096 --only uniform plain [--precision bf16]

`importance` draws `batch` records out of those that DP-SGD at the matched rate would compute: its gradients are
compared with Opacus at the same number of candidates, and with Opacus at the matched rate (batch/saved records).
`plain` is a step of torch without privacy on as many records, drawn at random; `plain-last` the same with the pictures'
channels last in memory, as privamp puts them on a CPU. Opacus' ghost clipping has no rule for attention and for
parameters outside layers, so the transformers (by default with 64 gradients) have no row of it. `--only` names the rows
to run, with the same number of gradients. `--precision bf16` runs every row under autocast. With `--physical N` a
private step works through N records at a time. A row that does not fit into memory says so, and the others go on.

Whole steps are timed: drawing, forward, norms, weighted sum, noise, optimiser. Times are medians after a warm-up, on
CUDA by events, one row after the other; on one CPU thread by the processor's time, so that other work on the machine
does not count. Memory is the largest amount that torch's tensors take during a step beyond what stood there before.
"""

import argparse
import gc
import math
import os
import random
import statistics
import time
import warnings
from collections.abc import Callable
from importlib.util import find_spec
from itertools import accumulate
from typing import Any

import torch
from torch import nn
from torch.profiler import ProfilerActivity, profile
from torch.utils.data import TensorDataset
from torch_models import MODELS, SMALL_BATCHES, data

from privamp import InvalidInput, Key
from privamp.torch import PrivacyEngine, run
from privamp.torch.memory_format import channels_last

warnings.filterwarnings("ignore")
os.environ.setdefault("PYTORCH_CUDA_ALLOC_CONF", "expandable_segments:True")  # batches of many sizes

SAVED = 0.45  # share of the matched rate's gradients that importance sampling computes
RECORDS = 20000
ROWS = ("importance", "uniform", "plain", "plain-last", "opacus")
Step = Callable[[], Any]


def ours(model: str, batch: int, options: argparse.Namespace, sampler: str) -> Step:
    """One step of the engine whose expected number of drawn records is `batch`."""
    module = MODELS[model]().to(options.device)
    rate = batch / RECORDS / (SAVED if sampler == "importance" else 1.0)
    engine = PrivacyEngine(key=Key.generate())
    engine.make_private(
        module=module, optimizer=torch.optim.SGD(module.parameters(), 0.01), criterion=nn.CrossEntropyLoss(),
        data_loader=TensorDataset(*data(options.device, model, RECORDS)), sample_rate=rate, steps=10**6,
        noise_multiplier=1.0, max_grad_norm=1.0, population=RECORDS, sampler=sampler,
        max_physical_batch_size=options.physical,
    )  # fmt: skip
    if sampler == "importance":
        engine._run.batches.bounds[:] = SAVED  # the bounds of a run under way
        engine._run.batches.remember = lambda batch, norms: engine._run.batches.rule.remembered(norms)
    return lambda: engine._one_step(engine._run)


def on_poisson_batches(
    module: nn.Module, optimizer: Any, criterion: Any, batch: int, records: Any, turned: Any = lambda x: x
) -> Step:
    """One step of the usual loop on a fresh Poisson sample."""
    x, y = records

    def step() -> None:
        drawn = torch.nonzero(torch.rand(RECORDS, device=x.device) < batch / RECORDS).flatten()
        optimizer.zero_grad()
        criterion(module(turned(x[drawn])), y[drawn]).backward()
        optimizer.step()

    return step


def opacus(model: str, batch: int, options: argparse.Namespace) -> Step:
    """One step of Opacus' ghost clipping on `batch` records, with its own noise."""
    from opacus.grad_sample import GradSampleModuleFastGradientClipping
    from opacus.optimizers import DPOptimizerFastGradientClipping
    from opacus.utils.fast_gradient_clipping_utils import DPLossFastGradientClipping

    inner = MODELS[model]().to(options.device)
    module = GradSampleModuleFastGradientClipping(inner, max_grad_norm=1.0, use_ghost_clipping=True)
    optimizer = DPOptimizerFastGradientClipping(
        torch.optim.SGD(module.parameters(), 0.01), noise_multiplier=1.0, max_grad_norm=1.0, expected_batch_size=batch
    )
    criterion = DPLossFastGradientClipping(module, optimizer, nn.CrossEntropyLoss())
    return on_poisson_batches(module, optimizer, criterion, batch, data(options.device, model, RECORDS))


def plain(model: str, batch: int, options: argparse.Namespace, *, last: bool = False) -> Step:
    """One step of torch on `batch` records, without clipping or noise; `last`: channels last in memory."""
    module, criterion = MODELS[model]().to(options.device), nn.CrossEntropyLoss()
    if last:
        module.to(memory_format=torch.channels_last)
    optimizer = torch.optim.SGD(module.parameters(), 0.01)
    turned = channels_last if last else lambda x: x
    return on_poisson_batches(module, optimizer, criterion, batch, data(options.device, model, RECORDS), turned)


def made(which: str, model: str, batch: int, options: argparse.Namespace) -> Step:
    """A step of a row, in the precision that is asked for."""

    def cast() -> Any:
        return torch.autocast(options.device.type, torch.bfloat16, enabled=options.precision == "bf16")

    with cast():
        if which == "opacus":
            step = opacus(model, batch, options)
        elif which.startswith("plain"):
            step = plain(model, batch, options, last=which == "plain-last")
        else:
            step = ours(model, batch, options, which)

    def under_cast() -> Any:
        with cast():
            return step()

    return under_cast


def milliseconds(steps: list[Step], device: torch.device, repeats: int = 30) -> list[float]:
    """Medians, in turn rather than one after the other: what else the machine does then meets all of them alike.

    The order differs from turn to turn, because a short step is slower after one that filled the caches.
    """
    times: list[list[float]] = [[] for _ in steps]
    order, shuffled = list(zip(steps, times, strict=True)), random.Random(1)
    warm = min(5, repeats)
    for turn in range(repeats + warm):
        shuffled.shuffle(order)
        for step, found in order:
            taken = timed(step, device)
            if turn >= warm:
                found.append(taken)
    return [statistics.median(found) for found in times]


def timed(step: Step, device: torch.device) -> float:
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


def megabytes(step: Step, device: torch.device) -> float:
    """The most that tensors of a step take on top of what stands there before it."""
    step()
    gc.collect()  # what an earlier run left in cycles would be freed in the middle
    if device.type == "cuda":
        torch.cuda.synchronize()
        held = torch.cuda.memory_allocated()
        torch.cuda.reset_peak_memory_stats()
        step()
        return (torch.cuda.max_memory_allocated() - held) / 2**20
    found = []
    for _ in range(9):  # batches differ in size
        with profile(activities=[ProfilerActivity.CPU], profile_memory=True) as seen:
            step()
        taken = [e for e in seen.profiler.kineto_results.events() if e.name() == "[memory]"]
        changes = [e.nbytes() for e in sorted(taken, key=lambda e: e.start_ns())]
        found.append(max(0, *accumulate(changes)) / 2**20)
    return statistics.median(found)


def tell_longest(step: Step, device: torch.device, count: int) -> None:
    """The operations on which the device spends most of a step (the processor, if that is it)."""
    kinds = [ProfilerActivity.CPU, ProfilerActivity.CUDA] if device.type == "cuda" else [ProfilerActivity.CPU]
    with profile(activities=kinds) as seen:
        step()
    name = "self_device_time_total" if device.type == "cuda" else "self_cpu_time_total"
    every = sorted(seen.key_averages(), key=lambda e: -getattr(e, name, 0.0))
    for e in every[:count]:
        print(f"    {getattr(e, name, 0.0) / 1e3:8.2f} ms in {e.count:5} {e.key[:90]}")


def on_cuda(which: str, model: str, batch: int, options: argparse.Namespace) -> tuple[float, float]:
    """Time and memory of one row, with nothing of the other rows on the device."""
    try:
        step = made(which, model, batch, options)
        found = milliseconds([step], options.device, options.repeats)[0], megabytes(step, options.device)
        if options.longest:
            print(f"{model} {which}, what takes longest:")
            tell_longest(step, options.device, options.longest)
    except (torch.OutOfMemoryError, InvalidInput) as error:
        if isinstance(error, InvalidInput) and "fit into memory" not in str(error):
            raise
        print(f"{model} {which} with {batch} gradients does not fit into the device's memory")
        found = math.nan, math.nan
    step = None
    gc.collect()
    torch.cuda.empty_cache()
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--batch", type=int, nargs="*", help="gradients; 256, or 64 for transformers, when not given")
    parser.add_argument("--models", nargs="*", choices=list(MODELS), default=["cnn", "mlp", "vit", "encoder"])
    parser.add_argument("--only", nargs="*", choices=ROWS, help="the rows to run; all when not given")
    parser.add_argument("--precision", choices=["float32", "bf16"], default="float32")
    parser.add_argument("--physical", type=int, help="records that a private step holds at a time")
    parser.add_argument("--repeats", type=int, default=30)
    parser.add_argument("--longest", type=int, default=0, help="tell so many operations that take longest in each row")
    parser.add_argument("--device", default="cuda" if torch.cuda.is_available() else "cpu")
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--pad", type=int, help="fill batches up to a multiple of this; 64 on CUDA when not given")
    options = parser.parse_args()
    torch.set_num_threads(options.threads)
    if options.pad:
        run._PADDED = {options.device: options.pad}
    options.device = torch.device(options.device)
    print(
        f"torch {torch.__version__}, {options.device}, {options.precision}, {options.threads} threads; {RECORDS} "
        "records; one step, median ms; MiB"
    )
    for model in options.models:
        for batch in options.batch or [64 if model in SMALL_BATCHES else 256]:
            compare(model, batch, options)


def rows_of(model: str, batch: int, options: argparse.Namespace) -> list[tuple[str, int]]:
    """(row, gradients), those that there are."""
    if options.only:
        return [(which, batch) for which in options.only]
    matched = round(batch / SAVED)
    rows = [("importance", batch), ("uniform", batch), ("uniform", matched), ("plain", batch), ("plain", matched)]
    if model == "cnn" and options.device.type == "cpu":
        rows += [("plain-last", batch)]
    if model not in SMALL_BATCHES and find_spec("opacus") is not None:
        rows += [("opacus", batch), ("opacus", matched)]
    return rows


def compare(model: str, batch: int, options: argparse.Namespace) -> None:
    """Print the rows of one model, and the shares."""
    rows = rows_of(model, batch, options)
    if options.device.type == "cuda":
        both = [on_cuda(which, model, count, options) for which, count in rows]
        times, memory = [taken for taken, _ in both], [held for _, held in both]
    else:
        steps = [made(which, model, count, options) for which, count in rows]
        times = milliseconds(steps, options.device, options.repeats)
        memory = [megabytes(step, options.device) for step in steps]
        for step in steps if options.longest else ():
            tell_longest(step, options.device, options.longest)
    found, held = dict(zip(rows, times, strict=True)), dict(zip(rows, memory, strict=True))
    for which, count in rows:
        print(
            f"{model} {which:11} {count:5} gradients {found[which, count]:9.2f} ms {held[which, count]:8.1f} MiB",
            flush=True,
        )
    for mine in ("importance", "uniform"):
        for which, count in rows:
            one = (mine, batch if mine == "importance" else count)
            if which not in ("importance", "uniform") and one in found:
                shares = [of[one] / of[which, count] for of in (found, held)]
                print(
                    f"{model} {mine} against {which} with {count} gradients: {shares[0]:.2f}, memory {shares[1]:.2f}",
                    flush=True,
                )


if __name__ == "__main__":
    main()
