"""Copies, crashes and mistakes of a caller never let a run take a step that is not paid for, or count too few."""

import copy
import errno
import os
import random
import shutil

import pytest

torch = pytest.importorskip("torch", reason="torch is not installed (make test-torch)")

from torch import nn  # noqa: E402
from torch.utils.data import TensorDataset  # noqa: E402

from privamp import Budget, CyclicPoisson, InvalidInput, PrivampError  # noqa: E402
from privamp.accounting.budget_store import Store  # noqa: E402
from privamp.core.ledger import REGISTRY  # noqa: E402
from privamp.torch import PrivacyEngine  # noqa: E402
from privamp.torch.batches import DesignBatches  # noqa: E402
from privamp.torch.release import noisy_gradients  # noqa: E402

torch.set_num_threads(1)
STEPS, DELTA = 12, 1e-3
DPIS = {
    "sampler": "dpis", "noise_multiplier": None, "target_epsilon": 8.0, "target_delta": DELTA, "size_noise": 20.0,
    "sum_noise": 30.0, "external_clip": 2.0,
}  # fmt: skip


@pytest.fixture
def budget(tmp_path):
    return Budget.create(tmp_path / "study.db", population="people", epsilon=100.0, delta=0.1)


def made(engine, module=None, **options):
    """Give an engine its run."""
    torch.manual_seed(1)
    module = module or nn.Linear(4, 3)
    settings = {
        "sample_rate": 0.3, "steps": STEPS, "noise_multiplier": 1.0, "max_grad_norm": 0.5, "population": 40,
        "sampler": "uniform", "data_loader": TensorDataset(torch.randn(40, 4), torch.arange(40) % 3),
    } | options  # fmt: skip
    return engine.make_private(
        module=module, optimizer=torch.optim.SGD(module.parameters(), 0.1), criterion=nn.CrossEntropyLoss(), **settings
    )


def another_program(budget=None, **options):
    """An engine of a program that knows nothing of what happened here."""
    REGISTRY.clear()
    engine = PrivacyEngine(budget=budget)
    made(engine, **options)
    return engine


def copied(path, name):
    """A copy of the checkpoint and of its journal."""
    target = path.with_name(name)
    for end in ("", ".steps"):
        shutil.copy(f"{path}{end}", f"{target}{end}")
    return target


def released(budget):
    return budget.log()[-1].releases


def test_a_run_that_was_refused_takes_no_step(budget, tmp_path):
    path = tmp_path / "run"
    another_program(budget, checkpoint=path).train(2)
    old = copied(path, "old")
    another_program(budget, checkpoint=path).train(2)
    REGISTRY.clear()
    refused = PrivacyEngine(budget=budget)
    with pytest.raises(InvalidInput, match="copy of its checkpoint"):
        made(refused, checkpoint=old)
    with pytest.raises(InvalidInput, match="no run yet"):
        refused.train(1)


def test_a_budget_that_comes_with_the_resume_counts_what_was_begun(budget, tmp_path):
    path = tmp_path / "run"
    another_program(checkpoint=path).train(6)
    old = copied(path, "old")
    assert another_program(budget, checkpoint=path).train() == 6
    with pytest.raises(InvalidInput, match="copy of its checkpoint"):
        another_program(budget, checkpoint=old)
    assert released(budget) == STEPS


@pytest.mark.parametrize("options", [{}, {"sampler": CyclicPoisson(0.2, 3, 11), "sample_rate": None}])
def test_a_last_block_of_fewer_steps_counts_only_those(options, budget, tmp_path, monkeypatch):
    monkeypatch.setattr("privamp.torch.paying._CLAIMS", 5)  # blocks of 3 steps
    options = {"checkpoint": tmp_path / "run", "steps": 11, **options}
    another_program(budget, **options).train()
    again = another_program(budget, **options)
    assert again.is_finished
    assert again._run.charged == 11
    assert again.get_epsilon(DELTA) == again.guarantee().epsilon(DELTA)


def test_a_run_of_a_budget_does_not_go_on_without_it(budget, tmp_path):
    path = tmp_path / "run"
    another_program(budget, checkpoint=path).train(2)
    old = copied(path, "old")
    with pytest.raises(InvalidInput, match="give the budget"):
        another_program(checkpoint=old)
    another_program(budget, checkpoint=path).train(1)


