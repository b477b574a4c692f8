"""What every profile must satisfy, whatever its formula."""

import math
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from privamp.core.mechanism import IDEALISED, Change
from privamp.core.multiplicity import Multiplicity
from privamp.core.neighbors import Neighbors
from privamp.errors import InvalidInput, NoTheorem
from privamp.mechanisms.black_box import ApproxDP, PureDP
from privamp.mechanisms.discrete_gaussian import DiscreteGaussian
from privamp.mechanisms.discrete_laplace import DiscreteLaplace
from privamp.mechanisms.gaussian import Gaussian
from privamp.mechanisms.geometric import GeometricCount
from privamp.mechanisms.laplace import Laplace
from privamp.mechanisms.norm_noise import NormNoise
from privamp.mechanisms.randomized_response import RandomizedResponse
from privamp.testing import seeded_stream

AR, RO = Neighbors.ADD_REMOVE, Neighbors.REPLACE_ONE
ALL = [
    Laplace(0.8),
    Gaussian(1.2),
    DiscreteLaplace(1.5, 2),
    DiscreteGaussian(1.7),
    GeometricCount(0.7),
    RandomizedResponse(0.9, 3),
    NormNoise(2.0, 5),
    PureDP(0.6),
    ApproxDP(0.6, 1e-3),
]


def is_convex_in_exponent(curve, top):
    """delta is convex in e^eps and at most 1, up to twice the accuracy contract of 1e-13."""
    a = np.linspace(1.0, math.exp(top), 4001)
    delta = np.exp(curve(np.log(a)))
    middle = 0.5 * (delta[:-2] + delta[2:])
    return bool(np.all(delta[1:-1] <= middle + 2e-13) and np.all(delta <= 1.0) and np.all(np.diff(delta) <= 2e-13))


@pytest.mark.parametrize("mechanism", ALL, ids=lambda m: type(m).__name__)
@pytest.mark.parametrize("copies", [1, 3])
def test_convex(mechanism, copies):
    if isinstance(mechanism, ApproxDP):  # a group bound is not a curve of one pair
        assert is_convex_in_exponent(mechanism.profile(AR).forward, 4.0)
    else:
        assert is_convex_in_exponent(mechanism.profile(RO, Change(copies=copies)).forward, 4.0)


def test_a_bent_curve_is_caught():
    assert not is_convex_in_exponent(lambda e: np.log(np.maximum(1 - e / 4, 1e-9)) * (e < 1), 4.0)


@given(st.floats(1e-3, 30), st.floats(1e-6, 1), st.integers(1, 6))
@settings(deadline=None, max_examples=40)
def test_mixtures_are_convex_and_below_certainty(theta, chance, draws):
    law = Multiplicity.binomial(draws, min(chance, 1 - 1e-9))
    for mechanism in (Gaussian(1.0, theta), Laplace(1.0, theta)):
        mixture = mechanism.mixture(AR, law)
        eps = np.linspace(0, 4, 200)
        certain = np.exp(mechanism.profile(AR, Change(copies=draws)).forward(eps))
        for curve in (mixture.forward, mixture.backward):
            assert is_convex_in_exponent(curve, 2.0)
            assert np.all(np.exp(curve(eps)) <= certain * (1 + 1e-10) + 1e-300)


@pytest.mark.parametrize("mechanism", ALL, ids=lambda m: type(m).__name__)
def test_more_copies_are_less_private(mechanism):
    eps = np.linspace(0, 3, 100)
    curves = [mechanism.profile(RO, Change(copies=u)).forward(eps) for u in (1, 2, 3, 5)]
    for fewer, more in pairwise(curves):
        assert np.all(more >= fewer - 1e-12)


@given(st.integers(1, 20), st.floats(0.1, 10), st.floats(1e-6, 10))
@settings(deadline=None, max_examples=40)
def test_a_change_is_a_sensitivity(copies, weight, norm):
    eps = np.linspace(0, 5, 20)
    change = Change(copies=copies, weight=weight, norm=norm)
    for make in (Laplace, Gaussian):
        got = make(2.0, 7.0).profile(RO, change).log_delta(eps)
        wanted = make(2.0, copies * weight * norm * 2).profile(AR).log_delta(eps)
        np.testing.assert_allclose(got, wanted, rtol=1e-12)


@pytest.mark.parametrize("mechanism", ALL, ids=lambda m: type(m).__name__)
def test_symmetric_and_labelled(mechanism):
    assert mechanism.profile(RO).is_symmetric
    continuous = isinstance(mechanism, (Laplace, Gaussian, NormNoise))
    assert mechanism.assumes == ((IDEALISED,) if continuous else ())
    assert mechanism.is_pure == (not isinstance(mechanism, (Gaussian, DiscreteGaussian, ApproxDP)))
    assert hash(mechanism) == hash(mechanism)
    with pytest.raises(AttributeError):
        mechanism.neighbors = RO


def test_replace_one_says_nothing_about_add_remove():
    for make in (Laplace, Gaussian, DiscreteLaplace, DiscreteGaussian, GeometricCount, PureDP):
        with pytest.raises(NoTheorem, match="ADD_REMOVE"):
            make(1.0, neighbors=RO).profile(AR)
    with pytest.raises(NoTheorem, match="REPLACE_ONE"):
        RandomizedResponse(1.0).profile(AR)


