"""Designs with public weights whose theorems are for pure mechanisms under add/remove, as sampled units.

A unit is a record, or a cluster. The weighted total T = sum of w_i z_i over the sample, |z_i| <= B, moves by at most
B max(w) with one record. Its sampling variance is estimated by V = Q - shrink T^2,

    Q = first sum_c (sum_{i in c} z_i / r)^2 + sum_i second_i z_i^2,

- clusters, l of k, coins of chance r inside: w = k/(l r), first = (k/l)^2 (1-l/k) l/(l-1), second = (k/l) (1-r)/r^2,
  shrink = (1-l/k)/(l-1): the textbook two-stage estimator, whose spread of the l cluster totals needs only their
  squares and T. With at most c records in a cluster, a total is at most C = cB/r and one record moves it by at most
  u = B/r, so one record moves Q by at most first u(2C - u) + second B^2;
- a fixed share q, rounded at random, of N records: first = 0, second = (1-q)/q^2 m/(m-1), m = qN,
  shrink = (1-q)/(m-1) less v/(qN)^2, v the variance of the rounded size. With N secret second is (1-q)/q^2, and a
  noisy count takes the place of m (`pure`);
- coins of chance q_i: second_i = (1-q_i)/q_i^2, which falls with q_i; nothing else.
"""

from dataclasses import dataclass, field
from fractions import Fraction
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ..calibration import calibrate
from ..core.design import Design
from ..core.neighbors import Neighbors
from ..core.sample import Drawn, Sample
from ..designs.cluster import ClusterSampling
from ..designs.poisson_pps import PoissonPPS
from ..designs.proportional import Proportional
from ..designs.systematic import Systematic
from ..errors import InvalidInput, NoTheorem
from ..mechanisms.black_box import PureDP
from ..mechanisms.fixed_point import Whole
from ..numerics.log_domain import FloatArray
from .draw_columns import batch_of, check_given
from .exact import Lattice, Release, summed

COVERED = (ClusterSampling, Systematic, Proportional, PoissonPPS)


@dataclass(frozen=True, slots=True)
class Units:
    """Public weights and the coefficients of the variance."""

    weight: FloatArray = field(repr=False)  # (n,)
    heaviest: float  # of every population
    rate: float  # q of a fixed share, r of the second stage in clusters
    first: float
    second: FloatArray = field(repr=False)  # (n,)
    second_most: float  # of every population
    shrink: float
    spread_most: float  # the sampling variance is at most this times B^2 (times N for `per_record`)
    per_record: bool = False
    cluster: NDArray[np.int64] | None = field(default=None, repr=False)  # (n,)
    cap: int = 1
    refusal: str = ""  # why no variance can be estimated, if so

    @property
    def is_sum(self) -> bool:
        """Whether Q is a sum over records; squares of clusters' totals are not."""
        return self.cluster is None

    def total(self, release: Release, which: int, values: FloatArray, drawn: Drawn) -> Whole:
        """The Horvitz-Thompson total, in units of the grid."""
        at = drawn.positions
        return release.total(which, values[at], self.weight[at])

    def squares(self, release: Release, which: int, values: FloatArray, most: float, drawn: Drawn) -> Whole:
        """Q of values no farther than `most` from 0, in units of the grid."""
        at = drawn.positions
        found = release.total(which, values[at] ** 2, self.second[at])
        if self.cluster is None:
            return found
        lattice = Lattice.of(np.array([most]), self.cap)
        totals = summed(self.cluster[at], lattice.whole(values[at]), int(self.cluster.max(initial=0)) + 1).tolist()
        each = Fraction(self.first * (float(lattice.unit[0]) / self.rate) ** 2)
        return found + release.once(which, each * sum(t * t for t in totals))

    def squares_reach(self, most: float) -> float:
        """How far one record moves Q when no value is farther than `most` from 0."""
        u = most / self.rate
        clustered = self.first * u * u * (2.0 * self.cap - 1.0) if self.cluster is not None else 0.0
        return max(clustered + self.second_most * most**2, 1e-12 * (self.heaviest * most) ** 2)

    def largest_variance(self, most: float, records: float) -> float:
        """The sampling variance of the worst population within the bounds and caps."""
        return self.spread_most * most**2 * (records if self.per_record else 1.0)


