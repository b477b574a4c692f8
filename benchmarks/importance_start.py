"""Can importance sampling save gradients earlier? First bounds from several sources, in paired runs.

    python benchmarks/importance_start.py [--data mnist] [--model cnn] [--records 10000] [--epochs 6] [--seeds 3]
    python benchmarks/importance_start.py --row matched importance ...          # some rows only
    python benchmarks/importance_start.py --save runs.jsonl ...                 # a run that is kept is not made again

Every row trains on the same records with the same key and the same noise; only the bounds of records differ, which are
at most the clip in every row, so that all have the guarantee of DP-SGD at the matched rate (docs/torch.md, Theorem 1):

    matched         DP-SGD at the matched rate: all bounds are the clip
    importance      bounds begin at the clip, and follow a record's last norm when it is drawn
    first pass      a pass over all records before the first step; a bound is a record's own secret, so it is free in
                    privacy, and costs a gradient per record
    pass an epoch   the same before every epoch
    public          500 public records (of the test set) at every epoch: a record that was never drawn gets the 90%
                    quantile of the public norms of its class, times the growth
    public, all     the same, and the bounds of all others shrink with the median of the public norms
    class medians   the same for records never drawn, with noisy medians of each class's stored norms in place of the
                    public ones: Gaussian noise of 50 on a histogram, once an epoch, paid for by more noise on gradients
    growth 1.4      importance with a smaller growth than 2, the default

Then, along the first seed's matched run: the share of the matched rate's gradients that perfect bounds would leave, for
growth 2 (the default) and 1. Data: PRIVAMP_SHARED, or a `shared` folder beside the repository.
"""

import argparse
import math
import os
import time
from pathlib import Path
from typing import Any

import numpy as np
import torch
from dpis_comparison import mean_and_error
from kept_runs import Facts, KeptRuns
from torch import nn
from torch.utils.data import TensorDataset
from torch_models import MODELS

from privamp import Gaussian, Poisson, amplify, compose
from privamp.testing import seeded_key
from privamp.torch import PrivacyEngine

SLOW = "growth 1.4"
ROWS = ("matched", "importance", "first pass", "pass an epoch", "public", "public, all", "class medians", SLOW)
CLIP, GROWTH, PUBLIC, EPSILON, DELTA = 1.0, 2.0, 500, 2.0, 1e-5
HISTOGRAM_NOISE, EDGES = 50.0, np.geomspace(0.01, 1.0, 12)


def data(name: str, records: int) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor, torch.Tensor]:
    folder = Path(os.environ.get("PRIVAMP_SHARED", Path(__file__).resolve().parents[2] / "shared"))
    held = np.load(folder / "data" / f"{name}.npz")
    x, y, tx, ty = (held[part] for part in ("X_train", "y_train", "X_test", "y_test"))
    chosen = np.random.default_rng(0).permutation(len(x))[:records]

    def pictures(values: Any) -> torch.Tensor:
        return torch.from_numpy(values.reshape(-1, 1, 28, 28).astype(np.float32) / 255.0)

    return pictures(x[chosen]), torch.from_numpy(y[chosen]).long(), pictures(tx), torch.from_numpy(ty).long()


def noise_for(rate: float, steps: int, releases: int) -> float:
    """The least multiplier at which the steps, and so many histograms beside them, fit the target."""
    low, high = 0.3, 20.0
    for _ in range(14):
        middle = math.sqrt(low * high)
        parts = [compose(amplify(Gaussian(middle), Poisson(rate)), steps)]
        if releases:
            parts.append(compose(amplify(Gaussian(HISTOGRAM_NOISE), Poisson(1.0)), releases))
        low, high = (low, middle) if compose(parts).epsilon(DELTA) <= EPSILON else (middle, high)
    return high


