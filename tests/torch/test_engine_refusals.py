"""The ways the engine says no: bad input, uncertified samplers, loops that are not followed, secrets."""

import pytest

torch = pytest.importorskip("torch", reason="torch is not installed (make test-torch)")

from torch import nn  # noqa: E402
from torch.utils.data import (  # noqa: E402
    DataLoader,
    Dataset,
    IterableDataset,
    RandomSampler,
    WeightedRandomSampler,
)

from privamp import BudgetExceeded, InvalidInput, Key, NoTheorem, Poisson, PoissonPPS, WithoutReplacement  # noqa: E402
from privamp.torch import PrivacyEngine, device  # noqa: E402
from small_runs import N, data, loop, model, private  # noqa: E402


def test_steps_beyond_the_certified_number_are_refused():
    engine, parts = private(steps=2, steps_per_epoch=5)
    loop(parts)  # a pass ends with the plan
    assert engine.step == 2
    with pytest.raises(BudgetExceeded, match="all 2 certified steps"):
        loop(parts)
    with pytest.raises(BudgetExceeded, match="all 2 certified steps"):
        engine.train(1)


class Endless(IterableDataset):
    def __iter__(self):
        yield torch.zeros(5), 0


class Lengthless(Dataset):
    def __getitem__(self, index):
        return torch.zeros(5), 0


BAD = [
    ({"records": DataLoader(data(), shuffle=True)}, NoTheorem, "RandomSampler is not certified"),
    ({"records": DataLoader(data(), sampler=WeightedRandomSampler([1.0] * N, 5))}, NoTheorem, "Weighted"),
    ({"sampler": RandomSampler(data())}, NoTheorem, "shuffled batches"),
    ({"sampler": DataLoader(data(), shuffle=True)}, NoTheorem, "shuffled batches"),
    ({"sampler": WeightedRandomSampler([1.0] * N, 5)}, NoTheorem, "function of all records"),
    ({"sampler": PoissonPPS(0.5), "sample_rate": None}, InvalidInput, "batches need designs"),
    ({"sampler": "sorted"}, InvalidInput, "sampler must be one of"),
    ({"sampler": Poisson}, InvalidInput, r"such as Poisson\(0.01\), got the class Poisson"),
    ({"records": (torch.zeros(9, 5), torch.zeros(9))}, InvalidInput, r"2 arrays instead; use TensorDataset\(x, y\)"),
    ({"records": Endless()}, InvalidInput, "no length"),
    ({"records": DataLoader(Endless())}, InvalidInput, "no length"),
    ({"records": Lengthless()}, InvalidInput, "no length"),
    ({"sample_rate": 1.5}, InvalidInput, "sample_rate must be a number from 0 to 1, got 1.5"),
    ({"sample_rate": None}, InvalidInput, "sample_rate is missing"),
    ({"sample_rate": 0.0}, InvalidInput, "above 0"),
    ({"population": None}, InvalidInput, "population is missing"),
    ({"steps": 0}, InvalidInput, "steps"),
    ({"max_grad_norm": 0.0}, InvalidInput, "max_grad_norm|clip"),
    ({"growth": 0.5}, InvalidInput, "growth"),
    ({"floor": 0.0}, InvalidInput, "floor"),
    ({"noise_multiplier": None}, InvalidInput, "give either"),
    ({"target_epsilon": 1.0, "target_delta": 1e-5}, InvalidInput, "give either"),
    ({"split": 0.5}, InvalidInput, "option of sampler='dpis'"),
    ({"sampler": "dpis"}, InvalidInput, "target_epsilon"),
    ({"sampler": WithoutReplacement(5, population=N)}, InvalidInput, "omit sample_rate"),
    ({"ids": [1, 1]}, InvalidInput, "unique"),
]


@pytest.mark.parametrize(("options", "kind", "words"), BAD, ids=[f"{i}" for i in range(len(BAD))])
def test_bad_input_is_one_sentence(options, kind, words):
    with pytest.raises(kind, match=words) as caught:
        private(**options)
    assert "\n" not in str(caught.value)


def test_what_is_no_module_or_learns_nothing():
    optimizer = torch.optim.SGD([nn.Parameter(torch.zeros(1))], 0.1)
    options = {"optimizer": optimizer, "criterion": None, "data_loader": data(), "steps": 1, "max_grad_norm": 1.0}
    with pytest.raises(InvalidInput, match=r"module must be a torch\.nn\.Module, got function"):
        PrivacyEngine().make_private(module=model, **options)
    with pytest.raises(InvalidInput, match="has no parameters"):
        PrivacyEngine().make_private(module=nn.Flatten(), **options)


