"""Searches look where they say, and no more often: the points of each one, worked out by hand from its description."""

import math

import numpy as np
import pytest

from privamp.numerics.roots import (
    NumericalFailure,
    bisected,
    first_at_most,
    halved,
    largest_passing,
    least_passing,
    passing_beside,
    passing_near,
    rough_root,
)


class Watched:
    """A function that remembers where it was asked."""

    def __init__(self, function):
        self.function, self.asked = function, []

    def __call__(self, x):
        self.asked.append(x.tolist() if isinstance(x, np.ndarray) else x)
        return self.function(x)

    @property
    def logs(self):
        return [math.log(x) for x in self.asked]


def steps(root):
    """-1 from the root on, 1 before."""
    return Watched(lambda x: np.where(np.asarray(x) >= root, -1.0, 1.0))


# --- first_at_most


def test_a_bracket_grows_by_a_factor_of_four_and_is_cut_in_three_points_then_in_many():
    f = steps(10.0)
    assert first_at_most(f, 0.0, start=0.0) == 10.0
    assert f.asked[:4] == [[0.0], [1.0], [4.0], [16.0]]
    assert f.asked[4:7] == [[4.0, 10.0, 16.0], [4.0, 7.0, 10.0], [7.0, 8.5, 10.0]]
    assert f.asked[7] == [8.5, 9.25, 10.0]
    assert f.asked[8] == np.linspace(9.25, 10.0, 65).tolist()  # narrower than a tenth of its end
    assert len(f.asked) < 21
    shifted = steps(-7.5)
    assert first_at_most(shifted, 0.0, start=-10.0, width=11) == -7.5
    assert shifted.asked[:5] == [[-10.0], [-9.0], [-6.0], [-9.0, -7.5, -6.0], [-9.0, -8.25, -7.5]]
    assert shifted.asked[5] == np.linspace(-8.25, -7.5, 11).tolist()  # exactly a tenth


def test_with_chords_few_points_beside_the_root_are_asked_for():
    f = Watched(lambda x: -(np.asarray(x) ** 2))
    assert first_at_most(f, -2.0, chords=True) == pytest.approx(math.sqrt(2.0), rel=1e-15)
    assert sum(np.size(x) for x in f.asked) < 140  # 520 without
    endless = Watched(lambda x: np.where(np.asarray(x) < 3.0, 1.0, -np.inf))
    assert first_at_most(endless, 0.0, chords=True) == 3.0
    assert not any(np.size(x) == 5 for x in endless.asked)  # no chord to minus infinity
    step = steps(10.0)
    assert first_at_most(step, 0.0, chords=True) == 10.0
    assert step.asked[8] == pytest.approx([9.25, 9.5125, 9.625, 9.7375, 10.0])
    assert step.asked[9] == np.linspace(9.7375, 10.0, 65).tolist()  # a step has no chord worth the name
    assert len(step.asked) < 26
    assert first_at_most(steps(0.0), 0.0, start=-1.0, limit=5.0, chords=True) == 0.0


def test_the_limit_is_tried_and_not_passed():
    f = steps(49.5)
    assert first_at_most(f, 0.0, start=2.0, limit=50.0) == 49.5
    assert f.asked[:6] == [[2.0], [3.0], [6.0], [18.0], [50.0], [18.0, 34.0, 50.0]]
    assert first_at_most(steps(50.0), 0.0, start=2.0, limit=50.0) == 50.0
    beyond = steps(50.1)
    with pytest.raises(NumericalFailure, match=r"no root below 50: the function stays above 0"):
        first_at_most(beyond, 0.0, start=2.0, limit=50.0)
    assert beyond.asked[-1] == [50.0]
    assert len(beyond.asked) == 5


@pytest.mark.parametrize(("late", "ulps"), [(1, 1), (2, 3), (3, 3), (4, 7), (40, 63), (2**20, 2**21 - 1)])
@pytest.mark.parametrize("root", [1.0, -1.5])
def test_last_bits_that_only_an_array_passes_are_stepped_over(late, ulps, root):
    """Alone the function passes some ulps later than in an array: 1, 3, 7, 15, ... ulps are tried."""
    one = abs(root) * 2.0**-52

    def f(x):
        return np.where(x >= root + (late * one if x.size == 1 else 0.0), -1.0, 1.0)

    assert first_at_most(f, 0.0, start=-4.0) == pytest.approx(root + ulps * one, abs=1.5 * one if root < 0 else 0.0)


