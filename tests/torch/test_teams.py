"""Two processes that train one model take the steps of one process."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

torch = pytest.importorskip("torch", reason="torch is not installed (make test-torch)")

from privamp import InvalidInput  # noqa: E402
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


def trained(folder: Path, size: int, key: str = "seeded"):
    script = folder / "train.py"
    script.write_text(SCRIPT)
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


def test_one_process_is_no_shard():
    refuse_shards(torch.nn.Linear(2, 2))
    with pytest.raises(InvalidInput, match="use DistributedDataParallel"):
        refuse_shards(type("FSDPModule", (torch.nn.Linear,), {})(2, 2))
