"""Models of many kinds, tiny, with records and labels: what the tests of gradients and of engines go through."""

import torch
from torch import nn
from torch.nn import functional

chain = nn.Sequential
CLASSES = 3


class Rows(nn.Module):
    """Reads (records, places, width) by a layer and sums up."""

    def __init__(self, layer, width, **options):
        super().__init__()
        self.layer, self.out, self.options = layer, nn.Linear(width, CLASSES), options

    def forward(self, x):
        found = self.layer(x, **self.options)
        found = found[0] if isinstance(found, tuple) else found
        return self.out(torch.tanh(found).flatten(2).mean(dim=1))


class Cells(nn.Module):
    """Steps over (records, places, width) one by one, the first without a state."""

    def __init__(self, cell):
        super().__init__()
        self.cell, self.out = cell, nn.Linear(4, CLASSES)

    def forward(self, x):
        state = None
        for place in range(x.shape[1]):
            state = self.cell(x[:, place], state)
        return self.out(state[0] if isinstance(state, tuple) else state)


class Attending(nn.Module):
    """Self-attention with masks, then attention to a memory."""

    def __init__(self, weights=False, **options):
        super().__init__()
        self.one = nn.MultiheadAttention(6, 2, batch_first=True, **options)
        self.two = nn.MultiheadAttention(6, 3, batch_first=True, kdim=4, vdim=5)
        self.out, self.weights = nn.Linear(6, CLASSES), weights

    def forward(self, x):
        mask = torch.triu(torch.ones(5, 5, dtype=torch.bool), 1)
        padding = x[:, :, 0] > 1.0
        padding[:, 0] = False
        x, w = self.one(x, x, x, attn_mask=mask, key_padding_mask=padding, need_weights=self.weights)
        x = x + self.two(x, x[:, :2, :4].detach(), x[:, :2, :5].detach(), need_weights=False)[0]
        return self.out(x.mean(dim=1)) + (0.0 if w is None else w.mean(dim=(1, 2)).unsqueeze(1))


class Translator(nn.Module):
    """An encoder layer and a decoder layer."""

    def __init__(self):
        super().__init__()
        self.read = nn.TransformerEncoderLayer(6, 2, 8, dropout=0.0, batch_first=True)
        self.write = nn.TransformerDecoderLayer(6, 2, 8, dropout=0.0, batch_first=True, norm_first=True)
        self.out = nn.Linear(6, CLASSES)

    def forward(self, x):
        return self.out(self.write(x[:, :2], self.read(x)).mean(dim=1))


class Tied(nn.Module):
    """The table of words is the exit, too; positions by ids of shape (1, T)."""

    def __init__(self, words=CLASSES, positions=(1, 5)):
        super().__init__()
        self.words, self.places = nn.Embedding(words, 4, padding_idx=0), nn.Embedding(9, 4)
        self.inner, self.out = nn.Linear(4, 4), nn.Linear(4, words, bias=False)
        self.out.weight = self.words.weight
        self.register_buffer("ids", torch.arange(5).reshape(positions))

    def forward(self, ids):
        return self.out(torch.tanh(self.inner(self.words(ids) + self.places(self.ids))).mean(dim=1))


class Sly(nn.Module):
    """The table of words used behind its back."""

    def __init__(self):
        super().__init__()
        self.words = nn.Embedding(CLASSES, 4)

    def forward(self, ids):
        return functional.linear(torch.tanh(self.words(ids)).mean(dim=1), self.words.weight)


class Vision(nn.Module):
    """A class token, positions, a scale for each channel, and a temperature: parameters without a layer."""

    def __init__(self):
        super().__init__()
        self.patch = nn.Linear(3, 4)
        self.token, self.place = nn.Parameter(torch.randn(1, 1, 4)), nn.Parameter(torch.randn(6, 4))
        self.scale, self.heat = nn.Parameter(torch.ones(4)), nn.Parameter(torch.tensor(1.5))
        self.out = nn.Linear(4, CLASSES)

    def forward(self, x):
        x = self.patch(x)
        x = torch.cat([self.token.expand(x.shape[0], -1, -1), x], dim=1) + self.place
        return self.out((torch.tanh(x) * self.scale).mean(dim=1)) * self.heat


class Mixed(nn.Module):
    """Its own matrix beside a layer: no broadcasting, so the module is computed record by record."""

    def __init__(self):
        super().__init__()
        self.layer, self.matrix = nn.Linear(6, 5), nn.Parameter(torch.randn(5, CLASSES))
        self.list = nn.ParameterList([torch.randn(6), torch.randn(6)])

    def forward(self, x):
        return torch.tanh(self.layer(x * self.list[0] + self.list[1])) @ self.matrix


class Root(nn.Module):
    """A layer of one's own with a rule that nobody knows."""

    def __init__(self, width):
        super().__init__()
        self.weight = nn.Parameter(torch.rand(width))

    def forward(self, x):
        return self.weight * x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + 1e-6)


class Pairs(nn.Module):
    """A bilinear layer."""

    def __init__(self):
        super().__init__()
        self.layer = nn.Bilinear(3, 3, CLASSES)

    def forward(self, x):
        return self.layer(x[:, :3], x[:, 3:])


