"""Seconds and accuracy of importance sampling beside DP-SGD at the matched rate: the same steps, clip, epsilon and key.

    python benchmarks/equal_accuracy.py [--model cnn] [--records 10000] [--batch 256] [--epochs 12] [--seeds 5]
    python benchmarks/equal_accuracy.py --device cuda --model wide-cnn --records 60000 --batch 4096 --epochs 20

    DP-SGD              Poisson batches at the matched rate
    importance          importance sampling at that rate, with fewer gradients
    importance, 1.1     the same at 1.1 times the rate, which buys some accuracy for some of the gradients saved

Each rate has the least noise that `privamp.compose` allows for (2, 1e-5). Seconds are of whole runs without the test:
the processor's on one thread of a CPU, elapsed ones on a GPU, after some steps that are not counted; rows take turns.
Accuracy is on all test records, differences are paired by seed. `--learning-rate` is that of every row. Data: MNIST or
Fashion-MNIST, from PRIVAMP_SHARED, or a `shared` folder beside the repository.
"""

import argparse
import time
from typing import Any

import numpy as np
import torch
from dpis_comparison import mean_and_error
from importance_start import CLIP, data, noise_for
from torch import nn
from torch.utils.data import TensorDataset
from torch_models import MODELS

from privamp.testing import seeded_key
from privamp.torch import PrivacyEngine

Found = dict[str, float]
_WARM = 3  # steps


def engine_of(options: Any, row: tuple[str, float], seed: int) -> tuple[nn.Module, PrivacyEngine]:
    sampler, times = row
    x, y = options.tensors[:2]
    torch.manual_seed(seed)
    module, engine = MODELS[options.model]().to(options.device), PrivacyEngine(key=seeded_key(seed))
    engine.make_private(
        module=module, optimizer=torch.optim.SGD(module.parameters(), options.learning_rate, momentum=0.9),
        criterion=nn.CrossEntropyLoss(), data_loader=TensorDataset(x, y), sample_rate=times * options.rate,
        steps=options.steps, max_grad_norm=CLIP, population=len(x), noise_multiplier=options.noise[times],
        sampler=sampler,
    )  # fmt: skip
    return module, engine


def now(device: torch.device) -> float:
    if device.type == "cuda":
        torch.cuda.synchronize(device)
        return time.perf_counter()
    return time.process_time()


def trained(options: Any, row: tuple[str, float], seed: int) -> Found:
    """Seconds, gradients and accuracy of one run."""
    module, engine = engine_of(options, row, seed)
    drawn: list[int] = []
    run = engine._run
    remember = run.batches.remember

    def counted(batch: Any, norms: Any) -> None:
        drawn.append(batch.positions.size)
        remember(batch, norms)

    run.batches.remember = counted
    began = now(options.device)
    engine.train()
    seconds = now(options.device) - began
    tx, ty = options.tensors[2:]
    with torch.no_grad():
        right = [(module(some).argmax(dim=1) == of).float() for some, of in zip(tx.split(2000), ty.split(2000))]  # noqa: B905
    return {"seconds": seconds, "gradients": sum(drawn), "accuracy": 100.0 * float(torch.cat(right).mean())}


def tell(every: dict[tuple[str, float], list[Found]]) -> None:
    def of(runs: list[Found], what: str) -> Any:
        return np.array([run[what] for run in runs])

    base = next(iter(every.values()))
    print("| row | gradients | seconds | of DP-SGD's | accuracy | difference to DP-SGD |")
    print("|---|---|---|---|---|---|")
    for (sampler, times), runs in every.items():
        name = "DP-SGD" if sampler == "uniform" else f"{sampler}" + (f", {times:g}" if times != 1 else "")
        accuracy, error = mean_and_error(list(of(runs, "accuracy")))
        apart, wide = mean_and_error(list(of(runs, "accuracy") - of(base, "accuracy")))
        ratio, spread = mean_and_error(list(of(runs, "seconds") / of(base, "seconds")))
        print(
            f"| {name} | {of(runs, 'gradients').sum() / of(base, 'gradients').sum():.2f} "
            f"| {of(runs, 'seconds').mean():.2f} | {ratio:.2f} ± {spread:.2f} | {accuracy:.2f} ± {error:.2f} "
            f"| {'' if runs is base else f'{apart:+.2f} ± {wide:.2f}'} |"
        )


def parsed() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", default="mnist", choices=["mnist", "fashion_mnist"])
    parser.add_argument("--model", default="cnn", choices=["cnn", "wide-cnn", "mlp", "vit"])
    parser.add_argument("--records", type=int, default=10000)
    parser.add_argument("--batch", type=int, default=256, help="expected batch of the matched rate")
    parser.add_argument("--epochs", type=int, default=12)
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--times", type=float, nargs="*", default=[1.0, 1.1], help="importance at these times the rate")
    parser.add_argument("--learning-rate", type=float, default=0.15)
    parser.add_argument("--device", type=torch.device, default=torch.device("cpu"))
    options = parser.parse_args()
    options.tensors = tuple(t.to(options.device) for t in data(options.data, options.records))
    options.rate = options.batch / options.records
    options.steps = options.epochs * round(options.records / options.batch)
    options.noise = {times: noise_for(times * options.rate, options.steps, 0) for times in {1.0, *options.times}}
    return options


def main() -> None:
    torch.set_num_threads(1)
    options = parsed()
    rows = [("uniform", 1.0), *(("importance", times) for times in options.times)]
    print(
        f"{options.data}, {options.model}, {options.device}, torch {torch.__version__}: {options.records} records, "
        f"batch {options.batch}, {options.steps} steps, learning rate {options.learning_rate:g}, {options.seeds} seeds",
        flush=True,
    )
    for row in rows:
        engine_of(options, row, 0)[1].train(_WARM)
    every: dict[tuple[str, float], list[Found]] = {row: [] for row in rows}
    for seed in range(1, options.seeds + 1):
        for at in range(len(rows)):
            row = rows[(at + seed) % len(rows)]
            every[row].append(trained(options, row, seed))
            print(f"seed {seed} {row}: {every[row][-1]}", flush=True)
    tell(every)


if __name__ == "__main__":
    main()
