"""Questions to a table on a cluster: the sample and the sums are those of files, exactly, and only sums come back."""

import numpy as np
import pytest

from privamp import Budget, InvalidInput, Poisson, WithoutReplacement, open_table
from privamp.core.ledger import REGISTRY
from privamp.engines.spark_digest import CLUSTER, SAME_TABLE
from privamp.errors import BudgetExceeded
from privamp.mechanisms.fixed_point import ExactGaussian, ExactLaplace
from privamp.testing import seeded_key

DESIGNS = [Poisson(1.0), Poisson(0.3), WithoutReplacement(200, 2000)]


def questions(table):
    return [
        table.count(),
        table.sum("a", (-3, 3)),
        table.mean("a", (-3, 3)).by("stratum", ["east", "west", None]),
        table.variance("b", (-3, 3)),
        table.proportion("stratum", "north"),
        table.histogram("b", 5, (-3, 3), missing=True),
        table.quantile("a", [0.1, 0.5], (-3, 3)).by("cluster", [3, 4]),
    ]


def without_noise(monkeypatch):
    for kind in (ExactLaplace, ExactGaussian):
        monkeypatch.setattr(kind, "release", lambda self, units, stream: np.asarray(units) * self.grid)


@pytest.mark.parametrize(("design", "delta"), [(DESIGNS[0], 0.0), (DESIGNS[1], 1e-6), (DESIGNS[2], 0.0)], ids=str)
def test_sums_are_those_of_a_frame_whatever_the_partitions(design, delta, table, records, monkeypatch):
    without_noise(monkeypatch)
    found = []
    for source in (records.arrow(), table.repartition(3), table.coalesce(1)):
        REGISTRY.clear()  # as in a new process
        asked = open_table(source, id="uid", key=seeded_key(5), population="people").sample(design)
        answers = asked.plan(questions(asked)).run(epsilon=1.0, delta=delta)
        found.append([(answer.names, np.asarray(answer.value).tolist()) for answer in answers])
    assert found[0] == found[1] == found[2]


def test_answers_hold_the_truth_and_are_paid_for(table, records, tmp_path):
    budget = Budget.create(tmp_path / "study.db", population="people", epsilon=1.5)
    asked = open_table(table, id="uid", budget=budget, population="people").sample(Poisson(0.5))
    mean = asked.mean("a", (-3, 3)).run(epsilon=1.0)
    low, high = mean.interval(1 - 1e-9)
    assert low < float(np.mean(records.x[:, 0])) < high
    assert mean.guarantee.epsilon() <= 1.0
    assert {SAME_TABLE, CLUSTER} <= set(mean.guarantee.assumes)
    assert [entry.state for entry in budget.log()] == ["answered"]
    with pytest.raises(BudgetExceeded):
        asked.count().run(epsilon=1.0)
    assert len(budget.log()) == 1


def test_what_a_cluster_cannot_do_is_refused_by_name(table):
    with pytest.raises(InvalidInput, match="id='…'"):
        open_table(table)
    with pytest.raises(InvalidInput, match="person= needs all records"):
        open_table(table, id="uid", person="cluster")
    asked = open_table(table, id="uid")
    with pytest.raises(InvalidInput, match="interval=True"):
        asked.median("a", (-3, 3), interval=False).run(epsilon=1.0)
    with pytest.raises(InvalidInput, match="no column 'c'"):
        asked.mean("c", (-3, 3))
    with pytest.raises(InvalidInput, match="must hold numbers"):
        asked.mean("x", (-3, 3))
    with pytest.raises(InvalidInput, match="another number"):
        asked.sample(WithoutReplacement(10, 100)).count().run(epsilon=1.0)


def test_repeated_ids_are_refused_before_anything_is_paid(table, tmp_path):
    budget = Budget.create(tmp_path / "study.db", population="people", epsilon=1.5)
    asked = open_table(table.union(table.limit(1)), id="uid", budget=budget, population="people")
    with pytest.raises(InvalidInput, match="ids must be unique"):
        asked.count().run(epsilon=1.0)
    assert not budget.log()


def test_a_key_answers_once(table):
    asked = open_table(table, id="uid", key=seeded_key(6), population="people").sample(Poisson(0.5))
    asked.count().run(epsilon=1.0)
    with pytest.raises(InvalidInput, match="already drawn this sample"):
        asked.count().run(epsilon=1.0)


def test_columns_that_cannot_be_sent_are_not_there(spark):
    df = spark.sql("select id, make_interval(1) as odd, map('a', 1) as pairs from range(20)")
    asked = open_table(df, id="id")
    with pytest.raises(InvalidInput, match="odd"):
        asked.mean("odd", (0, 1))
    assert asked.count().run(epsilon=50.0).value == pytest.approx(20, abs=5)
    assert asked.mean("id", (0, 20)).run(epsilon=50.0).value == pytest.approx(9.5, abs=5)
