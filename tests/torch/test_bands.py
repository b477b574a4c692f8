"""The planner of bands: its gain against the definition, and a run with what it chose."""

import numpy as np
import pytest

from balanced_tags import is_balanced
from privamp import CyclicPoisson, Poisson, amplify
from privamp.accounting.banded import band
from privamp.errors import InvalidInput
from privamp.mechanisms.gaussian import Gaussian
from privamp.torch import plan_bands

CHOICE = {"sample_rate": 0.02, "steps": 100, "target_epsilon": 4.0, "target_delta": 1e-5, "most": 8}


def error(steps, bands, sigma):
    """The root mean square error of prefix sums by the matrices themselves."""
    c = band(bands)
    matrix = sum(np.diag(np.full(steps - k, c[k]), -k) for k in range(bands))
    return sigma * np.linalg.norm(np.tril(np.ones((steps, steps))) @ np.linalg.inv(matrix)) / np.sqrt(steps)


def test_the_gain_is_that_of_the_matrices_at_equal_epsilon():
    plan = plan_bands(**CHOICE)
    alone = error(100, 1, plan.tried[0].noise_multiplier)
    for one in plan.tried:
        assert one.ratio == pytest.approx(error(100, one.bands, one.noise_multiplier) / alone)
        sampler = CyclicPoisson(0.02, one.bands, 100)
        spent = amplify(Gaussian(one.noise_multiplier), sampler).epsilon(1e-5)
        assert 3.98 < spent <= 4.0
    assert [one.bands for one in plan.tried] == [1, 2, 4, 8]
    assert plan.ratio == min(one.ratio for one in plan.tried) < 0.8
    assert plan.sampler == CyclicPoisson(0.02, plan.bands, 100)
    assert f"{plan.ratio:.3f}  <- best" in str(plan)


def test_a_plan_in_a_notebook_shows_what_it_prints():
    plan = plan_bands(**CHOICE)
    shown = plan._repr_html_()
    assert is_balanced(shown)
    assert all(f">{one.ratio:.3f}<" in shown for one in plan.tried)
    assert f"Best: {plan.bands} bands, {plan.ratio:.3f}" in shown
    line = plan.plot().axes[0].lines[0]
    assert list(line.get_ydata()) == [one.ratio for one in plan.tried]


def test_one_band_is_independent_noise():
    plan = plan_bands(**CHOICE | {"most": 1})
    assert (plan.bands, plan.ratio, plan.sampler) == (1, 1.0, Poisson(0.02))


WRONG = [{"sample_rate": 0.0}, {"steps": 0}, {"target_epsilon": -1.0}, {"target_delta": 1.0}, {"most": 0}]


@pytest.mark.parametrize("wrong", WRONG)
def test_bad_numbers_are_refused(wrong):
    with pytest.raises(InvalidInput, match=next(iter(wrong))):
        plan_bands(**CHOICE | wrong)
