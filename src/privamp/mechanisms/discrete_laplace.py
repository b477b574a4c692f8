"""Discrete Laplace noise: a whole number k added with chance proportional to e^(-|k|/scale).

Profile, a = 1/scale, whole shift s, 0 <= eps < a s: outcomes from m on count, m the first whole number with a
(2m - s) > eps. With n = s - m and r = a (2m - s) - eps in (0, 2a],

    delta(eps) = (1 - e^(-a n)) + e^(-a n) (1 - e^(-r)) / (1 + e^(-a)),   0 from eps = a s on: pure (a s)-DP,

all terms positive. It is larger than the continuous curve (scale = s = 1: delta(0) = .4621 against .3935), and
touches that of continuous noise with theta = a s + 2 log cosh(a/2) at every m. The same curve holds for vectors of
whole numbers with independent noise, s their l1 distance: walk there in s unit steps, each of them a-DP. Proofs:
docs/exact_noise.md.
The noise that is drawn has scale `rational_scale(scale)`, never smaller. That is the declared noise plus
independent noise (their ratio of characteristic functions is a mixture of 1 and a discrete Laplace's), so the
declared curve holds.
"""

import math
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from ..chance.discrete import discrete_laplace, rational_scale
from ..chance.stream import Stream
from ..core.curves import pair_attack
from ..core.influence import Influence
from ..core.mechanism import ONE, Change, Mechanism
from ..core.multiplicity import Multiplicity
from ..core.neighbors import Neighbors, check_relation
from ..core.profile import Curve, Profile
from ..core.row_sums import RowBound
from ..numerics.log_domain import FloatArray, as_floats, log1mexp
from .discrete_mixture import ENTRIES, discrete_mixture, identical
from .noise import check_sizes, check_whole_sensitivity, like, whole_numbers, whole_shift_of


def discrete_laplace_curve(rate: float, shift: int) -> Curve:
    """Two-sided geometric noise of ratio e^-rate moved by a whole shift."""
    return Curve(lambda epsilon: log_chain(rate, as_floats(shift), epsilon), rate * shift)


def log_chain(rate: float, shift: FloatArray, epsilon: FloatArray) -> FloatArray:
    """log delta at epsilon >= 0 for whole shifts, by broadcasting."""
    m = np.minimum(np.floor(0.5 * (epsilon / rate + shift)) + 1.0, shift)
    n = shift - m
    r = np.clip(rate * (2.0 * m - shift) - epsilon, 0.0, 2.0 * rate)
    rest = -rate * n + log1mexp(-r) - np.logaddexp(0.0, -rate)
    values = np.asarray(np.logaddexp(log1mexp(-rate * n), rest))
    return np.where(epsilon >= rate * shift, -np.inf, values)


def more_than_continuous(rate: float) -> float:
    """2 log cosh(rate/2), at most rate^2/4: what discreteness adds to theta when a Laplace curve is to cover it."""
    return 2.0 * math.log1p(2.0 * math.sinh(0.25 * rate) ** 2) * (1.0 + 1e-15) if rate < 100.0 else rate


def discrete_laplace_mixture(rate: float, shift: int, law: Multiplicity) -> Profile | None:
    """The exact profile of the pair, or None when the table would be too long."""
    last = shift * law.log_p.size
    if last == 0:
        return identical()
    if (last + 1) * law.log_p.size > ENTRIES:
        return None
    k = np.arange(last + 1, dtype=np.float64)[:, None]  # the two ends stand for all beyond
    log_q = log1mexp(-rate) - np.logaddexp(0.0, -rate) - rate * k[:, 0]
    log_q[[0, -1]] = -np.logaddexp(0.0, -rate) - rate * k[[0, -1], 0]
    return discrete_mixture(log_q, rate * (k - np.abs(k - law.counts * shift)), law)


