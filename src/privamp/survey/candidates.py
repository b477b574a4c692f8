"""User-supplied designs in a plan: the errors of a private mean with their public weights.

The noise is what `estimate` would add with the number of records public. The sampling error is that of a population
with the public mean and standard deviation; where they are not given, the largest that bounds and caps allow.
"""

from collections.abc import Mapping
from typing import Any

import numpy as np

from ..core.design import Design
from ..core.weighting import Weighting
from ..errors import InvalidInput, NoTheorem
from .units import Units, signal_to_noise

Columns = Mapping[str, Any]  # by the names that designs read them by


def weights_of(design: Design, records: int, columns: Columns) -> Weighting:
    """The design's weights on these records; raises if something is missing."""
    if design.public_size not in (None, records):
        raise InvalidInput(
            f"a candidate declares {design.public_size} records but the frame has {records}; declare that number"
        )
    missing = [name for name in design.reads if name not in columns]
    if missing:
        raise InvalidInput(f"a candidate reads {missing[0]!r}, which is not a column of the frame; add it")
    found = None if design.parts else design.weighting(records, float(records), columns)
    if found is None:
        raise NoTheorem(
            f"{type(design).__name__} has no public weights, because {design.unweighted}, so it cannot be planned; "
            "omit it"
        )
    return found


def noise_scale(design: Design, weights: Weighting, noise: str, epsilon: float, delta: float, half: float) -> float:
    """Of the noise on the weighted total when no value is farther than `half` from the middle."""
    return half * weights.heaviest / signal_to_noise(design, noise, epsilon, delta).theta


def sampling_variance(weights: Weighting, records: int, half: float, sd: float) -> float:
    """Of the weighted total."""
    return Units(weights).largest_variance(sd if weights.is_share else half, float(records))


def expected_variance(weights: Weighting, records: int, sd: float, away: float) -> float | None:
    """Of the weighted total of a population with this standard deviation and mean, from the middle of the bounds.

    The variance is the mean of its estimate V = Q - shrink T^2 (`core.weighting`), and T^2 has the mean
    Var + (sum z)^2; values and weights are taken as uncorrelated. None for clusters, whose sums need more than that.
    """
    if weights.cluster is not None:
        return None
    spread = float(np.sum(weights.second / weights.weight)) * (sd**2 * (records - 1) / records + away**2)
    return max(spread - weights.shrink * (records * away) ** 2, 0.0) / (1.0 + weights.shrink)


def clusters_variance(sizes: Any, drawn: int, rate: float, sd: float, icc: float) -> float:
    """Of a ratio mean of so many clusters of these sizes, each record of them kept with chance `rate` (Kish)."""
    mean, records = float(np.mean(sizes)), float(np.sum(sizes))
    effect = 1.0 + ((1.0 + float(np.var(sizes)) / mean**2) * mean - 1.0) * icc
    kept = drawn * mean
    return sd**2 * (effect * max(1.0 / kept - 1.0 / records, 0.0) + (1.0 - rate) / rate / kept)


def column_of(values: Any) -> Any:
    """A public column as designs read it: names are numbered in their order."""
    array = np.asarray(values)
    return array if array.dtype.kind in "biuf" else np.unique(array, return_inverse=True)[1].astype(np.int64)
