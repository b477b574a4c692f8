"""Steps of the torch engine: models, samplers and precisions, with adversarial records."""

import contextlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import partial
from typing import Any
from unittest.mock import patch

import numpy as np

from ...mechanisms.gaussian import Gaussian
from ...numerics.row_norms import clipped
from ...testing import seeded_key, seeded_stream
from ...verify.hard_pairs import ADD_REMOVE, REPLACE, HardRecord, hard_rows, pairs_of
from ...verify.one_record import Pair
from .audit import CUDA, RecordAudit

SIDE, WORDS, PLACES, CLASSES = 6, 11, 5, 3
TEXTS = ("lstm", "tied")
LABELS = (-1, CLASSES, 7351, -100, 2**40, -(2**63))
ROUNDING = {"float32": 1e-4, "float64": 1e-9, "bfloat16": 5e-2}  # of a clip: gradients round by the batch they are in


@dataclass(frozen=True)
class Setting:
    """A model, its precision, and options of `make_private`."""

    model: str = "mlp"
    dtype: str = "float32"
    sampler: str = "uniform"
    physical: int | None = None
    autocast: bool = False
    steps: int = 2
    places: int = PLACES
    device: str = "cpu"

    @property
    def name(self) -> str:
        """What the list of audits prints."""
        extra = [f"parts of {self.physical}"] * (self.physical is not None) + ["autocast"] * self.autocast
        extra += [self.device] * (self.device != "cpu")
        return ", ".join([self.model, self.dtype, self.sampler, *extra])


def _module(setting: Setting) -> Any:
    import torch
    from torch import nn

    from ...torch import LSTM

    class Reader(nn.Module):  # type: ignore[misc]
        def __init__(self) -> None:
            super().__init__()
            self.words, self.reader, self.out = nn.Embedding(WORDS, 4), LSTM(4, 3), nn.Linear(3, CLASSES)

        def forward(self, ids: Any) -> Any:
            return self.out(self.reader(self.words(ids)).mean(dim=1))

    class Tied(nn.Module):  # type: ignore[misc]
        """Scores of words by the table of words itself."""

        def __init__(self) -> None:
            super().__init__()
            self.words, self.out = nn.Embedding(WORDS, 4), nn.Linear(4, WORDS)
            self.out.weight = self.words.weight

        def forward(self, ids: Any) -> Any:
            return self.out(4.0 * self.words(ids).mean(dim=1))

    class Tokens(nn.Module):  # type: ignore[misc]
        """Attention over pairs of numbers, after a token and with a scale of its own."""

        def __init__(self) -> None:
            super().__init__()
            self.token, self.scale = nn.Parameter(torch.randn(1, 1, 2)), nn.Parameter(torch.ones(2))
            self.read = nn.TransformerEncoderLayer(2, 1, 3, dropout=0.0, batch_first=True)
            self.out = nn.Bilinear(2, 2, CLASSES)

        def forward(self, x: Any) -> Any:
            x = torch.cat([self.token.expand(x.shape[0], -1, -1), x.unflatten(1, (-1, 2)) * self.scale], dim=1)
            x = self.read(x)
            return self.out(x[:, 0], x[:, 1])

    class TimeFirst(nn.Module):  # type: ignore[misc]
        def __init__(self) -> None:
            super().__init__()
            self.one, self.two = nn.Linear(1, 4), nn.Linear(4, CLASSES)

        def forward(self, x: Any) -> Any:
            return self.two(torch.tanh(self.one(x.unsqueeze(2))).transpose(0, 1)).mean(dim=0)

    class Last(nn.GRU):  # type: ignore[misc]
        """What a GRU has at the last place."""

        def __init__(self) -> None:
            super().__init__(2, 3, batch_first=True)
            self.register_forward_hook(lambda layer, inputs, output: output[0][:, -1])

    class Rescaled(nn.Module):  # type: ignore[misc]
        """Large inputs and small derivatives, whose product is a plain gradient."""

        def __init__(self) -> None:
            super().__init__()
            self.one = nn.Linear(SIDE, CLASSES)

        def forward(self, x: Any) -> Any:
            return self.one(x * 2.0**80) * 2.0**-80

    torch.manual_seed(14)
    made: dict[str, Callable[[], Any]] = {
        "mlp": lambda: nn.Sequential(nn.Linear(SIDE, 7), nn.Tanh(), nn.LayerNorm(7), nn.Linear(7, CLASSES)),
        "one output": lambda: nn.Linear(SIDE, 1),
        "cnn": lambda: nn.Sequential(
            nn.Unflatten(1, (1, SIDE)), nn.Conv1d(1, 4, 3), nn.ReLU(), nn.Conv1d(4, 5, 2), nn.GroupNorm(1, 5),
            nn.Flatten(), nn.Linear(15, CLASSES),
        ),
        "lstm": Reader,
        "time first": TimeFirst,
        "tied": Tied,
        "tokens": Tokens,
        "gru": lambda: nn.Sequential(nn.Unflatten(1, (-1, 2)), Last(), nn.Linear(3, CLASSES)),
        "rescaled": Rescaled,
    }  # fmt: skip
    return made[setting.model]().to(setting.device, getattr(torch, setting.dtype))


