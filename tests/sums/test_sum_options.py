"""The public arguments of sums at the ends of what they may be, and what each of them means."""

import math

import numpy as np
import pytest

from privamp import InvalidInput, Neighbors, Poisson, WithoutReplacement
from privamp.mechanisms.fixed_point import ExactGaussian, ExactLaplace
from privamp.mechanisms.gaussian import Gaussian
from privamp.mechanisms.laplace import Laplace
from privamp.mechanisms.norm_noise import NormNoise
from privamp.sums.options import SumOptions, _mean_square

LOW_HIGH = (2.0, 10.0)


def options(**changed):
    return SumOptions(**{"bounds": 3.0, "epsilon": 1.0, **changed})


@pytest.mark.parametrize("number", [3.0, 3, np.float64(3.0), np.array(3.0)])
def test_one_number_is_a_radius_whatever_its_type(number):
    asked = options(bounds=number)
    assert asked.longest((0.0, 0.0)) == 3.0
    assert asked.middle(2) == (0.0, 0.0)


@pytest.mark.parametrize("pairs", [LOW_HIGH, [LOW_HIGH, (-1.0, 1.0)], np.array([LOW_HIGH, (-1.0, 1.0)])])
def test_pairs_have_a_middle_and_a_farthest_corner(pairs):
    asked = options(bounds=pairs)
    columns = 1 if pairs is LOW_HIGH else 2
    assert asked.middle(columns) == (6.0, 0.0)[:columns]
    assert asked.longest((6.0, 0.0)[:columns]) == pytest.approx((4.0, 5.0)[columns - 1])  # in l1
    assert asked.longest((0.0, 0.0)[:columns]) == pytest.approx((10.0, 11.0)[columns - 1])
    assert asked.longest((9.0, 0.0)[:columns]) == pytest.approx((7.0, 8.0)[columns - 1])


@pytest.mark.parametrize(
    ("noise", "delta", "norm"), [("laplace", 0.0, 1.0), ("gaussian", 1e-6, 2.0), ("norm", 0.0, 3.0)]
)
def test_records_are_measured_in_the_norm_of_the_noise(noise, delta, norm):
    asked = options(noise=noise, delta=delta, p=3.0)
    assert asked.norm == norm
    assert asked.is_exact == (noise != "norm")
    cut = asked.cut(np.array([[3.0, 4.0], [0.5, -0.5]]), (0.0, 0.0))
    assert np.sum(np.abs(cut[0]) ** norm) ** (1.0 / norm) == pytest.approx(3.0)
    assert cut[0, 1] / cut[0, 0] == pytest.approx(4.0 / 3.0)
    assert cut[1].tolist() == [0.5, -0.5]


def test_records_beyond_pairs_are_cut_before_they_are_measured():
    asked = options(bounds=[LOW_HIGH, (-1.0, 1.0)])
    cut = asked.cut(np.array([[99.0, -0.5], [-99.0, 9.0]]), (6.0, 0.0))
    np.testing.assert_allclose(cut, [[4.0, -0.5], [-4.0, 1.0]], rtol=1e-12)


def test_noise_of_every_kind():
    assert options().mechanism(2.0, 3, 5.0, 0.015625) == ExactLaplace(2.0, 5.0, 0.015625)
    assert options(arithmetic="idealised").mechanism(2.0, 3, 5.0, 0.015625) == Laplace(2.0, 5.0)
    loud = {"noise": "gaussian", "delta": 1e-6}
    assert options(**loud).mechanism(2.0, 3, 5.0, 0.015625) == ExactGaussian(2.0, 5.0, 0.015625)
    assert options(**loud, arithmetic="idealised").mechanism(2.0, 3, 5.0, 0.015625) == Gaussian(2.0, 5.0)
    assert options(noise="norm", p=1.5).mechanism(2.0, 3, 5.0, 0.015625) == NormNoise(2.0, 3, 1.5, 5.0)


def test_the_error_of_one_coordinate():
    assert options().noise_error(Laplace(2.0), 3) == pytest.approx(2.0 * math.sqrt(2.0))
    assert options(noise="gaussian", delta=1e-6).noise_error(Gaussian(2.0), 3) == 2.0
    ball = options(noise="norm", p=2.0).noise_error(NormNoise(2.0, 3, 2.0), 3)
    assert ball == pytest.approx(2.0 * math.sqrt(3.0 * 4.0 / 3.0))  # radius Gamma(3), squares share it evenly


def test_the_mean_square_on_spheres():
    """1/d for p = 2; 2/(d (d + 1)) for p = 1, a Dirichlet law; one coordinate alone is 1."""
    for d in (1, 2, 5):
        assert _mean_square(d, 2.0) == pytest.approx(1.0 / d)
        assert _mean_square(d, 1.0) == pytest.approx(2.0 / (d * (d + 1.0)))
        assert _mean_square(d, math.inf) == pytest.approx((1.0 / d) + (1.0 - 1.0 / d) / 3.0)
        assert _mean_square(d, 4000.0) == pytest.approx(_mean_square(d, math.inf), rel=1e-3)
    assert _mean_square(1, 7.0) == pytest.approx(1.0)


@pytest.mark.parametrize(
    "allowed",
    [{"error_share": 0.0}, {"error_share": 1.0}, {"population": 1}, {"p": 1.0, "noise": "norm"},
     {"p": math.inf, "noise": "norm"}, {"sample_size": 1e-9}, {"scale": 1e-9}],
)  # fmt: skip
def test_the_ends_are_allowed(allowed):
    options(**allowed)


@pytest.mark.parametrize(
    "refused",
    [{"error_share": -1e-9}, {"error_share": 1.0 + 1e-9}, {"population": 0}, {"p": 0.999}, {"sample_size": 0.0},
     {"scale": 0.0}, {"epsilon": 0.0}, {"delta": 1e-6}, {"noise": "gaussian"}, {"noise": "gaussian", "delta": 1.0},
     {"noise": "norm", "arithmetic": "exact"}, {"noise": "other"}, {"arithmetic": "other"}, {"bounds": None},
     {"norms": 3}, {"delta": 1.5}, {"neighbors": "replace-one"}],
)  # fmt: skip
def test_beyond_the_ends_is_refused(refused):
    with pytest.raises(InvalidInput):
        options(**refused)


def test_the_number_of_records_is_public_where_the_design_says_so():
    fixed = WithoutReplacement(5, 40)
    assert options(sampler=fixed).public_records == 40
    assert options(sampler=fixed, neighbors=Neighbors.REPLACE_ONE).public_records == 40
    assert options(sampler=fixed, neighbors=Neighbors.ADD_REMOVE).public_records is None
    assert options(sampler=Poisson(0.1)).public_records is None
    assert options().public_records is None
