"""Every job and every releasing command through one door: a key, a budget, and nothing before it is paid."""

import csv
import json
import tracemalloc
from importlib.util import find_spec
from types import SimpleNamespace

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from typer.testing import CliRunner

from privamp import (
    Budget,
    BudgetExceeded,
    ClusterSampling,
    ExactLaplace,
    Gaussian,
    Guarantee,
    InvalidInput,
    Key,
    Laplace,
    Neighbors,
    Poisson,
    PrivateKMeans,
    PrivateMean,
    PrivateSum,
    Rounds,
    Stratified,
    WithoutReplacement,
    bootstrap,
    open_table,
    private_norm_histogram,
    survey,
)
from privamp.adapters.batches import KeyedBatches
from privamp.cli.application import app
from privamp.core.ledger import REGISTRY
from privamp.engines import local
from privamp.sgd import Descent, PrivateLinear, PrivateLogistic

AR, RO = Neighbors.ADD_REMOVE, Neighbors.REPLACE_ONE
N = 200
X = np.arange(N) % 10 / 10.0
ROWS = np.stack([X, X[::-1]], axis=1)
STRATA = np.where(np.arange(N) < 80, "a", "b")


def _stored(folder, key, budget):
    pq.write_table(pa.table({"person": np.arange(N), "x": X}), folder / "data.parquet")
    sample = local.draw(folder / "data.parquet", Poisson(0.5), key=key, id="person")
    return sample.release_sum(ExactLaplace(2.0, 1.0, 2.0**-20), "x", budget=budget)


def _query(folder, key, budget):
    pq.write_table(pa.table({"person": np.arange(N), "x": X}), folder / "data.parquet")
    table = open_table(folder / "data.parquet", id="person", key=key, population="people", budget=budget)
    return table.sample(Poisson(0.5)).mean("x", (0, 1)).run(epsilon=0.5)


def _descent(folder, key, budget):
    plan = Descent(design=Poisson(0.2), sigma=2.0, steps=3, population=N)
    return plan.run(lambda at, rows, counts: np.zeros(1), np.zeros(1), N, key, budget=budget)


def _survey(design, **options):
    asked = {"bounds": (0, 1), "epsilon": 0.5} | options
    return lambda folder, key, budget: survey.estimate(design, X, key=key, budget=budget, **asked)


