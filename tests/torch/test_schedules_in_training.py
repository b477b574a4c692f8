"""Schedules draw the batches of a run: every record where it belongs, once, after a crash too; and shared noise."""

import numpy as np
import pytest

torch = pytest.importorskip("torch", reason="torch is not installed (make test-torch)")

from torch import nn  # noqa: E402
from torch.utils.data import TensorDataset  # noqa: E402

from privamp import (  # noqa: E402
    BallsInBins,
    CyclicPoisson,
    Gaussian,
    InvalidInput,
    Neighbors,
    NoTheorem,
    Poisson,
    Rounds,
    TruncatedPoisson,
    amplify,
)
from privamp.accounting.banded import band, prefix_error  # noqa: E402
from privamp.testing import seeded_key  # noqa: E402
from privamp.torch import PrivacyEngine  # noqa: E402
from privamp.verify import check_release  # noqa: E402
from privamp.verify.hard_pairs import REPLACE, HardRecord, hard_rows, pairs_of  # noqa: E402
from small_runs import N, private  # noqa: E402

BINS = BallsInBins(rounds=5, epochs=2)
CYCLIC = CyclicPoisson(rate=0.25, bands=3, steps=12)


def trained(sampler, **options):
    return private(sampler=sampler, sample_rate=None, steps=None, **options)


def drawn(engine):
    """The positions of every batch of a run, by the secret records of its batches."""
    found, batches = [], engine._running.batches
    draw = batches.draw
    batches.draw = lambda step: found.append((batches.slot, draw(step).positions)) or draw(step)
    engine.train()
    return found


def test_every_record_is_drawn_once_an_epoch():
    engine, _ = trained(BINS)
    batches = [positions for _, positions in drawn(engine)]
    for epoch in (batches[:5], batches[5:]):
        assert np.array_equal(np.sort(np.concatenate(epoch)), np.arange(N))
    assert [b.tolist() for b in batches[:5]] != [b.tolist() for b in batches[5:]]


def test_groups_take_turns():
    batches = [positions for _, positions in drawn(trained(CYCLIC)[0])]
    homes = [set(np.concatenate(batches[k::3]).tolist()) for k in range(3)]
    assert not homes[0] & homes[1]
    assert not homes[1] & homes[2]
    assert not homes[0] & homes[2]


@pytest.mark.parametrize("schedule", [BINS, CYCLIC, Rounds(Poisson(0.3), 4)])
def test_the_schedule_certifies_the_run(schedule):
    engine, _ = trained(schedule)
    assert engine.plan.steps == schedule.steps
    expected = amplify(Gaussian(1.0), schedule).epsilon(1e-5)
    assert engine.guarantee().epsilon(1e-5) == pytest.approx(expected)
    engine.train(1)
    assert engine.spent().epsilon(1e-5) == pytest.approx(amplify(Gaussian(1.0), schedule.begun(1)).epsilon(1e-5))
    assert engine.spent().epsilon(1e-5) < expected


def test_noise_is_calibrated_to_the_schedule():
    engine, _ = trained(BINS, noise_multiplier=None, target_epsilon=2.0, target_delta=1e-5)
    assert 1.99 < engine.guarantee().epsilon(1e-5) <= 2.0


def test_what_was_begun_covers_the_epoch_or_the_turn():
    assert BINS.begun(1) == BINS.begun(5) == BallsInBins(5, epochs=1)
    assert BINS.begun(6) == BINS
    assert CYCLIC.begun(2) == CyclicPoisson(0.25, 3, 3)
    assert CYCLIC.begun(7).blocks()[0][1] == 3


@pytest.mark.parametrize("schedule", [BINS, CYCLIC])
def test_a_round_lost_in_a_crash_is_never_drawn_again(schedule, tmp_path):
    path = tmp_path / "run"
    first, _ = trained(schedule, checkpoint=path, checkpoint_every=2)
    first.train(2)
    next(first._running.parts())  # begun, drawn, and then the machine stops
    expected = [schedule.drawn(N, first._running.batches._all_rounds, k).positions for k in range(schedule.steps)]
    again, _ = trained(schedule, checkpoint=path, checkpoint_every=2)
    found = drawn(again)
    assert [slot for slot, _ in found] == list(range(3, schedule.steps))
    assert again.step == schedule.steps - 1
    for slot, positions in found:
        assert np.array_equal(positions, expected[slot])


