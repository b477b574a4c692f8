"""Samplers and accountants with torch and Opacus themselves."""

import math
from itertools import islice

import numpy as np
import pytest

from every_kind import DESIGNS, SCHEDULES
from privamp import (
    BallsInBins,
    Gaussian,
    InvalidInput,
    Laplace,
    Neighbors,
    NoTheorem,
    Poisson,
    Rounds,
    WithoutReplacement,
    WithReplacement,
    amplify,
    compose,
)

torch = pytest.importorskip("torch", reason="samplers of PyTorch need torch")
pytest.importorskip("opacus", reason="the adapter of Opacus needs Opacus")

from opacus import PrivacyEngine  # noqa: E402
from opacus.accountants.utils import get_noise_multiplier  # noqa: E402
from opacus.utils.batch_memory_manager import BatchMemoryManager  # noqa: E402
from torch import nn  # noqa: E402
from torch.utils.data import DataLoader, TensorDataset  # noqa: E402

from privamp.adapters.opacus import PlannedAccountant, PoissonAccountant, engine_for  # noqa: E402
from privamp.adapters.torch import KeyedBatchSampler, keyed_loader  # noqa: E402
from privamp.testing import seeded_key  # noqa: E402

pytestmark = pytest.mark.filterwarnings("ignore")  # of Opacus and torch
RO = Neighbors.REPLACE_ONE
N = 60
RECORDS = TensorDataset(torch.arange(2 * N, dtype=torch.float32).reshape(N, 2) / N, torch.arange(N) % 2)


def training(engine, loader, noise=2.0, **options):
    model = nn.Linear(2, 2)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    return engine.make_private(
        module=model, optimizer=optimizer, data_loader=loader, noise_multiplier=noise, max_grad_norm=0.5, **options
    )


def one_epoch(model, optimizer, loader):
    steps = 0
    for x, y in loader:
        optimizer.zero_grad()
        nn.functional.cross_entropy(model(x), y).backward()
        optimizer.step()
        steps += 1
    return steps


@pytest.mark.parametrize("workers", [0, 1])
def test_a_loader_goes_on_with_fresh_rounds(workers):
    plan = Rounds(WithReplacement(8, N), 6)
    sampler = KeyedBatchSampler(plan, N, Gaussian(2.0), steps_per_epoch=3, key=seeded_key(1))
    loader = keyed_loader(RECORDS, sampler, num_workers=workers)
    assert len(loader) == 3
    epochs = [[x[:, 0].mul(N).long().div(2, rounding_mode="floor").tolist() for x, _ in loader] for _ in range(2)]
    drawn = [np.repeat(d.positions, d.counts).tolist() for d in plan.draw(N, seeded_key(1))]
    assert epochs[0] + epochs[1] == drawn
    with pytest.raises(InvalidInput, match="no guarantee covers another one"):
        list(loader)


def test_an_empty_batch_is_a_batch():
    sampler = KeyedBatchSampler(Rounds(Poisson(0.0), 2), N, Gaussian(2.0), key=seeded_key(1))
    for x, y in keyed_loader(RECORDS, sampler):
        assert x.shape == (0, 2)
        assert y.shape == (0,)
    named = [{"x": torch.zeros(3), "name": "a"}] * N
    sampler = KeyedBatchSampler(Rounds(Poisson(0.0), 1), N, Gaussian(2.0), key=seeded_key(1))
    (batch,) = keyed_loader(named, sampler)
    assert batch["x"].shape == (0, 3)
    assert batch["name"] == []


PLANS = [Rounds(WithoutReplacement(6, N), 4), BallsInBins(2, epochs=2), Rounds(Poisson(0.02), 4)]


@pytest.mark.parametrize("plan", PLANS)
def test_opacus_trains_on_planned_batches(plan):
    sampler = KeyedBatchSampler(plan, N, Gaussian(1.0, sensitivity=0.5), steps_per_epoch=2, key=seeded_key(3))
    engine = engine_for(sampler)
    model, optimizer, loader = training(engine, keyed_loader(RECORDS, sampler), poisson_sampling=False)
    assert loader.batch_sampler is sampler
    before = [p.detach().clone() for p in model.parameters()]
    assert engine.get_epsilon(1e-5) == 0.0
    assert one_epoch(model, optimizer, loader) == 2
    assert all(not torch.equal(a, b) for a, b in zip(before, model.parameters(), strict=True))
    assert engine.accountant.guarantee().claims == amplify(Gaussian(1.0, sensitivity=0.5), plan).claims
    assert one_epoch(model, optimizer, loader) == 2
    assert len(engine.accountant) == 4
    with pytest.raises(InvalidInput, match="another one"):
        one_epoch(model, optimizer, loader)


