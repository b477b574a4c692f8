"""One record whose arrival changes the chances of others a little: plans for both samples (core/transport.py).

Let the others' coins (or rounded sizes) differ between the two data sets by chances d_i with sum at most d < 1. Drawn
with shared uniforms, coin i flips with chance d_i; the number of flips is at most N, Poisson with mean -log(1 - d),
because 1 - d_i = e^-L_i defines L_i with sum at most -log(1 - d). Without a flip the others are drawn by one law from
both data sets; flips F in one and F' in the other put the samples |F or F'| records apart, at most. So a component is
(c, n): the record's own part c records from the usual one, and n flips; (c, n) is c + n from "nothing happened" and
from (0, n).

A plan: (0, 0) of both are matched first, what is left of the column (0, 0) is divided among all rows (c, n) at the
distance c + n, and a row with flips has its own column besides, at the same distance. Then equal slopes are best
(core/direct_plan.py). Proof: docs/transport.md, Thm 5.
"""

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cache

import numpy as np

from ..core.direct_plan import Slopes, Stakes, direct_curve
from ..core.mechanism import Mechanism
from ..core.profile import Curve, Profile
from ..core.transport import stakes_of
from ..errors import NoTheorem
from ..numerics.log_domain import FloatArray, as_floats, log_sum

Law = Mapping[int, float]  # records apart → chance
_RARE = 1e-38  # chance of more flips, which is counted as lost
_OFF = 1e-12  # relative: chances are computed to well within it
_PIECE = 2000  # epsilons worked on together


@dataclass(frozen=True, slots=True)
class Flips:
    """The law of N as far as it matters, and the chance of more."""

    chances: FloatArray  # of 0, 1, ...
    lost: float

    @classmethod
    def of(cls, mean: float, most: int | None = None) -> "Flips":
        """Chances that differ by `mean` in all; no more than `most` others can change."""
        if mean >= 1.0:
            raise NoTheorem("one record may change the chances of others by 1 in all, for which there is no bound")
        found: list[float] = []
        rate, chance = -math.log1p(-mean), 1.0 - mean
        while (chance > _RARE or len(found) <= 2.0 * rate) and (most is None or len(found) < most):
            found.append(chance)
            chance *= rate / len(found)
        if most is None or len(found) < most:
            return cls(as_floats(found), 2.0 * _RARE)  # every further chance is at most half of the one before
        return cls(as_floats([*found, max(1.0 - math.fsum(found), 0.0)]), 0.0)

    @property
    def none(self) -> float:
        """The chance of no flip."""
        return float(self.chances[0])


@dataclass(frozen=True, slots=True)
class _Rows:
    """Rows of a plan: masses, distances, and the least gamma of each over alpha (its own column)."""

    mass: FloatArray
    far: FloatArray
    floor: FloatArray

    @classmethod
    def of(cls, own: Law, flips: Flips, floor: float, *, always: bool = False) -> "_Rows":
        """All (c, n) but (0, 0); `always`: rows without flips have a column of their own, too."""
        listed = [
            (often * chance, c + n, floor if n or always else 0.0)
            for c, chance in own.items()
            for n, often in enumerate(flips.chances.tolist())
            if (c or n) and often * chance > 0.0
        ]
        return cls(*(as_floats([row[k] for row in listed]) for k in range(3)))


def _pooled(rows: _Rows, left: tuple[float, float], lost: float, stakes: Stakes) -> Curve:
    """sum of mass H(gamma) at equal slopes, sum of mass gamma = alpha left[0] - left[1] + floors."""
    if rows.mass.size == 0:
        return Curve(lambda epsilon: np.full(np.shape(epsilon), -np.inf), 0.0)
    table = cache(lambda: Slopes(np.unique(rows.far), stakes))
    mass, far = np.log(rows.mass * (1.0 + _OFF)), rows.far[:, None]

    def piece(epsilon: FloatArray) -> FloatArray:
        alpha = np.exp(np.minimum(epsilon, 700.0))
        rest = alpha * left[0] * (1.0 - _OFF) - left[1] * (1.0 + _OFF)
        with np.errstate(divide="ignore"):
            floor = np.log(rows.floor * (1.0 - 3.0 * _OFF))[:, None] + np.log(alpha)[None, :]  # below their share
            target = np.log(np.maximum(rest, 0.0) + alpha * float(rows.mass @ rows.floor) * (1.0 - _OFF))
            inner = table().at_most(far, mass[:, None], floor, target)
            short = np.log(lost + np.maximum(-rest, 0.0))  # of "nothing happened"
        return np.minimum(np.logaddexp(log_sum(mass[:, None] + stakes(far, inner)), short), 0.0)

    return Curve(_in_pieces(piece))


