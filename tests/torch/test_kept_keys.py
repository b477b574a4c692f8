"""One kept key trains once, in whichever program it is used, and the budget beside it pays once."""

import random
import shutil
import subprocess
import sys
from contextlib import suppress
from types import SimpleNamespace

import pytest

pytest.importorskip("torch", reason="torch is not installed (make test-torch)")

from privamp import Budget, InvalidInput
from privamp.tables.key_providers import FileKey
from privamp.torch.paying import PaidSteps

LIMIT, DELTA = 40.0, 1e-3
SAMPLERS = {
    "uniform": {"noise_multiplier": 1.0},
    "importance": {"noise_multiplier": 1.0},
    "dpis": {
        "target_epsilon": 8.0, "target_delta": DELTA, "size_noise": 20.0, "sum_noise": 30.0, "external_clip": 2.0,
    },
}  # fmt: skip
PROGRAM = """
import sys
from contextlib import suppress
from types import SimpleNamespace
import torch
from torch import nn
from privamp import Budget, PrivampError
from privamp.tables.key_providers import FileKey
from privamp.torch import PrivacyEngine

torch.set_num_threads(1)
key, store, checkpoint, steps, options = sys.argv[1], sys.argv[2], sys.argv[3], int(sys.argv[4]), eval(sys.argv[5])
module = nn.Linear(5, 3)
records = torch.utils.data.TensorDataset(torch.zeros(60, 5), torch.zeros(60, dtype=torch.long))
engine = PrivacyEngine(key=FileKey(key).key(), budget=Budget.open(store))
try:
    engine.make_private(
        module=module, optimizer=torch.optim.SGD(module.parameters(), 0.1), criterion=nn.CrossEntropyLoss(),
        data_loader=records, steps=6, sample_rate=0.3, population=50, max_grad_norm=0.5,
        checkpoint=checkpoint or None, **options,
    )
    engine.train(steps)
except PrivampError as error:
    sys.exit(str(error))
print(engine.step)
"""


def program(key, store, options, checkpoint="", steps=6):
    """Train in a program of its own."""
    call = [sys.executable, "-c", PROGRAM, str(key), str(store), str(checkpoint), str(steps), repr(options)]
    return subprocess.run(call, capture_output=True, text=True, timeout=120, check=False)


def spent(store):
    """What all entries cost, and how many there are."""
    budget = Budget.open(store, read_only=True)
    return budget.status().spent, len(budget.log())


@pytest.fixture
def study(tmp_path):
    FileKey(tmp_path / "key").make()
    Budget.create(tmp_path / "study.db", population="people", epsilon=LIMIT, delta=0.1)
    return tmp_path / "key", tmp_path / "study.db"


@pytest.mark.parametrize("sampler", SAMPLERS)
def test_a_second_program_cannot_train_with_the_key_again(sampler, study):
    options = {"sampler": sampler} | SAMPLERS[sampler]
    first = program(*study, options)
    assert first.returncode == 0, first.stderr
    paid = spent(study[1])
    again = program(*study, options)
    assert again.returncode == 1
    assert "Traceback" not in again.stderr
    assert "this draw was already charged, here or in another run" in again.stderr
    assert spent(study[1]) == paid


def test_other_options_are_the_same_key_used_twice(study):
    assert program(*study, {"sampler": "uniform", "noise_multiplier": 1.0}).returncode == 0
    again = program(*study, {"sampler": "uniform", "noise_multiplier": 3.0})
    assert again.returncode == 1
    assert "Traceback" not in again.stderr


@pytest.mark.parametrize("sampler", SAMPLERS)
def test_a_checkpoint_goes_on_in_a_second_program_and_pays_once(sampler, study, tmp_path):
    options = {"sampler": sampler} | SAMPLERS[sampler]
    first = program(*study, options, tmp_path / "run.secret", steps=3)
    assert first.returncode == 0, first.stderr
    paid = spent(study[1])
    second = program(*study, options, tmp_path / "run.secret", steps=3)
    assert second.stdout.strip() == "6", second.stderr
    assert spent(study[1]) == paid


@pytest.mark.parametrize("sampler", SAMPLERS)
def test_of_two_copies_of_a_checkpoint_one_goes_on(sampler, study, tmp_path):
    options = {"sampler": sampler} | SAMPLERS[sampler]
    assert program(*study, options, tmp_path / "run.secret", steps=3).returncode == 0
    for name in ("run.secret", "run.secret.steps"):
        shutil.copy(tmp_path / name, tmp_path / f"copy of {name}")
    assert program(*study, options, tmp_path / "run.secret", steps=2).stdout.strip() == "5"
    copy = program(*study, options, tmp_path / "copy of run.secret", steps=2)
    assert "from a copy of its checkpoint" in copy.stderr
    assert program(*study, options, tmp_path / "run.secret", steps=1).stdout.strip() == "6"


class Store:
    """The count of releases that a budget's store keeps, and how often it was asked."""

    def __init__(self):
        self.count = 0

    def record(self, mechanism, number, limit, *, claimed, trusted):
        if number != self.count:
            raise InvalidInput("another program made it meanwhile")
        self.count += 1


class Session:
    """A program that trains from a checkpoint: what it counted, and its view of the store."""

    def __init__(self, store, plan, steps):
        self.paid = PaidSteps(SimpleNamespace(past=SimpleNamespace(releases=store.count), record=store.record), plan)
        self.steps = self.paid.take_up(steps, 0)

    def step(self, plan):
        if self.steps >= plan.steps:
            return False
        self.paid.begin(self.steps + 1, 0)
        self.steps += 1
        return True


@pytest.mark.parametrize("steps", [7, 1000, 2500])
def test_copies_and_crashes_never_begin_more_steps_than_were_paid_for(steps):
    plan, chance, most = SimpleNamespace(steps=steps, noise_multiplier=1.0), random.Random(5), 0
    for _ in range(20):
        store, begun, saved = Store(), 0, [0]
        sessions = [Session(store, plan, 0)]
        while sessions and begun <= steps:
            one = chance.choice(sessions)
            try:
                for _ in range(chance.randint(1, 1 + steps // 5)):
                    begun += one.step(plan)
            except InvalidInput:
                sessions.remove(one)
            saved.append(one.steps)
            if chance.random() < 0.5:
                with suppress(InvalidInput):
                    sessions.append(Session(store, plan, chance.choice(saved)))
            if all(session.steps >= steps for session in sessions):
                break
        most = max(most, begun)
        assert begun <= steps
    assert most > 0.9 * steps - 1
