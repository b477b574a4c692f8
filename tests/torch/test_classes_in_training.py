"""Batches balanced over classes by public rates."""

import numpy as np
import pytest

torch = pytest.importorskip("torch", reason="torch is not installed (make test-torch)")

from torch import nn  # noqa: E402
from torch.utils.data import TensorDataset  # noqa: E402

from privamp import Poisson, PoissonPPS, Rounds, amplify  # noqa: E402
from privamp.errors import InvalidInput  # noqa: E402
from privamp.mechanisms.gaussian import Gaussian  # noqa: E402
from privamp.testing import seeded_key  # noqa: E402
from privamp.torch import PrivacyEngine  # noqa: E402

N = 400
LABELS = np.arange(N) % 10 == 0  # 40 of class 1
RATES = {0: 0.05, 1: 0.5}


def made(**changes):
    module = nn.Linear(3, 2)
    records = TensorDataset(
        torch.randn(N, 3, generator=torch.Generator().manual_seed(1)), torch.from_numpy(LABELS).long()
    )
    engine = PrivacyEngine(key=seeded_key(2))
    options = {
        "sampler": PoissonPPS.by_class(RATES), "classes": LABELS.astype(int), "steps": 30, "noise_multiplier": 1.0,
        "population": {0: 360, 1: 40}, "max_grad_norm": 1.0,
    }  # fmt: skip
    engine.make_private(
        module=module, optimizer=torch.optim.SGD(module.parameters(), 0.1), criterion=nn.CrossEntropyLoss(),
        data_loader=records, **(options | changes),
    )  # fmt: skip
    return engine


def test_batches_are_balanced_and_pay_for_the_largest_rate():
    engine = made()
    drawn = []
    run = engine._running
    original = run.batches.draw
    run.batches.draw = lambda step: drawn.append(original(step).positions) or original(step)
    engine.train()
    ones = np.mean([LABELS[positions].sum() for positions in drawn])
    zeros = np.mean([(~LABELS[positions]).sum() for positions in drawn])
    assert ones == pytest.approx(20, abs=3)  # 40 * .5
    assert zeros == pytest.approx(18, abs=3)  # 360 * .05
    assert engine.plan.normaliser == pytest.approx(38.0)
    expected = amplify(Gaussian(1.0), Rounds(Poisson(0.5), 30)).epsilon(1e-5)
    assert engine.guarantee().epsilon(1e-5) == pytest.approx(expected)
    assert engine.get_epsilon(1e-5) == pytest.approx(expected)


def first_batches(classes, rates=RATES):
    options = {"sampler": PoissonPPS.by_class(rates), "population": dict.fromkeys(rates, 200), "classes": classes}
    batches = made(**options)._running.batches
    return [batches.draw(step).positions.tolist() for step in range(2)]


@pytest.mark.parametrize("stranger", ["?", None, 2**70, [1]])
@pytest.mark.parametrize("given", [list, np.ndarray.tolist, lambda labels: list(torch.from_numpy(labels))])
def test_the_label_of_one_record_does_not_change_the_chance_of_another(given, stranger):
    """A text among numbers made every label a text, and a missing one every number unknown: nobody was drawn."""
    labels = LABELS.astype(int)
    usual = [[at for at in batch if at < N - 1] for batch in first_batches(given(labels))]
    assert min(map(len, usual)) > 20
    assert first_batches([*given(labels)[:-1], stranger]) == usual


def test_classes_named_by_numbers_and_by_words_are_all_drawn():
    classes = ["rare" if label else 0 for label in LABELS]
    for batch in first_batches(classes, {0: 0.05, "rare": 0.5}):
        assert {bool(LABELS[at]) for at in batch} == {False, True}


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"classes": None}, "needs classes="),
        ({"population": 400}, "public \\(rough\\) number of records for every class"),
        ({"population": {0: 360}}, "must name the classes"),
        ({"population": {0: 360, 1: 0}}, "population of class 1"),
        ({"sampler": Poisson(0.1), "population": 400}, "classes= is for"),
        ({"sampler": Poisson(0.1), "classes": None}, "population by class is for"),
        ({"sampler": PoissonPPS.by_class({0: 0.0, 1: 0.0})}, "no record is ever drawn"),
        ({"classes": [0, 1]}, "one value per record"),
        ({"classes": dict.fromkeys(range(N), 0)}, "in the order of the data set"),
    ],
)
def test_bad_options_are_one_sentence(changes, words):
    with pytest.raises(InvalidInput, match=words):
        made(**changes)
