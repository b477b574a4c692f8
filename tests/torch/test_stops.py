"""No loss is a number: training stops, nothing is released. One record cannot stop it. Padding weighs nothing."""

import numpy as np
import pytest

torch = pytest.importorskip("torch", reason="torch is not installed (make test-torch)")

from torch import nn  # noqa: E402
from torch.utils.data import TensorDataset  # noqa: E402

from privamp import InvalidInput  # noqa: E402
from privamp.testing import seeded_key  # noqa: E402
from privamp.torch import PrivacyEngine  # noqa: E402
from privamp.workloads.torch import run as runs  # noqa: E402

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
    settings = {"sample_rate": 0.5, "steps": 6, "noise_multiplier": 1.0, "max_grad_norm": 1.0, "public_size": N}
    engine.make_private(
        module=module, optimizer=torch.optim.SGD(module.parameters(), 0.1), criterion=Breakable(),
        data_loader=TensorDataset(x, torch.arange(len(x)) % 3), **(settings | options),
    )  # fmt: skip
    return engine, module


@pytest.mark.parametrize("options", [{}, {"max_physical_batch_size": 4}])
def test_no_loss_is_a_number(options, monkeypatch) -> None:
    engine, module = engine_of(**options)
    engine.train(2)
    before = [p.detach().clone() for p in module.parameters()]
    spent, bounds = engine.get_epsilon(1e-5), engine._run.batches.bounds.copy()
    monkeypatch.setattr(Breakable, "broken", True)
    with pytest.raises(InvalidInput, match="training stops before step 3 and nothing of it is released"):
        engine.train(1)
    with pytest.raises(InvalidInput, match="no gradient to step with"):
        engine._run.optimizer.step()
    assert engine.step == 2
    assert engine.get_epsilon(1e-5) == spent
    assert np.array_equal(engine._run.batches.bounds, bounds)
    assert all(torch.equal(a, b) for a, b in zip(before, module.parameters(), strict=True))
    monkeypatch.setattr(Breakable, "broken", False)
    engine.train()
    other, whole = engine_of(**options)
    other.train()
    assert all(torch.equal(a, b) for a, b in zip(module.parameters(), whole.parameters(), strict=True))


def test_a_record_cannot_stop_the_run_not_even_alone() -> None:
    engine, _ = engine_of(torch.full((1, 4), float("nan")), sample_rate=1.0)
    assert engine.train() == 6
    x = torch.randn(N, 4)
    x[1:] = float("nan")
    engine, _ = engine_of(x, sample_rate=1.0)
    assert engine.train() == 6


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
    engine.train()
    assert set(sizes) == {7}
