"""A rule: the probability with which a record is kept, its weight, and its privacy loss.

The probability is a public function of the record alone. Everything else about the sample is secret, above all the
probabilities of the records in it.
"""

from abc import ABC, abstractmethod
from dataclasses import replace
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ..chance.keyed import keep
from ..core.claim import Claim
from ..core.curves import pure_curve
from ..core.guarantee import Guarantee, Part
from ..core.influence import Influence
from ..core.neighbors import Neighbors
from ..core.profile import Profile
from ..errors import Infeasible, InvalidInput, NoTheorem
from ..numerics.log_domain import FloatArray, as_floats
from ..numerics.row_norms import finite, norms
from .losses import personal_epsilons
from .profiles import GeneralProfile, PersonalProfile
from .rounded import probabilities_below
from .sampled_curves import amplified, record_profile

_UP = 1.0 + 2.0**-46  # more than every rounding in a loss
_INSIDE = 1.0 + 2.0**-44  # a norm this close to the radius was rounded up
_ONE_RECORD = "Poisson importance sampling, one record [add-remove → add-remove] (docs/designs/importance.md, Thm 1)"
_FEW = 1024  # for fewer records the preselection does not save time
_HALF = 2**63  # as a bound of keyed numbers: half of the records
_CELLS = 48  # of norms; records 24 octaves shorter than the longest share a cell
_HALF_OCTAVE = 51  # bits below the exponent and the first bit of the mantissa
_OWN_FUNCTION = "the profile's own function looks at one record at a time and allows every record"
_LARGEST = float(np.finfo(np.float64).max)
_EVERY_NUMBER = np.uint64(2**64 - 1)
_ROUNDING = 1.0 + 1e-9  # weights fall with the norm, up to their last digits