def test_what_never_passes_alone_is_an_error():
    with pytest.raises(NumericalFailure, match="does not satisfy its own condition"):
        first_at_most(lambda x: np.where((x >= 1.3) & ((x.size > 1) | (x >= 4.0)), -1.0, 1.0), 0.0)


def test_a_root_at_zero_and_next_to_it():
    assert first_at_most(steps(0.0), 0.0, start=-1.0, limit=5.0) == 0.0
    assert first_at_most(steps(5e-324), 0.0, start=0.0) <= 1e-15


def test_a_ceiling_tells_where_to_begin():
    """f = 1 - x below the ceiling 3 - x: its root is 1; the ceiling's is 3, .05 more 2.95, 16 times that 2.2, ..."""
    f, ceiling = Watched(lambda x: 1.0 - x), lambda x: 3.0 - x
    assert first_at_most(f, 0.0, ceiling=ceiling) == pytest.approx(1.0, abs=1e-15)
    begun = [points[0] for points in f.asked if len(points) == 1]
    assert begun[:3] == pytest.approx([3.0, 2.95, 2.2], abs=1e-12)
    # 0.8 * 16 above the ceiling's start: there is no place, so f is tried at the start
    assert begun[3] == 0.0
    assert f.asked[4] == pytest.approx([0.0, 1.1, 2.2], abs=1e-12)
    close = Watched(lambda x: 2.98 - x)
    assert first_at_most(close, 0.0, ceiling=ceiling) == pytest.approx(2.98, rel=1e-15)
    assert [p[0] for p in close.asked[:2]] == pytest.approx([3.0, 2.95], abs=1e-12)
    assert close.asked[2] == pytest.approx(np.linspace(2.95, 3.0, 65), abs=1e-12)


def test_a_ceiling_that_is_met_at_the_start_or_nowhere_or_is_none():
    f = Watched(lambda x: 1.0 - x)
    assert first_at_most(f, 0.0, start=2.0, ceiling=lambda x: 1.5 - x) == 2.0
    assert f.asked == [[2.0]]
    low = Watched(lambda x: -1.0 - x)  # met at the start, far below its ceiling
    assert first_at_most(low, 0.0, ceiling=lambda x: 0.01 - x) == 0.0
    assert [p[0] for p in low.asked] == pytest.approx([0.01, 0.0])
    f.asked.clear()  # a ceiling that stays above the target says nothing
    assert first_at_most(f, 0.0, limit=2.0, ceiling=lambda x: 3.0 - x) == 1.0
    assert f.asked[:2] == [[0.0], [1.0]]
    f.asked.clear()  # this one is below f: where it passes, f does not
    assert first_at_most(f, 0.0, ceiling=lambda x: 0.5 - x) == 1.0
    assert [p[0] for p in f.asked[:3]] == pytest.approx([0.5, 0.0, 1.0])
    exact = Watched(lambda x: 1.0 - x)
    assert first_at_most(exact, 0.0, limit=3.0, ceiling=lambda x: 3.0 - x) == pytest.approx(1.0)
    assert exact.asked[0] == pytest.approx([3.0])  # met exactly at the limit


# --- least_passing


def test_false_position_in_the_logarithm_meets_a_chord_at_once():
    """log(root/x) is a line in log x: the ends, the root, then a step of .4 widths to the side not yet seen."""
    excess = Watched(lambda x: math.log(2.0 / x))
    found = least_passing(excess, 0.5, 32.0, relative=1e-3)
    logs = excess.logs
    assert logs[:2] == pytest.approx([math.log(32.0), math.log(0.5)])
    assert logs[2] == pytest.approx(math.log(2.0), abs=1e-12)
    assert abs(logs[3] - math.log(2.0)) == pytest.approx(0.4e-3, rel=1e-6) or len(logs) == 4
    assert 2.0 * (1 - 1e-15) <= found <= 2.0 * math.exp(1e-3)


