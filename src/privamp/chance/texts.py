"""Texts stored as one block of UTF-8 bytes, so that the keyed function can read many at once."""

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from ..errors import InvalidInput

PADDING = 16  # bytes after the last text: a block may be read past its end


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Texts:
    """Ids that are text: text i is `data[starts[i] : starts[i] + lengths[i]]`.

    It can be used like an array of ids: it has a size, accepts slices, masks and positions as an index, and NumPy
    converts it to an array of Python strings.
    """

    data: NDArray[np.uint8]
    starts: NDArray[np.int64]
    lengths: NDArray[np.int64]

    dtype: ClassVar[np.dtype[Any]] = np.dtype(object)
    ndim: ClassVar[int] = 1

    @classmethod
    def of(cls, ids: "NDArray[Any] | Texts") -> "Texts":
        """The texts of an array; objects that are not text are rejected."""
        if isinstance(ids, Texts):
            return ids
        return (_of_fixed_width(ids) if ids.dtype.kind == "U" else None) or _of_objects(ids)

    @classmethod
    def of_bytes(cls, data: NDArray[np.uint8], ends: NDArray[Any]) -> "Texts":
        """Texts that follow one another in `data`; the first of the `ends` is where the first text starts."""
        first, last = (int(ends[0]), int(ends[-1])) if len(ends) else (0, 0)
        padded = np.zeros(last - first + PADDING, np.uint8)
        padded[: last - first] = data[first:last]
        borders = ends.astype(np.int64) - first
        texts = cls(padded, borders[:-1], np.diff(borders))
        texts._refuse_nul_endings()
        return texts

    @property
    def size(self) -> int:
        """The number of texts."""
        return len(self.lengths)

    @property
    def shape(self) -> tuple[int]:
        """As for an array."""
        return (len(self.lengths),)

    def __len__(self) -> int:
        return len(self.lengths)

    def __getitem__(self, which: Any) -> "Texts":
        lengths = self.lengths[which]  # where there is none, no bytes either
        return Texts(self.data if len(lengths) else self.data[-PADDING:], self.starts[which], lengths)

    def tolist(self) -> list[str]:
        """Python strings; each byte that is not valid UTF-8 becomes a lone surrogate."""
        held = self.data.tobytes()
        borders = zip(self.starts.tolist(), self.lengths.tolist(), strict=True)
        return [_decoded(held[start : start + length]) for start, length in borders]

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> NDArray[Any]:
        found = np.empty(len(self), dtype=object)
        found[:] = self.tolist()
        return found if dtype is None else found.astype(dtype)

    def _refuse_nul_endings(self) -> None:
        # Fixed-width text drops trailing NULs, so the same id would get two numbers in two representations.
        last = self.data[np.maximum(self.starts + self.lengths - 1, 0)]
        if np.any((last == 0) & (self.lengths > 0)):
            raise InvalidInput("a text id must not end with a NUL character, got one instead; strip it")


def _of_fixed_width(ids: NDArray[Any]) -> Texts | None:
    """Fixed-width ASCII, without creating Python strings; None for everything else."""
    width = ids.dtype.itemsize // 4
    if not width or not ids.size:
        return None
    codes = np.ascontiguousarray(ids, dtype=ids.dtype.newbyteorder("=")).view(np.uint32).reshape(len(ids), width)
    if codes.max() > 127:
        return None
    data = np.zeros(codes.size + PADDING, np.uint8)
    data[: codes.size] = codes.ravel()
    lengths = np.asarray(np.char.str_len(ids), dtype=np.int64)
    return Texts(data, np.arange(len(ids), dtype=np.int64) * width, lengths)


def _of_objects(ids: NDArray[Any]) -> Texts:
    texts: list[str] = ids.tolist()
    try:
        together = "".join(texts)
    except TypeError:
        raise InvalidInput(
            "ids must be a one-dimensional array of whole numbers (0 to 2^64 - 1) or of text, got objects that are not "
            "text instead; use ids.astype(str)"
        ) from None
    if together.isascii():
        encoded, sizes = together.encode(), map(len, texts)
    else:
        # surrogatepass: lone surrogates have bytes too, and the encoding stays one-to-one
        pieces = [text.encode("utf-8", "surrogatepass") for text in texts]
        encoded, sizes = b"".join(pieces), map(len, pieces)
    lengths = np.fromiter(sizes, np.int64, len(texts))
    data = np.frombuffer(encoded + bytes(PADDING), np.uint8)
    found = Texts(data, np.cumsum(lengths) - lengths, lengths)
    if ids.dtype.kind != "U" and "\0" in together:
        found._refuse_nul_endings()
    return found


def _decoded(text: bytes) -> str:
    try:
        return text.decode("utf-8", "surrogatepass")
    except UnicodeDecodeError:
        return text.decode("utf-8", "surrogateescape")
