"""The rule that draws the sample, and the least noise with which it meets the budget at the target size.

Everything here is a function of public facts and of the noisy first look. A pure or Gaussian release is described by
one number, its influence per unit of norm; probabilities fall as it falls, so the target size is a root in it.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from ..core.influence import Influence
from ..errors import Infeasible, InvalidInput
from ..numerics.log_domain import as_floats
from ..numerics.roots import halved
from ..rules.coreset import coreset, largest_size
from ..rules.gaussian_weights import largest_influence
from ..rules.privacy_constrained import privacy_constrained
from ..rules.profiles import GaussianProfile, LinearProfile
from ..rules.rule import Rule
from ..rules.uniform import uniform
from .first_look import MIDDLES, FirstLook
from .fit_plan import Split

_INSIDE = 1.0 - 1e-9  # room for rounding on the way to a certified number
_SHARE = 0.5  # the coreset rule's uniform part


@dataclass(frozen=True, slots=True)
class Target:
    """What the sample must satisfy."""

    epsilon: float
    delta: float
    sampler: str | None
    size: float | None  # None: chosen from the noise of the whole data


def noise_level(target: Target, look: FirstLook, split: Split) -> float:
    """The largest influence per unit of norm that meets the target at the wanted size."""
    at_radius = float(split.influence(1.0).at(1.0))
    most = _unsampled(target, split.is_gaussian) / at_radius
    if target.sampler is None or (target.size is None and target.sampler != "coreset"):
        return most
    if target.size is None:
        raise InvalidInput('sampler="coreset" needs a sample_size, the expected number of records in the sample')
    if target.sampler == "uniform":
        rate = min(target.size / look.records, 1.0)
        return _at_rate(target, rate, split.is_gaussian) / at_radius
    if target.sampler == "coreset":
        return _largest(lambda x: _meets(target, coreset_rule(target, look, split.influence(x))), most)
    size = target.size
    return _largest(lambda x: expected_size(target, look, split.influence(x)) <= size, most)


def make_rule(target: Target, look: FirstLook, influence: Influence) -> Rule:
    """The rule for a release with this influence."""
    profile = _profile(influence)
    if target.sampler == "privacy-constrained":
        if isinstance(profile, GaussianProfile):
            return privacy_constrained(profile, target.epsilon, target.delta, radius=1.0)
        return privacy_constrained(profile, target.epsilon, radius=1.0)
    if target.sampler == "coreset":
        return coreset_rule(target, look, influence)
    rate = 1.0 if target.sampler is None or target.size is None else min(target.size / look.records, 1.0)
    return uniform(profile, rate=rate, radius=1.0, delta=target.delta)


def coreset_rule(target: Target, look: FirstLook, influence: Influence) -> Rule:
    """By squared norms, with the size and mean square of the first look."""
    square = max(look.mean_square, 1e-6)
    size = min(target.size or math.inf, largest_size(_SHARE, look.records, square, 1.0))
    return coreset(
        _profile(influence), share=_SHARE, size=size, population=look.records, mean_squared_norm=square, radius=1.0,
        delta=target.delta,
    )  # fmt: skip


def expected_size(target: Target, look: FirstLook, influence: Influence) -> float:
    """About how many records a privacy-constrained rule keeps."""
    return make_rule(target, look, influence).expected_size(MIDDLES, look.histogram)


def _profile(influence: Influence) -> LinearProfile | GaussianProfile:
    return GaussianProfile(influence) if influence.kind == "gaussian" else LinearProfile(influence)


def _unsampled(target: Target, is_gaussian: bool) -> float:
    return _at_rate(target, 1.0, is_gaussian)


@lru_cache(maxsize=128)
def _at_rate(target: Target, rate: float, is_gaussian: bool) -> float:
    """The largest influence of a record that is kept with probability `rate` and weighted by one over it."""
    if is_gaussian:
        return (
            float(largest_influence(as_floats([rate]), target.epsilon * _INSIDE, target.delta * _INSIDE)[0]) * _INSIDE
        )
    gain = math.log(math.expm1(target.epsilon)) if target.epsilon < 700 else target.epsilon
    return rate * float(np.logaddexp(0.0, gain - math.log(rate))) * _INSIDE


def _meets(target: Target, rule: Rule) -> bool:
    return float(rule.guarantee().delta(target.epsilon * _INSIDE)) <= target.delta


def _largest(holds: Callable[[float], bool], most: float) -> float:
    """The largest number up to `most` for which `holds`, to one part in 500; it holds for all smaller ones."""
    if holds(most):
        return most
    high = low = most
    while not holds(low):
        high, low = low, low / 8.0
        if low < most * 1e-12:
            raise Infeasible("no amount of noise meets the budget at this sample_size; use a larger sample")
    is_narrow = lambda low, high: high <= low * 1.002  # noqa: E731
    return halved(lambda x: not holds(x), low, high, until=is_narrow, geometric=True)[0]