def noise_of(sampler, steps, bands=None, key=4, **options):
    """The noise of every step, as it was added: nothing else moves parameters that the loss does not depend on."""
    module = nn.Linear(200, 1, bias=False)
    with torch.no_grad():
        module.weight.zero_()
    records = TensorDataset(torch.zeros(20, 200), torch.zeros(20, 1))
    engine = PrivacyEngine(key=seeded_key(key))
    options |= {} if bands is None else {"bands": bands}
    engine.make_private(
        module=module, optimizer=torch.optim.SGD(module.parameters(), 1.0), criterion=nn.MSELoss(),
        data_loader=records, sampler=sampler, noise_multiplier=1.0, max_grad_norm=1.0, population=20, **options,
    )  # fmt: skip
    places = [module.weight.detach().double().numpy().ravel().copy()]
    engine.train(steps, on_step=lambda _: places.append(module.weight.detach().double().numpy().ravel().copy()))
    return -np.diff(np.array(places), axis=0) * engine.plan.normaliser


def test_shared_noise_is_independent_noise_seen_through_the_band():
    schedule = CyclicPoisson(rate=0.1, bands=4, steps=40)
    independent, shared = noise_of(schedule, 40, bands=1), noise_of(schedule, 40)
    c = band(4)
    matrix = sum(np.diag(np.full(40 - k, c[k]), -k) for k in range(4))
    assert np.allclose(matrix @ shared, independent, atol=1e-4)
    assert np.all(np.linalg.norm(matrix, axis=0) <= 1.0 + 1e-12)
    rounds = matrix[:, 1::4]  # of a record of the second group
    assert np.count_nonzero(np.tril(rounds.T @ rounds, -1)) == 0
    prefixes = np.sqrt(np.mean(np.cumsum(shared, axis=0) ** 2))
    assert prefixes == pytest.approx(prefix_error(40, 4), rel=0.1)
    assert np.sqrt(np.mean(np.cumsum(independent, axis=0) ** 2)) == pytest.approx(prefix_error(40), rel=0.1)


def test_shared_noise_made_again_from_the_key_is_the_kept_noise():
    schedule = CyclicPoisson(rate=0.1, bands=4, steps=12)
    kept, again = noise_of(schedule, 12), noise_of(schedule, 12, keep_noise=False)
    assert np.allclose(again, kept, atol=1e-4)
    assert not np.allclose(again, noise_of(schedule, 12, bands=1), atol=1e-2)


def test_noise_made_again_keeps_nothing_and_begins_anew_where_a_round_is_skipped():
    from privamp.torch.banded_noise import BandedNoise

    z = [torch.tensor([float(k + 1)]) for k in range(6)]
    noise = BandedNoise(3, keeps=False)

    def made(slot):
        return noise.shared(z[slot].clone(), slot, lambda i: z[slot - i])

    found = [made(slot) for slot in (0, 1, 1, 2)]
    assert torch.equal(found[1], found[2])
    assert noise._past == []
    assert noise._last == (2, None)
    c = band(3)
    assert float(c[0] * found[3] + c[1] * found[1] + c[2] * found[0]) == pytest.approx(3.0)
    assert float(made(4)) == pytest.approx(5.0 / c[0])  # round 3 was skipped: a new block


def test_shared_noise_begins_anew_after_a_crash(tmp_path):
    """The history is never stored; after it the first noise is that of a new block: larger than 1 by 1/c_0."""
    path = tmp_path / "run"
    first, _ = trained(CYCLIC, checkpoint=path, checkpoint_every=2)
    first.train(4)
    assert len(first._running._bands._past) == 2
    assert first._running._bands._last[0] == 3
    again, _ = trained(CYCLIC, checkpoint=path, checkpoint_every=2)
    assert again._running._bands._past == []
    again.train(1)
    assert again._running._bands._past == []
    again.train(1)
    assert len(again._running._bands._past) == 1


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"sampler": BINS, "steps": 7}, "has 10 steps"),
        ({"sampler": BINS, "sample_rate": 0.1}, "omit sample_rate"),
        ({"sampler": BINS, "bands": 2}, "at most 1"),
        ({"sampler": CYCLIC, "bands": 4}, "at most 3"),
        ({"sampler": CYCLIC, "bands": 0}, "bands"),
        ({"sampler": "uniform", "sample_rate": 0.1}, "steps is missing"),
        ({"sampler": Rounds(Poisson(0.1), 3), "steps": 4}, "has 3 steps"),
    ],
)
def test_what_does_not_fit_is_refused(options, words):
    with pytest.raises(InvalidInput, match=words):
        private(**{"sample_rate": None, "steps": None, **options})


