"""Answers against the truth, their errors and intervals, groups, missing values, refusals."""

import math

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from scipy.optimize import minimize
from scipy.special import softmax

from privamp import Budget, BudgetExceeded, InvalidInput, Neighbors, Poisson, PoissonPPS, WithoutReplacement, open_table
from privamp.queries.plan import split
from privamp.queries.questions import Asking
from privamp.testing import seeded_key

N = 3000
RNG = np.random.default_rng(3)
X = np.round(RNG.normal(40.0, 10.0, N), 3)
GROUP = np.array(["a", "b", "c"])[RNG.integers(0, 3, N)]
YES = np.where(RNG.random(N) < 0.3, "yes", "no")
DATA = pa.table({"person": np.arange(N), "x": X, "g": GROUP, "smokes": YES})
GREAT = 1e4  # an epsilon at which noise and rounding are tiny


def table(**options):
    return open_table(DATA, **options)


def test_everything_is_right_when_nothing_is_hidden():
    t = table()
    assert t.count().run(epsilon=GREAT).value == pytest.approx(N, abs=0.01)
    assert t.sum("x", (0, 100)).run(epsilon=GREAT).value == pytest.approx(X.sum(), rel=1e-5)
    assert t.mean("x", (0, 100)).run(epsilon=GREAT).value == pytest.approx(X.mean(), rel=1e-5)
    assert t.proportion("smokes").run(epsilon=GREAT).value == pytest.approx(np.mean(YES == "yes"), rel=1e-4)
    assert t.proportion("g", ["a", "c"]).run(epsilon=GREAT).value == pytest.approx(np.mean(GROUP != "b"), rel=1e-4)
    assert t.median("x", (0, 100)).run(epsilon=GREAT).value == pytest.approx(np.median(X), abs=100 / 4096)
    quartiles = t.quantile("x", [0.25, 0.75], (0, 100)).run(epsilon=GREAT)
    assert quartiles.names == ("25%", "75%")
    np.testing.assert_allclose(quartiles.value, np.quantile(X, [0.25, 0.75]), atol=100 / 4096)
    bins = t.histogram("x", [0, 30, 40, 50, 100]).run(epsilon=GREAT)
    np.testing.assert_allclose(bins.value, np.histogram(X, [-1e9, 30, 40, 50, 1e9])[0], atol=0.01)


def test_groups_are_those_that_are_named():
    found = table().mean("x", (0, 100)).by("g", ["c", "a", "z"]).run(epsilon=GREAT)
    assert found.names == ("c", "a", "z")
    np.testing.assert_allclose(found.value[:2], [X[g == GROUP].mean() for g in "ca"], rtol=1e-5)
    assert found["z"].interval() == (0.0, 100.0)  # nobody is in it, so nothing is known
    counted = table().histogram("x", 2, (0, 80)).by("g", ["a"]).run(epsilon=GREAT)
    assert counted.names == ("a: 0 to 40", "a: 40 to 80")
    assert counted.value.sum() == pytest.approx(np.sum(GROUP == "a"), abs=0.01)


def test_missing_values_follow_a_public_rule():
    data = pa.table({"x": pa.array([1.0, None, 3.0, float("nan")]), "g": pa.array(["a", None, None, "b"])})
    t = open_table(data)
    assert t.mean("x", (0, 4)).run(epsilon=GREAT).value == pytest.approx(2.0, abs=0.01)
    assert t.mean("x", (0, 4), missing=0.0).run(epsilon=GREAT).value == pytest.approx(1.0, abs=0.01)
    assert t.sum("x", (0, 4), missing=4.0).run(epsilon=GREAT).value == pytest.approx(12.0, abs=0.05)
    bins = t.histogram("x", 2, (0, 4), missing=True).run(epsilon=GREAT)
    assert bins.names == ("0 to 2", "2 to 4", "(missing)")
    np.testing.assert_allclose(bins.value, [1, 1, 2], atol=0.01)
    np.testing.assert_allclose(t.count().by("g", ["a", None]).run(epsilon=GREAT).value, [1, 2], atol=0.01)


