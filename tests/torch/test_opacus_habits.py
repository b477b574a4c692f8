"""Scripts written for Opacus: its names, its loaders, its virtual steps; what has no place here is named."""

import numpy as np
import pytest

torch = pytest.importorskip("torch", reason="torch is not installed (make test-torch)")

from torch import nn  # noqa: E402
from torch.utils.data import (  # noqa: E402
    BatchSampler,
    DataLoader,
    RandomSampler,
    SequentialSampler,
    TensorDataset,
    WeightedRandomSampler,
)

from privamp import BallsInBins, CyclicPoisson, InvalidInput, NoTheorem, Poisson, PoissonPPS, WithoutReplacement  # noqa: E402
from privamp.testing import seeded_key  # noqa: E402
from privamp.torch import BatchMemoryManager, PrivacyEngine  # noqa: E402

torch.set_num_threads(1)
torch.manual_seed(0)
DATA = TensorDataset(torch.randn(60, 4), torch.arange(60) % 3)


def private(method="make_private", loader=None, **options):
    torch.manual_seed(1)
    model = nn.Linear(4, 3).double()
    engine = PrivacyEngine(key=seeded_key(1))
    data = TensorDataset(DATA.tensors[0].double(), DATA.tensors[1])
    settings = {"criterion": nn.CrossEntropyLoss(), "max_grad_norm": 1.0, "epochs": 2, "sampler": "uniform"}
    parts = getattr(engine, method)(
        module=model, optimizer=torch.optim.SGD(model.parameters(), 0.1),
        data_loader=loader or DataLoader(data, batch_size=12), **(settings | options),
    )  # fmt: skip
    return engine, parts


def test_rate_steps_and_number_come_from_the_loader():
    engine, (*_, loader) = private(noise_multiplier=1.0)
    plan = engine.plan
    assert (plan.rate, plan.steps, plan.population, len(loader)) == (0.2, 10, 60, 5)
    assert "number of records" in " ".join(engine.guarantee().assumes)
    assert "number of records" not in " ".join(private(noise_multiplier=1.0, epochs=None, steps=2, sample_rate=0.2,
                                                       population=60)[0].guarantee().assumes)  # fmt: skip


def test_a_batch_sampler_that_asks_for_nothing_else_gives_its_batch_size():
    data = TensorDataset(DATA.tensors[0].double(), DATA.tensors[1])
    loader = DataLoader(data, batch_sampler=BatchSampler(SequentialSampler(data), 12, False))
    plan = private(noise_multiplier=1.0, loader=loader)[0].plan
    assert (plan.rate, plan.steps, plan.population) == (0.2, 10, 60)


def test_epsilon_is_kept_after_all_epochs():
    engine, (model, optimizer, criterion, loader) = private(
        "make_private_with_epsilon", target_epsilon=3.0, target_delta=1e-5
    )
    for _ in range(2):
        for x, y in loader:
            optimizer.zero_grad()
            criterion(model(x), y).backward()
            optimizer.step()
    assert engine.is_finished
    assert 2.9 < engine.get_epsilon(1e-5) <= 3.0


def grads(scale=lambda loss: loss, **options):
    _, (model, optimizer, criterion, loader) = private(noise_multiplier=1e-12, **options)
    x, y = next(iter(loader))
    scale(criterion(model(x), y)).backward()
    optimizer.step()
    return torch.cat([p.grad.flatten() for p in model.parameters()])


def test_losses_go_with_numbers():
    plain, half = grads(max_grad_norm=100.0), grads(lambda loss: loss / 2 + 1, max_grad_norm=100.0)
    torch.testing.assert_close(half, plain / 2)
    torch.testing.assert_close(grads(lambda loss: 0.5 * loss, max_grad_norm=100.0), plain / 2)
    with pytest.raises(InvalidInput, match="penalty="):
        grads(lambda loss: loss + torch.ones(()))


