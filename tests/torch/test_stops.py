"""No record stops a run, whatever the model, the criterion or the data set does with it. Padding weighs nothing."""

import numpy as np
import pytest

torch = pytest.importorskip("torch", reason="torch is not installed (make test-torch)")

from torch import nn  # noqa: E402
from torch.utils.data import Dataset, TensorDataset  # noqa: E402

from privamp import InvalidInput  # noqa: E402
from privamp.testing import seeded_key  # noqa: E402
from privamp.torch import PrivacyEngine  # noqa: E402
from privamp.torch import run as runs  # noqa: E402

N = 40


class Breakable(nn.Module):
    """Cross-entropy that gives no number when told to."""

    broken = False

    def forward(self, output, target):
        losses = nn.functional.cross_entropy(output, target, reduction="none")
        return losses * float("nan") if self.broken else losses


def engine_of(x=None, **options):
    torch.manual_seed(0)
    module = nn.Sequential(nn.Linear(4, 3))
    x = torch.randn(N, 4) if x is None else x
    engine = PrivacyEngine(key=seeded_key(3))
    settings = {"sample_rate": 0.5, "steps": 6, "noise_multiplier": 1.0, "max_grad_norm": 1.0, "population": N}
    engine.make_private(
        module=module, optimizer=torch.optim.SGD(module.parameters(), 0.1), criterion=Breakable(),
        data_loader=TensorDataset(x, torch.arange(len(x)) % 3), **(settings | options),
    )  # fmt: skip
    return engine, module


@pytest.mark.parametrize("options", [{}, {"max_physical_batch_size": 4}])
def test_losses_that_are_no_numbers_leave_noise(options, monkeypatch) -> None:
    """A stop when nobody has a loss would tell, where all others have none, whether one record was drawn."""
    engine, module = engine_of(**options)
    engine.train(2)
    monkeypatch.setattr(Breakable, "broken", True)
    engine.train()
    assert engine.step == 6
    assert all(bool(torch.isfinite(p).all()) for p in module.parameters())
    with pytest.raises(InvalidInput, match="made-up records must be finite numbers"):
        engine_of(**options)  # broken from the start: seen on made-up records


class Picky(nn.Module):
    """Stops with a record's number in its message."""

    def __init__(self) -> None:
        super().__init__()
        self.layer = nn.Linear(4, 3)

    def forward(self, x):
        if bool((x > 7000).any()):
            raise ValueError(f"what is {float(x.max())}?")
        return self.layer(x)


class Torn(Dataset):
    """Some records cannot be read, some have another shape."""

    def __init__(self, bad) -> None:
        self.bad = bad

    def __len__(self):
        return N

    def __getitem__(self, at):
        if at == self.bad.get("torn"):
            raise OSError(f"record 7351 at {at}")
        return torch.ones(9 if at == self.bad.get("long") else 4) * at, at % 3


def trained(module, records, **options):
    engine = PrivacyEngine(key=seeded_key(3))
    settings = {"sample_rate": 1.0, "steps": 2, "noise_multiplier": 1e-9, "max_grad_norm": 1.0, "population": N}
    torch.manual_seed(0)
    module = module()
    engine.make_private(
        module=module, optimizer=torch.optim.SGD(module.parameters(), 0.1), data_loader=records,
        **({"criterion": nn.CrossEntropyLoss()} | settings | options),
    )  # fmt: skip
    engine.train()
    return torch.cat([p.detach().flatten() for p in module.parameters()])


@pytest.mark.parametrize("options", [{}, {"max_physical_batch_size": 7}, {"sampler": "uniform"}])
def test_a_model_that_fails_on_a_record_goes_on_with_the_others(options) -> None:
    x, y = torch.randn(N, 4), torch.arange(N) % 3
    without = trained(Picky, TensorDataset(x[:-1], y[:-1]), **options)
    x[-1] = 7351.0
    assert torch.allclose(trained(Picky, TensorDataset(x, y), **options), without, atol=1e-6)
    x[:] = 7351.0
    trained(Picky, TensorDataset(x, y), **options)


def test_records_that_cannot_be_read_count_as_nothing() -> None:
    whole = trained(lambda: nn.Linear(4, 3), Torn({}))
    for bad in ({"torn": N - 1}, {"long": N - 1}, {"torn": 0}):
        moved = trained(lambda: nn.Linear(4, 3), Torn(bad)) - whole
        assert 0 < float(moved.norm()) <= 2 * 0.1 / N * 1.01
    with pytest.raises(InvalidInput, match="no record of the data set can be read"):
        trained(lambda: nn.Linear(4, 3), [])


def test_a_record_cannot_stop_the_run_not_even_alone() -> None:
    engine, _ = engine_of(torch.full((1, 4), float("nan")), sample_rate=1.0)
    assert engine.train() == 6
    x = torch.randn(N, 4)
    x[1:] = float("nan")
    engine, _ = engine_of(x, sample_rate=1.0)
    assert engine.train() == 6


def test_a_batch_without_gradients_does_not_stop_the_run() -> None:
    """A criterion that gives a constant where no record of the batch has anything to learn."""

    def of_some(output, y):
        if bool((y == 2).all()):
            return torch.zeros(len(y))
        return nn.functional.cross_entropy(output, y, reduction="none") * (y != 2)

    records = TensorDataset(torch.randn(N, 4), torch.full((N,), 2))
    for options in ({}, {"sampler": "uniform", "max_physical_batch_size": 5}, {"exact_sums": True}):
        moved = trained(lambda: nn.Linear(4, 3), records, criterion=of_some, **options)
        torch.manual_seed(0)
        still = torch.cat([p.detach().flatten() for p in nn.Linear(4, 3).parameters()])
        torch.testing.assert_close(moved, still, rtol=0, atol=1e-7)


def test_padding_weighs_nothing(monkeypatch) -> None:
    """The same run with batches filled up to 64 records: the same model but for rounding, the same bounds."""
    plain, module = engine_of()
    plain.train()
    monkeypatch.setattr(runs, "_PADDED", {"cpu": 64})
    padded, twin = engine_of()
    seen = []
    padded.train(on_step=lambda progress: seen.append(progress.secret_batch))
    assert max(seen) <= N
    for one, two in zip(module.parameters(), twin.parameters(), strict=True):
        assert torch.allclose(one, two, atol=1e-6)
    assert np.allclose(plain._run.batches.bounds, padded._run.batches.bounds, rtol=1e-5)


def test_padding_keeps_within_the_promised_memory(monkeypatch) -> None:
    monkeypatch.setattr(runs, "_PADDED", {"cpu": 64})
    engine, module = engine_of(max_physical_batch_size=7)
    sizes = []
    module.register_forward_hook(lambda m, args, out: sizes.append(len(args[0])))
    engine.train(1)  # with a new hook, the model is tried again on made-up records
    assert max(sizes) == 7
    sizes.clear()
    engine.train()
    assert set(sizes) == {7}
