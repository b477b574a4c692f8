"""What one record can move in a bootstrap: every resample's statistic by its sensitivity, and nothing else."""

import math
import warnings
from fractions import Fraction

import numpy as np
import pytest

from privamp import Gaussian
from privamp.bootstrap import Bounded, Mean, Quantile, Regression, Variance, run
from privamp.bootstrap.bounded import TRUSTED
from privamp.errors import InvalidInput

ODD = [math.nan, math.inf, -math.inf, None, "lots", 10**400, -(10**400), 1.7976931348623157e308, 5e-324, -0.0, [1], 5.0]
PLAIN = np.random.default_rng(5).uniform(-2, 12, 60).tolist()
STATISTICS = {
    "mean": ("mean", (0.0, 10.0)),
    "variance": ("variance", (0.0, 10.0)),
    "quantile": ("quantile:0.3", (0.0, 10.0)),
    "regression": ("regression", ((0.0, 10.0), (0.0, 10.0), (-1.0, 1.0))),
    "own": (lambda x: 1.0 / (x.max() - 1e3) + np.log(x).sum() / 0.0, (0.0, 1.0)),
}
SMALL = {"epsilon": 1.0, "delta": 1e-6, "resamples": 5, "size": 20, "jobs": 1}


@pytest.fixture
def clean(monkeypatch):
    """clean: (statistics before noise, their declared sensitivity), in order."""
    seen, real = [], Gaussian.release

    def release(self, value, stream):
        seen.append((np.array(value), self.sensitivity))
        return real(self, np.zeros_like(value), stream)

    monkeypatch.setattr(Gaussian, "release", release)
    return seen


def values_of(name, column):
    return ([[x, x] for x in column], column) if name == "regression" else column


@pytest.mark.parametrize("name", STATISTICS)
@pytest.mark.parametrize("method", ["subsampling", "m-out-of-n"])
def test_no_value_is_refused_and_none_warns(name, method, clean, key, capfd):
    statistic, bounds = STATISTICS[name]
    for i, odd in enumerate(ODD):
        results = []
        for column in (PLAIN, [*PLAIN[:7], odd, *PLAIN[8:]]):
            with warnings.catch_warnings(record=True) as told:
                warnings.simplefilter("always")
                results.append(
                    run(values_of(name, column), statistic, bounds=bounds, method=method, key=key(i), **SMALL)
                )
            assert not told
        half = len(clean) // 2
        one, other = (np.concatenate([value for value, _ in part]) for part in (clean[:half], clean[half:]))
        copies = 1 if method == "subsampling" else 20
        moved = np.linalg.norm(one - other, axis=1)
        assert np.all(moved <= copies * clean[0][1])
        assert results[0] == results[1]  # the noise was put on zeros
        clean.clear()
    assert capfd.readouterr() == ("", "")


def test_a_statistic_of_ones_own_is_trusted_in_words(key):
    assert TRUSTED in run(PLAIN, np.mean, bounds=(0, 1), key=key(), **SMALL).guarantee.assumes
    assert TRUSTED not in run(PLAIN, "mean", bounds=(0, 1), key=key(1), **SMALL).guarantee.assumes


def exact(statistic, values, counts):
    """Mean and variance of the rounded records, in rational numbers."""
    half = Fraction(statistic.half)
    entries = [
        Fraction(int(u)) * half / 2**26 for u, c in zip(statistic.rows(values), counts, strict=True) for _ in range(c)
    ]
    mean = sum(entries) / len(entries)
    return mean if type(statistic) is Mean else sum((e - mean) ** 2 for e in entries) / (len(entries) - 1)


@pytest.mark.parametrize("kind", [Mean, Variance])
def test_sums_are_exact_in_any_order(kind):
    """With a dot product the last bits depended on the order of the records."""
    random = np.random.default_rng(2)
    statistic, values, counts = kind((-1.0, 0.3)), random.uniform(-1, 0.3, 900), random.integers(1, 5, 900)
    rows = statistic.rows(values)
    found = {
        float(statistic.compute(rows[order], counts[order].astype(float))[0])
        for order in (random.permutation(900) for _ in range(20))
    }
    (one,) = found
    assert abs(Fraction(one) - exact(statistic, values, counts)) <= Fraction(statistic.half) * Fraction(2) ** -50


def test_second_moments_are_exact_in_any_order():
    random = np.random.default_rng(2)
    statistic = Regression([(-1.0, 0.3)] * 6)
    X, y = random.uniform(-1, 0.3, (900, 5)), random.uniform(-1, 0.3, 900)
    rows, counts = statistic.rows((X, y)), random.integers(1, 5, 900).astype(float)
    orders = [random.permutation(900) for _ in range(10)]
    assert len({statistic.compute(rows[order], counts[order]).tobytes() for order in orders}) == 1
    plain = np.column_stack([np.ones(900), (np.column_stack([X, y]) + 0.35) / 0.65])
    i, j = statistic.upper
    expected = (plain.T * counts) @ plain / counts.sum()
    found = statistic.matrix(statistic.compute(rows, counts))
    np.testing.assert_allclose(found[i, j], expected[i, j], atol=1e-7)


def test_what_counts_as_what():
    odd = [None, "x", math.nan, 10**400, -math.inf, 5.0]
    assert (Mean((0.0, 4.0)).rows(odd) / 2**26).tolist() == [0.0, 0.0, 0.0, 1.0, -1.0, 1.0]
    assert Quantile((0.0, 4.0), bins=4).rows(odd).tolist() == [1, 1, 1, 3, 0, 3]
    assert Bounded(np.mean, (0, 1)).rows(odd)[3] == math.inf
    with pytest.raises(InvalidInput, match=r"between 1e-60 and 1e\+60 apart"):
        Mean((-1.7e308, 1.7e308))