@pytest.mark.parametrize("power", [1.0, 2.0, 5.0])
def test_every_third_round_halves(power):
    """x^-power - 1 in [e^-8, 1.5]: replayed with the two rules of the description."""
    excess = Watched(lambda x: x**-power - 1.0)
    found = least_passing(excess, math.exp(-8.0), 1.5, relative=1e-6)
    a, b = -8.0, math.log(1.5)
    f = lambda t: math.exp(-power * t) - 1.0  # noqa: E731
    last = math.nan
    for turn, x in enumerate(excess.logs[2:-1]):
        chord = a + (b - a) * f(a) / (f(a) - f(b))
        middle = 0.5 * (a + b)
        guess = middle if turn % 3 == 2 else chord
        if abs(guess - last) < 1e-7:
            guess += 4e-7 if guess - a < b - guess else -4e-7
        last = guess
        guess = guess if a < guess < b else middle
        assert x == pytest.approx(guess, abs=1e-9)
        a, b = (a, x) if f(x) <= 0 else (x, b)
    assert b - a <= 1e-6
    assert found == pytest.approx(math.exp(b), rel=1e-15)


@pytest.mark.parametrize("value", [math.inf, 1e300])
def test_where_a_chord_says_nothing_the_middle_is_tried(value):
    excess = Watched(lambda x: -1.0 if x >= 3.0 else value)
    found = least_passing(excess, 1.0, 9.0, relative=1e-9)
    assert 3.0 <= found <= 3.0 * (1 + 2e-9)
    if math.isinf(value):
        assert excess.logs[2] == pytest.approx(math.log(3.0))
        assert len(excess.asked) <= 2 + 33 + 1  # 2.2 / 2^31 is below 1e-9
    below = Watched(lambda x: -math.inf if x >= 3.0 else 1.0)
    assert 3.0 <= least_passing(below, 1.0, 9.0, relative=1e-9) <= 3.0 * (1 + 2e-9)
    assert below.logs[2] == pytest.approx(math.log(3.0))


def test_rounds_that_do_not_suffice_leave_a_point_that_passes():
    found = least_passing(lambda x: -1.0 if x >= 3.0 else math.inf, 1.0, 9.0, rounds=3)
    assert found == pytest.approx(3.0 if found < 3.1 else 9.0 ** (9 / 16), rel=1e-9)
    assert found >= 3.0
    assert least_passing(lambda x: 1.0 if x < 9.0 else -1.0, 1.0, 9.0) == 9.0  # not rounded by exp and log


def test_a_root_that_fails_when_asked_again_is_an_error():
    seen = set()

    def fickle(x):
        again = x in seen
        seen.add(x)
        return 1.0 if again and x < 9.0 else (1.0 if x < 2.0 else -1.0)

    with pytest.raises(NumericalFailure, match="does not satisfy its own condition"):
        least_passing(fickle, 1.0, 9.0)


# --- rough_root


def test_a_line_in_the_logarithm_is_seen_by_two_points():
    for root, begin in ((5.0, 0.0), (0.2, 0.0)):
        excess = Watched(lambda x, root=root: 3.0 * math.log(root / x))
        found, slope = rough_root(excess, low=1e-6, high=1e6)
        assert (found, slope) == (pytest.approx(root, rel=1e-12), pytest.approx(-3.0, rel=1e-12))
        away = math.copysign(1.4, math.log(root) - begin)
        assert excess.logs == pytest.approx([begin, away, math.log(root)], abs=1e-12)


def test_steps_are_three_at_most_and_begin_inside_of_the_bounds():
    excess = Watched(lambda x: 10.0 - math.log(x))
    found, slope = rough_root(excess, low=1e-6, high=1e9)
    assert excess.logs == pytest.approx([0.0, 1.4, 4.4, 7.4, 10.0], abs=1e-9)
    assert (found, slope) == (pytest.approx(math.exp(10.0)), pytest.approx(-1.0))
    down = Watched(lambda x: -10.0 - math.log(x))
    rough_root(down, low=1e-9, high=1e9)
    assert down.logs == pytest.approx([0.0, -1.4, -4.4, -7.4, -10.0], abs=1e-9)
    for low, high, first in ((2.0, 100.0, 2.0), (0.01, 0.5, 0.5)):
        begun = Watched(lambda x, low=low, high=high: math.log(math.sqrt(low * high) / x))
        rough_root(begun, low=low, high=high)
        assert begun.asked[0] == pytest.approx(first)


