"""The columns a design reads, from a Spark table, with a value for every record.

A row's values never stop a job. Records whose stratum or cluster is missing, or not in the design, are never drawn.
Probabilities, odds and sizes are clipped to the design's public range, and missing ones count as 0 before that. An
importance rule that uses only the norm gets the norm, at most its radius. Each depends on the row alone.
"""

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray
from pyarrow import compute

from ..core.design import Design
from ..core.reads import Labels, Numbers, Vectors
from ..errors import InvalidInput
from ..numerics.log_domain import FloatArray
from ..tables.columns import is_text
from .kernel import Kernel
from .row_numbers import doubles, is_list, is_number, lengths_of

Places = Sequence[str]
Reader = Callable[[pa.RecordBatch, Places], FloatArray]
Mask = NDArray[np.bool_]

_LARGEST = float(np.finfo(np.float64).max)


def check_types(kernel: Kernel, schema: pa.Schema) -> None:
    """Column types are public: labels are whole numbers or text, all other columns that are read hold numbers."""
    labels = {name for name, read in kernel.design.reads.items() if isinstance(read, Labels)}
    for name, places in kernel.reads:
        for kind in (schema.field(place).type for place in places):
            if name in labels and not (pa.types.is_integer(kind) or is_text(kind)):
                raise InvalidInput(f"the column {places[0]!r} must hold whole numbers or text, got {kind} instead")
            if name not in labels and not (is_number(kind) or (is_list(kind) and is_number(kind.value_type))):
                raise InvalidInput(f"the columns {', '.join(map(repr, places))} must hold numbers, got {kind} instead")


def usable(batch: pa.RecordBatch, kernel: Kernel) -> pa.RecordBatch:
    """The rows that can be drawn at all."""
    keep: Mask | None = None
    if kernel.design.parts:
        keep = _among(batch.column(dict(kernel.reads)["stratum"][0]), [name for name, _ in kernel.design.parts])
    for part, mine in _parts(kernel, batch):
        for name, read in part.reads.items():
            if isinstance(read, Labels) and read.names is not None:
                known = _known(batch.column(dict(kernel.reads)[name][0]), read)
                keep = (known | ~mine) if keep is None else keep & (known | ~mine)
    return batch if keep is None or keep.all() else batch.filter(pa.array(keep))


def readable(kernel: Kernel, batch: pa.RecordBatch) -> tuple[Kernel, pa.RecordBatch]:
    """The columns that decide the draw, with a number for every record, and the kernel that reads them."""
    columns: dict[str, pa.Array] = {str(kernel.id): batch.column(str(kernel.id))}
    reads: list[tuple[str, tuple[str, ...]]] = []
    for name, places in kernel.reads:
        made = _made(kernel, batch, name, places)
        if made is None:
            columns |= {place: batch.column(place) for place in places}
            reads.append((name, places))
        else:
            columns["privamp_" + name] = pa.array(made)
            reads.append((name, ("privamp_" + name,)))
    seen = pa.RecordBatch.from_arrays(list(columns.values()), names=list(columns))
    return replace(kernel, reads=tuple(reads), clip=False), seen


def contribution(kernel: Kernel, batch: pa.RecordBatch) -> Any:
    """What a batch of usable rows adds to a draw of two passes."""
    own, seen = readable(kernel, batch)
    return own.partial(seen)


def _made(kernel: Kernel, batch: pa.RecordBatch, name: str, places: Places) -> FloatArray | None:
    """A column of the design as numbers, or None if it is read unchanged."""
    if not any(_reader(part, name) for part in kernel.designs):
        return None
    made = np.zeros(batch.num_rows)
    for part, mine in _parts(kernel, batch):
        if reader := _reader(part, name):
            made[mine] = reader(batch if mine.all() else batch.filter(pa.array(mine)), places)
    return made


def _parts(kernel: Kernel, batch: pa.RecordBatch) -> Iterator[tuple[Design, Mask]]:
    """The designs of the strata with their rows, if they read more than the stratum."""
    design = kernel.design
    if not design.parts:
        yield design, np.ones(batch.num_rows, dtype=np.bool_)
        return
    if len(kernel.reads) > 1:
        column = batch.column(dict(kernel.reads)["stratum"][0])
        for name, part in design.parts:
            yield part, _among(column, (name,))


def _reader(part: Design, name: str) -> Reader | None:
    """How a design's column is read, if its values have a public range."""
    read = part.reads.get(name)
    if isinstance(read, Vectors):
        return _norms_for(read)
    if isinstance(read, Numbers) and (math.isfinite(read.low) or math.isfinite(read.high)):
        return _cut(read.low, read.high)
    return None


def _norms_for(read: Vectors) -> Reader | None:
    rule = read.rule
    if rule.influence is None:  # it reads more than the norm, and declares its own columns
        return None
    radius = _LARGEST if rule.radius is None else float(rule.radius)
    return lambda batch, places: np.minimum(lengths_of(batch, places, rule.p), radius)


def _cut(low: float, high: float) -> Reader:
    return lambda batch, places: np.clip(doubles(batch.column(places[0])), low, high)


def _known(column: pa.Array, labels: Labels) -> Mask:
    names = labels.names
    if isinstance(names, range) and pa.types.is_integer(column.type):
        inside = compute.and_(compute.greater_equal(column, names.start), compute.less(column, names.stop))
        return np.asarray(inside.fill_null(False).to_numpy(zero_copy_only=False), dtype=np.bool_)
    return _among(column, () if names is None or isinstance(names, range) else names, as_text=labels.as_text)


def _among(column: pa.Array, names: Sequence[Any], *, as_text: bool = False) -> Mask:
    """Which values of a column of labels are among these names; a missing one is not."""
    coded, known = compute.dictionary_encode(column), frozenset(names)
    found = coded.dictionary.to_pylist()
    is_known = np.array([(str(label) if as_text else label) in known for label in found] + [False], dtype=np.bool_)
    return np.asarray(is_known[coded.indices.fill_null(len(found)).to_numpy(zero_copy_only=False)])
