"""Every kind of layer and model: norms and sums are those of records taken one by one, through the whole engine."""

import pytest

torch = pytest.importorskip("torch", reason="torch is not installed (make test-torch)")

from torch import nn  # noqa: E402
from torch.utils.data import TensorDataset  # noqa: E402

from privamp.testing import seeded_key  # noqa: E402
from privamp.torch import PrivacyEngine  # noqa: E402
from small_models import MODELS, built, one_by_one  # noqa: E402

torch.set_num_threads(1)


def engine_of(model, tensors, **options):
    engine = PrivacyEngine(key=seeded_key(1))
    trained = [p for p in model.parameters() if p.requires_grad]
    settings = {"sampler": "uniform", "sample_rate": 1.0, "steps": 1, "noise_multiplier": 1e-12, "population": 10}
    settings |= {"max_grad_norm": 0.5, "criterion": nn.CrossEntropyLoss(), "data_loader": TensorDataset(*tensors)}
    engine.make_private(module=model, optimizer=torch.optim.SGD(trained, 0.0), **(settings | options))
    return engine


@pytest.mark.parametrize("name", MODELS)
def test_a_step_adds_up_the_clipped_gradients_of_single_records(name):
    model, x, y = built(name)
    rows = one_by_one(model, x, y)
    norms = rows.norm(dim=1)
    clip = float(norms.median())
    engine = engine_of(model, (x, y), max_grad_norm=clip)
    recorder = engine._run.recorder
    recorder.listen(7)
    recorded = recorder.measure(nn.functional.cross_entropy(model(x), y, reduction="none"))
    torch.testing.assert_close(recorded.norms, norms, rtol=1e-9, atol=1e-12)
    assert torch.all(recorded.norms >= norms * (1 - 1e-12))
    engine.train()
    found = torch.cat([p.grad.flatten() for p in model.parameters() if p.requires_grad]) * 10
    truth = (rows * (clip / norms).clamp(max=1.0).unsqueeze(1)).sum(dim=0)
    torch.testing.assert_close(found, truth, rtol=1e-8, atol=1e-9)
    engine.detach()
    torch.testing.assert_close(one_by_one(model, x, y), rows, rtol=1e-12, atol=1e-14)  # nothing is left behind