def test_text_is_read_as_numbers_record_by_record():
    words = ["yes", "no", " Y ", "FALSE", "2.5", "-1e1", "twelve", "", None, "1e999"]
    t = open_table(pa.table({"x": words}))
    assert t.sum("x", (-5, 5)).run(epsilon=GREAT).value == pytest.approx(1 + 1 + 2.5 - 5 + 5, abs=0.05)
    assert t.mean("x", (-5, 5)).run(epsilon=GREAT).value == pytest.approx(4.5 / 7, abs=0.02)


@pytest.mark.parametrize("design", [Poisson(0.2), WithoutReplacement(600, N)], ids=["poisson", "fixed size"])
def test_a_sample_answers_for_the_whole_table(design):
    """The errors that are told are those of many repetitions."""
    t = table().sample(design)
    told, counts, means = [], [], []
    for k in range(60):
        keyed = open_table(DATA, key=seeded_key(k), population="people", id="person").sample(design)
        count, mean = keyed.plan([keyed.count().by("g", ["a"]), keyed.mean("x", (0, 80))]).run(epsilon=2.0)
        counts.append(count.value[0])
        means.append(mean.value)
        told.append((count["a"].standard_error, mean.standard_error))
    assert t.design is design
    errors = np.mean(told, axis=0)
    for found, truth, error in zip((counts, means), (np.sum(GROUP == "a"), X.mean()), errors, strict=True):
        assert abs(np.mean(found) - truth) < 4.5 * error / math.sqrt(len(found))
        assert np.std(found) == pytest.approx(error, rel=0.35)


@pytest.mark.parametrize("p", [1.0, 2.0])
def test_no_other_split_of_the_noise_is_better(p):
    t = table()
    asking = Asking(p, is_sampled=True)
    questions = [t.count(), t.mean("x", (0, 80)).weighing(5.0), t.median("x", (0, 80)).by("g", ["a", "b"])]
    reach, need = (np.array([getattr(q, what)(asking) for q in questions]) for what in ("reach", "need"))
    weight = np.array([q.weight for q in questions])

    def error(a):
        return float(np.sum(weight * (need / a) ** 2))

    found = np.array(split(questions, asking))
    assert np.sum((found * reach) ** p) ** (1 / p) == pytest.approx(1.0, abs=1e-8)
    shares = minimize(  # of the norm, which softmax keeps at 1
        lambda u: error(softmax(u) ** (1 / p) / reach), np.zeros(3), method="Nelder-Mead",
        options={"xatol": 1e-10, "fatol": 1e-12, "maxiter": 5000},
    )  # fmt: skip
    assert error(found) == pytest.approx(shares.fun, rel=1e-6)


def test_one_plan_costs_one_epsilon_and_is_charged_once(tmp_path):
    path = tmp_path / "study.db"
    Budget.create(path, epsilon=1.5, population="patients", neighbors=Neighbors.ADD_REMOVE)
    t = table(budget=path, population="patients").sample(Poisson(0.1))
    one, two = t.plan([t.count(), t.mean("x", (0, 80))]).run(epsilon=1.0)
    assert one.guarantee == two.guarantee
    assert one.guarantee.epsilon() <= 1.0
    assert len(Budget.open(path, "patients").log()) == 1
    with pytest.raises(BudgetExceeded):
        t.count().run(epsilon=1.0)
    assert t.count().run(epsilon=0.4).value is not None


def test_files_and_frames_answer_alike(tmp_path):
    pq.write_table(DATA, tmp_path / "people.parquet", row_group_size=700)
    found = []
    for source in (DATA, tmp_path / "people.parquet"):
        t = open_table(source, id="person", key=seeded_key(5), population="people").sample(Poisson(0.3))
        asked = [t.mean("x", (0, 80)).by("g", ["a", "b"]), t.median("x", (0, 80))]
        from privamp.core.ledger import REGISTRY

        found.append([release.value for release in t.plan(asked).run(epsilon=1.0)])
        REGISTRY.__init__()
    np.testing.assert_array_equal(found[0][0], found[1][0])
    assert found[0][1] == found[1][1]


