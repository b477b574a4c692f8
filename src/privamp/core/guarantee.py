"""A guarantee: two-sided numbers, their relation, the theorems behind them, and the assumptions."""

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from importlib import import_module
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from ..errors import InvalidInput
from ..numerics import rounding
from ..numerics.log_domain import FloatArray, as_floats
from ..numerics.printing import shown_up
from ..numerics.roots import NumericalFailure
from .claim import Claim
from .neighbors import Neighbors
from .profile import Profile

SCHEMA = 1
_SMALLEST = 5e-324  # the smallest positive double: an upper bound does not vanish by underflow
NOT_PRIVATE = "NOT PRIVATE: drawn or noised in privamp.testing with a known seed"


@dataclass(frozen=True, slots=True)
class Lower:
    """The strongest known attack: the true values are at least these numbers."""

    profile: Profile

    def delta(self, epsilon: ArrayLike) -> FloatArray | float:
        """A lower bound on the true delta."""
        return self.profile.delta(epsilon)

    def epsilon(self, delta: float = 0.0) -> float:
        """A lower bound on the true epsilon at this delta: the attack's delta still exceeds `delta` there."""
        found = rounding.number_down(self.profile.epsilon(delta))
        if delta == 0.0 or math.isinf(found):
            return found
        for step in range(1, 60):
            if found <= 0.0 or float(self.profile.log_delta(found)) > math.log(delta):
                return found
            found -= max(found, 1.0) * 2.0 ** (step - 52)
        return 0.0


@dataclass(frozen=True, slots=True)
class Part:
    """Fresh draws that make up a guarantee: the profile of one, its attack, and how many."""

    upper: Profile
    lower: Profile | None
    steps: int = 1
    claim: Claim | None = None  # one draw of it, as data
    rounds: int = 1  # fresh draws that one step stands for
    attacks: tuple[tuple[Any, Profile], ...] = ()  # `lower`, pair by pair, where it is the largest of several


