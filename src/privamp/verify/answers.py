"""Checks a design's methods against its law and its draws: weights, columns, streaming, identity."""

import pickle
from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..core.design import Design
from ..core.population import Batch, Population
from ..core.sample import Drawn
from ..errors import InvalidInput
from ..numerics.log_domain import FloatArray
from .symmetry import Law

_CLOSE = 1e-9  # relative: weights are floats, laws are fractions


def check_answers(design: Design, population: Population, law: Law) -> Iterator[str]:
    """One sentence for every method whose answer is wrong for this population."""
    yield from _identity(design)
    yield from _reads(design, population)
    yield from _decides_alone(design, population)
    if population.size:
        counts = np.array([[units.count(int(i)) for i in population.ids] for units in law], dtype=float)
        chances = np.array([float(chance) for chance in law.values()])
        yield from _weights(design, population, chances @ counts)
        yield from _spread(design, population, counts, chances)


def _identity(design: Design) -> Iterator[str]:
    try:
        again = pickle.loads(pickle.dumps(design))
    except (pickle.PicklingError, AttributeError, TypeError):
        yield "the design cannot be pickled, so it cannot be sent to workers; define it in a module"
        return
    if again != design or again.identity != design.identity:
        yield "a pickled copy of the design is another design, or has another identity"


def _reads(design: Design, population: Population) -> Iterator[str]:
    watched = _Watched(population.columns)
    design.partial(Batch(population.ids, 0, watched), design.subkey(_key(), population.label, 0))
    unsaid = sorted(watched.asked - set(design.reads))
    if unsaid:
        yield f"`partial` reads the column {unsaid[0]!r}, which is not in `reads`, so engines would not provide it"


def _decides_alone(design: Design, population: Population) -> Iterator[str]:
    if not design.decides_alone:
        return
    middle = population.size // 2
    for r in range(3):
        subkey = design.subkey(_key(), population.label, r)
        whole = design.draw(population, _key(), r).reveal_secret()
        pieces = Drawn.joined(
            design.decided(batch, subkey) for batch in (population.batch(0, middle), population.batch(middle))
        )
        if not all(np.array_equal(getattr(whole, name), getattr(pieces, name)) for name in ("positions", "counts")):
            yield "`decides_alone` is True, but batches decided one by one draw a different sample than all together"
            return


def _weights(design: Design, population: Population, expected: FloatArray) -> Iterator[str]:
    found = design.weights(population)
    if found is None:
        return
    never = (expected == 0.0) & (found == 0.0)  # a record that is never drawn has no weight
    if not np.allclose(np.where(never, 1.0, found * expected), 1.0, rtol=_CLOSE, atol=0.0):
        yield "`weights` are not one over the expected number of times the records are drawn"
    declared = design.public_size in (None, population.size)
    if design.weight is not None and declared and not np.allclose(design.weight * expected, 1.0, rtol=_CLOSE, atol=0.0):
        yield f"`weight` is {design.weight:.9g}, but some record is not drawn 1/weight times on average"


def _spread(design: Design, population: Population, counts: FloatArray, chances: FloatArray) -> Iterator[str]:
    if design.weight is None or design.spread is None or design.public_size not in (None, population.size):
        return
    away = counts - chances @ counts
    largest = design.weight**2 * float(np.linalg.eigvalsh((away * chances[:, None]).T @ away)[-1])
    if largest > design.spread * (1.0 + _CLOSE) + _CLOSE:
        yield f"`spread` is {design.spread:.9g}, but some weighted sum has a variance of {largest:.9g} per square"
    if design.spread_of_size is None:
        return
    size = design.weight**2 * float(chances @ np.sum(away, axis=1) ** 2) / max(population.size, 1)
    if size > design.spread_of_size * (1.0 + _CLOSE) + _CLOSE:
        yield f"`spread_of_size` is {design.spread_of_size:.9g}, but the number drawn has a variance of {size:.9g}"


class _Watched(Mapping[str, NDArray[Any]]):
    """The columns of a population; remembers which were read."""

    def __init__(self, columns: Mapping[str, NDArray[Any]]) -> None:
        self._columns, self.asked = columns, set[str]()

    def __getitem__(self, name: str) -> NDArray[Any]:
        self.asked.add(name)
        if name not in self._columns:
            raise InvalidInput(f"the small case has no column {name!r}, which the design reads")
        return self._columns[name]

    def __contains__(self, name: object) -> bool:
        return name in self._columns

    def __iter__(self) -> Iterator[str]:
        return iter(self._columns)

    def __len__(self) -> int:
        return len(self._columns)


def _key() -> Any:
    from ..testing import seeded_key

    return seeded_key(2)
