"""Gradient descent by any design: it learns, it clips every copy, and what it certifies is true of what it drew."""

from collections import defaultdict
from itertools import product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from privamp import (
    Gaussian,
    Key,
    MultiStage,
    Neighbors,
    Poisson,
    Population,
    Proportional,
    WithoutReplacement,
    WithReplacement,
    amplify,
    compose,
)
from privamp.core.ledger import REGISTRY
from privamp.errors import InvalidInput, NoTheorem
from privamp.sgd import Descent, PrivateLinear, PrivateLogistic
from privamp.sgd.clipped_gradients import clipped_sum_of
from privamp.testing import seeded_key
from privamp.verify import exact_delta_of_laws

AR, RO = Neighbors.ADD_REMOVE, Neighbors.REPLACE_ONE
N = 2000
DESIGNS = {
    "Poisson": Poisson(0.1),
    "WOR": WithoutReplacement(200, N),
    "WR": WithReplacement(200, N),
    "MUSTow": MultiStage([("wor", 400), ("wr", 200)], N),
}
every_design = pytest.mark.parametrize("name", DESIGNS)


@pytest.fixture(scope="module")
def data():
    rng = np.random.default_rng(5)
    X = rng.normal(size=(N, 2))
    score = X @ [1.0, -2.0] + 0.5
    return X, score + rng.normal(size=N), (score + rng.logistic(size=N) > 0).astype(int)


@pytest.fixture
def clean_ledgers(monkeypatch):
    """As in a new process: no sample has been released from yet."""
    REGISTRY.clear()


def fitted(model, X, y, seed=1):
    return model.fit(X, y, key=seeded_key(seed))


@every_design
def test_it_learns(data, name, clean_ledgers):
    X, value, label = data
    options = {"steps": 60, "sigma": 5.0, "population": N, "average": True}
    linear = fitted(PrivateLinear(DESIGNS[name], clip=3.0, learning_rate=0.3, **options), X, value)
    assert np.mean((linear.predict(X) - value) ** 2) < 1.1 < 0.5 * np.var(value)
    logistic = fitted(PrivateLogistic(DESIGNS[name], learning_rate=2.0, **options), X, label, 2)
    assert np.mean(logistic.predict(X) == label) > 0.76 > max(label.mean(), 1 - label.mean()) + 0.15
    assert np.all((logistic.predict_proba(X)[:, 1] > 0.5) == (logistic.predict(X) == 1))
    signed = fitted(PrivateLogistic(DESIGNS[name], labels=(-1, 1), learning_rate=2.0, **options), X, 2 * label - 1, 3)
    assert set(signed.predict(X)) == {-1.0, 1.0}


@every_design
def test_the_guarantee_is_that_of_the_design_and_the_steps(data, name, clean_ledgers):
    X, value, _ = data
    model = fitted(PrivateLinear(DESIGNS[name], clip=1.5, steps=7, sigma=6.0, population=N), X, value)
    one = Gaussian(6.0, 1.5) if name == "Poisson" else Gaussian(6.0, 3.0, RO)  # C added, or 2C replaced, per copy
    expected = compose(amplify(one, DESIGNS[name]), 7)
    assert model.guarantee_.steps == 7
    assert model.guarantee_.neighbors == (AR if name == "Poisson" else RO)
    for epsilon in (0.1, 0.5):
        assert model.guarantee_.delta(epsilon) == expected.delta(epsilon)
    assert expected.assumes == model.guarantee_.assumes[:-1]


def test_designs_differ_as_they_should(data, clean_ledgers):
    """Copies cost: the same noise hides a record worst in the chain, and Poisson under add/remove best."""
    X, value, _ = data
    deltas = [
        fitted(PrivateLinear(d, steps=7, sigma=4.0, population=N), X, value).guarantee_.delta(0.5)
        for d in DESIGNS.values()
    ]
    assert deltas == sorted(deltas)
    assert deltas[1] > 1.5 * deltas[0]
    assert deltas[3] > 1.5 * deltas[1]


def test_poisson_can_be_certified_under_replace_one(data, clean_ledgers):
    X, value, _ = data
    model = fitted(PrivateLinear(Poisson(0.1), steps=3, sigma=4.0, population=N, neighbors=RO), X, value)
    assert model.guarantee_.neighbors == RO
    assert model.guarantee_.delta(0.5) == compose(amplify(Gaussian(4.0), Poisson(0.1), RO), 3).delta(0.5)


