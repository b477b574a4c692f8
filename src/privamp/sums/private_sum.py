"""PrivateSum: the sum of all records' vectors, from all of them or from a sample, with noise.

Each record is clipped to norm `radius` (l1 for Laplace, l2 for Gaussian, l_p for norm noise): a bias toward zero that
no error below knows of, so choose the radius with care and from public knowledge. The clipped sum is estimated without
bias: a kept record counts 1/q times, q its probability. Laplace and Gaussian noise are exact by default, see
docs/exact_noise.md; there every record's share is also rounded toward zero, by less than `resolution`.
"""

from dataclasses import dataclass
from typing import Any

from ..chance.keys import Key
from ..core.guarantee import Guarantee
from ..core.ledger import BudgetLike
from ..core.release import Release
from .options import SumOptions
from .release import Released, SumRelease, flattened, records


@dataclass(frozen=True, slots=True, kw_only=True)
class PrivateSum(SumOptions):
    """A private sum of vectors.

    Give `epsilon` (and `delta` for Gaussian noise) or the noise itself as `scale`. With sampler="uniform" or
    "privacy-constrained" give two of `epsilon`, `scale` and `sample_size`; the last needs `population`, the public
    number of records, and then bounds the expected size whatever the records are, or public `norms` (a
    `NormHistogram`), and then is the expected size for those. `error_share` > 0 spends that share on a private estimate
    of the sampling error; without it the error is a bound from public facts.

    >>> from privamp.testing import seeded_key
    >>> total = PrivateSum(radius=2.0, epsilon=1.0).release([[1.0, 0.5]] * 1000, key=seeded_key(90210))
    >>> total.value.shape, round(total.noise_error, 3), round(total.guarantee.epsilon(), 9)
    ((2,), 2.828, 1.0)
    """

    def release(self, X: Any, key: Key | None = None, *, budget: BudgetLike | None = None) -> Release:
        """The noisy sum over the rows of X (or over its numbers, for one column), charged to `budget` if given."""
        x, flat = records(X)
        task = self.task(x.shape[1])
        sample = task.draw(x, key)
        privacy = task.certify(sample, budget)
        return self.answer(task, privacy, task.release(sample, x), flat)

    def task(self, dimension: int) -> SumRelease:
        """The plan for rows of so many numbers."""
        return SumRelease(self, dimension)

    def answer(self, task: SumRelease, privacy: Guarantee, released: Released, flat: bool) -> Release:
        """The estimate from what was released; `flat` for numbers instead of rows."""
        sums, variance, _ = released
        error, source = task.sampling_error(variance, self.population)
        value, error = flattened(flat, sums, error)
        return task.answered(value, task.noise_error, error, privacy, source, task.plan.grid)
