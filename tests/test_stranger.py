"""A design written by a stranger in one file is a full citizen: every job, engine and command takes it as it is.

The stranger is examples/truncated_poisson.py. Nothing in privamp names it.
"""

import json
import os
import subprocess
import sys

import numpy as np
import pytest

from privamp import (
    Gaussian,
    Guarantee,
    InvalidInput,
    Laplace,
    Neighbors,
    NoTheorem,
    Population,
    PrivateMean,
    PrivateSum,
    PureDP,
    Stratified,
    amplify,
    calibrate,
    spec,
)
from privamp.sgd import Descent
from privamp.survey import estimate
from privamp.testing import seeded_key
from privamp.verify import check_design, check_release
from privamp.verify.hard_pairs import REPLACE, hard_numbers, pairs_of
from stranger import FILE, TruncatedPoisson

N = 60
X = np.random.default_rng(3).uniform(0, 1, (N, 2))


DESIGN = TruncatedPoisson(0.3, 20, N)


def test_it_passes_every_check():
    report = check_design(TruncatedPoisson, checks=100, seed=5)
    assert report.ok, str(report)


def test_one_record_moves_a_release_by_no_more_than_it_declares():
    noise = Laplace(2.0, sensitivity=2.0, neighbors=Neighbors.REPLACE_ONE)

    def job(rows):
        sample = DESIGN.draw(N, seeded_key(8))
        return sample.release(noise, rows, center=0.0), sample.guarantee()

    pairs = pairs_of(X[:, 0], hard_numbers(1.0), changes=REPLACE, places=range(0, N, 5))
    report = check_release(job, pairs, name="stranger")
    assert report.ok, str(report)

    def without_clipping(rows):
        values = np.nan_to_num(np.asarray(rows, dtype=np.float64))
        return DESIGN.draw(N, seeded_key(9)).release(noise, lambda drawn: values[drawn.positions].sum())

    planted = pairs_of(X[:, 0], hard_numbers(1.0), changes=REPLACE, places=range(0, N, 5))
    assert not check_release(without_clipping, planted, name="planted").ok


def test_its_answers():
    assert DESIGN.identity.startswith("1:truncated_poisson:TruncatedPoisson(")
    assert DESIGN.spec == "truncated-poisson:rate=0.3,most=20,population=60"
    assert spec.design(DESIGN.spec) == DESIGN
    assert not DESIGN.decides_alone
    assert tuple(DESIGN.reads) == ()


def test_a_certificate_travels():
    written = json.loads(json.dumps(amplify(Gaussian(2.0), DESIGN).to_json(delta=1e-6)))
    assert Guarantee.from_json(written).epsilon(1e-6) == pytest.approx(written["epsilon_upper"], rel=1e-9)


def test_calibrate():
    found = calibrate(Laplace, DESIGN, epsilon=0.5)
    assert amplify(found, DESIGN).epsilon() <= 0.5


def test_sums_and_means():
    total = PrivateSum(bounds=2.0, epsilon=2.0, sampler=DESIGN).release(X, key=seeded_key(1))
    assert total.guarantee.epsilon() <= 2.0
    assert total.guarantee.neighbors == Neighbors.REPLACE_ONE
    found = [
        PrivateSum(bounds=2.0, epsilon=50.0, sampler=DESIGN).release(X, key=seeded_key(1000 + k)).value
        for k in range(50)
    ]
    assert np.allclose(np.mean(found, axis=0), X.sum(axis=0), atol=5 * np.std(found, axis=0).max() / np.sqrt(50))
    PrivateMean(bounds=2.0, epsilon=2.0, sampler=DESIGN, population=N).release(X, key=seeded_key(2))
    with pytest.raises(InvalidInput, match="one public weight for all records"):
        PrivateSum(bounds=2.0, epsilon=2.0, sampler=TruncatedPoisson(0.3, 20, (50, 70))).release(X, key=seeded_key(3))