def trained(setting: Setting, rows: list[Any]) -> Any:
    """All steps of a run on these records, (numbers or word ids, label) each; with everything visible of it."""
    import torch
    from torch.utils.data import TensorDataset

    from ...torch import PrivacyEngine

    module, is_text = _module(setting), setting.model in TEXTS
    width = setting.places if is_text else SIDE
    x = torch.from_numpy(np.array([row for row, _ in rows]).reshape(len(rows), width))
    x = x.long() if is_text else x.to(getattr(torch, setting.dtype))
    y = torch.tensor([label for _, label in rows], dtype=torch.long)
    is_number = setting.model == "one output"
    options: dict[str, Any] = {"noise_multiplier": 1.0}
    if setting.sampler == "dpis":
        options = {"target_epsilon": 50.0, "target_delta": 1e-3, "size_noise": 4.0, "sum_noise": 8.0}
        options |= {"external_clip": 2.0, "steps_per_epoch": 1, "order": 4}
    engine = PrivacyEngine(key=seeded_key(14))
    engine.make_private(
        module=module, optimizer=torch.optim.SGD(module.parameters(), 0.1),
        criterion=torch.nn.MSELoss() if is_number else torch.nn.CrossEntropyLoss(),
        data_loader=TensorDataset(x, y.to(x.dtype) if is_number else y), population=10, max_grad_norm=0.5,
        steps=setting.steps, sample_rate=0.5 if setting.sampler == "dpis" else 0.9, sampler=setting.sampler,
        max_physical_batch_size=setting.physical, **options,
    )  # fmt: skip
    seen: list[str] = []
    with torch.autocast(setting.device, dtype=torch.bfloat16, enabled=setting.autocast):
        engine.train(on_step=lambda progress: seen.append(repr(progress)))
    parameters = [p.detach().double().cpu().numpy() for p in module.parameters()]
    return parameters, repr(engine), seen, engine.plan.facts()


def _hard(setting: Setting) -> list[HardRecord]:
    dtype = np.float64 if setting.dtype == "float64" else np.float32
    if setting.model in TEXTS:
        ids = (-1, WORDS, 2**40, -(2**63), WORDS - 1)
        found = [HardRecord(f"word {word}", (np.full(setting.places, word), 0)) for word in ids]
        plain: Any = np.zeros(setting.places, np.int64)
    else:
        found = [HardRecord(what, (row, 1)) for what, row in hard_rows(SIDE, 1.0, dtype)]
        plain = np.ones(SIDE, dtype)
    return found + [HardRecord(f"label {label}", (plain, label)) for label in LABELS]