def test_noise_is_calibrated_to_the_target(data, clean_ledgers):
    X, value, _ = data
    model = fitted(PrivateLinear(WithoutReplacement(200, N), steps=20, epsilon=1.0, delta=1e-5), X, value)
    assert model.guarantee_.delta(1.0) <= 1e-5
    less = Gaussian(model.sigma_ * 0.999, 1.0)
    assert compose(amplify(less, WithoutReplacement(200, N)), 20).delta(1.0) > 1e-5


def test_test_keys_are_not_private_and_repeat(data, monkeypatch):
    X, value, _ = data
    found = []
    for _ in range(2):
        REGISTRY.clear()
        found.append(fitted(PrivateLinear(DESIGNS["WR"], steps=5, sigma=1.0), X, value, 9))
    assert np.array_equal(found[0].coef_, found[1].coef_)
    assert found[0].intercept_ == found[1].intercept_
    assert not found[0].guarantee_.is_private
    real = PrivateLinear(DESIGNS["WR"], steps=5, sigma=1.0).fit(X, value)
    assert real.guarantee_.is_private
    assert not np.array_equal(real.coef_, found[0].coef_)


def test_a_key_trains_once(data):
    X, value, _ = data
    key = Key.generate()
    model = PrivateLinear(DESIGNS["WOR"], steps=2, sigma=1.0)
    model.fit(X, value, key=key)
    with pytest.raises(InvalidInput, match="fresh key"):
        model.fit(X, value, key=key)
    model.fit(X, value, key=key, population=Population(N, label="another data set"))


rows = st.lists(
    st.tuples(st.floats(-1e200, 1e200), st.floats(-1e200, 1e200), st.floats(-1e200, 1e200)), min_size=1, max_size=8
)


@settings(max_examples=200, deadline=None)
@given(rows=rows, clip=st.floats(1e-3, 1e3), slope=st.floats(-1e150, 1e150), ones=st.booleans())
def test_every_copy_is_clipped(rows, clip, slope, ones):
    table = np.array(rows)
    features = np.hstack([table[:, :2], np.ones((len(table), 1))]) if ones else table[:, :2] * 1e-200
    clipped = clipped_sum_of(features, table[:, 2], lambda score: score, clip)
    parameters = np.full(features.shape[1], slope)
    for row in range(len(table)):
        one = clipped(parameters, np.array([row]), np.array([1]))
        assert np.hypot.reduce(one) <= clip * (1 + 1e-9)
        assert np.allclose(clipped(parameters, np.array([row]), np.array([5])), 5 * one, rtol=1e-12)
    counts = np.arange(1, len(table) + 1)
    whole = clipped(parameters, np.arange(len(table)), counts)
    assert np.all(np.isfinite(whole))
    assert np.hypot.reduce(whole) <= clip * counts.sum() * (1 + 1e-9)


def test_a_gradient_below_the_clip_is_untouched():
    clipped = clipped_sum_of(np.array([[3.0, 4.0]]), np.array([1.0]), lambda score: score, 20.0)
    assert np.array_equal(clipped(np.array([1.0, 0.0]), np.array([0]), np.array([1])), [6.0, 8.0])  # (3-1)(3, 4)
    assert np.hypot(*clipped(np.array([9.0, 0.0]), np.array([0]), np.array([1]))) == pytest.approx(20.0)


def test_the_normaliser_is_public():
    """The realised size of a Poisson sample varies; what it is divided by does not, and an empty one moves too."""
    sums = []

    def clipped_sum(parameters, rows, counts):
        sums.append(float(counts.sum()))
        return np.array([float(counts.sum())])

    descent = Descent(design=Poisson(0.05), steps=40, sigma=1e-6, learning_rate=1.0, population=40)
    assert descent.expected_size == pytest.approx(2.0)
    ended = descent.run(clipped_sum, np.zeros(1), 40, Key.generate()).parameters
    assert len(set(sums)) > 1
    assert ended[0] == pytest.approx(-sum(sums) / 2.0, abs=1e-3)
    nobody = Descent(design=Poisson(0.0001), steps=5, sigma=2.0, learning_rate=1.0, population=10_000)
    assert nobody.run(lambda p, r, c: np.zeros(1), np.zeros(1), 0).parameters[0] != 0.0
    assert Descent(design=WithReplacement(7, 30), sigma=1.0).expected_size == pytest.approx(7.0)