def counted(plan, population):
    """The accountant after every round of the plan, each counted by Opacus' own hook, and its epsilon."""
    noise = Gaussian(2.0, sensitivity=0.5)
    sampler = KeyedBatchSampler(plan, population, noise, key=seeded_key(3))
    engine = engine_for(sampler)
    model = engine._prepare_model(nn.Linear(2, 2))
    optimizer = engine._prepare_optimizer(
        optimizer=torch.optim.SGD(model.parameters(), lr=0.1),
        noise_multiplier=4.0,
        max_grad_norm=0.5,
        expected_batch_size=1,
    )
    optimizer.attach_step_hook(engine.accountant.get_optimizer_hook_fn(sample_rate=1.0))
    for batch in sampler:
        optimizer.zero_grad()
        model(torch.ones(len(batch), 2)).sum().backward()
        optimizer.step()
    return engine.accountant


@pytest.mark.filterwarnings("ignore::privamp.errors.DegradingDesign")
@pytest.mark.parametrize("name", sorted((DESIGNS.keys() - {"ImportanceSampling"}) | SCHEDULES.keys()))
def test_the_accountant_of_every_design_and_schedule(name):
    """What Opacus reports is what amplify certifies for the plan, after as many steps as it has rounds."""
    found = (DESIGNS | SCHEDULES)[name]
    plans = [(Rounds(p, 2) if name in DESIGNS else p, n) for p, n in islice(found.small_cases(), 8)]
    done = 0
    for plan, population in plans[2::5]:
        try:
            true = amplify(Gaussian(2.0, sensitivity=0.5), plan)
        except NoTheorem:
            continue
        accountant = counted(plan, population)
        assert len(accountant) == plan.steps
        assert accountant.get_epsilon(1e-5) == true.epsilon(1e-5) > 0.0
        done += 1
    assert done


def test_too_little_noise_changes_no_parameter():
    sampler = KeyedBatchSampler(Rounds(Poisson(0.5), 4), N, Gaussian(1.0), key=seeded_key(3))
    loader = keyed_loader(RECORDS, sampler)
    model, optimizer, loader = training(engine_for(sampler), loader, 0.9, poisson_sampling=False)
    before = [p.detach().clone() for p in model.parameters()]
    with pytest.raises(InvalidInput, match=r"at least 1 as planned, got 0\.9"):
        one_epoch(model, optimizer, loader)
    assert all(torch.equal(a, b) for a, b in zip(before, model.parameters(), strict=True))
    with pytest.raises(InvalidInput, match="Gaussian noise"):
        PlannedAccountant(KeyedBatchSampler(Rounds(Poisson(0.5), 4), N, Laplace(1.0)))


def test_batches_that_opacus_drew_instead_are_refused():
    """Without poisson_sampling=False Opacus replaces the loader: its batches are not those that are certified."""
    sampler = KeyedBatchSampler(BallsInBins(4), N, Gaussian(2.0), key=seeded_key(3))
    model, optimizer, loader = training(engine_for(sampler), keyed_loader(RECORDS, sampler))
    assert loader.batch_sampler is not sampler
    before = [p.detach().clone() for p in model.parameters()]
    with pytest.raises(InvalidInput, match="not drawn by the plan"):
        one_epoch(model, optimizer, loader)
    assert all(torch.equal(a, b) for a, b in zip(before, model.parameters(), strict=True))