class Rule(ABC):
    """Frozen dataclass per kind; the fields are public facts.

    `radius` is the declared public domain: every record has a norm of at most that (clip first). The guarantee is the
    worst case over the domain, never over the data.
    """

    profile: PersonalProfile | GeneralProfile
    radius: float | None
    delta: float  # the delta of personal losses of Gaussian noise; 0 for pure profiles

    @abstractmethod
    def weights_of_norms(self, norms: ArrayLike) -> FloatArray:
        """The weight of records of these norms; never falls below 1, never grows with the norm."""

    @abstractmethod
    def worst_profile(self) -> Profile:
        """An upper bound for all records of the domain, under add/remove, for the rule's own profile."""

    @property
    @abstractmethod
    def reason(self) -> str:
        """The theorem behind `worst_profile`."""

    @property
    def is_public(self) -> bool:
        """Whether probabilities depend only on the record; only such rules are certified."""
        return True

    def check_public(self) -> None:
        """Raise NoTheorem for a rule that was fitted to the data."""
        if not self.is_public:
            raise NoTheorem(
                "the rule was fitted to the data, so a record's probability depends on other records and nothing is "
                "certified; use public constants, or use it only for plots"
            )

    @property
    def kind(self) -> Literal["pure", "gaussian"]:
        """The kind of noise that the profile is for."""
        return self.profile.kind

    @property
    def influence(self) -> Influence | None:
        """The influence the rule was made for, where it is a function of the norm."""
        return self.profile.influence

    @property
    def radial(self) -> Influence | None:
        """The influence as a function of the rule's own norm."""
        return self.influence

    @property
    def farthest(self) -> float | None:
        """The largest norm of the domain, or None where it is not known."""
        return self.radius

    @property
    def p(self) -> float:
        """The norm that the probability depends on."""
        return self.influence.p if self.influence is not None else 2.0

    @property
    def decides_by_norm(self) -> bool:
        """Whether the weight is a function of the record's norm alone."""
        return True

    def norms(self, records: Any) -> FloatArray:
        """The norm of every record; the end of the domain for a record beyond it.

        No record is rejected, because an error would leak information. A record beyond the domain must be clipped to
        it.
        """
        end = self.farthest
        if end is not None and end < 0.0:
            raise Infeasible(
                "even a record of norm 0 has more influence than the rule allows without sampling; add noise"
            )
        return np.minimum(norms(_rows(records), self.p), _LARGEST if end is None else min(end, _LARGEST))

    def of_norms(self, norms: ArrayLike) -> FloatArray:
        """The probability of records of these norms, as it is drawn: a multiple of 2^-64."""
        return probabilities_below(self.weights_of_norms(norms))

    def weights(self, records: Any) -> FloatArray:
        """The weight of every record if it is kept: 1/q, rounded down."""
        return self.weights_of_norms(self.norms(records))

    def probabilities(self, records: Any) -> FloatArray:
        """The probability of every record, as it is drawn."""
        return probabilities_below(self.weights(records))

    def kept(self, records: Any, numbers: NDArray[np.uint64]) -> tuple[NDArray[np.intp], FloatArray]:
        """Positions of the records that their keyed numbers keep, and their weights."""
        if not self.decides_by_norm:
            w = self.weights(records)
            places = np.flatnonzero(keep(numbers, probabilities_below(w)))
            return places, w[places]
        bound = None if numbers.size < _FEW else self.number_bound
        if bound is None or bound > _HALF:
            return self._kept(self.norms(records), numbers)
        some = np.flatnonzero(numbers < np.uint64(bound))  # nobody else is kept, so nothing of the others is computed
        places, weights = self._kept(self.norms(_rows(records)[some]), numbers[some])
        return some[places], weights

    def _kept(self, u: FloatArray, numbers: NDArray[np.uint64]) -> tuple[NDArray[np.intp], FloatArray]:
        candidates = self._may_be_kept(u, numbers)
        w = self.weights_of_norms(u[candidates])
        kept = keep(numbers[candidates], probabilities_below(w))
        return candidates[kept], w[kept]

    @property
    def number_bound(self) -> int | None:
        """A keyed number from which on no record of the domain is kept; None where there is none.

        Weights fall as norms grow, so the end of the domain bounds all.
        """
        if not self.decides_by_norm or self.farthest is None or not 0.0 <= self.farthest <= _LARGEST:
            return None
        limit = _limits(self.of_norms(as_floats([self.farthest])))[0]
        return None if limit == _EVERY_NUMBER else int(limit) + 1

    def losses(self, records: Any) -> FloatArray:
        """The personal loss of every record, rounded up: its epsilon, at the rule's delta for Gaussian noise."""
        w = self.weights(records)
        return self._losses(probabilities_below(w), w, self._influences(records))

    def losses_of_norms(self, norms: ArrayLike) -> FloatArray:
        """The same for records of these norms."""
        if self.radial is None:
            raise NoTheorem("the loss is not a function of the norm here; use losses(records)")
        w = self.weights_of_norms(norms)
        return self._losses(probabilities_below(w), w, self.radial.at(norms))

    def expected_size(self, norms: ArrayLike, counts: ArrayLike = 1.0) -> float:
        """The expected sample size for records of these norms, `counts` of each (a histogram)."""
        return float(np.sum(self.of_norms(as_floats(norms)) * as_floats(counts)))

    def guarantee(self) -> Guarantee:
        """The worst case over the domain for any release with the rule's profile; `at(record)` is one record's."""
        upper = self.worst_profile().rounded_up()
        own = () if self.influence is not None else (_OWN_FUNCTION,)
        everybody = Guarantee(
            neighbors=Neighbors.ADD_REMOVE,
            upper=upper,
            reasons=lambda: (self.reason,),
            assumes=("the release has at most the rule's profile", "records are clipped to the declared domain", *own),
            parts=(Part(upper, None, claim=Claim(self, None, Neighbors.ADD_REMOVE)),),
        )

        def personal(record: Any) -> Guarantee:
            row = np.atleast_2d(as_floats(record))
            w = self.weights(row)
            own = Profile.minimum([self._personal_profile(probabilities_below(w), w, row).rounded_up(), upper])
            return replace(everybody, upper=own, parts=(Part(own, None),), reasons=lambda: (_ONE_RECORD,))

        return replace(everybody, personal=personal)

    def _personal_profile(self, q: FloatArray, w: FloatArray, row: FloatArray) -> Profile:
        theta = self._influences(row) * w
        if self.kind == "gaussian":
            return record_profile("gaussian", q, theta)
        return Profile.symmetric(pure_curve(float(amplified(q, theta)[0]) * _UP))

    def _influences(self, records: Any) -> FloatArray:
        if isinstance(self.profile, GeneralProfile):
            raise NoTheorem("a general profile has no single influence; use losses(records)")
        return self.profile.influences(finite(_rows(records)))

    def _losses(self, q: FloatArray, w: FloatArray, influences: FloatArray) -> FloatArray:
        if self.kind == "pure":
            return amplified(q, influences * w) * _UP
        if self.delta == 0.0:
            raise NoTheorem("Gaussian noise has no epsilon at delta 0; make the rule with a delta")
        return personal_epsilons(q, influences * w, self.delta)

    def _may_be_kept(self, u: FloatArray, numbers: NDArray[np.uint64]) -> NDArray[np.intp]:
        """Positions that may be kept: weights fall as norms grow, so the end of a cell of norms bounds all in it. Two
        cells an octave, read off the bits. The sample is the same, but most weights are never computed.
        """
        if u.size < _FEW:
            return np.arange(u.size)
        top = u.max()
        first = max((int(top.view(np.int64)) >> _HALF_OCTAVE) - _CELLS, 0)  # and all below it
        ends = (np.arange(first + 1, first + _CELLS + 2) << _HALF_OCTAVE).view(np.float64)
        limits = _limits(self.of_norms(np.minimum(ends, top)))
        candidates = np.flatnonzero(numbers <= limits[-1])  # the others cannot be kept, whatever their norm
        cell = u[candidates].view(np.int64) >> _HALF_OCTAVE
        cell -= first
        return candidates[numbers[candidates] <= limits.take(cell, mode="clip")]

    def _inside(self, u: FloatArray) -> FloatArray:
        """Norms of the declared domain, which are public here: those of records come from `norms`."""
        if self.radius is None or not u.max(initial=0.0) > self.radius:
            return u
        if u.max() > self.radius * _INSIDE:
            raise InvalidInput(
                f"norms must be at most the declared radius {self.radius:g}, got some larger ones; clip the records "
                "first"
            )
        return np.minimum(u, self.radius)


def _limits(probabilities: FloatArray) -> NDArray[np.uint64]:
    """Keyed numbers above which a record of at most this probability is not kept."""
    most = probabilities * _ROUNDING
    limits = np.full(most.shape, _EVERY_NUMBER, np.uint64)
    limits[most < 1.0] = (most[most < 1.0] * 2.0**64).astype(np.uint64)
    return limits


def _rows(records: Any) -> NDArray[Any]:
    x = np.asarray(records)
    if x.dtype.kind not in "biuf" or x.ndim not in (1, 2):
        raise InvalidInput(f"records must be an array of numbers, one row each, got {x.ndim} dimensions of {x.dtype}")
    return x
