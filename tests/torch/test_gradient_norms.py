"""Norms and weighted sums of every kind of layer against gradients taken record by record, and against Opacus."""

import pytest

torch = pytest.importorskip("torch", reason="torch is not installed (make test-torch)")

from torch import nn  # noqa: E402

from privamp.errors import InvalidInput  # noqa: E402
from privamp.torch import LSTM  # noqa: E402
from privamp.torch.ghost import GradientRecorder  # noqa: E402
from privamp.torch.patches import Geometry, Patches, patches  # noqa: E402
from privamp.torch.precision import norms_of  # noqa: E402
from privamp.torch.uses import measured  # noqa: E402

torch.set_num_threads(1)
chain = nn.Sequential


class Twice(nn.Module):
    """One layer called twice, with an activation in place between."""

    def __init__(self) -> None:
        super().__init__()
        self.layer, self.act = nn.Linear(6, 6), nn.ReLU(inplace=True)

    def forward(self, x):
        return self.layer(self.act(self.layer(x)))


class Reader(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.words, self.lstm, self.out = (
            nn.Embedding(11, 5, padding_idx=0),
            LSTM(5, 4, bidirectional=True),
            nn.Linear(8, 3),
        )

    def forward(self, ids):
        return self.out(self.lstm(self.words(ids)).mean(dim=1))


def picture(*shape):
    return lambda: torch.randn(7, *shape)


MODELS = {
    "linear": (lambda: nn.Linear(6, 3), picture(6)),
    "mlp": (lambda: chain(nn.Linear(6, 5, bias=False), nn.Tanh(), nn.LayerNorm(5), nn.Linear(5, 3)), picture(6)),
    "sequence": (lambda: chain(nn.Linear(30, 40), nn.Tanh(), nn.Flatten(), nn.Linear(160, 3)), picture(4, 30)),
    "long sequence": (lambda: chain(nn.Linear(3, 2), nn.Tanh(), nn.Flatten(), nn.Linear(80, 3)), picture(40, 3)),
    "cnn": (
        lambda: chain(
            nn.Conv2d(1, 16, 8, 2, padding=3), nn.Tanh(), nn.MaxPool2d(2, 1), nn.Conv2d(16, 32, 4, 2),
            nn.ReLU(inplace=True), nn.MaxPool2d(2, 1), nn.Flatten(), nn.Linear(512, 32), nn.Tanh(), nn.Linear(32, 3),
        ),
        picture(1, 28, 28),
    ),
    "groups": (
        lambda: chain(
            nn.Conv2d(4, 8, 3, padding=1, groups=2, bias=False), nn.GroupNorm(2, 8), nn.Tanh(),
            nn.Conv2d(8, 40, 3, stride=2, dilation=2, groups=4), nn.Flatten(), nn.LazyLinear(3),
        ),
        picture(4, 9, 9),
    ),
    "same padding": (
        lambda: chain(nn.Conv2d(1, 2, 4, padding="same"), nn.Flatten(), nn.Linear(72, 3)),
        picture(1, 6, 6),
    ),
    "conv1d": (
        lambda: chain(
            nn.Conv1d(3, 30, 3, padding=1), nn.Tanh(), nn.Conv1d(30, 4, 5, stride=2), nn.Flatten(), nn.Linear(12, 3)
        ),
        picture(3, 9),
    ),
    "twice": (lambda: chain(Twice(), nn.Linear(6, 3)), picture(6)),
    "reader": (Reader, lambda: torch.randint(0, 11, (7, 6))),
}  # fmt: skip


def built(name):
    torch.manual_seed(3)
    make, inputs = MODELS[name]
    model, x = make().double(), inputs()
    x = x.double() if x.is_floating_point() else x
    model(x)  # lazy layers
    return model, x, torch.randint(0, 3, (7,))


def one_by_one(model, x, y):
    """Gradients of every record alone: (records, parameters)."""
    rows = []
    for i in range(len(x)):
        model.zero_grad()
        nn.functional.cross_entropy(model(x[i : i + 1]), y[i : i + 1]).backward()
        rows.append(torch.cat([p.grad.flatten().clone() for p in model.parameters() if p.requires_grad]))
    model.zero_grad()
    return torch.stack(rows)


@pytest.mark.parametrize("name", MODELS)
@pytest.mark.parametrize("dtype", ["double", "float"])
def test_norms_and_weighted_sums_are_those_of_single_records(name, dtype):
    model, x, y = built(name)
    rows = one_by_one(model, x, y)
    if dtype == "float":
        model, x = model.float(), x.float() if x.is_floating_point() else x
    recorder = GradientRecorder(model)
    recorder.listen(len(x))
    recorded = recorder.measure(nn.functional.cross_entropy(model(x), y, reduction="none"))
    tight = {"rtol": 1e-9, "atol": 1e-9} if dtype == "double" else {"rtol": 2e-4, "atol": 1e-5}
    torch.testing.assert_close(recorded.norms, rows.norm(dim=1), **tight)
    assert torch.all(recorded.norms >= rows.norm(dim=1) * (1 - 3e-6))  # never below the truth by more than rounding
    weights = torch.rand(len(x), dtype=x.dtype if x.is_floating_point() else torch.get_default_dtype())
    weights = weights.to(next(model.parameters()).dtype)
    sums = {id(p): g for p, g in recorded.weighted(weights)}
    found = torch.cat([sums[id(p)].flatten() for p in model.parameters()])
    torch.testing.assert_close(found.double(), weights.double() @ rows, **tight)


def test_cancelling_places_do_not_hide_a_gradient():
    """In single precision the ghost norm of places that cancel comes out too small; the error bound keeps it above."""
    torch.manual_seed(0)
    model = nn.Linear(300, 300)
    x = torch.randn(40, 1, 300).repeat(1, 2, 1) * 100
    x[:, 1] += 1e-3 * torch.randn(40, 300)
    sign = torch.tensor([1.0, -1.0])[None, :, None]
    recorder = GradientRecorder(model)
    recorder.listen(40)
    losses = (model(x) * sign).pow(1).sum(dim=(1, 2)) * 10
    norms = recorder.measure(losses).norms
    truth = [torch.outer(torch.ones(300).double() * 10, (a - b).double()).norm() for a, b in x]
    assert torch.all(norms >= torch.stack(truth) * (1 - 1e-4))


def test_a_loss_that_is_no_number_leaves_the_others_alone():
    model, x, y = built("cnn")
    rows = one_by_one(model, x, y)
    x[2] = float("nan")
    recorder = GradientRecorder(model)
    recorder.listen(7)
    recorded = recorder.measure(nn.functional.cross_entropy(model(x), y, reduction="none"))
    assert torch.isnan(recorded.norms[2])
    weights = torch.ones(7, dtype=torch.double)
    weights[2] = 0.0
    sums = {id(p): g for p, g in recorded.weighted(weights)}
    found = torch.cat([sums[id(p)].flatten() for p in model.parameters()])
    torch.testing.assert_close(found, weights @ rows, rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("name", ["mlp", "cnn", "sequence"])
def test_opacus_finds_the_same_norms(name):
    pytest.importorskip("opacus", reason="opacus is not installed (make test-torch)")
    from opacus.grad_sample import GradSampleModuleFastGradientClipping

    model, x, y = built(name)
    for layer in model.modules():
        if isinstance(layer, nn.ReLU):
            layer.inplace = False  # Opacus' hooks forbid it
    recorder = GradientRecorder(model)
    recorder.listen(7)
    ours = recorder.measure(nn.functional.cross_entropy(model(x), y, reduction="none")).norms
    recorder.detach()
    wrapped = GradSampleModuleFastGradientClipping(model, loss_reduction="sum", use_ghost_clipping=True)
    nn.functional.cross_entropy(wrapped(x), y, reduction="sum").backward()
    torch.testing.assert_close(ours, wrapped.get_norm_sample(), rtol=1e-8, atol=1e-10)


@pytest.mark.parametrize(
    ("module", "words"),
    [
        (nn.Sequential(nn.Linear(2, 3), nn.BatchNorm1d(3)), "mixes the records"),
        (nn.Sequential(nn.Conv2d(1, 2, 3), nn.InstanceNorm2d(2, track_running_stats=True)), "mixes the records"),
        (nn.Embedding(3, 2, max_norm=1.0), "max_norm"),
        (nn.ReLU(), "no trainable parameters"),
    ],
)
def test_layers_that_cannot_be_measured_are_refused(module, words):
    with pytest.raises(InvalidInput, match=words):
        GradientRecorder(module)


def test_a_layer_used_through_its_weights_is_refused():
    class Sly(nn.Module):
        def __init__(self):
            super().__init__()
            self.seen, self.unseen = nn.Linear(2, 2), nn.Linear(2, 2)

        def forward(self, x):
            return nn.functional.linear(self.seen(x), self.unseen.weight)

    model = Sly()
    recorder = GradientRecorder(model)
    recorder.listen(4)
    with pytest.raises(InvalidInput, match="'unseen'"):
        recorder.measure(model(torch.randn(4, 2)).sum(dim=1))


def test_a_model_that_is_not_batch_first_is_refused():
    model = nn.Linear(2, 2)
    recorder = GradientRecorder(model)
    recorder.listen(4)
    with pytest.raises(InvalidInput, match="first dimension"):
        model(torch.randn(3, 4, 2))


def test_norms_of_many_rows_are_those_of_each_in_double_precision():
    """Rows are taken some at a time: more than one piece, a last one that is shorter, and squares far out of range."""
    rows = torch.randn(150, 1000, generator=torch.Generator().manual_seed(1)) * torch.logspace(-36, 34, 150)[:, None]
    expected = torch.stack([row.double().norm() for row in rows])
    assert torch.allclose(norms_of(rows), expected, rtol=1e-14, atol=0.0)


MOVES = [
    {"stride": (2, 1)},
    {"padding": (1, 2), "dilation": (1, 2)},
    {"stride": 3, "padding": 2},
    {"groups": 2},
    {"groups": 4},
]


def moved(options):
    layer = nn.Conv2d(4, 4, (4, 4), bias=False, **options)
    x = torch.randn(5, 4, 9, 10, generator=torch.Generator().manual_seed(2))
    return layer, x, Geometry(layer.kernel_size, layer.stride, layer.dilation, layer.padding, layer.groups)


@pytest.mark.parametrize("last", [False, True])
@pytest.mark.parametrize("options", MOVES)
def test_patches_are_those_that_a_convolution_sees(options, last):
    layer, x, geometry = moved(options)
    out = layer(x)
    weight = (layer.weight.movedim(1, -1) if last else layer.weight).reshape(
        1, geometry.groups, 4 // geometry.groups, -1
    )
    seen = patches(x, geometry, out.shape[2:], last=last).unflatten(0, (5, geometry.groups))
    found = (weight @ seen.transpose(2, 3)).reshape(out.shape)
    assert torch.allclose(found, out, atol=1e-5)


@pytest.mark.parametrize("options", [{}, *MOVES])
@pytest.mark.parametrize("memory", [torch.contiguous_format, torch.channels_last])
def test_gradients_of_convolutions_are_those_of_single_records(options, memory):
    """In strips where rows of patches overlap, in patches elsewhere: both against autograd."""
    layer, x, geometry = moved(options)
    out = layer(x)
    back = torch.randn(out.shape, generator=torch.Generator().manual_seed(3))
    alone = [torch.autograd.grad(layer(x[i : i + 1]), layer.weight, back[i : i + 1])[0].double() for i in range(len(x))]
    use = Patches((x.contiguous(memory_format=memory),), (back.contiguous(memory_format=memory),), geometry)
    assert use.has_strips == (options in ({}, *MOVES[:2]))
    found, weights = measured([use], layer.weight.shape), torch.rand(len(x))
    assert torch.allclose(found.squares, torch.stack([g.square().sum() for g in alone]), rtol=1e-5)
    truth = sum(w * g for w, g in zip(weights.double(), alone, strict=True))
    assert torch.allclose(found.summed(weights).double(), truth, atol=1e-4)
    written = measured([use], layer.weight.shape, written=True)
    assert torch.allclose(written.rows.double(), torch.stack(alone).flatten(1), atol=1e-4)


def test_memory_is_used_again_only_when_a_batch_is_done():
    """The sum of a batch is its own, also if another one was measured before it is taken."""
    model, x, y = built("cnn")
    recorder = GradientRecorder(model)

    def recorded(some):
        recorder.listen(len(some))
        return recorder.measure(nn.functional.cross_entropy(model(some), y[: len(some)], reduction="none"))

    weights = torch.ones(7, dtype=torch.double)
    expected = [g.clone() for _, g in recorded(x).weighted(weights)]
    first, other = recorded(x), recorded(-x)
    assert all(torch.equal(g, e) for (_, g), e in zip(first.weighted(weights), expected, strict=True))
    other.give_back()
    for some in (x[:3], x, -x):  # smaller and larger than the block at hand
        recorded(some).give_back()
    assert all(torch.equal(g, e) for (_, g), e in zip(recorded(x).weighted(weights), expected, strict=True))
