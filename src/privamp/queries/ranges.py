"""Bounds of a column of unknown range, from a private histogram of powers of two.

Every record counts once, in the bin of its sign and of the power of two that its size lies under, between a public
smallest and largest size, as in Wilson et al. 2020 ("Differentially private SQL with bounded user contribution"). The
bounds reach from the first to the last bin with more records than noise alone shows in any of the empty bins, but for
one case in 500. A bin that lies beyond them has few records, a number that does not grow with the table, and on each
side they are at most twice as far as the farthest record inside. All of this is post-processing of noisy counts.
"""

import math
from dataclasses import dataclass

import numpy as np
from scipy.special import ndtri

from ..core.release import Release
from ..errors import InvalidInput
from ..numerics.log_domain import FloatArray
from ..validation import positive

_RARE = 0.002  # how often an empty bin is taken for one with records: bounds may then be far too wide


def edges_of(smallest: float, largest: float) -> tuple[float, ...]:
    """-largest, ..., -smallest, smallest, ..., largest, by factors of two."""
    positive(smallest=smallest, largest=largest)
    if not (1e-90 <= smallest < largest <= 1e90):
        raise InvalidInput(
            "sizes must rise from smallest to largest, between 1e-90 and 1e90, "
            f"got {smallest!r} and {largest!r} instead"
        )
    steps = math.ceil(math.log2(largest / smallest))
    sizes = [smallest * 2.0**k for k in range(steps + 1)]
    return (*(-size for size in reversed(sizes)), *sizes)


@dataclass(frozen=True, slots=True)
class Found:
    """The noisy counts of bins, and the bounds that follow from them."""

    edges: tuple[float, ...]
    counts: FloatArray
    noise: float
    kind: str

    @property
    def least(self) -> float:
        """A count that noise rarely reaches in an empty bin."""
        share = _RARE / len(self.counts)
        if self.kind == "gaussian":
            return -float(ndtri(share)) * self.noise
        return self.noise / math.sqrt(2.0) * math.log(0.5 / share)

    @property
    def bounds(self) -> tuple[float, float]:
        """From the first bin with records to the last; the whole range if none certainly has any."""
        held = np.flatnonzero(self.counts > self.least)
        if not held.size:
            return self.edges[0], self.edges[-1]
        low, high = self.edges[held[0]], self.edges[held[-1] + 1]
        middle = len(self.edges) // 2  # the bin around 0 is there for numbers that are almost 0
        if held[0] >= middle - 1 and len(held) > 1 and low < 0.0 < high:
            low = 0.0
        if held[-1] <= middle - 1 and len(held) > 1 and low < 0.0 < high:
            high = 0.0
        return low, high


def released(histogram: Release, edges: tuple[float, ...], kind: str) -> Release:
    """The bounds as a release of two numbers, under the guarantee of the histogram."""
    noise = float(np.asarray(histogram.noise_error).ravel()[0])
    found = Found(edges, np.asarray(histogram.value, dtype=np.float64), noise, kind)
    details = {**histogram.details, "question": str(histogram.details["question"]).replace("histogram", "bounds", 1)}
    return Release(
        np.array(found.bounds), None, None, lambda: histogram.guarantee, kind, "unknown", ("low", "high"),
        details=details,
    )  # fmt: skip
