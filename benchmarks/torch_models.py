"""The models and made-up records of `torch_step.py` and the benchmarks that use them."""

from collections.abc import Callable

import torch
from torch import nn


def cnn() -> nn.Module:
    """The paper's network for MNIST, 26,010 parameters."""
    return nn.Sequential(
        nn.Conv2d(1, 16, 8, 2, padding=3), nn.Tanh(), nn.MaxPool2d(2, 1), nn.Conv2d(16, 32, 4, 2), nn.Tanh(),
        nn.MaxPool2d(2, 1), nn.Flatten(), nn.Linear(512, 32), nn.Tanh(), nn.Linear(32, 10),
    )  # fmt: skip


def wide_cnn() -> nn.Module:
    """The paper's with eight times as many channels and 35 times the arithmetic, 664,298 parameters."""
    return nn.Sequential(
        nn.Conv2d(1, 128, 8, 2, padding=3), nn.Tanh(), nn.MaxPool2d(2, 1), nn.Conv2d(128, 256, 4, 2), nn.Tanh(),
        nn.MaxPool2d(2, 1), nn.Flatten(), nn.Linear(4096, 32), nn.Tanh(), nn.Linear(32, 10),
    )  # fmt: skip


def mlp() -> nn.Module:
    return nn.Sequential(nn.Flatten(), nn.Linear(784, 256), nn.Tanh(), nn.Linear(256, 10))


class ViT(nn.Module):
    """Patches of a picture and a class token."""

    def __init__(self, picture: tuple[int, int], width: int, depth: int, heads: int, activation: str) -> None:
        super().__init__()
        channels, side = picture
        places = (side // 4) ** 2 + 1
        self.cut = nn.Conv2d(channels, width, 4, 4)
        self.token, self.places = nn.Parameter(torch.zeros(1, 1, width)), nn.Parameter(torch.zeros(1, places, width))
        self.layers = layers(width, depth, heads, activation)
        self.norm, self.out = nn.LayerNorm(width), nn.Linear(width, 10)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        cut = self.cut(x).flatten(2).transpose(1, 2)
        every = torch.cat([self.token.expand(len(x), -1, -1), cut], dim=1) + self.places
        return self.out(self.norm(self.layers(every)[:, 0]))


class Encoder(nn.Module):
    """Texts of `length` words, out of so many."""

    def __init__(self, words: int, length: int, width: int, depth: int, heads: int, activation: str) -> None:
        super().__init__()
        self.words, self.places = nn.Embedding(words, width), nn.Parameter(torch.zeros(1, length, width))
        self.layers, self.out = layers(width, depth, heads, activation), nn.Linear(width, 10)

    def forward(self, ids: torch.Tensor) -> torch.Tensor:
        return self.out(self.layers(self.words(ids) + self.places).mean(dim=1))


def layers(width: int, count: int, heads: int, activation: str) -> nn.Module:
    one = nn.TransformerEncoderLayer(
        width, heads, 4 * width, dropout=0.0, activation=activation, batch_first=True, norm_first=True
    )
    return nn.TransformerEncoder(one, count, enable_nested_tensor=False)


MODELS: dict[str, Callable[[], nn.Module]] = {
    "cnn": cnn,
    "wide-cnn": wide_cnn,
    "mlp": mlp,
    "vit": lambda: ViT((1, 28), 64, 3, 4, "relu"),  # 152,650 parameters
    "encoder": lambda: Encoder(5000, 64, 128, 2, 4, "relu"),
    "vit-small": lambda: ViT((3, 32), 384, 12, 6, "gelu"),  # 21 million
    "encoder-128": lambda: Encoder(20000, 128, 384, 6, 6, "gelu"),  # 18 million
}
SMALL_BATCHES = ("vit", "encoder", "vit-small", "encoder-128")  # and no row of Opacus
_WORDS = {"encoder": (5000, 64), "encoder-128": (20000, 128)}  # how many there are, and in a text


def data(device: torch.device, model: str, records: int) -> tuple[torch.Tensor, torch.Tensor]:
    """Made-up records for this model, with labels."""
    torch.manual_seed(0)
    labels = torch.randint(0, 10, (records,), device=device)
    if model in _WORDS:
        words, length = _WORDS[model]
        return torch.randint(0, words, (records, length), device=device), labels
    picture = (3, 32, 32) if model == "vit-small" else (1, 28, 28)
    return torch.randn(records, *picture, device=device), labels