def test_a_penalty_is_added_after_the_noise():
    plain = grads()
    torch.manual_seed(1)
    weights = torch.cat([p.flatten() for p in nn.Linear(4, 3).double().parameters()]).detach()
    found = grads(penalty=lambda module: sum(p.square().sum() for p in module.parameters()))
    torch.testing.assert_close(found, plain + 2 * weights)


@pytest.mark.parametrize("every", [True, False], ids=["step at every part", "step at the last"])
def test_virtual_steps_are_the_same_steps(every):
    def moved(size):
        engine, (model, optimizer, criterion, loader) = private(noise_multiplier=1.0)
        with BatchMemoryManager(data_loader=loader, max_physical_batch_size=size, optimizer=optimizer) as parts:
            for x, y in parts:
                assert len(x) <= size
                criterion(model(x), y).backward()
                if every or engine._run._is_last:
                    optimizer.step()
        assert engine.step == 5
        return model.weight.detach()

    torch.testing.assert_close(moved(4), moved(1000), rtol=1e-10, atol=1e-12)


@pytest.mark.parametrize(
    "scale",
    [
        lambda loss: loss - 1, lambda loss: 1 - loss, lambda loss: -loss, lambda loss: loss.mean() * np.float32(1),
        lambda loss: loss / 2 + loss / 2, lambda loss: 3 * loss - 2 * loss, lambda loss: sum([loss / 4, 0.75 * loss]),
    ],
)  # fmt: skip
def test_losses_are_added_and_subtracted(scale):
    torch.testing.assert_close(grads(scale).abs(), grads().abs(), rtol=1e-6, atol=1e-9)


def test_losses_are_added_in_the_same_shares_in_every_batch():
    _, (model, optimizer, criterion, loader) = private(noise_multiplier=1.0)

    def train():
        for x, y in loader:
            (criterion(model(x), y) + criterion(model(x), y) / len(x)).backward()
            optimizer.step()

    with pytest.raises(InvalidInput, match="same number in every batch"):
        train()


@pytest.mark.parametrize(
    "wrong",
    [
        lambda loss: loss**2, lambda loss: 1 / loss, lambda loss: loss / 0, lambda loss: loss.backward(torch.ones(())),
        lambda loss: loss.backward(create_graph=True), lambda loss: loss.sum(), torch.mean, torch.isnan,
        lambda loss: torch.stack([loss, loss]), lambda loss: torch.ones(()) * loss, lambda loss: np.ones(2) * loss,
        lambda loss: torch.amp.GradScaler("cpu").scale(loss),
    ],
)  # fmt: skip
def test_what_a_loss_cannot_do_is_said(wrong):
    _, (model, _, criterion, loader) = private(noise_multiplier=1.0)
    x, y = next(iter(loader))
    loss = criterion(model(x), y)
    with pytest.raises((InvalidInput, AttributeError), match="a private loss") as caught:
        wrong(loss)
    assert "\n" not in str(caught.value)
    assert f"{loss}" == "PrivateLoss(secret)"
    assert float(f"{loss:.6f}") == pytest.approx(loss.item(), abs=1e-6)
    loss.backward(retain_graph=True)


@pytest.mark.parametrize(
    "call",
    [
        lambda c, out, y: c(input=out, target=y),
        lambda c, out, y: c(target=y, input=out),
        lambda c, out, y: c(out, target=y),
    ],
)
def test_arguments_of_the_criterion_may_be_named(call):
    def taken(call):
        _, (model, optimizer, criterion, loader) = private(noise_multiplier=1e-12)
        x, y = next(iter(loader))
        call(criterion, model(x), y).backward()
        optimizer.step()
        return model.weight.grad

    assert torch.equal(taken(call), taken(lambda criterion, out, y: criterion(out, y)))


def test_what_the_criterion_does_not_have_is_said():
    _, (model, _, criterion, loader) = private(noise_multiplier=1.0)
    with pytest.raises(AttributeError, match="change the criterion before make_private"):
        criterion.to("cpu")
    x, y = next(iter(loader))
    with pytest.raises(InvalidInput, match="check their names"):
        criterion(model(x), labels=y)