class Row:
    """One run, with its bounds from one source."""

    def __init__(self, name: str, options: Any, seed: int, noises: tuple[float, float]) -> None:
        x, y, tx, ty = options.tensors
        self.name, self.labels = name, y.numpy()
        self.test = tx[PUBLIC:3000], ty[PUBLIC:3000]
        self.public = tx[:PUBLIC], ty[:PUBLIC]
        torch.manual_seed(seed)
        self.module = MODELS[options.model]()
        self.engine = PrivacyEngine(key=seeded_key(seed))
        self.engine.make_private(
            module=self.module, optimizer=torch.optim.SGD(self.module.parameters(), 0.15, momentum=0.9),
            criterion=nn.CrossEntropyLoss(), data_loader=TensorDataset(x, y), sample_rate=options.rate,
            steps=options.steps, max_grad_norm=CLIP, population=len(x), growth=1.4 if name == SLOW else GROWTH,
            noise_multiplier=noises[name == "class medians"], sampler="uniform" if name == "matched" else "importance",
        )  # fmt: skip
        self.run, self.extra = self.engine._run, 0
        self.is_known = np.zeros(len(x), dtype=bool)
        self.rng = np.random.default_rng(seed)
        if name != "matched":
            remember = self.run.batches.remember

            def remembered(batch: Any, norms: Any) -> None:
                remember(batch, norms)
                self.is_known[batch.positions] = True

            self.run.batches.remember = remembered

    def all_norms(self) -> Any:
        return np.nan_to_num(self.run.norms(np.arange(len(self.labels))), nan=CLIP)

    def public_norms(self) -> Any:
        """Norms of public records under the parameters, which are public."""
        self.run.recorder.listen(PUBLIC)
        losses = self.run.criterion.unguarded(self.module(self.public[0]), self.public[1])
        return self.run.recorder.measure(losses).norms.numpy()

    def begin_epoch(self, epoch: int) -> None:
        rule, batches = getattr(self.run.batches, "rule", None), self.run.batches
        if self.name == "pass an epoch" or (self.name == "first pass" and epoch == 0):
            batches.bounds = rule.remembered(self.all_norms())
            self.extra += len(self.labels)
        elif self.name.startswith("public"):
            norms, classes = self.public_norms(), self.public[1].numpy()
            first = np.array([np.quantile(norms[classes == c], 0.9) for c in range(10)])
            unknown, middle = ~self.is_known, float(np.median(norms))
            batches.bounds[unknown] = rule.remembered(first[self.labels[unknown]])
            if self.name == "public, all" and epoch:
                moved = batches.bounds[self.is_known] * min(1.0, middle / self.last)
                batches.bounds[self.is_known] = np.clip(moved, rule.growth * rule.floor, CLIP)
            self.last = middle
        elif self.name == "class medians" and epoch:
            for c in range(10):
                mine = (self.labels == c) & self.is_known
                counts = np.histogram(np.clip(batches.bounds[mine] / GROWTH, 0, 0.999), [0.0, *EDGES])[0]
                noisy = np.maximum(counts + self.rng.normal(0, HISTOGRAM_NOISE, counts.size), 0).cumsum()
                middle = float(EDGES[np.searchsorted(noisy, noisy[-1] / 2)])
                batches.bounds[(self.labels == c) & ~self.is_known] = rule.remembered(np.array([middle]))[0]

    def train(self, options: Any, perfect: list[Any] | None = None) -> tuple[list[int], float]:
        """Gradients in each epoch, and the accuracy at the end."""
        found = []
        for epoch in range(options.epochs):
            self.extra = 0
            self.begin_epoch(epoch)
            if perfect is not None:
                norms = self.all_norms()
                perfect.append([np.minimum(CLIP, k * norms).mean() for k in (2.0, 1.0)])
            drawn: list[int] = []
            self.engine.train(options.epoch, lambda progress, drawn=drawn: drawn.append(progress.secret_batch))
            found.append(sum(drawn) + self.extra)
        with torch.no_grad():
            right = self.module(self.test[0]).argmax(dim=1) == self.test[1]
        return found, 100.0 * float(right.float().mean())


