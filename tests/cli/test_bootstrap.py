"""`privamp bootstrap`: files in, one private answer or one sentence out."""

import json

import numpy as np
import pyarrow as pa
import pytest
from pyarrow import parquet


@pytest.fixture
def files(tmp_path):
    rng = np.random.default_rng(1)
    x = rng.uniform(0.0, 10.0, 300)
    y = np.clip(1.0 + 0.5 * x + rng.normal(0.0, 0.2, 300), 0.0, 8.0)
    lines = "\n".join(f"{a:.4f},{b:.4f}" for a, b in zip(x, y, strict=True))
    (tmp_path / "data.csv").write_text(f"age,income\n{lines}\n", encoding="utf-8")
    parquet.write_table(pa.table({"age": x, "income": y}), tmp_path / "data.parquet")
    np.savez(tmp_path / "data.npz", age=x, income=y, table=np.ones((3, 2)))
    (tmp_path / "gaps.csv").write_text(f"age,income\n{lines}\n3,NA\n4,\n", encoding="utf-8")
    (tmp_path / "words.csv").write_text("age,income\n1,777\n2,lots777\n3,4\n", encoding="utf-8")
    (tmp_path / "broken.npz").write_text("no zip", encoding="utf-8")
    return tmp_path


def command(privamp, file="data.csv", *extra, column="income", bounds=("0:8",), resamples="10"):
    options = [option for pair in bounds for option in ("--bounds", pair)]
    return privamp(
        "bootstrap", file, "--column", column, *options, "--epsilon", "2", "--delta", "1e-5", "--resamples", resamples,
        *extra,
    )  # fmt: skip


@pytest.mark.parametrize("file", ["data.csv", "data.parquet", "data.npz"])
def test_every_format_is_read(privamp, files, file):
    result = command(privamp, file, "--json")
    assert result.exit_code == 0, result.output
    answer = json.loads(result.stdout)
    assert answer["schema"] == 1
    assert answer["population"] == 300
    assert answer["delta_upper"] <= 1e-5
    low, high = answer["estimates"][0]["interval"]
    assert low < answer["estimates"][0]["estimate"] < high
    assert answer["neighbors"] == "replace-one"


def test_people_read_a_table(privamp, files):
    result = command(privamp)
    assert result.exit_code == 0, result.output
    for part in ("mean of income", "95% from", "released resample statistics", "at most", "public"):
        assert part in result.stdout


def test_a_regression_and_its_report(privamp, files):
    result = command(
        privamp, "data.csv", "--statistic", "regression", "--on", "age", "--report", "r.html", "--json",
        bounds=("0:8", "0:10"),
    )  # fmt: skip
    assert result.exit_code == 0, result.output
    answer = json.loads(result.stdout)
    assert [e["name"] for e in answer["estimates"]] == ["intercept", "age"]
    page = (files / "r.html").read_text(encoding="utf-8")
    assert "regression of income" in page
    assert "Guarantee" in page


def test_missing_entries(privamp, files):
    """They count as the middle of the bounds; leaving them out assumes that they are public, and says so."""
    dropped = "which records have an entry"
    for file in ("gaps.csv", "words.csv"):
        kept = command(privamp, file, "--json", "--size", "2", "--statistic", "mean")
        assert kept.exit_code == 0, kept.output
        answer = json.loads(kept.stdout)
        assert answer["population"] == (302 if file == "gaps.csv" else 3)
        assert not any(dropped in words for words in answer["assumes"])
    left = command(privamp, "gaps.csv", "--drop-missing", "--json", "--report", "r.html")
    assert left.exit_code == 0, left.output
    answer = json.loads(left.stdout)
    assert answer["population"] == 300
    assert any(dropped in words for words in answer["assumes"])
    assert dropped in (files / "r.html").read_text(encoding="utf-8")
    assert dropped in command(privamp, "gaps.csv", "--drop-missing").stdout


BAD = [
    ({"bounds": ()}, (), "needs --bounds LOW:HIGH"),
    ({"bounds": ("8:0",)}, (), "LOW < HIGH"),
    ({"bounds": ("0:inf",)}, (), "finite"),
    ({"bounds": ("0",)}, (), "must be LOW:HIGH"),
    ({"bounds": ("0:8", "0:8")}, (), "once per column"),
    ({"column": "wage"}, (), "no column 'wage' (--column)"),
    ({"column": "wage", "file": "data.npz"}, (), "no array 'wage'"),
    ({"column": "table", "file": "data.npz"}, (), "one column"),
    ({"file": "none.csv"}, (), "there is no file"),
    ({"file": "none.npz"}, (), "there is no file"),
    ({"file": "broken.npz"}, (), "cannot be read as .npz"),
    ({}, ("--statistic", "mode"), "statistic must be one of"),
    ({}, ("--statistic", "regression"), "is needed for a regression"),
    ({}, ("--on", "age"), "only for that"),
    ({}, ("--method", "jackknife"), "method must be one of"),
    ({}, ("--size", "300"), "use at most 299"),
    ({}, ("--size", "ten"), "--size must be"),
    ({}, ("--method", "little", "--size", "500,20"), "use at most 299"),
    ({}, ("--method", "m-out-of-n", "--size", "999999999999"), "too much memory"),
    ({"resamples": "0"}, (), "at least 2 resamples"),
    ({"resamples": "1"}, (), "at least 2 resamples"),
    ({"resamples": "9999999"}, (), "too much memory"),
    ({"resamples": "many"}, (), "--resamples must be"),
    ({}, ("--confidence", "2"), "confidence must be"),
    ({}, ("--jobs", "0"), "jobs must be"),
    ({}, ("--report", "page.pdf"), "named .html"),
    ({}, ("--report", "no/page.html"), "folder that exists"),
]


@pytest.mark.parametrize(("changes", "extra", "sentence"), BAD, ids=[b[2] + str(k) for k, b in enumerate(BAD)])
def test_bad_input_is_one_sentence(privamp, files, changes, extra, sentence):
    before = sorted(files.iterdir())
    changes = dict(changes)
    result = command(privamp, changes.pop("file", "data.csv"), *extra, **changes)
    assert result.exit_code == 2, result.output
    assert sentence in result.stderr
    assert result.stderr.count("\n") == 1
    assert "777" not in result.stderr
    assert "Traceback" not in result.output
    assert sorted(files.iterdir()) == before


@pytest.mark.parametrize(("name", "value"), [("--epsilon", "0"), ("--delta", "0"), ("--delta", "1")])
def test_bad_budgets(privamp, files, name, value):
    result = privamp("bootstrap", "data.csv", "--column", "income", "--bounds", "0:8", name, value, "--json")
    assert result.exit_code == 2
    assert name[2:] in json.loads(result.stdout)["error"]
