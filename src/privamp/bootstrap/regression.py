"""Least-squares coefficients through clipped second moments.

Columns and response are clipped into public bounds and scaled to [-1, 1]: z = (1, x_1..x_d, y). A resample releases the
average of z z^T, its upper triangle with the off-diagonal entries times sqrt(2), so that l2 is the Frobenius norm:
||z z^T - z' z'^T||^2 = |z|^4 + |z'|^4 - 2 (z.z')^2 <= 2 (d + 2)^2, and one entry moves the average by at most sqrt(2)
(d + 2)/m; attained where z.z' = 0 can be. z is whole in a small unit and sums of products are exact (`lattice`).
Everything after that is post-processing: with A, c the blocks of the averaged matrix the coefficients solve A beta =
c, and each group's pseudo-value beta + A^-1 (c_g - A_g beta) is linear in what was released, with known noise, so
that the spread is read as that of a mean. The linearisation needs the noise in A to be small against its least
eigenvalue: intervals are divided by 1 - noise/eigenvalue, and are infinite
where that is not positive.
"""

import math
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from ..errors import InvalidInput
from ..numerics.entries import column_of, is_flat, table_of
from ..numerics.log_domain import FloatArray
from .lattice import UNIT, products, rounded, whole
from .spread import Finding
from .statistic import Series, Statistic, at_least_two, range_of


@dataclass(frozen=True, slots=True)
class Regression(Statistic):
    """y on the columns of X with an intercept; one pair of bounds per column of X, then one for y."""

    bounds: tuple[tuple[float, float], ...]
    names: tuple[str, ...] = ()

    least = 2

    def __post_init__(self) -> None:
        try:
            pairs = tuple(range_of(pair) for pair in self.bounds)
        except TypeError:
            raise InvalidInput("bounds must hold one pair per column of X, then one for y, got none instead") from None
        if len(pairs) < 2:
            raise InvalidInput(f"bounds must hold one pair per column of X, then one for y, got {len(pairs)} pairs")
        if len(pairs) > 40:
            raise InvalidInput(f"a regression takes at most 39 columns, got {len(pairs) - 1} instead")
        object.__setattr__(self, "bounds", pairs)
        if not self.names:
            columns = [f"x{j}" for j in range(1, len(pairs))]
            object.__setattr__(self, "names", ("intercept", *columns))

    @property
    def columns(self) -> int:
        """d, the columns of X."""
        return len(self.bounds) - 1

    @property
    def upper(self) -> tuple[Any, Any]:
        """Where the released numbers stand in the matrix (without the constant corner)."""
        rows, columns = np.triu_indices(self.columns + 2)
        return rows[1:], columns[1:]

    def rows(self, values: Any) -> FloatArray:
        """(n, d + 2): 1, the columns and the response, scaled to [-1, 1], in whole numbers of a small unit."""
        try:
            X, y = values
        except (TypeError, ValueError):
            raise InvalidInput("a regression needs values=(X, y): the columns and the response") from None
        table = column_of(X, "X")[:, None] if is_flat(X) else table_of(X, "X")
        response = whole(y, self.bounds[-1], "y")
        if table.shape[1] != self.columns or table.shape[0] != response.size:
            raise InvalidInput(
                f"X must have {self.columns} columns (as many as bounds) and as many records as y, "
                f"got shape {table.shape} instead"
            )
        columns = [whole(column, ends) for column, ends in zip(table.T, self.bounds[:-1], strict=True)]
        return np.stack([np.full(at_least_two(response).size, UNIT), *columns, response], axis=1)

    def sensitivity(self, size: int) -> float:
        """sqrt(2) (d + 2)/m, and the last rounding."""
        return rounded(math.sqrt(2.0) * (1.0 + 1e-15) * (self.columns + 2) / size, size)

    def compute(self, rows: FloatArray, counts: FloatArray) -> FloatArray:
        """The average of z z^T as a vector."""
        i, j = self.upper
        moments = products(rows, rows, counts)[i, j].astype(np.float64) / (counts.sum() * UNIT**2)
        return np.asarray(moments * np.where(i == j, 1.0, math.sqrt(2.0)))

    def matrix(self, vector: FloatArray) -> FloatArray:
        """The symmetric matrix of released numbers."""
        i, j = self.upper
        found = np.zeros((self.columns + 2, self.columns + 2))
        found[i, j] = found[j, i] = vector / np.where(i == j, 1.0, math.sqrt(2.0))
        found[0, 0] = 1.0
        return found

    def conclude(self, series: Series) -> tuple[Finding, ...]:
        """Solve, linearise, and read every coefficient's pseudo-values."""
        d = self.columns
        average = self.matrix(series.averages.mean(axis=0))
        values, vectors = np.linalg.eigh(average[: d + 1, : d + 1])
        shaken = series.noise / math.sqrt(series.spread.groups) * 2.0 * math.sqrt(d + 1.0)  # noise in A, as a norm
        floored = np.maximum(values, max(shaken, 1e-9))
        inverse = (vectors / floored) @ vectors.T
        beta = inverse @ average[: d + 1, d + 1]
        units, start = self._units()
        # pseudo-values are start + reach @ vector: one row per coefficient
        reach = np.stack(
            [units @ inverse @ self._residual(basis, beta) for basis in np.eye(average[self.upper].size)]
        ).T
        corner = units @ (beta + inverse @ self._residual(np.zeros(reach.shape[1]), beta, corner=1.0)) + start
        pseudo = series.averages @ reach.T + corner
        trust = 1.0 - shaken / float(values[0]) if values[0] > 0 else 0.0
        found = [
            series.spread.finding(name, column, series.noise * float(np.linalg.norm(row)))
            for name, column, row in zip(self.names, pseudo.T, reach, strict=True)
        ]
        return tuple(_widened(f, float(v), trust) for f, v in zip(found, units @ beta + start, strict=True))

    def _residual(self, vector: FloatArray, beta: FloatArray, corner: float = 0.0) -> FloatArray:
        """c - A beta for one released vector."""
        moments = self.matrix(vector)
        moments[0, 0] = corner
        return np.asarray(moments[:-1, -1] - moments[:-1, :-1] @ beta)

    def _units(self) -> tuple[FloatArray, FloatArray]:
        """Coefficients in the units of the data are units @ beta + start."""
        middle = np.array([0.5 * (low + high) for low, high in self.bounds])
        half = np.array([0.5 * (high - low) for low, high in self.bounds])
        units = np.diag(np.concatenate([[half[-1]], half[-1] / half[:-1]]))
        units[0, 1:] = -units.diagonal()[1:] * middle[:-1]
        start = np.zeros(self.columns + 1)
        start[0] = middle[-1]
        return units, start


def _widened(found: Finding, value: float, trust: float) -> Finding:
    """The interval around the coefficient, wider if the matrix is poorly determined."""
    if trust <= 0.0:
        return replace(found, value=value, standard_error=math.inf, interval=(-math.inf, math.inf))
    half = 0.5 * (found.interval[1] - found.interval[0]) / trust
    return replace(
        found, value=value, standard_error=found.standard_error / trust, interval=(value - half, value + half)
    )