def test_schedule_regularisation_projection_and_average():
    def one(**options):
        descent = Descent(design=WithoutReplacement(2, 4), steps=4, sigma=1e-9, **options)
        return descent.run(lambda p, r, c: np.array([-2.0, 0.0]), np.zeros(2), 4).parameters

    assert one(learning_rate=1.0) == pytest.approx([4.0, 0.0], abs=1e-6)
    assert one(learning_rate=lambda step: 2.0**-step) == pytest.approx([1.875, 0.0], abs=1e-6)
    assert one(learning_rate=1.0, radius=1.5) == pytest.approx([1.5, 0.0], abs=1e-6)
    assert one(learning_rate=1.0, average=True) == pytest.approx([3.5, 0.0], abs=1e-6)  # the mean of 3 and 4
    assert one(learning_rate=0.5, l2=1.0) == pytest.approx([0.9375, 0.0], abs=1e-6)


# One step on a tiny population, all of it enumerated: the trainer's own clipped sums under the design's own law.

TINY = {
    "Poisson": (Poisson(0.4), 3, AR),
    "Poisson swapped": (Poisson(0.4), 3, RO),
    "WOR": (WithoutReplacement(2, 3), 3, RO),
    "WR": (WithReplacement(2, 3), 3, RO),
    "MUSTow": (MultiStage([("wor", 2), ("wr", 2)], 3), 3, RO),
    "MUSTww": (MultiStage([("wr", 2), ("wr", 2)], 3), 3, RO),
}
CLIP, SIGMA, EPSILONS = 1.5, 2.0, np.array([0.0, 0.2, 0.6, 1.2])


def law_of_a_step(design, population, targets):
    """{clipped sum at parameter 0: chance}; one feature that is 1, so that the gradient is minus the target."""
    clipped = clipped_sum_of(np.ones((len(targets), 1)), np.array(targets), lambda score: score, CLIP)
    law = defaultdict(float)
    for units, chance in design.law(population):
        where, counts = np.unique(np.array(units, dtype=np.int64), return_counts=True)
        law[round(float(clipped(np.zeros(1), where, counts)[0]), 9)] += float(chance)
    return law


def largest_divergence(design, size, relation):
    worst = np.zeros(EPSILONS.size)
    for others in product((-9.0, 0.4, 9.0), repeat=size - 1):  # far beyond the clip, and inside it
        for here, there in product((-9.0, 0.0, 9.0), repeat=2):
            first = law_of_a_step(design, Population(size), (*others, here))
            if relation == AR:
                second = law_of_a_step(design, Population(size - 1), others)
            else:
                second = law_of_a_step(design, Population(size), (*others, there))
            found = exact_delta_of_laws(first, second, Gaussian(SIGMA), EPSILONS)
            worst = np.maximum(worst, found)
    return worst


@pytest.mark.parametrize("name", TINY)
def test_a_step_is_never_less_private_than_certified(name, clean_ledgers):
    design, size, relation = TINY[name]
    model = PrivateLinear(
        design, clip=CLIP, steps=1, sigma=SIGMA, population=size, neighbors=relation, intercept=False
    ).fit(np.ones((size, 1)), np.zeros(size))
    truth = largest_divergence(design, size, relation)
    assert np.all(truth <= np.asarray(model.guarantee_.delta(EPSILONS)))
    assert np.all(truth[:2] > 0.5 * np.asarray(model.guarantee_.delta(EPSILONS[:2])))
    if design.natural == RO:
        halved = amplify(Gaussian(SIGMA, CLIP, RO), design)  # negative control: C where 2C belongs
        assert np.any(truth > np.asarray(halved.delta(EPSILONS)))


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"steps": 0}, "steps must be a whole number of at least 1, got 0"),
        ({"clip": 0.0}, "clip must be a finite number above 0"),
        ({"clip": -1}, "clip must be a finite number above 0"),
        ({"sigma": None}, "either sigma, or both epsilon and delta"),
        ({"epsilon": 1.0, "delta": 1e-5}, "either sigma, or both epsilon and delta"),
        ({"sigma": None, "epsilon": 1.0}, "either sigma, or both epsilon and delta"),
        ({"sigma": None, "epsilon": 1.0, "delta": 1.5}, "delta must be a number strictly between 0 and 1"),
        ({"sigma": 0.0}, "sigma must be"),
        ({"learning_rate": -1.0}, "learning_rate must be"),
        ({"l2": -1.0}, "l2 must be"),
        ({"radius": 0.0}, "radius must be"),
        ({"population": 0}, "population must be a whole number"),
        ({"labels": (1, 2)}, "labels must be"),
    ],
)
def test_bad_choices_are_one_sentence(options, message):
    with pytest.raises(InvalidInput, match=message):
        PrivateLogistic(WithoutReplacement(2, 4), **{"sigma": 1.0} | options).fit([], [])


