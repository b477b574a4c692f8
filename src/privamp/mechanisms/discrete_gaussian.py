"""Discrete Gaussian noise: a whole number k added with chance proportional to e^(-k^2/(2 sigma^2)).

Profile, whole shift s: outcome k has loss l_k = s (2k - s)/(2 sigma^2), and delta(eps) sums p_k (1 - e^(eps
- l_k)) over l_k > eps. Below sigma = 2000 the sum runs over a table of 60 sigma on either side; what lies
outside (under e^-1800) counts as lost. From there on it is the Euler-Maclaurin sum: in units of sigma, h =
1/sigma, a = (m - s)/sigma at the first outcome m that counts, b = m/sigma, E = 1 - e^(eps - l_m), H3(x) =
x^3 - 3x,

    delta/phi(a) = M(a) - M(b) + E M(b) + h E/2 + h^2 (E b - (b-a))/12 - h^4 (E H3(b) - H3(b) + H3(a))/720.

That is one number. Unlike the continuous Gaussian it is not rotation invariant, so a vector that moves in
several entries (`dimension` > 1, l2 sensitivity) has a bound of its own: see discrete_gaussian_vectors.py.
Canonne, Kamath & Steinke 2020. No proof says that more discrete Gaussian noise is always more private, so the
curve is that of the sigma that is drawn, `rational_scale(sigma)`.
"""

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from ..chance.discrete import discrete_gaussian, rational_scale
from ..chance.stream import Stream
from ..core.curves import discrete_curve
from ..core.mechanism import ONE, Change, Mechanism
from ..core.multiplicity import Multiplicity
from ..core.neighbors import Neighbors, check_relation
from ..core.profile import Curve, Profile
from ..core.row_sums import RowBound
from ..errors import InvalidInput, NoTheorem
from ..numerics.log_domain import FloatArray, log1mexp, log_mills_gap, log_normal_density, mills
from ..validation import whole
from .discrete_gaussian_vectors import discrete_gaussian_vector_curve
from .discrete_mixture import ENTRIES, discrete_mixture, identical
from .gaussian import Gaussian
from .noise import check_sizes, check_whole_sensitivity, like, shift_of, whole_numbers, whole_shift_of

_REACH = 60.0  # the table reaches this many sigmas: e^-1800, far below the smallest double
_RIPPLE, _SMOOTHED = 1e-22, 0.4358  # eta of the covering noise, and the largest s/sigma: sigma' is .9 sigma there
_SMOOTH = 2000.0  # from this sigma on the sum is smooth to the last digit


def log_normaliser(sigma: float) -> float:
    """log of sum_k e^(-k^2/(2 sigma^2)); from sigma = 1 on by Poisson summation."""
    if sigma >= 1.0:
        ripple = 2.0 * math.exp(-2.0 * (math.pi * sigma) ** 2)
        return math.log(sigma) + 0.5 * math.log(2.0 * math.pi) + math.log1p(ripple)
    return math.log1p(2.0 * math.fsum(math.exp(-0.5 * (k / sigma) ** 2) for k in range(1, 41)))


def _reach(sigma: float) -> int:
    return math.ceil(_REACH * sigma) + 2


def _log_outside(sigma: float) -> float:
    """log of a bound on Pr[k > reach], by the geometric series that its first ratio gives."""
    first = _reach(sigma) + 1
    ratio = -(first + 0.5) / sigma**2
    return -0.5 * (first / sigma) ** 2 - log_normaliser(sigma) - float(log1mexp(ratio))