def test_surveys():
    found = [estimate(DESIGN.draw(N, seeded_key(9), r), X[:, 0], bounds=(0, 1), epsilon=20.0) for r in range(200)]
    values = np.array([one.value for one in found])
    assert abs(values.mean() - X[:, 0].mean()) < 5 * values.std() / np.sqrt(200)
    assert np.mean([one.interval(0.95)[0] <= X[:, 0].mean() <= one.interval(0.95)[1] for one in found]) >= 0.93
    assert found[0].guarantee.epsilon() <= 20.0
    assert found[0].guarantee.neighbors == Neighbors.REPLACE_ONE


def test_descent():
    descent = Descent(design=DESIGN, steps=3, sigma=2.0)
    done = descent.run(lambda here, rows, counts: (counts[:, None] * X[rows]).sum(axis=0) / 2, np.zeros(2), N)
    assert done.guarantee.steps == 3
    assert done.guarantee.epsilon(1e-6) > 0


def test_strata():
    design = Stratified({"a": TruncatedPoisson(0.2, 3, (0, 30)), "b": TruncatedPoisson(0.1, 3, (0, 40))})
    people = Population(N, stratum=np.repeat(["a", "b"], [25, 35]))
    assert design.draw(people, seeded_key(4)).reveal_secret().positions.size <= 6
    assert amplify(PureDP(1.0), design).epsilon() > 0


def test_the_local_engine_draws_what_memory_draws():
    pa = pytest.importorskip("pyarrow")
    from privamp.engines import local

    kept = local.sample(pa.table({"id": np.arange(N), "x": X[:, 0]}), DESIGN, key=seeded_key(6), id="id")
    assert kept.column("id").to_pylist() == DESIGN.draw(N, seeded_key(6)).reveal_secret().positions.tolist()


def test_workers_of_a_cluster_can_be_sent_it():
    pytest.importorskip("pyarrow")
    from privamp.engines.kernel import Kernel

    again = Kernel.from_secret_bytes(Kernel.of(DESIGN, seeded_key(6), id="id").secret_bytes())  # what a worker gets
    assert again.design == DESIGN
    assert DESIGN.most_held == 20
    assert not DESIGN.holds_everyone


def test_training_takes_it():
    from privamp.torch.plan import Plan

    plan = Plan(sampler=DESIGN, steps=5, noise_multiplier=2.0, clip=1.0, population=N)
    assert plan.guarantee().epsilon(1e-5) > 0


def test_relations_that_are_not_proved_are_refused():
    with pytest.raises(NoTheorem, match="public range"):
        amplify(PureDP(1.0), DESIGN, Neighbors.ADD_REMOVE)


@pytest.fixture
def installed(tmp_path):
    """The file as an installed package: a module, and one line that names it."""
    (tmp_path / "truncated_poisson.py").write_text(FILE.read_text())
    folder = tmp_path / "truncated_poisson-1.0.dist-info"
    folder.mkdir()
    (folder / "METADATA").write_text("Metadata-Version: 2.1\nName: truncated-poisson\nVersion: 1.0\n")
    (folder / "entry_points.txt").write_text(
        "[privamp.designs]\ntruncated-poisson = truncated_poisson:TruncatedPoisson\n"
    )
    return tmp_path


def run(installed, *words):
    path = os.pathsep.join([str(installed), str(FILE.parents[1] / "src")])
    return subprocess.run(
        [sys.executable, "-m", "privamp", *words],
        capture_output=True, text=True, check=False, cwd=installed, env=os.environ | {"PYTHONPATH": path},
    )  # fmt: skip


def test_the_command_line_takes_it(installed):
    asked = ("amplify", "--design", DESIGN.spec, "--mechanism", "gaussian:sigma=2", "--delta", "1e-6", "--json")
    done = run(installed, *asked)
    assert done.returncode == 0, done.stderr
    answer = json.loads(done.stdout)
    assert answer["epsilon_upper"] == pytest.approx(
        amplify(Gaussian(2.0, neighbors=Neighbors.REPLACE_ONE), DESIGN).epsilon(1e-6)
    )
    (installed / "certificate.json").write_text(done.stdout)
    assert run(installed, "verify", "certificate.json").returncode == 0
    solved = run(
        installed, "calibrate", "--design", DESIGN.spec, "--mechanism", "laplace:scale=?", "--epsilon", "1", "--json"
    )
    assert solved.returncode == 0, solved.stderr
