"""The sample size of a coreset for a target error of k-means costs.

This is the property of a lightweight coreset (Bachem, Lucic & Krause 2018). Let records have mean 0 and mean squared
norm v, phi(C) the mean squared distance to the nearest of the centres C, and A = (phi(C) + v)/2. A sample with weights
1/q has error eps for C when its weighted cost differs from phi(C) by at most eps A.

Theorem. Let each record be kept independently with q(x) >= min(1, (m/2n)(1 + |x|^2/v)), as `coreset(share=0.5)` keeps
it. For any one C, whatever its number of centres, the error exceeds eps with probability at most

    2 exp(-m eps^2/(64 + 32 eps/3)).

Proof. |x - c|^2 <= 2|x|^2 + 2|c|^2 for the centre c next to the mean, and |c|^2 <= 2|y|^2 + 2 d(y, C) for every record
y, so averaged |c|^2 <= 2v + 2 phi(C) = 4A. Hence d(x, C) <= 2|x|^2 + 8A <= A(4s + 8), s = |x|^2/v, because v <= 2A.
Where q < 1 a kept record adds d(x, C)/(n A q) <= (4s + 8) 2/(m (1 + s)) <= 16/m to the cost in units of A; variances
(1 - q)/q (d/(nA))^2 add up to at most (16/m) phi(C)/A <= 32/m. Bernstein's inequality. QED

For several given sets of centres the failures add up. For all sets of k centres at once the literature has
m >= c (k d log k - log failure)/eps^2, without a value for c.
"""

import math

from ..validation import in_range, positive, whole


def coreset_size(error: float, failure: float = 1e-3, sets: int = 1) -> int:
    """The least expected size with which `sets` given sets of centres all have the error, except with chance `failure`.

    >>> coreset_size(0.1), coreset_size(0.1, sets=1000)
    (49457, 94403)
    """
    positive(error=error, failure=failure)
    in_range(0.0, 1.0, failure=failure)
    whole(1, sets=sets)
    return math.ceil((64.0 + 32.0 * error / 3.0) * math.log(2.0 * sets / failure) / error**2)


def all_centres_size(error: float, clusters: int, dimension: int, failure: float, constant: float = 1.0) -> float:
    """Theorem 15 for all sets of `clusters` centres, with a constant that the literature leaves open."""
    positive(error=error, constant=constant, failure=failure)
    in_range(0.0, 1.0, failure=failure)
    return constant * (clusters * dimension * math.log(clusters) - math.log(failure)) / error**2
