"""One kernel for every engine: Arrow batch in, kept rows with weight and count out.

Whether a record is drawn depends only on the keyed function of its own id, so the kernel gives the same sample in one
batch or many, on threads, out of core or on a cluster, after retries, and in any order of the records. It is the sample
that `Design.draw` draws from the same ids in memory with the same key, label and round.

Designs that decide each record independently (such as Poisson) need one pass: `kept`. All others take two: `partial` of
every batch, merged in any order, `finish`, then `chosen` picks the rows. Between the passes rows are identified by
their position if the source has a stable order, and otherwise by a ticket: the id itself, or for text 64 bits of a
keyed hash.
"""

import pickle
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from ..chance.keyed import keyed_numbers
from ..chance.keys import Key, build
from ..core.design import Design
from ..core.identity import VERSION
from ..core.population import Batch, label_by
from ..core.reads import Labels, RuleLike, Vectors
from ..core.sample import Drawn
from ..designs.strata import Records
from ..errors import InvalidInput
from ..numerics.log_domain import FloatArray
from ..numerics.row_norms import clipped
from ..tables.columns import array_of, can_hold, is_text, labels_of, numbers_of
from ..tables.id_columns import check_id_type, ids_of
from .row_numbers import is_list, is_number, of_lists

WEIGHT, COUNT = "privamp_weight", "privamp_count"
Ints = NDArray[np.int64]
Reads = Mapping[str, str | Sequence[str]]

_ENTRIES = 1 << 18  # of records whose norms are computed at once


@dataclass(frozen=True, slots=True)
class Chosen:
    """The rows that were drawn: tickets (or positions) in ascending order, counts and weights. Secret."""

    tickets: Ints = field(repr=False)
    counts: Ints = field(repr=False)
    weights: FloatArray = field(repr=False)

    def within(self, first: int, rows: int) -> "Chosen":
        """Those at some consecutive positions, counted from the first of them."""
        low, high = np.searchsorted(self.tickets, [first, first + rows])
        return Chosen(self.tickets[low:high] - first, self.counts[low:high], self.weights[low:high])

    def check(self, rows: int) -> None:
        """Every ticket must have found exactly one row."""
        if rows != self.tickets.size:
            raise InvalidInput(
                "the second pass over the data did not find the rows that the first one drew: the data changed, ids "
                "repeat, or two text ids share a 64-bit ticket; check the ids, or use a fresh key"
            )


