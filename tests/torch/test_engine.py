"""The engine as its users meet it: the same gradients as Opacus, every sampler, every design."""

import copy

import numpy as np
import pytest

torch = pytest.importorskip("torch", reason="torch is not installed (make test-torch)")

from torch import nn  # noqa: E402
from torch.utils.data import Dataset, Subset, TensorDataset  # noqa: E402

from privamp import (  # noqa: E402
    BudgetExceeded,
    InvalidInput,
    MultiStage,
    Neighbors,
    Poisson,
    WithoutReplacement,
    WithReplacement,
)
from small_runs import N, data, loop, model, private, weights_of  # noqa: E402

TINY = 1e-12  # a noise multiplier that is none, for comparing gradients


@pytest.mark.parametrize("sampler", ["uniform", "importance", "importance-reject", "dpis"])
def test_the_loop_and_train_do_the_same(sampler):
    extra = {
        "noise_multiplier": None,
        "target_epsilon": 8.0,
        "target_delta": 1e-3,
        "size_noise": 20.0,
        "sum_noise": 30.0,
    }
    options = extra if sampler == "dpis" else {}
    one, parts = private(sampler=sampler, **options)
    while not one.is_finished:
        loop(parts)
    two, others = private(sampler=sampler, **options)
    assert two.train() == 12
    assert one.step == two.step == 12
    assert torch.equal(weights_of(parts[0]), weights_of(others[0]))
    assert torch.all(torch.isfinite(weights_of(parts[0])))


def test_uniform_is_the_ghost_clipped_gradient_of_opacus():
    pytest.importorskip("opacus", reason="opacus is not installed (make test-torch)")
    from opacus.grad_sample import GradSampleModuleFastGradientClipping

    module = model().double()
    records = TensorDataset(data().tensors[0].double(), data().tensors[1])
    twin = copy.deepcopy(module)
    _engine, (module, optimizer, criterion, batches) = private(
        module, records=records, sampler="uniform", noise_multiplier=TINY
    )
    x, y = next(iter(batches))
    criterion(module(x), y).backward()
    optimizer.step()
    ours = torch.cat([p.grad.flatten() for p in module.parameters()])
    wrapped = GradSampleModuleFastGradientClipping(
        twin, loss_reduction="sum", max_grad_norm=0.5, use_ghost_clipping=True
    )
    nn.functional.cross_entropy(wrapped(x), y, reduction="sum").backward(retain_graph=True)
    clips = wrapped.get_clipping_coef()
    wrapped.zero_grad()
    wrapped.disable_hooks()
    (nn.functional.cross_entropy(wrapped(x), y, reduction="none") * clips).sum().backward()
    theirs = torch.cat([p.grad.flatten() for p in twin.parameters()]) / (0.3 * 50)
    torch.testing.assert_close(ours, theirs, rtol=1e-5, atol=1e-9)  # Opacus adds 1e-6 to norms


