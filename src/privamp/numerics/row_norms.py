"""Norms of records, and records clipped to a norm: each row's result depends on that row alone, bit for bit.

The same row gives the same bits alone or among others, at any place, in any order, chunk or memory layout. So nothing
here uses a reduction of NumPy (`sum`, `einsum`, `linalg.norm`) or a matrix product: they add in an order that depends
on the shape, the strides and the alignment of the whole array. Rows are added up by folding the columns in halves, with
operations that work entry by entry and round correctly; which columns meet depends on their number alone.

Every row has a result. Missing entries (NaN) count as 0 and infinite ones as the largest double of their sign. A row
whose squares over- or underflow is scaled by a power of two, and only that row is.
"""

import math
from collections.abc import Iterator

import numpy as np
from numpy.typing import ArrayLike, NDArray

from .log_domain import FloatArray

_ENTRIES = 1 << 16  # of one chunk, so that it stays in cache
_TINY, _HUGE = 2.0**-450, 2.0**450  # between these norms no square that matters was lost
_LEAST = 5e-324  # the smallest positive double
_PLAIN = (1.0, 2.0, math.inf)


def finite(values: ArrayLike) -> FloatArray:
    """The values as doubles; NaN counts as 0, infinite or too large values as the largest double of their sign."""
    x = np.asarray(values)
    with np.errstate(all="ignore"):
        x = x.astype(np.float64, copy=False)
    return x if np.all(np.isfinite(x)) else np.nan_to_num(x, nan=0.0)


def norms(records: ArrayLike, p: float) -> FloatArray:
    """The p-norm of every row (the size of every number, for one column), rounded up; inf beyond the doubles."""
    x = np.asarray(records)
    if x.ndim == 1:
        return np.abs(finite(x), order="C")  # contiguous: functions of norms round by the strides on some processors
    size: FloatArray = np.empty(len(x))
    with np.errstate(all="ignore"):
        for at in _chunks(x.shape):
            size[at] = _sizes(x[at].astype(np.float64, copy=False).T, p)[0]
    return size


def clipped(records: ArrayLike, radius: float | FloatArray, p: float = 2.0) -> FloatArray:
    """The records, each shortened to p-norm `radius` (one for all or one each) where it is longer; none is dropped.

    A clipped row is no longer than the radius in exact arithmetic, and `norms` of it are at most the radius.
    """
    x = np.asarray(records)
    if x.ndim == 1:
        return np.asarray(np.clip(finite(x), -radius, radius))
    short: FloatArray = np.empty(x.shape)
    limits = np.broadcast_to(np.asarray(radius, dtype=np.float64), len(x))
    with np.errstate(all="ignore"):
        for at in _chunks(x.shape):
            short[at] = _shortened(x[at].astype(np.float64, copy=False).T, limits[at], p).T
    return short


def clipped_columns(records: ArrayLike, radius: float, p: float) -> Iterator[tuple[slice, FloatArray]]:
    """The same some rows at a time, as (which rows, their columns), for sums over rows that stay in cache."""
    x = np.asarray(records)
    for at in _chunks(x.shape):
        with np.errstate(all="ignore"):
            columns = np.array(x[at].T, dtype=np.float64, order="C")
            short = _shortened(columns, np.full(columns.shape[1], radius), p)
        yield at, short


def _chunks(shape: tuple[int, ...]) -> Iterator[slice]:
    """Some rows at a time; rows are independent, so where a chunk ends changes nothing."""
    step = max(_ENTRIES // max(shape[1], 1), 64)
    return (slice(start, start + step) for start in range(0, shape[0], step))


def _shortened(x: FloatArray, radius: FloatArray, p: float) -> FloatArray:
    """Rows, given and returned as columns (columns, rows), shortened to their radius."""
    size, odd = _sizes(x, p)
    inside = radius * (1.0 - (len(x) + 16.0) * 2.0**-51)  # the norm of what comes out is inside, rounded up too
    factor = np.divide(inside, size, out=np.ones(size.size), where=(size > radius) & ~odd)
    short: FloatArray = x * factor
    if np.any(odd):
        rows, scaled, root, _ = _scaled(x[:, odd], p)
        long = size[odd] > radius[odd]
        factor = np.divide(inside[odd], root, out=np.zeros(long.size), where=long)
        short[:, odd] = np.where(long, scaled * factor, rows)
    return short


def _sizes(x: FloatArray, p: float) -> tuple[FloatArray, NDArray[np.bool_]]:
    """The norms, rounded up, and which rows had to be scaled for them."""
    if p in _PLAIN:
        size = _root(x, p)
        odd = ~((size > _TINY) & (size < _HUGE))  # also where it is not a number
    else:
        size, odd = np.empty(x.shape[1]), np.ones(x.shape[1], dtype=np.bool_)
    if np.any(odd):
        _, _, root, exponent = _scaled(x[:, odd], p)
        size[odd] = np.ldexp(root, exponent) + np.where(root > 0.0, _LEAST, 0.0)  # denormals may round down
    return size, odd


def _scaled(x: FloatArray, p: float) -> tuple[FloatArray, FloatArray, FloatArray, NDArray[np.int32]]:
    """The rows with every entry finite, each times a power of two that brings it near 1, those norms, the exponents."""
    rows = finite(x)
    _, exponent = np.frexp(_folded(np.maximum, np.abs(rows, order="C")))
    scaled = np.ldexp(rows, -exponent)
    return rows, scaled, _root(scaled, p), exponent


def _root(x: FloatArray, p: float) -> FloatArray:
    """The norms of rows that neither over- nor underflow, rounded up."""
    size = np.abs(x, order="C")  # (columns, rows)
    if p == 1.0:
        root = _folded(np.add, size)
    elif p == 2.0:
        root = np.sqrt(_folded(np.add, np.multiply(size, size, out=size)))
    elif p == math.inf:
        root = _folded(np.maximum, size)
    else:
        top = _folded(np.maximum, size.copy())
        share = np.divide(size, top, out=np.zeros_like(size), where=top > 0.0)
        root = top * _powers(_folded(np.add, _powers(share, p)), 1.0 / p)
    return np.asarray(root * (1.0 + (len(x) + 8.0) * 2.0**-52))


def _folded(add: np.ufunc, parts: FloatArray) -> FloatArray:
    """The parts, joined pair by pair, entry by entry; overwrites them."""
    width = len(parts)
    if width == 0:
        return np.zeros(parts.shape[1])
    while width > 1:
        half = width // 2
        add(parts[:half], parts[width - half : width], out=parts[:half])
        width -= half
    return np.asarray(parts[0])


def _powers(x: FloatArray, p: float) -> FloatArray:
    """Powers one by one: NumPy's own round by the place of an entry on some processors."""
    return np.array([math.pow(value, p) for value in x.ravel().tolist()]).reshape(x.shape)
