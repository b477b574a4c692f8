"""A design of one's own draws the batches of a real run, and one record moves a step by no more than it declares."""

import pytest

pytest.importorskip("torch", reason="torch is not installed (make test-torch)")

import numpy as np

from privamp import Gaussian, Neighbors, amplify, compose
from privamp.testing import seeded_key
from privamp.torch import PrivacyEngine
from privamp.verify import check_release
from privamp.verify.hard_pairs import REPLACE, HardRecord, hard_rows, pairs_of
from stranger import TruncatedPoisson

SIDE, STEPS = 6, 3


def run(rows):
    """Everything that may be seen of a short training run on these records."""
    import torch
    from torch.utils.data import TensorDataset

    torch.manual_seed(3)
    module = torch.nn.Linear(SIDE, 3)
    x = torch.from_numpy(np.array([row for row, _ in rows], dtype=np.float64)).float()
    records = TensorDataset(x, torch.tensor([label for _, label in rows]))
    engine = PrivacyEngine(key=seeded_key(21))
    engine.make_private(
        module=module, optimizer=torch.optim.SGD(module.parameters(), 0.1), criterion=torch.nn.CrossEntropyLoss(),
        data_loader=records, max_grad_norm=0.5, steps=STEPS, noise_multiplier=1.0,
        sampler=TruncatedPoisson(0.6, 5, len(rows)),
    )  # fmt: skip
    sizes = []
    engine.train(on_step=lambda progress: sizes.append(progress.secret_batch))
    return engine, sizes, [p.detach().double().numpy() for p in module.parameters()]


def plain(size):
    random = np.random.default_rng(5)
    return [(3 * random.standard_normal(SIDE), int(random.integers(0, 3))) for _ in range(size)]


def test_it_draws_every_batch_and_certifies_the_run():
    engine, sizes, _ = run(plain(12))
    assert len(sizes) == STEPS
    assert 0 < max(sizes) <= 5
    assert len(set(sizes)) > 1 or sizes[0] == 5
    noise = Gaussian(1.0, neighbors=Neighbors.ADD_REMOVE)
    expected = compose(amplify(noise, TruncatedPoisson(0.6, 5, 12)), STEPS).epsilon(1e-5)
    assert engine.guarantee().epsilon(1e-5) == pytest.approx(expected)
    assert engine.guarantee().neighbors == Neighbors.REPLACE_ONE


def test_one_record_moves_no_more_than_it_declares():
    hard = [HardRecord(what, (row, 1)) for what, row in hard_rows(SIDE, 1.0, np.float32)][:12]
    pairs = pairs_of(plain(8), hard, changes=REPLACE, places=[0, 4])
    report = check_release(lambda rows: run(rows)[2], pairs, name="stranger in training", rounding=1e-4)
    assert report.ok, str(report)
