"""Design effects: the sampling variance of an estimate over that of a simple random sample of as many answers.

With e_i how a record bears on the estimate (`fitting`), a simple random sample of n = N/w records has the variance
(w - 1) (sum_i e_i^2 - (sum_i e_i)^2 / N) n / (n - 1), w the average weight. The sum of squares is a fact about the
data. It is released too, as a weighted sum over the sample, for a part of what pays for the sampling error; sum_i e_i
is the total for a total, 0 for means and ratios.

A rule that reports only variances well above their noise would mostly report variances that noise made large. A design
effect is therefore reported if the comparison D = (w - 1) (...) is at least ten standard deviations of its own noise
and the noise of the variance V at most a tenth of D, or of V where that is larger; else it is None, also where V <= 0.
Whether V is precise enough is then decided by D, whose noise is another one, and the reported effect has nearly the
truth as its median: the noise in it is at most a tenth, absolutely, for effects below 1, relatively above.

On R's samples of schools the result is R's as epsilon grows (tests/survey/test_survey_effects.py).
"""

import math
from dataclasses import dataclass

EFFECT_PART = 0.25  # of what pays for the sampling error
_NOISE = 0.1  # the largest standard deviation of noise, over what is divided by
NO_EFFECT = (
    "a design effect compares with a simple random sample of as many people, and how many this design draws is "
    "secret; omit design_effect, or give population= for every stratum"
)

NOT_HERE = (
    "estimate gives design effects of samples and strata of fixed size, without by= and sd=, and of clusters; adjust "
    "gives them for other designs"
)


@dataclass(frozen=True, slots=True)
class Effect:
    """What a sampling variance is compared with."""

    squares: float  # sum of e^2, noisy
    noise: float  # its standard deviation
    total: float  # sum of e
    records: float  # N
    weight: float  # w
    total_noise: float = 0.0  # standard deviation of the total's noise

    def of(self, variance: float, noise: float) -> float | None:
        """The design effect of an estimated variance with noise; None if noise hides one of the two."""
        drawn = self.records / self.weight
        if drawn <= 1.0 or self.weight <= 1.0:
            return None
        about = self.squares - self.total**2 / self.records
        simple = (self.weight - 1.0) * about * drawn / (drawn - 1.0)
        hidden = math.hypot(self.noise, 2.0 * self.total * self.total_noise / self.records)
        if hidden > _NOISE * about or noise > _NOISE * max(simple, variance) or variance <= 0.0:
            return None
        return variance / simple
