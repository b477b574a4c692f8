"""DPIS and its competitors, trained by `privamp.torch` at one (epsilon, delta) for the whole run. Needs torch.

DP-SGD         the paper's convolutional network with ReLU
DP-SGD-TS      the same with tanh, the tempered sigmoid of scale 2, temperature 2 and offset 1
DP-SGD-Decay   as TS; the noise falls by a constant factor from phase to phase, the phases composed exactly
DP-SGD-HF      a linear classifier on scattering features
DPIS           the same classifier by the paper's whole system, mended (`sampler="dpis"`)
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any, Final

import numpy as np

from ...accounting.composition import compose
from ...amplification import amplify
from ...designs.poisson import Poisson
from ...extras import missing
from ...mechanisms.gaussian import Gaussian
from ...numerics.roots import least_passing
from ...torch.plan import calibrated
from ..data import shared_file
from .scattering import features

FILES: Final = {"MNIST": "mnist.npz", "FMNIST": "fashion_mnist.npz"}
METHODS: Final = ("DPIS", "DP-SGD-HF", "DP-SGD-TS", "DP-SGD-Decay", "DP-SGD")
PHASES, FALL = 4, 0.8  # of DP-SGD-Decay


@dataclass(frozen=True, slots=True)
class Setting:
    """What all methods share."""

    data: str
    records: int
    tests: int
    batch: int
    steps: int
    learning_rate: float = 0.5
    linear_rate: float = 4.0
    clip: float = 1.0
    delta: float = 1e-5

    @property
    def rate(self) -> float:
        """The chance of a record to be drawn in a step."""
        return self.batch / self.records


QUICK: Final = Setting("MNIST", 2000, 500, 125, 24)
FULL: Final = Setting("MNIST", 60_000, 10_000, 1024, 600)


@cache
def pictures(data: str, records: int, tests: int) -> tuple[Any, Any, Any, Any]:
    """Training and test pictures with their labels, in a fixed random order."""
    with np.load(shared_file(FILES[data])) as file:
        train = np.random.default_rng(0).permutation(len(file["y_train"]))[:records]
        return (file["X_train"][train], file["y_train"][train].astype(np.int64), file["X_test"][:tests],
                file["y_test"][:tests].astype(np.int64))  # fmt: skip


@cache
def inputs(data: str, records: int, tests: int, scattered: bool) -> tuple[Any, Any]:
    """The same as arrays for a network: features, or pixels from -1 to 1."""
    train, _, test, _ = pictures(data, records, tests)
    if scattered:
        return features(train), features(test)
    return tuple((x[:, None] / 127.5 - 1.0).astype(np.float32) for x in (train, test))


def decaying(setting: Setting, epsilon: float) -> list[float]:
    """Noise multipliers of the phases, FALL times smaller from one to the next, with epsilon in all."""
    steps = setting.steps // PHASES

    def excess(first: float) -> float:
        parts = [compose(amplify(Gaussian(first * FALL**i, 1.0), Poisson(setting.rate)), steps) for i in range(PHASES)]
        return compose(parts).epsilon(setting.delta) - epsilon

    constant = calibrated("uniform", setting.rate, setting.steps, epsilon, setting.delta)
    first = least_passing(excess, constant, constant / FALL ** (PHASES - 1), relative=0.05)
    return [first * FALL**i for i in range(PHASES)]


def accuracy(method: str, setting: Setting, epsilon: float, **dpis: Any) -> float:
    """Test accuracy in percent after one run; `dpis` are options of `DPISPlan`."""
    torch = _torch()
    scattered = method in ("DPIS", "DP-SGD-HF")
    x, x_test = inputs(setting.data, setting.records, setting.tests, scattered)
    _, y, _, y_test = pictures(setting.data, setting.records, setting.tests)
    module = network(method, x.shape[1:])
    rate = setting.linear_rate if scattered else setting.learning_rate
    data = torch.utils.data.TensorDataset(torch.from_numpy(x), torch.from_numpy(y))
    if method == "DP-SGD-Decay":
        for noise in decaying(setting, epsilon):
            _train(module, data, setting, rate, setting.steps // PHASES, noise_multiplier=noise, sampler="uniform")
    else:
        target: dict[str, Any] = {"target_epsilon": epsilon, "target_delta": setting.delta}
        sampler = "dpis" if method == "DPIS" else "uniform"
        _train(module, data, setting, rate, setting.steps, sampler=sampler, **target, **dpis)
    with torch.no_grad():
        found = module(torch.from_numpy(x_test)).argmax(1).numpy()
    return 100.0 * float(np.mean(found == y_test))


def _train(module: Any, data: Any, setting: Setting, learning_rate: float, steps: int, **private: Any) -> None:
    torch = _torch()
    from ...torch.engine import PrivacyEngine

    optimizer = torch.optim.SGD(module.parameters(), learning_rate, momentum=0.0)
    engine = PrivacyEngine()
    engine.make_private(
        module=module, optimizer=optimizer, criterion=torch.nn.CrossEntropyLoss(), data_loader=data,
        sample_rate=setting.rate, steps=steps, max_grad_norm=setting.clip, population=setting.records, **private,
    )  # fmt: skip
    engine.train()
    engine.detach()


def network(method: str, shape: Sequence[int]) -> Any:
    """The paper's convolutional network with ReLU or tanh, or a linear classifier from zero."""
    torch = _torch()
    from ...torch.models import cnn, logistic

    if method in ("DPIS", "DP-SGD-HF"):
        return logistic(shape, 10)
    module = cnn(shape, 10)
    if method == "DP-SGD":
        return torch.nn.Sequential(*(torch.nn.ReLU() if isinstance(m, torch.nn.Tanh) else m for m in module))
    return module


def _torch() -> Any:
    try:
        import torch
    except ModuleNotFoundError as error:
        raise missing(error, "training networks") from None
    return torch
