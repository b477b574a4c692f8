"""The network of MUST's MNIST experiment, 784-128-128-10 with ReLU, and its sum of clipped gradients.

A layer's gradient for one record is the outer product of its input (with a 1 for the bias) and the error at its
output, so its squared norm is the product of their squared norms: every record's norm is found without its gradient,
and the sum of clipped gradients is one weighted matrix product per layer.
"""

from collections.abc import Iterator
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from ...numerics.log_domain import FloatArray
from ...sgd.descent import ClippedSum, Ints

Single = NDArray[np.float32]
SIZES = (784, 128, 128, 10)
PARAMETERS = sum((inputs + 1) * outputs for inputs, outputs in pairwise(SIZES))


def start(seed: int) -> FloatArray:
    """Weights uniform within 1/sqrt(inputs), independent of the data."""
    rng = np.random.default_rng(seed)
    layers = (rng.uniform(-1.0, 1.0, (i + 1) * o) / np.sqrt(i) for i, o in pairwise(SIZES))
    return np.concatenate(list(layers))


def forward(parameters: FloatArray, pixels: Single) -> tuple[list[Single], Single]:
    """The inputs of each layer, each with a column of ones, and the log-probabilities of the digits."""
    here, inputs = pixels, []
    weights = list(_layers(parameters))
    for depth, weight in enumerate(weights):
        here = np.hstack([here, np.ones((len(here), 1), np.float32)])
        inputs.append(here)
        here = here @ weight
        if depth < len(weights) - 1:
            here = np.maximum(here, 0.0)
    here = here - here.max(axis=1, keepdims=True)
    return inputs, here - np.log(np.exp(here).sum(axis=1, keepdims=True))


def clipped_sum_of(pixels: Single, digits: Ints, clip: float) -> ClippedSum:
    """The sum of cross-entropy gradients, each clipped to `clip`."""

    def clipped_sum(parameters: FloatArray, rows: Ints, counts: Ints) -> FloatArray:
        inputs, log_chances = forward(parameters, pixels[rows])
        error = np.exp(log_chances)
        error[np.arange(rows.size), digits[rows]] -= 1.0
        errors = _backward(parameters, inputs, error)
        squared = sum(_squares(x) * _squares(e) for x, e in zip(inputs, errors, strict=True))
        norms = np.maximum(np.sqrt(squared), 1e-30)
        weights = (counts * np.minimum(1.0, clip / norms)).astype(np.float32)[:, None]
        sums = [(x.T @ (weights * e)).ravel() for x, e in zip(inputs, errors, strict=True)]
        return np.concatenate(sums).astype(np.float64)

    return clipped_sum


def accuracy(parameters: FloatArray, pixels: Single, digits: Ints) -> float:
    """The share of digits classified correctly."""
    return float(np.mean(forward(parameters, pixels)[1].argmax(axis=1) == digits))


def _backward(parameters: FloatArray, inputs: list[Single], error: Single) -> list[Single]:
    """The error at the output of each layer."""
    errors = [error]
    weights = list(_layers(parameters))
    for depth in range(len(weights) - 1, 0, -1):
        errors.insert(0, (errors[0] @ weights[depth][:-1].T) * (inputs[depth][:, :-1] > 0))
    return errors


def _layers(parameters: FloatArray) -> Iterator[Single]:
    at = 0
    for inputs, outputs in pairwise(SIZES):
        size = (inputs + 1) * outputs
        yield parameters[at : at + size].reshape(inputs + 1, outputs).astype(np.float32)
        at += size


def _squares(rows: Single) -> FloatArray:
    squares: FloatArray = np.einsum("ij,ij->i", rows, rows, dtype=np.float64)
    return squares
