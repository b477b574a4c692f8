"""IS section 7: importance sampling of a stream. Each record is kept or dropped as it arrives, by its own keyed coin.

Record by record, in batches of any size or in any order, the sample is the one drawn from all records at once.
"""

from collections.abc import Iterator
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from ...chance.keys import Key
from ...core.population import Batch
from ...core.sample import Drawn
from ...designs.importance import ImportanceSampling
from ...mechanisms.laplace import Laplace
from ...mechanisms.norm_noise import NormNoise
from ...mechanisms.sum_and_count import SumAndCount
from ...numerics.log_domain import FloatArray
from ...rules.privacy_constrained import privacy_constrained
from ...rules.profiles import LinearProfile
from ..files import compared
from ..printed import Check, said
from ..registry import Entry, Outcome
from .figure_2 import IS

RECORDS, DIMENSION = 3000, 6


def design() -> ImportanceSampling:
    """Privacy-constrained sampling for sums and counts with epsilon 1."""
    noise = SumAndCount(NormNoise(4.0, DIMENSION), Laplace(8.0))
    return ImportanceSampling(privacy_constrained(LinearProfile.of(noise), epsilon=1.0, radius=1.0))


def drawn(of: ImportanceSampling, x: FloatArray, pieces: list[NDArray[np.int64]], key: Key) -> Drawn:
    """The sample when the records arrive in these pieces."""
    parts = [of.partial(Batch(np.arange(len(x))[piece], int(piece[0]), {of.column: x[piece]}), key) for piece in pieces]
    return of.finish(of.merge(parts), key)


def same(one: Drawn, other: Drawn) -> bool:
    """Whether positions and weights are equal to the last bit."""
    return np.array_equal(one.positions, other.positions) and np.array_equal(one.weights, other.weights)


def checks(records: int = RECORDS) -> Iterator[Check]:
    """Compare all records at once with single records, uneven batches and a reversed stream."""
    rng = np.random.default_rng(6)
    x = rng.normal(size=(records, DIMENSION)) * 0.15
    x /= np.maximum(np.linalg.norm(x, axis=1, keepdims=True), 1.0)
    of, key = design(), Key.generate()
    whole = drawn(of, x, [np.arange(records)], key)
    single = [np.array([i]) for i in range(records)]
    uneven = np.split(np.arange(records), [1, 7, records // 3, records - 2])
    for what, pieces in (("record by record", single), ("in uneven batches", uneven), ("in reverse", single[::-1])):
        found = same(drawn(of, x, pieces, key), whole)
        yield said(f"a stream read {what} gives the sample drawn from all records at once", found,
                   f"{whole.positions.size} of {records} records, the same" if found else "another sample")  # fmt: skip
    other = drawn(of, x, [np.arange(records)], Key.generate())
    yield Check("another key gives another sample", "-", f"{other.positions.size} records", not same(other, whole))


def run(out_dir: Path) -> Outcome:
    """Draw, compare and write the files."""
    return compared(out_dir, ENTRY, list(checks()))


ENTRY = Entry(
    name="is-streaming",
    paper=IS,
    title="Section 7: sampling a stream",
    summary="record by record, in batches or in reverse: the same sample as from all records at once",
    run=run,
)
