"""How often one record (or one person's records) appears in a sample: the law that decides privacy.

Laws are held in the log domain for u >= 1; the mass that was cut off (u so large that it is below
e^-745) is carried along as `log_tail` and counted as lost by every upper bound.
"""

import math
from dataclasses import dataclass

import numpy as np

from ..errors import InvalidInput
from ..numerics.log_domain import FloatArray, log1mexp, log_sum

_MOST = 1 << 25  # entries of a table of chances: 256 MB
_CUT = -745.0  # e^-745 is the smallest positive double


@dataclass(frozen=True, slots=True)
class Multiplicity:
    """p_u = Pr[the record appears u times], u = 1..len(log_p); `log_none` = log p_0."""

    log_none: float
    log_p: FloatArray  # shape (U,), log p_1 .. log p_U
    log_tail: float = -math.inf  # log Pr[u > U]

    @classmethod
    def certain(cls, copies: int = 1) -> "Multiplicity":
        """Exactly `copies` appearances."""
        log_p = np.full(copies, -np.inf)
        log_p[copies - 1] = 0.0
        return cls(-math.inf, log_p)

    @classmethod
    def binomial(cls, draws: int, chance: float) -> "Multiplicity":
        """Binomial(draws, chance)."""
        return _cut(_log_binomial(draws, np.asarray([chance]))[0])

    @classmethod
    def hypergeometric(cls, population: int, specials: int, draws: int) -> "Multiplicity":
        """How many of `specials` units are among `draws` units drawn without replacement."""
        return _cut(_log_hypergeometric(population, np.asarray([specials], dtype=np.float64), draws)[0])

    @property
    def counts(self) -> FloatArray:
        """u = 1..U, shape (U,)."""
        return np.arange(1, self.log_p.size + 1, dtype=np.float64)

    @property
    def log_eta(self) -> float:
        """log Pr[u >= 1], accurate when it is tiny and when it is nearly 1."""
        if self.log_none < -1e-3:
            return float(log1mexp(self.log_none))
        return min(float(np.logaddexp(log_sum(self.log_p), self.log_tail)), 0.0)

    @property
    def eta(self) -> float:
        """Pr[the record is in the sample at all]."""
        return math.exp(self.log_eta)

    @property
    def mean(self) -> float:
        """Expected number of appearances."""
        return float(np.sum(self.counts * np.exp(self.log_p)))

    def log_moment(self, epsilon: float) -> float:
        """log E e^(epsilon u), with its digits where it is tiny; inf where part of the law was cut off."""
        if self.log_tail > -math.inf:
            return math.inf
        with np.errstate(over="ignore"):
            small = float(np.sum(np.exp(self.log_p) * np.expm1(np.minimum(epsilon * self.counts, 40.0))))
        if small < 0.5 and epsilon * self.log_p.size < 40.0:
            return math.log1p(small)
        return float(np.logaddexp(self.log_none, log_sum(self.log_p + epsilon * self.counts)))

    def then_with_replacement(self, slots: int, draws: int) -> "Multiplicity":
        """Draw `draws` times with replacement from the `slots` entries the record now has u of."""
        return self._through(_log_binomial(draws, self.counts / slots))

    def then_without_replacement(self, slots: int, draws: int) -> "Multiplicity":
        """Draw `draws` of the `slots` entries without replacement."""
        return self._through(_log_hypergeometric(slots, self.counts, draws))

    def _through(self, kernel: FloatArray) -> "Multiplicity":
        """Follow the record through a stage whose row j-1 is log Pr[u | j copies], u = 0.."""
        joint = log_sum(self.log_p[:, None] + kernel, axis=0)
        law = _cut(joint)
        none = float(np.logaddexp(self.log_none, law.log_none))
        return Multiplicity(none, law.log_p, float(np.logaddexp(self.log_tail, law.log_tail)))


def _cut(log_p: FloatArray) -> Multiplicity:
    """Split off p_0 and drop the far tail, keeping its mass."""
    live = np.flatnonzero(log_p[1:] > _CUT)
    last = int(live[-1]) + 1 if live.size else 1
    tail = float(log_sum(log_p[1 + last :])) if log_p.size > 1 + last else -math.inf
    return Multiplicity(float(log_p[0]), log_p[1 : 1 + last].copy(), tail)


def _most_appearances(draws: int, chance: float) -> int:
    """A count beyond which a binomial's whole tail is below e^_CUT: Pr[X >= k] <= e^(k - mean) (mean/k)^k."""
    mean = draws * chance
    k = max(16, 2 * math.ceil(mean))
    while k < draws and k - mean - k * math.log(k / mean if mean > 0 else math.inf) > _CUT:
        k += k // 4
    return min(draws, k)


def _log_binomial(draws: int, chances: FloatArray) -> FloatArray:
    """log pmf by its ratio recursion (log-gamma would lose digits for large draws), rows per chance."""
    top = _most_appearances(draws, float(np.max(chances)))
    if top * chances.size > _MOST:
        raise InvalidInput(
            f"one record may appear some {float(top):g} times in this sample, which is too many to compute with; "
            f"draw at most about {_MOST // chances.size} times from so few"
        )
    u = np.arange(0, top, dtype=np.float64)
    with np.errstate(divide="ignore", invalid="ignore"):
        start = draws * np.log1p(-chances)
        ratio = np.log((draws - u) / (u + 1.0)) + (np.log(chances) - np.log1p(-chances))[:, None]
        rows: FloatArray = start[:, None] + np.concatenate(
            [np.zeros((chances.size, 1)), np.cumsum(ratio, axis=1)], axis=1
        )
    for i in np.flatnonzero(chances >= 1.0):  # certain appearance: all draws hit
        rows[i] = -np.inf
        if top < draws:
            raise ArithmeticError("a certain unit must keep every draw in range")
        rows[i, draws] = 0.0
    for i in np.flatnonzero(chances <= 0.0):
        rows[i] = -np.inf
        rows[i, 0] = 0.0
    return rows


def _log_hypergeometric(population: int, specials: FloatArray, draws: int) -> FloatArray:
    """log pmf of the number of specials drawn, one row per number of specials, by ratio recursion."""
    top = int(min(draws, np.max(specials)))
    rows = np.full((specials.size, top + 1), -np.inf)
    for i, k in enumerate(int(s) for s in specials):
        low, high = max(0, draws - (population - k)), min(draws, k)
        # log C(population-k, draws-low) C(k, low) / C(population, draws) as a product of `k` factors
        start = _log_first_hypergeometric(population, k, draws, low)
        u = np.arange(low, high, dtype=np.float64)
        ratio = np.log((k - u) * (draws - u)) - np.log((u + 1.0) * (population - k - draws + u + 1.0))
        rows[i, low : high + 1] = start + np.concatenate([[0.0], np.cumsum(ratio)])
    return rows


def _log_first_hypergeometric(population: int, specials: int, draws: int, low: int) -> float:
    """log Pr[u = low], low the smallest possible count."""
    i = np.arange(specials, dtype=np.float64)
    if low == 0:  # none of the specials: product of (population - draws - i)/(population - i)
        return float(np.sum(np.log1p(-draws / (population - i))))
    # low = draws - (population - specials) > 0: only specials are left out, fewer than there are
    i = i[: population - draws]
    return float(np.sum(np.log((specials - i) / (population - i))))
