"""`allocate` against scipy's SLSQP on the same program: time, and how far apart the two variances are."""

import statistics
import time
import warnings

import numpy as np
from scipy.optimize import minimize

from privamp.survey import Stratum, allocate
from privamp.survey.allocation import _problem
from privamp.survey.hidden_signal import LaplaceStrength


def strata(count, seed=0):
    random = np.random.default_rng(seed)
    return [
        Stratum(
            k,
            int(random.integers(50, 5000)),
            width := float(random.uniform(1, 100)),
            width * float(random.uniform(0.01, 0.4)),
        )
        for k in range(count)
    ]


def timed(run):
    started = time.perf_counter()
    answer = run()
    return time.perf_counter() - started, answer


def slsqp(cells, size):
    """Rates and s, scaled to order one, with exact gradients (it is hopeless without)."""
    problem = _problem(cells, [h.sd for h in cells], size, LaplaceStrength(np.ones(len(cells))))
    N, R, S, H = problem.population, problem.range, problem.sd, len(cells)
    even = np.full(H, size / problem.total)
    s0, unit = float(np.min(problem.strength.phi(even) / R)), problem.variance(even) * problem.total**2

    def value(x):
        return float((N * S**2 * (1 / x[:H] - 1)).sum() + 2 / (x[H] * s0) ** 2) / unit

    def gradient(x):
        return np.append(-N * S**2 / x[:H] ** 2, -4 / (x[H] ** 3 * s0**2)) / unit

    def hidden(x):
        return (problem.strength.phi(x[:H]) - x[H] * s0 * R) / problem.strength.top

    def hidden_gradient(x):
        slope = problem.strength.slope(x[:H], problem.strength.phi(x[:H]))
        return np.hstack([np.diag(slope), -s0 * R[:, None]]) / problem.strength.top[:, None]

    limits = [
        {"type": "ineq", "fun": hidden, "jac": hidden_gradient},
        {"type": "ineq", "fun": lambda x: 1 - float(N @ x[:H]) / size, "jac": lambda x: np.append(-N / size, 0.0)},
    ]
    found = minimize(
        value, [*even, 0.9], jac=gradient, method="SLSQP", bounds=[(1e-6, 1.0)] * H + [(1e-6, None)],
        constraints=limits, options={"maxiter": 300, "ftol": 1e-13},
    )  # fmt: skip
    rates = found.x[:H] * min(1.0, size / float(N @ found.x[:H]))
    return problem.variance(np.clip(rates, 1e-9, 1.0))


if __name__ == "__main__":
    warnings.simplefilter("ignore")
    for count in (4, 30, 100):
        cells = strata(count)
        size = sum(h.population for h in cells) // 20
        allocate(cells, size, 1.0)
        ours = statistics.median(timed(lambda c=cells, m=size: allocate(c, m, 1.0))[0] for _ in range(9))
        ideal = allocate(cells, size, 1.0).ideal_cost.total
        theirs, variance = timed(lambda c=cells, m=size: slsqp(c, m))
        print(
            f"{count:5d} strata: {1e3 * ours:7.2f} ms, SLSQP {1e3 * theirs:9.1f} ms ({theirs / ours:7.1f} times ours); "
            f"variance SLSQP/ours - 1 = {variance / ideal - 1:.1e}"
        )
    cells = strata(1000)
    best = min(timed(lambda: allocate(cells, 100_000, 1.0))[0] for _ in range(15))
    print(f" 1000 strata: {1e3 * best:7.2f} ms (target: 50 ms), whole sizes and noise included")
