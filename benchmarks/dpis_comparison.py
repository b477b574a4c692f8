"""The comparison of the paper's Table 3, in our terms: DP-SGD against importance-sampled batches, fairly and twice.

    python benchmarks/dpis_comparison.py --data mnist [--model cnn] [--epsilon 1 4] [--seeds 5] [--quick]
    python benchmarks/dpis_comparison.py --data fashion --noise-curve

Rows, all with the same steps, learning rate, clip, epsilon and delta:

    DP-SGD, batch b         rate b/n, computes b gradients a step
    DP-SGD, matched rate    rate r = b/(share n), computes b/share
    importance              rate r: the guarantee of the row above with part of its gradients not computed
    importance, rejecting   the same with the paper's second coin
    paper's variant         the paper's whole system, mended: epsilon by its Rényi filter
    DP-SGD, Opacus          batch b by Opacus' ghost clipping at the noise of the first row, where Opacus is installed

Accuracy is that of the last step on the test part, in percent: mean and standard error over seeds. Seconds are those
of the first seed's training at the first epsilon, by itself, after a warm-up; with --jobs all other runs go beside one
another. Without --jobs every run is by itself, and the ratio of the medians is printed too. Data are looked for in
--folder, in $PRIVAMP_SHARED/data, and in shared/data beside the source tree.
"""

import argparse
import csv
import gzip
import json
import math
import os
import statistics
import sys
import time
import warnings
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from dataclasses import asdict, dataclass, replace
from functools import cache
from multiprocessing import get_context
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT / "src"))

import numpy as np  # noqa: E402
import torch  # noqa: E402
from torch import nn  # noqa: E402
from torch.utils.data import TensorDataset  # noqa: E402

from privamp.errors import Infeasible  # noqa: E402
from privamp.testing import seeded_key  # noqa: E402
from privamp.torch import (  # noqa: E402
    DPISPlan,
    PrivacyEngine,
    device,
    encoding,
)
from privamp.torch.models import build  # noqa: E402
from privamp.torch.plan import calibrated  # noqa: E402

warnings.filterwarnings("ignore")

FILES = {"mnist": "mnist.npz", "fashion": "fashion_mnist.npz", "imdb": "imdb_tokens.npz", "adult": "adult.csv.gz"}
MODEL = {"mnist": "cnn", "fashion": "cnn", "imdb": "lstm", "adult": "logistic"}
CLASSES = {"mnist": 10, "fashion": 10, "imdb": 2, "adult": 2}
WORDS = 10_002
PAPER = {  # Table 3: DPIS, DP-SGD
    "mnist": {0.5: (96.8, 93.1), 1: (97.7, 94.9), 2: (98.6, 96.1), 3: (98.8, 96.8), 4: (98.9, 97.2)},
    "fashion": {0.5: (84.6, 78.4), 1: (86.6, 80.8), 2: (88.3, 82.3), 3: (88.8, 84.1), 4: (89.4, 84.5)},
    "imdb": {0.5: (59.1, 56.4), 1: (62.1, 60.3), 2: (65.9, 63.5), 3: (68.3, 66.4), 4: (70.2, 67.4)},
}


@dataclass(frozen=True)
class Setting:
    """One cell of the table."""

    data: str
    model: str
    batch: int
    steps: int
    learning_rate: float
    clip: float
    share: float  # gradients of the matched rate that importance sampling is expected to compute
    growth: float
    epsilon: float
    delta: float
    device: str
    folder: str
    limit: int  # training records used
    row: str = ""
    noise: float = math.nan


@dataclass(frozen=True)
class Found:
    """One run."""

    accuracy: float
    gradients: int
    seconds: float
    epsilon: float
    steps: int
    noises: tuple[float, ...] = ()  # sigma_G of each epoch, for the paper's variant
    shares: tuple[float, ...] = ()  # K/(N C) of each epoch


ROWS = ("DP-SGD, batch b", "DP-SGD, matched rate", "importance", "importance, rejecting", "paper's variant")
OPACUS = "DP-SGD, Opacus"
SAMPLER = dict(zip(ROWS, ("uniform", "uniform", "importance", "importance-reject", "dpis"), strict=True))


@cache
def load(data: str, folder: str, where: str, limit: int) -> tuple[Any, ...]:
    """Tensors of the training and test parts, on the device."""
    path = Path(folder) / FILES[data]
    if data == "adult":
        parts = adult(path)
    else:
        with np.load(path) as file:
            parts = [part_of(data, file, name) for name in ("train", "test")]
    tensors = []
    for at, (x, y) in enumerate(parts):
        keep = np.random.default_rng(0).permutation(len(y))[: limit if at == 0 else len(y)]
        tensors += [torch.from_numpy(x[keep]).to(where), torch.from_numpy(y[keep].astype(np.int64)).to(where)]
    return tuple(tensors)


