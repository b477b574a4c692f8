"""The smallest worst-case squared error of an epsilon-DP estimate of the number of records, by a linear program.

Counts 0 to L, answers on the grid of halves. Rounding any estimate to that grid moves it by at most a quarter, so no
estimate has a worst-case error below (sqrt(value of the program) - 1/4)^2. More records only make it harder.
"""

import math

import numpy as np
from scipy.optimize import linprog
from scipy.sparse import coo_array, vstack

from ...numerics.roots import NumericalFailure


def least_squared_error(epsilon: float, largest: int) -> float:
    """No epsilon-DP count of 0 to `largest` records has a smaller worst-case squared error."""
    answers = np.arange(2 * largest + 1) / 2.0
    counts, k = largest + 1, answers.size
    at = np.arange(counts * k).reshape(counts, k)
    shape = (counts * k, counts * k + 1)
    low, high = at[:-1].ravel(), at[1:].ravel()
    first, second = np.concatenate([low, high]), np.concatenate([high, low])
    rows = np.arange(first.size)
    values = np.concatenate([np.ones(first.size), np.full(first.size, -math.exp(epsilon))])
    steps = coo_array((values, (np.tile(rows, 2), np.concatenate([first, second]))), shape=(first.size, shape[1]))
    squares = ((answers[None, :] - np.arange(counts)[:, None]) ** 2).ravel()
    owner = np.repeat(np.arange(counts), k)
    worst = coo_array((np.full(counts, -1.0), (np.arange(counts), np.full(counts, shape[0]))), (counts, shape[1]))
    errors = coo_array((squares, (owner, at.ravel())), shape=(counts, shape[1])) + worst
    sums = coo_array((np.ones(shape[0]), (owner, at.ravel())), shape=(counts, shape[1]))
    cost = np.zeros(shape[1])
    cost[-1] = 1.0
    found = linprog(cost, A_ub=vstack([steps, errors]).tocsr(), b_ub=np.zeros(first.size + counts), A_eq=sums.tocsr(),
                    b_eq=np.ones(counts), method="highs-ipm")  # fmt: skip
    if found.status != 0:
        raise NumericalFailure(f"the linear program for a private count was not solved: {found.message}")
    return float((math.sqrt(max(found.fun - 1e-6, 0.0)) - 0.25) ** 2)
