"""A weight hides what its rule looked at: rows that are longer than that are shortened before they are added up."""

from fractions import Fraction

import numpy as np
import pytest

from privamp import (
    ExactGaussian,
    ExactLaplace,
    GaussianProfile,
    ImportanceSampling,
    InvalidInput,
    Laplace,
    LinearProfile,
    Poisson,
    Population,
    Stratified,
    privacy_constrained,
)
from privamp.core.influence import clipped, norms
from privamp.core.sample import Drawn
from privamp.testing import seeded_key

NOISE = ExactLaplace(scale=20.0, sensitivity=4.0)
RULE = privacy_constrained(LinearProfile.of(NOISE), epsilon=1.0, radius=4.0)
NORMAL = ExactGaussian(sigma=20.0, sensitivity=4.0)
OTHER = privacy_constrained(GaussianProfile.of(NORMAL), 1.0, 1e-6, radius=4.0)


def short_and_long(n=20_000):
    """Short records, which get large weights, and long rows beside them."""
    rng = np.random.default_rng(5)
    return rng.normal(size=(n, 2)) * 0.05, np.full((n, 2), 2.0)


@pytest.mark.parametrize(("noise", "rule"), [(NOISE, RULE), (NORMAL, OTHER)], ids=["laplace", "gaussian"])
def test_a_long_row_moves_the_sum_no_farther_than_its_record_may(noise, rule):
    x, rows = short_and_long()
    sample = ImportanceSampling(rule).draw(Population(len(x), x=x), seeded_key(80))
    drawn = sample.reveal_secret()
    assert drawn.positions.size > 0
    statistic, free = noise.sum_of(rows), Drawn(drawn.positions, drawn.counts, drawn.weights)
    for at in range(drawn.positions.size):
        one = slice(at, at + 1)
        kept = Drawn(drawn.positions[one], drawn.counts[one], drawn.weights[one], drawn.lengths[one], drawn.p)
        allowed = drawn.weights[at] * norms(x[kept.positions], noise.p)[0]
        assert norms(statistic(kept)[None] * noise.grid, noise.p)[0] <= allowed * (1 + 1e-12)
    # without the lengths the same record would show far beyond what its weight was made for
    assert np.all(norms(statistic(free)[None] * noise.grid, noise.p) > 20 * np.sum(drawn.weights * drawn.lengths))


def test_records_themselves_are_summed_as_they_are():
    x, _ = short_and_long()
    drawn = ImportanceSampling(RULE).draw(Population(len(x), x=x), seeded_key(81)).reveal_secret()
    assert np.array_equal(drawn.fitted(x[drawn.positions]), x[drawn.positions])
    assert np.array_equal(drawn.fitted(x[drawn.positions, 0]), x[drawn.positions, 0])


def test_tables_are_measured_as_one_row():
    drawn = Drawn(np.arange(2), np.ones(2, dtype=np.int64), np.ones(2), np.array([1.0, 10.0]))
    rows = np.ones((2, 2, 2))
    assert np.allclose(drawn.fitted(rows), np.array([0.5, 1.0])[:, None, None] * rows)
    nobody = Drawn(np.arange(0), np.ones(0, dtype=np.int64), np.ones(0), np.empty(0))
    assert nobody.fitted(np.empty((0, 3, 2))).shape == (0, 3, 2)


def test_rows_that_are_no_numbers_are_not_shown():
    drawn = Drawn(np.arange(1), np.ones(1, dtype=np.int64), np.ones(1), np.ones(1))
    for rows in (np.array(["Ada's secret"]), np.array([{"Ada": 1}], dtype=object)):
        with pytest.raises(InvalidInput, match="rows must be numbers") as error:
            drawn.fitted(rows)
        assert "Ada" not in str(error.value)


def test_plain_arrays_are_shortened_too():
    noise = Laplace(scale=1e-6, sensitivity=4.0)
    rule = privacy_constrained(LinearProfile.of(Laplace(scale=20.0)), epsilon=1.0, radius=4.0)
    x, rows = short_and_long()
    sample = ImportanceSampling(rule).draw(Population(len(x), x=x), seeded_key(82))
    drawn = sample.reveal_secret()
    released = sample.release(noise, rows)
    assert released == pytest.approx(drawn.weights @ clipped(rows[drawn.positions], drawn.lengths, 1.0), abs=1e-3)


def test_strata_keep_the_lengths_of_theirs_and_measure_by_the_stricter_norm():
    x, rows = short_and_long(6_000)
    design = Stratified({0: ImportanceSampling(RULE), 1: ImportanceSampling(OTHER), 2: Poisson(0.01)})
    population = Population(len(x), x=x, stratum=np.arange(len(x)) % 3)
    drawn = design.draw(population, seeded_key(83)).reveal_secret()
    assert drawn.p == 1.0
    stratum = drawn.positions % 3
    assert np.unique(stratum).size == 3
    assert np.all(np.isinf(drawn.lengths) == (stratum == 2))
    fitted = drawn.fitted(rows[drawn.positions])
    assert np.array_equal(fitted[stratum == 2], rows[drawn.positions][stratum == 2])
    for which, p in ((0, 1.0), (1, 2.0)):
        mine = stratum == which
        assert np.all(norms(fitted[mine], p) <= norms(x[drawn.positions][mine], p) * (1 + 1e-14))


@pytest.mark.parametrize("p", [1.0, 2.0])
@pytest.mark.parametrize("width", [0, 1, 2, 7])
def test_a_shortened_row_is_never_longer_in_exact_arithmetic(p, width):
    rng = np.random.default_rng(6)
    lengths = rng.uniform(0.1, 9.0, 500)
    rows = clipped(rng.normal(size=(500, width) if width else 500) * 100.0, lengths, p)
    for row, length in zip(rows.reshape(500, -1).tolist(), lengths.tolist(), strict=True):
        assert sum(abs(Fraction(v)) ** int(p) for v in row) <= Fraction(length) ** int(p)