def units_of(
    sample: Sample, population: float | None, cluster: ArrayLike | None, probability: ArrayLike | None
) -> Units:
    """The units of a covered design, or a sentence that says why it has no public weights."""
    design, batch = sample.design, batch_of(sample)
    records = int(batch.ids.size)
    if isinstance(design, ClusterSampling):
        check_given("cluster", cluster, batch.column("cluster"))
        return _clusters(design, batch.column("cluster"))
    if isinstance(design, PoissonPPS):
        q = design.probabilities(batch)
        check_given("probability", probability, q if design.per_size else batch.column("probability"))
        return _coins(design, q)
    if isinstance(design, Systematic) and design.order == "slots":
        cap = design.max_slot or 1
        return _slot(design.step, cap, records)
    assert isinstance(design, Systematic | Proportional)
    if design.how != "random":
        raise NoTheorem(
            f"rounding {design.how!r} has no public weights: how many are drawn depends on the secret number of "
            "records; take rounding='random'"
        )
    if design.share == 0:
        raise InvalidInput("a share of 0 cannot be estimated from; give a rate above 0")
    return _share(float(design.share), records, population)


def _clusters(design: ClusterSampling, column: NDArray[Any]) -> Units:
    if design.most_kept is not None:
        raise NoTheorem(
            "clusters that are trimmed, or give a fixed number of members, have weights that depend on their secret "
            "sizes; take a second stage Poisson(rate), or none, and no trim"
        )
    numbers = design.numbers_of(column)
    design.check_sizes(np.bincount(numbers, minlength=design.clusters).astype(np.int64))
    r, k, m, cap = design.rate, design.clusters, design.chosen, max(design.caps)
    if r <= 0:
        raise InvalidInput("a second stage of rate 0 cannot be estimated from; give a rate above 0")
    w, missing = k / m, 1.0 - m / k
    second, n = w * (1.0 - r) / r**2, numbers.size
    most = w * k * missing * cap**2 * k / max(k - 1, 1) + w * k * cap * (1.0 - r) / r
    refusal = "" if m > 1 or k == 1 else "one drawn cluster does not show how clusters differ; draw at least two"
    return Units(
        np.full(n, w / r), w / r, r, w**2 * missing * m / max(m - 1, 1), np.full(n, second), second,
        missing / max(m - 1, 1), most, cluster=numbers, cap=cap, refusal=refusal,
    )  # fmt: skip


def _slot(step: int, cap: int, records: int) -> Units:
    most = step * (step - 1.0) * cap**2 * step / max(step - 1, 1)
    refusal = "" if step == 1 else "one drawn slot does not show how slots differ; take order='random'"
    return Units(
        np.full(records, float(step)), float(step), 1.0, 0.0, np.zeros(records), 0.0, 0.0, most, cap=cap,
        refusal=refusal,
    )  # fmt: skip


def _share(q: float, records: int, population: float | None) -> Units:
    second, shrink, grown = (1.0 - q) / q**2, 0.0, 1.0
    if population is not None:
        m = q * population
        if m <= 1.0:
            raise InvalidInput("a share of one record or less cannot be estimated from; give a larger rate")
        part = m % 1.0
        second *= m / (m - 1.0)
        shrink = (1.0 - q) / (m - 1.0) - part * (1.0 - part) / m**2
        grown = population / (population - 1.0)
    most = (1.0 - q) / q * grown
    ones = np.ones(records)
    return Units(ones / q, 1.0 / q, q, 0.0, second * ones, second, shrink, most, per_record=True)


def _coins(design: PoissonPPS, q: FloatArray) -> Units:
    if design.low <= 0:
        raise InvalidInput("weights 1/probability need a public smallest probability above 0; declare low=")
    low = design.low
    most = (1.0 - low) / low
    return Units(1.0 / q, 1.0 / low, 1.0, 0.0, (1.0 - q) / q**2, most / low, 0.0, most, per_record=True)


@lru_cache(maxsize=256)
def inner_epsilon(design: Design, epsilon: float) -> float:
    """The largest pure loss inside the sample that the design amplifies to epsilon."""
    found = calibrate(lambda x: PureDP(1.0 / x, Neighbors.ADD_REMOVE), design, epsilon=epsilon)
    assert isinstance(found, PureDP)
    return found.epsilon