def one_run(options: Any, name: str, seed: int, noises: tuple[float, float]) -> Facts:
    """The run of a row, from the file of earlier runs if it is there."""
    settings = ("data", "model", "records", "batch", "epochs")
    asked = {**{setting: getattr(options, setting) for setting in settings}, "row": name, "seed": seed}

    def make() -> Facts:
        began, perfect = time.process_time(), list[Any]()
        is_measured = name == "matched" and seed == 0
        gradients, accuracy = Row(name, options, seed, noises).train(options, perfect if is_measured else None)
        seconds = time.process_time() - began
        return {"gradients": gradients, "accuracy": accuracy, "perfect": perfect, "seconds": seconds}

    return options.kept.found_or_made(asked, make)


def noises_of(options: Any) -> tuple[float, float]:
    """Multipliers of gradients, without and with the histograms beside them."""

    def found(releases: int) -> float:
        asked = {"noise_at": [options.rate, options.steps, releases]}
        noise = options.kept.found_or_made(asked, lambda: {"noise": noise_for(options.rate, options.steps, releases)})
        return float(noise["noise"])

    return found(0), found(options.epochs - 1)


def tell(every: dict[str, list[Facts]]) -> None:
    """Gradients over those of the matched rate, accuracy, and the difference to importance, paired by seed."""
    matched = np.mean([run["gradients"] for run in every["matched"]], axis=0)
    print("| row | gradients by epoch | in all | seconds | accuracy | difference to importance |")
    print("|---|---|---|---|---|---|")
    for name, runs in every.items():
        counts = np.mean([run["gradients"] for run in runs], axis=0)
        pairs = zip(runs, every["importance"], strict=True)
        apart, error = mean_and_error([run["accuracy"] - other["accuracy"] for run, other in pairs])
        print(
            f"| {name} | {shown(counts / matched)} | {counts.sum() / matched.sum():.2f} "
            f"| {np.mean([run['seconds'] for run in runs]):.1f} | {np.mean([run['accuracy'] for run in runs]):.2f} "
            f"| {'' if name == 'importance' else f'{apart:+.2f} ± {error:.2f}'} |"
        )
    perfect = np.transpose(every["matched"][0]["perfect"])
    for k, shares in zip((2, 1), perfect, strict=True):
        print(f"| perfect bounds, growth {k} | {shown(shares)} | {shares.mean():.2f} | | | |")


def shown(shares: Any) -> str:
    return " ".join(f"{share:.2f}" for share in shares)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", default="mnist", choices=["mnist", "fashion_mnist"])
    parser.add_argument("--model", default="cnn", choices=list(MODELS))
    parser.add_argument("--records", type=int, default=10000)
    parser.add_argument("--batch", type=int, default=256, help="expected batch of the matched rate")
    parser.add_argument("--epochs", type=int, default=6)
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--row", nargs="+", choices=ROWS, default=list(ROWS))
    parser.add_argument("--save", type=Path, help="a file of runs, one a line")
    options = parser.parse_args()
    torch.set_num_threads(1)
    options.kept = KeptRuns(options.save)
    options.tensors = data(options.data, options.records)
    options.rate, options.epoch = options.batch / options.records, round(options.records / options.batch)
    options.steps = options.epoch * options.epochs
    options.row = [row for row in ROWS if row in ("matched", "importance", *options.row)]
    noises = noises_of(options)
    print(
        f"{options.data}, {options.model}, {options.records} records, rate {options.rate:.4f}, {options.epochs} epochs "
        f"of {options.epoch} steps, {options.seeds} seeds, epsilon {EPSILON:g}, noise {noises[0]:.4f} "
        f"(class medians {noises[1]:.4f})\n",
        flush=True,
    )
    runs = [[one_run(options, name, seed, noises) for name in options.row] for seed in range(options.seeds)]
    tell({name: [of_seed[at] for of_seed in runs] for at, name in enumerate(options.row)})


if __name__ == "__main__":
    main()
