"""Private sums are as private as they say, by brute force and by integration."""

import math
from itertools import product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from privamp import Poisson
from privamp.core.influence import clipped, norms
from privamp.mechanisms.fixed_point import toward_zero
from privamp.sums import PrivateSum
from privamp.sums.release import SumRelease
from privamp.sums.rows import Rows
from small_sums import IDEAL, NOISES, SAMPLERS, X


@pytest.mark.parametrize(("noise", "delta"), NOISES)
@pytest.mark.parametrize("sampling", SAMPLERS, ids=lambda s: str(s["sampler"]))
@pytest.mark.parametrize("share", [0.0, 0.25])
def test_the_guarantee_is_the_one_asked_for(noise, delta, sampling, share, key):
    asked = PrivateSum(bounds=3.0, epsilon=0.8, delta=delta, noise=noise, error_share=share, **sampling)
    answer = asked.release(X, key=key(9))
    assert 0.8 * (1 - 1e-6) <= answer.guarantee.epsilon(delta) <= 0.8
    assert not answer.guarantee.is_private  # a seeded key
    assert (IDEAL in answer.guarantee.assumes) == (noise == "norm")
    rule = SumRelease(asked, (0.0,) * 3).plan.rule
    if rule is not None:
        assert answer.guarantee.epsilon(delta) == pytest.approx(rule.guarantee().epsilon(delta), rel=1e-9)


def breakpoints_loss(units, chances, scale):
    """The exact worst log ratio of the last record's presence, under independent discrete Laplace noise.

    units: whole rows (n, d). Between two possible sums the ratio of two mixtures is monotone in each coordinate, so
    its extremes lie at possible values of partial sums; all of them are tried.
    """
    n, d = units.shape
    kept = np.array(list(product((0, 1), repeat=n)))
    sums = kept @ units
    points = np.array(list(product(*(np.unique(sums[:, j]) for j in range(d)))), dtype=float)
    log_p = np.log(np.where(kept, chances, 1 - np.asarray(chances)).prod(axis=1), where=True)
    alone = kept[:, -1] == 0
    log_q = np.log(np.where(kept[alone][:, :-1], chances[:-1], 1 - np.asarray(chances[:-1])).prod(axis=1))

    def mixture(log_weights, centres):
        with np.errstate(divide="ignore"):
            e = log_weights - np.abs(points[:, None, :] - centres[None, :, :]).sum(axis=2) / scale
        return np.logaddexp.reduce(e, axis=1)

    finite = np.isfinite(log_p)
    return float(np.max(np.abs(mixture(log_p[finite], sums[finite]) - mixture(log_q, sums[alone]))))


TINY = np.array([[0.3, -0.2], [0.05, 0.3], [0.9, 0.05], [0.21, 0.11]])


def exact_losses(share=0.0, count=0.0, rounding="zero", heavier=1.0, grid=None):
    """Brute force of the whole exact path for each record of TINY in turn."""
    asked = PrivateSum(bounds=1.0, epsilon=1.3, scale=1.6, sampler="privacy-constrained", error_share=share)
    task = SumRelease(asked, (0.0, 0.0), count)
    noise, rule = task.plan.mechanism.noise, task.plan.rule
    grid = grid or noise.grid
    x = task.clip(TINY)
    weights, chances = rule.weights(x), rule.probabilities(x)
    rows = task.rows.of(x, weights - 1, task.gain)
    if rounding == "zero":
        units = toward_zero(clipped(rows, noise.sensitivity, 1.0), grid, weights * heavier)
    else:
        units = np.rint(rows * weights[:, None] * heavier / grid).astype(np.int64)
    found = []
    for last in range(len(x)):
        order = [i for i in range(len(x)) if i != last] + [last]
        order = order[-3:]  # two others are enough company
        found.append(breakpoints_loss(units[order], chances[order], noise.scale / grid))
    return max(found)


@pytest.mark.parametrize(("share", "count"), [(0.0, 0.0), (0.3, 0.0), (0.0, 0.25), (0.2, 0.25)])
def test_brute_force_of_the_exact_path(share, count):
    loss = exact_losses(share, count)
    assert loss <= 1.3
    if not share:  # and the budget is used; the squares seldom take all of their share
        assert loss >= 0.9 * 1.3


def test_brute_force_catches_rounding_to_nearest_and_heavier_weights():
    assert exact_losses(grid=2.0**-5) <= 1.3
    assert exact_losses(grid=2.0**-5, rounding="nearest") > 1.3 + 1e-3
    assert exact_losses(heavier=1.02) > 1.3 + 1e-3


def test_gaussian_sampling_by_integration():
    """One record at its own probability and weight: delta(epsilon) by a sum over the line, both directions."""
    asked = PrivateSum(bounds=1.0, epsilon=1.0, delta=1e-4, noise="gaussian", scale=4.0, sampler="privacy-constrained")
    task = SumRelease(asked, (0.0,))
    t = np.linspace(-60, 80, 1_400_001)
    for u in (1.0, 0.5, 0.1, 0.02):
        w, q = (float(f(np.array([[u]]))[0]) for f in (task.plan.rule.weights, task.plan.rule.probabilities))
        without = np.exp(-0.5 * (t / 4.0) ** 2)
        kept = np.exp(-0.5 * ((t - w * u) / 4.0) ** 2)
        with_it = (1 - q) * without + q * kept
        total = without.sum()
        for one, other in ((with_it, without), (without, with_it)):
            assert np.maximum(one - math.e * other, 0).sum() / total <= 1e-4 * (1 + 1e-6)


@settings(max_examples=60)
@given(
    st.integers(0, 2**31),
    st.sampled_from([1.0, 2.0, 3.0]),
    st.floats(0.0, 1.0),
    st.floats(0.0, 2.0),
    st.floats(-3, 9),
)
def test_rows_are_never_longer_than_declared(seed, p, share, count, heavy):
    random = np.random.default_rng(seed)
    x = random.normal(size=(50, 3)) * np.exp(random.normal(size=(50, 1)) * 3)
    more = np.exp(random.normal(size=50) * 3 + heavy)
    x = clipped(x, 5.0, p)
    asked = PrivateSum(bounds=5.0, scale=1.0, noise="norm", p=p, error_share=share, sampler=Poisson(0.5))
    rows = Rows(asked, (0.0,) * 3, count / 5.0).of(x, more, 0.7)
    u = np.minimum(norms(x, p), 5.0)
    assert np.all(norms(rows, p) <= ((1 + share) * u + count) * (1 + 1e-12))
    if p == 2.0:
        assert np.all(norms(rows, p) <= np.sqrt((1 + share**2) * u**2 + count**2) * (1 + 1e-12))