JOBS = {  # name: (job, relation)
    "sum": (lambda folder, key, budget: PrivateSum(bounds=1.0, epsilon=0.5).release(X, key, budget=budget), AR),
    "sampled sum": (
        lambda folder, key, budget: PrivateSum(
            bounds=1.0, epsilon=0.5, sampler="privacy-constrained", scale=5.0
        ).release(X, key, budget=budget),
        AR,
    ),
    "mean": (lambda folder, key, budget: PrivateMean(bounds=1.0, epsilon=0.5).release(X, key, budget=budget), AR),
    "k-means": (
        lambda folder, key, budget: PrivateKMeans(2, epsilon=0.5, radius=2.0, n_iter=2).fit(
            ROWS, key=key, budget=budget
        ),
        AR,
    ),
    "norm histogram": (
        lambda folder, key, budget: private_norm_histogram(X, radius=1.0, epsilon=0.5, key=key, budget=budget),
        AR,
    ),
    "survey, Poisson ratio": (_survey(Poisson(0.5)), AR),
    "survey, Poisson total": (_survey(Poisson(0.5), statistic="total"), AR),
    "survey, simple random": (_survey(WithoutReplacement(50, N)), RO),
    "survey, strata": (
        _survey(Stratified({"a": WithoutReplacement(20, 80), "b": WithoutReplacement(30, 120)}), stratum=STRATA),
        RO,
    ),
    "survey, adjusted": (
        lambda folder, key, budget: survey.adjust(
            WithoutReplacement(50, N), X, bounds=(0, 1), epsilon=0.5, classes=STRATA, key=key, budget=budget
        ),
        RO,
    ),
    "survey, pilot": (
        lambda folder, key, budget: survey.pilot(
            WithoutReplacement(50, N), X, bounds=(0, 1), epsilon=0.5, key=key, budget=budget
        ),
        RO,
    ),
    "survey, clusters": (
        _survey(ClusterSampling(20, 50, max_size=4), cluster=np.arange(N) // 4, sd="range"),
        AR,
    ),
    "bootstrap": (
        lambda folder, key, budget: bootstrap.run(
            X, bounds=(0, 1), epsilon=0.5, resamples=4, size=10, key=key, budget=budget
        ),
        RO,
    ),
    "little bootstrap": (
        lambda folder, key, budget: bootstrap.run(
            X, bounds=(0, 1), method="little", epsilon=0.5, resamples=(4, 2), key=key, budget=budget
        ),
        RO,
    ),
    "descent": (_descent, AR),
    "linear": (
        lambda folder, key, budget: PrivateLinear(Poisson(0.2), sigma=2.0, steps=3, population=N).fit(
            ROWS, X, key=key, budget=budget
        ),
        AR,
    ),
    "logistic": (
        lambda folder, key, budget: PrivateLogistic(Poisson(0.2), sigma=2.0, steps=3, population=N).fit(
            ROWS, X > 0.5, key=key, budget=budget
        ),
        AR,
    ),
    "batches for other trainers": (
        lambda folder, key, budget: KeyedBatches(Rounds(Poisson(0.2), 3), N, Laplace(5.0), key=key, budget=budget),
        AR,
    ),
    "sum of a file": (_stored, AR),
    "query": (_query, AR),
}


WHOLE = (  # certified before the first draw
    "k-means", "bootstrap", "little bootstrap", "descent", "linear", "logistic", "batches for other trainers"
)  # fmt: skip


GAUSSIAN = ("bootstrap", "little bootstrap", "descent", "linear", "logistic", "train")


def budgets(folder, job, relation):
    """One that is too small and one that is large enough; by a rule that counts what the job releases quickly."""
    delta, rule = (1e-3 if job in GAUSSIAN else 0.0), "basic" if "bootstrap" in job else None
    return [made(folder, name, relation, e, delta, rule) for name, e in (("small", 0.02), ("large", 50.0))]


def made(folder, name, relation, epsilon, delta=1e-3, rule=None):
    limit = {"epsilon": epsilon, "delta": delta, "rule": rule, "neighbors": relation}
    return Budget.create(folder / f"{name}.db", population="people", **limit)


def check_entry(budget):
    """One answered entry, whose certificate is recomputed and whose draw is named."""
    (entry,) = budget.log()
    assert entry.state == "answered"
    (reserved,) = [event for event in budget._store.events() if event.number == entry.number]
    assert Guarantee.from_json(reserved.told["certificate"]).claims  # of the charge, before anything was released
    assert Guarantee.from_json(entry.certificate).claims
    assert reserved.draw
    return entry.certificate


@pytest.mark.parametrize("job", JOBS)
def test_a_budget_pays_before_anything_is_released(job, tmp_path):
    run, relation = JOBS[job]
    small, large = budgets(tmp_path, job, relation)
    key = Key.generate()
    with pytest.raises((BudgetExceeded, InvalidInput), match=r"left|delta"):
        run(tmp_path, key, small)
    assert small.log() == []
    if job in WHOLE:
        run(tmp_path, key, large)  # nothing was drawn, and the key is as fresh as before
    else:
        with pytest.raises(InvalidInput, match=r"closed|once|fresh"):
            run(tmp_path, key, large)  # a refused charge closes its sample
        assert large.log() == []
        run(tmp_path, Key.generate(), large)
    check_entry(large)


@pytest.mark.parametrize("job", JOBS)
def test_a_key_answers_once(job, tmp_path):
    run, _ = JOBS[job]
    key = Key.generate()
    run(tmp_path, key, None)
    if "survey" in job or job == "sum of a file":
        return  # one sample may be asked again: its ledger adds that up
    with pytest.raises(InvalidInput, match=r"fresh|once"):
        run(tmp_path, key, None)


def test_a_second_charge_of_one_key_is_refused_by_another_process_too(tmp_path):
    run, relation = JOBS["bootstrap"]
    key, budget = Key.generate(), made(tmp_path, "b", relation, 50.0)
    run(tmp_path, key, budget)
    REGISTRY.clear()  # as another process would know nothing
    with pytest.raises(InvalidInput, match="charged"):
        run(tmp_path, key, budget)
    assert len(budget.log()) == 1


def test_a_finished_sample_keeps_its_identity_and_total_only():
    """100,000 samples: what is kept of each is its fingerprint, and one total for all."""
    noise, design, key = Gaussian(1.0), Poisson(0.5), Key.generate()
    many, before = 100_000, len(REGISTRY)

    def finished(first, last):
        for number in range(first, last):
            draw = number.to_bytes(16, "little")
            ledger = REGISTRY.opened(draw, Ledger())
            ledger.declare([noise], functions=False)
            ledger.register(noise)
            REGISTRY.settle(draw)

    from privamp.core.ledger import Ledger

    finished(0, 1000)
    tracemalloc.start()
    finished(1000, many)
    kept, _ = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert len(REGISTRY) == before + many
    assert kept / many < 200  # bytes: 49 of the fingerprint, the rest is its place in the table
    with pytest.raises(InvalidInput, match="declared plan"):
        REGISTRY.find((5).to_bytes(16, "little")).register(noise)
    sample = design.draw(10, key).declare([noise], functions=False)
    sample.release(noise, np.ones(10))
    spent = sample.guarantee()
    again = design.draw(10, key)
    assert again.ledger.entries == (noise,)
    assert again.guarantee() == spent
    with pytest.raises(InvalidInput, match="declared plan"):
        again.release(noise, np.ones(10))
    REGISTRY.clear()


def _table(folder):
    path = folder / "data.csv"
    with path.open("w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(["a", "b"])
        writer.writerows(ROWS.tolist())
    return path


def _training_data(folder):
    path = folder / "data.npz"
    np.savez(path, X_train=ROWS.astype(np.float32), y_train=(X > 0.5).astype(np.int64))
    return path


COMMANDS = {  # name: (arguments, relation, the file it writes)
    "survey estimate": (
        lambda folder: ["survey", "estimate", str(_table(folder)), "--size", "50", "--value", "a",
                        "--bounds", "0:1", "--epsilon", "0.5", "--report", str(folder / "page.html")],
        RO, "page.html",
    ),
    "survey pilot": (
        lambda folder: ["survey", "pilot", str(_table(folder)), "--size", "50", "--value", "a",
                        "--bounds", "0:1", "--epsilon", "0.5", "--report", str(folder / "page.html")],
        RO, "page.html",
    ),
    "bootstrap": (
        lambda folder: ["bootstrap", str(_table(folder)), "--column", "a", "--bounds", "0:1", "--epsilon", "0.5",
                        "--resamples", "4", "--size", "10", "--report", str(folder / "page.html")],
        RO, "page.html",
    ),
    "query": (
        lambda folder: ["query", str(_table(folder)), "--mean", "a", "--bounds", "0:1", "--epsilon", "0.5",
                        "--rate", "0.5", "--report", str(folder / "page.html")],
        AR, "page.html",
    ),
    "kmeans": (
        lambda folder: ["kmeans", str(_table(folder)), "--k", "2", "--radius", "2", "--epsilon", "0.5",
                        "--iterations", "2", "--out", str(folder / "centres.csv")],
        AR, "centres.csv",
    ),
    "train": (
        lambda folder: ["train", "--data", str(_training_data(folder)), "--model", "logistic", "--epsilon", "0.5",
                        "--delta", "1e-5", "--population", "200", "--rate", "0.2", "--steps", "3", "--classes", "2",
                        "--out", str(folder / "model.pt")],
        AR, "model.pt",
    ),
}  # fmt: skip


@pytest.mark.parametrize("command", COMMANDS)
def test_a_command_writes_nothing_that_its_budget_does_not_pay(command, tmp_path):
    if command == "train" and find_spec("torch") is None:
        pytest.skip("needs torch")
    arguments, relation, written = COMMANDS[command]
    small, large = budgets(tmp_path, command, relation)
    asked = [*arguments(tmp_path), "--json", "--budget"]
    refused = CliRunner().invoke(app, [*asked, str(small.path)])
    assert refused.exit_code == 1, refused.output
    answer = json.loads(refused.stdout or refused.output)
    assert answer["kind"] == "BudgetExceeded"
    assert not (tmp_path / written).exists()
    assert small.log() == []
    paid = CliRunner().invoke(app, [*asked, str(large.path)])
    assert paid.exit_code == 0, paid.output
    assert (tmp_path / written).exists()
    check_entry(large)


def test_a_budget_of_another_relation_is_refused(tmp_path):
    budget = made(tmp_path, "ro", RO, 50.0)
    with pytest.raises(InvalidInput, match="relation"):
        PrivateKMeans(2, epsilon=0.5, radius=2.0).fit(ROWS, budget=budget)
    assert budget.log() == []


@pytest.mark.parametrize("job", JOBS)
def test_what_is_no_budget_or_no_key_is_refused_in_one_sentence(job, tmp_path):
    """The path of a budget pays for nothing, and an empty text is no key: neither counts as none."""
    run, _ = JOBS[job]
    for wrong in ("study.db", tmp_path, False):
        with pytest.raises(InvalidInput, match="must be a Budget" if job != "query" else "[Bb]udget"):
            run(tmp_path, Key.generate(), wrong)
    for wrong in ("", b"", "secret"):
        with pytest.raises(InvalidInput, match="must be a Key"):
            run(tmp_path, wrong, None)


def test_estimate_takes_a_sample_or_a_design_with_a_key():
    with pytest.raises(InvalidInput, match="already drawn"):
        survey.estimate(Poisson(0.5).draw(N), X, bounds=(0, 1), epsilon=1.0, key=Key.generate())
    with pytest.raises(InvalidInput, match="sample or a design"):
        survey.estimate(SimpleNamespace(), X, bounds=(0, 1), epsilon=1.0)
