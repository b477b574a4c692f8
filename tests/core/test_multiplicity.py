import math
from fractions import Fraction
from math import comb

import numpy as np
import pytest

from privamp import InvalidInput, MultiStage
from privamp.core.multiplicity import Multiplicity


@pytest.mark.parametrize(("draws", "chance"), [(1, 0.3), (5, 0.2), (400, 1e-3), (200, 1 / 118), (7, 1.0), (3, 0.0)])
def test_binomial_matches_exact_fractions(draws, chance):
    law, p = Multiplicity.binomial(draws, chance), Fraction(chance)
    for u, log_p in zip(law.counts.astype(int), law.log_p, strict=True):
        exact = comb(draws, int(u)) * p ** int(u) * (1 - p) ** (draws - int(u))
        if exact == 0:
            assert log_p == -np.inf
        elif float(exact) > 1e-290:
            assert np.exp(log_p) == pytest.approx(float(exact), rel=1e-12)


@pytest.mark.parametrize(("n", "k", "m"), [(10, 3, 4), (10, 8, 9), (1000, 2, 400), (5, 5, 5), (6, 1, 6), (50, 20, 45)])
def test_hypergeometric_matches_exact_fractions(n, k, m):
    law = Multiplicity.hypergeometric(n, k, m)
    exact = [Fraction(comb(k, u) * comb(n - k, m - u), comb(n, m)) if m >= u else 0 for u in range(k + 1)]
    assert np.exp(law.log_none) == pytest.approx(float(exact[0]), rel=1e-13, abs=1e-300)
    for u, log_p in zip(law.counts.astype(int), law.log_p, strict=True):
        assert np.exp(log_p) == pytest.approx(float(exact[int(u)]), rel=1e-12, abs=1e-300)


def test_large_draws_keep_their_digits():
    # log-gamma would lose about five digits here; the exact p_0 and p_1 are elementary
    n = 10**9
    law = Multiplicity.binomial(n, 1 / n)
    assert law.log_none == pytest.approx(n * np.log1p(-1 / n), rel=1e-15)
    assert law.log_p[0] - law.log_none == pytest.approx(np.log(n * (1 / n) / (1 - 1 / n)), abs=1e-14)
    assert np.logaddexp(law.log_none, np.logaddexp.reduce(law.log_p)) == pytest.approx(0.0, abs=1e-12)


THEORY_4 = [
    ((("wr", 400),), 1000, 0.329814),
    ((("wor", 500), ("wr", 400)), 1000, 0.275515),
    ((("wr", 500), ("wr", 400)), 1000, 0.240908),
    ((("wor", 118), ("wr", 200)), 10000, 0.00964894),
    ((("wr", 118), ("wr", 200)), 10000, 0.00960296),
    ((("wr", 600), ("wr", 400), ("wr", 200)), 1000, 0.129509),
    ((("wor", 500), ("wr", 300), ("wor", 100)), 1000, 0.0907166),
]


@pytest.mark.parametrize(("stages", "population", "eta"), THEORY_4)
def test_reference_chances_of_appearing(stages, population, eta):
    found = MultiStage(stages, population).appearances().eta
    digits = len(f"{eta:.10g}".lstrip("0.").replace(".", ""))
    assert float(f"{found:.{digits}g}") == eta


def test_the_law_of_a_chain_is_the_enumerated_one():
    design = MultiStage([("wr", 3), ("wor", 2), ("wr", 3)], 3)
    from privamp import Population

    exact: dict[int, Fraction] = {}
    for units, chance in design.law(Population(3)):
        exact[units.count(0)] = exact.get(units.count(0), Fraction(0)) + chance
    law = design.appearances()
    assert np.exp(law.log_none) == pytest.approx(float(exact[0]), rel=1e-14)
    for u, log_p in zip(law.counts.astype(int), law.log_p, strict=True):
        assert np.exp(log_p) == pytest.approx(float(exact.get(int(u), 0)), rel=1e-13, abs=1e-300)


def test_equivalent_chains_have_equal_laws():
    wr_wor = MultiStage([("wr", 30), ("wor", 10)], 50).appearances()
    wr = MultiStage([("wr", 10)], 50).appearances()
    assert np.allclose(wr_wor.log_p[:8], wr.log_p[:8], rtol=1e-12)
    two = MultiStage([("wor", 30), ("wor", 10)], 50).appearances()
    assert two.eta == pytest.approx(0.2, rel=1e-14)


def test_more_copies_than_fit_in_memory_are_refused():
    with pytest.raises(InvalidInput, match=r"may appear some 1e\+30 times .* draw at most about"):
        MultiStage((("wor", 1), ("wr", 10**30)), 1000).appearances()


def test_nearly_complete_draws_from_a_billion_records_are_quick():
    """All but a few records drawn: the law is that of the few left out, not a product over all others."""
    for left in (0, 1, 2):
        law = Multiplicity.hypergeometric(10**9, 3, 10**9 - left)
        assert math.isclose(math.exp(law.log_p[3 - 1]), 1.0 - 3e-9 * left, rel_tol=1e-12, abs_tol=1e-16)
    law = Multiplicity.hypergeometric(7, 5, 4)
    exact = [comb(5, u) * comb(2, 4 - u) / comb(7, 4) for u in range(1, 5) if 4 - u <= 2]
    np.testing.assert_allclose(np.exp(law.log_p[1:]), exact, rtol=1e-14)


@pytest.mark.parametrize("epsilon", [1e-9, 0.1, 3.0, 50.0])
@pytest.mark.parametrize(("draws", "chance"), [(1, 1e-7), (4, 0.3), (30, 0.9)])
def test_moments_are_those_of_the_binomial(draws, chance, epsilon):
    """E e^(epsilon u) = (1 - q + q e^epsilon)^draws, with the digits of tiny ones."""
    found = Multiplicity.binomial(draws, chance).log_moment(epsilon)
    exact = draws * np.log1p(chance * np.expm1(epsilon))
    assert found == pytest.approx(exact, rel=1e-9)


def test_a_law_that_was_cut_off_has_no_moment():
    whole = Multiplicity.binomial(3, 0.5)
    cut = Multiplicity(whole.log_none, whole.log_p, math.log(1e-9))
    assert cut.log_moment(0.1) == math.inf


@pytest.mark.parametrize("copies", [1, 2, 5])
def test_certain_appearances(copies):
    law = Multiplicity.certain(copies)
    assert law.log_none == -math.inf
    assert np.exp(law.log_p).tolist() == [0.0] * (copies - 1) + [1.0]
    assert law.counts.tolist() == list(range(1, copies + 1))
    assert law.log_moment(0.3) == pytest.approx(0.3 * copies)
