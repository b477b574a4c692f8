"""A step is released once: after a crash a stored noisy sum is used again, else all is fresh and paid for."""

import copy
import os
import signal
import stat
import subprocess
import sys
import time

import numpy as np
import pytest

torch = pytest.importorskip("torch", reason="torch is not installed (make test-torch)")

from torch import nn  # noqa: E402
from torch.utils.data import TensorDataset  # noqa: E402

from privamp import InvalidInput  # noqa: E402
from privamp.testing import seeded_key  # noqa: E402
from privamp.torch import PrivacyEngine  # noqa: E402

torch.set_num_threads(1)
DPIS = {
    "noise_multiplier": None,
    "target_epsilon": 8.0,
    "target_delta": 1e-3,
    "size_noise": 20.0,
    "sum_noise": 30.0,
    "external_clip": 2.0,
}


def started(key=5, seed=0, **options):
    generator = torch.Generator().manual_seed(1)
    records = TensorDataset(torch.randn(60, 5, generator=generator), torch.randint(0, 3, (60,), generator=generator))
    torch.manual_seed(seed)
    module = nn.Sequential(nn.Linear(5, 8), nn.Tanh(), nn.Dropout(0.3), nn.Linear(8, 3))
    settings = {
        "sample_rate": 0.3,
        "steps": 20,
        "noise_multiplier": 1.0,
        "max_grad_norm": 0.5,
        "population": 50,
    } | options
    engine = PrivacyEngine(key=None if key is None else seeded_key(key))
    parts = engine.make_private(
        module=module, optimizer=torch.optim.Adam(module.parameters(), 0.05), criterion=nn.CrossEntropyLoss(),
        data_loader=records, **settings,
    )  # fmt: skip
    return engine, parts[0]


def weights_of(module):
    return torch.cat([p.detach().flatten() for p in module.parameters()])


def both_copied(path):
    """A copy of a checkpoint and its journal."""
    for end in ("", ".steps"):
        path.with_name(f"copy.secret{end}").write_bytes(path.with_name(path.name + end).read_bytes())
    return path.with_name("copy.secret")


def seen(engine):
    """Spies on a run: the positions drawn and the noisy gradients, by step."""
    drawn, released, run = {}, {}, engine._run
    draw, finish = run.batches.draw, run._finish
    run.batches.draw = lambda step: drawn.setdefault(step, draw(step))

    def finished(batch, norms):
        released[run.step] = torch.cat([p.grad.flatten().clone() for p in run.parameters])
        finish(batch, norms)

    run._finish = finished
    return drawn, released


@pytest.mark.parametrize("sampler", ["uniform", "importance", "importance-reject", "dpis"])
@pytest.mark.parametrize("every", [1, 5, 100])
def test_stored_steps_are_used_again_and_later_ones_are_fresh(sampler, every, tmp_path):
    options = {"sampler": sampler} | (DPIS if sampler == "dpis" else {})
    path = tmp_path / "run.secret"
    first, one = started(checkpoint=path, checkpoint_every=every, **options)
    first.train(7)
    at_seven, state = weights_of(one), first._run.batches.state()
    copied = both_copied(path)
    second, two = started(key=2, seed=5, checkpoint=copied, **options)  # the key of the file counts, and its weights
    assert (second.step, second._run.charged) == (7, 7)
    assert torch.equal(at_seven, weights_of(two))
    for name, value in second._run.batches.state().items():
        assert np.array_equal(value, state[name]), name
    drawn, released = seen(first)
    again, anew = seen(second)
    first.train(1)
    second.train(1)
    assert not np.array_equal(drawn[7].positions, again[7].positions)
    assert not torch.equal(released[7], anew[7])
    second.train()
    assert second.step == 20
    assert second.guarantee().epsilon(1e-3) == first.guarantee().epsilon(1e-3)


