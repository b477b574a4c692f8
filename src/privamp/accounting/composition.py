"""Composition of fresh draws: compose(guarantee, steps) or compose([g1, g2, ...]).

Valid for adaptive choice of what to release inside each declared part. Queries that share one sample are not
fresh draws: they are a `Joint`, composed inside the sample and amplified once.

Lower bounds: the changed record is one and the same in every round. Where records differ (strata, norms), the attack on
one round is the largest of several pairs' curves. Composing that largest curve would be false: no record reaches it in
two rounds. So the rounds are composed for one kind of record at a time, and the largest result counts. Parts that list
different kinds (other strata, other norms) have no attack together: nothing says which kinds can be the same record.
"""

import math
from collections.abc import Iterable, Sequence
from dataclasses import replace
from functools import cache, cached_property
from typing import Any

import numpy as np

from ..core.curves import directed_curve
from ..core.guarantee import Guarantee, Lower, Part
from ..core.profile import Curve, Profile
from ..errors import InvalidInput
from ..extras import need
from ..numerics.log_domain import FloatArray, log_sum
from ..numerics.rounding import total_up, up
from ..validation import positive, whole
from .blocks import QUADRATURE, ROUNDS, can_be_followed, followed
from .composed import WIDEST, Composed
from .discretize import loss_laws, reach
from .tangents import counted
from .two_outcomes import answers

COMPOSED = (
    "Composition by privacy-loss distributions, connect-the-dots "
    "(Doroshenko et al. 2022, Alg. 1; Zhu, Dong & Wang 2022, Thm 10)"
)
LOOSER = f"{COMPOSED}; compose(…, adaptive=True) follows these rounds one by one and gives a smaller number"
_POINTS, _ROUGH = 2**18, 2**13  # points of the composed law's window that are aimed at; of a first guess
_OF_ONE = 16  # of so many points of the window, one of the law of a step, at least
_GUESSES, _LONGEST, _TINY = 6, 2**20, 1e-300  # rounds of guessing; points of one law; never an interval of 0
_COARSER = 2.0**8  # how much coarser a grid may get when its window does not fit
_ALL = 4  # so many kinds of records are all tried as an attack; of more, the two that look strongest
_SMALL = 1e-6
_MOST = 0.8  # a grid that keeps so much of one step's delta(0) leaves nothing to gain by counting answers


def compose(
    guarantees: Guarantee | Iterable[Guarantee],
    steps: int = 1,
    *,
    interval: float | None = None,
    adaptive: bool = False,
) -> Guarantee:
    """The guarantee of `steps` fresh draws of one guarantee, or of several guarantees together.

    `adaptive`: follow rounds of Gaussian noise under replace-one, drawn without or with replacement, one by one
    (docs/designs/rounds.md). The bound is smaller; it takes some seconds when a number is first asked for, so it is not
    the default: `because` says where it would gain.
    `interval` is the grid of privacy losses (None: chosen by the number of steps); a finer one gives tighter bounds,
    and every grid gives valid ones.

    >>> from privamp import PureDP, Poisson, amplify
    >>> round(compose(amplify(PureDP(0.1), Poisson(0.5)), 2).epsilon(), 6)
    0.102499
    """
    whole(1, steps=steps)
    steps = int(steps)  # NumPy's short integers overflow
    if interval is not None:
        positive(interval=interval)
    several = (guarantees,) if isinstance(guarantees, Guarantee) else tuple(guarantees)
    if not several:
        raise InvalidInput("compose needs at least one guarantee, got an empty list instead")
    _check_fresh(several, steps)
    first = several[0]
    for other in several[1:]:
        if other.neighbors != first.neighbors:
            raise InvalidInput(
                f"all guarantees must have the same relation, got {first.neighbors} and {other.neighbors}; call "
                "amplify with the same neighbors"
            )
    parts = _merged([replace(p, steps=p.steps * steps) for g in several for p in g.parts])
    if len(parts) == 1 and parts[0].steps == 1:
        return first
    if adaptive:
        parts = tuple(followed(part, Composition((replace(part, claim=None),), interval)) for part in parts)
    composition = Composition(parts, interval)
    if interval is not None:
        _ = composition.interval  # refuses one that is too fine
    upper, lower = composition.upper, composition.lower
    if len(parts) == 1 and parts[0].steps == 1:  # one block
        upper, lower = parts[0].upper, parts[0].lower
    are_followed = any(part.rounds > 1 for part in parts)
    plainly = LOOSER if any(can_be_followed(part) for part in parts) else COMPOSED
    last, assumed = ((ROUNDS, plainly), (QUADRATURE,)) if are_followed else ((plainly,), ())
    ours = (ROUNDS, COMPOSED, LOOSER)
    return Guarantee(
        neighbors=first.neighbors,
        upper=upper,
        reasons=lambda: (*dict.fromkeys(b for g in several for b in g.because if b not in ours), *last),
        assumes=tuple(dict.fromkeys((*(a for g in several for a in g.assumes), *assumed))),
        parts=parts,
        lower=Lower(lower) if lower else None,
        degrades=any(g.degrades for g in several),
        pld_maker=composition.pld,
        draws=frozenset().union(*(g.draws for g in several)),
    )


