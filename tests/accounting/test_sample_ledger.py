"""A sample that outlives its program: charged once, continued under the same terms, refused when it is used up."""

import os
import signal
import subprocess
import sys

import numpy as np
import pytest

from privamp import (
    Budget,
    BudgetExceeded,
    InvalidInput,
    Key,
    Laplace,
    Poisson,
    PureDP,
    PureFilter,
    RenyiFilter,
    amplify,
)
from privamp.accounting import budget_store
from privamp.core.ledger import REGISTRY

DESIGN = Poisson(0.1)
ONES = np.ones(40)
MONTHLY = Laplace(24.0)


@pytest.fixture
def budget(tmp_path):
    return Budget.create(tmp_path / "study.db", population="people", epsilon=1.0)


@pytest.fixture
def key():
    return Key.generate()


def program(budget):
    """What a new program has: the file, and no memory."""
    REGISTRY.clear()
    budget_store._KNOWN.clear()
    return Budget.open(budget.path)


def panel(budget, key, plan):
    opened = program(budget)
    return DESIGN.draw(40, key).declare(plan).charge(opened, note="panel")


def test_twelve_programs_are_charged_once_and_the_thirteenth_is_refused(budget, key):
    plan = [MONTHLY] * 12
    for month in range(12):
        sample = panel(budget, key, plan)
        assert len(sample.ledger.entries) == month
        sample.release(MONTHLY, ONES)
    truth = amplify(PureDP(0.5), DESIGN).epsilon()
    (entry,) = budget.log()
    assert (entry.state, entry.releases) == ("answered", 12)
    assert budget.status().spent["epsilon"] == pytest.approx(truth, abs=1e-9)
    late = panel(budget, key, plan)
    assert late.guarantee().epsilon() == pytest.approx(truth, abs=1e-9)
    with pytest.raises(InvalidInput, match="all answers of its declared plan, 12 releases"):
        late.release(MONTHLY, ONES)
    assert budget.verify().totals["people"].main_open == 0


def test_without_a_durable_ledger_each_program_would_start_anew(key):
    """Negative control: a process that has forgotten the draw lets it be asked again."""
    for _ in range(2):
        REGISTRY.clear()
        sample = DESIGN.draw(40, key).declare([MONTHLY])
        sample.release(MONTHLY, ONES)
        assert len(sample.ledger.entries) == 1


@pytest.mark.parametrize("limit", [PureFilter(0.5), RenyiFilter(64.0, 0.5, 1e-6)], ids=["pure", "renyi"])
def test_a_limit_is_continued_with_what_was_used_of_it(tmp_path, key, limit):
    budget = Budget.create(tmp_path / "limited.db", population="people", epsilon=2.0, delta=1e-5)
    made = 0
    with pytest.raises(BudgetExceeded):  # noqa: PT012
        for _ in range(100):
            opened = program(budget)
            sample = DESIGN.draw(40, key).limit(limit).charge(opened)
            for _ in range(3):
                sample.release(Laplace(20.0), ONES)
                made += 1
    alone = DESIGN.draw(40, Key.generate()).limit(limit)
    for _ in range(made):
        alone.release(Laplace(20.0), ONES)
    with pytest.raises(BudgetExceeded):  # one program comes exactly as far
        alone.release(Laplace(20.0), ONES)
    assert budget.log()[0].releases == made
    assert len(budget.log()) == 1


def test_what_earlier_programs_assumed_is_not_forgotten(budget, key):
    def again():
        opened = program(budget)
        return DESIGN.draw(40, key).limit(PureFilter(0.5)).charge(opened)

    first = again()
    first.run(PureDP(0.1), lambda drawn, stream: 0)
    first.release(Laplace(20.0), ONES)
    assert again().guarantee().assumes == first.guarantee().assumes
    assert len(first.guarantee().assumes) > len(DESIGN.draw(40, key, 1).guarantee().assumes)


