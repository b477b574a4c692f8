"""Design effects: the sampling variance of an estimate over that of a simple random sample of as many answers.

With e_i how a record bears on the estimate (`fitting`), a simple random sample of n = N/w records has the variance
(w - 1) (sum_i e_i^2 - (sum_i e_i)^2 / N) n / (n - 1), w the average weight. The sum of squares is a fact about the
data. It is released too, as a weighted sum over the sample, for a part of what pays for the sampling error; sum_i e_i
is the total for a total, 0 for means and ratios. Squares or variances that cannot be told from their noise give no
design effect (None).

On R's samples of schools the result is R's as epsilon grows (tests/survey/test_survey_effects.py).
"""

from dataclasses import dataclass

EFFECT_PART = 0.25  # of what pays for the sampling error
_CLEAR = 2.0  # standard deviations of their noise that squares must have
NO_EFFECT = (
    "a design effect compares with a simple random sample of as many people, and how many this design draws is secret; "
    "leave design_effect out, or give population= for every stratum"
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

    def of(self, variance: float, noise: float) -> float | None:
        """The design effect of an estimated variance with noise; None where noise hides one of the two."""
        about = self.squares - self.total**2 / self.records
        drawn = self.records / self.weight
        if about < _CLEAR * self.noise or variance < _CLEAR * noise or drawn <= 1.0 or self.weight <= 1.0:
            return None
        return variance / ((self.weight - 1.0) * about * drawn / (drawn - 1.0))