@pytest.mark.parametrize("sampler", ["uniform", "importance", "importance-reject"])
def test_parts_that_fit_into_memory_change_nothing(sampler):
    wholes, pieces = (
        private(model().double(), records=TensorDataset(data().tensors[0].double(), data().tensors[1]), sampler=sampler,
                max_physical_batch_size=size)
        for size in (None, 4)
    )  # fmt: skip
    for engine, parts in (wholes, pieces):
        while not engine.is_finished:
            loop(parts)
    torch.testing.assert_close(weights_of(wholes[1][0]), weights_of(pieces[1][0]), rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("make", [
    lambda p: torch.optim.SGD(p, 0.1, momentum=0.9, weight_decay=0.01),
    lambda p: torch.optim.Adam(p, 0.01),
    lambda p: torch.optim.AdamW(p, 0.01, foreach=True),
])  # fmt: skip
def test_optimizers_see_the_noisy_mean_as_their_gradient(make):
    module = model()
    engine, (module, optimizer, _, _) = private(module, make(module.parameters()), max_physical_batch_size=5)
    scheduler = torch.optim.lr_scheduler.StepLR(optimizer, 2)
    before = weights_of(module)
    engine.train(3, on_step=lambda progress: scheduler.step())
    assert torch.any(weights_of(module) != before)
    steps = [int(s["step"]) for s in optimizer.state.values() if "step" in s]
    assert all(s == 3 for s in steps)  # parts of a batch are one step


def test_an_empty_batch_steps_with_noise_only():
    module = nn.Linear(5, 3)
    engine, (module, optimizer, criterion, batches) = private(module, sample_rate=1e-9, steps=3)
    before = weights_of(module)
    loop((module, optimizer, criterion, [next(iter(batches))]))
    moved = weights_of(module) - before
    assert torch.all(moved != 0)
    assert engine.step == 1
    engine.train()
    assert engine.step == 3


def test_noise_has_its_standard_deviation():
    module = nn.Linear(400, 100, bias=False)
    engine, _parts = private(
        module, torch.optim.SGD(module.parameters(), 1.0), TensorDataset(torch.zeros(4, 400), torch.zeros(4).long()),
        noise_multiplier=3.0, max_grad_norm=2.0, sample_rate=0.5, population=8, steps=1,
    )  # fmt: skip
    before = weights_of(module)
    engine.train()
    moved = weights_of(module) - before
    assert float(moved.std()) == pytest.approx(3.0 * 2.0 / (8 * 0.5), rel=0.03)  # 40,000 draws: 8 standard errors
    assert abs(float(moved.mean())) < 0.06


def test_bounds_shrink_and_save_gradients():
    engine, _ = private(sampler="importance", steps=30, noise_multiplier=TINY, max_grad_norm=20.0, floor=0.01)
    drawn = []
    engine.train(on_step=lambda progress: drawn.append(progress.secret_batch))
    assert np.mean(drawn[20:]) < 0.7 * np.mean(drawn[:5])
    assert np.all(engine._run.batches.bounds <= 20.0)


def test_a_record_whose_loss_is_no_number_counts_as_nothing():
    x, y = data().tensors
    x = x.clone()
    x[7] = float("nan")
    engine, parts = private(records=TensorDataset(x, y), sample_rate=1.0)
    engine.train()
    assert torch.all(torch.isfinite(weights_of(parts[0])))


def test_parameters_that_are_no_numbers_stop_the_run_and_keep_its_state():
    engine, parts = private()
    engine.train(2)
    with torch.no_grad():
        parts[0][0].weight[0, 0] = float("inf")
    with pytest.raises(InvalidInput, match="no longer finite numbers after step 2"):
        engine.train(1)
    assert engine.step == 2
    assert engine.spent().steps == 2


DESIGNS = [
    Poisson(0.3),
    WithoutReplacement(15, population=N),
    WithReplacement(15, population=N),
    MultiStage([("wor", 20), ("wr", 15)], population=N),
]


@pytest.mark.parametrize("design", DESIGNS, ids=lambda d: type(d).__name__)
def test_designs_draw_and_certify_batches(design):
    module = nn.Linear(5, 3, bias=False).double()
    records = TensorDataset(data().tensors[0].double(), data().tensors[1])
    engine, _parts = private(
        module, torch.optim.SGD(module.parameters(), 1.0), records, sampler=design, sample_rate=None,
        population=N, steps=2, noise_multiplier=TINY if isinstance(design, WithReplacement) else 1.0,
    )  # fmt: skip
    batch = engine._run.batches.draw(0)
    assert batch.counts.sum() == 15 or isinstance(design, Poisson)
    if isinstance(design, WithReplacement):
        before, (x, y) = weights_of(module), records.tensors
        engine.train(1)
        total = torch.zeros_like(before)
        fresh = nn.Linear(5, 3, bias=False).double()
        for at, copies in zip(batch.positions, batch.counts, strict=True):
            with torch.no_grad():
                fresh.weight.copy_(before.view(3, 5))
            fresh.zero_grad()
            nn.functional.cross_entropy(fresh(x[at : at + 1]), y[at : at + 1]).backward()
            gradient = fresh.weight.grad.flatten()
            total += copies * gradient * min(1.0, 0.5 / float(gradient.norm()))
        torch.testing.assert_close(weights_of(module), before - total / 15, rtol=1e-9, atol=1e-11)
        return
    guarantee = engine.guarantee()
    assert guarantee.neighbors == design.natural
    from privamp import Gaussian, amplify, compose

    plain = compose(amplify(Gaussian(1.0), design), 2)
    assert guarantee.epsilon(1e-3) == pytest.approx(plain.epsilon(1e-3))
    assert not guarantee.is_private  # a seeded key


def test_importance_under_replace_one():
    engine, _ = private(neighbors=Neighbors.REPLACE_ONE)
    assert engine.guarantee().neighbors == Neighbors.REPLACE_ONE
    assert engine.guarantee().epsilon(1e-5) > engine.guarantee(Neighbors.ADD_REMOVE).epsilon(1e-5)


def test_opacus_accountants_agree_from_their_side():
    pytest.importorskip("opacus", reason="opacus is not installed (make test-torch)")
    from opacus.accountants import PRVAccountant, RDPAccountant

    engine, _ = private(sample_rate=0.05, steps=300, noise_multiplier=1.1)
    ours = engine.guarantee().epsilon(1e-5)
    prv, rdp = PRVAccountant(), RDPAccountant()
    for accountant in (prv, rdp):
        accountant.history = [(1.1, 0.05, 300)]
    assert ours == pytest.approx(prv.get_epsilon(delta=1e-5), rel=0.01)
    assert ours < rdp.get_epsilon(delta=1e-5)


def test_target_epsilon_is_kept():
    engine, _ = private(noise_multiplier=None, target_epsilon=2.0, target_delta=1e-5)
    assert 1.999 < engine.guarantee().epsilon(1e-5) <= 2.0
    assert engine.get_epsilon(1e-5) == 0.0
    engine.train(3)
    assert 0 < engine.get_epsilon(1e-5) < 2.0


def test_the_filter_of_dpis_stops_before_its_limit():
    engine, _parts = private(
        sampler="dpis", noise_multiplier=None, target_epsilon=4.0, target_delta=1e-4, steps=40, sample_rate=0.2,
        size_noise=30.0, sum_noise=40.0, external_clip=2.0, split=0.5,
    )  # fmt: skip
    batches = engine._run.batches
    engine.train()
    limit = batches.limit.limits["renyi_loss"]
    assert 0.9 * limit < batches.spent <= limit
    assert engine.guarantee().epsilon(1e-4) <= 4.0
    assert batches.rule.clip <= 2.0
    batches._spent = {"renyi_loss": int(limit * 1e15)}
    engine._run.step = engine._run.charged = 39
    with pytest.raises(BudgetExceeded, match="training stops here"):
        engine.train(1)


class Listed(Dataset):
    """A data set that is no tensor."""

    def __len__(self):
        return N

    def __getitem__(self, index):
        x, y = data().tensors
        return x[index], int(y[index])


def test_any_data_set_with_a_length_will_do():
    one, two, three = private(), private(records=Listed()), private(records=Subset(data(), range(N)))
    for engine, _ in (one, two, three):
        engine.train()
    assert torch.equal(weights_of(one[1][0]), weights_of(two[1][0]))
    assert torch.equal(weights_of(one[1][0]), weights_of(three[1][0]))


def test_evaluation_between_steps_is_left_alone():
    _engine, (module, optimizer, criterion, batches) = private()
    x, y = data().tensors
    for a, b in batches:
        with torch.no_grad():
            assert float(criterion(module(x), y)) > 0
        loss = criterion(module(a), b)
        loss.backward()
        optimizer.step()
    assert torch.equal(nn.functional.cross_entropy(module(x), y), criterion(module(x), y))


def test_the_trained_parameters_are_a_release_and_the_old_name_of_the_population_warns():
    with pytest.warns(DeprecationWarning, match="'public_size' is now 'population'"):
        engine, (module, *_) = private(population=None, public_size=50, steps=2)
    assert engine.plan.facts()["public_size"] == 50  # as checkpoints and budgets have it
    engine.train()
    found = engine.result(delta=1e-5)
    assert np.array_equal(np.concatenate([part.ravel() for part in found.value.values()]), weights_of(module).numpy())
    assert found.steps_run == 2
    assert found.standard_error is None
    assert found.guarantee == engine.guarantee()
    answer = found.to_json()
    assert answer["guarantee"]["delta"] == 1e-5
    assert list(answer["value"]) == list(found.value)
    assert "0.weight" in found._repr_html_()
    assert "0.weight" in repr(found)
    again = copy.deepcopy(found)
    assert again == found