SAMPLERS = [BallsInBins(5, 2), CyclicPoisson(0.2, 2, 10), Poisson(0.2), WithoutReplacement(12, 60)]


@pytest.mark.parametrize("sampler", SAMPLERS, ids=lambda sampler: type(sampler).__name__)
def test_another_sampler_goes_with_epochs(sampler):
    engine, (*_, loader) = private("make_private_with_epsilon", target_epsilon=3.0, target_delta=1e-5, sampler=sampler)
    assert (engine.plan.steps, engine.plan.size, len(loader)) == (10, 60, 5)
    assert engine.plan.normaliser == pytest.approx(12)
    assert 2.9 < engine.guarantee().epsilon(1e-5) <= 3.0


def test_rates_by_class_take_their_steps_from_epochs():
    sampler, classes = PoissonPPS.by_class({0: 0.1, 1: 0.2, 2: 0.3}), DATA.tensors[1]
    sizes = {0: 20, 1: 20, 2: 20}
    engine, _ = private(noise_multiplier=1.0, sampler=sampler, classes=classes, population=sizes)
    assert (engine.plan.steps, engine.plan.normaliser) == (10, pytest.approx(12))


def test_a_schedule_of_other_epochs_is_refused():
    with pytest.raises(InvalidInput, match=r"has 15 steps, but 2 epochs of the data loader have 10"):
        private(noise_multiplier=1.0, sampler=BallsInBins(5, 3))


def test_options_of_the_engine_that_have_no_meaning_are_named():
    with pytest.raises(InvalidInput, match="accountant is not an option"):
        PrivacyEngine(accountant="rdp")


@pytest.mark.parametrize("clip", [[1.0, 1.0], None, "1"])
def test_a_clip_that_is_no_number_is_refused(clip):
    with pytest.raises(InvalidInput, match="max_grad_norm must be a finite number above 0"):
        private(noise_multiplier=1.0, max_grad_norm=clip)
    assert private(noise_multiplier=1.0, max_grad_norm=torch.tensor(1.5))[0].plan.clip == 1.5


def test_a_target_above_all_losses_takes_the_least_noise():
    """The most noise, which passes too, would be taken for a target that no noise misses."""
    engine, _ = private("make_private_with_epsilon", target_epsilon=1e9, target_delta=1e-5)
    assert engine.plan.noise_multiplier == 0.01


class Two(BatchSampler):
    pass


ONES = [1.0] * 60


@pytest.mark.parametrize(
    ("loader", "kind", "words"),
    [
        (DataLoader(DATA, batch_size=4, shuffle=True), NoTheorem, "BallsInBins"),
        (DataLoader(DATA, batch_size=4, drop_last=True), InvalidInput, "TruncatedPoisson"),
        (DataLoader(DATA, batch_sampler=Two(SequentialSampler(DATA), 2, False)), NoTheorem, "batch sampler"),
        (DataLoader(DATA, batch_sampler=BatchSampler(RandomSampler(DATA), 2, False)), NoTheorem, "BallsInBins"),
        (DataLoader(DATA, batch_sampler=BatchSampler(WeightedRandomSampler(ONES, 60), 2, False)), NoTheorem, "weights"),
        (DataLoader(DATA, batch_sampler=BatchSampler(SequentialSampler(DATA), 2, True)), InvalidInput, "Truncated"),
        (
            DataLoader(DATA, sampler=SequentialSampler(range(20)), batch_size=4),
            InvalidInput,
            "only some of the records",
        ),
        (DataLoader(DATA, batch_size=None), InvalidInput, "batch_size"),
    ],
)
def test_what_a_loader_asks_for_in_vain_is_named(loader, kind, words):
    with pytest.raises(kind, match=words) as caught:
        private(loader=loader, noise_multiplier=1.0)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("options", [{"epochs": 0}, {"epochs": 1.5}, {"steps": 3}, {"sample_rate": 0.1}])
def test_epochs_say_everything(options):
    with pytest.raises(InvalidInput, match="epochs"):
        private(noise_multiplier=1.0, **options)
