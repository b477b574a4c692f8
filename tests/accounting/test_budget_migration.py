"""A store of version 1 becomes one of version 2 in a new file, with every spend and without a way to give one back."""

import sqlite3

import pytest

from privamp import Budget, InvalidInput, PureDP
from privamp.accounting.budget_migration import migrate
from privamp.datasets import stores


@pytest.fixture
def old(tmp_path):
    stores.version_1(tmp_path / "old.db")
    return tmp_path / "old.db"


def test_every_spend_is_there_and_nothing_can_be_given_back(old, tmp_path):
    before = old.read_bytes()
    with pytest.raises(InvalidInput, match=r"version 1 .* 'privamp budget migrate'"):
        Budget.open(old)
    checked = migrate(old, tmp_path / "new.db")
    assert checked.totals["patients"].main_spent == 3 * 10**14
    assert old.read_bytes() == before
    budget = Budget.open(tmp_path / "new.db", "patients")
    assert [entry.note for entry in budget.log()] == [f"was {state}" for state in stores.STATES]
    assert [entry.state for entry in budget.log()] == ["answered", "spent", "failed", "cancelled"]
    assert budget.status().spent["epsilon"] == pytest.approx(0.3)
    assert budget.status().reserved["epsilon"] == pytest.approx(0.1)
    for entry in budget.log():
        with pytest.raises(InvalidInput, match="can be cancelled"):
            budget.cancel(entry.number, "to see")
    with pytest.raises(InvalidInput, match="already charged"):
        budget.reserve(PureDP(0.1), draw=b"d" * 16)
    budget.spend(PureDP(2.6))
    assert Budget.open(tmp_path / "new.db", "nurses").status().left == {"epsilon": 1.0}


def test_nothing_is_written_over_a_file_or_from_anything_else(old, tmp_path):
    (tmp_path / "new.db").write_text("mine")
    with pytest.raises(InvalidInput, match="not overwritten"):
        migrate(old, tmp_path / "new.db")
    Budget.create(tmp_path / "today.db", population="people", epsilon=1.0)
    for name in ("today.db", "none.db", "new.db"):
        with pytest.raises(InvalidInput, match="version 1"):
            migrate(tmp_path / name, tmp_path / "other.db")
    assert not (tmp_path / "other.db").exists()


@pytest.mark.parametrize("spent", [0, 10**14, 4 * 10**14])
def test_totals_that_are_not_the_sum_are_refused(tmp_path, spent):
    old = tmp_path / "old.db"
    stores.version_1(old, spent=spent)
    with pytest.raises(InvalidInput, match="not the sum of its entries"):
        migrate(old, tmp_path / "new.db")
    assert not (tmp_path / "new.db").exists()


def test_another_limit_is_refused(old, tmp_path):
    with sqlite3.connect(old) as connection:
        connection.execute("UPDATE budgets SET main_limit = main_limit + 1")
    with pytest.raises(InvalidInput, match="limit is not that of its rule"):
        migrate(old, tmp_path / "new.db")


def test_a_journal_of_another_store_is_not_written_into_a_new_one(tmp_path):
    """A crash leaves a journal; a new file of the same name would be undone by it."""
    (tmp_path / "study.db-journal").write_bytes(b"left over")
    with pytest.raises(InvalidInput, match="left over from another store"):
        Budget.create(tmp_path / "study.db", population="people", epsilon=1.0)