@pytest.mark.parametrize("sampler", ["uniform", "importance", "dpis"])
def test_a_step_that_was_begun_and_lost_is_paid_for(sampler, tmp_path):
    """A crash after the draw and before the noisy sum is stored: one step of the certified 20 is gone."""
    options = {"sampler": sampler} | (DPIS if sampler == "dpis" else {})
    path = tmp_path / "run.secret"
    first, _ = started(checkpoint=path, checkpoint_every=3, **options)
    first.train(4)
    next(first._run.parts())  # and the machine dies
    spent = getattr(first._run.batches, "spent", 0.0)
    second, _ = started(checkpoint=path, **options)
    assert (second.step, second._run.charged) == (4, 5)
    assert getattr(second._run.batches, "spent", 0.0) >= spent * (1 - 1e-9)
    if sampler != "dpis":
        whole = second.plan.guarantee(5).epsilon(1e-3)
        assert second.get_epsilon(1e-3) == pytest.approx(whole)
    second.train()
    assert (second.step, second._run.charged) == (19, 20)
    third, _ = started(checkpoint=path, **options)
    assert third.is_finished


def test_a_copied_checkpoint_is_another_session(tmp_path):
    path = tmp_path / "run.secret"
    first, _ = started(key=None, checkpoint=path)
    first.train(2)
    copied = both_copied(path)
    sessions = [started(key=None, checkpoint=where)[0]._run._key for where in (path, copied)]
    assert sessions[0] != sessions[1]


def test_going_back_makes_the_steps_anew_and_pays_again():
    engine, module = started()
    engine.train(3)
    saved = copy.deepcopy(engine.state_dict())
    engine.train(3)
    once = weights_of(module)
    engine.load_state_dict(saved)
    assert (engine.step, engine._run.charged) == (3, 6)
    engine.train(3)
    assert not torch.equal(once, weights_of(module))
    assert engine._run.charged == 9
    engine.train()
    assert (engine.step, engine._run.charged) == (17, 20)


def test_an_entry_that_a_crash_cut_off_is_no_entry(tmp_path):
    path = tmp_path / "run.secret"
    first, module = started(checkpoint=path, checkpoint_every=100)
    first.train(3)
    journal = tmp_path / "run.secret.steps"
    whole = journal.read_bytes()
    assert journal.stat().st_mode & 0o077 == 0
    journal.write_bytes(whole[:-10])
    second, _ = started(checkpoint=path)
    assert (second.step, second._run.charged) == (2, 3)
    del module


def test_the_journal_holds_no_sum_before_its_noise(tmp_path):
    path = tmp_path / "run.secret"
    first, _ = started(checkpoint=path, checkpoint_every=100)
    first.train(1)
    from privamp.torch.journal import Journal

    entries = list(Journal(path).stored()[1])
    assert [entry["kind"] for entry in entries] == ["begun", "noisy"]
    assert set(entries[1]) == {"kind", "step", "session", "gradients", "groups", "secret"}
    assert set(entries[1]["secret"]) == {"positions", "norms"}


def test_the_scheduler_is_kept_and_replayed(tmp_path):
    path = tmp_path / "run.secret"

    def make(**options):
        torch.manual_seed(0)
        module = nn.Linear(5, 3)
        optimizer = torch.optim.SGD(module.parameters(), 1.0)
        scheduler = torch.optim.lr_scheduler.StepLR(optimizer, 2, 0.5)
        records = TensorDataset(torch.randn(60, 5), torch.arange(60) % 3)
        engine = PrivacyEngine(key=seeded_key(1))
        engine.make_private(
            module=module, optimizer=optimizer, criterion=nn.CrossEntropyLoss(), data_loader=records, sample_rate=0.3,
            steps=9, noise_multiplier=1.0, max_grad_norm=1.0, population=50, checkpoint=path, checkpoint_every=4,
            scheduler=scheduler,
        )  # fmt: skip
        return engine, optimizer, module

    first, _, one = make()
    first.train(7)
    _, optimizer, two = make()
    assert optimizer.param_groups[0]["lr"] == 1.0 * 0.5**3
    assert torch.equal(weights_of(one), weights_of(two))


def test_a_buffer_that_is_kept_does_not_stop_the_resume(tmp_path):
    class Scaled(nn.Module):
        def __init__(self):
            super().__init__()
            self.layer = nn.Linear(5, 3)
            self.register_buffer("scale", torch.ones(5))

        def forward(self, x):
            return self.layer(x * self.scale)

    path = tmp_path / "run.secret"
    for _ in range(2):
        module = Scaled()
        engine = PrivacyEngine(key=seeded_key(1))
        engine.make_private(
            module=module, optimizer=torch.optim.SGD(module.parameters(), 0.1), criterion=nn.CrossEntropyLoss(),
            data_loader=TensorDataset(torch.randn(60, 5), torch.arange(60) % 3), sample_rate=0.3, steps=9,
            noise_multiplier=1.0, max_grad_norm=1.0, population=50, checkpoint=path,
        )  # fmt: skip
        engine.train(3)
    assert engine.step == 6


