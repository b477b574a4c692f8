"""A kept key asks for the label of the population at every door; a fresh key does not, and labels draw as before."""

import hashlib
import inspect
from importlib import import_module
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import privamp
from privamp import (
    BallsInBins,
    Budget,
    CyclicPoisson,
    InvalidInput,
    Key,
    Neighbors,
    Poisson,
    Population,
    PrivateKMeans,
    PrivateSum,
    Rounds,
    WithoutReplacement,
    bootstrap,
    private_norm_histogram,
    survey,
)
from privamp.core.ledger import REGISTRY
from privamp.engines import local
from privamp.sgd import Descent, PrivateLinear
from privamp.testing import seeded_key

N = 60
X = np.arange(N) % 10 / 10.0
ROWS = np.stack([X, X[::-1]], axis=1)
KEPT = bytes(range(32))


def kept():
    return Key.from_bytes(KEPT)


def table(folder):
    path = folder / "data.parquet"
    if not path.exists():
        pq.write_table(pa.table({"person": np.arange(N), "x": X}), path)
    return path


def descend(key, population, budget=None):
    plan = Descent(design=Poisson(0.2), sigma=2.0, steps=2, population=N)
    return plan.run(lambda at, rows, counts: np.zeros(1), np.zeros(1), population, key, budget=budget)


DOORS = {  # what draws from a data set by a key, with a label or without: door(folder, key, label)
    "core.design.Design.draw": lambda folder, key, label: Poisson(0.5).draw(Population(N, label), key),
    "core.schedule.Schedule.draw": lambda folder, key, label: next(
        Rounds(Poisson(0.5), 2).draw(Population(N, label), key)
    ),
    "core.schedule.Schedule.drawn": lambda folder, key, label: CyclicPoisson(0.1, 2, 4).drawn(
        Population(N, label), key, 0
    ),
    "schedules.rounds.Rounds.drawn": lambda folder, key, label: Rounds(Poisson(0.5), 2).drawn(
        Population(N, label), key, 0
    ),
    "schedules.balls_in_bins.BallsInBins.bins": lambda folder, key, label: BallsInBins(4).bins(
        Population(N, label), key
    ),
    "schedules.balls_in_bins.BallsInBins.drawn": lambda folder, key, label: BallsInBins(4).drawn(
        Population(N, label), key, 0
    ),
    "schedules.balls_in_bins.BallsInBins.draw": lambda folder, key, label: next(
        BallsInBins(4).draw(Population(N, label), key)
    ),
    "schedules.cyclic_poisson.CyclicPoisson.groups": lambda folder, key, label: CyclicPoisson(0.1, 2, 4).groups(
        Population(N, label), key
    ),
    "schedules.cyclic_poisson.CyclicPoisson.drawn": lambda folder, key, label: CyclicPoisson(0.1, 2, 4).drawn(
        Population(N, label), key, 0
    ),
    "engines.local.sample": lambda folder, key, label: local.sample(
        table(folder), Poisson(0.5), key=key, id="person", label=label
    ),
    "engines.local.draw": lambda folder, key, label: local.draw(
        table(folder), Poisson(0.5), key=key, id="person", label=label
    ),
    "engines.local.write": lambda folder, key, label: local.write(
        table(folder), Poisson(0.5), folder / f"{key.fingerprint.hex()}.parquet", key=key, id="person", label=label
    ),
    "sums.release.SumJob.release": lambda folder, key, label: PrivateSum(bounds=1.0, epsilon=0.5, label=label).release(
        X, key
    ),
    "survey.estimation.estimate": lambda folder, key, label: survey.estimate(
        Poisson(0.5), X, bounds=(0, 1), epsilon=0.5, key=key, label=label
    ),
    "survey.piloting.pilot": lambda folder, key, label: survey.pilot(
        WithoutReplacement(20, N), X, bounds=(0, 1), epsilon=0.5, key=key, label=label
    ),
    "survey.adjusting.adjust": lambda folder, key, label: survey.adjust(
        Poisson(0.5), X, bounds=(0, 1), epsilon=0.5, key=key, label=label
    ),
    "sgd.descent.Descent.run": lambda folder, key, label: descend(key, Population(N, label)),
    "sgd.regression.PrivateLinear.fit": lambda folder, key, label: PrivateLinear(
        Poisson(0.2), sigma=2.0, steps=2, population=N
    ).fit(ROWS, X, key=key, population=Population(N, label)),
}

ONCE = {  # jobs that draw once by a key, all their rounds together: job(key, budget)
    "kmeans.estimator.PrivateKMeans.fit": lambda key, budget: PrivateKMeans(2, epsilon=0.5, radius=2.0, n_iter=2).fit(
        ROWS, key=key, budget=budget
    ),
    "kmeans.norm_histogram.private_norm_histogram": lambda key, budget: private_norm_histogram(
        X, radius=1.0, epsilon=0.5, key=key, budget=budget
    ),
    "bootstrap.running.run": lambda key, budget: bootstrap.run(
        X, bounds=(0, 1), epsilon=0.5, resamples=4, size=10, key=key, budget=budget
    ),
}
ELSEWHERE = {  # the same rule, tried where Spark and torch are
    "engines.spark.sample", "engines.spark_sample.draw", "engines.spark_files.write", "spark.sums.release",
    "spark.kmeans.fit",
}  # fmt: skip
INNER = {  # steps inside a door, and what opens a sample that says its label itself
    "bootstrap.drawing.group_averages", "bootstrap.drawing._Group.average", "bootstrap.drawing.first_stage",
    "bootstrap.drawing.resamples_of", "bootstrap.running.conclude", "core.design.Design.subkey",
    "core.ledger.whole_job", "core.population.label_by", "core.population.Population.label_by",
    "core.sample.Sample.__init__", "core.schedule.Schedule.draw", "core.schedule.Schedule.drawn",
    "core.schedule.uniform_bins", "core.ledger.BudgetLike.pay_for_sample", "core.ledger.BudgetLike.reserve",
    "engines.earlier.drawn_before", "engines.kernel.Kernel.of", "engines.kernel.Kernel.facts",
    "engines.local.open_sample", "engines.spark.kernel_for", "engines.spark_digest.Tally.__init__",
    "engines.spark_digest.tallies", "kmeans.fit.Request.paid", "kmeans.fit.run", "kmeans.steps.Steps.__init__",
    "kmeans.privacy_spend.PrivacySpend.__init__",
    "sums.release.SumRelease.draw", "survey.released.paid_sample", "sgd.regression._Regression.fit",
}  # fmt: skip
ROOMS = ("core", "designs", "schedules", "engines", "sums", "survey", "kmeans", "bootstrap", "sgd", "spark")