def part_of(data: str, file: Any, name: str) -> tuple[Any, Any]:
    if data == "imdb":
        return encoding.sequences(file[f"tokens_{name}"], file[f"offsets_{name}"]), file[f"y_{name}"]
    return encoding.pictures(file[f"X_{name}"]), file[f"y_{name}"]


def adult(path: Path) -> list[tuple[Any, Any]]:
    with gzip.open(path, "rt", encoding="utf-8") as text:
        rows = list(csv.DictReader(text))
    names = [name for name in rows[0] if name not in ("income", "split")]
    found = []
    for part in ("train", "test"):
        chosen = [row for row in rows if row["split"] == part]
        x = encoding.table({name: [row[name] for row in chosen] for name in names})
        found.append((x, np.array([row["income"] == ">50K" for row in chosen])))
    return found


def wide() -> Any:
    """A CNN for 28 x 28 pixels in which a GPU computes more than it waits: 373,386 parameters."""
    return nn.Sequential(
        nn.Conv2d(1, 64, 5, 2, padding=2), nn.Tanh(), nn.Conv2d(64, 128, 3, padding=1), nn.Tanh(), nn.MaxPool2d(2),
        nn.Conv2d(128, 256, 3, padding=1), nn.Tanh(), nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(256, 10),
    )  # fmt: skip


def network(setting: Setting, x: Any, seed: int) -> tuple[Any, Any]:
    torch.manual_seed(seed)
    words = WORDS if setting.data == "imdb" else None
    made = wide() if setting.model == "wide" else build(setting.model, x.shape[1:], CLASSES[setting.data], words)
    module = made.to(setting.device)
    learning = [p for p in module.parameters() if p.requires_grad]
    return module, torch.optim.SGD(learning, setting.learning_rate, momentum=0.9)


def accuracy(module: Any, x: Any, y: Any) -> float:
    with torch.no_grad():
        right = sum(int((module(a).argmax(1) == b).sum()) for a, b in zip(x.split(2000), y.split(2000), strict=True))
    return 100.0 * right / len(y)


def rate_of(setting: Setting, records: int) -> float:
    small = setting.batch / records
    return small if setting.row in (ROWS[0], ROWS[4], OPACUS) else min(small / setting.share, 1.0)


def trained(setting: Setting, seed: int) -> Found:
    """One run of one row."""
    if setting.device == "cpu":
        torch.set_num_threads(1)
    x, y, x_test, y_test = load(setting.data, setting.folder, setting.device, setting.limit)
    module, optimizer = network(setting, x, seed)
    if setting.row == OPACUS:
        return trained_by_opacus(setting, seed, module, optimizer, x, y, x_test, y_test)
    engine, sampler = PrivacyEngine(key=seeded_key(seed)), SAMPLER[setting.row]
    private = (
        {"target_epsilon": setting.epsilon, "target_delta": setting.delta}
        if sampler == "dpis"
        else {"noise_multiplier": setting.noise, "growth": setting.growth}
    )
    engine.make_private(
        module=module, optimizer=optimizer, criterion=nn.CrossEntropyLoss(), data_loader=TensorDataset(x, y),
        sample_rate=rate_of(setting, len(y)), steps=setting.steps, max_grad_norm=setting.clip,
        population=len(y), sampler=sampler, **private,
    )  # fmt: skip
    batches, computed, epochs = engine._run.batches, 0, []

    def on_step(progress: Any) -> None:
        nonlocal computed
        computed += progress.secret_batch
        if sampler == "dpis" and (progress.step - 1) % engine.plan.epoch == 0:
            computed += len(y)  # the sum of norms
            epochs.append((batches.gradient_noise, batches._sum / (batches._size * batches._clip)))

    began = time.perf_counter()
    taken = engine.train(on_step=on_step)
    if setting.device != "cpu":
        torch.cuda.synchronize()
    seconds = time.perf_counter() - began
    noises, shares = zip(*epochs, strict=True) if epochs else ((), ())
    score = accuracy(module, x_test, y_test)
    engine.detach()
    return Found(score, computed, seconds, setting.epsilon, taken, tuple(noises), tuple(shares))