@dataclass(frozen=True, slots=True)
class Kernel:
    """A design, the secret subkey of one draw, and which columns hold the ids and what the design reads."""

    design: Design
    subkey: Key = field(repr=False)
    id: str | None = None  # None: the row's position is its id
    reads: tuple[tuple[str, tuple[str, ...]], ...] = ()
    clip: bool = False
    key_id: bytes | None = field(default=None, compare=False)  # the fingerprint of the key that the subkey comes from

    @classmethod
    def of(
        cls,
        design: Design,
        key: Key,
        *,
        id: str | None = None,
        label: str | None = None,
        round: int = 0,
        reads: Reads | None = None,
        clip: bool = False,
    ) -> "Kernel":
        """The kernel of one draw: key, design, label and round determine the sample. A stored key needs a label.

        `reads` maps the design's columns to the source's columns if their names differ: {"stratum": "region", "x":
        ["a", "b"]}; the same data read by other columns is another population, so give it another label. Records
        outside the ball of an importance rule are decided as if clipped to it; `clip` changes nothing.
        """
        if key is None:
            raise InvalidInput("drawing from a table needs a key, got none instead; use Key.generate() or a stored key")
        rule = design.weighing_rule
        if clip and (rule is None or rule.radius is None):
            raise InvalidInput("clip=True is only for importance sampling by a rule with a radius; omit it here")
        named = dict(reads or {})
        places = tuple((name, _places(name, named.pop(name, None))) for name in design.reads)
        if named:
            raise InvalidInput(
                f"the design reads {', '.join(name for name, _ in places) or 'no column'}, not {min(named)!r}"
            )
        return cls(design, design.subkey(key, label_by(key, label), round), id, places, clip, key.fingerprint)

    @property
    def streams(self) -> bool:
        """Whether one pass over the batches is enough."""
        return self.design.decides_alone

    @property
    def designs(self) -> tuple[Design, ...]:
        """The designs of the strata, or the design itself."""
        return tuple(part for _, part in self.design.parts) or (self.design,)

    @property
    def rules(self) -> tuple[RuleLike, ...]:
        """The importance rules that give the rows their weights."""
        return tuple(part.weighing_rule for part in self.designs if part.weighing_rule is not None)

    @property
    def uses(self) -> tuple[str, ...]:
        """The source columns that decide the draw, the id first; the others are not read for it."""
        names = [self.id] if self.id is not None else []
        return tuple(dict.fromkeys([*names, *(place for _, places in self.reads for place in places)]))

    def check_sum(self, columns: Sequence[str], sensitivity: float, p: float) -> None:
        """The guarantee covers only the columns the importance rule reads: only those may be summed, clipped at least
        as much."""
        for part in self.designs:
            rule = part.weighing_rule
            if rule is None:
                continue
            seen = [place for name in part.reads for place in dict(self.reads)[name]]
            if not columns or set(columns) - set(seen) or len(set(columns)) < len(columns):
                raise InvalidInput(
                    "weights are certified only for sums of the columns that the importance rule reads "
                    f"({', '.join(map(repr, seen))}), each once; let the rule read all columns of the sum"
                )
            end = rule.farthest
            if end is not None and (p > rule.p or sensitivity > end * (1.0 + 1e-12)):
                raise InvalidInput(
                    f"records were clipped to {end:g} in the {rule.p:g}-norm for their weights, so a sum must "
                    f"clip them at least as much, got {sensitivity:g} in the {p:g}-norm instead"
                )

    def facts(self, key: Key, label: str | None, round: int, spec: str | None) -> dict[str, Any]:
        """The metadata of a stored sample: public, and enough to open it again with the key."""
        return {
            "design": repr(self.design), "identity": self.design.identity, "identity_version": VERSION,
            "spec": spec or self.design.spec, "label": label_by(key, label), "round": round, "id": self.id,
            "clip": self.clip, "reads": {name: list(places) for name, places in self.reads},
            "key_fingerprint": key.fingerprint.hex(), "ledger_id": self.ledger_id,
        }  # fmt: skip

    @property
    def ledger_id(self) -> str:
        """Identifies the draw without revealing it; public."""
        return self.subkey.fingerprint.hex()

    def schema(self, source: pa.Schema) -> pa.Schema:
        """The columns of the kept rows; raises if the source lacks a column."""
        for name in (WEIGHT, COUNT):
            if name in source.names:
                raise InvalidInput(f"the data has a column {name!r} already, which a sample adds; rename or drop it")
        for name in self.uses:
            if source.names.count(name) != 1:
                how = "no column" if name not in source.names else "several columns"
                raise InvalidInput(f"the data has {how} {name!r}; it has {_listed(source.names)}")
        if self.id is not None:
            check_id_type(source.field(self.id))
        self._check_lists(source)
        self._check_labels(source)
        return self.extended(source)

    def _check_labels(self, source: pa.Schema) -> None:
        """Labels and types are public. One that its column cannot hold, as 01 among numbers, would keep its records
        from ever being drawn."""
        for name, (place, *_) in self.reads:
            read, kind = self.design.reads.get(name), source.field(place).type
            if not isinstance(read, Labels) or read.names is None or isinstance(read.names, range):
                continue
            for label in read.names:
                if not can_hold(kind, label, as_text=read.as_text):
                    raise InvalidInput(
                        f"the design names {label!r}, which no record can have in the column {place!r} of {kind}; name "
                        "labels as the column holds them (01 in a CSV file is the number 1), or cast the column"
                    )

    def _check_lists(self, source: pa.Schema) -> None:
        """The length of lists must be public: rules that read norms take any list, others only fixed lengths."""
        rules = [part.weighing_rule for part in self.designs]
        by_norm = all(rule is not None and rule.influence is not None for rule in rules)
        for _, places in self.reads:
            for kind in (source.field(place).type for place in places):
                if not is_list(kind) or (is_number(kind.value_type) and len(places) == 1 and by_norm):
                    continue
                if not (self.design.weighing_rule is not None and pa.types.is_fixed_size_list(kind)):
                    raise InvalidInput(
                        f"the design reads {places[0]!r}, which holds lists without a public length; cast it to "
                        "lists of a fixed size, or give each number its own column"
                    )

    @staticmethod
    def extended(source: pa.Schema) -> pa.Schema:
        """These columns, then weight and count."""
        return source.append(pa.field(WEIGHT, pa.float64())).append(pa.field(COUNT, pa.int64()))

    def kept(self, batch: pa.RecordBatch, offset: int = 0) -> pa.RecordBatch:
        """The kept rows of a batch whose first row is row `offset` of the data, for designs that stream."""
        drawn = self.verdict(batch, offset)
        return weighted(batch.take(pa.array(drawn.positions)), drawn.weights, drawn.counts)

    def verdict(self, batch: pa.RecordBatch, offset: int = 0, ids: Any = None) -> Drawn:
        """Which rows are kept, counted from the start of the batch, in order; only needs the columns `uses`. `ids` are
        those of the batch, if they are known already."""
        if not self.streams:
            raise InvalidInput(f"{type(self.design).__name__} decides only after all records are read; use two passes")
        some, ids = self._candidates(batch, offset, ids)
        if some is None:
            return self.design.decided(Batch(ids, 0, self._columns(batch)), self.subkey)
        columns = self._columns(batch.take(pa.array(some)) if self.reads else batch)
        return self.design.decided(Records(ids, 0, columns, some), self.subkey)

    def partial(self, batch: pa.RecordBatch, offset: int | None = None, ids: Any = None) -> Any:
        """What a batch contributes to the draw. Rows are identified by position from `offset` on, or by ticket if it is
        None; `ids` as in `verdict`."""
        ids = self._ids(batch, offset or 0) if ids is None else ids
        columns = self._columns(batch)
        if offset is None:
            return self.design.partial(Records(ids, 0, columns, self._tickets(ids)), self.subkey)
        return self.design.partial(Batch(ids, offset, columns), self.subkey)

    def merge(self, parts: Iterable[Any]) -> Any:
        """Contributions of several batches, in any order, as one."""
        return self.design.merge(parts)

    def folded(self, parts: Iterable[Any], width: int = 16) -> Any:
        """All contributions as one, with few of them in memory at a time."""
        pending: list[Any] = []
        for part in parts:
            pending.append(part)
            if len(pending) == width:
                pending = [self.merge(pending)]
        return self.merge(pending)

    def finish(self, part: Any) -> Chosen:
        """The drawn rows of all batches, in the order of the table."""
        drawn = self.design.finish(part, self.subkey)
        order = np.argsort(drawn.positions, kind="stable")
        tickets = drawn.positions[order]
        if np.any(tickets[1:] == tickets[:-1]):
            Chosen(tickets, drawn.counts, drawn.weights).check(-1)
        return Chosen(tickets, drawn.counts[order], drawn.weights[order])

    def chosen(self, batch: pa.RecordBatch, chosen: Chosen, offset: int | None = None) -> pa.RecordBatch:
        """The drawn rows of a batch; `offset` as in `partial`."""
        if offset is None:
            tickets = self._tickets(self._ids(batch, 0))
            at = np.searchsorted(chosen.tickets, tickets)
            found = np.flatnonzero(at < chosen.tickets.size)
            found = found[chosen.tickets[at[found]] == tickets[found]]
            at = at[found]
        else:
            here = chosen.within(offset, batch.num_rows)
            return weighted(batch.take(pa.array(here.tickets)), here.weights, here.counts)
        return weighted(batch.take(pa.array(found)), chosen.weights[at], chosen.counts[at])

    def secret_bytes(self) -> bytes:
        """Everything a worker needs, the subkey too: send it only over a channel that is safe for the data."""
        secret = (self.subkey.secret_bytes(), self.subkey.is_test)
        try:
            return pickle.dumps((self.design, secret, self.id, self.reads, self.clip))
        except (pickle.PicklingError, AttributeError, TypeError):
            raise InvalidInput(
                "the design holds a function that cannot be sent to workers; define it in a module, or make the rule "
                "from an Influence or a mechanism"
            ) from None

    @classmethod
    def from_secret_bytes(cls, secret: bytes) -> "Kernel":
        """The kernel again. The bytes are a pickle: accept them only from your own driver."""
        design, (key, is_test), id, reads, clip = pickle.loads(secret)
        return cls(design, build(key, is_test=is_test), id, reads, clip)

    def _candidates(self, batch: pa.RecordBatch, offset: int, ids: Any) -> tuple[NDArray[np.intp] | None, Any]:
        """Positions and ids of the records that may be kept; None for all positions."""
        if self.id is None:
            some = self.design.candidates(range(offset, offset + batch.num_rows), self.subkey)
            return some, self._ids(batch, offset) if some is None else (some + offset).astype(np.uint64)
        ids = self._ids(batch, offset) if ids is None else ids
        some = self.design.candidates(ids, self.subkey)
        return some, ids if some is None else ids[some]

    def _columns(self, batch: pa.RecordBatch) -> dict[str, NDArray[Any]]:
        return {name: self._column(batch, name, where) for name, where in self.reads}

    def _column(self, batch: pa.RecordBatch, name: str, places: Sequence[str]) -> NDArray[Any]:
        read = self.design.reads[name]
        if isinstance(read, Labels) and isinstance(read.names, range) and is_text(batch.schema.field(places[0]).type):
            raise InvalidInput(
                f"the column {places[0]!r} must hold whole numbers for a design without labels, got text instead; "
                "declare labels=… for names"
            )
        if isinstance(read, Labels):
            return labels_of(batch.column(places[0]), places[0])
        if not isinstance(read, Vectors):
            return array_of(batch, places, name)
        if self.design.parts:
            return numbers_of(batch, places)
        rule = read.rule
        if rule.influence is not None:  # the rule reads only the norm, so the norm can replace the record
            return _norms(batch, places, rule)
        records = numbers_of(batch, places)
        return records if rule.radius is None else clipped(records, rule.radius, rule.p)

    def _ids(self, batch: pa.RecordBatch, offset: int) -> Any:
        if self.id is None:
            return np.arange(offset, offset + batch.num_rows, dtype=np.uint64)
        return ids_of(batch.column(self.id), self.id)

    def _tickets(self, ids: NDArray[Any]) -> Ints:
        if ids.dtype.kind != "u":
            ids = keyed_numbers(self.subkey.subkey("tickets"), ids)
        return ids.view(np.int64)


