"""PrivateMean: a private sum, divided by the number of records.

With `population`, the public number of records, or a design that declares it under replace-one, that is a division by a
public number. Otherwise the number is secret too: every row carries one more entry that counts, `count_share` times as
long as a record may be, and the mean is the ratio of two released numbers. A ratio of noisy numbers is slightly biased,
by about the square of the count's relative error; its errors are those of the linearised ratio.

Where the bounds are pairs (lowest, highest), records are measured from the middle of theirs, which is added to the mean
afterwards: the noise then depends only on the width of the bounds.
"""

import math
from dataclasses import dataclass

import numpy as np

from ..core.guarantee import Guarantee
from ..core.release import Release
from ..numerics.log_domain import FloatArray
from ..validation import in_range
from .release import Released, SumJob, SumRelease, flattened


@dataclass(frozen=True, slots=True, kw_only=True)
class PrivateMean(SumJob):
    """A private mean of vectors.

    Parameters:
        population: The public number of records, by which the sum is divided; if None, it is secret and counted.
        count_share: How much the count of a secret number may add to a row, in norms of a record.
        bounds, epsilon, delta, noise, sampler, sample_size, scale, error_share, arithmetic, p, neighbors, norms, label:
            As for `PrivateSum`; `scale` is that of the sum. `radius` is an old name of `bounds`.

    Returns:
        `release(X, key=None, budget=None)` gives a `Release`: the mean of the clipped records, its `noise_error`, its
        `sampling_error` and its `guarantee`. A ratio of two noisy numbers is slightly biased.

    Formal guarantee:
        That of the released sum (and count), of which the mean is a function: (epsilon, delta)-DP for `neighbors`.

    >>> from privamp.testing import seeded_key
    >>> mean = PrivateMean(bounds=2.0, epsilon=1.0, population=1000).release([0.5] * 1000, key=seeded_key(90211))
    >>> abs(mean.value - 0.5) < 0.05, round(mean.noise_error, 4)
    (True, 0.0028)
    """

    count_share: float = 0.25

    def _check_together(self) -> None:
        super(PrivateMean, self)._check_together()
        in_range(0, 10, open_ends=True, count_share=self.count_share)

    def task(self, dimension: int) -> SumRelease:
        """The plan for rows of this many numbers."""
        return SumRelease(self, self.middle(dimension), 0.0 if self._records else self.count_share)

    @property
    def _records(self) -> int | None:
        return self.population or self.public_records

    def answer(self, task: SumRelease, privacy: Guarantee, released: Released, flat: bool) -> Release:
        """The estimate from what was released; `flat` for numbers instead of rows."""
        sums, variance, counted = released
        n = max(float(self._records or 0.0) or float(counted or 0.0), 1.0)
        error, source = task.sampling_error(variance, n)
        away = sums / n  # from the centre
        value = away + np.array(task.rows.centre)
        noisy: FloatArray | float = task.noise_error / n
        if counted is not None:
            noisy = np.hypot(task.noise_error, away * task.noise_error / task.rows.count) / n
        if error is not None:
            drift = np.abs(away) * math.sqrt(n * task.plan.worst(0, task.rows.radius)) if counted is not None else 0.0
            error = (error + drift) / n
        value, noisy, error = flattened(flat, value, noisy, error)
        return task.answered(value, noisy, error, privacy, source, task.plan.grid / n, counted)
