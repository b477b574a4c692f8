"""A private histogram of norms, with which rules and noise may be calibrated.

Every record counts in one bin of its norm, so adding or removing a record moves one count by one; discrete Laplace
noise of scale 1/epsilon on every count makes the whole histogram epsilon-DP. Negative counts become 0.
"""

from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from ..chance.keys import Key
from ..core.guarantee import Guarantee
from ..core.ledger import BudgetLike
from ..core.population import Population
from ..core.sample import Bounded, Drawn, SeededSample
from ..designs.poisson import Poisson
from ..errors import InvalidInput
from ..mechanisms.discrete_laplace import DiscreteLaplace
from ..rules.norm_histogram import NormHistogram, octave_bins
from ..validation import positive
from .tables import column_of


def private_norm_histogram(
    norms: ArrayLike,
    *,
    radius: float,
    epsilon: float,
    key: Key | None = None,
    budget: BudgetLike | None = None,
) -> tuple[NormHistogram, Guarantee]:
    """A noisy histogram of norms up to the radius, and its guarantee: add that to the total with `compose`.

    It is charged to `budget` if given. A `key` identifies the release, but draws nothing.

    Norms above the radius count at the radius, as if the records were clipped. Every record is counted: entries that
    are missing, below 0 or not numbers count in the first bin, because an error would leak information.

    The histogram is `epsilon`-DP under add/remove: a record changes one count, which has geometric noise.
    """
    positive(radius=radius, epsilon=epsilon)
    u = column_of(norms)
    if u.ndim != 1:
        raise InvalidInput(f"norms must be one number per record, got {u.ndim} dimensions instead")
    ends = octave_bins(radius)
    bins = np.searchsorted(ends, np.where(u > 0.0, u, 0.0))
    noise = DiscreteLaplace(1.0 / epsilon)
    everybody = Poisson(1.0).draw(Population(u.size, "norms"), key)
    sample = SeededSample.if_test(everybody)
    guarantee = sample._planned([noise], budget, "norm histogram").guarantee()

    def counts(drawn: Drawn) -> Any:
        return np.bincount(np.minimum(bins[drawn.positions], ends.size - 1), minlength=ends.size)

    noisy = np.maximum(np.asarray(sample.release(noise, Bounded(counts))), 0)
    if not noisy.any():
        noisy[-1] = 1  # an empty histogram has no information; one record at the radius is the conservative choice
    return NormHistogram(ends, noisy), guarantee
