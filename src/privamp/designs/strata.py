"""Splitting a population by a public column and joining the parts again, for stratified designs.

Every record's label is read by itself. One that is missing, or that the design does not name, puts its record in no
stratum: it is never drawn, whatever the other records are, and nothing is refused, which would tell that it is there.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import combinations, product
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..core.design import Design
from ..core.neighbors import Neighbors
from ..core.population import Batch, Population

Name = str | int
_APART = 1 << 20  # between the ids of two strata of a tiny population


@dataclass(frozen=True, slots=True)
class Records(Batch):
    """Records of one batch that need not stand side by side."""

    places: NDArray[np.int64] = field(default_factory=lambda: np.empty(0, dtype=np.int64), repr=False)

    @property
    def positions(self) -> NDArray[np.int64]:
        """Positions in the population."""
        return self.places

    def at(self, rows: NDArray[np.intp]) -> NDArray[np.int64]:
        """Positions in the population of some of the records."""
        return self.places[rows]


def within(batch: Batch, column: str, names: Sequence[Name]) -> dict[Name, Records]:
    """The records of each named stratum that occurs in the batch."""
    which = places(batch.column(column), names)
    order = np.argsort(which, kind="stable")
    borders = np.searchsorted(which[order], np.arange(len(names) + 1))  # those of no stratum come last
    found: dict[Name, Records] = {}
    for k, name in enumerate(names):
        rows = order[borders[k] : borders[k + 1]]
        if rows.size:
            columns = {column: values[rows] for column, values in batch.columns.items()}
            found[name] = Records(batch.ids[rows], batch.offset, columns, batch.positions[rows])
    return found


def places(column: NDArray[Any], names: Sequence[Name]) -> NDArray[np.intp]:
    """Where each label stands among the names; len(names) for one that is not among them."""
    known: dict[Any, int] = {name: at for at, name in enumerate(names)}
    if column.dtype.kind in "iufU":
        labels, which = np.unique(column, return_inverse=True)
        at = [known.get(label, len(names)) for label in labels.tolist()]
        return np.array(at, dtype=np.intp)[which] if at else np.empty(0, dtype=np.intp)
    found = (known.get(label, len(names)) if isinstance(label, (str, int, float)) else len(names)
             for label in column.tolist())  # fmt: skip
    return np.fromiter(found, dtype=np.intp, count=column.size)


def split(population: Population, names: Sequence[Name]) -> dict[Name, Population]:
    """One population per named stratum, empty ones too."""
    found = within(population.batch(), "stratum", names)
    nobody: NDArray[Any] = population.ids[:0]
    return {
        name: Population(found[name].ids, population.label, **found[name].columns) if name in found
        else Population(nobody, population.label)
        for name in names
    }  # fmt: skip


def joined(strata: Mapping[Name, Population]) -> Population:
    """Tiny populations as the strata of one; ids are moved apart, columns that a stratum lacks are filled with 0."""
    columns = {name for part in strata.values() for name in part.columns} - {"stratum"}
    filled = {
        name: np.concatenate([part.columns.get(name, np.zeros(part.size, int)) for part in strata.values()])
        for name in columns
    }
    ids = np.concatenate([part.ids.astype(np.uint64) % _APART + k * _APART for k, part in enumerate(strata.values())])
    filled["stratum"] = np.repeat(list(strata), [part.size for part in strata.values()])
    return Population(ids, "population", **filled)


def neighboring(
    designs: Sequence[tuple[Name, Design]], population: Population, neighbors: Neighbors
) -> Iterator[tuple[Population, Population]]:
    """Pairs that differ in one stratum, as its design lists them, and pairs in which a record changes its stratum."""
    strata = split(population, [name for name, _ in designs])
    plain = replace(neighbors, scope="anywhere")
    for name, design in designs:
        if neighbors.kind == "add-remove" or strata[name].size:
            for one, other in design.neighboring(strata[name], plain):
                yield joined({**strata, name: one}), joined({**strata, name: other})
    if neighbors.kind == "replace-one" and neighbors.scope == "anywhere":
        yield from _moves(designs, strata)


def _moves(
    designs: Sequence[tuple[Name, Design]], strata: Mapping[Name, Population]
) -> Iterator[tuple[Population, Population]]:
    """`strata` is what both have: a record more in one stratum against a record more in another."""
    for (out, one), (into, other) in combinations(designs, 2):
        more = [list(d.neighboring(strata[n], Neighbors.ADD_REMOVE)) for n, d in ((out, one), (into, other))]
        for (with_it, without), (with_new, without_new) in product(*more):
            yield joined({**strata, out: with_it, into: without_new}), joined({**strata, out: without, into: with_new})
    if len(designs) == 1:  # a record may come from no stratum, or leave for none
        [(name, design)] = designs
        nowhere = f"not {name}" if isinstance(name, str) else name + 1
        for with_it, without in design.neighboring(strata[name], Neighbors.ADD_REMOVE):
            yield joined({name: with_it}), joined({name: without, nowhere: Population(1)})
