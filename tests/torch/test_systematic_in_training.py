"""Systematic batches: every step-th record of a secret order, or one slot; certified by the design's own theorems."""

import pytest

pytest.importorskip("torch", reason="torch is not installed (make test-torch)")

import numpy as np

from privamp import Gaussian, Neighbors, Proportional, Systematic, amplify, compose
from privamp.testing import seeded_key
from privamp.torch import PrivacyEngine
from privamp.verify import check_release
from privamp.verify.hard_pairs import REPLACE, HardRecord, hard_rows, pairs_of

SIDE, STEPS, SIZE = 6, 4, 13
DESIGNS = (Systematic(3), Systematic(3, "slots", 5))


def run(rows, design, steps=STEPS):
    """Everything that may be seen of a short training run on these records."""
    import torch
    from torch.utils.data import TensorDataset

    torch.manual_seed(3)
    module = torch.nn.Linear(SIDE, 3)
    x = torch.from_numpy(np.array([row for row, _ in rows], dtype=np.float64)).float()
    records = TensorDataset(x, torch.tensor([label for _, label in rows]))
    engine = PrivacyEngine(key=seeded_key(22))
    engine.make_private(
        module=module, optimizer=torch.optim.SGD(module.parameters(), 0.1), criterion=torch.nn.CrossEntropyLoss(),
        data_loader=records, max_grad_norm=0.5, steps=steps, noise_multiplier=1.0, sampler=design,
        population=len(rows),
    )  # fmt: skip
    sizes = []
    engine.train(on_step=lambda progress: sizes.append(progress.secret_batch))
    return engine, sizes, [p.detach().double().numpy() for p in module.parameters()]


def plain(size):
    random = np.random.default_rng(5)
    return [(3 * random.standard_normal(SIDE), int(random.integers(0, 3))) for _ in range(size)]


@pytest.mark.parametrize("design", DESIGNS, ids=lambda d: d.order)
def test_batches_have_the_sizes_of_the_design_and_the_run_its_guarantee(design):
    engine, sizes, _ = run(plain(SIZE), design, 12)
    assert set(sizes) == {4, 5}  # 13 records, every third: 13/3 rounded at random, or slots of 5, 4 and 4
    noise = Gaussian(1.0, neighbors=Neighbors.ADD_REMOVE)
    found = engine.guarantee()
    assert found.neighbors == Neighbors.ADD_REMOVE
    assert found.epsilon(1e-5) == pytest.approx(compose(amplify(noise, design), 12).epsilon(1e-5))
    if design.order == "random":  # the law of a fixed share
        assert found.epsilon(1e-5) == pytest.approx(compose(amplify(noise, Proportional(1 / 3)), 12).epsilon(1e-5))


def test_a_systematic_sample_is_not_certified_as_poisson():
    """The planted mistake: coins of the same rate would cost less than a share that displaces others."""
    from privamp import Poisson

    noise = Gaussian(1.0, neighbors=Neighbors.ADD_REMOVE)
    assert amplify(noise, Poisson(1 / 3)).epsilon(1e-5) < amplify(noise, Systematic(3)).epsilon(1e-5)


@pytest.mark.parametrize("design", DESIGNS, ids=lambda d: d.order)
def test_one_record_moves_no_more_than_it_declares(design):
    hard = [HardRecord(what, (row, 1)) for what, row in hard_rows(SIDE, 1.0, np.float32)][:6]
    pairs = pairs_of(plain(9), hard, changes=REPLACE, places=[0, 4])
    report = check_release(lambda rows: run(rows, design)[2], pairs, name="systematic", rounding=1e-4)
    assert report.ok, str(report)