@pytest.mark.parametrize("options", [{}, DPIS])
def test_going_back_is_kept_over_a_crash(options, tmp_path):
    path = tmp_path / "run"
    engine = another_program(checkpoint=path, checkpoint_every=100, **options)
    engine.train(2)
    saved = copy.deepcopy(engine.state_dict())
    engine.train(2)
    engine.load_state_dict(saved)
    engine.train(3)
    spent, charged = engine.get_epsilon(DELTA), engine._run.charged
    assert charged == 7
    again = another_program(checkpoint=path, **options)
    assert again._run.charged == charged
    assert again.get_epsilon(DELTA) == spent
    assert again._run.left == STEPS - charged


def test_a_batch_of_a_step_that_is_over_is_not_released_again():
    engine = PrivacyEngine()
    module, optimizer, criterion, loader = made(engine, sample_rate=1.0, max_physical_batch_size=8)

    def worked(batch):
        optimizer.zero_grad()
        criterion(module(batch[0]), batch[1]).backward()
        optimizer.step()

    stale = iter(loader)
    worked(next(stale))
    fresh = iter(loader)
    while engine.step < 1:
        worked(next(fresh))
    with pytest.raises(InvalidInput, match="another pass"):
        next(stale)
    assert engine.step == engine._run.charged == 1


def test_a_full_disk_leaves_a_journal_that_can_be_read(tmp_path, monkeypatch):
    path = tmp_path / "run"
    engine = another_program(checkpoint=path, checkpoint_every=100)
    engine.train(2)
    true_sync, fails = os.fsync, [True]

    def full(handle):
        if fails and os.fstat(handle).st_size > 0:
            fails.pop()
            size = os.fstat(handle).st_size
            os.truncate(tmp_path / "run.steps", size - 5)
            raise OSError(errno.ENOSPC, "No space left on device")
        true_sync(handle)

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(PrivampError, match="No space left"):
        engine.train(1)
    assert not fails
    engine.train(4)
    begun = engine._run.charged
    again = another_program(checkpoint=path)
    assert (again.step, again._run.charged) == (6, begun)


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system has no fork")
def test_a_fork_of_a_run_draws_nothing():
    """Both would draw the same noise, for gradients that differ as soon as their learning rates do."""
    engine = another_program()
    engine.train(1)
    child = os.fork()
    if child == 0:
        try:
            engine.train(1)
        except InvalidInput as error:
            os._exit(7 if "fork" in str(error) else 8)
        os._exit(0)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 7
    assert engine.train(1) == 1


@pytest.mark.parametrize("where", ["remember", "all_norms", "same_bytes"])
@pytest.mark.parametrize("options", [{}, {"sampler": CyclicPoisson(0.2, 3, STEPS), "sample_rate": None, "steps": None}])
def test_a_run_that_is_interrupted_never_uses_its_noise_twice(where, options, monkeypatch):
    """Control-C at the end of a step, or on the way back to an earlier state, and the notebook goes on."""
    keys = []

    def noisy(key, *rest):
        keys.append(key(0).secret_bytes())
        return noisy_gradients(key, *rest)

    monkeypatch.setattr("privamp.torch.run.noisy_gradients", noisy)
    engine = another_program(**options)
    run, saved = engine._running, copy.deepcopy(engine.state_dict())
    engine.train(1)
    place = run.batches if where == "remember" else run.team

    def interrupted(*given):
        monkeypatch.delattr(place, where)
        raise KeyboardInterrupt

    monkeypatch.setattr(place, where, interrupted, raising=False)
    with pytest.raises(KeyboardInterrupt):
        engine.load_state_dict(saved) if where == "same_bytes" else engine.train(1)
    engine.train(2)
    assert len(set(keys)) == len(keys) == run.charged


def test_an_engine_is_not_copied():
    engine = another_program()
    with pytest.raises(InvalidInput, match="pickled or copied"):
        copy.deepcopy(engine)


def test_releases_beside_the_steps_are_spent(tmp_path, monkeypatch):
    path = tmp_path / "run"
    engine = another_program(checkpoint=path, **DPIS)
    monkeypatch.setattr(engine._run.batches, "_open", lambda *a: (_ for _ in ()).throw(KeyboardInterrupt))
    with pytest.raises(KeyboardInterrupt):
        engine.train(1)
    for one in (engine, another_program(checkpoint=path, **DPIS)):
        assert one._run.batches.side_releases == 1
        assert one.get_epsilon(DELTA) >= 8.0 * (1 - 1e-9)


class Mixing(nn.Module):
    def __init__(self):
        super().__init__()
        self.layer = nn.Linear(4, 3)

    def forward(self, x):
        return self.layer(x - x.mean(dim=0))


def test_a_model_that_is_refused_costs_nothing(budget):
    engine = PrivacyEngine(budget=budget)
    with pytest.raises(InvalidInput):
        made(engine, Mixing())
    assert budget.status().spent["renyi_loss"] == 0.0
    made(engine)
    assert engine.train() == STEPS


