"""`privamp train`: a model that may be shared, scores that say what they are, and the ways it says no."""

import json
from importlib.util import find_spec
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest

from privamp.cli.train.data import load
from privamp.errors import InvalidInput

needs_torch = pytest.mark.skipif(find_spec("torch") is None, reason="torch is not installed (make test-torch)")

TABLE = "age,job,answer,split\n" + "".join(
    f"{20 + k % 50},{'abc'[k % 3]},{('no', 'yes')[k % 3 == 0]},{('train', 'test')[k % 5 == 0]}\n" for k in range(400)
)


def pictures(path: Path, classes: int = 3, **changed: np.ndarray) -> Path:
    """Bright in one of three bands: easy to learn."""
    rng = np.random.default_rng(1)
    arrays = {}
    for name, n in (("train", 3000), ("test", 60)):
        y = rng.integers(0, classes, n)
        x = rng.integers(0, 60, (n, 24, 24), np.uint8)
        for row, at in enumerate(y):
            x[row, 8 * at : 8 * at + 8] += 150
        arrays |= {f"X_{name}": x, f"y_{name}": y.astype(np.uint8)}
    arrays |= changed
    np.savez(path, **{name: array for name, array in arrays.items() if array is not None})
    return path


@pytest.fixture
def files(tmp_path) -> Path:
    pictures(tmp_path / "bands.npz")
    (tmp_path / "table.csv").write_text(TABLE, encoding="utf-8")
    return tmp_path


def arguments(**changed: object) -> list[str]:
    given = {
        "data": "bands.npz", "model": "logistic", "epsilon": 1, "population": 3000, "rate": 0.1, "steps": 30,
        "classes": 3, "out": "model.pt",
    } | changed  # fmt: skip
    named = {f"--{name.replace('_', '-')}": value for name, value in given.items() if value is not None}
    return ["train", *(word for name, value in named.items() for word in (name, str(value)))]


@needs_torch
def test_it_learns_and_says_what_is_private(privamp, files) -> None:
    import torch

    result = privamp(*arguments(report="report.html"), "--json")
    assert result.exit_code == 0, result.output
    answer = json.loads(result.stdout)
    assert answer["epsilon_upper"] <= 1.0
    assert answer["steps_run"] == 30
    looks = answer["not_private_for_held_out"]
    assert looks[-1]["step"] == 30
    assert looks[-1]["held_out_accuracy"] > 0.9
    assert all(a["epsilon"] <= b["epsilon"] for a, b in pairwise(looks))
    page = (files / "report.html").read_text(encoding="utf-8")
    assert "NOT PRIVATE: held-out scores" in page
    published = torch.load(files / "model.pt", weights_only=True)
    assert set(published) == {"format", "plan", "step", "model", "guarantee"}
    assert "secret" not in json.dumps(published["plan"])


@needs_torch
@pytest.mark.parametrize(("sampler", "epsilon"), [("uniform", 0.2), ("importance-reject", 0.2), ("dpis", 1)])
def test_every_sampler_and_progress(privamp, files, sampler, epsilon) -> None:
    result = privamp(*arguments(sampler=sampler, epsilon=epsilon, model="mlp", steps=5))
    assert result.exit_code == 0, result.output
    assert "(not private)" in result.stdout
    assert "spent at delta 1e-05" in result.stdout


@needs_torch
def test_tables_texts_and_pictures(privamp, files) -> None:
    table = arguments(data="table.csv", label="answer", classes="no,yes", out="a.pt", steps=2, epsilon=0.2)
    assert privamp(*table).exit_code == 0
    assert privamp(*arguments(model="cnn", steps=2, out="b.pt", epsilon=0.2)).exit_code == 0
    offsets = np.arange(0, 1210, 10)
    words = {"tokens_train": np.arange(1200) % 50, "offsets_train": offsets, "y_train": np.arange(120) % 2}
    np.savez(files / "texts.npz", **words)
    texts = arguments(data="texts.npz", model="lstm", classes=None, vocabulary=50, out="c.pt", steps=2, epsilon=0.2)
    result = privamp(*texts)
    assert result.exit_code == 0, result.output
    assert "held-out" not in result.stdout  # nothing is held out in this file


@needs_torch
def test_a_checkpoint_is_taken_up_and_not_spent_twice(privamp, files) -> None:
    import torch

    assert privamp(*arguments(checkpoint="run.secret")).exit_code == 0
    assert privamp(*arguments(checkpoint="run.secret", out="again.pt")).exit_code == 0
    one, two = (torch.load(files / name, weights_only=True)["model"] for name in ("model.pt", "again.pt"))
    assert all(torch.equal(one[name], two[name]) for name in one)
    other = privamp(*arguments(checkpoint="run.secret", out="other.pt", steps=31))
    assert other.exit_code == 2
    assert "cannot change" in " ".join(other.stderr.split())


