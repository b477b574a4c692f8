"""Every kind of layer and model: norms and sums are those of records taken one by one, through the whole engine."""

from dataclasses import replace

import pytest

torch = pytest.importorskip("torch", reason="torch is not installed (make test-torch)")

from torch import nn  # noqa: E402
from torch.utils.data import TensorDataset  # noqa: E402

from privamp import InvalidInput  # noqa: E402
from privamp.testing import seeded_key  # noqa: E402
from privamp.torch import PrivacyEngine, attention, layers, measuring, recorded, recurrent, replaced  # noqa: E402
from privamp.torch.uses import measured  # noqa: E402
from small_models import MODELS, built, one_by_one  # noqa: E402

torch.set_num_threads(1)


def wrong_rule(kind):
    """The rule of a layer with its gradients halved."""

    def plant(monkeypatch):
        rule, names = layers._RULES[kind]

        def halved(layer, x, back):
            return rule(layer, x, back / 2)

        monkeypatch.setitem(layers._RULES, kind, (halved, names))

    return plant


def uses_apart(monkeypatch):
    """A tied weight's squared norm as the mean of its uses'."""

    def apart(uses, shape, **how):
        parts = [measured([use], shape) for use in uses]
        return replace(measured(uses, shape, **how), squares=sum(part.squares for part in parts) / len(parts))

    monkeypatch.setattr(recorded, "measured", apart)


def one_use(monkeypatch):
    """Only the last use of a tied weight counts."""
    monkeypatch.setattr(recorded, "measured", lambda uses, shape, **how: measured(uses[-1:], shape, **how))


def no_bias(monkeypatch):
    monkeypatch.setattr(
        replaced, "linear_parts", lambda w, b, *rest, **named: layers.linear_parts(w, None, *rest, **named)
    )


PLANTED = {
    "transposed 1d": wrong_rule(nn.ConvTranspose1d), "conv3d": wrong_rule(nn.Conv3d), "prelu": wrong_rule(nn.PReLU),
    "rms norm": wrong_rule(nn.RMSNorm), "instance norm": wrong_rule(nn.modules.instancenorm._InstanceNorm),
    "frozen batch norm": wrong_rule(nn.modules.batchnorm._BatchNorm), "tied": uses_apart, "shared": one_use,
    "attention": no_bias,
}  # fmt: skip


@pytest.mark.parametrize("name", PLANTED)
def test_a_wrong_rule_is_found_before_the_first_step(name, monkeypatch):
    """What is measured is compared with autograd; then the whole model is computed record by record, which is right."""
    model, x, y = built(name)
    PLANTED[name](monkeypatch)
    assert "" in engine_of(model, (x, y))._run.recorder.apart


def test_an_activation_in_place_behind_places_keeps_the_rules():
    """There a linear layer gives a view, in whose place the activation puts another one."""
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(4, 6), nn.ReLU(inplace=True), nn.Linear(6, 3), nn.Flatten(), nn.Linear(15, 3))
    x, y = torch.randn(7, 5, 4).double(), torch.arange(7) % 3
    engine = engine_of(model.double(), (x, y))
    assert not engine._run.recorder.apart


@pytest.mark.parametrize("name", ["gru", "attention"])
def test_a_layer_by_steps_that_computes_something_else_is_refused(name, monkeypatch):
    model, x, y = built(name)
    monkeypatch.setattr(recurrent, "_moved", lambda mode, a, b, state: (torch.tanh(a[:, :4] + b[:, :4]),))
    monkeypatch.setattr(attention, "_mask", lambda *args: None)
    with pytest.raises(InvalidInput, match="differs when gradients are recorded"):
        engine_of(model, (x, y))


@pytest.mark.parametrize(
    "module",
    [
        nn.Sequential(nn.Unflatten(1, (2, 3)), nn.LSTM(3, 3)),
        nn.Sequential(nn.Unflatten(1, (2, 3)), nn.TransformerEncoderLayer(3, 1, 4), nn.Flatten(), nn.Linear(6, 3)),
    ],
)
def test_layers_that_are_not_batch_first_are_refused(module):
    with pytest.raises(InvalidInput, match="batch_first=True"):
        engine_of(module, (torch.randn(7, 6), torch.arange(7) % 3))


def test_batch_norm_stays_as_it_was_frozen():
    model, x, y = built("frozen batch norm")
    engine = engine_of(model, (x, y), steps=2)
    before = model[1].running_mean.clone()
    model.train()  # as scripts do at the start of an epoch
    engine.train()
    assert torch.equal(model[1].running_mean, before)


def test_rows_of_an_own_parameter_where_they_do_not_belong_are_found(monkeypatch):
    model, x, y = built("a matrix of its own")
    monkeypatch.setattr(measuring, "_fits", lambda *args: True)
    with pytest.raises(InvalidInput):
        engine_of(model, (x, y))


def test_half_precision_models_add_up_in_single_precision():
    def summed(autocast):
        model, x, y = built("parameters without a layer")
        model = model.float()
        with torch.autocast("cpu", torch.bfloat16, enabled=autocast):
            engine = engine_of(model, (x.float(), y))
            engine.train()
        assert all(p.grad.dtype == torch.float32 for p in model.parameters())
        return torch.cat([p.grad.flatten() for p in model.parameters()])

    plain = summed(False)
    assert float((summed(True) - plain).norm()) < 0.05 * float(plain.norm())


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
