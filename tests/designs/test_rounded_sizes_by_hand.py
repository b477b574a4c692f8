"""Sizes of a rounded share, their suprema over all populations, and the strata of odd labels."""

import math
from fractions import Fraction

import numpy as np
import pytest

from privamp import InvalidInput, Population, SharedRate
from privamp.designs import rounded_size as rounded
from privamp.designs.shared_rate import _texts
from privamp.testing import seeded_key

HALF = Fraction(1, 2)


@pytest.mark.parametrize(
    ("rounding", "sizes"),
    [
        ("floor", [0, 0, 0, 1, 1, 2, 2]),
        ("random", [0, 0, 0, 1, 1, 2, 2]),
        ("half-up", [0, 0, 1, 1, 2, 2, 2]),
        ("ceil", [0, 1, 1, 2, 2, 2, 3]),
    ],
)
def test_two_fifths_of_0_to_6(rounding, sizes):
    """0, .4, .8, 1.2, 1.6, 2, 2.4; under random rounding the smaller of the two."""
    assert [rounded.whole_size(Fraction(2, 5), n, rounding) for n in range(7)] == sizes


def test_halves_are_rounded_up():
    assert [rounded.whole_size(HALF, n, "half-up") for n in (1, 3, 5)] == [1, 2, 3]


def test_random_rounding_has_the_mean_that_was_asked_for():
    assert rounded.size_weights(Fraction(2, 5), 4, "random") == {1: 2, 2: 3}  # 1.6
    assert rounded.size_weights(Fraction(4, 10), 3, "random") == {1: 4, 2: 1}  # 1.2
    assert rounded.size_weights(Fraction(2, 6), 2, "random") == {0: 1, 1: 2}
    assert rounded.size_weights(Fraction(2, 5), 5, "random") == {2: 1}
    assert rounded.size_weights(Fraction(2, 5), 4, "ceil") == {2: 1}
    assert rounded._law(Fraction(2, 5), 4, "random").tolist() == [0.0, 0.4, 0.6, 0.0, 0.0]


def kept(rate, rounding, records):
    """The largest m/(n + 1) where n and n + 1 records both give m, up to a number of records."""
    sizes = [rounded.whole_size(rate, n, rounding) for n in range(records + 1)]
    return max((Fraction(sizes[n], n + 1) for n in range(records) if sizes[n] == sizes[n + 1]), default=Fraction(0))


@pytest.mark.parametrize("rate", [Fraction(1, 7), Fraction(2, 9), Fraction(3, 7), HALF, Fraction(5, 8), Fraction(1)])
@pytest.mark.parametrize("rounding", ["floor", "half-up", "ceil"])
def test_the_largest_share_that_is_kept(rate, rounding):
    low, high = rounded.share_kept(rate, rounding)
    found = kept(rate, rounding, 400)
    assert found <= high
    assert low - found <= Fraction(1, 100)
    assert low == high
    assert rounded.share_kept_at_most(rate, rounding) >= high


def test_a_rate_with_many_digits_is_bounded_by_its_first_sizes():
    """Sizes beyond 10000 are not looked at one by one: m/(n + 1) with n the least for which rn >= m - 1/2."""
    rate = Fraction(10_007, 25_013)
    low, high = rounded.share_kept(rate, "half-up")
    each = [Fraction(m, math.ceil((m - HALF) / rate) + 1) for m in range(1, 10_008)]
    assert low == max(rate, *each[:10_000])
    assert max(rate, *each) <= high
    beyond = rate * 10_001 / (10_001 - HALF + rate)  # where the division leaves no rest
    assert high == max(low, beyond)
    assert high - low < Fraction(1, 1000)
    near = Fraction(499_999, 1_000_000)  # its first sizes keep less than the rate, a later one a little more
    low, high = rounded.share_kept(near, "half-up")
    assert low == near
    assert high == near * 10_001 / (10_001 - HALF + near) > near


@pytest.mark.parametrize("rounding", ["half-up", "ceil", "floor", "random"])
def test_the_largest_chance_of_one_record(rounding):
    rate = Fraction(2, 7)
    found = max(Fraction(rounded.whole_size(rate, n, rounding), n) for n in range(1, 400))
    assert found <= rounded.share_replaced(rate, rounding)
    exact = {"half-up": HALF, "ceil": Fraction(1), "floor": rate, "random": rate}[rounding]
    assert rounded.share_replaced(rate, rounding) == exact


