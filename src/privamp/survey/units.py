"""Weighted totals of designs with public weights, how far one record moves them, and the noise that hides it.

A unit is a record, or a cluster. The weighted total T = sum of w_i z_i over the sample, |z_i| <= B, moves by at most
B max(w) with one record. Its sampling variance is estimated by V = Q - shrink T^2,

    Q = first sum_c (sum_{i in c} z_i / r)^2 + sum_i second_i z_i^2,

with the weights and coefficients that the design gives (`Design.weighting`). With at most c records in a cluster, a
cluster's total is at most C = cB/r and one record moves it by at most u = B/r, so one record moves Q by at most
first u(2C - u) + second B^2.
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache

import numpy as np
from numpy.typing import ArrayLike

from ..amplification import quick_bound
from ..calibration import calibrate
from ..core.design import Design
from ..core.neighbors import Neighbors
from ..core.sample import Drawn, Sample
from ..core.weighting import Weighting
from ..errors import Infeasible, NoTheorem
from ..mechanisms.black_box import PureDP
from ..mechanisms.fixed_point import ExactGaussian, Whole
from ..numerics.log_domain import FloatArray
from ..numerics.roots import least_passing
from .exact import ExactRelease, Lattice, summed
from .frame import batch_of, check_given

_MOST_NOISE = 1e9  # over what one record moves


@dataclass(frozen=True, slots=True)
class Units:
    """A design's weights, with what is computed by them."""

    by: Weighting

    @property
    def is_sum(self) -> bool:
        """Whether Q is a sum over records; squares of clusters' totals are not."""
        return self.by.cluster is None

    def total(self, release: ExactRelease, which: int, values: FloatArray, drawn: Drawn) -> Whole:
        """The Horvitz-Thompson total, in units of the grid; a record drawn twice counts twice."""
        at = np.repeat(drawn.positions, drawn.counts)
        return release.total(which, values[at], self.by.weight[at])

    def squares(self, release: ExactRelease, which: int, values: FloatArray, most: float, drawn: Drawn) -> Whole:
        """Q of values no farther than `most` from 0, in units of the grid."""
        at = np.repeat(drawn.positions, drawn.counts)
        found = release.total(which, values[at] ** 2, self.by.second[at])
        if self.by.cluster is None:
            return found
        lattice = Lattice.of(np.array([most]), self.by.cap)
        clusters = int(self.by.cluster.max(initial=0)) + 1
        totals = summed(self.by.cluster[at], lattice.whole(values[at]), clusters).tolist()
        each = Fraction(self.by.first * (float(lattice.unit[0]) / self.by.rate) ** 2)
        return found + release.once(which, each * sum(t * t for t in totals))

    def squares_reach(self, most: float) -> float:
        """How far one record moves Q when no value is farther than `most` from 0."""
        u = most / self.by.rate
        clustered = self.by.first * u * u * (2.0 * self.by.cap - 1.0) if self.by.cluster is not None else 0.0
        return max(clustered + self.by.second_most * most**2, 1e-12 * (self.by.heaviest * most) ** 2)

    def largest_variance(self, most: float, records: float) -> float:
        """The sampling variance of the worst population within the bounds and caps."""
        return self.by.spread_most * most**2 * (records if self.by.per_record else 1.0)


def units_of(sample: Sample, population: float | None, columns: Mapping[str, ArrayLike | None]) -> Units:
    """The units of the sample's design; raises if it has no public weights.

    `columns` may be given again, and must be those of the draw.
    """
    design, batch = sample.design, batch_of(sample)
    for name, given in columns.items():
        if given is not None and name in design.reads:
            check_given(name, given, batch.column(name))
    found = design.weighting(int(batch.ids.size), population, {name: batch.column(name) for name in design.reads})
    if found is None:
        raise NoTheorem(
            f"{type(design).__name__} has no public weights, because {design.unweighted}, so surveys cannot use it; "
            "release a sum with Sample.release and weight it yourself"
        )
    return Units(found)


@dataclass(frozen=True, slots=True)
class SignalToNoise:
    """The largest signal-to-noise ratio of one record inside the sample: reach/scale of everything released
    together."""

    noise: str  # "laplace" or "gaussian"
    theta: float

    @property
    def sd(self) -> float:
        """The standard deviation of noise of scale 1."""
        return math.sqrt(2.0 if self.noise == "laplace" else 1.0)

    def part(self, share: float) -> float:
        """What a share of the budget allows: Laplace losses add up, Gaussian ones in squares."""
        return self.theta * (share if self.noise == "laplace" else math.sqrt(share))


def signal_to_noise(design: Design, noise: str, epsilon: float, delta: float) -> SignalToNoise:
    """The largest ratio that the design amplifies to the budget."""
    return SignalToNoise(noise, inner_shift(design, epsilon, delta) if delta else inner_epsilon(design, epsilon))


@lru_cache(maxsize=256)
def inner_epsilon(design: Design, epsilon: float) -> float:
    """The largest pure loss inside the sample that the design amplifies to epsilon."""
    found = calibrate(lambda x: PureDP(1.0 / x, Neighbors.ADD_REMOVE), design, epsilon=epsilon)
    assert isinstance(found, PureDP)
    return found.epsilon


@lru_cache(maxsize=256)
def inner_shift(design: Design, epsilon: float, delta: float) -> float:
    """The largest shift over sigma inside the sample, to 0.01%, that the design amplifies to (epsilon, delta).

    Bounds found by a search differ a little between one noise and the next, so a thousandth of delta is left.
    """
    wanted = math.log(delta) - 1e-3

    def excess(sigma: float) -> float:
        bound = quick_bound(ExactGaussian(sigma, 1.0), design)
        return float(bound.log_delta(epsilon)) - wanted

    low = high = 1.0
    while excess(high) > 0.0:
        low, high = high, 2.0 * high
        if high > _MOST_NOISE:
            raise Infeasible(
                f"no Gaussian noise makes a release from {type(design).__name__} ({epsilon:g}, {delta:g})-DP; use a "
                "larger budget, or another design"
            )
    while low == high and excess(0.5 * low) <= 0.0 and low > 1.0 / _MOST_NOISE:
        low = high = 0.5 * low
    found = least_passing(excess, 0.5 * high, high, relative=1e-4)
    return (1.0 - 1e-12) / ExactGaussian(found, 1.0).covering.sigma