def trained_by_opacus(setting: Setting, seed: int, module: Any, optimizer: Any, x: Any, y: Any, *test: Any) -> Found:
    from opacus.grad_sample import GradSampleModuleFastGradientClipping
    from opacus.optimizers import DPOptimizerFastGradientClipping
    from opacus.utils.fast_gradient_clipping_utils import DPLossFastGradientClipping

    private = GradSampleModuleFastGradientClipping(module, max_grad_norm=setting.clip, use_ghost_clipping=True)
    noisy = DPOptimizerFastGradientClipping(
        optimizer, noise_multiplier=setting.noise, max_grad_norm=setting.clip, expected_batch_size=setting.batch
    )
    criterion, computed = DPLossFastGradientClipping(private, noisy, nn.CrossEntropyLoss()), 0
    began = time.perf_counter()
    for _ in range(setting.steps):
        drawn = torch.nonzero(torch.rand(len(y), device=x.device) < setting.batch / len(y)).flatten()
        computed += len(drawn)
        noisy.zero_grad()
        criterion(private(x[drawn]), y[drawn]).backward()
        noisy.step()
    if setting.device != "cpu":
        torch.cuda.synchronize()
    seconds = time.perf_counter() - began
    return Found(accuracy(module, *test), computed, seconds, setting.epsilon, setting.steps)


def calibrate_rows(settings: list[Setting], records: int) -> list[Setting]:
    """The least noise of each row by privacy-loss distributions; equal questions are asked once."""
    noise = cache(lambda rate, steps, e, d: calibrated("uniform", rate, steps, e, d))
    return [
        s if s.row == ROWS[4] else replace(s, noise=noise(rate_of(s, records), s.steps, s.epsilon, s.delta))
        for s in settings
        if s.row != ROWS[4] or has_room(s, records)
    ]


def has_room(setting: Setting, records: int) -> bool:
    """Whether the paper's sums of norms leave anything of the budget for training."""
    plan = DPISPlan(
        rate=rate_of(setting, records), steps=setting.steps, epsilon=setting.epsilon, delta=setting.delta,
        clip=setting.clip, population=records,
    )  # fmt: skip
    try:
        plan.filter()
    except Infeasible as error:
        print(f"{setting.row} is skipped at epsilon {setting.epsilon:g}: {error}", flush=True)
        return False
    return True


def rows_of(options: argparse.Namespace) -> list[str]:
    rows = list(ROWS if not options.noise_curve else ROWS[4:])
    if options.noise_curve:
        return rows
    if options.row:
        return list(options.row)
    if options.model == "lstm":
        print("Opacus' ghost clipping refuses a layer that is used at every place: its row is skipped", flush=True)
        return rows
    try:
        import opacus as _  # noqa: F401

        return [*rows, OPACUS]
    except ImportError:
        print("opacus is not installed: its row is skipped", flush=True)
        return rows


def runs(options: argparse.Namespace, folder: str) -> Iterator[tuple[Setting, list[Found]]]:
    records = len(load(options.data, folder, "cpu", options.limit)[1])
    o = options
    common = Setting(
        o.data, o.model, o.batch, o.steps, o.learning_rate, o.clip, o.share, o.growth, math.nan, o.delta, o.device,
        folder, o.limit,
    )  # fmt: skip
    rows = rows_of(o)
    settings = [replace(common, epsilon=epsilon, row=row) for epsilon in o.epsilon for row in rows]
    settings = calibrate_rows(settings, records)
    trained(replace(settings[0], steps=min(settings[0].steps, 10), epsilon=8.0), 0)  # warm-up
    asked = [(setting, seed) for setting in settings for seed in range(1, options.seeds + 1)]
    timed = [one for one in asked if one[1] == 1 and one[0].epsilon == options.epsilon[0]]
    found = {one: trained(*one) for one in timed}
    rest = [one for one in asked if one not in found]
    if options.jobs > 1 and rest:
        with ProcessPoolExecutor(options.jobs, mp_context=get_context("spawn")) as pool:
            found |= zip(rest, pool.map(trained, *zip(*rest, strict=True)), strict=True)
    else:
        found |= {one: trained(*one) for one in rest}
    for setting in settings:
        yield setting, [found[setting, seed] for seed in range(1, options.seeds + 1)]


def mean_and_error(values: list[float]) -> tuple[float, float]:
    error = statistics.stdev(values) / math.sqrt(len(values)) if len(values) > 1 else math.nan
    return statistics.mean(values), error


def printed(setting: Setting) -> str:
    known = PAPER.get(setting.data, {}).get(setting.epsilon)
    if known is None or setting.model != MODEL[setting.data] or setting.row not in (ROWS[0], ROWS[4]):
        return ""
    return f"{known[0] if setting.row == ROWS[4] else known[1]:.1f}"