def test_one_record_more_under_random_rounding():
    """log(1 + r(a-1) + r(1-r)(a²-1)), which is largest at r = 1/2 + 1/(2(1+a))."""
    for epsilon in (0.1, 1.0, 5.0):
        a = math.exp(epsilon)
        rates = [Fraction(k, 1000) for k in range(1, 1001)]
        exact = [math.log1p(float(r) * (a - 1) + float(r * (1 - r)) * (a * a - 1)) for r in rates]
        assert [rounded.random_added(r, epsilon) for r in rates] == pytest.approx(exact)
        for r in (Fraction(1, 10), Fraction(7, 10), Fraction(1)):
            most = max(one for rate, one in zip(rates, exact, strict=True) if rate <= r)
            found = rounded.random_added_at_most(r, epsilon)
            assert most - 1e-12 <= found <= most + 1e-4
    near = [rounded.random_added(Fraction(3, 10), e) for e in (300.0, 300.0000001)]
    assert near[0] == pytest.approx(near[1])
    assert rounded.random_added(Fraction(1), 400.0) == pytest.approx(400.0)
    assert rounded.random_added(Fraction(1, 4), 400.0) == pytest.approx(800.0 + math.log(3 / 16))


def test_one_record_more_under_a_rule():
    assert rounded.deterministic_added(0.0, 0.7) == 0.7
    assert rounded.deterministic_added(0.9, 0.7) == pytest.approx(math.log1p(0.9 * math.expm1(1.4)))


def test_few_populations_are_worth_a_program_and_many_are_not():
    rate = Fraction(1, 3)
    assert rounded.added_up_to(rate, "floor", 1.0, 2001) is None
    assert rounded.replaced_up_to(rate, "floor", 1.0, 2001) is None
    assert rounded.added_up_to(rate, "floor", 1e4, 5) is None
    assert rounded.replaced_up_to(rate, "floor", 1e4, 5) is None
    found = rounded.replaced_up_to(rate, "floor", 1.0, 6)  # 3 or 6 records: a third of them is drawn
    assert found.lower <= math.log1p(math.expm1(2.0) / 3.0) <= found.upper + 1e-12
    assert found.upper - found.lower < 1e-6
    nobody = rounded.added_up_to(rate, "floor", 1.0, 0)
    assert (nobody.lower, nobody.upper) == (0.0, 0.0)


# --- the strata of a shared rate


def strata_drawn(labels, **changes):
    design = SharedRate(**{"size": 4, "at_least": 8, "strata": 2, **changes})
    drawn = design.draw(Population(8, stratum=np.array(labels)), seeded_key(3)).reveal_secret()
    return drawn.positions.tolist()


def test_both_zeros_are_one_stratum():
    plain = strata_drawn([0.0] * 4 + [1.0] * 4)
    assert strata_drawn([-0.0, 0.0, -0.0, 0.0] + [1.0] * 4) == plain
    assert len(plain) == 4
    assert sum(at < 4 for at in plain) == 2  # half of each stratum


def test_labels_are_told_apart_by_their_texts():
    assert _texts(np.array([-0.0, 1.5, 0.0, np.nan])).tolist() == ["0.0", "1.5", "0.0", ""]
    assert _texts(np.array([2, 1, 2])).tolist() == ["2", "1", "2"]
    assert _texts(np.array(["b", None, 3], dtype=object)).tolist() == ["b", "", "3"]


def test_a_label_that_is_none_is_a_stratum_and_both_zeros_are_still_one():
    some = [-0.0, 0.0, -0.0, 0.0] + [np.nan] * 4
    assert strata_drawn(some) == strata_drawn([0.0] * 4 + [np.nan] * 4)
    with pytest.raises(InvalidInput, match="more were given"):
        strata_drawn([0.0, 0.0, 1.0, 1.0] + [np.nan] * 4)


def test_what_a_shared_rate_declares_is_checked():
    with pytest.raises(InvalidInput, match="at least 9 records"):
        strata_drawn([0] * 8, at_least=9)
    with pytest.raises(InvalidInput, match="declares 1 strata"):
        strata_drawn([0] * 4 + [1] * 4, strata=1)
    assert len(strata_drawn([0] * 8, strata=1)) == 4
    assert SharedRate(size=4, at_least=8, strata=2).rate == HALF
    with pytest.raises(InvalidInput, match="at_least"):
        SharedRate(size=9, at_least=8, strata=2)
