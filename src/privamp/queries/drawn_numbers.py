"""How many records of a group are drawn: the law of a noisy count, for every size the group may have.

Of N records binomially many are drawn by coins, and hypergeometrically many in a sample of fixed size. Other designs
get the member of Panjer's family (binomial, Poisson, negative binomial) with the mean and the variance that they have.
Where the variance is large all of these are normal. The noise is continuous, to the grid it is rounded to, so a noisy
count has no atoms: a test by its exact law has exactly the level it says, however few are drawn.
"""

import math

import numpy as np
from scipy.special import gammaln, ndtr

from ..core.weighting import Coins, Subset
from ..numerics.half_width import tails
from ..numerics.log_domain import FloatArray
from .public_facts import PublicFacts

NORMAL = 100.0  # the variance of the number drawn from which on its law counts as normal
_FAR = 9.0  # standard deviations


def chance_below(t: float, records: float, told: PublicFacts) -> float:
    """Pr[noisy count <= t] where the group has this many records."""
    error = told.error_of_count(records)
    if error == 0.0 or error * error > NORMAL * told.weight**2:
        return float(cumulative(np.array([t - records]), error, told.noise, told.kind)[0])
    numbers, chances = law(records, told)
    found = float(chances @ cumulative(t - told.weight * numbers, 0.0, told.noise, told.kind))
    return min(max(found, 0.0), 1.0)


def cumulative(x: FloatArray, normal: float, noise: float, kind: str) -> FloatArray:
    """Pr[normal error + noise <= x]; both are symmetric around 0."""
    if kind == "gaussian" or noise == 0.0:
        both = math.hypot(normal, noise)
        return np.asarray(ndtr(x / both)) if both else np.where(x >= 0.0, 1.0, 0.0)
    b, far = noise / math.sqrt(2.0), np.abs(x)
    above = tails(far, normal, b) if normal > 1e-6 * b else 0.5 * np.exp(-far / b)
    return np.where(x >= 0.0, 1.0 - above, above)


def law(records: float, told: PublicFacts) -> tuple[FloatArray, FloatArray]:
    """How many of the group are drawn, and the chance of each number; what is far from the mean is left out."""
    mean, variance = records / told.weight, told.variance(records, records) / told.weight**2
    if isinstance(told.chances, Subset):
        m, n = told.chances.size, told.chances.population
        numbers = _near(mean, variance, max(0.0, m - (n - records)), min(records, m))
        return numbers, _normalised(_choose(records, numbers) + _choose(n - records, m - numbers))
    if isinstance(told.chances, Coins):
        return _binomial(records, told.chances.rate, mean, variance)
    return panjer(mean, variance)


def panjer(mean: float, variance: float) -> tuple[FloatArray, FloatArray]:
    """The binomial, Poisson or negative binomial law with this mean, and this variance (or a little more)."""
    ratio = variance / mean if mean else 0.0
    if ratio < 1.0 - 1e-9:
        trials = math.ceil(mean / (1.0 - ratio) - 1e-9)
        return _binomial(trials, min(mean / max(trials, 1), 1.0), mean, variance)
    numbers = _near(mean, variance, 0.0, math.inf)
    if ratio <= 1.0 + 1e-9:
        return numbers, _normalised(numbers * math.log(mean) - gammaln(numbers + 1.0))
    shape = mean / (ratio - 1.0)
    return numbers, _normalised(gammaln(numbers + shape) - gammaln(numbers + 1.0) + numbers * math.log1p(-1.0 / ratio))


def _binomial(trials: float, chance: float, mean: float, variance: float) -> tuple[FloatArray, FloatArray]:
    if chance in (0.0, 1.0):
        return np.array([trials * chance]), np.ones(1)
    numbers = _near(mean, variance, 0.0, trials)
    odds = math.log(chance) - math.log1p(-chance)
    return numbers, _normalised(_choose(trials, numbers) + numbers * odds)


def _near(mean: float, variance: float, least: float, most: float) -> FloatArray:
    far = _FAR * math.sqrt(variance) + 12.0
    return np.arange(max(math.floor(mean - far), least), min(math.ceil(mean + far), most) + 1.0)


def _choose(of: float, numbers: FloatArray) -> FloatArray:
    return np.asarray(gammaln(of + 1.0) - gammaln(numbers + 1.0) - gammaln(of - numbers + 1.0))


def _normalised(log_chances: FloatArray) -> FloatArray:
    chances = np.exp(log_chances - np.max(log_chances))
    return np.asarray(chances / np.sum(chances))