def test_relations_that_no_theorem_covers_are_refused():
    with pytest.raises(NoTheorem):
        trained(BINS, neighbors=Neighbors.REPLACE_ONE)


def test_capped_batches_have_a_fixed_size():
    engine, _ = private(
        sampler=TruncatedPoisson(0.3, 20, at_least=50, at_most=70), sample_rate=None, max_physical_batch_size=20
    )
    sizes = []
    engine.train(on_step=lambda progress: sizes.append(progress.secret_batch))
    assert max(sizes) <= 20


def run(rows, sampler):
    torch.manual_seed(3)
    module = nn.Linear(6, 3)
    x = torch.from_numpy(np.array([row for row, _ in rows], dtype=np.float64)).float()
    engine = PrivacyEngine(key=seeded_key(21))
    engine.make_private(
        module=module, optimizer=torch.optim.SGD(module.parameters(), 0.1), criterion=nn.CrossEntropyLoss(),
        data_loader=TensorDataset(x, torch.tensor([label for _, label in rows])), max_grad_norm=0.5,
        noise_multiplier=1.0, sampler=sampler, population=8,
    )  # fmt: skip
    engine.train()
    return [p.detach().double().numpy() for p in module.parameters()]


@pytest.mark.parametrize("sampler", [BallsInBins(3), CyclicPoisson(0.4, 2, 4)])
def test_one_record_moves_no_more_than_the_clip(sampler):
    rng = np.random.default_rng(5)
    rows = [(3 * rng.standard_normal(6), int(rng.integers(0, 3))) for _ in range(8)]
    hard = [HardRecord(what, (row, 1)) for what, row in hard_rows(6, 1.0, np.float32)][:8]
    pairs = pairs_of(rows, hard, changes=REPLACE, places=[0, 4])
    report = check_release(lambda some: run(some, sampler), pairs, name="schedule in training", rounding=1e-4)
    assert report.ok, str(report)


@pytest.mark.parametrize("sampler", ["uniform", BINS, CYCLIC])
def test_no_noise_is_used_twice_when_the_optimiser_fails(sampler):
    """A sum that was released and not applied is spent: what follows has other noise and other coins."""
    module = nn.Linear(5, 3)
    optimizer, failing = torch.optim.SGD(module.parameters(), 0.5), []

    def fail(*_):
        if len(failing) == 2:
            failing.append("once")
            raise KeyboardInterrupt
        failing.append("")

    optimizer.register_step_post_hook(fail)
    rate = {"sample_rate": 0.3, "steps": 8} if sampler == "uniform" else {"sample_rate": None, "steps": None}
    engine, _ = private(module=module, optimizer=optimizer, sampler=sampler, **rate)
    keys, run = [], engine._running
    release = run._release

    def recorded():
        keys.append(run._key.subkey("noise", run.step).fingerprint)
        release()

    run._release = recorded
    engine.train(2)
    with pytest.raises(KeyboardInterrupt):
        engine.train(1)
    engine.train(2)
    assert len(keys) == len(set(keys)) == 5
    assert run.charged == 5
    assert run.stretch == 2


def test_noise_that_is_asked_for_again_is_the_same():
    """A release that is interrupted is made again: two kinds of noise for one sum would show the one before."""
    from privamp.torch.banded_noise import BandedNoise

    rng, noise = torch.Generator().manual_seed(3), BandedNoise(3)
    z = [torch.randn(4, generator=rng) for _ in range(5)]
    first = [noise.shared(z[slot].clone(), slot, None) for slot in range(4)]
    assert torch.equal(noise.shared(z[3].clone(), 3, None), first[3])
    after = noise.shared(z[4].clone(), 4, None)
    c = band(3)
    assert torch.allclose(c[0] * after + c[1] * first[3] + c[2] * first[2], z[4], atol=1e-5)


def test_a_schedule_refuses_other_ids_and_other_bands(tmp_path):
    path = tmp_path / "run"
    first, _ = trained(CYCLIC, checkpoint=path, ids=[f"p{i}" for i in range(N)])
    first.train(4)
    with pytest.raises(InvalidInput, match="ids"):
        trained(CYCLIC, checkpoint=path)
    with pytest.raises(InvalidInput, match="bands"):
        trained(CYCLIC, checkpoint=path, ids=[f"p{i}" for i in range(N)], bands=1)
    again, _ = trained(CYCLIC, checkpoint=path, ids=[f"p{i}" for i in range(N)])
    assert again.step == 4
