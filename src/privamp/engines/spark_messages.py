"""One job on a Spark table: every partition does its work inside one function and sends encrypted messages.

How many rows a draw keeps is secret, and Spark shows the rows and the bytes that leave each operator on its pages, by
its REST interface and in its event log. So no drawn row crosses an operator: rows are kept and added up in one
function, and what leaves a partition is one message. Messages are encrypted for this job, which keeps sums out of logs
and files, and makes their compressed size independent of their content; where their length is not fixed by public facts
it is padded to one of a few.

Errors on a worker are replaced by our own sentence: their text may hold a record's value.
"""

import os
import pickle
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Any

import pyarrow as pa
from cryptography.hazmat.primitives.ciphers.aead import AESGCM

from ..errors import InvalidInput
from .spark_session import answer

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

Batches = Iterator[pa.RecordBatch]
Work = Callable[[Batches], Iterable[bytes]]

_SCHEMA = "task int, message binary"
_NONCE = 12  # bytes
_LEAST = 1024  # bytes of a padded message


def column(name: str) -> "Column":
    """A column by its exact name, dots and all."""
    from pyspark.sql import functions

    if "`" in name:  # no way of quoting it reaches the column
        raise InvalidInput(f"the column {name!r} has a backtick in its name, which Spark cannot look up; rename it")
    return functions.col(f"`{name}`")


def sent(df: "DataFrame", columns: Sequence[str] | None, work: Work, secret: bytes) -> "DataFrame":
    """The messages of all partitions about these columns (None: all), encrypted with `secret`: not evaluated yet."""

    def send(batches: Batches) -> Batches:
        from pyspark import TaskContext

        context = TaskContext.get()
        for message in guarded(work, batches):
            yield _row(context.partitionId() if context else 0, sealed(secret, message))

    return mapped(df if columns is None else df.select(*map(column, dict.fromkeys(columns))), send, _SCHEMA)


def mapped(df: "DataFrame", work: Callable[[Batches], Batches], schema: Any) -> "DataFrame":
    """`df.mapInArrow(work, schema)` for columns of any name: PySpark looks them up, and fails at dots and backticks."""
    names = df.columns
    if not any(set(name) & {".", "`"} for name in names):
        return df.mapInArrow(work, schema)

    def renamed(batches: Batches) -> Batches:
        return work(pa.RecordBatch.from_arrays(batch.columns, names=names) for batch in batches)

    return df.toDF(*(f"c{k}" for k in range(len(names)))).mapInArrow(renamed, schema)


def merged(parts: "DataFrame", merge: Callable[[list[bytes]], bytes], groups: int, secret: bytes) -> "DataFrame":
    """Messages merged on the workers until there are at most `groups`."""
    from pyspark.sql import functions

    def together(table: pa.Table) -> pa.Table:
        messages = [opened(secret, message.as_py()) for message in table["message"]]
        (whole,) = guarded(lambda several: [merge(several)], messages)
        return pa.Table.from_batches([_row(table["task"][0].as_py() % groups, sealed(secret, whole))])

    return parts.groupBy(functions.expr(f"task % {groups}")).applyInArrow(together, _SCHEMA)


def received(parts: "DataFrame", secret: bytes) -> list[bytes]:
    """The messages, on the driver."""
    return [opened(secret, bytes(row.message)) for row in answer(parts.collect)]


def messages(df: "DataFrame", columns: Sequence[str], work: Work) -> list[bytes]:
    """One job: the messages of all partitions, on the driver."""
    secret = new_secret()
    return received(sent(df, columns, work, secret), secret)


def new_secret() -> bytes:
    """A key for the messages of one job."""
    return os.urandom(32)


def sealed(secret: bytes, message: bytes) -> bytes:
    """Encrypted and authenticated; longer by a constant."""
    nonce = os.urandom(_NONCE)
    return nonce + AESGCM(secret).encrypt(nonce, message, None)


def opened(secret: bytes, message: bytes) -> bytes:
    """The decrypted message."""
    return AESGCM(secret).decrypt(message[:_NONCE], message[_NONCE:], None)


def padded(thing: Any) -> bytes:
    """A pickle, filled up to a length of the form 4, 5, 6 or 7 times a power of two."""
    content = pickle.dumps(thing)
    step = max(1 << max(len(content).bit_length() - 3, 0), _LEAST // 4)
    return content.ljust(-(-len(content) // step) * step, b"\0")


def unpadded(message: bytes) -> Any:
    """The object again; a pickle knows where it ends. Messages are authenticated, so the pickle is safe."""
    return pickle.loads(message)


def guarded(work: Callable[[Any], Iterable[Any]], given: Any) -> Iterator[Any]:
    """What `work` yields; of an error only the type is kept, unless the sentence is privamp's, which never shows a
    record."""
    try:
        yield from work(given)
    except InvalidInput as error:
        said = str(error)
    except Exception as error:
        said = (
            f"the work on a partition failed with a {type(error).__name__}; its text is left out because it may hold "
            "a record's value"
        )
    else:
        return
    raise InvalidInput(said)


def _row(task: int, message: bytes) -> pa.RecordBatch:
    return pa.RecordBatch.from_arrays(
        [pa.array([task], pa.int32()), pa.array([message], pa.binary())], names=["task", "message"]
    )
