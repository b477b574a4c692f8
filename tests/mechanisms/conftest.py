"""The oracle: log delta in 80 digits, straight from the definition, and the one comparison all tests use."""

from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import mpmath as mp
import numpy as np
import pytest

from privamp.core.multiplicity import Multiplicity
from privamp.numerics.rounding import ARGUMENT, margin

Truth = Callable[[Any], Any]


def misses(log_delta: Any, truth: Truth, epsilons: Any, *, argument: bool = False) -> list[tuple[float, float, float]]:
    """Where log delta leaves a tenth of the rounding margin: (epsilon, error/allowed, log delta).

    argument: also allow a tenth of the shift of epsilon that rounding applies, for curves that end in a point
    (there the last bit of the scale itself moves delta by more than the margin).
    """
    epsilons = np.atleast_1d(np.asarray(epsilons, dtype=np.float64))
    found = []
    for e, got in zip(epsilons, np.asarray(log_delta(epsilons)), strict=True):
        with mp.workdps(80):
            exact = truth(mp.mpf(float(e)))
            if mp.isinf(exact):
                if not np.isneginf(got):
                    found.append((float(e), np.inf, float(got)))
                continue
            allowed = 0.1 * float(margin(float(exact)))
            if argument:
                h = mp.mpf(0.1 * ARGUMENT * (1.0 + float(e)))
                low, high = truth(mp.mpf(float(e)) + h), truth(max(mp.mpf(float(e)) - h, mp.mpf(0)))
                allowed += float(min(high - low, mp.mpf(1))) if not mp.isinf(low) else 1.0
            error = float(abs(mp.mpf(float(got)) - exact)) / allowed if np.isfinite(got) else np.inf
            if not error <= 1.0:
                found.append((float(e), error, float(exact)))
    return found


def tail(x: Any) -> Any:
    """Pr[N(0,1) > x]."""
    return mp.erfc(x / mp.sqrt(2)) / 2


def gaussian(theta: float) -> Truth:
    s = mp.mpf(theta)
    return lambda e: mp.log(tail(e / s - s / 2) - mp.exp(e) * tail(e / s + s / 2))


def laplace(theta: float) -> Truth:
    return lambda e: mp.log(1 - mp.exp((e - mp.mpf(theta)) / 2)) if e < mp.mpf(theta) else -mp.inf


def _solve(f: Callable[[Any], Any], low: Any, high: Any) -> Any:
    """Bisection; delta is flat in the root, so 45 digits of it give 90 of delta."""
    while f(low) > 0:
        low = low * 2
    while f(high) < 0:
        high = high * 2
    for _ in range(150):
        middle = (low + high) / 2
        low, high = (middle, high) if f(middle) < 0 else (low, middle)
    return low


def _mixture(law: list[Any], shift: Any, density: Any, above: Any, forward: bool) -> Truth:
    """D(P||Q) or D(Q||P), P = sum law[u] M(u shift), Q = M(0), by the half line of large losses."""

    def truth(e: Any) -> Any:
        y = e if forward else -e

        def loss(t: Any) -> Any:
            return mp.log(sum(p * density(t - u * shift) for u, p in enumerate(law)) / density(t)) - y

        t = _solve(loss, mp.mpf(-1) * shift, mp.mpf(len(law)) * shift)
        sign = 1 if forward else -1
        p = sum(p * above(sign * (t - u * shift)) for u, p in enumerate(law))
        return mp.log(p - mp.exp(e) * above(t) if forward else above(-t) - mp.exp(e) * p)

    return truth


def gaussian_mixture(theta: float, law: list[Any], forward: bool) -> Truth:
    return _mixture(law, mp.mpf(theta), lambda x: mp.exp(-x * x / 2), tail, forward)


def _laplace_above(x: Any) -> Any:
    return mp.exp(-x) / 2 if x >= 0 else 1 - mp.exp(x) / 2


def laplace_mixture(theta: float, law: list[Any], forward: bool) -> Truth:
    shift = mp.mpf(theta)
    inner = _mixture(law, shift, lambda x: mp.exp(-abs(x)), _laplace_above, forward)
    ends = [mp.log(sum(p * mp.exp(sign * u * shift) for u, p in enumerate(law))) for sign in (-1, 1)]

    def truth(e: Any) -> Any:
        inside = e < ends[1] if forward else -e > ends[0]
        return inner(e) if inside else -mp.inf

    return truth


def opposite(theta: float, q: float) -> Truth:
    s, q = mp.mpf(theta), mp.mpf(q)

    def truth(e: Any) -> Any:
        a, k = mp.exp(e), mp.exp(-s * s / 2)
        b = (1 - q) * (a - 1)
        t = mp.log((b + mp.sqrt(b * b + 4 * a * q * q * k * k)) / (2 * q * k)) / s
        return mp.log((1 - q) * tail(t) + q * tail(t - s) - a * ((1 - q) * tail(t) + q * tail(t + s)))

    return truth


def table(p: dict[int, Any], q: dict[int, Any]) -> Truth:
    """The definition, summed."""

    def truth(e: Any) -> Any:
        a = mp.exp(e)
        total = mp.fsum(max(p.get(k, mp.mpf(0)) - a * q.get(k, mp.mpf(0)), mp.mpf(0)) for k in p)
        return mp.log(total) if total > 0 else -mp.inf

    return truth


def pmf(log_weight: Callable[[int], Any], reach: int, shift: int = 0) -> dict[int, Any]:
    """Chances proportional to e^log_weight(|k|), moved."""
    with mp.workdps(80):
        weights = {k: mp.exp(log_weight(abs(k))) for k in range(-reach, reach + 1)}
        total = mp.fsum(weights.values())
        return {k + shift: w / total for k, w in weights.items()}


def mix(laws: list[tuple[Any, dict[int, Any]]]) -> dict[int, Any]:
    out: dict[int, Any] = {}
    for weight, law in laws:
        for k, p in law.items():
            out[k] = out.get(k, mp.mpf(0)) + weight * p
    return out


def weights(law: Multiplicity) -> list[Any]:
    """p_0, p_1, ... as the law's own numbers state them (p_0 from whichever form keeps its digits)."""
    with mp.workdps(80):
        rest = [mp.exp(mp.mpf(float(x))) for x in law.log_p]
        stated = mp.exp(mp.mpf(law.log_none)) + mp.exp(mp.mpf(law.log_tail))
        return [stated if stated < 0.5 else 1 - mp.fsum(rest), *rest]


@pytest.fixture(scope="session")
def oracle() -> SimpleNamespace:
    names = (misses, gaussian, laplace, gaussian_mixture, laplace_mixture, opposite, table, pmf, mix, weights)
    return SimpleNamespace(**{f.__name__: f for f in names})