@dataclass(frozen=True, repr=False, eq=False)
class Guarantee:
    """A certified upper bound, a lower bound where an attack is known, and the reasons.

    `delta(epsilon)` and `epsilon(delta)` are rounded in the safe direction.

    Made by `amplify`, `compose`, rules, samples and jobs. It holds for two data sets that differ as `neighbors` says:
    `delta` is at most `upper` and, where there is one, at least `lower`. `because` gives the theorems (`reasons` finds
    them), `assumes` what else must be true, `parts` what it is composed of. `degrades` says that the design makes the
    release less private than the mechanism alone. `personal` gives one record's own guarantee (`at`), `pld_maker` the
    privacy-loss distribution (`pld`) if it is available, and `draws` names the samples it is about, so that one draw is
    never composed as two.

    >>> from privamp import Laplace, Poisson, amplify
    >>> round(amplify(Laplace(1.0), Poisson(0.1)).epsilon(), 4)
    0.1586
    """

    neighbors: Neighbors
    upper: Profile  # already rounded up
    reasons: Callable[[], tuple[str, ...]]  # computed on demand: every theorem must be evaluated
    assumes: tuple[str, ...]
    parts: tuple[Part, ...]
    lower: Lower | None = None
    degrades: bool = False  # the design makes the release less private than the mechanism alone
    pld_maker: Callable[[], Any] | None = field(default=None, repr=False, compare=False)
    personal: Callable[[Any], "Guarantee"] | None = field(default=None, repr=False, compare=False)
    draws: frozenset[bytes] = field(default=frozenset(), repr=False, compare=False)  # which samples it is about

    @cached_property
    def because(self) -> tuple[str, ...]:
        """The theorems that give these numbers."""
        return self.reasons()

    @property
    def theorems(self) -> tuple[str, ...]:
        """Ids of the theorems in `because`: `privamp theorem ID` prints statement and proof."""
        from ..proofs import cited

        return tuple(dict.fromkeys(name for line in self.because for name in cited(line)))

    @property
    def steps(self) -> int:
        """How many fresh draws are covered."""
        return sum(part.steps * part.rounds for part in self.parts)

    @property
    def claims(self) -> tuple[Claim, ...]:
        """What the guarantee is made of; empty if a part of it cannot be serialised."""
        known = [(part.claim, part.steps) for part in self.parts if part.claim is not None]
        return tuple(replace(claim, times=steps) for claim, steps in known) if len(known) == len(self.parts) else ()

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Guarantee) or not self.claims:
            return self is other
        return self._identity == other._identity

    def __hash__(self) -> int:
        return hash(self._identity) if self.claims else id(self)

    @property
    def _identity(self) -> tuple[Any, ...]:
        return frozenset(self.claims), self.assumes, self.draws

    def __reduce__(self) -> Any:
        if not self.claims:
            raise InvalidInput("this guarantee has no claims, so it cannot be copied or pickled; keep its to_json()")
        return _recomputed, (self.claims, self.assumes, self.draws)

    def __deepcopy__(self, memo: Any) -> "Guarantee":
        return self  # frozen, and made of public facts

    @classmethod
    def from_json(cls, data: Mapping[str, Any] | str) -> "Guarantee":
        """The guarantee of a certificate, recomputed from its claims; raises if a stated number disagrees.

        >>> from privamp import Gaussian, Poisson, amplify
        >>> one = amplify(Gaussian(1.0), Poisson(0.01))
        >>> Guarantee.from_json(one.to_json(epsilon=1.0)) == one
        True
        """
        certificates = import_module(".certificate", __package__)
        content = _parsed(data)
        inside = certificates.read_certificate(content)
        assumes = tuple(inside.get("assumes", ()))
        again = _recomputed(certificates.claims_of(content), assumes, certificates.draws_of(content))
        wrong = certificates.disagreements(content, again)
        if wrong:
            raise InvalidInput(f"the certificate does not hold: {wrong[0]}")
        return again

    @property
    def is_private(self) -> bool:
        """False for anything made in test mode."""
        return NOT_PRIVATE not in self.assumes

    def delta(self, epsilon: ArrayLike) -> FloatArray | float:
        """The certified delta at epsilon (any real number); zero only where it is exactly zero."""
        log_delta = self.upper.log_delta(epsilon)
        if np.any(np.isnan(log_delta)):
            raise NumericalFailure("delta could not be computed here; try another epsilon, or declare fewer records")
        value = np.where(log_delta == -np.inf, 0.0, np.maximum(np.exp(log_delta), _SMALLEST))
        return float(value) if np.ndim(epsilon) == 0 else value

    def epsilon(self, delta: float = 0.0) -> float:
        """The certified epsilon at delta; `inf` at delta 0 when the release is not pure DP."""
        return self.upper.epsilon(delta)

    def __repr__(self) -> str:
        pure = self.epsilon()
        numbers = (
            f"epsilon={shown_up(pure)}" if math.isfinite(pure) else f"delta(1.0)={shown_up(float(self.delta(1.0)))}"
        )
        mark = "" if self.is_private else ", NOT PRIVATE"
        return f"Guarantee({self.neighbors}, steps={self.steps}, {numbers}{mark})"

    def plot(self) -> Any:
        """A matplotlib figure of delta(epsilon), from both sides (pip install 'privamp[plots]')."""
        return import_module("..report.shown", __package__).guarantee_picture(self)

    def _repr_html_(self) -> str:
        """The guarantee as notebooks show it."""
        text: str = import_module("..report.shown", __package__).guarantee_fragment(self)
        return text

    def at(self, record: Any) -> "Guarantee":
        """The guarantee of one record; the same object for designs that treat all records alike."""
        return self if self.personal is None else replace(self.personal(record), assumes=self.assumes, draws=self.draws)

    def fresh(self) -> "Guarantee":
        """The guarantee of another fresh draw with the same releases, which `compose(guarantee, steps)` repeats."""
        return replace(self, draws=frozenset())

    def pld(self) -> Any:
        """The pessimistic privacy-loss distribution, as dp-accounting's object."""
        if self.pld_maker is not None:
            return self.pld_maker()
        from ..accounting.composition import Composition

        return Composition(self.parts).pld()

    def renyi(self, order: float) -> float:
        """The Rényi divergence of this order (> 1), in both directions, rounded up; `inf` where there is none.

        Parts of fresh draws add up; several parts cost no more than their sum.
        """
        from ..accounting.currencies import renyi

        return renyi(self, order)

    def zcdp(self) -> float:
        """The smallest rho found such that the release is rho-zCDP: every Rényi divergence is at most rho * order."""
        from ..accounting.currencies import zcdp

        return zcdp(self)

    def gdp(self) -> float:
        """The smallest mu found such that the release is mu-GDP, rounded up; `inf` where there is none."""
        from ..accounting.currencies import gdp

        return gdp(self)

    def tradeoff(self, false_alarm: ArrayLike) -> FloatArray | float:
        """The smallest miss rate of any attack at each false-alarm rate (the f-DP curve), rounded down."""
        rates = as_floats(false_alarm)
        top = self.epsilon() if math.isfinite(self.epsilon()) else self.epsilon(1e-12)
        epsilons = np.concatenate([[0.0], np.geomspace(1e-4, max(top, 1e-3), 400), [top]])
        deltas = np.asarray(self.delta(epsilons))
        a = np.exp(epsilons)
        x = rates[..., None]
        best = np.max(np.maximum(1.0 - deltas - a * x, (1.0 - deltas - x) / a), axis=-1)
        misses = np.clip(best * (1.0 - 1e-12), 0.0, 1.0)
        return float(misses) if rates.ndim == 0 else misses

    def to_json(self, *, epsilon: float | None = None, delta: float | None = None) -> dict[str, Any]:
        """A dictionary for machines, with a schema version and a certificate; infinite numbers become null."""
        answer = self.stated(epsilon=epsilon, delta=delta)
        numbers = {name: value for name, value in answer.items() if name.startswith(("epsilon", "delta"))}
        answer["certificate"] = import_module(".certificate", __package__).certificate(self, numbers)
        return answer

    def stated(self, *, epsilon: float | None = None, delta: float | None = None) -> dict[str, Any]:
        """The numbers at `epsilon` or `delta`, their reasons and assumptions: `to_json` without the certificate."""
        answer: dict[str, Any] = {"schema": SCHEMA, "neighbors": self.neighbors.kind, "steps": self.steps}
        if self.neighbors.scope != "anywhere":
            answer["scope"] = self.neighbors.scope
        if self.neighbors.unit == "person":
            answer["records_per_person"] = self.neighbors.records
        if epsilon is not None:
            answer |= {"epsilon": epsilon, "delta_upper": _finite(self.delta(epsilon))}
            answer["delta_lower"] = _finite(self.lower.delta(epsilon)) if self.lower else None
        if delta is not None:
            answer |= {"delta": delta, "epsilon_upper": _finite(self.epsilon(delta))}
            answer["epsilon_lower"] = _finite(self.lower.epsilon(delta)) if self.lower else None
        if epsilon is None and delta is None:
            answer |= {"delta_upper": 0.0, "epsilon_upper": _finite(self.epsilon())}
            answer["epsilon_lower"] = _finite(self.lower.epsilon()) if self.lower else None
        answer |= {"because": list(self.because), "assumes": list(self.assumes), "private": self.is_private}
        if self.degrades:
            answer["degrades"] = True
        return answer


def _recomputed(
    claims: tuple[Claim, ...], assumes: tuple[str, ...], draws: frozenset[bytes] = frozenset()
) -> Guarantee:
    """Evaluated again: certificates and pickles hold claims, not numbers."""
    evaluated: Guarantee = import_module("..amplification", __package__).evaluated(claims)
    return replace(evaluated, assumes=tuple(dict.fromkeys((*evaluated.assumes, *assumes))), draws=draws)


def _parsed(data: Mapping[str, Any] | str) -> Mapping[str, Any]:
    content = import_module(".certificate", __package__).parsed(data) if isinstance(data, str) else data
    if not isinstance(content, Mapping):
        raise InvalidInput("a certificate must be a JSON object, and this is not one")
    return content


def _finite(value: FloatArray | float) -> float | None:
    number = float(value)
    return number if math.isfinite(number) else None