def test_infinite_values_move_by_the_first_step_until_a_bracket_is_halved():
    excess = Watched(lambda x: math.inf if x < math.exp(4.0) else -math.inf)
    rough_root(excess, low=1e-9, high=1e9)
    assert excess.logs[:4] == pytest.approx([0.0, 1.4, 2.8, 4.2], abs=1e-12)
    assert excess.logs[4] == pytest.approx(3.5)  # the middle of the bracket
    assert excess.logs[5] == pytest.approx(3.85)
    beyond = Watched(lambda x: math.inf)
    assert rough_root(beyond, low=1e-3, high=10.0) is None
    assert beyond.logs == pytest.approx([0.0, 1.4, (1.4 + math.log(10.0)) / 2], abs=1e-12) or len(beyond.asked) <= 30


def test_a_guess_may_lie_at_the_ends_and_not_beyond():
    found, _ = rough_root(lambda x: math.log(1.01 * 8.0 / x), low=1e-3, high=8.0, within=0.02)
    assert found == pytest.approx(8.0)
    found, _ = rough_root(lambda x: math.log(0.99 * 0.125 / x), low=0.125, high=8.0, within=0.02)
    assert found == pytest.approx(0.125)
    wide = Watched(lambda x: math.log(5.0 / x))
    rough_root(wide, low=1e-6, high=1e6, within=0.5)
    assert wide.logs == pytest.approx([0.0, 1.4], abs=1e-12)  # .21 beside the root is within .5


# --- passing_beside


def test_a_step_goes_a_tenth_and_a_width_beyond_the_root():
    """A line of slope -2 and a guess that is .3 too high, then .3 too low; the slope is known."""
    for off in (0.3, -0.3):
        excess = Watched(lambda x: -2.0 * math.log(x / 4.0))
        guess = 4.0 * math.exp(off)
        found = passing_beside(excess, guess, -2.0, low=1e-3, high=1e3, relative=1e-6)
        beyond = -math.copysign(0.03 + 1e-6, off)
        logs = [x - math.log(4.0) for x in excess.logs]
        assert logs[:2] == pytest.approx([off, beyond], abs=1e-9)
        assert logs[2] == pytest.approx(0.45e-6, abs=1e-9)  # beside the root, on the passing side
        assert logs[3] == pytest.approx(-0.45e-6, abs=1e-9)
        assert len(logs) == 4
        assert found == pytest.approx(4.0 * math.exp(0.45e-6), rel=1e-9)


def test_a_wrong_slope_is_replaced_by_the_one_seen():
    excess = Watched(lambda x: -2.0 * math.log(x / 4.0))
    assert passing_beside(excess, 4.0 * math.exp(0.5), -8.0, low=1e-3, high=1e3, relative=1e-6) is not None
    logs = [x - math.log(4.0) for x in excess.logs]
    first = 0.5 - 1.1 * 1.0 / 8.0 - 1e-6
    assert logs[:3] == pytest.approx([0.5, first, first - 1.1 * first - 1e-6], abs=1e-9)


def test_a_guess_that_is_the_root_is_left_to_the_side_that_fails():
    excess = Watched(lambda x: -2.0 * math.log(x / 4.0) if abs(math.log(x / 4.0)) > 1e-12 else 0.0)
    found = passing_beside(excess, 4.0, -2.0, low=1e-3, high=1e3, relative=1e-6)
    assert excess.logs[1] - math.log(4.0) == pytest.approx(-1e-6, abs=1e-9)
    assert 4.0 * (1 - 1e-12) <= found <= 4.0 * (1 + 1.1e-6)


