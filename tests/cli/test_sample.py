"""`privamp sample`: one command from a file to a secret sample, and one sentence for everything that is wrong."""

import json
import os
import stat
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from pyarrow import csv, parquet

from privamp import Poisson
from privamp.engines import local
from privamp.tables.key_files import read_key_file

POISSON = "poisson:rate=0.1"
DATA = pa.table({"id": np.arange(300), "x": np.linspace(-1, 1, 300), "group": np.arange(300) % 6})


@pytest.fixture
def ready(privamp, tmp_path):
    parquet.write_table(DATA, "data.parquet", row_group_size=50)
    assert privamp("sample", "--new-key", "my.key").exit_code == 0
    return tmp_path


def options(**changes):
    given = {"--design": POISSON, "--out": "out.parquet", "--key-file": "my.key", "--label": "people"} | changes
    return [text for name, value in given.items() if value is not None for text in (name, value)]


def test_from_a_new_key_to_the_sample(privamp, ready):
    result = privamp("sample", "data.parquet", "--id", "id", *options())
    assert result.exit_code == 0, result.output
    assert "SECRET" in result.stdout
    table = parquet.read_table("out.parquet")
    expected = local.sample("data.parquet", Poisson(0.1), key=read_key_file("my.key"), id="id", label="people")
    assert table.equals(expected)
    assert stat.S_IMODE(os.stat("out.parquet").st_mode) == 0o600 or os.name != "posix"
    assert json.loads(table.schema.metadata[b"privamp"])["spec"] == POISSON
    secret = read_key_file("my.key").secret_bytes()
    assert secret.hex() not in result.output
    assert secret not in (ready / "out.parquet").read_bytes()


def test_the_same_key_is_the_same_sample_on_any_threads_and_in_any_order(privamp, ready):
    assert privamp("sample", "data.parquet", "--id", "id", *options()).exit_code == 0
    first = parquet.read_table("out.parquet")
    parquet.write_table(DATA.take(pa.array(np.random.default_rng(1).permutation(300))), "mixed.parquet")
    more = ["--threads", "1", "--overwrite"]
    assert privamp("sample", "mixed.parquet", "--id", "id", *more, *options()).exit_code == 0
    assert parquet.read_table("out.parquet").sort_by("id").equals(first)
    for change in (["--round", "1"], ["--label", "others"]):
        assert privamp("sample", "data.parquet", "--id", "id", *more, *options(), *change).exit_code == 0
        assert not parquet.read_table("out.parquet").equals(first)


def test_a_population_is_named_by_its_label_and_never_by_its_file(privamp, ready):
    """Two waves in two folders have one file name; with labels of their own they share neither coins nor a ledger."""
    found = {}
    for folder, label in (("2025", "wave 2025"), ("2026", "wave 2026"), ("copy", "wave 2026")):
        os.mkdir(folder)
        parquet.write_table(DATA, f"{folder}/data.parquet")
        name = {"--out": f"{folder}.parquet", "--label": label}
        told = privamp("sample", f"{folder}/data.parquet", "--id", "id", *options(**name), "--json")
        found[folder] = json.loads(told.stdout)["ledger_id"], parquet.read_table(f"{folder}.parquet")
    assert found["2025"][0] != found["2026"][0] == found["copy"][0]
    assert found["copy"][1].equals(found["2026"][1])
    assert not found["2025"][1].equals(found["2026"][1])


def test_json_says_what_was_done_and_nothing_secret(privamp, ready):
    result = privamp("sample", "data.parquet", *options(), "--json")
    answer = json.loads(result.stdout)
    assert set(answer) == {
        "schema", "design", "label", "round", "id", "out", "key_fingerprint", "ledger_id", "secret"
    }  # fmt: skip
    assert answer["key_fingerprint"] == read_key_file("my.key").fingerprint.hex()
    opened = local.open_sample("out.parquet", Poisson(0.1), key=read_key_file("my.key"))
    assert answer["ledger_id"] == opened.ledger_id


