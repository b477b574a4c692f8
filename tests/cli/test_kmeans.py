"""`privamp kmeans`: a file in, private centres out, or one sentence and nothing written."""

import csv
import json

import numpy as np
import pyarrow as pa
import pytest
from pyarrow import parquet

CORNERS = np.array([[-0.5, -0.5], [0.5, 0.5], [0.5, -0.4], [-0.3, 0.6]])


def nearest(centres) -> float:
    """The mean distance of a corner to its nearest released centre; 0.7 when all centres are the origin."""
    return float(np.linalg.norm(CORNERS[:, None] - np.asarray(centres)[None], axis=2).min(axis=1).mean())


@pytest.fixture
def files(tmp_path):
    x = np.concatenate([np.random.default_rng(0).normal(c, 0.05, (2500, 2)) for c in CORNERS])
    lines = "\n".join(f"{a:.5f},{b:.5f}" for a, b in x)
    (tmp_path / "data.csv").write_text(f"x,y\n{lines}\n", encoding="utf-8")
    parquet.write_table(pa.table({"x": x[:, 0], "y": x[:, 1]}), tmp_path / "data.parquet")
    np.savez(tmp_path / "data.npz", X=x.astype(np.float32), y=np.zeros(len(x), dtype=np.int8))
    np.savez(tmp_path / "columns.npz", x=x[:, 0], y=x[:, 1])
    np.savez(tmp_path / "two.npz", A=x, B=x)
    parquet.write_table(pa.table({"x": x[:9, 0], "several": [[1.0]] * 9}), tmp_path / "lists.parquet")
    (tmp_path / "gaps.csv").write_text(f"x,y\n{lines}\n0.777,NA\n", encoding="utf-8")
    (tmp_path / "infinite.csv").write_text("x,y\n1,777\n2,inf\n", encoding="utf-8")
    (tmp_path / "words.csv").write_text("x,y,name\n1,2,bob777\n1,2,eve\n", encoding="utf-8")
    (tmp_path / "empty.csv").write_text("x,y\n", encoding="utf-8")
    (tmp_path / "all_gaps.csv").write_text("x,y\n1,\n", encoding="utf-8")
    (tmp_path / "one.csv").write_text("x,y\n0.1,0.2\n", encoding="utf-8")
    (tmp_path / "broken.npz").write_text("no zip", encoding="utf-8")
    return tmp_path


def command(privamp, file="data.csv", *extra, k="4", epsilon="5", radius="1", out="centres.csv"):
    ball = ("--radius", radius) if radius is not None else ()
    return privamp("kmeans", file, "--k", k, "--epsilon", epsilon, *ball, "--out", out, "--jobs", "1", *extra)


FORMATS = [("data.csv", ()), ("data.parquet", ()), ("data.npz", ()), ("columns.npz", ("--columns", "x,y"))]


@pytest.mark.parametrize(("file", "extra"), FORMATS, ids=[f for f, _ in FORMATS])
def test_every_format_is_read(privamp, files, file, extra):
    result = command(privamp, file, "--json", *extra)
    assert result.exit_code == 0, result.output
    answer = json.loads(result.stdout)
    assert answer["schema"] == 1
    assert answer["neighbors"] == "add-remove"
    assert answer["epsilon_upper"] <= 5.0
    assert sum(part["epsilon"] for part in answer["budget"]) <= 5.0 * (1 + 1e-9)
    assert nearest(answer["centres"]) < 0.55  # Lloyd's steps may stop where two centres share a corner
    rows = list(csv.DictReader((files / "centres.csv").read_text(encoding="utf-8").splitlines()))
    assert [[float(row[name]) for name in answer["columns"]] for row in rows] == answer["centres"]
    assert len(rows) == 4


def test_nothing_secret_is_said(privamp, files):
    """The number of records and the realised sample are secret; what is printed about them is noisy."""
    result = command(privamp, "data.csv", "--json", "--size", "800")
    answer = json.loads(result.stdout)
    assert answer["noisy_records"] != 10_000
    assert answer["noisy_records"] == pytest.approx(10_000, abs=400)
    assert answer["expected_sample_size"] == pytest.approx(800, rel=0.05)
    assert not {"labels", "weights", "probabilities", "sample_size", "records", "cost_not_private"} & set(answer)


def test_gaussian_noise_a_private_ball_and_a_report(privamp, files):
    extra = ("--delta", "1e-6", "--center", "private", "--report", "r.html")
    result = command(privamp, "data.csv", *extra, radius="private")
    assert result.exit_code == 0, result.output
    for part in ("private centre, sum", "private radius", "noisy count", "delta 1e-06", "Centres: centres.csv"):
        assert part in result.stdout
    page = (files / "r.html").read_text(encoding="utf-8")
    for part in ("4 private centres", "What the budget was spent on", "Guarantee", "add-remove", "data:image/png"):
        assert part in page
    assert page.count("private centre, sum") == 1  # each expense is listed once
    assert "NOT PRIVATE" not in page


def test_a_cost_is_told_only_when_asked_and_is_marked(privamp, files):
    result = command(privamp, "data.csv", "--cost-not-private", "--report", "r.html")
    assert result.exit_code == 0, result.output
    assert "NOT PRIVATE" in result.stderr
    assert "NOT PRIVATE" in (files / "r.html").read_text(encoding="utf-8")