def refused(privamp, files: Path, *given: str) -> str:
    before = sorted(files.iterdir())
    result = privamp(*given)
    assert result.exit_code == 2, result.output
    assert sorted(files.iterdir()) == before
    assert "Traceback" not in result.output
    return " ".join(result.stderr.split())


@pytest.mark.parametrize(
    ("changed", "says"),
    [
        ({"data": "missing.npz"}, "there is no file 'missing.npz'"),
        ({"data": "bands.txt"}, "named .npz, .csv"),
        ({"model": "forest"}, "model must be one of"),
        ({"sampler": "shuffle"}, "sampler must be one of"),
        ({"population": None}, "--population is missing"),
        ({"learning_rate": 0}, "learning_rate"),
        ({"out": "bands.npz"}, "must all be different"),
        ({"out": "nowhere/model.pt"}, "cannot write"),
        ({"out": "table.csv"}, "already exists"),
        ({"report": "report.pdf"}, "must be named .html"),
    ],
)
def test_bad_questions(privamp, files, changed, says) -> None:
    assert says in refused(privamp, files, *arguments(**changed))


@needs_torch
@pytest.mark.parametrize(
    ("changed", "says"),
    [
        ({"device": "cuda:99"}, "CUDA devices; use cpu"),
        ({"device": "abacus"}, "device must be cpu"),
        ({"rate": 1.5}, "sample_rate must be a number from 0 to 1"),
        ({"epsilon": -1}, "target_epsilon"),
        ({"steps": 0}, "steps"),
        ({"model": "lstm"}, "does not fit"),
        ({"data": "table.csv"}, "--label"),
    ],
)
def test_bad_questions_that_torch_is_asked(privamp, files, changed, says) -> None:
    assert says in refused(privamp, files, *arguments(**changed))


@pytest.mark.skipif(find_spec("torch") is not None, reason="torch is installed")
def test_without_torch_one_sentence_says_how_to_get_it(privamp, files) -> None:
    assert "pip install 'privamp[torch]'" in refused(privamp, files, *arguments())


@pytest.mark.parametrize(
    ("changed", "says"),
    [
        ({"y_train": np.arange(7)}, "as the label of each record"),
        ({"y_train": None}, "no array 'y_train'"),
    ],
)
def test_bad_arrays(tmp_path, changed, says) -> None:
    with pytest.raises(InvalidInput, match=says):
        load(pictures(tmp_path / "bad.npz", **changed), None, "3", 10)


def test_records_that_are_none_are_no_errors(tmp_path, files) -> None:
    """An error about one label, word or entry would tell about that record; in training they count as nothing."""
    odd = np.zeros(3000)
    odd[:4] = [9, -1, 1.5, np.nan]
    found = load(pictures(tmp_path / "odd.npz", y_train=odd), None, "3", 10)
    assert found.training.y[:5].tolist() == [-1, -1, -1, -1, 0]
    holes = np.zeros((3000, 4))
    holes[:2] = [[np.nan], [1e300]]
    assert len(load(pictures(tmp_path / "holes.npz", X_train=holes), None, "3", 10).training.x) == 3000
    assert load(pictures(tmp_path / "test.npz", y_test=np.full(60, 9)), None, "3", 10).held_out is None
    assert set(load(files / "table.csv", "answer", "no,maybe", 10).training.y.tolist()) == {-1, 0}


@pytest.mark.parametrize(
    ("label", "classes", "says"),
    [
        (None, "no,yes", "--label"),
        ("answer", "no", "different names"),
        ("reply", "no,yes", "no column 'reply'"),
    ],
)
def test_bad_tables(files, label, classes, says) -> None:
    with pytest.raises(InvalidInput, match=says) as found:
        load(files / "table.csv", label, classes, 10)
    assert "yes" not in str(found.value).replace("no,yes", "")


def test_entries_are_encoded_by_themselves() -> None:
    """A record's numbers do not change with the records beside it."""
    from privamp.torch.encoding import table

    alone = table({"age": ["31"], "job": ["clerk"]})
    among = table({"age": ["7", "31", "-2e9", "nan"], "job": ["?", "clerk", "9", ""]})
    assert np.array_equal(alone[0], among[1])
    assert np.allclose(among.sum(axis=1), 2.0)