def test_a_batch_is_not_used_for_two_steps():
    sampler = KeyedBatchSampler(Rounds(Poisson(0.9), 2), N, Gaussian(2.0), key=seeded_key(3))
    model, optimizer, loader = training(engine_for(sampler), keyed_loader(RECORDS, sampler), poisson_sampling=False)
    x, y = next(iter(loader))
    nn.functional.cross_entropy(model(x), y).backward()
    optimizer.step()
    optimizer.zero_grad()
    nn.functional.cross_entropy(model(x), y).backward()
    with pytest.raises(InvalidInput, match="not drawn by the plan"):
        optimizer.step()


def test_the_accountant_by_name():
    engine = PrivacyEngine(accountant="privamp")
    model, optimizer, loader = training(engine, DataLoader(RECORDS, batch_size=20))
    assert one_epoch(model, optimizer, loader) == 3
    rate = math.ceil(2**24 / 3) / 2**24  # what torch.rand < 1/3 draws
    assert rate > 1 / 3
    truth = compose(amplify(Gaussian(2.0), Poisson(rate)), 3)
    assert engine.get_epsilon(1e-5) == truth.epsilon(1e-5)
    told = engine.accountant.guarantee()
    assert told.because
    assert "idealised real arithmetic" in told.assumes
    state = engine.accountant.state_dict()
    again = PoissonAccountant()
    again.load_state_dict(state)
    assert again.guarantee() == told


def test_below_opacus_own_accountants_and_above_the_attack():
    steps = [(2.0, 0.25, 4)]
    found = {}
    for name in ("privamp", "prv", "rdp"):
        accountant = PrivacyEngine(accountant=name).accountant
        accountant.history = steps
        found[name] = accountant.get_epsilon(1e-5)
    ours = PoissonAccountant()
    ours.history = steps
    assert ours.guarantee().lower.epsilon(1e-5) <= found["privamp"] <= found["prv"] * (1 + 1e-4) <= found["rdp"]


def test_replace_one_counts_twice_the_clip():
    accountant = PoissonAccountant()
    accountant.history = [(1.0, 1.0, 1)]
    accountant.neighbors = RO
    half_the_noise = amplify(Gaussian(0.5), Poisson(1.0))
    assert accountant.get_epsilon(1e-5) == half_the_noise.epsilon(1e-5)


def test_several_fresh_batches_in_one_step_are_refused():
    sampler = KeyedBatchSampler(Rounds(Poisson(0.5), 3), N, Gaussian(1.0), key=seeded_key(3))
    loader = keyed_loader(RECORDS, sampler)
    model, optimizer, loader = training(engine_for(sampler), loader, poisson_sampling=False)
    before = [p.detach().clone() for p in model.parameters()]
    for x, y in loader:
        nn.functional.cross_entropy(model(x), y).backward()
    with pytest.raises(InvalidInput, match="3 fresh batches"):
        optimizer.step()
    assert all(torch.equal(a, b) for a, b in zip(before, model.parameters(), strict=True))
    # why: two batches of rate q hold a record twice with chance q^2, which one batch of rate 2q never does
    from privamp.adapters.moved_gaussians import MovedGaussians

    q, epsilon = 0.1, 3.0
    twice = MovedGaussians(1.0, (0.0, 1.0, 2.0), ((1 - q) ** 2, 2 * q * (1 - q), q * q)).profile(Neighbors.ADD_REMOVE)
    assert twice.delta(epsilon) > 2 * amplify(Gaussian(1.0), Poisson(2 * q)).delta(epsilon)


def test_one_batch_in_pieces_is_one_step():
    engine = PrivacyEngine(accountant="privamp")
    model, optimizer, loader = training(engine, DataLoader(RECORDS, batch_size=20))
    with BatchMemoryManager(data_loader=loader, max_physical_batch_size=7, optimizer=optimizer) as pieces:
        one_epoch(model, optimizer, pieces)
    assert len(engine.accountant) == 3


def test_opacus_calibrates_with_it():
    noise = get_noise_multiplier(
        target_epsilon=2.0, target_delta=1e-5, sample_rate=0.5, steps=1, accountant="privamp", epsilon_tolerance=0.01
    )
    assert 1.99 <= amplify(Gaussian(noise), Poisson(0.5)).epsilon(1e-5) <= 2.0


