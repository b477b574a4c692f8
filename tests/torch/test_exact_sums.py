"""Exact sums: one record moves a step's sum by its own rounded gradient, bit for bit, and by nothing else."""

import random

import pytest

torch = pytest.importorskip("torch", reason="torch is not installed (make test-torch)")

from torch import nn  # noqa: E402
from torch.utils.data import TensorDataset  # noqa: E402

from privamp import CyclicPoisson  # noqa: E402
from privamp.chance.grid_normals import grid_normals  # noqa: E402
from privamp.core.mechanism import IDEALISED  # noqa: E402
from privamp.errors import InvalidInput  # noqa: E402
from privamp.mechanisms.gaussian import Gaussian  # noqa: E402
from privamp.testing import seeded_key, seeded_stream  # noqa: E402
from privamp.torch import BatchMemoryManager, PrivacyEngine  # noqa: E402
from privamp.torch.adding import added_up  # noqa: E402
from privamp.torch.grid import Grid  # noqa: E402
from privamp.torch.plan import ROUNDED_ALONE  # noqa: E402

torch.set_num_threads(1)
CLIP, RECORDS = 0.5, 12


def model():
    torch.manual_seed(0)
    return nn.Sequential(
        nn.Conv2d(1, 3, 3), nn.Tanh(), nn.GroupNorm(1, 3), nn.Flatten(), nn.Linear(48, 5), nn.Tanh(), nn.Linear(5, 3)
    )


def started(tensors, **options):
    module, engine = model(), PrivacyEngine(key=seeded_key(1))
    settings = {"sampler": "uniform", "sample_rate": 1.0, "steps": 2, "noise_multiplier": 1.0, "exact_sums": True}
    parts = engine.make_private(
        module=module, optimizer=torch.optim.SGD(module.parameters(), 0.0), criterion=nn.CrossEntropyLoss(),
        data_loader=TensorDataset(*tensors), max_grad_norm=CLIP, population=10, **(settings | options),
    )  # fmt: skip
    return engine, parts


def added(tensors, **options):
    """The sum of a step before its noise, as one vector, and the unit it is counted in."""
    engine, _ = started(tensors, **options)
    run, found = engine._run, []
    add = run.team.added_up
    run.team.added_up = lambda parameters, sums: found.append(dict(sums.held)) or add(parameters, sums)
    engine.train(1)
    flat = torch.cat([found[0][id(p)].flatten().clone() for p in run.parameters])
    return flat, Grid(run.batches.mechanism, flat.numel(), run.batches.normaliser).unit


def records():
    generator = torch.Generator().manual_seed(2)
    sizes = torch.logspace(-3, 3, RECORDS).reshape(-1, 1, 1, 1)
    return torch.randn(RECORDS, 1, 6, 6, generator=generator) * sizes, torch.arange(RECORDS) % 3


def test_a_record_moves_exactly_its_own_rounded_gradient():
    x, y = records()
    one_by_one = {"max_physical_batch_size": 1}
    total, unit = added((x, y), **one_by_one)
    assert total.dtype == torch.int64
    for at in (0, 5, RECORDS - 1):
        rest = [torch.cat([t[:at], t[at + 1 :]]) for t in (x, y)]
        alone, _ = added((x[at : at + 1], y[at : at + 1]), **one_by_one)
        assert torch.equal(total - added(rest, **one_by_one)[0], alone)
        assert 0 < float(alone.double().norm()) * unit <= CLIP + 0.52 * unit * total.numel() ** 0.5
    turned = torch.arange(RECORDS - 1, -1, -1)
    assert torch.equal(added((x[turned], y[turned]), **one_by_one)[0], total)


def test_sums_in_floating_point_do_not():
    """Planted: what the check above is for."""
    x, y = records()
    floats = {"max_physical_batch_size": 1, "exact_sums": False}
    total, alone, rest = (added(some, **floats)[0] for some in ((x, y), (x[:1], y[:1]), (x[1:], y[1:])))
    assert not torch.equal(total - rest, alone)


@pytest.mark.parametrize("together", [None, 5])
def test_records_computed_together_move_it_by_a_clip(together):
    x, y = records()
    total, unit = added((x, y), max_physical_batch_size=together)
    rest, _ = added((x[1:], y[1:]), max_physical_batch_size=together)
    moved = float((total - rest).double().norm()) * unit
    assert 0 < moved <= CLIP * (1 + 1e-6)
    floats, _ = added((x, y), exact_sums=False)
    assert torch.allclose(total.double() * unit, floats.double(), atol=1e-5 * CLIP)


def test_adding_up_is_that_of_whole_numbers():
    """Against Python's integers, in any order, and modulo 2^64."""
    generator = torch.Generator().manual_seed(3)
    rows = torch.randn(50, 7, generator=generator) * torch.logspace(-8, 8, 50).reshape(-1, 1)
    scaled = torch.logspace(6, 10, 50, dtype=torch.float64)
    expected = [
        sum(round(float(row[j]) * float(scale)) for row, scale in zip(rows.double(), scaled, strict=True))
        for j in range(7)
    ]
    found = added_up(rows, scaled)
    assert [int(v) % 2**64 for v in found] == [v % 2**64 for v in expected]
    order = list(range(50))
    random.Random(1).shuffle(order)
    assert torch.equal(added_up(rows[order], scaled[order]), found)
    many = added_up(torch.ones(20, 1), torch.full((20,), 1e18, dtype=torch.float64))
    assert int(many) % 2**64 == 20 * 10**18 % 2**64


def test_noise_is_added_to_whole_numbers():
    (one, two) = (nn.Parameter(torch.zeros(n, dtype=torch.float64)) for n in (2, 3))
    made = Grid(Gaussian(1.5, sensitivity=1.0), 5, 8.0)
    units = [3, -(2**40), 2**63 - 1]
    found = made.noisy(seeded_stream(1), [one, two], {id(two): torch.tensor(units)}, torch.float64)
    noise = grid_normals(seeded_stream(1), 5) >> made.coarser
    for value, drawn, released in zip([0, 0, *units], noise.tolist(), found.tolist(), strict=True):
        whole = (value + drawn + 2**63) % 2**64 - 2**63
        assert released == pytest.approx(whole * made.unit / 8.0, rel=1e-15, abs=0)


def test_what_is_assumed_about_rounding():
    every = [{"exact_sums": False}, {}, {"max_physical_batch_size": 1}]
    assumed = [set(started(records(), **options)[0].guarantee().assumes) for options in every]
    floats, exact, alone = assumed
    assert IDEALISED in floats
    assert exact == floats - {IDEALISED} | {ROUNDED_ALONE}
    assert alone == floats - {IDEALISED}


def test_what_does_not_go_together_is_refused():
    _, parts = started(records(), max_physical_batch_size=1)
    with (
        pytest.raises(InvalidInput, match="one by one"),
        BatchMemoryManager(data_loader=parts[3], max_physical_batch_size=4),
    ):
        pass
    schedule = {"sampler": CyclicPoisson(0.1, 2, 4), "sample_rate": None, "steps": None}
    with pytest.raises(InvalidInput, match="use bands=1"):
        started(records(), **schedule)
    dpis = {"sampler": "dpis", "sample_rate": 0.5, "noise_multiplier": None, "target_epsilon": 8.0}
    with pytest.raises(InvalidInput, match="exact_sums is not an option"):
        started(records(), target_delta=1e-3, **dpis)
