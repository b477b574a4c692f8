"""A run that is interrupted and taken up again is the same run, bit for bit."""

import os
import signal
import stat
import subprocess
import sys
import time

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


def started(key=1, seed=0, **options):
    generator = torch.Generator().manual_seed(1)
    records = TensorDataset(torch.randn(60, 5, generator=generator), torch.randint(0, 3, (60,), generator=generator))
    torch.manual_seed(seed)
    module = nn.Sequential(nn.Linear(5, 8), nn.Tanh(), nn.Dropout(0.3), nn.Linear(8, 3))
    settings = {
        "sample_rate": 0.3,
        "steps": 20,
        "noise_multiplier": 1.0,
        "max_grad_norm": 0.5,
        "public_size": 50,
    } | options
    engine = PrivacyEngine(key=seeded_key(key))
    parts = engine.make_private(
        module=module, optimizer=torch.optim.Adam(module.parameters(), 0.05), criterion=nn.CrossEntropyLoss(),
        data_loader=records, **settings,
    )  # fmt: skip
    return engine, parts[0]


def weights_of(module):
    return torch.cat([p.detach().flatten() for p in module.parameters()])


@pytest.mark.parametrize("sampler", ["uniform", "importance", "importance-reject", "dpis"])
def test_a_resumed_run_is_the_same_run(sampler, tmp_path):
    options = {"sampler": sampler} | (DPIS if sampler == "dpis" else {})
    whole, straight = started(**options)
    whole.train()
    path = tmp_path / "run.secret"
    first, _ = started(checkpoint=path, checkpoint_every=1, **options)
    first.train(7)
    second, module = started(key=2, seed=5, checkpoint=path, **options)  # the key of the file counts, and its weights
    assert second.step == 7
    second.train()
    assert torch.equal(weights_of(straight), weights_of(module))
    assert second.guarantee().epsilon(1e-3) == whole.guarantee().epsilon(1e-3)


def test_a_step_that_is_repeated_draws_and_adds_the_same():
    """Saved at step 3, gone on to 6, fallen back to 3: the same steps again, so nothing new was released."""
    engine, module = started()
    engine.train(3)
    saved = engine.state_dict()
    saved = {**saved, "model": {k: v.clone() for k, v in saved["model"].items()}}
    import copy

    saved["optimizer"] = copy.deepcopy(saved["optimizer"])
    engine.train(3)
    once = weights_of(module)
    engine.load_state_dict(saved)
    assert engine.step == 3
    torch.manual_seed(99)  # whatever else went on in the process
    engine.train(3)
    assert torch.equal(once, weights_of(module))


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
    assert 10 <= resumed.step <= 14
    resumed.train()
    straight, same = started(steps=60)
    straight.train()
    assert torch.equal(weights_of(module), weights_of(same))
    assert [p.name for p in tmp_path.iterdir()] == ["run.secret"]


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
    with pytest.raises(InvalidInput, match="cannot be written"):
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
    assert [p.name for p in tmp_path.iterdir()] == ["run.secret"]


def test_time_is_no_part_of_a_run():
    engine, module = started()
    engine.train(5)
    other, same = started()
    time.sleep(0.01)
    other.train(5)
    assert torch.equal(weights_of(module), weights_of(same))
