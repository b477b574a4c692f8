"""Records that join k of t rounds, at random: an attack that adds up one score per round.

Under Q every round's ratio has the law q, under P the k rounds of the record have the law p. A round with ratio W gets
the score log(1 + (k/t)(W - 1)), its loss if each round had been joined with chance k/t, rounded to a whole number of
units. The total, modulo N, is a function of what was released, so its two laws

    P: p^(*k) * q^(*(t-k)),    Q: q^(*t)        (cyclic convolutions of the laws of one score)

are no farther apart than the run. One transform of each score's law gives both; what rounding may do to a mass is
taken off P and added to Q (and the other way round). Any pair that a round dominates serves in its place. Proof:
docs/schedules/balls_in_bins.md, Thm 4.
"""

import math

import numpy as np

from ..core.curves import pair_attack, pure_curve
from ..core.profile import Profile
from ..numerics.log_domain import FloatArray, as_floats
from ..validation import whole
from .discretize import loss_laws, reach

_SIZE = 2**16  # totals that are told apart
_POINTS = 6000  # of one round's losses
_LARGEST = 300.0  # of the losses of one round
_SPREAD = 20.0  # standard deviations of the total that are told apart
_UNIT = 1.2e-16
_MASSES = 1e-13  # relative error of one round's masses, generously


def some_of_many(profile: Profile, times: int, rounds: int, *, size: int = _SIZE) -> Profile:
    """Both directions, from below, when a record joins `times` of `rounds` rounds, each with this profile.

    >>> from privamp import Gaussian, Neighbors
    >>> attack = some_of_many(Gaussian(2.0).profile(Neighbors.ADD_REMOVE), 2, 50)
    >>> f"{attack.epsilon(1e-6):.2f}"
    '0.62'
    """
    whole(1, rounds=rounds)
    whole(1, rounds, times=times)
    far = reach(profile)
    if not 0.0 < far <= _LARGEST:
        return Profile.symmetric(pure_curve(0.0))
    law, other = loss_laws(profile, 2.0 * far / _POINTS, upper=False)
    losses, p = law.index * law.interval, law.weights
    q = p * np.exp(-losses)
    q[int(np.argmax(law.index == 0))] += max(1.0 - float(np.sum(q)) - other.infinite, 0.0)
    scores = np.log1p(np.expm1(losses) * (times / rounds))
    index = np.rint(scores / _unit(scores, p, q, times, rounds, size)).astype(np.int64) % size
    with_record, without = (as_floats(np.bincount(index, mass, size)) for mass in (p, q))
    without[int(index[0])] += other.infinite  # never with the record: told apart no more than the lowest loss
    return _pair(with_record, without, times, rounds, law.infinite)


def _unit(scores: FloatArray, p: FloatArray, q: FloatArray, times: int, rounds: int, size: int) -> float:
    """Such that the totals that matter have about `size` units."""
    mean, mean_there = float(scores @ q), float(scores @ p)
    variance = rounds * float(q @ (scores - mean) ** 2) + times * float(p @ (scores - mean_there) ** 2)
    width = _SPREAD * math.sqrt(variance) + times * abs(mean_there - mean)
    return max(width, 1e-300) / size


def _pair(p: FloatArray, q: FloatArray, times: int, rounds: int, infinite: float) -> Profile:
    """Both totals; a record that is seen for sure in one of its rounds is seen."""
    from scipy import fft

    there, elsewhere = fft.rfft(p), fft.rfft(q)
    both = [elsewhere ** (rounds - times) * there**times, elsewhere**rounds]
    totals, errors = [], []
    for spectrum in both:
        height = float(np.mean(np.abs(spectrum) ** (1.0 - 1.0 / rounds)))  # of a power with one factor less
        errors.append(2.0 * _UNIT * (2.0 * math.log2(p.size) + 8.0) * (rounds * height + 1.0))
        totals.append(np.maximum(fft.irfft(spectrum, p.size), 0.0))
    share = rounds * _MASSES
    seen = -math.expm1(times * math.log1p(-min(infinite, 1.0 - _UNIT))) * (1.0 - share)
    low, high = ([_moved(t, way * e, way * share) for t, e in zip(totals, errors, strict=True)] for way in (-1.0, 1.0))
    forward = pair_attack(_logs(np.append(low[0], seen)), _logs(np.append(high[1], 0.0))).forward
    backward = pair_attack(_logs(high[0]), _logs(low[1])).backward
    return Profile(forward, backward)


def _moved(mass: FloatArray, error: float, share: float) -> FloatArray:
    return np.maximum(mass * (1.0 + share) + error, 0.0)


def _logs(mass: FloatArray) -> FloatArray:
    with np.errstate(divide="ignore"):
        return np.log(mass)