def _check_fresh(several: Sequence[Guarantee], steps: int) -> None:
    """Releases from one draw compose inside it: its guarantee counts once."""
    seen: set[bytes] = set()
    for guarantee in several:
        if (guarantee.draws and steps > 1) or guarantee.draws & seen:
            raise InvalidInput(
                "compose is for fresh draws, but these guarantees are about the same sample; use sample.guarantee() "
                "once, after the last release (it covers all of them), or guarantee.fresh() for further draws by the "
                "same design"
            )
        seen |= guarantee.draws


def _merged(parts: Sequence[Part]) -> tuple[Part, ...]:
    """Equal claims, and equal profiles, are counted together."""
    counts: dict[Any, Part] = {}
    for part in parts:
        key = part.claim if part.claim is not None else (id(part.upper), id(part.lower))
        seen = counts.get(key)
        counts[key] = replace(seen, steps=seen.steps + part.steps) if seen else part
    return tuple(counts.values())


class Composition:
    """Loss distributions of the parts, built on first use; on a grid of about so many `points`."""

    def __init__(self, parts: tuple[Part, ...], interval: float | None = None, points: int = _POINTS) -> None:
        self.parts = parts
        self.wanted_interval = interval
        self.wanted_points = points

    @property
    def upper(self) -> Profile:
        """Pessimistic: never below the truth."""
        profiles = [part.upper for part in self.parts]
        symmetric = all(p.is_symmetric for p in profiles)
        there, back = self._total([p.forward for p in profiles]), self._total([p.backward for p in profiles])
        forward = self._curve(there, back, 0)
        return Profile(forward, forward if symmetric else self._curve(back, there, 1))

    @property
    def lower(self) -> Profile | None:
        """Optimistic: never above what the attacks reach."""
        several = _attacks(self.parts)
        if not several:
            return None
        return Profile.maximum(self._attacked(profiles) for profiles in several)

    def _attacked(self, profiles: tuple[Profile, ...]) -> Profile:
        """What one pair of neighbours reaches in all parts: by the composed laws, or by counting answers."""
        one = self.parts[0].steps if len(self.parts) == 1 else None

        @cache
        def composed() -> tuple[Composed, Composed]:
            return self._both(list(profiles), upper=False)

        @cache
        def by_counting() -> Profile | None:
            pair = profiles[0]
            is_pure = math.isfinite(max(pair.forward.largest_loss, pair.backward.largest_loss))
            return counted(pair, one) if one and (is_pure or _kept(composed()[0], pair.forward) < _MOST) else None

        def curve(side: int) -> Curve:
            def log_delta(epsilon: FloatArray) -> FloatArray:
                found, other = composed()[side].log_delta(epsilon), by_counting()
                return found if other is None else np.maximum(found, (other.forward, other.backward)[side](epsilon))

            def ceiling(epsilon: FloatArray) -> FloatArray:
                found, other = composed()[side].ceiling(epsilon), by_counting()
                return found if other is None else np.maximum(found, (other.forward, other.backward)[side](epsilon))

            ends = [(p.forward, p.backward)[side].largest_loss for p in profiles]
            end = sum(part.steps * end for part, end in zip(self.parts, ends, strict=True))
            return Curve(log_delta, end, ceiling=ceiling)

        return Profile(curve(0), curve(1))

    def _total(self, curves: list[Curve]) -> float:
        """The largest losses of one direction, added up."""
        return total_up((part.steps, curve.largest_loss) for part, curve in zip(self.parts, curves, strict=True))

    def _curve(self, total: float, other: float, side: int) -> Curve:
        """The composed curve; for pure parts never worse than the sums of their epsilons in both directions."""
        pure = directed_curve(total, other) if math.isfinite(total) else None

        def log_delta(epsilon: FloatArray) -> FloatArray:
            composed = self._answers[side](epsilon) if self._answers else self._pessimistic[side].log_delta(epsilon)
            composed = np.minimum(composed, np.where(epsilon >= 0.0, self._total_variation, 0.0))
            return np.minimum(composed, pure(epsilon)) if pure else composed

        def ceiling(epsilon: FloatArray) -> FloatArray:
            return self._answers[side](epsilon) if self._answers else self._pessimistic[side].ceiling(epsilon)

        return Curve(log_delta, total, ceiling=ceiling)

    @cached_property
    def _answers(self) -> tuple[Curve, Curve] | None:
        """Both directions without a grid, where every step is one yes-or-no answer."""
        if len(self.parts) > 1 or self.wanted_interval:
            return None
        return answers(self.parts[0].upper, self.parts[0].steps)

    @cached_property
    def _total_variation(self) -> float:
        """log of the sum of all delta(0), rounded up: bounds delta at every epsilon >= 0, however fine the losses."""
        distances = [math.log(part.steps) + float(part.upper.log_delta(0.0)) for part in self.parts]
        return float(up(log_sum(np.asarray(distances))))

    @cached_property
    def interval(self) -> float:
        """As fine as the points allow; how wide the composed law is, is found on rougher grids first."""
        profiles = [part.upper for part in self.parts]
        farthest = max(reach(p) for p in profiles)
        if self.wanted_interval:
            if farthest / self.wanted_interval > WIDEST:
                raise self._too_many(math.ceil(farthest / self.wanted_interval))
            return self.wanted_interval
        interval = max(farthest, _TINY) / min(_ROUGH, self.wanted_points // _OF_ONE)
        for _ in range(_GUESSES):  # a grid that is too coarse makes the window look too wide
            points = max(side.points(0.0) for side in self._sides(profiles, interval, upper=True))
            better = max(points * interval / self.wanted_points, farthest / _LONGEST, _TINY)
            if better > 0.5 * interval:
                break
            interval = better
        return _dividing(max(p.largest_loss for p in profiles), max(min(better, interval), _TINY))

    def _too_many(self, points: int) -> InvalidInput:
        steps, share = sum(part.steps for part in self.parts), WIDEST / points
        more = f"more than the {WIDEST:,} that fit into memory"
        if self.wanted_interval:
            better = f"an interval of {1.1 * self.wanted_interval / share:.2g} works"
            needs = f"interval={self.wanted_interval:g} needs {points:,} grid points for {steps:,} steps"
            return InvalidInput(f"{needs}, {more}; {better}")
        better = f"about {int(0.9 * share * steps):,} steps work"
        return InvalidInput(f"{steps:,} steps need {points:,} grid points, {more}; {better}")

    @cached_property
    def _pessimistic(self) -> tuple[Composed, Composed]:
        profiles = [part.upper for part in self.parts]
        return self._both(profiles, upper=True)

    def _both(self, profiles: list[Profile], *, upper: bool) -> tuple[Composed, Composed]:
        """Both directions; the more steps, the wider their sum, and the coarser a grid will do."""
        interval = self.interval
        if not (upper or self.wanted_interval):  # what is lost for sure above may be a loss far away below
            interval = max(interval, max(map(reach, profiles)) / _LONGEST)
        coarsest = interval * _COARSER
        while True:
            sides = self._sides(profiles, interval, upper=upper)
            points = max(side.points(0.0) for side in sides)
            if points <= WIDEST:
                return sides[0], sides[-1]
            if self.wanted_interval or interval >= coarsest:
                raise self._too_many(points)
            interval = min(interval * 2.0 * points / WIDEST, coarsest)

    def _sides(self, profiles: list[Profile], interval: float, *, upper: bool) -> list[Composed]:
        laws = [loss_laws(profile, interval, upper=upper) for profile in profiles]
        symmetric = all(p.is_symmetric for p in profiles)
        return [
            Composed(tuple((law[side], part.steps) for law, part in zip(laws, self.parts, strict=True)), upper)
            for side in ((0,) if symmetric else (0, 1))
        ]

    def pld(self) -> Any:
        """dp-accounting's PrivacyLossDistribution of the whole composition (its FFT, no error bound added)."""
        need("dp_accounting", "a privacy loss distribution")
        from dp_accounting.pld.pld_pmf import DensePLDPmf
        from dp_accounting.pld.privacy_loss_distribution import PrivacyLossDistribution

        def pmf(composed: Composed) -> Any:
            total = None
            for law, steps in composed.laws:
                part = DensePLDPmf(law.interval, law.first, law.mass.copy(), law.infinite, True).self_compose(steps)
                total = part if total is None else total.compose(part)
            return total

        forward, backward = self._pessimistic
        return PrivacyLossDistribution(pmf(forward), None if forward is backward else pmf(backward))


def _kept(composed: Composed, curve: Curve) -> float:
    """How much of a step's delta(0) its law on the grid has, from below."""
    law, whole = composed.laws[0][0], math.exp(float(curve(np.asarray(0.0))))
    gain = -np.expm1(-np.maximum(law.index * law.interval, 0.0))
    return (float(np.sum(law.weights * gain)) + law.infinite) / whole if whole > 0.0 else 1.0


def _dividing(end: float, interval: float) -> float:
    """The interval, made a little smaller so that the largest loss of a pure part falls on the grid."""
    return end / math.ceil(end / interval) if end > 0.0 and end / interval < math.inf else interval


def rough_profile(guarantee: Guarantee) -> Profile:
    """Near the upper bound and quick, but no bound: on a coarse grid, with attacks in place of symmetric bounds.

    For searches, which have to confirm their answers by the guarantee itself.
    """
    parts = tuple(Part(_quick(part), None, part.steps) for part in guarantee.parts)
    return parts[0].upper if len(parts) == 1 and parts[0].steps == 1 else Composition(parts, points=_ROUGH).upper


def rough_step(guarantee: Guarantee) -> Profile:
    """The largest of its steps' profiles, as `rough_profile` takes them: the whole is no more private than a step."""
    return Profile.maximum(_quick(part) for part in guarantee.parts)


def _quick(part: Part) -> Profile:
    if part.lower is None or part.attacks or not part.upper.is_symmetric:
        return part.upper
    return Profile.symmetric(part.lower.forward)


def composed_profile(profiles: Sequence[Profile]) -> Profile:
    """The (upper) profile of several mechanisms run once each on the same data."""
    parts = _merged([Part(profile, None) for profile in profiles])
    return parts[0].upper if len(parts) == 1 and parts[0].steps == 1 else Composition(parts).upper


def _attacks(parts: Sequence[Part]) -> tuple[tuple[Profile, ...], ...]:
    """One profile per part, for each kind of record worth trying; empty when there is no attack."""
    if any(part.lower is None for part in parts):
        return ()
    listed = [dict(part.attacks) for part in parts if part.attacks]
    if any(kinds.keys() != listed[0].keys() for kinds in listed):
        return ()
    kinds: list[Any] = list(listed[0]) if listed else [None]
    choices = {kind: tuple(p for part in parts if (p := _of_kind(part, kind)) is not None) for kind in kinds}
    if len(kinds) > _ALL:
        by_distance = max(kinds, key=lambda kind: sum(_distance(parts, choices[kind])))
        by_reach = max(kinds, key=lambda kind: sum(p.epsilon(_SMALL) for p in choices[kind]))
        kinds = list(dict.fromkeys((by_distance, by_reach)))
    return tuple(choices[kind] for kind in kinds)


def _of_kind(part: Part, kind: Any) -> Profile | None:
    return dict(part.attacks)[kind] if part.attacks else part.lower


def _distance(parts: Sequence[Part], profiles: Sequence[Profile]) -> list[float]:
    return [part.steps * float(p.delta(0.0)) for part, p in zip(parts, profiles, strict=True)]