def test_poisson_needs_a_public_number_of_records():
    with pytest.raises(InvalidInput, match="secret under add-remove; give population="):
        PrivateLinear(Poisson(0.1), sigma=1.0).fit([], [])
    with pytest.raises(InvalidInput, match="expected_size must be"):
        PrivateLinear(Poisson(0.0), sigma=1.0, population=5).fit([], [])
    with pytest.raises(InvalidInput, match="design must be a Design"):
        PrivateLinear(0.1, sigma=1.0).fit([], [])


SECRET = 31415.9


@pytest.mark.parametrize(
    ("X", "y", "message"),
    [
        ([SECRET, 1, 1, 1], [0, 1, 1, 1], "X must be a table with one row per record"),
        (
            np.array([SECRET, 1, 1, 1]),
            [0, 1, 1, 1],
            "X must be a table with one row per record: Expected 2D array, got an array of 1 dim",
        ),
        ([[SECRET], [1], [1], [1]], np.array([[0, 0], [1, 1], [1, 1], [1, 1]]), "y must be one column"),
        ([[SECRET], [1], [1], [1]], [0, 1, 1], "must have the same length"),
        (np.array([["a"], ["b"], ["c"], ["d"]]), [0, 1, 1, 1], "X must be numbers, got an array of <U1"),
        ([[SECRET], [1]], [0, 1], "declare a number that is true"),
    ],
)
def test_bad_records_are_one_sentence_that_shows_none(X, y, message):
    with pytest.raises(InvalidInput, match=message) as refused:
        PrivateLogistic(WithoutReplacement(2, 4), sigma=1.0, steps=1).fit(X, y)
    assert "31415" not in str(refused.value)
    assert "\n" not in str(refused.value)


def test_a_design_without_a_theorem_is_refused_before_anything_is_drawn(monkeypatch):
    monkeypatch.setattr(Proportional, "draw", lambda *_, **__: pytest.fail("it drew"))
    monkeypatch.setattr(Proportional, "theorems", ())
    design = Proportional(0.5)
    with pytest.raises(NoTheorem):
        PrivateLinear(design, sigma=1.0, population=4).fit(np.ones((4, 1)), np.ones(4))


def test_a_model_that_is_not_fitted_says_so():
    model = PrivateLinear(WithoutReplacement(2, 4), sigma=1.0, steps=1)
    with pytest.raises(InvalidInput, match="not fitted yet"):
        model.predict([[1.0]])
    model.fit(np.ones((4, 1)), np.ones(4))
    with pytest.raises(InvalidInput, match="X has 2 features, but PrivateLinear is expecting 1"):
        model.predict([[1.0, 2.0]])
    assert repr(model) == "PrivateLinear(WithoutReplacement(size=2, population=4), steps=1, clip=1.0)"


def test_the_old_name_of_the_population_warns():
    with pytest.warns(DeprecationWarning, match="'records' is now 'population'"):
        old = PrivateLinear(Poisson(0.5), sigma=1.0, records=40)
    assert old.descent == PrivateLinear(Poisson(0.5), sigma=1.0, population=40).descent
    with pytest.warns(DeprecationWarning, match="'records' is now 'population'"):
        assert Descent(design=Poisson(0.5), sigma=1.0, records=40) == old.descent
