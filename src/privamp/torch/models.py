"""Small networks to start from: the paper's CNN and LSTM, a perceptron, and logistic regression."""

from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch import nn

from ..errors import InvalidInput
from ..validation import one_of
from .lstm import LSTM

MODELS = ("cnn", "mlp", "lstm", "logistic")
_WIDTH, _HIDDEN = 100, 32  # of the paper's LSTM


def build(name: str, shape: Sequence[int], classes: int, words: int | None = None) -> Any:
    """A network for records of this shape; `words` is the size of the vocabulary where records are sequences of ids."""
    one_of(MODELS, model=name)
    if (name == "lstm") != (words is not None):
        kind = "sequences of word ids" if words is not None else "numbers"
        raise InvalidInput(
            f"model {name} does not take records that are {kind}; use lstm for word ids, and only for them"
        )
    if words is not None:
        return SequenceClassifier(words, classes)
    make: dict[str, Callable[[Sequence[int], int], Any]] = {"cnn": cnn, "mlp": mlp, "logistic": logistic}
    return make[name](shape, classes)


def cnn(shape: Sequence[int] = (1, 28, 28), classes: int = 10) -> Any:
    """The paper's network for pictures, with tanh: 26,010 parameters for 28 x 28 grey pixels and 10 classes."""
    if len(shape) != 3 or min(shape[1:]) < 20:
        raise InvalidInput(f"model cnn takes pictures of at least 20 by 20, got records of shape {tuple(shape)}")
    front = nn.Sequential(
        nn.Conv2d(shape[0], 16, 8, 2, padding=3), nn.Tanh(), nn.MaxPool2d(2, 1), nn.Conv2d(16, 32, 4, 2), nn.Tanh(),
        nn.MaxPool2d(2, 1), nn.Flatten(),
    )  # fmt: skip
    width = front(torch.zeros(1, *shape)).shape[1]
    return nn.Sequential(*front, nn.Linear(width, 32), nn.Tanh(), nn.Linear(32, classes))


def mlp(shape: Sequence[int], classes: int) -> Any:
    """One hidden layer of 256 units with tanh."""
    return nn.Sequential(nn.Flatten(), nn.Linear(_size(shape), 256), nn.Tanh(), nn.Linear(256, classes))


def logistic(shape: Sequence[int], classes: int) -> Any:
    """Logistic regression, from zero."""
    layer = nn.Linear(_size(shape), classes)
    nn.init.zeros_(layer.weight)
    nn.init.zeros_(layer.bias)
    return nn.Sequential(nn.Flatten(), layer)


class SequenceClassifier(nn.Module):
    """The paper's network for reviews; its word vectors are random and stay fixed (the paper's are pretrained).

    `activation` is that of the layers before and after the reader: ReLU, or tanh for tempered sigmoids.
    """

    def __init__(self, words: int, classes: int, activation: Callable[[], Any] = nn.ReLU) -> None:
        super().__init__()
        self.vectors = nn.Embedding(words, _WIDTH)
        self.vectors.weight.requires_grad_(False)
        self.entry = nn.Linear(_WIDTH, _HIDDEN)
        self.activation = activation()
        self.reader = LSTM(_HIDDEN, _HIDDEN, bidirectional=True)
        self.exit = nn.Sequential(nn.Linear(2 * _HIDDEN, 16), activation(), nn.Linear(16, classes))

    def forward(self, ids: Any) -> Any:
        """Scores of the classes, from where each direction has read everything."""
        states = self.reader(self.activation(self.entry(self.vectors(ids))))
        return self.exit(torch.cat([states[:, -1, :_HIDDEN], states[:, 0, _HIDDEN:]], dim=1))


def _size(shape: Sequence[int]) -> int:
    size = 1
    for length in shape:
        size *= length
    return size
