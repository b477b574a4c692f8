import math
import warnings
from fractions import Fraction

import numpy as np
import pytest

from privamp import Gaussian, InvalidInput, Neighbors, NoTheorem, Population, Proportional, PureDP, SharedRate, amplify
from privamp.designs import rounded_size as rounded
from privamp.errors import DegradingDesign
from privamp.testing import seeded_key
from privamp.verify import exact_epsilon_of_laws
from privamp.verify.symmetry import collect

AR, RO = Neighbors.ADD_REMOVE, Neighbors.REPLACE_ONE
pytestmark = pytest.mark.filterwarnings("ignore::privamp.errors.DegradingDesign")


def exact(design, n, epsilon):
    one, other = (collect(design.law(Population(k))) for k in (n, n + 1))
    return exact_epsilon_of_laws(one, other, epsilon, "add-remove")


@pytest.mark.parametrize(
    ("n", "rate", "rounding", "lp"),
    [  # epsilon = 1; exact values of the linear program between n and n + 1 records
        (4, 0.25, "random", 0.870426409),
        (6, 1 / 3, "random", 1.02594255),
        (5, 0.1, "random", 0.224129413),
        (4, 0.25, "half-up", 0.823214991),
        (6, 1 / 3, "half-up", 1.038665733),
        (5, 0.1, "half-up", 0.725054041),
    ],
)
def test_reference_rows(n, rate, rounding, lp):
    rate = Fraction(rate).limit_denominator(1000)
    assert exact(Proportional(rate, rounding), n, 1.0) == pytest.approx(lp, abs=1e-6)
    chain = rounded.added_at(rate, rounding, 1.0, n)
    assert chain.lower <= lp + 1e-8
    assert chain.upper == pytest.approx(lp, abs=1e-6)
    assert amplify(PureDP(1.0), Proportional(rate, rounding)).epsilon() >= lp
    assert amplify(PureDP(1.0), Proportional(rate, rounding, at_most=n + 1)).epsilon() >= lp - 1e-9


@pytest.mark.parametrize("rate", [0.001, 0.1, 0.25, 0.5, 0.75, 1.0])
@pytest.mark.parametrize("epsilon", [0.01, 1.0, 5.0, 400.0])
def test_random_rounding_is_a_supremum(rate, epsilon):
    guarantee = amplify(PureDP(epsilon), Proportional(rate))
    if epsilon < 300:
        a = math.exp(epsilon)
        assert guarantee.epsilon() == pytest.approx(
            math.log1p(rate * (a - 1) + rate * (1 - rate) * (a * a - 1)), rel=1e-9
        )
        near = rounded.added_at(Fraction(str(rate)), "random", epsilon, 20_000)
        assert near.upper <= guarantee.epsilon() + 2e-13
        assert near.lower == pytest.approx(guarantee.epsilon(), rel=3e-4)
    assert guarantee.lower.epsilon() == pytest.approx(guarantee.epsilon(), rel=1e-9)
    swapped = amplify(PureDP(epsilon), Proportional(rate), RO)
    if epsilon < 300:
        assert swapped.epsilon() == pytest.approx(math.log1p(rate * math.expm1(2 * epsilon)), rel=1e-9)


def test_random_rounding_amplifies_up_to_one_in_one_plus_a():
    edge = 1 / (1 + math.e)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert amplify(PureDP(1.0), Proportional(round(edge - 1e-3, 6))).epsilon() < 1.0
    with pytest.warns(DegradingDesign, match="loses privacy"):
        assert amplify(PureDP(1.0), Proportional(round(edge + 1e-3, 6))).degrades


def kept(rate, rounding, n):
    """m/(n+1) when n and n+1 records give the same size, else nothing."""
    few, more = (rounded.whole_size(rate, k, rounding) for k in (n, n + 1))
    return Fraction(few, n + 1) if few == more else Fraction(0)


@pytest.mark.parametrize("rounding", ["floor", "half-up", "ceil"])
def test_the_suprema_of_the_rules_by_brute_force(rounding):
    for rate in sorted({Fraction(u, v) for v in (7, 10, 12, 100) for u in range(1, v)}):
        low, high = rounded.share_kept(rate, rounding)
        seen = max(kept(rate, rounding, n) for n in range(400))
        assert seen <= high == low
        assert seen >= low - Fraction(1, 300)  # reached, or approached as n grows
        assert high <= rounded.share_kept_at_most(rate, rounding)
        drawn = max(Fraction(rounded.whole_size(rate, n, rounding), n) for n in range(1, 201))
        assert drawn == rounded.share_replaced(rate, rounding)


def test_half_up_at_a_rate_with_no_short_period():
    low, high = rounded.share_kept(Fraction("0.3333333333333333"), "half-up")
    assert Fraction(1, 3) <= low <= high <= low + Fraction(1, 10_000)


