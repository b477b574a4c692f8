"""Capped Poisson samples of very many records: chances keep ten digits, and what is not a number is not taken for 0."""

import mpmath
import numpy as np
import pytest

from privamp import Gaussian, Neighbors, PureDP, TruncatedPoisson, amplify
from privamp.core.guarantee import Guarantee
from privamp.numerics.count_laws import binomial_above, binomial_at_most
from privamp.numerics.roots import NumericalFailure

RO = Neighbors.REPLACE_ONE


def exactly_at_most(k, n, p):
    with mpmath.workdps(50):
        return mpmath.fsum(
            mpmath.binomial(n, i) * mpmath.mpf(p) ** i * (1 - mpmath.mpf(p)) ** (n - i) for i in range(k + 1)
        )


@pytest.mark.parametrize(
    ("k", "n", "p"),
    [(10, 4806393, 2.684756638068258e-06), (36, 1969424531, 1.912937036476246e-08), (39, 2069050649, 2.674958e-06)],
)
def test_tails_of_many_records_have_ten_digits(k, n, p):
    below = exactly_at_most(k, n, p)
    assert float(binomial_at_most(k, n, p)) == pytest.approx(float(below), rel=1e-10, abs=1e-300)
    assert float(binomial_above(k, n, p)) == pytest.approx(float(1 - below), rel=1e-10, abs=1e-300)


@pytest.mark.parametrize(
    ("mechanism", "design"),
    [
        (PureDP(1.0), TruncatedPoisson(2.674958434847478e-06, 34, at_least=15898596)),
        (PureDP(1.0), TruncatedPoisson(5e-9, 12, at_least=3 * 10**9)),
        (Gaussian(1.0), TruncatedPoisson(2.684756638068258e-06, 11, 4806393, 4806393)),
        (Gaussian(1.0), TruncatedPoisson(25 / 1e10, 20, 10**10, 10**10)),
    ],
)
def test_bounds_of_many_records_are_in_order(mechanism, design):
    found = amplify(mechanism, design, RO)
    assert 0.0 < found.lower.delta(0.0) <= found.delta(0.0)


def test_what_is_not_a_number_is_not_zero(monkeypatch):
    found = amplify(PureDP(1.0), TruncatedPoisson(0.1, 12))
    monkeypatch.setattr(type(found.upper), "log_delta", lambda self, epsilon: np.full(np.shape(epsilon), np.nan))
    with pytest.raises(NumericalFailure, match="could not be computed"):
        Guarantee.delta(found, 0.5)
