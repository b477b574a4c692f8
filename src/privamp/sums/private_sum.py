"""PrivateSum: the sum of all records' vectors, from all of them or from a sample, with noise.

Each record is clipped to its `bounds`: to norm r where they are a number r (l1 for Laplace, l2 for Gaussian, l_p for
norm noise), or column by column. The errors below do not include this bias, so choose the bounds with care and from
public knowledge. The clipped sum is estimated without bias: a kept record counts 1/q times, q its probability. Laplace
and Gaussian noise are exact by default, see docs/exact_noise.md; there every record's share is also rounded toward
zero, by less than `resolution`.

Where the number n of records is public (replace-one, and a design that declares it), records are measured from the
middle c of their bounds and n c is added afterwards: one record then moves the sum by half the width of the bounds from
its middle, wherever they lie.
"""

from dataclasses import dataclass

import numpy as np

from ..core.guarantee import Guarantee
from ..core.release import Release
from .release import Released, SumJob, SumRelease, flattened


@dataclass(frozen=True, slots=True, kw_only=True)
class PrivateSum(SumJob):
    """A private sum of vectors.

    Parameters:
        bounds: Public: a number r for rows of norm at most r, (lowest, highest) for every number, or one such pair per
            column. Records are clipped to them; a missing number counts as 0 before that. `radius` is its old name.
        epsilon, delta: The privacy loss of the release; `delta` is for Gaussian noise.
        scale: The scale of the noise, instead of `epsilon`.
        noise: "laplace", "gaussian" or "norm" (in l_`p`); `arithmetic` is "exact" or "idealised".
        sampler: None (all records), a design, a rule, or "uniform" or "privacy-constrained", which take two of
            `epsilon`, `scale` and `sample_size`.
        sample_size: The expected size, given `population`, the public number of records, whatever the records are; or
            for public `norms` (a `NormHistogram`) of the records.
        error_share: The share of the budget for a private estimate of the sampling error; 0: a public bound on it.
        neighbors: The relation of the guarantee; None: the one that the design's theorem gives.
        label: Names the data set, as in `Population`.

    Returns:
        `release(X, key=None, budget=None)` gives a `Release`: the estimated sum of the clipped records without bias,
        its `noise_error`, its `sampling_error` and its `guarantee`.

    Formal guarantee:
        The release is (epsilon, delta)-DP for `neighbors`, for the noise that is actually added if the arithmetic is
        exact. With `scale` its guarantee is that of `guarantee`. The number of rows of X is protected under add/remove
        and public under replace-one.

    >>> from privamp.testing import seeded_key
    >>> total = PrivateSum(bounds=2.0, epsilon=1.0).release([[1.0, 0.5]] * 1000, key=seeded_key(90210))
    >>> total.value.shape, round(total.noise_error, 3), round(total.guarantee.epsilon(), 9)
    ((2,), 2.828, 1.0)
    """

    def task(self, dimension: int) -> SumRelease:
        """The plan for rows of this many numbers, measured from the middle of the bounds where their number is
        public."""
        return SumRelease(self, self.middle(dimension) if self.public_records else (0.0,) * dimension)

    def answer(self, task: SumRelease, privacy: Guarantee, released: Released, flat: bool) -> Release:
        """The estimate from what was released; `flat` for numbers instead of rows."""
        sums, variance, _ = released
        error, source = task.sampling_error(variance, self.population)
        value, error = flattened(flat, sums + np.array(task.rows.centre) * (self.public_records or 0), error)
        return task.answered(value, task.noise_error, error, privacy, source, task.plan.grid)
