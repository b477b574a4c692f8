"""PrivateSum: the sum of all records' vectors, from all of them or from a sample, with noise.

Each record is cut to its `bounds`: to norm r where they are a number r (l1 for Laplace, l2 for Gaussian, l_p for norm
noise), or column by column. That is a bias that no error below knows of, so choose them with care and from public
knowledge. The clipped sum is estimated without
bias: a kept record counts 1/q times, q its probability. Laplace and Gaussian noise are exact by default, see
docs/exact_noise.md; there every record's share is also rounded toward zero, by less than `resolution`.
"""

from dataclasses import dataclass

from ..core.guarantee import Guarantee
from ..core.release import Release
from .release import Released, SumJob, SumRelease, flattened


@dataclass(frozen=True, slots=True, kw_only=True)
class PrivateSum(SumJob):
    """A private sum of vectors.

    `bounds` are public: a number r for rows of norm at most r, (lowest, highest) for every number, or one such pair per
    column. A missing number counts as 0, cut to the bounds.

    Give `epsilon` (and `delta` for Gaussian noise) or the noise itself as `scale`. With `sampler` "uniform" or
    "privacy-constrained" give two of `epsilon`, `scale` and `sample_size`; the last needs `population`, the public
    number of records, and then bounds the expected size whatever the records are, or public `norms` (a
    `NormHistogram`), and then is the expected size for those. `error_share` > 0 spends that share on a private estimate
    of the sampling error; without it the error is a bound from public facts.

    The noise is `noise`, "laplace", "gaussian" or "norm" (in l_`p`), `arithmetic` is "exact" or "idealised", `label`
    names the data set, and `neighbors` is the relation of the guarantee. `radius` is an old name of `bounds`.

    >>> from privamp.testing import seeded_key
    >>> total = PrivateSum(bounds=2.0, epsilon=1.0).release([[1.0, 0.5]] * 1000, key=seeded_key(90210))
    >>> total.value.shape, round(total.noise_error, 3), round(total.guarantee.epsilon(), 9)
    ((2,), 2.828, 1.0)
    """

    def answer(self, task: SumRelease, privacy: Guarantee, released: Released, flat: bool) -> Release:
        """The estimate from what was released; `flat` for numbers instead of rows."""
        sums, variance, _ = released
        error, source = task.sampling_error(variance, self.population)
        value, error = flattened(flat, sums, error)
        return task.answered(value, task.noise_error, error, privacy, source, task.plan.grid)
