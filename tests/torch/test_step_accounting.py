"""Reference values of one step and of a run. Needs no torch. One step is DPIS Eq. 13."""

import math

import numpy as np
import pytest

from privamp import Gaussian, Poisson, amplify, compose
from privamp.accounting.renyi import renyi_of_profile
from privamp.torch.plan import Plan, calibrated
from privamp.torch.sampled_gaussian import renyi_step
from renyi_quadrature import renyi_step_by_quadrature

B, N, K, C, SIGMA = 1024, 60000, 18000, 1.0, 0.81
RATE, MULTIPLIER = B * C / K, SIGMA * N * C / K


def test_rate_and_multiplier_of_a_released_sum() -> None:
    assert round(RATE, 7) == 0.0568889
    assert round(MULTIPLIER, 6) == 2.7


@pytest.mark.parametrize(("order", "value"), [(2, "4.75720e-04"), (8, "2.00321e-03"), (32, "1.05695e-02")])
def test_whole_orders(order: int, value: str) -> None:
    assert f"{renyi_step(RATE, MULTIPLIER, order):.5e}" == value
    assert f"{renyi_step_by_quadrature(RATE, MULTIPLIER, order):.5e}" == value


def test_a_fractional_order_and_the_other_direction() -> None:
    assert f"{renyi_step_by_quadrature(RATE, MULTIPLIER, 1.5):.5e}" == "3.55336e-04"
    assert f"{renyi_step_by_quadrature(RATE, MULTIPLIER, 8.0, reverse=True):.5e}" == "1.77502e-03"


@pytest.mark.parametrize("rate", [0.001, 0.1, 0.5, 0.95, 1.0])
@pytest.mark.parametrize("multiplier", [0.4, 1.0, 5.0])
def test_the_closed_form_is_the_larger_direction(rate: float, multiplier: float) -> None:
    for order in (2, 3, 9):
        closed = renyi_step(rate, multiplier, order)
        if rate < 1:
            forward = renyi_step_by_quadrature(rate, multiplier, float(order))
            backward = renyi_step_by_quadrature(rate, multiplier, float(order), reverse=True)
            assert closed == pytest.approx(forward, rel=1e-8, abs=1e-12)
            assert backward <= closed * (1 + 1e-9) + 1e-13
        else:
            assert closed == pytest.approx(order / (2 * multiplier**2))


def test_the_integral_of_hockey_sticks_agrees() -> None:
    for order in (2, 8):
        bound = renyi_of_profile(amplify(Gaussian(MULTIPLIER), Poisson(RATE)).upper, float(order))
        assert bound == pytest.approx(renyi_step(RATE, MULTIPLIER, order), rel=1e-4)


def test_a_run_by_whole_orders_and_by_loss_distributions() -> None:
    steps, delta = 1171, 1e-5

    def converted(order: int) -> float:
        loss = steps * renyi_step(RATE, MULTIPLIER, order)
        return loss + math.log1p(-1 / order) - (math.log(delta) + math.log(order)) / (order - 1)

    assert round(min(map(converted, range(2, 257))), 6) == 3.474728
    plan = Plan(sampler="importance", steps=steps, noise_multiplier=MULTIPLIER, clip=C, population=N, rate=RATE)
    assert round(plan.guarantee().epsilon(delta), 5) == 3.18959


def test_calibration_by_loss_distributions() -> None:
    assert round(calibrated("importance", RATE, 1171, 1.0, 1e-5), 5) == 7.34238


@pytest.mark.slow
@pytest.mark.parametrize(("renyi", "pld"), [(0.5, 0.455), (1, 0.914), (2, 1.836), (4, 3.683)])
def test_loss_distributions_are_eight_percent_tighter(renyi: float, pld: float) -> None:
    steps, delta = 1171, 1e-5

    def loss(sigma: float) -> float:
        return min(
            steps * renyi_step(RATE, sigma, a) + math.log1p(-1 / a) - (math.log(delta) + math.log(a)) / (a - 1)
            for a in range(2, 257)
        )

    low, high = 0.5, 100.0
    for _ in range(40):
        middle = math.sqrt(low * high)
        low, high = (low, middle) if loss(middle) <= renyi else (middle, high)
    found = compose(amplify(Gaussian(high), Poisson(RATE)), steps).epsilon(delta)
    assert found == pytest.approx(pld, rel=0.02)


def test_the_plan_names_its_theorem_and_its_assumptions() -> None:
    plan = Plan(sampler="importance", steps=3, noise_multiplier=1.0, clip=2.0, population=100, rate=0.1)
    certified, plain = plan.guarantee(), compose(amplify(Gaussian(1.0), Poisson(0.1)), 3)
    assert certified.because[0].startswith("Importance-sampled steps are dominated")
    assert "idealised real arithmetic" in certified.assumes
    assert np.allclose(certified.delta([0.1, 1.0]), plain.delta([0.1, 1.0]))