def test_other_designs_and_columns(privamp, ready):
    clusters = {"--design": "cluster:chosen=2,clusters=6,max_size=50"}
    result = privamp("sample", "data.parquet", "--reads", "cluster=group", "--columns", "x,group", *options(**clusters))
    assert result.exit_code == 0, result.output
    found = parquet.read_table("out.parquet")
    assert found.column_names[:2] == ["x", "group"]
    assert (found.num_rows, len(set(found["group"].to_pylist()))) == (100, 2)
    spec = "importance:rule=privacy-constrained,epsilon=1,scale=4,radius=1,column=x"
    result = privamp("sample", "data.parquet", "--overwrite", *options(**{"--design": spec}))
    assert result.exit_code == 0, result.output
    assert min(parquet.read_table("out.parquet")["privamp_weight"].to_pylist()) > 1


BAD = [
    ({}, ["--id", "nobody"], "no column 'nobody'"),
    ({}, ["--id", "group"], "ids must be unique, but some repeat"),
    ({}, ["--id", "x"], "whole numbers or text"),
    ({}, ["--columns", "id,z"], "no column 'z'"),
    ({}, ["--reads", "cluster"], "NAME=COLUMN"),
    ({}, ["--reads", "cluster=group"], "reads no column, not 'cluster'"),
    ({}, ["--round", "-1"], "round must be"),
    ({}, ["--threads", "0"], "threads must be"),
    ({}, ["--clip"], "clip=True is only for importance"),
    ({"--design": "poisson:rate=2"}, [], "rate must be"),
    ({"--design": "wor:size=5,population=301"}, [], "fewer were given"),
    ({"--design": "cluster:chosen=2,clusters=6,max_size=50"}, [], "no column 'cluster'"),
    ({"--design": "importance:rule=best,radius=1,scale=1"}, [], "rule must be one of"),
    ({"--design": "importance:rule=uniform,radius=1,scale=1"}, [], "takes rate, got none"),
    ({"--design": "importance:rule=uniform,rate=0.5,radius=1"}, [], "scale=… (Laplace noise) or sigma=…"),
    ({"--key-file": "none.key"}, [], "make one with: privamp sample --new-key none.key"),
    ({"--key-file": "open.key"}, [], "readable by other users"),
    ({"--key-file": "short.key"}, [], "64 hexadecimal digits"),
    ({"--out": "old.parquet"}, [], "already exists"),
    ({"--out": "out.xlsx"}, [], "must be named .parquet or .feather"),
    ({"--out": "no/out.parquet"}, [], "folder that exists"),
    ({"--out": "data.parquet"}, ["--overwrite"], "lies in the data itself"),
    ({"--key-file": None}, [], "Missing option '--key-file'"),
    ({"--label": None}, [], "needs --label TEXT"),
    ({"--label": " "}, [], "file names do not identify data"),
]


@pytest.mark.parametrize(("changes", "more", "part"), BAD, ids=[part for *_, part in BAD])
def test_bad_input_is_one_sentence_and_leaves_nothing(privamp, ready, changes, more, part):
    for name, text, mode in (("open.key", "0" * 64, 0o644), ("short.key", "0" * 9, 0o600), ("old.parquet", "x", 0o600)):
        (ready / name).write_text(text)
        (ready / name).chmod(mode)
    before = sorted(ready.iterdir())
    for json_too in ([], ["--json"]):
        result = privamp("sample", "data.parquet", *more, *options(**changes), *json_too)
        assert result.exit_code == 2, result.output
        sentence = json.loads(result.stdout)["error"] if json_too else result.stderr
        assert part in sentence
        assert "\n" not in sentence.strip()
    assert sorted(ready.iterdir()) == before


@pytest.mark.parametrize(
    ("make", "part"),
    [
        (lambda: Path("in.parquet").write_bytes(b"PAR1?") and "in.parquet", "corrupt"),
        (lambda: "none.parquet", "does not exist"),
        (lambda: csv.write_csv(DATA, "in.txt") or "in.txt", ".parquet, .csv or .feather"),
        (lambda: os.mkdir("empty") or "empty", "files of one kind"),
    ],
    ids=["corrupt", "missing", "kind", "empty folder"],
)
def test_bad_files(privamp, ready, make, part):
    result = privamp("sample", make(), *options())
    assert result.exit_code == 2
    assert part in result.stderr
    assert not (ready / "out.parquet").exists()


def test_a_key_is_never_overwritten(privamp, ready):
    before = (ready / "my.key").read_text()
    result = privamp("sample", "--new-key", "my.key")
    assert result.exit_code == 2
    assert "already exists" in result.stderr
    assert (ready / "my.key").read_text() == before
