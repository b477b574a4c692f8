import math

import pytest

from privamp import (
    ExactLaplace,
    Gaussian,
    Infeasible,
    InvalidInput,
    Laplace,
    Neighbors,
    Poisson,
    PureDP,
    WithoutReplacement,
    WithReplacement,
    amplify,
    calibrate,
    calibration,
    compose,
)
from privamp.calibration import _narrowed

AR, RO = Neighbors.ADD_REMOVE, Neighbors.REPLACE_ONE


def test_the_least_noise_is_private_and_a_little_less_is_not():
    noise = calibrate(Gaussian, Poisson(0.01), epsilon=1.0, delta=1e-6)
    assert amplify(noise, Poisson(0.01)).delta(1.0) <= 1e-6
    assert amplify(Gaussian(noise.sigma * (1 - 1e-7)), Poisson(0.01)).delta(1.0) > 1e-6


def test_noise_over_many_steps():
    noise = calibrate(Gaussian, Poisson(0.01), epsilon=1.8284, delta=1e-5, steps=1000)
    assert noise.sigma == pytest.approx(1.0, abs=1e-3)
    assert compose(amplify(noise, Poisson(0.01)), 1000).epsilon(1e-5) <= 1.8284


def test_pure_noise_and_black_box_budgets_in_closed_form():
    q, target = 0.1, 0.5
    base = math.log1p(math.expm1(target) / q)
    assert calibrate(Laplace, Poisson(q), epsilon=target).scale == pytest.approx(1 / base, rel=1e-8)
    box = calibrate(PureDP, Poisson(q), epsilon=target)
    assert box.epsilon == pytest.approx(base, rel=1e-8)
    assert amplify(box, Poisson(q)).epsilon() <= target


def test_the_largest_rate_and_size_are_private_and_one_more_is_not():
    rate = calibrate(Gaussian(1.0), Poisson, epsilon=1.0, delta=1e-6)
    assert (
        amplify(Gaussian(1.0), rate).delta(1.0) <= 1e-6 < amplify(Gaussian(1.0), Poisson(rate.rate * 1.0001)).delta(1.0)
    )
    noise = Gaussian(2.0, neighbors=RO)
    size = calibrate(noise, lambda m: WithoutReplacement(m, 1000), epsilon=1.0, delta=1e-6, within=(1, 1000)).size
    assert amplify(noise, WithoutReplacement(size, 1000)).delta(1.0) <= 1e-6
    assert amplify(noise, WithoutReplacement(size + 1, 1000)).delta(1.0) > 1e-6


def test_a_person_with_many_records_needs_more_noise():
    one = calibrate(Gaussian, Poisson(0.01), epsilon=1.0, delta=1e-6)
    five = calibrate(Gaussian, Poisson(0.01), epsilon=1.0, delta=1e-6, neighbors=AR.for_person(5))
    assert five.sigma > one.sigma


def test_what_cannot_be_reached_is_said():
    with pytest.raises(Infeasible, match="no value"):
        calibrate(Gaussian, Poisson(0.5), epsilon=1.0)  # Gaussian noise is never pure
    with pytest.raises(Infeasible):
        calibrate(Gaussian(1.0), lambda m: WithoutReplacement(m, 10), epsilon=0.01, delta=1e-9, within=(1, 10))


@pytest.mark.parametrize(
    "arguments",
    [
        {"epsilon": 0},
        {"epsilon": math.nan},
        {"epsilon": -1},
        {"epsilon": 1, "delta": 1},
        {"epsilon": 1, "delta": -0.1},
        {"epsilon": 1, "steps": 0},
        {"epsilon": 1, "within": (2.0, 1.0)},
    ],
)
def test_bad_targets_are_refused(arguments):
    with pytest.raises(InvalidInput):
        calibrate(Laplace, Poisson(0.1), **arguments)


def test_exactly_one_unknown():
    with pytest.raises(InvalidInput, match="exactly one unknown"):
        calibrate(Laplace(1.0), Poisson(0.1), epsilon=1.0)


def test_a_mechanism_that_refuses_the_smallest_noise_is_calibrated():
    noise = calibrate(lambda scale: ExactLaplace(scale), Poisson(0.1), epsilon=0.5)
    assert 0.5 * (1 - 1e-6) < amplify(noise, Poisson(0.1)).epsilon() <= 0.5


