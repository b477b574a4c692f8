"""Influences: how they add up, round up, and cover each other."""

import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from privamp import (
    Change,
    DiscreteLaplace,
    Gaussian,
    Influence,
    InvalidInput,
    Joint,
    Laplace,
    Neighbors,
    NormNoise,
    NoTheorem,
    PureDP,
    SumAndCount,
)
from privamp.core.influence import clipped, norms
from privamp.mechanisms.gaussian import gaussian_curve
from privamp.testing import seeded_stream

AR, RO = Neighbors.ADD_REMOVE, Neighbors.REPLACE_ONE
sizes = st.floats(1e-6, 1e6)


@given(sizes, sizes, sizes)
def test_pure_influences_are_rounded_up(per_record, per_norm, u):
    exact = Fraction(per_record) + Fraction(per_norm) * Fraction(u)
    value = Fraction(float(Influence("pure", per_record, per_norm).at(u)))
    assert exact <= value <= exact * (1 + Fraction(1, 10**14))


@given(sizes, sizes, st.integers(1, 200))
def test_t_releases_are_t_parts(per_record, per_norm, times):
    for kind in ("pure", "gaussian"):
        one = Influence(kind, per_record, per_norm)
        assert Influence.total([one] * times) == one.repeated(times)
        assert one.repeated(times).is_covered_by(Influence.total([one] * times))


def test_pure_adds_and_gaussian_adds_in_squares():
    assert (Influence("pure", 1.0, 2.0) + Influence("pure", 0.5, 1.0)).at(2.0) == pytest.approx(7.5)
    both = Influence("gaussian", 0.0, 3.0) + Influence("gaussian", 0.0, 4.0)
    assert both.at(1.0) == pytest.approx(5.0)
    with pytest.raises(NoTheorem):
        Influence("pure", 1.0, 2.0) + Influence("gaussian", 1.0, 2.0)
    with pytest.raises(NoTheorem):
        Influence("pure", 1.0, 2.0) + Influence("pure", 1.0, 2.0, p=1.0)
    with pytest.raises(InvalidInput):
        Influence("pure", -1.0, 2.0)
    with pytest.raises(InvalidInput):
        Influence("pure", 1.0, 2.0, p=0.5)


def test_what_covers_what():
    small, large = Influence("pure", 0.1, 0.2), Influence("pure", 0.2, 0.2)
    assert small.is_covered_by(large)
    assert not large.is_covered_by(small)
    assert Influence("pure", 0.1, 0.2, p=2.0).is_covered_by(Influence("pure", 0.1, 0.2, p=1.0))
    assert not Influence("pure", 0.1, 0.2, p=1.0).is_covered_by(Influence("pure", 0.1, 0.2, p=2.0))
    assert not Influence("gaussian", 0.1, 0.2).is_covered_by(small)
    assert large.norm_at(float(large.at(3.0))) == pytest.approx(3.0)
    assert large.norm_at(0.1) == -math.inf


def test_mechanisms_know_their_influence():
    assert Laplace(4.0).influence == Influence("pure", 0.0, 0.25, 1.0, True)
    assert Gaussian(4.0).influence == Influence("gaussian", 0.0, 0.25, 2.0, True)
    assert not NormNoise(4.0, 5).influence.is_exact
    assert NormNoise(4.0, 1).influence.is_exact
    for unknown in (PureDP(1.0), Laplace(1.0, neighbors=RO), Gaussian(1.0, neighbors=RO)):
        assert unknown.influence is None
    assert Joint([Laplace(1.0), Laplace(2.0)]).influence.at(1.0) == pytest.approx(1.5)
    assert Joint([Laplace(1.0), Gaussian(2.0)]).influence is None
    assert Joint([Laplace(1.0), PureDP(2.0)]).influence is None


@pytest.mark.parametrize("p", [1.0, 2.0, 3.0, math.inf])
def test_clipped_records_are_inside_and_the_others_unchanged(p):
    x = np.random.default_rng(0).normal(size=(500, 7))
    inside = clipped(x, 2.0, p)
    assert np.all(norms(inside, p) <= 2.0)
    small = np.linalg.norm(x, ord=p, axis=1) < 1.999
    assert np.array_equal(inside[small], x[small])
    assert norms(np.full((1, 4), 1e-200), 2.0)[0] == pytest.approx(2e-200)
    assert norms(np.full((1, 4), 1e200), 2.0)[0] == pytest.approx(2e200)
    assert norms(np.zeros((2, 3)), 2.0).tolist() == [0.0, 0.0]


def test_sum_and_count_is_the_joint_of_its_parts():
    step = SumAndCount(Gaussian(3.0, sensitivity=2.0), Gaussian(5.0))
    theta = math.hypot(2.0 / 3.0, 0.2)
    epsilons = np.linspace(0.0, 3.0, 7)
    assert step.profile(AR).forward(epsilons) == pytest.approx(gaussian_curve(theta)(epsilons), rel=1e-12)
    parts = Joint([Gaussian(3.0, sensitivity=2.0), Gaussian(5.0)]).profile(AR)
    assert step.profile(AR).forward(epsilons) == pytest.approx(parts.forward(epsilons), rel=1e-9)
    heavy = step.profile(AR, Change(weight=2.0, norm=1.0)).forward(epsilons)
    assert heavy == pytest.approx(gaussian_curve(2 * math.hypot(1 / 3.0, 0.2))(epsilons), rel=1e-12)
    pure = SumAndCount(NormNoise(4.0, 3), Laplace(10.0))
    assert pure.profile(AR, Change(weight=3.0, norm=2.0)).epsilon() == pytest.approx(3 * (0.5 + 0.1))
    assert pure.profile(RO).epsilon() == pytest.approx(2 * 0.35)


def test_the_laplace_curve_bounds_sums_with_counts():
    """The free theorem on a case that can be integrated: one-dimensional sum and count, Laplace noise on both."""
    step = SumAndCount(Laplace(1.0), Laplace(2.0))  # shifts 1 and 1/2 in units of the noise
    t = np.linspace(-14.0, 15.0, 1201)
    cell = (t[1] - t[0]) ** 2
    p = 0.25 * np.exp(-np.abs(t - 1.0))[:, None] * np.exp(-np.abs(t - 0.5))[None, :]
    q = 0.25 * np.exp(-np.abs(t))[:, None] * np.exp(-np.abs(t))[None, :]
    for epsilon in (0.0, 0.3, 1.0):
        true = np.maximum(p - math.exp(epsilon) * q, 0.0).sum() * cell
        bound = step.profile(AR).delta(epsilon)
        assert true <= bound * (1 + 1e-3)
        assert true > 0.5 * bound


def test_sum_and_count_releases_both():
    step = SumAndCount(NormNoise(1e-9, 3), Laplace(1e-9))
    sums, counts = step.release((np.arange(6.0).reshape(2, 3), np.array([4.0, 5.0])), seeded_stream(1))
    assert sums == pytest.approx(np.arange(6.0).reshape(2, 3), abs=1e-6)
    assert counts == pytest.approx([4.0, 5.0], abs=1e-6)
    with pytest.raises(InvalidInput, match="both"):
        SumAndCount(Gaussian(1.0), Laplace(1.0))
    with pytest.raises(InvalidInput, match="sensitivity 1"):
        SumAndCount(Gaussian(1.0), Gaussian(1.0, sensitivity=2.0))
    with pytest.raises(InvalidInput, match="ADD_REMOVE"):
        SumAndCount(Gaussian(1.0, neighbors=RO), Gaussian(1.0))
    with pytest.raises(InvalidInput):
        SumAndCount(DiscreteLaplace(1.0), Laplace(1.0))
