"""A histogram of norms, released privately: what rules and noise may be calibrated with.

Every record counts in one bin of its norm, so adding or removing a record moves one count by one; discrete Laplace
noise of scale 1/epsilon on every count makes the whole histogram epsilon-DP. Negative counts become 0.
"""

from dataclasses import replace

import numpy as np
from numpy.typing import ArrayLike

from ..amplification import amplify
from ..chance.stream import Stream
from ..core.guarantee import NOT_PRIVATE, Guarantee
from ..designs.poisson import Poisson
from ..errors import InvalidInput
from ..mechanisms.discrete_laplace import DiscreteLaplace
from ..rules.norm_histogram import NormHistogram, octave_bins
from ..validation import positive
from .tables import column_of


def private_norm_histogram(
    norms: ArrayLike, *, radius: float, epsilon: float, stream: Stream | None = None
) -> tuple[NormHistogram, Guarantee]:
    """A noisy histogram of norms up to the radius, and what it cost: add that to the total by `compose`.

    Norms above the radius count at the radius, as if the records were clipped. Every record is counted: what is
    missing, below 0 or no number counts in the first bin, because an error would tell.
    """
    positive(radius=radius, epsilon=epsilon)
    u = column_of(norms)
    if u.ndim != 1:
        raise InvalidInput(f"norms must be one number per record, got {u.ndim} dimensions instead")
    ends = octave_bins(radius)
    bins = np.searchsorted(ends, np.where(u > 0.0, u, 0.0))
    counts = np.bincount(np.minimum(bins, ends.size - 1), minlength=ends.size)
    noise = DiscreteLaplace(1.0 / epsilon)
    stream = stream or Stream.from_os()
    noisy = np.maximum(np.asarray(noise.release(counts, stream)), 0)
    guarantee = amplify(noise, Poisson(1.0))
    if stream.is_test:
        guarantee = replace(guarantee, assumes=(*guarantee.assumes, NOT_PRIVATE))
    if not noisy.any():
        noisy[-1] = 1  # an empty histogram says nothing; one record at the radius is the cautious reading
    return NormHistogram(ends, noisy), guarantee
