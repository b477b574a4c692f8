"""Grids: the curve is evaluated only where its chords need it, and no number of points is more than fits."""

import numpy as np
import pytest

from privamp import (
    Gaussian,
    InvalidInput,
    Laplace,
    MultiStage,
    Neighbors,
    Poisson,
    PureDP,
    WithoutReplacement,
    WithReplacement,
    amplify,
    compose,
)
from privamp.accounting import discretize

AR, RO = Neighbors.ADD_REMOVE, Neighbors.REPLACE_ONE
CASES = {
    "poisson": (Gaussian(1.0), Poisson(0.05), AR),
    "laplace": (Laplace(1.0), Poisson(0.2), AR),
    "pure": (PureDP(0.7), Poisson(0.3), AR),
    "wr": (Gaussian(2.0, neighbors=RO), WithReplacement(5, 100), RO),
    "wor, wr": (Gaussian(4.0, 2.0, neighbors=RO), MultiStage([("wor", 12), ("wr", 20)], 1000), RO),
}


def everywhere(curve, count, interval, near, stride):
    at = np.arange(count + 1)
    return at, np.minimum.accumulate(np.exp(curve(at * interval)))


@pytest.mark.parametrize("case", CASES)
def test_few_points_give_what_all_points_give_from_the_safe_side(case, monkeypatch) -> None:
    one = amplify(*CASES[case])
    at = np.array([0.1, 0.5, 1.0, 3.0])
    few = compose(one, 30, interval=1e-3)
    upper, lower = np.asarray(few.delta(at)), np.asarray(few.lower.delta(at))
    monkeypatch.setattr(discretize, "_sampled", everywhere)
    full = compose(one, 30, interval=1e-3)
    dense, dense_lower = np.asarray(full.delta(at)), np.asarray(full.lower.delta(at))
    assert np.all(upper >= dense * (1 - 1e-8))
    assert np.all(upper <= dense * (1 + 1e-3) + 1e-18)
    assert np.all(lower <= dense * (1 + 1e-9))
    assert np.all(np.abs(lower - dense_lower) <= 1e-3 * dense_lower + 1e-15)


def test_points_below_the_curve_are_caught(monkeypatch) -> None:
    # negative control for the test above
    one = amplify(*CASES["wr"])
    few = compose(one, 30, interval=1e-3).delta(0.1)

    def too_low(curve, count, interval, near, stride):
        at, delta = everywhere(curve, count, interval, near, stride)
        return at, delta * 0.9999

    monkeypatch.setattr(discretize, "_sampled", too_low)
    assert not compose(one, 30, interval=1e-3).delta(0.1) >= few * (1 - 1e-8)


def test_the_curve_is_asked_at_a_fraction_of_the_grid() -> None:
    profile = amplify(Gaussian(4.0, 2.0, neighbors=RO), MultiStage([("wor", 118), ("wr", 200)], 10_000)).upper
    at, _ = discretize._sampled(profile.forward, 500_000, 2.5e-4, 0, 1)
    assert (at[0], at[-1]) == (0, 500_000)
    assert at.size < 20_000


def test_a_grid_that_does_not_fit_is_refused_with_one_that_does() -> None:
    one = amplify(Gaussian(2.0, neighbors=RO), WithoutReplacement(5, 100))
    with pytest.raises(
        InvalidInput, match=r"interval=1e-10 needs .* grid points .* an interval of \S+ works"
    ) as refused:
        compose(one, 10, interval=1e-10)
    works = float(str(refused.value).split(" an interval of ")[1].split()[0])
    assert 0 < compose(one, 10, interval=max(works, 1e-5)).delta(0.5) < 1


def test_more_steps_take_a_coarser_grid_and_no_more_points() -> None:
    one = amplify(Gaussian(4.0, 2.0, neighbors=RO), WithoutReplacement(200, 10_000))
    many = compose(one, 10**7)
    assert many.lower.epsilon(1e-6) <= many.epsilon(1e-6) < 1500
    far_too_many = compose(one, 10**15)
    with pytest.raises(InvalidInput, match=r"1,000,000,000,000,000 steps need .* about [\d,]+ steps work"):
        far_too_many.delta(1.0)


def test_heavy_tails_are_no_reason_for_endless_windows() -> None:
    # one appearance in many copies gives losses up to 133; a tilt towards them once asked for 60 million points
    one = amplify(Gaussian(4.0, 2.0, neighbors=RO), MultiStage([("wor", 118), ("wr", 200)], 10_000))
    many = compose(one, 1000)
    assert 12.2 < many.lower.epsilon(1e-6) <= many.epsilon(1e-6) < 12.46