def test_a_release_that_another_program_made_meanwhile_is_refused(budget, key):
    plan = [MONTHLY] * 2
    opened = Budget.open(budget.path)
    one = DESIGN.draw(40, key).declare(plan).charge(opened).ledger
    REGISTRY.clear()
    two = DESIGN.draw(40, key).declare(plan).charge(Budget.open(budget.path)).ledger
    assert one is not two
    one.register(MONTHLY)
    with pytest.raises(InvalidInput, match="another program has made release 1"):
        two.register(MONTHLY)
    one.register(MONTHLY)
    assert budget.log()[0].releases == 2


def test_a_crash_between_writing_and_noise_counts(budget, key, tmp_path):
    (tmp_path / "key").write_bytes(key.secret_bytes())
    code = f"""
import os, signal
import numpy as np
from privamp import Budget, Key, Laplace, Poisson, Population
key = Key.from_bytes(open({str(tmp_path / "key")!r}, "rb").read())
people, budget = Population(40, "population"), Budget.open({str(budget.path)!r})
sample = Poisson(0.1).draw(people, key).declare([Laplace(24.0)] * 2).charge(budget)
sample.release(Laplace(24.0), lambda drawn: os.kill(os.getpid(), signal.SIGKILL))
"""
    crashed = subprocess.run([sys.executable, "-c", code], timeout=120)
    assert crashed.returncode == -signal.SIGKILL
    (entry,) = Budget.open(budget.path).log()
    assert (entry.state, entry.releases) == ("spent", 1)
    with pytest.raises(InvalidInput, match="noise was not drawn"):
        budget.cancel(entry.number, "it crashed")
    sample = panel(budget, key, [MONTHLY] * 2)
    sample.release(MONTHLY, ONES)
    with pytest.raises(InvalidInput, match="declared plan, 2 releases"):
        sample.release(MONTHLY, ONES)


def test_a_cancelled_payment_pays_for_nothing_and_frees_the_sample(budget, key):
    sample = panel(budget, key, [MONTHLY])
    (entry,) = budget.log()
    budget.cancel(entry.number, "another plan")
    with pytest.raises(InvalidInput, match="cancelled"):
        sample.release(MONTHLY, ONES)
    panel(budget, key, [MONTHLY] * 2).release(MONTHLY, ONES)
    assert [entry.state for entry in budget.log()] == ["cancelled", "answered"]


def test_the_log_names_the_key_of_a_sample(budget, key):
    """So that one can tell which samples change when a key is replaced."""
    panel(budget, key, [MONTHLY])
    panel(budget, Key.generate(), [MONTHLY])
    drawn = [entry for entry in budget.log() if entry.key == key.fingerprint.hex()]
    assert [entry.draw for entry in drawn] == [DESIGN.draw(40, key)._key.fingerprint.hex()]


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system does not fork")
def test_a_fork_is_refused_and_loses_nothing(budget, key):
    sample = panel(budget, key, [MONTHLY] * 2)
    sample.release(MONTHLY, ONES)
    child = os.fork()
    if child == 0:
        code = 1
        try:
            sample.release(MONTHLY, ONES)
        except InvalidInput:
            code = 0
        finally:
            os._exit(code)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    assert budget.log()[0].releases == 1


def test_a_release_costs_the_same_however_many_there_were(tmp_path, monkeypatch):
    """Counted in SQLite's own steps, so that no clock decides."""
    from privamp import Budget, Key, Laplace, Poisson, Population, PureFilter
    from privamp.accounting.budget_file import StoreFile

    budget = Budget.create(tmp_path / "study.db", population="people", epsilon=10.0)
    sample = Poisson(0.5).draw(Population(10, "people"), Key.generate()).limit(PureFilter(1.0)).charge(budget)
    real, steps = StoreFile._connect, [0]

    def counted(self, mode):
        connection = real(self, mode)
        connection.set_progress_handler(lambda: steps.__setitem__(0, steps[0] + 1), 1)
        return connection

    monkeypatch.setattr(StoreFile, "_connect", counted)
    work = []
    for _ in range(60):
        steps[0] = 0
        sample.release(Laplace(1e4), [0.0] * 10)
        work.append(steps[0])
    assert work[0] > 50
    assert work[-1] <= work[3] + 20  # a search through 60 releases takes several hundred steps more