def binned_mixture(rate: float, shift: int, law: Multiplicity, bins: int = 1024) -> Profile | None:
    """A lower bound on the pair's profile, for shifts too long to tabulate: the attacker sees only the output's bin.

    Edges lie at every u s + 1, so that no component has its top inside a bin: [l, h) then has, at distance m =
    max(l, 1 - h) from the top, mass e^(-a m) (1 - e^(-a (h - l)))/(1 + e^-a). The outermost bins keep the extreme
    losses.
    """
    last = shift * law.log_p.size
    if last == 0 or (bins + law.log_p.size) * law.log_p.size > ENTRIES:
        return None
    tops = np.concatenate([[0.0], shift * law.counts])
    edges = np.unique(np.concatenate([tops + 1.0, np.rint(np.linspace(1.0, last, bins))]))
    low, high = np.concatenate([[-np.inf], edges]), np.concatenate([edges, [np.inf]])
    away = np.maximum(low[:, None] - tops, 1.0 - (high[:, None] - tops))
    width = log1mexp(-rate * (high - low))[:, None]
    masses = -rate * away + width - np.logaddexp(0.0, -rate)
    log_weights = np.append(np.logaddexp(law.log_none, law.log_tail), law.log_p)
    return pair_attack(np.logaddexp.reduce(masses + log_weights, axis=1), masses[:, 0])


@dataclass(frozen=True, slots=True)
class DiscreteLaplace(Mechanism):
    """Discrete Laplace noise on integers with l1 sensitivity, drawn exactly.

    The noise x has probability proportional to exp(-|x|/scale). `sensitivity` is the most that one change of the data
    moves the numbers (l1 norm), a whole number, under the relation `neighbors`. The release on all the data is
    (sensitivity/scale)-DP under that relation, and makes no assumption about floating-point arithmetic.

    >>> f"{DiscreteLaplace(scale=1.0).profile(Neighbors.ADD_REMOVE).delta(0.0):.4f}"
    '0.4621'
    """

    scale: float
    sensitivity: int = 1
    neighbors: Neighbors = Neighbors.ADD_REMOVE

    hides_vectors: ClassVar[bool] = True

    def __post_init__(self) -> None:
        check_whole_sensitivity(self.sensitivity)
        check_sizes(self.sensitivity, scale=self.scale)
        check_relation(self.neighbors)
        rational_scale(self.scale)  # rejects a scale that cannot be drawn

    def profile(self, neighbors: Neighbors, change: Change = ONE) -> Profile:
        """The exact curve, symmetric."""
        shift = whole_shift_of(self, self.sensitivity, neighbors, change)
        return Profile.symmetric(discrete_laplace_curve(1.0 / self.scale, shift))

    @property
    def influence(self) -> Influence | None:
        """u/scale for whole rows of l1 norm u, slightly increased so that Laplace's curve covers the discrete one."""
        if self.neighbors.kind != "add-remove":
            return None
        return Influence("pure", more_than_continuous(1.0 / self.scale), 1.0 / self.scale, 1.0)

    def mixture(self, neighbors: Neighbors, law: Multiplicity) -> Profile | None:
        """The exact profile of (sum_u p_u M(u s), M(0)) for the noise that is drawn: which is what an attack sees."""
        shift = whole_shift_of(self, self.sensitivity, neighbors, ONE)
        return discrete_laplace_mixture(1.0 / float(rational_scale(self.scale)), shift, law)

    @property
    def row_bound(self) -> RowBound:
        """Whole numbers, by their l1 norm."""
        replaced = self.neighbors.kind == "replace-one"
        return RowBound(self.sensitivity, 1.0, self.scale, is_whole=True, are_replaced=replaced, width=None)

    def release(self, value: Any, stream: Stream) -> Any:
        """The whole numbers with independent discrete Laplace noise on every entry."""
        array = whole_numbers(value)
        return like(value, array + discrete_laplace(stream, self.scale, array.size).reshape(array.shape))