SCRIPT = """
import sys, time
sys.path.insert(0, {folder!r})
import test_checkpoints as shared
engine, module = shared.started(checkpoint={path!r}, checkpoint_every=2, steps=60)
print("ready", flush=True)
engine.train(on_step=lambda progress: (time.sleep(0.02), print(progress.step, flush=True)))
"""


@pytest.mark.skipif(not hasattr(signal, "SIGKILL"), reason="this system has no kill -9")
def test_a_killed_run_goes_on_where_it_was(tmp_path):
    path = tmp_path / "run.secret"
    script = SCRIPT.format(folder=os.path.dirname(__file__), path=str(path))
    child = subprocess.Popen([sys.executable, "-c", script], stdout=subprocess.PIPE, text=True)
    for line in child.stdout:
        if line.strip() == "13":
            child.send_signal(signal.SIGKILL)
            break
    child.wait()
    child.stdout.close()
    assert child.returncode == -signal.SIGKILL
    resumed, module = started(key=9, checkpoint=path, checkpoint_every=2, steps=60)
    assert 13 <= resumed.step <= 14
    straight, same = started(steps=60)
    straight.train(resumed.step)
    assert torch.equal(weights_of(module), weights_of(same))
    resumed.train()
    assert 59 <= resumed.step <= 60
    assert {p.name for p in tmp_path.iterdir()} == {"run.secret", "run.secret.steps"}


def test_files_are_whole_and_secrets_stay_apart(tmp_path):
    secret, public = tmp_path / "run.secret", tmp_path / "model.pt"
    engine, _module = started(checkpoint=secret)
    engine.train()
    engine.publish(public, delta=1e-5)
    assert stat.S_IMODE(secret.stat().st_mode) == 0o600
    shared = torch.load(public, weights_only=True)
    assert set(shared) == {"format", "plan", "step", "model", "guarantee"}
    key = engine._key.secret_bytes()
    assert key in secret.read_bytes()
    assert key not in public.read_bytes()
    assert shared["guarantee"]["epsilon_upper"] == pytest.approx(engine.guarantee().epsilon(1e-5))
    with pytest.raises(InvalidInput, match="published model cannot be resumed"):
        started(checkpoint=public)


def test_a_run_cannot_change_on_the_way(tmp_path):
    path = tmp_path / "run.secret"
    started(checkpoint=path)[0].train(2)
    for change in ({"noise_multiplier": 2.0}, {"sample_rate": 0.1}, {"steps": 50}, {"sampler": "uniform"}):
        with pytest.raises(
            InvalidInput, match=f"the saved run has {next(iter(change)).replace('sample_rate', 'rate')}"
        ):
            started(checkpoint=path, **change)
    (tmp_path / "noise").write_bytes(b"not a file of ours")
    with pytest.raises(InvalidInput, match="is not a checkpoint"):
        started(checkpoint=tmp_path / "noise")
    with pytest.raises(InvalidInput, match="must exist"):
        started(checkpoint=tmp_path / "nowhere" / "run.secret")


def test_a_crash_while_writing_leaves_the_old_file(tmp_path, monkeypatch):
    path = tmp_path / "run.secret"
    engine, _ = started(checkpoint=path, checkpoint_every=1)
    engine.train(2)
    before = path.read_bytes()
    monkeypatch.setattr(os, "replace", lambda *a: (_ for _ in ()).throw(OSError("power cut")))
    with pytest.raises(OSError, match="power cut"):
        engine.train(1)
    monkeypatch.undo()
    assert path.read_bytes() == before
    assert {p.name for p in tmp_path.iterdir()} == {"run.secret", "run.secret.steps"}


def test_time_is_no_part_of_a_run():
    engine, module = started()
    engine.train(5)
    other, same = started()
    time.sleep(0.01)
    other.train(5)
    assert torch.equal(weights_of(module), weights_of(same))