def shared():
    one, two = nn.Linear(6, 6), nn.Linear(6, 6)
    two.weight = one.weight
    return chain(one, nn.Tanh(), two, nn.Tanh(), nn.Linear(6, CLASSES))


def shared_convolutions():
    one, two = nn.Conv1d(2, 2, 3, padding=1), nn.Conv1d(2, 2, 3, padding=2, dilation=2)
    two.weight = one.weight
    return chain(one, nn.Tanh(), two, nn.Flatten(), nn.LazyLinear(CLASSES))


def frozen_norm():
    model = chain(nn.Linear(6, 5), nn.BatchNorm1d(5), nn.Tanh(), nn.Linear(5, CLASSES))
    model[1].running_mean.uniform_(-1, 1), model[1].running_var.uniform_(0.5, 2)
    return model.eval()


def weight_norm():
    return chain(nn.utils.parametrizations.weight_norm(nn.Linear(6, 4)), nn.Tanh(), nn.Linear(4, CLASSES))


def numbers(*shape):
    return lambda: torch.randn(7, *shape)


def words():
    return torch.randint(0, CLASSES, (7, 5))


def end(*layers):
    return lambda: chain(*(make() for make in layers), nn.Flatten(), nn.LazyLinear(CLASSES))


MODELS = {
    "conv3d": (
        end(lambda: nn.Conv3d(2, 4, 2, padding=1, stride=2), nn.Tanh, lambda: nn.Conv3d(4, 40, 2)),
        numbers(2, 3, 4, 5)),
    "transposed 1d": (
        end(lambda: nn.ConvTranspose1d(2, 4, 3, stride=2, padding=1, output_padding=1, groups=2)),
        numbers(2, 5)),
    "transposed 2d": (
        end(lambda: nn.ConvTranspose2d(2, 30, 3, stride=3, dilation=2, output_padding=2)),
        numbers(2, 3, 4)),
    "transposed 3d": (end(lambda: nn.ConvTranspose3d(2, 3, 2, bias=False)), numbers(2, 2, 3, 2)),
    "circular padding": (end(lambda: nn.Conv2d(1, 2, 3, padding=(1, 2), padding_mode="circular")), numbers(1, 4, 5)),
    "rms norm": (lambda: chain(nn.Linear(6, 5), nn.RMSNorm(5), nn.Linear(5, CLASSES)), numbers(6)),
    "instance norm": (end(lambda: nn.InstanceNorm2d(2, affine=True), nn.Tanh), numbers(2, 3, 4)),
    "frozen batch norm": (frozen_norm, numbers(6)),
    "prelu": (end(lambda: nn.Conv1d(2, 4, 2), lambda: nn.PReLU(4), nn.PReLU), numbers(2, 5)),
    "attention": (Attending, numbers(5, 6)),
    "attention with weights": (lambda: Attending(weights=True), numbers(5, 6)),
    "attention with rows of its own": (lambda: Attending(add_bias_kv=True), numbers(5, 6)),
    "transformer": (Translator, numbers(4, 6)),
    "lstm": (lambda: Rows(nn.LSTM(3, 4, 2, batch_first=True, bidirectional=True), 8), numbers(5, 3)),
    "lstm with projection": (lambda: Rows(nn.LSTM(3, 4, proj_size=2, bias=False, batch_first=True), 2), numbers(5, 3)),
    "gru": (lambda: Rows(nn.GRU(3, 4, batch_first=True, bidirectional=True), 8), numbers(5, 3)),
    "lstm cell": (lambda: Cells(nn.LSTMCell(3, 4)), numbers(5, 3)),
    "gru cell": (lambda: Cells(nn.GRUCell(3, 4, bias=False)), numbers(5, 3)),
    "rnn cell": (lambda: Cells(nn.RNNCell(3, 4, nonlinearity="relu")), numbers(5, 3)),
    "rnn": (lambda: Rows(nn.RNN(3, 4, 2, nonlinearity="relu", batch_first=True), 4), numbers(5, 3)),
    "tied": (Tied, words),
    "tied, positions for all": (lambda: Tied(positions=(5,)), words),
    "used behind its back": (Sly, words),
    "shared": (shared, numbers(6)),
    "shared convolutions": (shared_convolutions, numbers(2, 5)),
    "parameters without a layer": (Vision, numbers(5, 3)),
    "a matrix of its own": (Mixed, numbers(6)),
    "a norm of one's own": (lambda: chain(nn.Linear(6, 5), Root(5), nn.Linear(5, CLASSES)), numbers(6)),
    "bilinear": (Pairs, numbers(6)),
    "weight norm": (weight_norm, numbers(6)),
}  # fmt: skip


def built(name):
    """The model in double precision, with records and labels."""
    torch.manual_seed(3)
    make, inputs = MODELS[name]
    model, x = make(), inputs()
    model(x)  # lazy layers
    return model.double(), x.double() if x.is_floating_point() else x, torch.randint(0, CLASSES, (7,))


def one_by_one(model, x, y):
    """Gradients of every record alone by autograd: (records, parameters)."""
    trained = [p for p in model.parameters() if p.requires_grad]
    rows = []
    for i in range(len(x)):
        loss = functional.cross_entropy(model(x[i : i + 1]), y[i : i + 1])
        rows.append(torch.cat([g.flatten() for g in torch.autograd.grad(loss, trained)]))
    return torch.stack(rows)