def test_a_rate_that_always_passes_is_returned_whole():
    assert calibrate(PureDP(0.5), Poisson, epsilon=1.0) == Poisson(1.0)


@pytest.mark.parametrize(("epsilon", "delta"), [(1e-7, 1e-12), (1.0, 1e-6), (400.0, 1e-9)])
def test_few_values_are_tried_and_none_twice(epsilon, delta):
    """Each takes a second where many steps are composed, so answers far from 1 are not sought factor by factor."""
    tried = []

    def noise(sigma):
        tried.append(sigma)
        return Gaussian(sigma)

    found = calibrate(noise, Poisson(0.5), epsilon=epsilon, delta=delta)
    assert amplify(found, Poisson(0.5)).delta(epsilon) <= delta
    assert amplify(Gaussian(found.sigma * (1 - 1e-8)), Poisson(0.5)).delta(epsilon) > delta
    assert len(tried) - 1 == len(set(tried)) <= 40  # the answer is made once more


def test_values_that_a_mechanism_refuses_do_not_end_the_search():
    """Looking further and further ahead passes the smallest value that is allowed; such a value is not reached."""

    def noise(sigma):
        if sigma < 0.015:
            raise InvalidInput(f"sigma must be at least 0.015, got {sigma!r} instead")
        return Gaussian(sigma)

    assert calibrate(noise, Poisson(0.5), epsilon=1e3, delta=1e-6).sigma == pytest.approx(
        calibrate(Gaussian, Poisson(0.5), epsilon=1e3, delta=1e-6).sigma, rel=1e-9
    )


def test_gaussian_noise_without_delta_is_refused_in_one_sentence():
    with pytest.raises(Infeasible, match="no value from"):
        calibrate(Gaussian, Poisson(0.01), epsilon=1.0, delta=0.0)


@pytest.mark.parametrize("answer", [1e-290, 1e290])
def test_ends_near_the_largest_doubles_are_looked_at(answer):
    low, high = _narrowed(lambda x: -1.0 if x >= answer else 1.0, 1e-300, 1e308)
    assert low < answer <= high <= 4.0 * low * (1.0 + 1e-15)
    assert _narrowed(lambda x: 1.0, 1e-3, 1e308)[1] == 1e308


@pytest.mark.parametrize(
    ("design", "steps", "epsilon"),
    [(Poisson(0.01), 1000, 1.0), (WithoutReplacement(100, 1000), 100, 0.5), (WithReplacement(40, 100), 10, 2.0)],
)
def test_few_compositions_are_certified_and_the_answer_is_one_that_passes(design, steps, epsilon, monkeypatch):
    asked = []
    exact = calibration._Target.excess
    monkeypatch.setattr(
        calibration._Target, "excess", lambda self, guarantee: asked.append(exact(self, guarantee)) or asked[-1]
    )
    noise = calibrate(
        lambda sigma: Gaussian(sigma, neighbors=design.natural), design, epsilon=epsilon, delta=1e-6, steps=steps
    )
    assert len(asked) <= 8
    assert compose(amplify(noise, design), steps).delta(epsilon) <= 1e-6
    less = Gaussian(noise.sigma * (1 - 2e-7), neighbors=design.natural)
    assert compose(amplify(less, design), steps).delta(epsilon) > 1e-6


@pytest.mark.parametrize(
    "wrong", [lambda x: -7.0, lambda x: math.inf, lambda x: x - 3.0, lambda x: 1e-3 * math.log(30.0 / x)]
)
def test_a_wrong_guess_does_not_move_the_answer(wrong, monkeypatch):
    right = calibrate(Gaussian, Poisson(0.1), epsilon=1.0, delta=1e-6, steps=10)
    monkeypatch.setattr(
        calibration._Target, "rough", lambda self, guarantee: wrong(guarantee.parts[0].claim.mechanism.sigma)
    )
    found = calibrate(Gaussian, Poisson(0.1), epsilon=1.0, delta=1e-6, steps=10)
    assert found.sigma == pytest.approx(right.sigma, rel=3e-7)
    assert compose(amplify(found, Poisson(0.1)), 10).delta(1.0) <= 1e-6


def test_noise_may_be_sought_from_zero_on():
    found = calibrate(Gaussian, Poisson(0.1), epsilon=1.0, delta=1e-6, within=(0, 100.0))
    assert amplify(found, Poisson(0.1)).delta(1.0) <= 1e-6
    assert found.sigma == pytest.approx(1.4326, abs=1e-4)
