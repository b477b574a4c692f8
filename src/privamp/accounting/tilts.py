"""Which tilt serves which epsilon: a fixed ladder of tilts, cut into pieces of the epsilon axis.

With K(tilt) the log moment of the composed loss, e^(K(tilt) - tilt epsilon) is Chernoff's bound, and the error of a
table at this tilt is proportional to it. The tilt at epsilon is the smallest one whose bound is within e^spare of the
best of the ladder. A tilt stays within it up to the smallest of (K(other) - K(tilt) + spare)/(other - tilt) over
larger ones, so the choice changes at finitely many epsilons, which depend on the laws alone and not on what was asked.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass, field

LADDER = (0.0, *(2.0 ** (0.5 * k) for k in range(-6, 48)))


@dataclass(frozen=True, slots=True)
class Rung:
    """A tilt, and the epsilons in [left, right) that it serves."""

    tilt: float
    left: float
    right: float


@dataclass(frozen=True, slots=True)
class Tilts:
    """The ladder, without the tilts whose tables would be too large."""

    log_moment: Callable[[float], float]
    fits: Callable[[float], bool]  # never asked about 0, which always serves
    _ends: dict[tuple[float, float], float] = field(default_factory=dict)
    _fitting: dict[float, bool] = field(default_factory=dict)

    def at(self, epsilon: float, spare: float) -> Rung:
        """The rung that serves this epsilon."""
        passed: list[tuple[float, float]] = []
        for tilt in LADDER:
            right = self._end(tilt, spare)
            if epsilon >= right:
                passed.append((right, tilt))
            elif self._fits(tilt):
                return Rung(tilt, self._least(sorted(passed, reverse=True), -math.inf), right)
        raise AssertionError("the last rung serves every epsilon")

    def _fits(self, tilt: float) -> bool:
        """Asked as seldom as can be: it takes longer than a moment."""
        if tilt not in self._fitting:
            self._fitting[tilt] = tilt == 0.0 or self.fits(tilt)
        return self._fitting[tilt]

    def _least(self, ends: list[tuple[float, float]], otherwise: float) -> float:
        """The first of these ends whose tilt fits."""
        return next((end for end, tilt in ends if self._fits(tilt)), otherwise)

    def _end(self, tilt: float, spare: float) -> float:
        """Up to here no larger tilt that fits is better by more than e^spare."""
        if (tilt, spare) not in self._ends:
            own, end = self.log_moment(tilt), math.inf
            found: list[tuple[float, float]] = []
            for other in LADDER[LADDER.index(tilt) + 1 :]:
                found.append(((self.log_moment(other) - own + spare) / (other - tilt), other))
                if len(found) > 1 and found[-1] > found[-2]:  # K is convex: from here on it only grows
                    end = self._least(sorted(found[:-1]), math.inf)
                    if end <= found[-1][0]:
                        break
            else:
                end = self._least(sorted(found), math.inf)
            self._ends[tilt, spare] = end
        return self._ends[tilt, spare]
