"""A design that declares the number of records takes a table of that number; nothing is paid before."""

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet as pq
import pytest

from privamp import Budget, InvalidInput, Neighbors, TruncatedPoisson, WithoutReplacement, WithReplacement, open_table

N = 400
DATA = pa.table({"x": np.linspace(0.0, 1.0, N)})
DESIGNS = [WithoutReplacement, WithReplacement, lambda size, n: TruncatedPoisson(0.2, size, n, n)]


@pytest.mark.parametrize("declared", [N - 1, N + 1, 10 * N])
@pytest.mark.parametrize("design", DESIGNS, ids=["without", "with", "truncated"])
def test_another_number_of_records_is_refused_before_payment(design, declared, tmp_path):
    path = tmp_path / "study.db"
    Budget.create(path, epsilon=50.0, population="people", neighbors=Neighbors.REPLACE_ONE)
    t = open_table(DATA, budget=path, population="people").sample(design(90, declared))
    with pytest.raises(InvalidInput, match=f"declares {declared} records"):
        t.count().run(epsilon=1.0)
    assert not Budget.open(path, "people").log()


def test_files_are_counted_too(tmp_path):
    pq.write_table(DATA, tmp_path / "people.parquet", row_group_size=70)
    pa.csv.write_csv(DATA, tmp_path / "people.csv")
    for name in ("people.parquet", "people.csv"):
        t = open_table(tmp_path / name)
        found = t.sample(WithoutReplacement(N, N)).count().run(epsilon=1e4)
        assert found.value == pytest.approx(N, abs=0.1)
        with pytest.raises(InvalidInput, match="another number"):
            t.sample(WithoutReplacement(50, N - 1)).count().run(epsilon=1.0)


def test_a_budget_that_hides_the_number_goes_with_no_design_that_declares_it(tmp_path):
    """Whether the table has one record more is private there, so the refusal looks at public facts alone."""
    path = tmp_path / "study.db"
    Budget.create(path, epsilon=50.0, population="people", neighbors=Neighbors.ADD_REMOVE)
    for n in (N, N - 1):
        t = open_table(DATA, budget=path, population="people").sample(WithoutReplacement(90, n))
        with pytest.raises(InvalidInput, match="which this budget hides"):
            t.count().run(epsilon=1.0)
    assert not Budget.open(path, "people").log()
