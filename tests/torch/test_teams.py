"""Two processes that train one model take the steps of one process."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

torch = pytest.importorskip("torch", reason="torch is not installed (make test-torch)")

from privamp import Budget, InvalidInput  # noqa: E402
from privamp.torch.team import refuse_shards  # noqa: E402

SCRIPT = """
import sys
import torch
from torch import distributed, nn
from torch.nn.parallel import DistributedDataParallel
from torch.utils.data import TensorDataset
from privamp.errors import InvalidInput
from privamp.testing import seeded_key
from privamp.torch import PrivacyEngine

rank, size, folder, key = int(sys.argv[1]), int(sys.argv[2]), sys.argv[3], sys.argv[4]
torch.set_num_threads(1)
torch.manual_seed(0)
x, y = torch.randn(40, 5).double(), torch.arange(40) % 3
module = nn.Sequential(nn.Linear(5, 6), nn.Tanh(), nn.Linear(6, 3)).double()
module[0].weight.data = module[0].weight.data.t().contiguous().t()  # another order in memory, as with channels_last
if size > 1:
    distributed.init_process_group("gloo", init_method=f"file://{folder}/meeting", rank=rank, world_size=size)
    module = DistributedDataParallel(module)
engine = PrivacyEngine(key=seeded_key(3) if key == "seeded" else None)
module, optimizer, criterion, loader = engine.make_private(
    module=module, optimizer=torch.optim.SGD(module.parameters(), 0.5), criterion=nn.CrossEntropyLoss(),
    data_loader=TensorDataset(x, y), sampler="importance", sample_rate=0.5, steps=4, noise_multiplier=0.5,
    max_grad_norm=0.7, population=40, max_physical_batch_size=6, steps_per_epoch=2,
)
seen = 0
for x, y in loader:
    seen += len(x)
    optimizer.zero_grad()
    criterion(module(x), y).backward()
    optimizer.step()
engine.train()
found = [seen, [p.detach() for p in module.parameters()], engine._run.batches.bounds]
torch.save(found, f"{folder}/{key}{size}{rank}.pt")
"""


KEPT = """
import sys
import torch
from torch import distributed, nn
from torch.nn.parallel import DistributedDataParallel
from torch.utils.data import TensorDataset
from privamp import Budget
from privamp.errors import PrivampError
from privamp.testing import seeded_key
from privamp.torch import PrivacyEngine

torch.set_num_threads(1)

def started(size, key=None, budget=None, checkpoint=None, steps=6, noise=0.5):
    torch.manual_seed(0)
    x, y = torch.randn(40, 5).double(), torch.arange(40) % 3
    module = nn.Sequential(nn.Linear(5, 6), nn.Tanh(), nn.Linear(6, 3)).double()
    module = DistributedDataParallel(module) if size > 1 else module
    engine = PrivacyEngine(key=key, budget=budget)
    engine.make_private(
        module=module, optimizer=torch.optim.Adam(module.parameters(), 0.1), criterion=nn.CrossEntropyLoss(),
        data_loader=TensorDataset(x, y), sampler="importance", sample_rate=0.5, steps=steps, noise_multiplier=noise,
        max_grad_norm=0.7, population=40, checkpoint=checkpoint, checkpoint_every=2,
    )
    return engine

def seen(engine):
    run = engine._run
    return [p.detach() for p in run.parameters], run.batches.bounds, run.step, run.charged

def resumed(folder, size, steps):
    # saved, resumed if it was before, and taken so many steps further
    engine = started(size, seeded_key(3), checkpoint=f"{folder}/seeded{size}")
    engine.train(steps)
    return seen(engine)

def refused(size, **options):
    try:
        started(size, **options)
    except PrivampError as error:
        return str(error)