def test_steps_end_at_the_bounds():
    up, down = (Watched(lambda x, root=root: -0.1 * math.log(x / root)) for root in (9.0, 0.1))
    assert passing_beside(up, 2.0, -0.1, low=1.0, high=8.0, relative=1e-6) is None
    assert up.asked == pytest.approx([2.0, 8.0, 8.0])  # a second step would stay where it is
    assert passing_beside(down, 2.0, -0.1, low=1.0, high=8.0, relative=1e-6) is None
    assert down.asked == pytest.approx([2.0, 1.0, 1.0])
    for slope in (0.0, 1.0, math.nan):
        asked = Watched(lambda x: 1.0)
        assert passing_beside(asked, 2.0, slope, low=1.0, high=8.0, relative=1e-6) is None
        assert len(asked.asked) == 1
    for wild in (math.inf, -math.inf, math.nan):
        asked = Watched(lambda x, wild=wild: wild if x > 2.5 else 1.0)
        assert passing_beside(asked, 2.0, -1.0, low=1.0, high=8.0, relative=1e-6) is None
        assert len(asked.asked) == 2


def test_eight_steps_are_made_to_bracket_a_root():
    asked = Watched(lambda x: 1.0 / x)  # falls and never crosses zero
    assert passing_beside(asked, 1.0, -1.0, low=1e-9, high=1e9, relative=1e-6) is None
    assert len(asked.asked) == 9


def test_closing_halves_now_and_then():
    """One end of a chord that never moves: every sixth round is the middle, so a step function is closed too."""
    asked = Watched(lambda x: -1e-3 if x >= 4.0 else 1.0)
    found = passing_beside(asked, 4.1, -1.0, low=1e-3, high=1e3, relative=1e-3)
    assert found is None or 4.0 <= found <= 4.0 * math.exp(1.1e-3)
    stuck = Watched(lambda x: -1e-9 if x >= 4.0 else 1.0)
    assert passing_beside(stuck, 4.1, -1e-9, low=3.0, high=5.0, relative=1e-12) is None
    assert len(stuck.asked) == 2 + 40


# --- halving


def test_halving_takes_the_middle_of_either_scale():
    asked = Watched(lambda x: x > 3.0)
    assert halved(asked, 1.0, 16.0, rounds=3, geometric=True) == pytest.approx((2.0**1.5, 4.0))
    assert asked.asked == pytest.approx([4.0, 2.0, 2.0**1.5])
    many = Watched(lambda x: x > np.array([3.0, 9.0]))
    low, high = bisected(many, np.array([1.0, 1.0]), np.array([16.0, 16.0]), rounds=2, geometric=True)
    assert (low.tolist(), high.tolist()) == ([2.0, 8.0], [4.0, 16.0])
    low, high = bisected(many, np.array([0.0, 0.0]), np.array([16.0, 16.0]), rounds=2)
    assert (low.tolist(), high.tolist()) == ([0.0, 8.0], [4.0, 12.0])


def test_halving_ends_when_nothing_moves_and_not_when_one_bracket_is_done():
    asked = Watched(lambda x: x > np.array([1.0, 3.0]))
    low, high = bisected(asked, np.array([1.0, 2.0]), np.array([np.nextafter(1.0, 2.0), 4.0]), rounds=500)
    assert low.tolist() == [1.0, 3.0]
    assert high.tolist() == [np.nextafter(1.0, 2.0), np.nextafter(3.0, 4.0)]
    assert 50 <= len(asked.asked) <= 55
    one = Watched(lambda x: x > 3.0)
    assert halved(one, 2.0, 4.0, rounds=500) == (3.0, np.nextafter(3.0, 4.0))
    assert 50 <= len(one.asked) <= 55


def test_a_bracket_that_is_narrow_after_the_last_round_is_no_error():
    narrow = lambda low, high: np.all(high - low <= 1.0)  # noqa: E731
    low, high = bisected(lambda x: x > 3.3, np.zeros(1), np.full(1, 8.0), rounds=3, until=narrow)
    assert (low.tolist(), high.tolist()) == ([3.0], [4.0])
    asked = Watched(lambda x: x > 3.3)
    low, high = bisected(asked, np.zeros(1), np.full(1, 8.0), until=narrow)
    assert (low.tolist(), high.tolist()) == ([3.0], [4.0])
    assert len(asked.asked) == 3


