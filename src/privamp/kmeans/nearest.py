"""The nearest centre of every row: a function of that row and the centres alone, whatever rows stand beside it.

The nearest centre has the largest score x·c - ||c||²/2. Which one that is is *defined* by the scores in float64 with
products added column by column, the first of equal ones. A matrix product adds in an order that depends on the place
of a row, so its scores are used only where they decide: with d columns, a precision of u, ||x|| <= r and ||c|| <= m,

    rounding c                      u·m·r
    d products, d - 1 additions     d·u·m·r(1 + d·u)        in any order, fused or not (Higham 2002, section 3.1)
    ||c||²/2, and rounding it       (d + 2)·u·m²/2
    the subtraction                 u(m·r + m²/2)

and the defined scores err by no more. So both scores of a centre are within 2E of each other, E = (d + 16)·u·m(m +
r), and whenever the largest score is above the second by more than 4E the defined scores choose the same centre. Rows
that single precision leaves open are tried in double, and those left open there are decided by the definition.
Underflow adds at most d times the smallest normal number to E.
"""

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..numerics.log_domain import FloatArray

_FEW = 4096  # rows decided at once by the definition


def halves(points: FloatArray) -> FloatArray:
    """||c||²/2, added column by column."""
    return np.asarray(0.5 * np.add.accumulate(points * points, axis=1)[:, -1])


def room(columns: int, largest: float, reach: float | FloatArray, dtype: Any) -> Any:
    """4E for centres of norm at most `largest` and rows of norm at most `reach` (one for all or one each)."""
    kind = np.finfo(dtype)
    unit, least = float(kind.eps) / 2.0, float(kind.tiny)
    return 4.0 * (columns + 16.0) * (unit * largest * (largest + reach) + 2.0 * least)


def largest_norm(half: FloatArray, columns: int) -> float:
    """At least the norm of every centre, from `halves`."""
    squared = 2.0 * float(np.max(half, initial=0.0))
    return math.sqrt(squared) * (1.0 + (columns + 8.0) * 2.0**-52)


def nearest(
    rows: NDArray[Any], points: FloatArray, reach: float | FloatArray = 1.0, half: FloatArray | None = None
) -> NDArray[np.intp]:
    """The index of the nearest point of every row; `reach` bounds the norms of the rows, `half` is `halves(points)`."""
    half = halves(points) if half is None else half
    largest = largest_norm(half, points.shape[1])
    with np.errstate(over="ignore", invalid="ignore"):
        scores = np.matmul(points, rows.T, dtype=np.float64)
        scores -= half[:, None]
        chosen = np.asarray(np.argmax(scores, axis=0))
        open_rows = np.flatnonzero(is_open(scores, chosen, room(rows.shape[1], largest, reach, np.float64)))
    for at in range(0, open_rows.size, _FEW):
        some = open_rows[at : at + _FEW]
        chosen[some] = by_definition(rows[some], points, half)
    return chosen


def decided(scores: NDArray[Any], margin: Any) -> tuple[NDArray[np.intp], NDArray[np.bool_]]:
    """The place of every largest score (k, n), and whether no other one is within the margin of it; places of others
    mean nothing. Every operation goes along the rows of the table, which is several times as fast as `argmax`.
    """
    near = (scores >= np.max(scores, axis=0) - margin).view(np.uint8)
    kind = np.min_scalar_type(len(scores))
    places = np.arange(len(scores), dtype=kind)[:, None]
    found = np.add.reduce(near * places, axis=0, dtype=kind)  # of one place alone
    return found.astype(np.intp), np.asarray(np.add.reduce(near, axis=0, dtype=kind) == 1)


def is_open(scores: NDArray[Any], chosen: NDArray[np.intp], margin: Any) -> NDArray[np.bool_]:
    """Whether another score is within the margin of the largest; overwrites the largest scores (k, n)."""
    columns = np.arange(chosen.size)
    most = scores[chosen, columns]
    scores[chosen, columns] = -np.inf
    return np.asarray(~(most - np.max(scores, axis=0) > margin))


def by_definition(rows: NDArray[Any], points: FloatArray, half: FloatArray) -> NDArray[np.intp]:
    """The same by products that are added column by column."""
    return np.asarray(np.argmax(_scores(rows, points) - half, axis=1))


def _scores(rows: NDArray[Any], points: FloatArray) -> FloatArray:
    """Products (n, k)."""
    total: FloatArray = np.zeros((len(rows), len(points)))
    for j in range(rows.shape[1]):
        total += rows[:, j].astype(np.float64)[:, None] * points[:, j]
    return total
