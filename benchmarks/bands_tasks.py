"""The tasks of bands_accuracy.py, and one run of one row.

`finetune` trains a CNN on MNIST without privacy, as public data, and then privately trains its last two layers on
Fashion-MNIST: what the fixed layers make of a record does not change, so it is computed once. `imdb` sums trained word
vectors and classifies the sum: an LSTM is no better at these epsilons, and takes forty times as long.
"""

import time
from copy import deepcopy
from dataclasses import asdict, dataclass
from functools import cache
from typing import Any

import torch
from dpis_comparison import OPACUS, WORDS, Setting, accuracy, load, network, trained_by_opacus
from kept_runs import Facts
from torch import nn
from torch.utils.data import TensorDataset

from privamp import BallsInBins, CyclicPoisson, Poisson
from privamp.testing import seeded_key
from privamp.torch import PrivacyEngine, plan_bands
from privamp.torch.models import build
from privamp.torch.plan import calibrated

POISSON, BANDED, BALLS, GHOST = ROWS = ("DP-SGD", "banded", "balls in bins", "Opacus")
CLIP, DELTA, EVERY = 1.0, 1e-5, 10**9


@dataclass(frozen=True)
class Task:
    """What is trained, and how; `steps` must be a multiple of the rounds of an epoch, records/batch."""

    data: str
    model: str
    records: int
    batch: int
    steps: int
    learning_rates: tuple[float, ...]  # each twice the one before


RATES = {
    "cnn": (0.025, 0.05, 0.1, 0.2, 0.4),
    "head": (0.05, 0.1, 0.2, 0.4),
    "logistic": (0.1, 0.2, 0.4, 0.8),
    "words": (0.25, 0.5, 1.0, 2.0),
}
SMALL = {
    "mnist": Task("mnist", "cnn", 10_000, 100, 300, RATES["cnn"]),
    "fashion": Task("fashion", "cnn", 10_000, 100, 300, RATES["cnn"]),
    "adult": Task("adult", "logistic", 32_500, 250, 390, RATES["logistic"]),
    "finetune": Task("fashion", "head", 10_000, 100, 300, RATES["head"]),
}
FULL = {
    "mnist": Task("mnist", "cnn", 60_000, 500, 1200, RATES["cnn"][1:]),
    "fashion": Task("fashion", "cnn", 60_000, 500, 1200, RATES["cnn"][1:]),
    "imdb": Task("imdb", "words", 25_000, 500, 600, RATES["words"]),
    "finetune": Task("fashion", "head", 60_000, 500, 1200, RATES["head"]),
}


@dataclass(frozen=True)
class Cell:
    """One run, with everything a process needs to make it."""

    task: Task
    row: str
    epsilon: float
    learning_rate: float
    seed: int
    bands: int
    noise: float

    @property
    def asked(self) -> Facts:
        facts = {**asdict(self.task), **asdict(self)}
        return {k: v for k, v in facts.items() if k not in ("learning_rates", "task", "bands", "noise")}


def planned(task: Task, epsilon: float) -> Facts:
    """The noise of every row, the number of bands, and the error of prefix sums predicted for them."""
    rate = task.batch / task.records
    bands = plan_bands(sample_rate=rate, steps=task.steps, target_epsilon=epsilon, target_delta=DELTA)
    balls = calibrated(balls_of(task), None, task.steps, epsilon, DELTA)
    noise = {POISSON: bands.tried[0].noise_multiplier, BANDED: bands.best.noise_multiplier, BALLS: balls}
    return {"bands": bands.bands, "ratio": bands.ratio, "noise": {**noise, GHOST: noise[POISSON]}}