@pytest.mark.parametrize(
    ("module", "words"),
    [
        (nn.Sequential(nn.Linear(5, 3, dtype=torch.complex64)), "is complex"),
        (nn.Sequential(nn.Flatten(), nn.LazyLinear(3)), "has no shape yet"),
    ],
)
def test_parameters_that_are_no_real_numbers_are_refused(module, words):
    """The imaginary part was left out of norms: a record of imaginary numbers moved the sum by several clips."""
    with pytest.raises(InvalidInput, match=words):
        PrivacyEngine().make_private(
            module=module, optimizer=None, criterion=nn.CrossEntropyLoss(), data_loader=data(), steps=1,
            noise_multiplier=1.0, max_grad_norm=1.0, population=10, sample_rate=0.5,
            compute=lambda module, criterion, batch: criterion(module(batch[0].to(torch.complex64)).abs(), batch[1]),
        )  # fmt: skip


def test_a_model_without_a_loss_of_its_own_needs_a_criterion():
    module = model()
    with pytest.raises(InvalidInput, match="give a criterion if it does not"):
        PrivacyEngine().make_private(
            module=module, optimizer=torch.optim.SGD(module.parameters(), 0.1), criterion=None, data_loader=data(),
            sample_rate=0.1, steps=1, noise_multiplier=1.0, max_grad_norm=1.0, population=N,
        )  # fmt: skip


def test_a_device_that_is_not_there():
    assert device("cpu").type == "cpu"
    if not torch.cuda.is_available():
        with pytest.raises(InvalidInput, match="cuda is not available"):
            device("cuda")
    with pytest.raises(InvalidInput, match="device must be"):
        device("abacus")


def test_the_loop_must_be_followed():
    engine, (module, optimizer, criterion, batches) = private()
    with pytest.raises(InvalidInput, match="no gradient to step with"):
        optimizer.step()
    x, y = next(iter(batches))
    loss = criterion(module(x), y)
    loss.backward()
    with pytest.raises(InvalidInput, match="backward was called twice"):
        loss.backward()
    with pytest.raises(InvalidInput, match="closure"):
        optimizer.step(lambda: 0.0)
    optimizer.step()
    assert engine.step == 1
    with pytest.raises(InvalidInput, match="left unfinished"):
        [criterion(module(x), y).backward() for x, y in batches]


def test_one_engine_one_run_and_one_key_one_run():
    engine, parts = private()
    module = model()
    with pytest.raises(InvalidInput, match="already has a run"):
        engine.make_private(module=module, optimizer=None, criterion=None, data_loader=None, steps=1, max_grad_norm=1.0)
    key = Key.generate()
    options = {"sample_rate": 0.1, "steps": 1, "noise_multiplier": 1.0, "max_grad_norm": 1.0, "population": 50}
    for turn in range(2):
        module = model()
        optimizer = torch.optim.SGD(module.parameters(), 0.1)
        again = PrivacyEngine(key=key)
        parts = {"module": module, "optimizer": optimizer, "criterion": nn.CrossEntropyLoss(), "data_loader": data()}
        if turn == 0:
            again.make_private(**parts, **options)
        else:
            with pytest.raises(InvalidInput, match="already drawn for this training"):
                again.make_private(**parts, **options)


def test_shards_are_refused():
    class FSDPLinear(nn.Linear):
        pass

    with pytest.raises(InvalidInput, match="FSDP splits parameters"):
        private(FSDPLinear(5, 3))


def test_a_buffer_that_learns_is_refused():
    class Counting(nn.Module):
        def __init__(self):
            super().__init__()
            self.layer = nn.Linear(5, 3)
            self.register_buffer("mean", torch.zeros(5))

        def forward(self, x):
            self.mean.add_(x.mean(dim=0))
            return self.layer(x)

    with pytest.raises(InvalidInput, match="buffer"):
        private(Counting())


def test_a_schedule_that_follows_the_loss_is_refused():
    module = model()
    optimizer = torch.optim.SGD(module.parameters(), 0.1)
    with pytest.raises(InvalidInput, match="follows a loss"):
        private(module, optimizer, scheduler=torch.optim.lr_scheduler.ReduceLROnPlateau(optimizer))


def test_nothing_secret_is_shown():
    engine, parts = private(sampler="importance")
    shown = []
    for x, y in parts[3]:
        loss = parts[2](parts[0](x), y)
        shown += [repr(loss), repr(parts[3]), repr(engine), repr(engine._run.batches.draw(0))]
        loss.backward()
        parts[1].step()
    assert not any("tensor" in text or "array" in text for text in shown)


def test_optimizers_of_other_parameters_are_refused():
    module = model()
    with pytest.raises(InvalidInput, match="exactly the trainable parameters"):
        private(module, torch.optim.SGD(list(module.parameters())[:1], 0.1))
    with pytest.raises(InvalidInput, match="LBFGS"):
        private(module, torch.optim.LBFGS(module.parameters()))
