"""The rows of a CSV file one by one, whatever they contain: slow, but never fails.

RFC 4180: cells between commas, rows between line ends, and a cell that begins with a quotation mark continues, commas
and line ends included, to the closing mark; two marks inside it mean one. Whatever follows the closing mark belongs to
the cell. A row's cells depend on the row alone, however long it is and wherever it lies in the file.
"""

import re
from collections.abc import Iterator
from typing import Any

_CHUNK = 1 << 20
_MARK = b"\xef\xbb\xbf"  # of byte order, which some programs write before the first name
_CELL = re.compile(rb'(?:"((?:[^"]+|"")*+)"?([^,\r\n]*+)|([^,\r\n]*+))(,|\r\n|\r|\n|\Z)')

Row = list[bytes]


def rows_of(stream: Any) -> Iterator[Row]:
    """Every row of an open file; an empty line is a row without cells."""
    buffer, at, size = stream.read(_CHUNK), 0, _CHUNK
    is_whole = not buffer
    if buffer[:3] == _MARK:
        at = 3
    while True:
        row, after = _row(buffer, at)
        if is_whole or after < len(buffer):  # a later byte shows that the row ends here
            if at == len(buffer):
                return
            yield row
            at, size = after, _CHUNK
            continue
        more = stream.read(size)
        buffer, at, is_whole = buffer[at:] + more, 0, not more
        size *= 2  # so that a long row is not scanned too often


def _row(buffer: bytes, at: int) -> tuple[Row, int]:
    """The row that begins here, as far as the buffer goes, and where the next one begins."""
    start, cells = at, []
    while True:
        found = _CELL.match(buffer, at)
        assert found is not None  # every text matches
        quoted, rest, plain, end = found.groups()
        cells.append(plain if quoted is None else quoted.replace(b'""', b'"') + rest)
        at = found.end()
        if end != b",":
            is_empty = found.start(4) == start
            return ([] if is_empty else cells), at
