"""Pictures with channels last in memory: the same gradients, and no model fails that works with channels first."""

import pytest

torch = pytest.importorskip("torch", reason="torch is not installed (make test-torch)")

from torch import nn  # noqa: E402
from torch.utils.data import TensorDataset  # noqa: E402

from privamp.testing import seeded_key  # noqa: E402
from privamp.torch import PrivacyEngine  # noqa: E402

torch.set_num_threads(1)
RECORDS = 12


class Net(nn.Module):
    """Two convolutions, then what `after` does with their output."""

    def __init__(self, after, dropout=0.0):
        super().__init__()
        self.one, self.two, self.out = nn.Conv2d(1, 4, 3), nn.Conv2d(4, 6, 3), nn.Linear(24, 3)
        self.pool, self.drop, self.after, self.layouts = nn.MaxPool2d(2, 2), nn.Dropout(dropout), after, []

    def forward(self, x):
        found = self.drop(self.two(self.one(x)).tanh())
        self.layouts.append(found.is_contiguous())
        return self.out(self.after(self.pool(found)))


AFTER = {
    "flatten": lambda x: x.flatten(1),
    "view": lambda x: x.view(len(x), -1),
    "as_strided": lambda x: x.as_strided((len(x), 24), (24, 1)),
}


def started(after, dtype=torch.float32, dropout=0.0):
    torch.manual_seed(0)
    module, engine = Net(after, dropout).to(dtype), PrivacyEngine(key=seeded_key(1))
    data = TensorDataset(torch.randn(RECORDS, 1, 8, 8).to(dtype), torch.arange(RECORDS) % 3)
    parts = engine.make_private(
        module=module, optimizer=torch.optim.SGD(module.parameters(), 0.0), criterion=nn.CrossEntropyLoss(),
        data_loader=data, max_grad_norm=1.0, population=10, sampler="uniform", sample_rate=1.0, steps=3,
        noise_multiplier=1.0,
    )  # fmt: skip
    module.layouts.clear()
    return engine, module, parts


def gradient(engine, module):
    engine.train(1)
    return torch.cat([p.grad.flatten() for p in module.parameters()]).double()


@pytest.mark.parametrize("name", AFTER)
def test_a_step_is_the_same_as_with_channels_first(name):
    """Code that needs channels first gets them: `view` would fail, `as_strided` would take other numbers."""
    engine, module, _ = started(AFTER[name])
    found = gradient(engine, module)
    assert module.layouts == [name != "flatten"]
    exact, double, _ = started(AFTER["flatten"], torch.float64)
    truth = gradient(exact, double)
    assert double.layouts == [True]
    assert torch.allclose(found, truth, atol=1e-5)


def test_dropout_does_not_prevent_it():
    engine, module, _ = started(AFTER["flatten"], dropout=0.5)
    engine.train(1)
    assert module.layouts == [False]


def test_what_the_model_gives_has_channels_first():
    class Whole(nn.Module):
        def __init__(self):
            super().__init__()
            self.layer, self.inside = nn.Conv2d(2, 3, 3), []

        def forward(self, x):
            found = self.layer(x)
            self.inside.append(found.is_contiguous())
            return found

    module, engine = Whole(), PrivacyEngine(key=seeded_key(1))
    data = TensorDataset(torch.randn(RECORDS, 2, 6, 6), torch.randn(RECORDS, 3, 4, 4))
    module, optimizer, criterion, loader = engine.make_private(
        module=module, optimizer=torch.optim.SGD(module.parameters(), 0.1), criterion=nn.MSELoss(), data_loader=data,
        max_grad_norm=1.0, population=10, sampler="uniform", sample_rate=1.0, steps=1, noise_multiplier=1.0,
    )  # fmt: skip
    for x, y in loader:
        output = module(x)
        assert not module.inside[-1]
        criterion(output.view(-1), y.view(-1)).backward()
        optimizer.step()


def test_a_model_that_fails_on_some_records_only_is_computed_with_channels_first():
    """Made-up records do not show it: the records that need channels first are not lost for that."""

    def sometimes(x):
        return x.view(len(x), -1) if float(x.detach().abs().max()) > 0.99 else x.flatten(1)

    engine, module, _ = started(sometimes)
    with torch.no_grad():
        module.two.bias += 10.0  # tanh becomes 1
    found = gradient(engine, module)
    reference, plain, _ = started(AFTER["view"])
    with torch.no_grad():
        plain.two.bias += 10.0
    assert module.layouts[0] is False
    assert module.layouts[-1] is True
    assert torch.allclose(found, gradient(reference, plain), atol=1e-6)