def _pairs(setting: Setting, random: np.random.Generator) -> Iterator[Pair]:
    """Records have their identity by place; a batch of 7 or 8 ends beside the border of parts of 4."""
    for size in (0, 1, 2, 7, 8):
        labels = random.integers(0, CLASSES, size)
        if setting.model in TEXTS:
            rows: Any = random.integers(0, WORDS, (size, setting.places))
        else:
            rows = 3 * random.standard_normal((size, SIDE))
        data = list(zip(rows, labels.tolist(), strict=True))
        yield from pairs_of(data, _hard(setting), changes=ADD_REMOVE, places=[size])
        yield from pairs_of(data, _hard(setting), changes=REPLACE, places=[0, size // 2])


def _audit(setting: Setting) -> RecordAudit:
    what = f"torch PrivacyEngine, {setting.steps} steps: {setting.name}"
    rounding = ROUNDING["bfloat16" if setting.autocast else setting.dtype]
    return RecordAudit(
        f"training, {setting.name}", what, partial(trained, setting), partial(_pairs, setting), rounding=rounding,
        needs=("torch",) if setting.device == "cpu" else ("torch", CUDA),
    )  # fmt: skip


SETTINGS = (
    *(Setting(dtype=dtype) for dtype in ROUNDING),
    *(Setting(sampler=sampler, physical=4) for sampler in ("importance", "importance-reject", "dpis")),
    *(Setting(model, physical=size) for model in ("cnn", "lstm") for size in (None, 4)),
    Setting("cnn", sampler="importance", autocast=True),
    Setting("rescaled"),
    *(Setting(model, physical=4) for model in ("tied", "tokens", "gru")),
    Setting(device="cuda"),
    Setting("cnn", physical=4, device="cuda"),
    Setting("cnn", sampler="importance", autocast=True, device="cuda"),
    Setting("lstm", device="cuda"),
)
JOBS = tuple(partial(_audit, setting) for setting in SETTINGS)


@contextlib.contextmanager
def _unchecked() -> Iterator[None]:
    """Without the check that records are kept apart."""
    with patch("privamp.torch.records_apart.check", lambda run, batch: None):
        yield


@contextlib.contextmanager
def _stopping() -> Iterator[None]:
    """Labels are looked at by the criterion itself, which stops with the label in its message."""
    room = "privamp.torch.learner.PrivateCriterion"

    def losses(self: Any, output: Any, *targets: Any) -> Any:
        return self.unguarded(output, *targets)

    def tolerant(self: Any, batch: Any, count: int) -> Any:
        return self.compute(self.module, self.criterion.losses, batch), None

    with patch(f"{room}.losses", losses), patch("privamp.torch.run.Run._tolerant", tolerant):
        yield


@contextlib.contextmanager
def _vanishing() -> Iterator[None]:
    """Squares of small derivatives vanish in single precision, and so does the norm; nothing checks the gradients."""

    def norms(values: Any) -> Any:
        flat = values.reshape(values.shape[0], -1) if values.shape[0] else values.reshape(0, 1)
        wide, single = flat.double().norm(dim=1), flat.float().square().sum(dim=1).double().sqrt()
        return wide.where(single > 2.0**64, single + 2.0**-100)

    with _unchecked(), patch("privamp.torch.uses.norms_of", norms):
        yield


@contextlib.contextmanager
def _in_halves() -> Iterator[None]:
    """The sums of gradients have the precision of the model."""
    from ...torch.recorded import Recorded

    weighted = Recorded.weighted

    def short(self: Any, weights: Any) -> Any:
        return [(p, gradient.to(p.dtype).to(gradient.dtype)) for p, gradient in weighted(self, weights)]

    with patch("privamp.torch.recorded.Recorded.weighted", short):
        yield


@contextlib.contextmanager
def _uses_apart() -> Iterator[None]:
    """The norm of a tied weight is taken of its two uses, not of their sum; nothing checks the gradients."""
    from ...torch.uses import measured

    def apart(uses: Any, shape: Any, **how: Any) -> Any:
        found = [measured([use], shape) for use in uses]
        together = measured(uses, shape)
        return replace(together, squares=sum(one.squares for one in found)) if len(found) > 1 else together

    with _unchecked(), patch("privamp.torch.recorded.measured", apart):
        yield


def _many(setting: Setting, random: np.random.Generator) -> Iterator[Pair]:
    """So many like records that one of them is less than the last digit of a half-precision sum."""
    plain = [(np.ones(SIDE) + 0.01 * random.standard_normal(SIDE), 0) for _ in range(3000)]
    yield from pairs_of(plain, _hard(setting), changes=ADD_REMOVE, places=[3000])


def _noise_again(rows: list[Any]) -> Any:
    """A step is made again after a crash, on records that are read otherwise, with the noise it had before."""
    noise, width = Gaussian(1.0, 0.5), SIDE
    x = np.array([row for row, _ in rows], dtype=np.float64).reshape(-1, width)
    one, other = (clipped(part, 0.5, 2.0).sum(axis=0) for part in (x, x[:, ::-1] - 1.0))
    answer = noise.release(one, seeded_stream(14))
    return answer, answer - one + other


def noise_again() -> RecordAudit:
    """Two sums with one noise: their difference has none."""
    pairs = partial(_pairs, Setting(dtype="float64"))
    what = "a training step with a mistake: its noise is used for another sum"
    return RecordAudit("training, noise used again", what, _noise_again, pairs, rounding=1e-9)


def _planted(name: str, mistake: Any, setting: Setting, pairs: Any = _pairs) -> RecordAudit:
    def run(rows: list[Any]) -> Any:
        with mistake():
            return trained(setting, rows)

    return RecordAudit(
        f"training, {name}", f"the torch step with a mistake: {name}", run, partial(pairs, setting),
        rounding=ROUNDING[setting.dtype], needs=("torch",),
    )  # fmt: skip


PLANTED = (
    partial(_planted, "a broadcasting loss", _unchecked, Setting("one output")),
    partial(_planted, "time first", _unchecked, Setting("time first")),
    partial(_planted, "labels that stop", _stopping, Setting()),
    partial(_planted, "words that stop", _stopping, Setting("lstm")),
    partial(_planted, "squares that vanish", _vanishing, Setting("rescaled")),
    partial(_planted, "sums in half precision", _in_halves, Setting(dtype="bfloat16", steps=1), _many),
    partial(_planted, "uses of a tied weight measured apart", _uses_apart, Setting("tied", steps=1)),
    noise_again,
)
