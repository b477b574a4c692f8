"""A store with one budget, for the tests of budgets."""

import pytest

from privamp import Budget


@pytest.fixture
def path(tmp_path):
    return tmp_path / "study.db"


@pytest.fixture
def budget(path):
    return Budget.create(path, population="patients", epsilon=1.0)