def weighted(rows: pa.RecordBatch, weights: FloatArray, counts: Ints) -> pa.RecordBatch:
    """Rows with their weight and count behind them."""
    return pa.RecordBatch.from_arrays(
        [*rows.columns, pa.array(weights, pa.float64()), pa.array(counts, pa.int64())],
        names=[*rows.schema.names, WEIGHT, COUNT],
    )


def _norms(batch: pa.RecordBatch, places: Sequence[str], rule: RuleLike) -> FloatArray:
    """The norms of all records, a chunk at a time, so that rows are built and used in cache."""
    if len(places) == 1 and is_list(batch.column(places[0]).type):
        return of_lists(batch.column(places[0]), rule.norms)
    found = np.empty(batch.num_rows)
    rows = max(_ENTRIES // len(places), 1)
    for at in range(0, batch.num_rows, rows):
        found[at : at + rows] = rule.norms(numbers_of(batch.slice(at, rows), places))
    return found


def _places(name: str, given: str | Sequence[str] | None) -> tuple[str, ...]:
    if given is None:
        return tuple(name.split("+"))
    return (given,) if isinstance(given, str) else tuple(given)


def _listed(names: list[str], most: int = 12) -> str:
    return ", ".join(map(repr, names[:most])) + (", …" if len(names) > most else "")
