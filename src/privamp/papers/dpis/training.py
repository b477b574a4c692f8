"""DPIS and its competitors, trained by `privamp.torch` at one (epsilon, delta) for the whole run. Needs torch.

               pictures                                             reviews
DP-SGD         the paper's convolutional network with ReLU          the paper's LSTM with ReLU
DP-SGD-TS      the same with tanh, the tempered sigmoid             the LSTM with tanh
               of scale 2, temperature 2 and offset 1
DP-SGD-Decay   as TS; the noise falls by a constant factor from     as DP-SGD, with that noise
               phase to phase, the phases composed exactly
DP-SGD-HF      a linear classifier on scattering features           (none)
DPIS           that classifier by the paper's whole system,         the LSTM by that system
               corrected (`sampler="dpis"`)
"""

from dataclasses import dataclass
from functools import cache, partial
from typing import Any, Final

from ...accounting.composition import compose
from ...amplification import amplify
from ...chance.keys import Key
from ...designs.poisson import Poisson
from ...extras import missing
from ...mechanisms.gaussian import Gaussian
from ...numerics.roots import least_passing
from ...torch.plan import calibrated
from .inputs import examples
from .settings import Setting

SCATTERED: Final = ("DPIS", "DP-SGD-HF")
PHASES, FALL = 4, 0.8  # of DP-SGD-Decay


@dataclass(frozen=True, slots=True)
class Trained:
    """One run: test accuracy in percent, steps taken, gradients computed."""

    accuracy: float
    steps: int
    gradients: int


@cache
def constant_noise(rate: float, steps: int, epsilon: float, delta: float) -> float:
    """The smallest noise multiplier of DP-SGD, by privacy-loss distributions."""
    return calibrated("uniform", rate, steps, epsilon, delta)


@cache
def decaying(setting: Setting, epsilon: float) -> tuple[float, ...]:
    """Noise multipliers of the phases, FALL times smaller from one to the next, with total epsilon."""
    steps = setting.steps // PHASES

    def excess(first: float) -> float:
        parts = [compose(amplify(Gaussian(first * FALL**i, 1.0), Poisson(setting.rate)), steps) for i in range(PHASES)]
        return compose(parts).epsilon(setting.delta) - epsilon

    constant = constant_noise(setting.rate, setting.steps, epsilon, setting.delta)
    first = least_passing(excess, constant, constant / FALL ** (PHASES - 1), relative=0.01)
    return tuple(first * FALL**i for i in range(PHASES))


def trained(
    method: str, setting: Setting, epsilon: float, *, device: str = "cpu", key: Key | None = None, **dpis: Any
) -> Trained:
    """One run; `dpis` holds options of `DPISPlan`, by default those of the paper's Table 2."""
    torch = _torch()
    scattered = setting.data != "IMDb" and method in SCATTERED
    x, y, x_test, y_test = examples(setting.data, setting.records, setting.tests, scattered, device)
    module = network(method, setting, tuple(x.shape[1:])).to(device)
    learning_rate = setting.linear_rate if scattered else setting.learning_rate
    key = Key.generate() if key is None else key
    train = partial(_train, module, torch.utils.data.TensorDataset(x, y), setting, learning_rate)
    if method == "DP-SGD-Decay":
        phases = [train(setting.steps // PHASES, key.subkey("phase", i), noise_multiplier=noise, sampler="uniform")
                  for i, noise in enumerate(decaying(setting, epsilon))]  # fmt: skip
    elif method == "DPIS":
        phases = [train(setting.steps, key, sampler="dpis", target_epsilon=epsilon, target_delta=setting.delta,
                        **(setting.dpis_options | dpis))]  # fmt: skip
    else:
        noise = constant_noise(setting.rate, setting.steps, epsilon, setting.delta)
        phases = [train(setting.steps, key, sampler="uniform", noise_multiplier=noise)]
    steps, gradients = (sum(numbers) for numbers in zip(*phases, strict=True))
    with torch.no_grad():
        parts = zip(x_test.split(2000), y_test.split(2000), strict=True)
        right = sum(int((module(a).argmax(1) == b).sum()) for a, b in parts)
    return Trained(100.0 * right / len(y_test), steps, gradients)


def _train(
    module: Any, data: Any, setting: Setting, learning_rate: float, steps: int, key: Key, **private: Any
) -> tuple[int, int]:
    """Steps taken and gradients computed; the sums of norms of "dpis" read all records once per epoch."""
    torch = _torch()
    from ...torch.engine import PrivacyEngine, Progress

    learning = [p for p in module.parameters() if p.requires_grad]
    optimizer = _optimizer(setting, learning, learning_rate)
    engine = PrivacyEngine(key=key)
    engine.make_private(
        module=module, optimizer=optimizer, criterion=torch.nn.CrossEntropyLoss(), data_loader=data,
        sample_rate=setting.rate, steps=steps, max_grad_norm=setting.clip, population=setting.records, **private,
    )  # fmt: skip
    computed = 0

    def count(progress: Progress) -> None:
        nonlocal computed
        computed += progress.secret_batch

    taken = engine.train(on_step=count)
    if private["sampler"] == "dpis":
        epoch = max(1, round(1.0 / setting.rate))
        computed += -(-taken // epoch) * setting.records
    engine.detach()
    return taken, computed


def _optimizer(setting: Setting, learning: list[Any], learning_rate: float) -> Any:
    """SGD with momentum, or Adam with factors 0.9 and 0.999; the paper uses both."""
    torch = _torch()
    if setting.optimizer == "Adam":
        return torch.optim.Adam(learning, learning_rate, betas=(setting.momentum, 0.999))
    return torch.optim.SGD(learning, learning_rate, momentum=setting.momentum)


def network(method: str, setting: Setting, shape: tuple[int, ...]) -> Any:
    """The paper's networks, with the method's ReLU or tanh; on features a linear classifier started at zero."""
    torch = _torch()
    from ...torch.models import SequenceClassifier, cnn, logistic

    tanh, relu = torch.nn.Tanh, torch.nn.ReLU
    if setting.data == "IMDb":
        return SequenceClassifier(setting.words, 2, tanh if method == "DP-SGD-TS" else relu)
    if method in SCATTERED:
        return logistic(shape, 10)
    module = cnn(shape, 10)
    if method == "DP-SGD":
        return torch.nn.Sequential(*(relu() if isinstance(m, tanh) else m for m in module))
    return module


def _torch() -> Any:
    try:
        import torch
    except ModuleNotFoundError as error:
        raise missing(error, "training networks") from None
    return torch
