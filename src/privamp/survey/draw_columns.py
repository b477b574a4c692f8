"""Columns of the draw: an estimate takes strata, clusters and probabilities from the sample it is made from.

Noise by strata is calibrated to the chance with which each stratum was drawn. With the strata of another column, a
record that is nearly always drawn would get the weight and the noise of one that rarely is: a false guarantee. So the
column of the draw is used, and one that is given again must be the same.
"""

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ..core.population import Batch, column_of
from ..core.sample import Sample
from ..errors import InvalidInput


def batch_of(sample: Sample) -> Batch:
    """All records of the population, with the columns of the draw."""
    return Batch(sample._ids, 0, sample._columns)


def check_given(name: str, given: ArrayLike | None, own: NDArray[Any]) -> None:
    """A column that is given again must be the one of the draw; both are public."""
    if given is not None and not _same(column_of(given), own):
        raise InvalidInput(
            f"{name}= is not the column that the sample was drawn with, in the order of the population; leave it out, "
            "and the sample's own is used"
        )


def _same(one: NDArray[Any], other: NDArray[Any]) -> bool:
    if one.shape != other.shape:
        return False
    if one.dtype.kind in "biuf" and other.dtype.kind in "biuf":
        return bool(np.all((one == other) | ((one != one) & (other != other))))
    return all(a == b or (a != a and b != b) for a, b in zip(one.tolist(), other.tolist(), strict=True))
