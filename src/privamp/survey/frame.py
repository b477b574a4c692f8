"""The public side of an estimate: strata with their rates, weights and bounds, and the values clipped to those bounds.

Every value is put within its bounds: one beyond them (infinite, or too large for a double) is clipped to the nearer
end, and an entry that is not a number counts as the middle. None is rejected, because that would reveal that it is
there.

Noise by strata is calibrated to the sampling rate of each stratum. With the strata of another column, a
record that is nearly always drawn would get the weight and the noise of one that rarely is: a false guarantee. So the
columns of the draw are used (strata, clusters, probabilities), and one that is given again must be the same.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ..core.bounds import pairs_by_name
from ..core.neighbors import Neighbors
from ..core.population import Batch
from ..core.population import column_of as as_column
from ..core.sample import Sample
from ..core.weighting import Coins, Subset
from ..designs.strata import places
from ..designs.stratified import WITHIN
from ..errors import InvalidInput
from ..numerics.entries import column_of
from ..numerics.log_domain import FloatArray, as_floats

Name = str | int
EVERYBODY: Name = "everybody"
_MOST = 1e100  # of bounds whose squares are used: those of larger ones are not finite


@dataclass(frozen=True, slots=True)
class Frame:
    """Arrays over strata (H,) and over records (n,)."""

    names: tuple[Name, ...]
    fixed: bool  # without replacement; otherwise Poisson
    rate: FloatArray  # (H,)
    drawn: FloatArray  # (H,) sizes of fixed strata, nan for Poisson
    records: FloatArray  # (H,) N_h, public for fixed strata; nan for Poisson unless declared
    low: FloatArray
    high: FloatArray
    which: NDArray[np.intp] = field(repr=False)  # (n,) stratum of each record
    values: FloatArray = field(repr=False)  # (n,) within the bounds
    relation: Neighbors = WITHIN
    strangers: tuple[int, ...] = field(default=(), repr=False)  # records in no stratum: never drawn

    @property
    def range(self) -> FloatArray:
        """R_h."""
        return self.high - self.low

    @property
    def centre(self) -> FloatArray:
        """Values are measured from here where the number of records is public; from 0 where it is not."""
        return np.where(np.isnan(self.records), 0.0, 0.5 * (self.low + self.high))

    @property
    def farthest(self) -> FloatArray:
        """The largest distance of a value from the centre."""
        return np.maximum(np.abs(self.low - self.centre), np.abs(self.high - self.centre))

    @property
    def weight(self) -> FloatArray:
        """1/r_h: N_h/n_h for strata of fixed size."""
        return 1.0 / self.rate

    @property
    def reach(self) -> FloatArray:
        """How far one record moves the estimated total: replaced in a fixed stratum, added in a Poisson one."""
        return self.weight * (self.range if self.fixed else self.farthest)


def frame_of(sample: Sample, values: ArrayLike, bounds: Any, stratum: ArrayLike | None, population: Any) -> Frame:
    """Check the arguments against the design."""
    design, numbers = sample.design, numbers_of(sample, values)
    parts = design.parts or ((EVERYBODY, design),)
    names = tuple(name for name, _ in parts)
    which = _membership(sample, names, stratum)
    chances = [part.equal_chances for _, part in parts]
    subsets = [one for one in chances if isinstance(one, Subset)]
    coins = [one for one in chances if isinstance(one, Coins)]
    if len(chances) not in (len(subsets), len(coins)):
        raise InvalidInput(
            "estimate supports strata that are all WithoutReplacement or all Poisson and, without strata, every "
            f"design with public weights, got {design} instead"
        )
    fixed = bool(subsets)
    counted = np.bincount(which, minlength=len(names) + 1)[:-1].astype(float)
    strangers = tuple(np.flatnonzero(which == len(names)).tolist())
    which = np.minimum(which, len(names) - 1)
    if fixed:
        drawn = as_floats([one.size for one in subsets])
        records = as_floats([one.population for one in subsets])
        if np.any(records != counted):
            raise InvalidInput(
                "the design must declare as many records per stratum as the frame has; declare those numbers"
            )
        rate = drawn / records
    else:
        rate = as_floats([one.rate for one in coins])
        drawn, records = np.full_like(rate, np.nan), _per_stratum(population, names, "population")
        if np.any(rate <= 0):
            raise InvalidInput("a stratum drawn at rate 0 cannot be estimated; give it a rate above 0")
    low, high = bounds_of(bounds, names)
    relation = WITHIN if fixed and design.parts else (
        Neighbors.REPLACE_ONE if fixed else Neighbors.ADD_REMOVE
    )  # fmt: skip
    values = cut(numbers, low[which], high[which])
    return Frame(names, fixed, rate, drawn, records, low, high, which, values, relation, strangers)


def numbers_of(sample: Sample, values: ArrayLike) -> FloatArray:
    """One number per record of the population, nan where an entry is none."""
    numbers = column_of(values)
    if numbers.shape != sample._ids.shape:
        raise InvalidInput("values must have one number per record of the population, in its order; check their length")
    return numbers


def cut(numbers: FloatArray, low: Any, high: Any) -> FloatArray:
    """Each number clipped to its bounds; their middle for nan."""
    return np.where(np.isnan(numbers), 0.5 * low + 0.5 * high, np.clip(numbers, low, high))


def _membership(sample: Sample, names: tuple[Name, ...], stratum: ArrayLike | None) -> NDArray[np.intp]:
    """Each record's stratum, as the sample was drawn."""
    if not sample.design.parts:
        return np.zeros(sample._ids.size, dtype=np.intp)
    own = batch_of(sample).column("stratum")
    check_given("stratum", stratum, own)
    return places(own, names)


