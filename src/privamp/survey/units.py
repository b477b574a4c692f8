"""Weighted totals of designs with public weights, for pure mechanisms, and how far one record moves them.

A unit is a record, or a cluster. The weighted total T = sum of w_i z_i over the sample, |z_i| <= B, moves by at most
B max(w) with one record. Its sampling variance is estimated by V = Q - shrink T^2,

    Q = first sum_c (sum_{i in c} z_i / r)^2 + sum_i second_i z_i^2,

with the weights and coefficients that the design gives (`Design.weighting`). With at most c records in a cluster, a
cluster's total is at most C = cB/r and one record moves it by at most u = B/r, so one record moves Q by at most
first u(2C - u) + second B^2.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache

import numpy as np
from numpy.typing import ArrayLike

from ..calibration import calibrate
from ..core.design import Design
from ..core.neighbors import Neighbors
from ..core.sample import Drawn, Sample
from ..core.weighting import Weighting
from ..errors import NoTheorem
from ..mechanisms.black_box import PureDP
from ..mechanisms.fixed_point import Whole
from ..numerics.log_domain import FloatArray
from .exact import ExactRelease, Lattice, summed
from .frame import batch_of, check_given


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
    """The units of the sample's design, or a sentence that says why it has no public weights.

    `columns` may be given again, and must be those of the draw.
    """
    design, batch = sample.design, batch_of(sample)
    for name, given in columns.items():
        if given is not None and name in design.reads:
            check_given(name, given, batch.column(name))
    found = design.weighting(int(batch.ids.size), population, {name: batch.column(name) for name in design.reads})
    if found is None:
        raise NoTheorem(
            f"{type(design).__name__} has no weights that are public and the same in every population, so a survey "
            "cannot estimate from it; release a sum by Sample.release and weight it yourself"
        )
    return Units(found)


@lru_cache(maxsize=256)
def inner_epsilon(design: Design, epsilon: float) -> float:
    """The largest pure loss inside the sample that the design amplifies to epsilon."""
    found = calibrate(lambda x: PureDP(1.0 / x, Neighbors.ADD_REMOVE), design, epsilon=epsilon)
    assert isinstance(found, PureDP)
    return found.epsilon