def test_sentences():
    sampler = KeyedBatchSampler(Rounds(Poisson(0.5), 2), N, Gaussian(1.0))
    with pytest.raises(InvalidInput, match="omit shuffle"):
        keyed_loader(RECORDS, sampler, shuffle=True)
    with pytest.raises(InvalidInput, match="must have the same size"):
        keyed_loader(TensorDataset(torch.zeros(3)), sampler)
    with pytest.raises(InvalidInput, match=r"torch .* failed while making a loader \(ValueError\)"):
        keyed_loader(RECORDS, sampler, num_workers=-1)
    with pytest.raises(InvalidInput, match="KeyedBatchSampler"):
        keyed_loader(RECORDS, [[0]])
    with pytest.raises(InvalidInput, match="nothing to certify"):
        PoissonAccountant().guarantee()
    with pytest.raises(InvalidInput, match="noise_multiplier"):
        PoissonAccountant().step(noise_multiplier=0.0, sample_rate=0.1)


def test_a_second_release_in_a_step_is_refused():
    """Adaptive clipping releases how many rows were not clipped: delta(1) was certified as .127 and is at least .46."""
    engine, loader = PrivacyEngine(accountant="privamp"), DataLoader(RECORDS, batch_size=20)
    options = {"target_unclipped_quantile": 0.5, "clipbound_learning_rate": 0.2, "max_clipbound": 1.0}
    more = {"min_clipbound": 0.1, "unclipped_num_std": 1.0, "clipping": "adaptive"}
    model, optimizer, loader = training(engine, loader, noise=1.0, **options, **more)
    with pytest.raises(InvalidInput, match="more than one noisy sum"):
        one_epoch(model, optimizer, loader)
    assert len(engine.accountant) == 0


def test_a_coarse_generator_is_refused():
    """In bfloat16 records were drawn at .003 where .001 was certified."""
    engine = PrivacyEngine(accountant="privamp")
    _, optimizer, _ = training(engine, DataLoader(RECORDS, batch_size=20))
    hook = engine.accountant.get_optimizer_hook_fn(0.1)
    usual = torch.get_default_dtype()
    torch.set_default_dtype(torch.bfloat16)
    try:
        with pytest.raises(InvalidInput, match="too coarse"):
            hook(optimizer)
    finally:
        torch.set_default_dtype(usual)


def test_the_guarantee_says_who_draws():
    accountant = PoissonAccountant()
    accountant.step(noise_multiplier=1.0, sample_rate=0.1)
    assumes = accountant.guarantee().assumes
    assert any("torch's generator" in line for line in assumes)
    assert not any("AES" in line for line in assumes)


def test_saved_steps_are_not_those_of_another_plan():
    """Loaded into the accountant of a small plan, 100 large steps were reported with .107 where 39.98 is true."""
    large = PlannedAccountant(KeyedBatchSampler(Rounds(Poisson(0.5), 100), N, Gaussian(1.0)))
    large.history = [(1.0, 0.5, 100)]
    small = PlannedAccountant(KeyedBatchSampler(Rounds(Poisson(0.1), 2), N, Gaussian(5.0)))
    with pytest.raises(InvalidInput, match="only the batches drawn by its own key"):
        small.load_state_dict(large.state_dict())


def test_a_loaded_state_keeps_steps_and_relation():
    first = PoissonAccountant()
    first.neighbors = RO
    first.step(noise_multiplier=1.0, sample_rate=0.1)
    again = PoissonAccountant()
    again.load_state_dict(first.state_dict())
    assert again.get_epsilon(1e-5) == first.get_epsilon(1e-5)
    assert again.neighbors == RO
    with pytest.raises(InvalidInput, match="forget the 1 steps"):
        again.load_state_dict(first.state_dict())
    with pytest.raises(InvalidInput, match=r"^opacus .* failed while loading a state"):
        PoissonAccountant().load_state_dict({})


def test_a_tensor_that_changes_later_does_not_change_the_history():
    """Opacus' noise schedulers multiply in place: with a tensor, .0045 was certified where .12 is true."""
    noise, accountant = torch.tensor(5.0), PoissonAccountant()
    accountant.step(noise_multiplier=noise, sample_rate=0.1)
    noise *= 10
    accountant.step(noise_multiplier=noise, sample_rate=0.1)
    assert accountant.history == [(5.0, 0.1, 1), (50.0, 0.1, 1)]