def _per_stratum(given: Any, names: tuple[Name, ...], what: str) -> FloatArray:
    """One number for all, one per name, or nan for None."""
    if given is None:
        return np.full(len(names), np.nan)
    if isinstance(given, Mapping):
        missing = [name for name in names if name not in given]
        if missing:
            raise InvalidInput(f"{what} must name every stratum, got nothing for {missing[0]!r} instead")
        return np.array([float(given[name]) for name in names])
    if len(names) > 1 and what == "population":
        raise InvalidInput("population must name every stratum, got one number instead")
    return np.full(len(names), float(given))


def bounds_of(bounds: Any, names: tuple[Name, ...]) -> tuple[FloatArray, FloatArray]:
    """(lowest, highest) of every stratum, from one pair or one per stratum."""
    low, high = np.array(pairs_by_name(bounds, names)).T
    return low, high


def usual(ends: tuple[float, float]) -> tuple[float, float]:
    """Bounds between which squares are finite, and neither vanish."""
    low, high = ends
    if max(abs(low), abs(high)) > _MOST or high - low < 1.0 / _MOST:
        raise InvalidInput(
            f"bounds must lie between -{_MOST:g} and {_MOST:g}, at least {1.0 / _MOST:g} apart, got {low:g} and "
            f"{high:g} instead; use another unit"
        )
    return ends


def batch_of(sample: Sample) -> Batch:
    """All records of the population, with the columns of the draw."""
    return Batch(sample._ids, 0, sample._columns)


def check_given(name: str, given: ArrayLike | None, own: NDArray[Any]) -> None:
    """A column that is given again must be the one of the draw; both are public."""
    if given is not None and not _same(as_column(given), own):
        raise InvalidInput(
            f"{name}= is not the column that the sample was drawn with, in the order of the population; omit it to "
            "use the sample's own"
        )


def _same(one: NDArray[Any], other: NDArray[Any]) -> bool:
    if one.shape != other.shape:
        return False
    if one.dtype.kind in "biuf" and other.dtype.kind in "biuf":
        return bool(np.all((one == other) | ((one != one) & (other != other))))
    ours, theirs = one.tolist(), other.tolist()
    return ours == theirs or all(a == b or (a != a and b != b) for a, b in zip(ours, theirs, strict=True))