REFUSED = [
    (lambda t: t.mean("nothing", (0, 1)), "no column 'nothing'"),
    (lambda t: t.mean("x", None), "bounds must be two public numbers"),
    (lambda t: t.mean("x", (1, 0)), "lowest below"),
    (lambda t: t.mean("x", (0, 1), missing=7.0), "missing"),
    (lambda t: t.count().by("g", "a"), "list of its values"),
    (lambda t: t.count().by("g", []), "at least one value"),
    (lambda t: t.count().by("g", ["a", "a"]), "given once"),
    (lambda t: t.count().by("g", [0.5]), "must be text"),
    (lambda t: t.count().by("x", ["a"]), "give values of that type"),
    (lambda t: t.count().by("g", ["a"]).by("g", ["b"]), "split by 'g'"),
    (lambda t: t.join(t), "cannot be joined"),
    (lambda t: t.plan([]), "at least one question"),
    (lambda t: t.plan([table().count()]), "its own table"),
    (lambda t: t.sample(PoissonPPS(0.5, 0.1)), "treats all records alike"),
    (lambda t: t.sample(0.1), "such as Poisson"),
    (lambda t: t.histogram("x", [1, 1]), "increasing order"),
    (lambda t: t.histogram("x", 0, (0, 1)), "bins"),
    (lambda t: t.quantile("x", [], (0, 1)), "at least one probability"),
    (lambda t: t.median("x", (0, 1)).run(epsilon=0), "epsilon"),
    (lambda t: t.count().weighing(0), "weight"),
    (lambda t: open_table(3), "must be a file"),
    (lambda t: open_table(DATA, id="nobody"), "no id column"),
    (lambda t: open_table(DATA, key=seeded_key(1)), "needs a label"),
]


@pytest.mark.parametrize(("ask", "sentence"), REFUSED, ids=[sentence for _, sentence in REFUSED])
def test_what_cannot_be_asked_is_said_in_one_sentence(ask, sentence):
    with pytest.raises(InvalidInput, match=sentence):
        ask(table())


def test_the_sample_of_a_key_answers_once():
    t = table(key=seeded_key(9), population="people")
    t.count().run(epsilon=1.0)
    with pytest.raises(InvalidInput, match="a release was made"):
        t.median("x", (0, 80)).run(epsilon=1.0)


def test_intervals_cover_as_often_as_they_say():
    """200 repetitions; `benchmarks/query_coverage.py` takes more, and more columns."""
    truth, hits = np.array([X[g == GROUP].mean() for g in "abc"]), 0
    median, under = np.median(X), 0
    for k in range(200):
        t = open_table(DATA, key=seeded_key(k), population="covered", id="person").sample(Poisson(0.3))
        means, middle = t.plan([t.mean("x", (0, 80)).by("g", ["a", "b", "c"]), t.median("x", (0, 80))]).run(epsilon=1.0)
        low, high = means.interval(0.9)
        hits += np.sum((low <= truth) & (truth <= high))
        low, high = middle.interval(0.9)
        under += low <= median <= high
    assert 0.86 <= hits / 600 <= 0.95  # 0.9 and three standard errors, and a little for what is rounded outward
    assert 0.83 <= under / 200 <= 0.97


def test_text_that_is_no_text_is_missing():
    """Files can hold bytes that are no UTF-8; one of them must not stop a question."""
    cells = pa.array([b"yes", b"\xff\xfe", b"7", b"\xc3("], pa.binary())
    broken = pa.Array.from_buffers(pa.string(), 4, cells.buffers())
    for column in (broken, broken.dictionary_encode()):
        t = open_table(pa.table({"x": column}))
        assert t.sum("x", (-5, 5)).run(epsilon=GREAT).value == pytest.approx(6.0, abs=0.05)
        np.testing.assert_allclose(t.count().by("x", ["yes", "no"]).run(epsilon=GREAT).value, [1, 0], atol=0.05)
