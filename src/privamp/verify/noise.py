"""The additive noise of the library's mechanisms, as the exact verifier needs it.

Written from the definitions, independently of the mechanisms' own curves, so that the two can be compared.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.special import ndtr

from ..core.mechanism import Mechanism
from ..errors import NoTheorem
from ..numerics.log_domain import FloatArray

Function = Callable[[FloatArray], FloatArray]
_SCALES = 45.0  # e^-45 is below 1e-19
_SIGMAS = 10.0  # and so is the normal density there, relative to its top


@dataclass(frozen=True, slots=True)
class Noise:
    """Noise around zero; beyond `reach` its mass is negligible."""

    is_discrete: bool
    reach: float
    density: Function  # the probability mass on whole numbers when discrete
    below: Function  # its distribution function, unused when discrete


def laplace(scale: float) -> Noise:
    """Density e^(-|t|/scale) / (2 scale)."""

    def below(t: FloatArray) -> FloatArray:
        tail = 0.5 * np.exp(-np.abs(t) / scale)
        return np.where(t < 0, tail, 1.0 - tail)

    return Noise(False, _SCALES * scale, lambda t: np.exp(-np.abs(t) / scale) / (2.0 * scale), below)


def gaussian(sigma: float) -> Noise:
    """Normal with standard deviation sigma."""
    top = 1.0 / (sigma * math.sqrt(2.0 * math.pi))
    return Noise(
        False,
        _SIGMAS * sigma,
        lambda t: top * np.exp(-0.5 * (t / sigma) ** 2),
        lambda t: np.asarray(ndtr(t / sigma)),
    )


def discrete_laplace(scale: float) -> Noise:
    """Probability proportional to e^(-|k|/scale) on the whole numbers."""
    top = math.tanh(0.5 / scale)
    return _discrete(_SCALES * scale, lambda k: top * np.exp(-np.abs(k) / scale))


def discrete_gaussian(sigma: float) -> Noise:
    """Probability proportional to e^(-k^2 / (2 sigma^2)) on the whole numbers."""
    reach = math.ceil(_SIGMAS * sigma) + 1
    total = float(np.exp(-0.5 * (np.arange(-2 * reach, 2 * reach + 1) / sigma) ** 2).sum())
    return _discrete(reach, lambda k: np.exp(-0.5 * (k / sigma) ** 2) / total)


def _discrete(reach: float, mass: Function) -> Noise:
    return Noise(True, reach, mass, mass)


_KINDS: dict[str, Callable[[Any], Noise]] = {
    "Laplace": lambda m: laplace(m.scale),
    "Gaussian": lambda m: gaussian(m.sigma),
    "DiscreteLaplace": lambda m: discrete_laplace(m.scale),
    "DiscreteGaussian": lambda m: discrete_gaussian(m.drawn_sigma),
    "GeometricCount": lambda m: discrete_laplace(1.0 / m.epsilon),
}


def noise_of(mechanism: Mechanism) -> Noise:
    """The noise a mechanism adds to a sum, or NoTheorem when it adds none that is known here."""
    kind = type(mechanism).__name__
    if kind not in _KINDS:
        raise NoTheorem(f"the exact verifier knows the noise of {', '.join(_KINDS)}, but not of {kind}")
    return _KINDS[kind](mechanism)


def sum_values(mechanism: Any) -> tuple[float, ...]:
    """Values of a record that use the whole sensitivity: one end, the middle, the other end.

    Add/remove: -C, 0, C. Replace-one: a range as wide as the sensitivity, whole numbers for discrete noise.
    """
    width = getattr(mechanism, "sensitivity", 1)
    if mechanism.neighbors.kind == "add-remove":
        return (-width, 0, width)
    if noise_of(mechanism).is_discrete:
        return tuple(sorted({-(width // 2), 0, width - width // 2}))
    return (-width / 2, 0.0, width / 2)
