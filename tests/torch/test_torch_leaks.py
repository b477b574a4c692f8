"""What the objects of a training run say of themselves: nothing about records, batches, bounds or the key."""

import contextlib
import json
import os
import pickle
import re
import struct
import traceback

import pytest

torch = pytest.importorskip("torch", reason="torch is not installed (make test-torch)")

from torch import nn  # noqa: E402
from torch.utils.data import TensorDataset  # noqa: E402

from privamp import InvalidInput, Poisson  # noqa: E402
from privamp import torch as room  # noqa: E402
from privamp.chance.keys import build  # noqa: E402
from privamp.torch import PrivacyEngine  # noqa: E402

VALUE = 7351.9173
CANARIES = [struct.pack("<f", VALUE), struct.pack("<d", VALUE), b"7351.9"]
# BatchMemoryManager gives the loader itself
SPOKEN_TO = {
    "BandsPlan",
    "BatchMemoryManager",
    "ChoicePrice",
    "DPISPlan",
    "ImportanceRule",
    "LSTM",
    "Plan",
    "PrivacyEngine",
    "Progress",
    "choice_price",
    "device",
    "plan_bands",
    "private_choice",
}


def fresh_key():
    """A key whose secret is a canary from now on."""
    secret = os.urandom(32)
    CANARIES.extend([secret, secret.hex().encode()])
    return build(secret)


def spoken(thing):
    """All that an object says of itself, as bytes."""
    words = [repr(thing), str(thing), f"{thing}"]
    if hasattr(thing, "to_json"):
        words.append(json.dumps(thing.to_json(delta=1e-6)))
    found = "\n".join(words).encode()
    with contextlib.suppress(Exception):  # to refuse is fine
        found += pickle.dumps(thing)
    return found


def leaks(text, *numbers):
    shown = text.decode("latin-1")
    words = [str(number) for number in numbers if re.search(rf"(?<![\d.]){re.escape(str(number))}(?![\d.])", shown)]
    return words + [canary for canary in CANARIES if canary in text]


def trained(sampler, **options):
    generator = torch.Generator().manual_seed(3)
    x = torch.randn(997, 6, generator=generator)
    x[:, 0] = VALUE
    records = TensorDataset(x, torch.randint(0, 3, (997,), generator=generator))
    module = nn.Sequential(nn.Linear(6, 4), nn.Tanh(), nn.Linear(4, 3))
    private = {"noise_multiplier": 1.0} if sampler != "dpis" else {"target_epsilon": 8.0, "target_delta": 1e-3}
    private |= {"sample_rate": 0.2} if isinstance(sampler, str) else {}
    engine = PrivacyEngine(key=fresh_key())
    parts = engine.make_private(
        module=module, optimizer=torch.optim.SGD(module.parameters(), 0.1), criterion=nn.CrossEntropyLoss(),
        data_loader=records, steps=4, max_grad_norm=1.0, population=1000, sampler=sampler,
        **private, **options,
    )  # fmt: skip
    seen = []
    engine.train(on_step=seen.append)
    return engine, parts, seen


def test_every_public_name_is_spoken_to():
    assert set(room.__all__) == SPOKEN_TO


@pytest.mark.parametrize("sampler", ["uniform", "importance", "importance-reject", "dpis", Poisson(0.2)])
def test_nothing_of_a_run_is_said(sampler, tmp_path):
    options = {"size_noise": 20.0, "sum_noise": 30.0} if sampler == "dpis" else {}
    engine, (_, optimizer, criterion, loader), seen = trained(sampler, **options)
    sizes = {progress.secret_batch for progress in seen}
    public = leaks(spoken(engine.plan.guarantee()), *sizes)  # numbers in the guarantee's text that a size may equal
    secrets = [*sizes, *(progress.secret_loss for progress in seen), 997]
    for thing in (engine, optimizer, criterion, loader, engine.plan, engine.guarantee(), *seen):
        assert set(leaks(spoken(thing), *secrets)) <= set(public), type(thing)
    engine.publish(tmp_path / "model.pt", delta=1e-5)
    assert leaks((tmp_path / "model.pt").read_bytes()) == []
    engine.save(tmp_path / "run.secret")
    assert leaks((tmp_path / "run.secret").read_bytes()), "the canaries would be seen: this file holds the key"
    assert (tmp_path / "run.secret").stat().st_mode & 0o077 == 0


def attempt(labels, **options):
    module, settings = nn.Linear(6, 3), {"sample_rate": 0.9, "steps": 2, "noise_multiplier": 1.0} | options
    engine = PrivacyEngine(key=fresh_key())
    engine.make_private(
        module=module, optimizer=torch.optim.SGD(module.parameters(), 0.1), criterion=nn.CrossEntropyLoss(),
        data_loader=TensorDataset(torch.full((50, 6), VALUE), labels), max_grad_norm=1.0, population=50, **settings,
    )  # fmt: skip
    engine.train()


def test_errors_do_not_quote_records():
    with pytest.raises(InvalidInput) as caught:
        attempt(torch.zeros(50, dtype=torch.long), steps=0)
    assert leaks("".join(traceback.format_exception(caught.value)).encode(), 7351) == []
    attempt(torch.full((50,), 7351))  # labels out of range are no error at all