# --- passing_near


def test_steps_double_until_the_root_is_bracketed():
    rising = Watched(lambda x: x - 5.0)
    found = passing_near(rising, 0.0, close=0.1, lowest=-40.0, highest=40.0)
    assert rising.asked[:6] == [0.0, 0.25, 0.75, 1.75, 3.75, 7.75]
    assert rising.asked[6] == pytest.approx(4.95)  # halfway into the passing values that are close enough
    assert (found, len(rising.asked)) == (pytest.approx(4.95), 7)
    falling = Watched(lambda x: x + 5.0)
    found = passing_near(falling, 0.0, close=0.1, lowest=-40.0, highest=40.0)
    assert falling.asked[:6] == [0.0, -0.25, -0.75, -1.75, -3.75, -7.75]
    assert falling.asked[6] == pytest.approx(-5.05)
    assert (found, len(falling.asked)) == (pytest.approx(-5.05), 7)


def test_a_start_that_is_close_is_taken_and_one_that_is_just_not_is_left():
    assert passing_near(lambda x: x, -0.0999, close=0.1, lowest=-4.0, highest=4.0) == -0.0999
    assert passing_near(lambda x: x, 0.0, close=0.1, lowest=-4.0, highest=4.0) == 0.0
    assert passing_near(lambda x: x, -0.1, close=0.1, lowest=-4.0, highest=4.0) == pytest.approx(-0.05)
    down = Watched(lambda x: x + 0.3)
    assert passing_near(down, 0.0, close=0.1, lowest=-4.0, highest=4.0) == pytest.approx(-0.35)
    on_the_way = Watched(lambda x: x - 0.8)
    assert passing_near(on_the_way, 0.0, close=0.1, lowest=-4.0, highest=4.0) == 0.75
    assert on_the_way.asked == [0.0, 0.25, 0.75]


def test_ends_that_are_never_passed():
    assert passing_near(lambda x: x + 4.0, 0.0, close=0.1, lowest=-3.75, highest=4.0) is None
    assert passing_near(lambda x: x + 3.7, 0.0, close=0.1, lowest=-3.75, highest=4.0) == pytest.approx(-3.75)
    asked = Watched(lambda x: -1.0)
    assert passing_near(asked, 0.0, close=0.1, lowest=-4.0, highest=3.75) == 3.75
    assert asked.asked == [0.0, 0.25, 0.75, 1.75, 3.75, 7.75]


def test_a_chord_near_an_end_of_its_bracket_is_replaced_by_the_middle():
    steep = Watched(lambda x: math.expm1(20.0 * (x - 1.0)))
    found = passing_near(steep, 0.75, close=1e-3, lowest=-4.0, highest=4.0)
    assert -1e-3 < math.expm1(20.0 * (found - 1.0)) <= 0.0
    assert steep.asked[:4] == pytest.approx([0.75, 1.0]) or steep.asked[1] == 1.0
    jump = Watched(lambda x: -1.0 if x < 1.1 else 1e9)
    found = passing_near(jump, 1.0, close=1e-3, lowest=-4.0, highest=4.0)
    assert jump.asked[:4] == pytest.approx([1.0, 1.25, 1.125, 1.0625])
    assert 1.1 - 1e-6 <= found < 1.1
    assert len(jump.asked) == 2 + 18  # a quarter, halved to a millionth
    end = Watched(lambda x: -1.0 if x < 1.1 else math.inf)
    found = passing_near(end, 1.0, close=1e-3, lowest=-4.0, highest=4.0)
    assert 1.1 - 0.01 <= found < 1.1
    assert len(end.asked) == 2 + 5  # a quarter, halved to a hundredth


def test_whole_numbers_are_halved_from_both_ends():
    asked = Watched(lambda x: x <= 37)
    assert largest_passing(asked, 3, 100) == 37
    assert asked.asked == [3, 100, 51, 27, 39, 33, 36, 37, 38]
    assert largest_passing(lambda x: x <= 9, 8, 9) == 9
    assert largest_passing(lambda x: x <= 8, 8, 9) == 8