def _tabulated_curve(sigma: float, shift: int) -> Curve:
    first = max(shift // 2 + 1, shift - _reach(sigma))
    k = np.arange(first, shift + _reach(sigma) + 1, dtype=np.float64)
    losses = (0.5 * shift / sigma) * ((2.0 * k - shift) / sigma)
    log_p = -0.5 * ((k - shift) / sigma) ** 2 - log_normaliser(sigma)
    return discrete_curve(losses, log_p, _log_outside(sigma) + math.log(2.0))


def _smooth_curve(sigma: float, shift: int) -> Curve:
    theta, h = shift / sigma, 1.0 / sigma
    last = theta * (_REACH + 0.5 * theta)

    def log_delta(epsilon: FloatArray) -> FloatArray:
        at = np.minimum(epsilon, last)  # constant beyond: an upper bound
        start = at * sigma / theta + 0.5 * shift  # where the loss equals eps
        m = np.ceil(start)
        rise = -np.expm1(-(theta * h) * (m - start))
        a, b = (m - shift) / sigma, m / sigma
        cubes = theta * (a * a + a * b + b * b - 3.0)
        more = rise * (mills(b) + 0.5 * h)
        more += h**2 * (rise * b - theta) / 12.0 - h**4 * (rise * (b**3 - 3.0 * b) - cubes) / 720.0
        with np.errstate(over="ignore", divide="ignore"):
            log_gap = log_mills_gap(a, theta)
            return log_gap + np.log1p(more * np.exp(log_normal_density(a) - log_gap))

    return Curve(log_delta)


def discrete_gaussian_curve(sigma: float, shift: int) -> Curve:
    """Discrete Gaussian noise moved by a whole shift."""
    if shift == 0:
        return identical().forward
    if sigma >= _SMOOTH and shift / sigma + _REACH < 0.05 * sigma:
        return _smooth_curve(sigma, shift)
    if sigma * _REACH > ENTRIES:
        raise NoTheorem(
            f"a shift of {shift} against sigma = {sigma:g} is beyond the table; use a smaller shift or more noise"
        )
    return _tabulated_curve(sigma, shift)


@dataclass(frozen=True, slots=True)
class DiscreteGaussian(Mechanism):
    """Discrete Gaussian noise on one whole number, or on `dimension` of them together, drawn exactly.

    Each number x gets noise of probability proportional to exp(-x^2/(2 sigma^2)). `sensitivity` is the most that one
    change of the data moves the numbers (l2 norm), under the relation `neighbors`. In one dimension the curve is exact,
    in several it is an upper bound.

    >>> f"{DiscreteGaussian(sigma=1.0).profile(Neighbors.ADD_REMOVE).delta(0.0):.4f}"
    '0.3989'
    >>> two = DiscreteGaussian(sigma=20.0, sensitivity=math.sqrt(2), dimension=2)
    >>> f"{two.profile(Neighbors.ADD_REMOVE).delta(0.0):.4f}"
    '0.0282'
    """

    sigma: float
    sensitivity: float = 1  # whole for one number, the l2 norm for several
    neighbors: Neighbors = Neighbors.ADD_REMOVE
    dimension: int = 1

    def __post_init__(self) -> None:
        whole(1, 2**40, dimension=self.dimension)
        if self.dimension == 1:
            check_whole_sensitivity(self.sensitivity)
        check_sizes(self.sensitivity, sigma=self.sigma)
        check_relation(self.neighbors)
        rational_scale(self.sigma)  # rejects a sigma that cannot be drawn

    @property
    def drawn_sigma(self) -> float:
        """The sigma of the noise that is drawn: the declared one, or just above it."""
        return float(rational_scale(self.sigma))

    @property
    def covering(self) -> Gaussian | None:
        """Continuous noise of sigma' = sqrt(sigma^2 - s^2), where that is at least .9 sigma.

        Up to a factor 1 +- eta, below 1e-22 in all dimensions together, this noise is post-processing of it
        (docs/exact_noise.md, Thm 3), and bounds are rounded up by far more.
        """
        sigma = self.drawn_sigma
        s = math.sqrt((math.log(2.0 * self.dimension) - math.log(_RIPPLE)) / 2.0) / math.pi
        if s > _SMOOTHED * sigma:
            return None
        return Gaussian(math.sqrt((sigma - s) * (sigma + s)) * (1.0 - 1e-12), self.sensitivity, self.neighbors)

    @property
    def is_covered_exactly(self) -> bool:
        """No: the exact curve of one number is known, and is smaller."""
        return False

    @property
    def hides_vectors(self) -> bool:  # type: ignore[override]
        """Whether the curve is that of several numbers."""
        return self.dimension > 1

    def profile(self, neighbors: Neighbors, change: Change = ONE) -> Profile:
        """The exact curve of one number, an upper bound for several; symmetric."""
        if self.dimension > 1:
            norm = shift_of(self, self.sensitivity, neighbors, change)
            return Profile.symmetric(discrete_gaussian_vector_curve(self.drawn_sigma, norm, self.dimension))
        shift = whole_shift_of(self, int(self.sensitivity), neighbors, change)
        return Profile.symmetric(discrete_gaussian_curve(self.drawn_sigma, shift))

    def mixture(self, neighbors: Neighbors, law: Multiplicity) -> Profile | None:
        """The profile of (sum_u p_u M(u s), M(0)) but for what lies 60 sigma out; None for vectors and long tables."""
        if self.dimension > 1:
            return None
        shift, sigma = whole_shift_of(self, int(self.sensitivity), neighbors, ONE), self.drawn_sigma
        last, reach = shift * law.log_p.size, _reach(sigma)
        if last == 0:
            return identical()
        if (last + 2 * reach + 1) * law.log_p.size > ENTRIES:
            return None
        k = np.arange(-reach, last + reach + 1, dtype=np.float64)
        log_q = -0.5 * (k / sigma) ** 2 - log_normaliser(sigma)
        moved = law.counts * shift
        log_ratio = (0.5 * moved / sigma) * ((2.0 * k[:, None] - moved) / sigma)
        return discrete_mixture(log_q, log_ratio, law, goes_on=True)

    @property
    def row_bound(self) -> RowBound:
        """Whole numbers, by their l2 norm."""
        replaced = self.neighbors.kind == "replace-one"
        return RowBound(self.sensitivity, 2.0, self.sigma, is_whole=True, are_replaced=replaced, width=self.dimension)

    def release(self, value: Any, stream: Stream) -> Any:
        """The whole numbers with discrete Gaussian noise; with dimension 1 each entry is protected separately."""
        array = whole_numbers(value)
        if self.dimension > 1 and array.shape[-1:] != (self.dimension,):
            raise InvalidInput(f"the last axis must be {self.dimension} long, got shape {array.shape}")
        return like(value, array + discrete_gaussian(stream, self.sigma, array.size).reshape(array.shape))