def test_rules_never_amplify_and_may_degrade():
    for rounding in ("floor", "half-up", "ceil"):
        assert amplify(PureDP(1.0), Proportional(0.001, rounding)).epsilon() >= 1.0
    with pytest.warns(DegradingDesign, match="loses privacy"):
        ceil = amplify(PureDP(1.0), Proportional(0.001, "ceil"))
    # one half, however small the rate
    assert ceil.epsilon() == pytest.approx(math.log1p(0.5 * math.expm1(2)), rel=1e-9)
    half = amplify(PureDP(1.0), Proportional(0.4, "half-up"))
    assert half.epsilon() == pytest.approx(math.log1p(0.4 * math.expm1(2)), rel=1e-9)  # not 0.8


def test_a_bound_on_the_number_of_records_sharpens():
    open_end = amplify(PureDP(1.0), Proportional(0.1))
    bounded = amplify(PureDP(1.0), Proportional(0.1, at_most=40))
    assert bounded.epsilon() < open_end.epsilon()
    assert bounded.lower.epsilon() == pytest.approx(bounded.epsilon(), rel=1e-9)
    with pytest.raises(InvalidInput, match="at most 40 records"):
        Proportional(0.1, at_most=40).draw(41, seeded_key(0))


def test_a_float_rate_is_the_decimal_it_is_written_as():
    assert Proportional(0.1, "ceil").size_weights(10) == {1: 1}
    assert Proportional(Fraction(1, 3)).size_weights(7) == {2: 2, 3: 1}
    assert Proportional(0.1).size_weights(0) == {0: 1}


def test_sizes_drawn_have_the_right_mean():
    design = Proportional(0.25)
    sizes = [design.draw(6, seeded_key(3), r).reveal_secret().positions.size for r in range(400)]
    assert set(sizes) == {1, 2}
    assert abs(np.mean(sizes) - 1.5) < 6.2 * 0.5 / 20  # six sigma and a bit: false alarm below 1e-9


def test_refusals():
    with pytest.raises(NoTheorem, match="says nothing about"):
        amplify(Gaussian(1.0, neighbors=RO), Proportional(0.1))
    with pytest.raises(NoTheorem, match="secret number of records"):
        Proportional(0.1).appearances(2)


@pytest.mark.parametrize(
    "make",
    [
        lambda: Proportional(-0.1),
        lambda: Proportional(1.1),
        lambda: Proportional(math.nan),
        lambda: Proportional(0.1, "half-even"),
        lambda: Proportional(0.1, at_most=0),
        lambda: SharedRate(0, 10, 2),
        lambda: SharedRate(11, 10, 2),
        lambda: SharedRate(1, 10, 0),
        lambda: SharedRate(1, 10, 2, "up"),
    ],
)
def test_bad_input_is_one_sentence(make):
    with pytest.raises(InvalidInput) as caught:
        make()
    assert "got" in str(caught.value)
    assert "\n" not in str(caught.value)


def test_a_rule_with_a_shared_rate_lets_all_strata_jump_together():
    """Ten strata of 5, m = 25: with one record more, nine strata go from 3 to 2 and the tenth keeps 3, now of 6."""
    sizes = [
        rounded.whole_size(Fraction(25, n), members, "half-up") for n, members in ((50, 5), (51, 5), (50, 5), (51, 6))
    ]
    assert sizes == [3, 2, 3, 3]
    exact_loss = 9 * 1.0 + math.log1p(0.5 * math.expm1(2))
    assert exact_loss == pytest.approx(10.434, abs=5e-4)
    assert amplify(PureDP(1.0), SharedRate(25, 50, 10, "half-up")).epsilon() == pytest.approx(exact_loss, rel=1e-9)


def test_a_shared_rate_costs_a_little_more_than_a_fixed_one():
    shared = amplify(PureDP(1.0), SharedRate(100, 999, 4)).epsilon()
    fixed = amplify(PureDP(1.0), Proportional(0.1)).epsilon()
    assert shared == pytest.approx(fixed + 0.1 * math.expm1(1), rel=1e-9)


def test_drawing_with_a_shared_rate():
    people = Population(20, stratum=["a"] * 10 + ["b"] * 6 + ["c"] * 4)
    design = SharedRate(10, 20, 3)
    drawn = np.sort(design.draw(people, seeded_key(5)).reveal_secret().positions)
    assert [int(np.sum((drawn >= low) & (drawn < high))) for low, high in ((0, 10), (10, 16), (16, 20))] == [5, 3, 2]
    with pytest.raises(InvalidInput, match="at least 20 records"):
        design.draw(Population(5, stratum=["a"] * 5), seeded_key(5))
    with pytest.raises(InvalidInput, match="declares 2 strata"):
        SharedRate(10, 20, 2).draw(people, seeded_key(5))
    with pytest.raises(InvalidInput, match="needs a column 'stratum'"):
        design.draw(20, seeded_key(5))


def test_the_shared_rate_bound_grows_with_the_rate():
    found = [amplify(PureDP(1.0), SharedRate(size, 100, 2)).epsilon() for size in range(1, 101)]
    assert found == sorted(found)
    moved = [amplify(PureDP(1.0), SharedRate(size, 100, 2), RO).epsilon() for size in range(1, 101)]
    assert moved == sorted(moved)
