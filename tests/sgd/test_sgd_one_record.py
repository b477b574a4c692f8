"""What one record can move in gradient descent: one clip in the sum of gradients, and nothing else."""

import math
import warnings

import numpy as np
import pytest
from scipy.special import expit

from privamp import Gaussian, Poisson, WithReplacement
from privamp.sgd import Descent, PrivateLinear, PrivateLogistic
from privamp.sgd.clipped_gradients import clipped_sum_of
from privamp.sgd.descent import CLIPPED

RANDOM = np.random.default_rng(3)
X, Y = RANDOM.normal(size=(40, 3)), (RANDOM.random(40) < 0.5).astype(float)
TOP = 1.7976931348623157e308
ROWS = [
    [math.nan, 1, 1], [math.inf, 0, 0], [None, 1, 1], ["lots", 1, 1], [10**400, 1, 1], [TOP, TOP, TOP], [-TOP, TOP, 1],
    [5e-324] * 3, [0.0, -0.0, 0.0], [1e-200] * 3, [1e154] * 3,
]  # fmt: skip
LABELS = [2, -1, 0.5, math.nan, math.inf, None, "yes", 10**400, TOP]


@pytest.fixture
def clean(monkeypatch):
    """clean: the sums that noise is added to, in order."""
    seen = []

    def release(self, value, stream):
        seen.append(np.array(value))
        return np.zeros_like(value)  # later steps do not depend on this one

    monkeypatch.setattr(Gaussian, "release", release)
    return seen


def fit(model, rows, labels, key):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        return model.fit(rows, labels, key=key)


@pytest.mark.parametrize("model", [PrivateLinear, PrivateLogistic])
@pytest.mark.parametrize("kind", ["row", "label"])
def test_every_record_is_trained_on_and_moves_the_sum_by_one_clip(model, kind, clean, key):
    for i, odd in enumerate(ROWS if kind == "row" else LABELS):
        one = model(Poisson(1.0), population=41, clip=0.75, steps=3, sigma=0.5)
        rows, labels = X.tolist(), Y.tolist()
        fit(one, rows, labels, key(2 * i))
        more = (odd, 1) if kind == "row" else ([0.5, 0.5, 0.5], odd)
        fit(one, [*rows, more[0]], [*labels, more[1]], key(2 * i + 1))
        for before, after in zip(clean[:3], clean[3:], strict=True):
            assert math.sqrt(math.fsum((after - before) ** 2)) <= 0.75
        clean.clear()


def test_a_label_that_is_none_of_the_two_adds_nothing(clean, key):
    for labels in ((0, 1), (-1, 1)):
        model = PrivateLogistic(Poisson(1.0), labels=labels, population=41, clip=0.75, steps=1, sigma=0.5)
        plain = [labels[int(y)] for y in Y]
        fit(model, X, plain, key(labels[0] + 1))
        fit(model, np.vstack([X, X[:1]]), [*plain, 7], key(labels[0] + 5))
        assert np.array_equal(*clean)
        clean.clear()


@pytest.mark.parametrize("columns", [1, 3, 64])
def test_gradients_are_the_same_beside_any_others_in_any_order(columns):
    """With a matrix product the last bits of a gradient depended on the row's place."""
    random = np.random.default_rng(columns)
    rows, labels = random.normal(size=(500, columns)), (random.random(500) < 0.5).astype(float)
    parameters = random.normal(size=columns)
    alone = [
        clipped_sum_of(rows[[i]], labels[[i]], expit, 0.1)(parameters, np.array([0]), np.array([1])) for i in range(500)
    ]
    clipped = clipped_sum_of(rows, labels, expit, 0.1)
    for at in (np.arange(500), random.permutation(500), np.arange(1, 500, 7)):
        exact = [math.fsum(alone[i][j] for i in at) for j in range(columns)]
        assert clipped(parameters, at, np.ones(at.size, dtype=int)).tolist() == exact
    for one in alone:
        assert math.sqrt(math.fsum(one**2)) <= 0.1


def test_huge_samples_are_cut_and_do_not_wrap():
    clipped = clipped_sum_of(np.ones((2, 1)), np.array([-1e9, -1e9]), lambda score: score, 1.0, expected=10.0)
    sums = [clipped(np.zeros(1), np.array([0, 1]), np.array([many, 1]))[0] for many in (1, 2**23 - 2, 2**23, 2**30)]
    assert sums[0] == pytest.approx(2.0)
    assert sums[1] <= sums[2] == sums[3] == 2.0**23


def test_a_sum_of_ones_own_is_an_assumption(key):
    descent = Descent(design=WithReplacement(3, 5), steps=1, sigma=1.0)
    assert CLIPPED in descent.run(lambda p, r, c: np.zeros(1), np.zeros(1), 5, key()).guarantee.assumes
    model = PrivateLinear(WithReplacement(3, 40), steps=1, sigma=1.0).fit(X, Y, key=key(1))
    assert CLIPPED not in model.guarantee_.assumes
