"""The three noises a sum can have, by name: how they are made, and how large their error is."""

import math

from scipy.special import gammaln

from ..core.mechanism import Mechanism
from ..errors import InvalidInput
from ..mechanisms.fixed_point import ExactGaussian, ExactLaplace
from ..mechanisms.gaussian import Gaussian
from ..mechanisms.laplace import Laplace
from ..mechanisms.norm_noise import NormNoise
from ..validation import in_range, one_of

KINDS = ("laplace", "norm", "gaussian")


def check_noise(noise: str, delta: float, arithmetic: str, p: float) -> None:
    """The combinations that make sense."""
    one_of(KINDS, noise=noise)
    one_of(("exact", "idealised"), arithmetic=arithmetic)
    in_range(0, 1, delta=delta)
    in_range(1, math.inf, p=p)
    if noise == "gaussian" and not 0 < delta < 1:
        raise InvalidInput(f"delta must be strictly between 0 and 1 for gaussian noise, got {delta!r} instead")
    if noise != "gaussian" and delta:
        raise InvalidInput(f"delta must be 0 for {noise} noise, which needs none, got {delta!r} instead")


def norm_of(noise: str, p: float) -> float:
    """In which norm records are clipped and measured."""
    return {"laplace": 1.0, "gaussian": 2.0}.get(noise, p)


def make_noise(
    noise: str, arithmetic: str, scale: float, dimension: int, p: float, longest: float, grid: float
) -> Mechanism:
    """The mechanism for rows of norm up to `longest`; norm noise is only known in idealised arithmetic."""
    if noise == "norm":
        return NormNoise(scale, dimension, p, longest)
    if arithmetic == "exact":
        return (ExactLaplace if noise == "laplace" else ExactGaussian)(scale, longest, grid)
    return (Laplace if noise == "laplace" else Gaussian)(scale, longest)


def standard_error(noise: str, scale: float, dimension: int, p: float) -> float:
    """The standard deviation of the noise in one coordinate."""
    if noise == "gaussian":
        return scale
    if noise == "laplace":
        return math.sqrt(2.0) * scale
    return scale * math.sqrt(dimension * (dimension + 1.0) * _mean_square(dimension, p))


def _mean_square(d: int, p: float) -> float:
    """E[u_1^2] for a point of the cone measure on the p-sphere: a ratio of moments of Gamma(1/p)^(1/p)."""
    if p == math.inf:
        return (1.0 + (d - 1.0) / 3.0) / d
    return math.exp(gammaln(3.0 / p) - gammaln(1.0 / p) + gammaln(d / p) - gammaln((d + 2.0) / p))