def callables(module):
    """Public functions and methods that a module defines."""
    for name, found in vars(module).items():
        if getattr(found, "__module__", None) != module.__name__:
            continue
        if inspect.isfunction(found) and not name.startswith("_"):
            yield name, found
        elif inspect.isclass(found):
            for inner, method in vars(found).items():
                method = getattr(method, "__func__", method)
                if inspect.isfunction(method) and (inner == "__init__" or not inner.startswith("_")):
                    yield f"{name}.{inner}", method


def test_every_function_that_takes_a_key_is_known_here():
    """A new door must be tried below, or be named as one that draws once."""
    root, found = Path(privamp.__file__).parent, set()
    for room in ROOMS:
        for file in sorted((root / room).glob("*.py")):
            module = import_module(f"privamp.{room}.{file.stem}".removesuffix(".__init__"))
            names = (name for name, function in callables(module) if "key" in inspect.signature(function).parameters)
            found |= {f"{room}.{file.stem}.{name}" for name in names}
    assert found - set(DOORS) - set(ONCE) - ELSEWHERE - INNER == set()
    assert len(found & set(DOORS)) > 10  # the search finds what it should


@pytest.mark.parametrize("door", DOORS)
def test_a_kept_key_asks_for_the_label_of_a_population(door, tmp_path):
    draw = DOORS[door]
    with pytest.raises(InvalidInput, match="label"):
        draw(tmp_path, kept(), None)
    with pytest.raises(InvalidInput, match="label"):
        draw(tmp_path, kept(), " ")
    draw(tmp_path, kept(), "people")
    draw(tmp_path, Key.generate(), None)
    REGISTRY.clear()
    draw(tmp_path, seeded_key(1), None)  # protects nobody


def test_a_label_is_asked_for_before_anything_is_charged(tmp_path):
    budget = Budget.create(tmp_path / "b.db", population="people", epsilon=9.0, delta=1e-3)
    for run in (
        lambda: descend(kept(), Population(N), budget),
        lambda: PrivateSum(bounds=1.0, epsilon=0.5).release(X, kept(), budget=budget),
        lambda: survey.estimate(Poisson(0.5), X, bounds=(0, 1), epsilon=0.5, key=kept(), budget=budget),
    ):
        with pytest.raises(InvalidInput, match="label"):
            run()
    assert budget.log() == []


@pytest.mark.parametrize("job", ONCE)
def test_a_job_that_draws_once_by_a_key_needs_no_label(job, tmp_path):
    """A second data set by the same kept key is refused, by another program too."""
    relation = Neighbors.REPLACE_ONE if "bootstrap" in job else Neighbors.ADD_REMOVE
    limit = {"epsilon": 50.0, "delta": 1e-3, "rule": "basic", "neighbors": relation}
    budget = Budget.create(tmp_path / "b.db", population="people", **limit)
    ONCE[job](kept(), budget)
    with pytest.raises(InvalidInput, match=r"fresh|once"):
        ONCE[job](kept(), None)
    REGISTRY.clear()  # as another program would know nothing
    with pytest.raises(InvalidInput, match=r"charged|declared plan|used up|fresh"):
        ONCE[job](kept(), budget)
    assert len(budget.log()) == 1


def test_labels_draw_what_they_drew_before():
    for label, digest in {"population": "1f4b44fcc5d7aed1", "people": "83b857561db678cf"}.items():
        drawn = Poisson(0.5).draw(Population(N, label), kept()).reveal_secret()
        assert hashlib.sha256(drawn.positions.tobytes()).hexdigest()[:16] == digest


def test_a_kept_key_stays_kept_and_equals_the_fresh_one_it_came_from():
    fresh = Key.generate()
    again = Key.from_bytes(fresh.secret_bytes())
    assert (fresh.is_kept, again.is_kept, again.subkey("a").is_kept) == (False, True, True)
    assert fresh == again
    drawn = [
        Poisson(0.5).draw(population, key).reveal_secret().positions
        for population, key in ((Population(N), fresh), (Population(N, "population"), again))
    ]
    assert np.array_equal(*drawn)  # what was drawn without a label is found again by its name


def test_a_stored_sample_says_its_label_itself(tmp_path):
    """A file that was written by a fresh key without a label opens with the key that was kept since."""
    key, out = Key.generate(), tmp_path / "sample.parquet"
    written = local.write(table(tmp_path), Poisson(0.5), out, key=key, id="person")
    again = local.open_sample(out, Poisson(0.5), key=Key.from_bytes(key.secret_bytes()))
    assert again.ledger_id == written.ledger_id


def test_a_sample_is_not_named_anew():
    with pytest.raises(InvalidInput, match="already drawn"):
        survey.estimate(Poisson(0.5).draw(N), X, bounds=(0, 1), epsilon=1.0, label="people")