def test_a_plan_that_is_refused_costs_nothing(budget, tmp_path):
    path = tmp_path / "run"
    another_program(checkpoint=path).train(2)
    with pytest.raises(InvalidInput, match="saved run has"):
        another_program(budget, checkpoint=path, steps=STEPS + 1)
    assert budget.status().spent["renyi_loss"] == 0.0


def test_a_budget_that_refuses_leaves_no_checkpoint_and_a_free_model(tmp_path):
    small = Budget.create(tmp_path / "small.db", population="people", epsilon=0.1, delta=1e-6)
    module = nn.Linear(4, 3)
    engine = PrivacyEngine(budget=small)
    with pytest.raises(PrivampError, match="this release costs"):
        made(engine, module, checkpoint=tmp_path / "run")
    assert {p.name for p in tmp_path.iterdir()} == {"small.db"}
    optimizer = torch.optim.SGD(module.parameters(), 0.1)
    module(torch.ones(2, 4)).sum().backward()
    optimizer.step()
    made(engine, module, checkpoint=tmp_path / "run", noise_multiplier=500.0)
    assert engine.train() == STEPS


def test_a_payment_outlives_a_kill_before_the_first_step(budget, tmp_path, monkeypatch):
    """Killed right after the payment: the checkpoint was there before, so the same call goes on under it."""
    path = tmp_path / "run"
    pay = Budget.pay_for_sample

    def killed(*args, **options):
        pay(*args, **options)
        raise SystemExit

    monkeypatch.setattr(Budget, "pay_for_sample", killed)
    with pytest.raises(SystemExit):
        another_program(budget, checkpoint=path)
    monkeypatch.undo()
    assert another_program(budget, checkpoint=path).train() == STEPS
    assert len(budget.log()) == 1


def test_a_journal_of_another_time_is_refused(tmp_path):
    path = tmp_path / "run"
    engine = another_program(checkpoint=path, checkpoint_every=4)
    engine.train(1)
    old = copied(path, "old")
    engine.train(5)
    shutil.copy(tmp_path / "run.steps", tmp_path / "old.steps")  # of a newer checkpoint
    with pytest.raises(InvalidInput, match="journal"):
        another_program(checkpoint=old)
    os.remove(tmp_path / "old.steps")
    with pytest.raises(InvalidInput, match=r"old\.steps"):
        another_program(checkpoint=old)


def test_a_checkpoint_saved_by_hand_needs_no_journal(tmp_path):
    engine = another_program()
    engine.train(3)
    engine.save(tmp_path / "mine")
    assert another_program(checkpoint=tmp_path / "mine").train() == STEPS - 3


@pytest.mark.parametrize("paid", [False, True])
def test_of_two_programs_on_one_checkpoint_the_later_goes_on(paid, budget, tmp_path):
    path, purse = tmp_path / "run", budget if paid else None
    first = another_program(purse, checkpoint=path)
    first.train(2)
    second = another_program(purse, checkpoint=path)
    second.train(1)
    with pytest.raises(InvalidInput, match="another program"):
        first.train(1)
    second.train(1)
    third = another_program(purse, checkpoint=path)
    assert third.step == 4
    assert third.train() == STEPS - third._run.charged + 8


class Killed(BaseException):
    """What stands for kill -9."""


def test_killed_before_or_after_any_write_a_run_goes_on_and_counts_what_it_drew(budget, tmp_path, monkeypatch):
    chance, left, drawn = random.Random(7), [0], []

    def tick():
        left[0] -= 1
        if left[0] == 0:
            raise Killed

    def deadly(owner, name):
        call = getattr(owner, name)

        def around(*args, **options):
            tick()
            found = call(*args, **options)
            tick()
            return found

        monkeypatch.setattr(owner, name, around)

    for name in ("fsync", "pwrite", "ftruncate", "replace"):
        deadly(os, name)
    deadly(Store, "release")
    deadly(Store, "reserve")
    draw = DesignBatches.draw
    monkeypatch.setattr(DesignBatches, "draw", lambda self, step: drawn.append(step) or draw(self, step))
    engine, kills = None, 0
    while engine is None or not engine.is_finished:
        left[0] = chance.randint(1, 140)
        try:
            engine = another_program(budget, checkpoint=tmp_path / "run", checkpoint_every=3)
            assert engine._run.charged >= len(drawn)
            engine.train()
        except Killed:
            engine, kills = None, kills + 1
    left[0] = 0
    assert kills > 1
    assert len(drawn) <= released(budget) <= STEPS
    assert len(budget.log()) == 1
