"""A compiled model trains as the plain one does, and one that is compiled too late is refused."""

import pytest

torch = pytest.importorskip("torch", reason="torch is not installed (make test-torch)")

from torch import nn  # noqa: E402
from torch.utils.data import TensorDataset  # noqa: E402

from privamp.errors import InvalidInput  # noqa: E402
from privamp.testing import seeded_key  # noqa: E402
from privamp.torch import PrivacyEngine  # noqa: E402

torch.set_num_threads(1)
PIECES = []


def counting(graph, inputs):
    """A backend that runs the pieces as they are, and lists them."""
    PIECES.append(graph)
    return graph.forward


def trained(compiled=lambda module: module, later=lambda module: module):
    torch.manual_seed(0)
    x, y = torch.randn(30, 1, 6, 6), torch.arange(30) % 3
    module = nn.Sequential(nn.Conv2d(1, 2, 3), nn.Tanh(), nn.Dropout(0.2), nn.Flatten(), nn.Linear(32, 3))
    module, engine = compiled(module), PrivacyEngine(key=seeded_key(3))
    module, optimizer, criterion, loader = engine.make_private(
        module=module, optimizer=torch.optim.SGD(module.parameters(), 0.5), criterion=nn.CrossEntropyLoss(),
        data_loader=TensorDataset(x, y), sampler="uniform", sample_rate=0.5, steps=3, noise_multiplier=0.5,
        max_grad_norm=0.7, population=30, steps_per_epoch=1,
    )  # fmt: skip
    called = later(module)
    for features, labels in loader:
        optimizer.zero_grad()
        criterion(called(features), labels).backward()
        optimizer.step()
    engine.train()
    return torch.cat([p.detach().flatten() for p in module.parameters()])


@pytest.mark.filterwarnings("ignore::UserWarning")  # of the compiler
def test_a_compiled_model_trains_as_the_plain_one():
    plain = trained()
    PIECES.clear()
    assert torch.equal(trained(lambda module: torch.compile(module, backend=counting)), plain)
    assert PIECES  # something was compiled
    with pytest.raises(InvalidInput, match="compiled after make_private"):
        trained(later=lambda module: torch.compile(module, backend=counting))