def balls_of(task: Task) -> BallsInBins:
    rounds = task.records // task.batch
    return BallsInBins(rounds, task.steps // rounds)


def sampler_of(cell: Cell) -> Any:
    rate = cell.task.batch / cell.task.records
    if cell.row == BALLS:
        return balls_of(cell.task)
    is_banded = cell.row == BANDED and cell.bands > 1
    return CyclicPoisson(rate, cell.bands, cell.task.steps) if is_banded else Poisson(rate)


def setting_of(cell: Cell, device: str, folder: str) -> Setting:
    t = cell.task
    return Setting(
        t.data, t.model, t.batch, t.steps, cell.learning_rate, CLIP, 1.0, 2.0, cell.epsilon, DELTA, device, folder,
        t.records, OPACUS, cell.noise,
    )  # fmt: skip


@cache
def public_cnn(device: str, folder: str) -> Any:
    """The CNN after one epoch on MNIST without privacy."""
    torch.manual_seed(0)
    x, y, *_ = load("mnist", folder, device, EVERY)
    module = build("cnn", x.shape[1:], 10).to(device)
    optimizer = torch.optim.SGD(module.parameters(), 0.05, momentum=0.9)
    for a, b in zip(x.split(128), y.split(128), strict=True):
        optimizer.zero_grad()
        nn.functional.cross_entropy(module(a), b).backward()
        optimizer.step()
    return module


@cache
def inputs(task: Task, device: str, folder: str) -> tuple[Any, ...]:
    """Training records and the two halves of the test part; for fine-tuning, what the fixed layers make of each."""
    x, y, x_test, y_test = load(task.data, folder, device, task.records)
    if task.model == "head":
        front = public_cnn(device, folder)[:-3]
        with torch.no_grad():
            x, x_test = (torch.cat([front(part) for part in given.split(1000)]) for given in (x, x_test))
    half = len(y_test) // 2
    return x, y, x_test[:half], y_test[:half], x_test[half:], y_test[half:]


class SumOfWords(nn.Module):
    """The word vectors of a review, added up and divided by the root of their number."""

    def __init__(self) -> None:
        super().__init__()
        self.vectors, self.out = nn.Embedding(WORDS, 16), nn.Linear(16, 2)
        nn.init.normal_(self.vectors.weight, std=0.1)

    def forward(self, ids: Any) -> Any:
        is_word = (ids > 0).unsqueeze(-1).to(self.vectors.weight.dtype)
        return self.out((self.vectors(ids) * is_word).sum(dim=1) / is_word.sum(dim=1).clamp(min=1.0).sqrt())


def start_of(cell: Cell, setting: Setting, x: Any, folder: str) -> tuple[Any, Any]:
    if cell.task.model not in ("head", "words"):
        return network(setting, x, cell.seed)
    torch.manual_seed(cell.seed)
    if cell.task.model == "words":
        module = SumOfWords().to(setting.device)
    else:
        module = deepcopy(public_cnn(setting.device, folder)[-3:])
        module[-1].reset_parameters()  # other classes
    return module, torch.optim.SGD(module.parameters(), cell.learning_rate, momentum=0.9)


def trained(cell: Cell, device: str, folder: str) -> Facts:
    """One run: percentages right on both halves of the test part, and the processor's seconds."""
    if device == "cpu":
        torch.set_num_threads(1)
    setting = setting_of(cell, device, folder)
    x, y, *halves = inputs(cell.task, device, folder)
    module, optimizer = start_of(cell, setting, x, folder)
    began = time.process_time()
    if cell.row == GHOST:
        trained_by_opacus(setting, cell.seed, module, optimizer, x, y, *halves[:2])
    else:
        by_engine(cell, module, optimizer, x, y)
    seconds = time.process_time() - began
    chosen_by, found = accuracy(module, *halves[:2]), accuracy(module, *halves[2:])
    return {"bands": cell.bands, "noise": cell.noise, "chosen_by": chosen_by, "accuracy": found, "seconds": seconds}


def by_engine(cell: Cell, module: Any, optimizer: Any, x: Any, y: Any) -> None:
    engine = PrivacyEngine(key=seeded_key(cell.seed))
    engine.make_private(
        module=module, optimizer=optimizer, criterion=nn.CrossEntropyLoss(), data_loader=TensorDataset(x, y),
        sampler=sampler_of(cell), steps=cell.task.steps, noise_multiplier=cell.noise, max_grad_norm=CLIP,
        population=cell.task.records,
    )  # fmt: skip
    engine.train()
    engine.detach()
