"""Stochastic gradient descent on samples by any design: linear and logistic regression, or your own gradients."""

from .descent import ClippedSum, Descended, Descent
from .regression import PrivateLinear, PrivateLogistic

__all__ = ["ClippedSum", "Descended", "Descent", "PrivateLinear", "PrivateLogistic"]