@pytest.mark.parametrize("mechanism", [PureDP(1.0), ApproxDP(1.0, 1e-5), RandomizedResponse(1.0)])
@pytest.mark.parametrize("change", [Change(weight=2.0), Change(norm=0.5)])
def test_black_boxes_know_no_weights(mechanism, change):
    with pytest.raises(NoTheorem, match="weight"):
        mechanism.profile(RO, change)


def test_black_boxes_add_no_noise():
    for mechanism in (PureDP(1.0), ApproxDP(1.0, 1e-5)):
        with pytest.raises(NoTheorem, match="no noise"):
            mechanism.release(3.0, seeded_stream(1))


def test_discrete_mechanisms_need_whole_shifts():
    for mechanism in (DiscreteLaplace(1.0), DiscreteGaussian(1.0), GeometricCount(1.0)):
        with pytest.raises(NoTheorem, match="whole"):
            mechanism.profile(AR, Change(weight=1.5))
        assert mechanism.profile(AR, Change(weight=2.0)).delta(0.5) > mechanism.profile(AR).delta(0.5)
        assert mechanism.profile(AR, Change(norm=0.0)).epsilon() == 0.0


BAD = [math.nan, math.inf, -math.inf, 0, 0.0, -1.0, True, "1", None, [1.0]]
MAKERS = [
    Laplace,
    Gaussian,
    DiscreteLaplace,
    DiscreteGaussian,
    GeometricCount,
    RandomizedResponse,
    lambda s: NormNoise(s, 3),
    lambda s: Laplace(1.0, s),
    lambda s: Gaussian(1.0, s),
    lambda s: DiscreteLaplace(1.0, s),
    lambda s: DiscreteGaussian(1.0, s),
    lambda s: NormNoise(1.0, s),
    lambda s: NormNoise(1.0, 3, sensitivity=s),
    lambda s: RandomizedResponse(1.0, s),
]


@pytest.mark.parametrize("make", MAKERS)
@pytest.mark.parametrize("value", BAD, ids=repr)
def test_bad_parameters(make, value):
    with pytest.raises(InvalidInput, match="must be"):
        make(value)


@pytest.mark.parametrize("value", [math.nan, math.inf, -1.0, True, "1", None], ids=repr)
def test_bad_black_boxes(value):
    for make in (PureDP, lambda s: ApproxDP(s, 1e-5), lambda s: ApproxDP(1.0, s)):
        with pytest.raises(InvalidInput, match="must be"):
            make(value)


def test_other_bad_parameters():
    for make in (Laplace, Gaussian, DiscreteLaplace, DiscreteGaussian, GeometricCount, PureDP):
        with pytest.raises(InvalidInput, match="neighbors"):
            make(1.0, neighbors="add-remove")
    for p in (0.5, math.nan, "2", True):
        with pytest.raises(InvalidInput, match="p must be"):
            NormNoise(1.0, 3, p=p)
    with pytest.raises(InvalidInput, match="sensitivity"):
        DiscreteLaplace(1.0, 1.5)
    with pytest.raises(InvalidInput, match="2\\^50"):
        DiscreteGaussian(1e20)
    with pytest.raises(InvalidInput, match="1e100"):
        Gaussian(1e-200)
    with pytest.raises(InvalidInput, match="finite"):
        Laplace(1.0, 1e99).profile(AR, Change(weight=1e300))
    with pytest.raises(InvalidInput, match="chance"):
        Gaussian(1.0).opposite_mixture(1.5)


@pytest.mark.parametrize("mechanism", ALL, ids=lambda m: type(m).__name__)
def test_any_shape_and_any_size_of_epsilon(mechanism):
    law = Multiplicity.binomial(3, 0.1)
    profiles = [mechanism.profile(RO), mechanism.mixture(RO, law), mechanism.opposite_mixture(0.1)]
    for profile in filter(None, profiles):
        for curve in (profile.forward, profile.backward, profile.rounded_up().forward):
            assert curve(1.0).shape == ()
            assert curve(np.zeros(0)).shape == (0,)
            values = curve(np.array([[0.0, 1e3], [1e8, 1e300]]))
            assert values.shape == (2, 2)
            assert not np.any(np.isnan(values))


@pytest.mark.parametrize("mechanism", ALL, ids=lambda m: type(m).__name__)
@pytest.mark.parametrize("relation", [AR, RO])
def test_a_family_is_its_profiles(mechanism, relation):
    if mechanism.neighbors.kind != relation.kind and relation == AR:
        return
    family = mechanism.family(relation) if not isinstance(mechanism, RandomizedResponse) else None
    if family is None:
        return
    eps, copies = np.linspace(0, 6, 50), np.array([1.0, 2.0, 7.0])
    rows = family(copies[:, None], eps[None, :])
    for u, row in zip(copies, rows, strict=True):
        np.testing.assert_allclose(row, mechanism.profile(relation, Change(copies=int(u))).forward(eps), rtol=1e-13)