def tell(options: argparse.Namespace, found: list[tuple[Setting, list[Found]]]) -> None:
    o = options
    print(
        f"\n{o.data}, {o.model}: b={o.batch}, {o.steps} steps, clip {o.clip:g}, learning rate {o.learning_rate:g}, "
        f"momentum 0.9, share {o.share:g}, growth {o.growth:g}, delta {o.delta:g}; {o.seeds} seeds; {o.device}, torch "
        f"{torch.__version__}\n"
    )
    print("| epsilon | row | accuracy ± standard error | gradients computed | seconds | paper |")
    print("|---|---|---|---|---|---|")
    for setting, runs_ in found:
        score, error = mean_and_error([f.accuracy for f in runs_])
        gradients = statistics.mean([f.gradients for f in runs_])
        print(
            f"| {setting.epsilon:g} | {setting.row} | {score:.2f} ± {error:.2f} | {gradients / 1e3:,.0f}k "
            f"| {f'{runs_[0].seconds:.1f}' if setting.epsilon == o.epsilon[0] else ''} | {printed(setting)} |"
        )
    for epsilon in options.epsilon:
        of = {s.row: [f.accuracy for f in r] for s, r in found if s.epsilon == epsilon}
        for other in ROWS[:2]:
            if other in of and ROWS[2] in of and options.seeds > 1:
                ours, theirs = mean_and_error(of[ROWS[2]]), mean_and_error(of[other])
                gap, error = ours[0] - theirs[0], math.hypot(ours[1], theirs[1])
                print(f"epsilon {epsilon:g}: importance minus {other}: {gap:+.2f} ± {error:.2f} points")
    first = {s.row: r for s, r in found if s.epsilon == options.epsilon[0]}
    if {ROWS[1], ROWS[2]} <= set(first):
        seconds = [statistics.median([f.seconds for f in first[row]]) for row in (ROWS[2], ROWS[1])]
        print(f"seconds of importance over those of {ROWS[1]}: {seconds[0] / seconds[1]:.2f} (medians of the seeds)")


def tell_noise(found: list[tuple[Setting, list[Found]]]) -> None:
    """Figure 1: sigma_G by epoch. K is a noisy release, so the curve may be shown."""
    for setting, runs_ in found:
        for name in ("noises", "shares"):
            print(f"epsilon {setting.epsilon:g} {name}: " + " ".join(f"{v:.4f}" for v in getattr(runs_[0], name)))


def find_folder(given: str | None, data: str) -> str:
    tried = [given] if given else [os.path.join(os.environ.get("PRIVAMP_SHARED", ""), "data")]
    tried += [] if given else [str(ROOT / "shared" / "data"), str(ROOT.parent / "shared" / "data")]
    for folder in tried:
        if (Path(folder) / FILES[data]).is_file():
            return folder
    raise SystemExit(f"there is no {FILES[data]} in {', '.join(tried)}; say where with --folder")


def parsed(arguments: list[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", choices=FILES, default="mnist")
    parser.add_argument("--model", choices=("cnn", "mlp", "lstm", "logistic", "wide"))
    parser.add_argument("--row", nargs="+", choices=(*ROWS, OPACUS), help="all when not given")
    parser.add_argument("--epsilon", type=float, nargs="+", default=[1.0, 4.0])
    parser.add_argument("--delta", type=float, default=1e-5)
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--batch", type=int, default=1024, help="b: gradients of a step")
    parser.add_argument("--steps", type=int, default=600)
    parser.add_argument("--learning-rate", type=float, default=0.25)
    parser.add_argument("--clip", type=float, default=1.0)
    parser.add_argument("--share", type=float, default=0.45)
    parser.add_argument("--growth", type=float, default=2.0)
    parser.add_argument("--limit", type=int, default=10**9, help="training records to use")
    parser.add_argument("--device", default="cuda" if torch.cuda.is_available() else "cpu")
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("--folder")
    parser.add_argument("--quick", action="store_true", help="at most 2 epsilons, 3 seeds and 300 steps")
    parser.add_argument("--noise-curve", action="store_true", help="only the paper's variant, sigma_G by epoch")
    parser.add_argument("--out", help="write every run to this .json file")
    options = parser.parse_args(arguments)
    if options.quick:
        options.epsilon, options.seeds = options.epsilon[:2], min(options.seeds, 3)
        options.steps = min(options.steps, 300)
    options.model = options.model or MODEL[options.data]
    device(options.device)
    return options


def main(arguments: list[str] | None = None) -> None:
    options = parsed(arguments)
    found = list(runs(options, find_folder(options.folder, options.data)))
    tell_noise(found) if options.noise_curve else tell(options, found)
    if options.out:
        answer = [{**asdict(s), "folder": "", "runs": [asdict(f) for f in r]} for s, r in found]
        Path(options.out).write_text(json.dumps(answer), encoding="utf-8")


if __name__ == "__main__":
    main()