@pytest.mark.parametrize("sampler", ["privacy-constrained", "coreset", "uniform", "none"])
def test_every_sampler(privamp, files, sampler):
    size = () if sampler == "none" else ("--size", "2000")
    result = command(privamp, "data.parquet", "--json", "--sampler", sampler, *size)
    assert result.exit_code == 0, result.output
    assert json.loads(result.stdout)["sampler"] == sampler


def test_more_centres_than_records_is_no_error(privamp, files):
    assert command(privamp, "one.csv", k="3").exit_code == 0


def test_whole_numbers_and_bits_are_numbers(privamp, files):
    large = np.arange(3000) % 2 * (2**62 + 1)
    parquet.write_table(pa.table({"id": large, "bit": large > 0}), files / "whole.parquet")
    result = command(privamp, "whole.parquet", "--json", k="2", radius="1e19")
    assert result.exit_code == 0, result.output
    np.savez(files / "whole.npz", X=np.stack([large, large // 2], axis=1))
    assert command(privamp, "whole.npz", "--overwrite", k="2", radius="1e19").exit_code == 0


def test_missing_entries(privamp, files):
    """An error would tell that there is one, or that nobody is left."""
    for file in ("gaps.csv", "all_gaps.csv", "infinite.csv", "words.csv", "empty.csv"):
        for extra in ((), ("--drop-missing",)):
            result = command(privamp, file, "--overwrite", "--json", *extra)
            assert result.exit_code == 0, result.output
            assert result.stderr == ""


def test_a_file_that_exists_is_kept_unless_told(privamp, files):
    (files / "centres.csv").write_text("mine", encoding="utf-8")
    refused = command(privamp)
    assert refused.exit_code == 2
    assert "--overwrite" in refused.stderr
    assert (files / "centres.csv").read_text(encoding="utf-8") == "mine"
    assert command(privamp, "data.csv", "--overwrite").exit_code == 0
    assert (files / "centres.csv").read_text(encoding="utf-8").startswith("centre,noisy_count,x,y")


def test_nothing_is_left_when_the_second_file_fails(privamp, files, monkeypatch):
    from privamp import atomic_files

    def fails(path, data):
        if path.suffix == ".html":
            raise OSError(28, "No space left on device")
        return whole(path, data)

    whole = atomic_files.write_atomically
    monkeypatch.setattr(atomic_files, "write_atomically", fails)
    result = command(privamp, "data.csv", "--report", "r.html")
    assert result.exit_code == 2
    assert "nothing was written" in result.stderr
    assert not (files / "centres.csv").exists()


BAD = [
    ({"radius": None}, (), "--radius private"),
    ({"radius": "0"}, (), "radius must be"),
    ({"radius": "-1"}, (), "radius must be"),
    ({"radius": "far"}, (), "a number above 0 or 'private'"),
    ({"radius": "nan"}, (), "radius must be"),
    ({"epsilon": "0"}, (), "epsilon must be"),
    ({"epsilon": "-1"}, (), "epsilon must be"),
    ({"epsilon": "nan"}, (), "epsilon must be"),
    ({"k": "0"}, (), "n_clusters must be"),
    ({}, ("--delta", "1e-6", "--noise", "norm"), "delta must be 0"),
    ({}, ("--noise", "gaussian"), "needs a delta"),
    ({}, ("--noise", "laplace"), "noise must be one of"),
    ({}, ("--delta", "2"), "delta must be"),
    ({}, ("--sampler", "importance"), "sampler must be one of"),
    ({}, ("--sampler", "coreset"), "sample_size"),
    ({}, ("--size", "0"), "sample_size must be"),
    ({}, ("--center", "1"), "center must be"),
    ({}, ("--center", "a,b"), "--center must be"),
    ({}, ("--columns", "x,z"), "no column 'z' (--columns)"),
    ({}, ("--columns", "x,x"), "different names"),
    ({}, ("--columns", ""), "different names"),
    ({}, ("--iterations", "0"), "n_iter must be"),
    ({"file": "none.csv"}, (), "there is no file"),
    ({"file": "data.xls"}, (), "must be named .csv"),
    ({"file": "lists.parquet"}, (), "choose columns with --columns"),
    ({"file": "two.npz"}, (), "choose some with --columns"),
    ({"file": "data.npz"}, ("--columns", "Z"), "no array 'Z'"),
    ({"file": "broken.npz"}, (), "cannot be read as .npz"),
    ({"out": "centres.txt"}, (), "must be named .csv"),
    ({"out": "no/centres.csv"}, (), "folder that exists"),
    ({"out": "data.csv"}, ("--overwrite",), "is the input"),
    ({}, ("--report", "page.pdf"), "named .html"),
]


@pytest.mark.parametrize(("changes", "extra", "sentence"), BAD, ids=[f"{b[2]}{k}" for k, b in enumerate(BAD)])
def test_bad_input_is_one_sentence(privamp, files, changes, extra, sentence):
    before = sorted(files.iterdir())
    changes = dict(changes)
    result = command(privamp, changes.pop("file", "data.csv"), *extra, **changes)
    assert result.exit_code == 2, result.output
    assert sentence in result.stderr
    assert result.stderr.count("\n") == 1
    assert "777" not in result.stderr
    assert sorted(files.iterdir()) == before
