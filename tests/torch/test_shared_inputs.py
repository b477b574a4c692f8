"""What a training loop gives to the model besides records must not follow the batch."""

import pytest

torch = pytest.importorskip("torch", reason="torch is not installed (make test-torch)")

from torch import nn  # noqa: E402
from torch.utils.data import TensorDataset  # noqa: E402

from privamp import InvalidInput  # noqa: E402
from privamp.testing import seeded_key  # noqa: E402
from privamp.torch import PrivacyEngine  # noqa: E402

torch.set_num_threads(1)
X, Y = torch.randn(40, 4), torch.arange(40) % 3


class Scaled(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.layer = nn.Linear(4, 3)

    def forward(self, x, shares=1.0, *, heat=1.0):
        return self.layer(x) * shares * heat


def trained(call, **options):
    model, engine = Scaled(), PrivacyEngine(key=seeded_key(1))
    _, optimizer, criterion, loader = engine.make_private(
        module=model, optimizer=torch.optim.SGD(model.parameters(), 0.1), criterion=nn.CrossEntropyLoss(),
        data_loader=TensorDataset(X, Y), sampler="uniform", sample_rate=0.3, steps=5, noise_multiplier=1.0,
        max_grad_norm=1.0, population=40, steps_per_epoch=5, **options,
    )  # fmt: skip
    for x, y in loader:
        criterion(call(model, x, y), y).backward()
        optimizer.step()
    return engine


FOLLOWING = {
    "one over the batch": lambda model, x, y: model(x, 1.0 / len(x)),
    "by name": lambda model, x, y: model(x, heat=torch.tensor(1.0 / len(x))),
    "shares of classes": lambda model, x, y: model(x, torch.bincount(y, minlength=3) / len(y)),
    "in the second call": lambda model, x, y: model(x, 1.0) + model(x, 1.0 / len(x)),
}
STEADY = {
    "numbers": lambda model, x, y: model(x, 0.5, heat=2),
    "shared": lambda model, x, y: model(x, torch.tensor([[1.0, 2.0, 3.0]]).expand(2, 3)[:1]),
    "a row for each": lambda model, x, y: model(x, torch.rand(len(x), 1)),
    "two calls": lambda model, x, y: model(x, 1.0) + model(x, 2.0),
}


@pytest.mark.parametrize("name", FOLLOWING)
@pytest.mark.parametrize("options", [{}, {"max_physical_batch_size": 5}], ids=["whole", "parts"])
def test_inputs_that_follow_the_batch_are_refused(name, options):
    with pytest.raises(InvalidInput, match="differs between batches"):
        trained(FOLLOWING[name], **options)


@pytest.mark.parametrize("name", STEADY)
def test_other_inputs_are_not(name):
    assert trained(STEADY[name]).is_finished


def test_a_look_at_the_model_without_gradients_may_have_any_inputs():
    def looked(model, x, y):
        with torch.no_grad():
            model(X, 1.0 / len(x))
        return model(x)

    assert trained(looked).is_finished
