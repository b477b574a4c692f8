"""What every kind of design provides: weights, how far one record moves a weighted sum, and a sum's variance.

Strata drawn without replacement are stated for replaced records; strata drawn by coins, and every other design with
public weights, for one record more. `theta` is the loss that is allowed inside the sample, stratum by stratum.
"""

import math
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from ..core.neighbors import Neighbors
from ..core.sample import Drawn
from ..errors import InvalidInput
from ..mechanisms.fixed_point import Whole
from ..numerics.log_domain import FloatArray
from .clustered import clusters_of
from .estimation import WeightedTotals
from .exact import ExactRelease
from .frame import EVERYBODY, Frame, Name, frame_of
from .groups import Groups
from .hidden_signal import signal, strength
from .released import PaidSample
from .units import Units, signal_to_noise, units_of

_COMPOSED = 2e-6  # two Gaussian releases by strata are composed numerically, which rounds up


@dataclass(frozen=True, slots=True)
class Basis:
    """The public side of a sample: arrays over records (n,) and over strata (H,)."""

    names: tuple[Name, ...]
    weight: FloatArray = field(repr=False)  # (n,)
    heaviest: FloatArray  # (H,)
    theta: FloatArray  # (H,)
    is_replaced: bool  # whether `theta` is for a replaced record, which moves two of them
    is_within: bool
    relation: Neighbors
    records: float | None  # N, where it is public
    of: Frame | Units = field(repr=False)
    is_equal: bool = False  # one weight for all records, in every population
    df: float = math.inf  # degrees of freedom of a sampling error

    def part(self, part: float, noise: str) -> "Basis":
        """The same with a share of the budget."""
        return replace(self, theta=self.share(part, noise)) if part < 1.0 else self

    def share(self, part: float, noise: str) -> FloatArray:
        """What a share of the budget allows: Laplace losses add up, Gaussian ones in squares."""
        return self.theta * (part if noise == "laplace" else float(np.sqrt(part)))

    @property
    def is_sum(self) -> bool:
        """Whether the variance is a sum over records."""
        return not self.of.fixed if isinstance(self.of, Frame) else self.of.is_sum

    @property
    def variance_reach(self) -> FloatArray:
        """How far one record moves the estimated variance of a weighted sum of numbers within -1 and 1."""
        if isinstance(self.of, Frame):
            return self._totals(np.zeros_like(self.weight)).variance_reach
        return np.array([self.of.squares_reach(1.0)])

    def variance(self, release: ExactRelease, which: int, rows: FloatArray, drawn: Drawn) -> Whole:
        """The estimated sampling variance of a weighted sum of rows within -1 and 1, in units of the grid."""
        if isinstance(self.of, Frame):
            return self._totals(rows).variances(release, drawn, which)
        return self.of.squares(release, which, rows, 1.0, drawn)

    @property
    def squares_reach(self) -> FloatArray:
        """How far one record moves the weighted sum of squares of numbers within -1 and 1."""
        return self.heaviest

    def squares(self, release: ExactRelease, which: int, rows: FloatArray, drawn: Drawn) -> Whole:
        """The weighted sum of squares of rows within -1 and 1, less one half of each where records are replaced."""
        at = np.repeat(drawn.positions, drawn.counts)
        return release.total(which, rows[at] ** 2 - self.half_square, self.weight[at])

    @property
    def half_square(self) -> float:
        """What squares are measured from: their middle where all weights together are public, so that one record adds
        half of what a replaced one moves, as `ExactRelease.mechanism` states it; 0 elsewhere.
        """
        return 0.5 if self.is_replaced else 0.0

    @property
    def average_weight(self) -> float | None:
        """Of the records drawn, where it is public."""
        if isinstance(self.of, Frame) and self.records is not None:
            return self.records / float(np.sum(self.of.rate * self.of.records))
        return float(self.heaviest[0]) if self.is_equal else None

    def _totals(self, rows: FloatArray) -> WeightedTotals:
        assert isinstance(self.of, Frame)
        ones = np.ones_like(self.of.rate)
        frame = replace(self.of, low=-ones, high=ones, values=rows)
        everybody = Groups((EVERYBODY,), np.zeros(rows.size, dtype=np.intp), frame.records[None, :], is_one=True)
        return WeightedTotals(frame, "total", everybody, None)


def basis_of(asked: PaidSample, records: int, options: Any) -> Basis:
    """The basis of a drawn sample under the budget of the options."""
    strength(options.noise, np.array([float(options.epsilon)]), options.delta)  # a budget that the noise can keep
    design, population = asked.design, options.population
    if not design.parts and design.equal_chances is None:
        return _weighted(asked, records, options)
    frame = frame_of(asked.sample, np.zeros(records), (-1.0, 1.0), options.stratum, population)
    theta = signal(tuple(frame.rate.tolist()), float(options.epsilon), options.delta, options.noise)
    theta = theta * (1.0 - (_COMPOSED if options.noise == "gaussian" else 0.0))
    total = float(frame.records.sum())
    return Basis(
        frame.names, frame.weight[frame.which], frame.weight, theta, frame.fixed,
        frame.relation.scope == "within stratum", frame.relation, None if np.isnan(total) else total, frame,
        len(frame.names) == 1,
    )  # fmt: skip


def _weighted(asked: PaidSample, records: int, options: Any) -> Basis:
    design, known = asked.design, options.population
    is_public = design.natural.kind != Neighbors.ADD_REMOVE.kind and design.public_size is not None
    if is_public and design.public_size != records:
        raise InvalidInput("the design must declare as many records as the frame has; declare that number")
    known = float(records) if is_public else None if known is None else float(known)
    units = units_of(asked.sample, known, options.columns)
    if units.by.refusal:
        raise InvalidInput(units.by.refusal)
    theta = signal_to_noise(design, options.noise, float(options.epsilon), options.delta).theta
    clusters = clusters_of(units)
    return Basis(
        (EVERYBODY,), units.by.weight, np.array([units.by.heaviest]), np.array([theta]), False, False, design.natural,
        known, units, design.weight is not None, math.inf if clusters is None else clusters.drawn - 1,
    )  # fmt: skip