def _in_pieces(piece: Callable[[FloatArray], FloatArray]) -> Callable[[FloatArray], FloatArray]:
    def log_delta(epsilon: FloatArray) -> FloatArray:
        flat = np.ravel(epsilon)
        found = [piece(flat[i : i + _PIECE]) for i in range(0, flat.size, _PIECE)]
        return np.concatenate(found or [flat]).reshape(np.shape(epsilon))

    return log_delta


def one_more(own: Law, flips: Flips, mechanism: Mechanism) -> Profile:
    """Only P has the record, its part so many records from the usual one; others flip in both directions."""
    stakes, usual = stakes_of(mechanism), own.get(0, 0.0)
    forward = _pooled(_Rows.of(own, flips, 1.0), (flips.none, usual * flips.none), flips.lost, stakes)
    alone = {0: 1.0}
    rest = _pooled(_Rows.of(alone, flips, usual), (usual * flips.none, flips.none), flips.lost, stakes)
    return Profile(forward, _backward(own, flips, rest, stakes))


def _backward(own: Law, flips: Flips, rest: Curve, stakes: Stakes) -> Curve:
    """Q's rows are flips alone: `rest` where P's usual part has enough chance, else each against its own columns."""
    usual, far = own.get(0, 0.0), np.arange(flips.chances.size)[1:, None].astype(np.float64)
    least = direct_curve(np.ones(1), as_floats(list(own.values())), as_floats([list(own)]), stakes)
    log_n = np.log(np.maximum(flips.chances[1:], 1e-300))[:, None]

    def piece(epsilon: FloatArray) -> FloatArray:
        found = rest(epsilon)
        short = epsilon + math.log(usual) < 1e-9 if usual > 0.0 else np.ones(epsilon.shape, dtype=bool)
        at = epsilon[short]
        if at.size and least is not None:
            each = stakes(far + max(own), at[None, :] - _OFF)
            if usual > 0.0:
                each = np.minimum(each, stakes(far, at[None, :] + math.log(usual) - _OFF))
            lost = np.full(at.shape, math.log(flips.lost or 1e-300))
            terms = [log_sum(log_n + each), math.log(flips.none) + least(at), lost]
            found[short] = np.minimum(log_sum(np.stack(terms)), 0.0)
        return found

    return Curve(_in_pieces(piece))


def exchanged(chance: float, flips: Flips, mechanism: Mechanism) -> Profile:
    """A record is exchanged with this chance in both samples, two records apart, and others flip."""
    own, left = {0: 1.0 - chance, 2: chance}, (1.0 - chance) * flips.none
    rows = _Rows.of(own, flips, 1.0, always=True)
    return Profile.symmetric(_pooled(rows, (left, left), flips.lost, stakes_of(mechanism)))


def exchanged_or_gone(chance: float, flips: Flips, mechanism: Mechanism) -> Profile:
    """A record is kept with this chance in each sample, one record from the usual part; never against its like."""
    own, left = {0: 1.0 - chance, 1: chance}, (1.0 - chance) * flips.none
    gone, here = (_Rows.of({c: often}, flips, floor) for (c, often), floor in zip(own.items(), (1.0, 0.0), strict=True))
    rows = _Rows(*(np.concatenate([getattr(gone, name), getattr(here, name)]) for name in ("mass", "far", "floor")))
    return Profile.symmetric(_pooled(rows, (left, left), flips.lost, stakes_of(mechanism)))
