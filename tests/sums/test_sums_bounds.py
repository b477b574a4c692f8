"""Bounds of a sum: a radius, a pair, or one pair per column, all of them public and none of them free of charge."""

import math
from fractions import Fraction

import numpy as np
import pytest

from privamp import InvalidInput, Poisson, PrivateMean, PrivateSum, WithoutReplacement
from privamp.core.influence import norms
from privamp.core.tape import Tape, taping
from privamp.testing import seeded_stream

AGES = np.array([20.0, 35.0, 150.0, -4.0, math.nan])


def before_noise(asked, x, key):
    """The total that the noise is added to, in the units of the data."""
    with taping(Tape(seeded_stream(1))) as tape:
        asked.release(x, key=key)
    return np.asarray(tape.taken[0].value) * getattr(tape.taken[0].mechanism.noise, "grid", 1.0)


def test_a_pair_cuts_every_number_by_itself(key):
    found = before_noise(PrivateSum(bounds=(18, 100), epsilon=1.0), AGES, key(1))
    assert found == pytest.approx([20 + 35 + 100 + 18 + 18], abs=1e-6)  # what is missing counts as 0, cut to 18


@pytest.mark.parametrize(("noise", "delta", "p"), [("laplace", 0.0, 1.0), ("gaussian", 1e-6, 2.0), ("norm", 0.0, 3.0)])
def test_one_pair_per_column_is_the_ball_around_the_box(noise, delta, p, key):
    box = [(0, 1), (-5, 2), (3, 4)]
    asked = PrivateSum(bounds=box, epsilon=1.0, noise=noise, delta=delta, p=p)
    corner = np.array([[1.0, -5.0, 4.0]])
    radius = asked.longest((0.0,) * 3)
    assert radius == pytest.approx(float(norms(corner, p)[0]))
    assert radius >= float(norms(corner, p)[0])
    assert np.array_equal(asked.cut(corner, (0.0,) * 3), corner)  # the farthest corner is left as it is
    round_one = PrivateSum(bounds=radius, epsilon=1.0, noise=noise, delta=delta, p=p)
    x = np.array([[9.0, -9.0, 9.0], [0.5, 0.0, 0.0]])
    assert before_noise(asked, x, key(2)) == pytest.approx([1.5, -5.0, 7.0], abs=1e-5)
    one, other = (job.release(x, key(3 + at)) for at, job in enumerate((asked, round_one)))
    assert one.noise_error == other.noise_error  # the box costs what its ball costs
    assert one.guarantee.epsilon(delta) == other.guarantee.epsilon(delta)


@pytest.mark.parametrize(("noise", "delta"), [("laplace", 0.0), ("gaussian", 1e-6)])
@pytest.mark.parametrize("bound", [1.0, 0.1, 7.3])
def test_no_row_is_longer_than_the_sensitivity_in_exact_arithmetic(noise, delta, bound):
    """The record at the bound and its entry that counts, in fractions; rounding up costs no more than 1e-11."""
    rows = PrivateMean(bounds=bound, epsilon=1.0, noise=noise, delta=delta).task(1).rows
    entries = [Fraction(rows.radius), Fraction(rows.count)]
    exact = sum(entries) if noise == "laplace" else sum(entry**2 for entry in entries)
    power = 1 if noise == "laplace" else 2
    sensitivity = Fraction(rows.mechanism(1.0).noise.sensitivity) ** power
    assert exact <= sensitivity <= exact * (1 + Fraction(1, 10**11))
    assert rows.count > 0.0


@pytest.mark.parametrize("sampler", [None, Poisson(0.5), WithoutReplacement(20, 40)])
def test_means_are_measured_from_the_middle_of_the_bounds(sampler, key):
    far = PrivateMean(bounds=(1000, 1010), epsilon=1.0, sampler=sampler)
    near = PrivateMean(bounds=(-5, 5), epsilon=1.0, sampler=sampler)
    assert far.task(1).noise_error == pytest.approx(near.task(1).noise_error)
    assert far.task(1).rows.radius == pytest.approx(5.0)


def test_what_noise_is_added_to_is_measured_from_the_middle(key):
    x = np.linspace(999, 1012, 40)
    found = before_noise(PrivateMean(bounds=(1000, 1010), epsilon=1.0), x, key(20))
    assert found == pytest.approx([np.sum(np.clip(x, 1000, 1010) - 1005), 40 * 0.25 * 5], abs=1e-6)


def test_sums_are_too_where_the_number_of_records_is_public(key):
    x = np.linspace(1000, 1010, 40)
    sampler = WithoutReplacement(20, 40)
    wide = PrivateSum(bounds=(1000, 1010), epsilon=50.0, sampler=sampler)
    assert wide.task(1).rows.radius == pytest.approx(5.0)
    found = [wide.release(x, key(100 + turn)) for turn in range(60)]
    spread = np.std([one.value for one in found])
    assert abs(np.mean([one.value for one in found]) - x.sum()) < 4 * spread / math.sqrt(60)
    assert spread < math.hypot(found[0].noise_error, found[0].sampling_error)
    secret = PrivateSum(bounds=(1000, 1010), epsilon=1.0)  # how many there are
    assert secret.task(1).rows.radius == pytest.approx(1010.0)


@pytest.mark.parametrize("sampler", [None, Poisson(0.5), WithoutReplacement(200, 400)])
def test_the_stated_errors_of_a_centred_mean_are_its_errors(sampler, key):
    x = np.random.default_rng(5).uniform(50, 60, 400)
    asked = PrivateMean(bounds=(50, 60), epsilon=2.0, sampler=sampler)
    found = [asked.release(x, key(300 + turn)) for turn in range(80)]
    error = math.sqrt(np.mean([(one.value - x.mean()) ** 2 for one in found]))
    stated = np.mean([math.hypot(one.noise_error, one.sampling_error or 0.0) for one in found])
    assert 0.35 * stated < error < 1.2 * stated  # the sampling error is a bound


def test_a_number_is_the_radius_and_its_old_name_warns(key):
    with pytest.warns(DeprecationWarning, match="'radius' is now 'bounds'"):
        old = PrivateMean(radius=2.0, epsilon=1.0)
    assert old == PrivateMean(bounds=2.0, epsilon=1.0)
    flat = PrivateSum(bounds=(-2, 2), epsilon=1.0).release([0.5] * 9, key(7))
    assert flat.noise_error == pytest.approx(PrivateSum(bounds=2.0, epsilon=1.0).release([0.5], key(8)).noise_error)


@pytest.mark.parametrize(
    ("bounds", "match"),
    [
        (None, "bounds must be a number"),
        (-1.0, "above 0"),
        ((3, 1), "lowest below"),
        ((0, math.inf), "finite"),
        ("wide", "two numbers"),
        ([(0, 1), (2, 1)], "lowest below"),
    ],
)
def test_bounds_that_bound_nothing_are_refused(bounds, match):
    with pytest.raises(InvalidInput, match=match):
        PrivateSum(bounds=bounds, epsilon=1.0)


def test_as_many_pairs_as_columns():
    with pytest.raises(InvalidInput, match="each of the 2 columns"):
        PrivateSum(bounds=[(0, 1)] * 3, epsilon=1.0).release([[1.0, 2.0]])