if __name__ == "__main__":
    rank, size, folder, steps = int(sys.argv[1]), int(sys.argv[2]), sys.argv[3], int(sys.argv[4])
    distributed.init_process_group("gloo", init_method=f"file://{folder}/meeting", rank=rank, world_size=size)
    budget = Budget.open(f"{folder}/study.db")
    paid = started(size, budget=budget, checkpoint=f"{folder}/paid")
    paid.train(steps)
    said = [
        refused(size, budget=budget, noise=0.1, checkpoint=f"{folder}/never"),
        refused(size, budget=budget, steps=3 + rank),
        refused(size, budget=budget if rank else None),
        refused(size, checkpoint=f"{folder}/paid"),
    ]
    torch.save([*resumed(folder, size, steps), seen(paid)[2:], said], f"{folder}/{steps}{size}{rank}.pt")
"""


def trained(folder: Path, size: int, key: str = "seeded", program: str = SCRIPT):
    script = folder / "train.py"
    script.write_text(program)
    commands = [[sys.executable, str(script), str(rank), str(size), str(folder), key] for rank in range(size)]
    (folder / "meeting").unlink(missing_ok=True)
    running = [subprocess.Popen(command, env=dict(os.environ)) for command in commands]
    assert [process.wait(timeout=300) for process in running] == [0] * size
    return [torch.load(folder / f"{key}{size}{rank}.pt", weights_only=False) for rank in range(size)]


def test_two_processes_take_the_steps_of_one(tmp_path):
    (alone,) = trained(tmp_path, 1)
    one, two = trained(tmp_path, 2)
    assert one[0] + two[0] == alone[0]  # each draws its share
    assert min(one[0], two[0]) > 0
    for a, b, c in zip(one[1], two[1], alone[1], strict=True):
        assert torch.equal(a, b)
        torch.testing.assert_close(a, c, rtol=1e-9, atol=1e-12)  # noise once
    assert (one[2] == two[2]).all()
    assert abs(one[2] - alone[2]).max() < 1e-12


def test_processes_without_a_key_agree_on_one(tmp_path):
    one, two = trained(tmp_path, 2, key="fresh")
    assert all(torch.equal(a, b) for a, b in zip(one[1], two[1], strict=True))


def test_two_processes_save_resume_and_pay_once(tmp_path):
    """The files of a run are those of one process, whoever resumes it, and its budget is charged once."""
    budget = Budget.create(tmp_path / "study.db", population="people", epsilon=100.0, delta=0.1)
    alone = {"__name__": "kept"}
    exec(KEPT, alone)
    trained(tmp_path, 2, "2", KEPT)
    alone["resumed"](tmp_path, 1, 2)
    charges = [(entry.number, entry.releases) for entry in budget.log()]
    one, two = trained(tmp_path, 2, "3", KEPT)
    expected = alone["resumed"](tmp_path, 1, 3)
    for a, b, c in zip(one[0], two[0], expected[0], strict=True):
        assert torch.equal(a, b)
        torch.testing.assert_close(a, c, rtol=1e-9, atol=1e-12)
    assert (one[1] == two[1]).all()
    assert abs(one[1] - expected[1]).max() < 1e-12
    assert one[2:] == two[2:]
    assert one[2:5] == [5, 5, (5, 5)]
    assert [releases for _, releases in charges] == [2]
    assert [(entry.number, entry.releases) for entry in budget.log()] == [(charges[0][0], 5)]
    too_much, steps, another, unpaid = one[5]
    assert "so it was not made" in too_much
    assert "same steps" in steps
    assert "same budget" in another
    assert "give the budget" in unpaid
    assert not (tmp_path / "never").exists()
    for end in ("", ".steps"):  # the files of two processes, resumed by one
        (tmp_path / f"seeded1{end}").write_bytes((tmp_path / f"seeded2{end}").read_bytes())
    assert alone["resumed"](tmp_path, 1, 1)[2:] == (6, 6)


def test_one_process_is_no_shard():
    refuse_shards(torch.nn.Linear(2, 2))
    with pytest.raises(InvalidInput, match="use DistributedDataParallel"):
        refuse_shards(type("FSDPModule", (torch.nn.Linear,), {})(2, 2))
