"""Randomised response: every record of the sample gives its own randomised answer, and all answers are released.

A record reports its own category with probability e^epsilon/(e^epsilon + c - 1) and any other with equal chances:
epsilon-DP under replace-one. Under add-remove the number of answers alone reveals the record, so that is rejected.

Profile of u copies (a u-fold product): the loss is epsilon * (answers "old" minus answers "new"), so it is
the discrete curve of that difference's law. One copy: (e^epsilon - e^eps)/(e^epsilon + c - 1). Warner 1965;
Kairouz et al. 2016.
"""

import math
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from ..chance.stream import Stream
from ..core.curves import discrete_curve
from ..core.mechanism import ONE, Change, Mechanism
from ..core.neighbors import Neighbors
from ..core.profile import Profile
from ..errors import InvalidInput, NoTheorem
from ..numerics.log_domain import FloatArray
from ..validation import positive, whole
from .noise import whole_numbers

_MOST = 2000  # copies; the law of the difference takes copies^2 steps


def log_difference_law(epsilon: float, categories: int, copies: int) -> FloatArray:
    """log Pr[#old - #new = d], d = -copies..copies, when the truth is old."""
    log_new = -float(np.logaddexp(epsilon, math.log(categories - 1)))
    log_old = epsilon + log_new
    log_other = math.log(categories - 2) + log_new if categories > 2 else -math.inf
    law = np.zeros(1)
    for _ in range(copies):
        padded = np.pad(law, 2, constant_values=-np.inf)
        moved = np.logaddexp(padded[2:] + log_new, padded[:-2] + log_old)
        law = np.logaddexp(moved, padded[1:-1] + log_other)
    return law


@dataclass(frozen=True, slots=True)
class RandomizedResponse(Mechanism):
    """k-ary randomised response, drawn with integer arithmetic only.

    A record answers one of `categories` (k, at least 2) numbers: its own with probability e^epsilon/(e^epsilon + k -
    1), each other one equally often. Every answer is epsilon-DP under replace-one.

    >>> RandomizedResponse(epsilon=1.0).profile(Neighbors.REPLACE_ONE).epsilon()
    1.0
    """

    epsilon: float
    categories: int = 2
    neighbors: Neighbors = field(default=Neighbors.REPLACE_ONE, init=False)

    def __post_init__(self) -> None:
        positive(epsilon=self.epsilon)
        whole(2, 2**32, categories=self.categories)

    def profile(self, neighbors: Neighbors, change: Change = ONE) -> Profile:
        """The exact curve of u copies, symmetric."""
        if neighbors.kind != "replace-one":
            raise NoTheorem(
                "RandomizedResponse releases one answer per record, so adding a record changes their number; use "
                "neighbors=Neighbors.REPLACE_ONE"
            )
        if change.weight != 1.0 or change.norm is not None:
            raise NoTheorem("RandomizedResponse has no weights or norms; use a mechanism that adds noise")
        if change.copies > _MOST:
            raise NoTheorem(f"RandomizedResponse is certified for up to {_MOST} copies, got {change.copies}")
        law = log_difference_law(self.epsilon, self.categories, change.copies)
        losses = float(self.epsilon) * np.arange(-change.copies, change.copies + 1, dtype=np.float64)
        return Profile.symmetric(discrete_curve(losses, law))

    def release(self, value: Any, stream: Stream) -> Any:
        """One randomised answer for every category number 0..categories-1, shape kept."""
        array = whole_numbers(value)
        if np.any((array < 0) | (array >= self.categories)):
            raise InvalidInput(f"every category must be from 0 to {self.categories - 1}; recode them first")
        forget = (stream.words(array.size) <= self._last_forgetting_word).reshape(array.shape)
        anyone = stream.below(self.categories, array.size).reshape(array.shape)
        answers = np.where(forget, anyone, array)
        return answers if np.ndim(value) else int(answers)

    @property
    def _last_forgetting_word(self) -> np.uint64:
        """A record answers uniformly when its word is at most this; rounded up, so never less private."""
        log_total = float(np.logaddexp(self.epsilon, math.log(self.categories - 1)))
        chance = math.exp(math.log(self.categories) - log_total)
        words = math.ceil(min(chance * (1.0 + 1e-13), 1.0) * 2.0**64)
        return np.uint64(max(words, 1) - 1)
