"""The same people, key, design and label are the same sample, whichever command, library or file type draws it."""

import numpy as np
import pyarrow as pa
import pytest
from pyarrow import csv as arrow_csv
from pyarrow import parquet

from privamp import Poisson, WithoutReplacement
from privamp.core.population import Population
from privamp.tables.key_files import read_key_file

N = 400
IDS = {"whole numbers": [10 * i + 7 for i in range(N)], "text": [f"p{i}" for i in range(N)]}
DESIGNS = {"poisson:rate=0.3": Poisson(0.3), f"wor:size=90,population={N}": WithoutReplacement(90, N)}


@pytest.mark.parametrize("spec", DESIGNS)
@pytest.mark.parametrize("kind", IDS)
def test_every_door_draws_the_same_people(privamp, kind: str, spec: str) -> None:
    table = pa.table({"id": IDS[kind], "income": np.arange(N) % 13})
    parquet.write_table(table, "people.parquet")
    arrow_csv.write_csv(table, "people.csv")
    common = ["--design", spec, "--id", "id", "--key-file", "a.key", "--label", "people"]
    assert privamp("sample", "--new-key", "a.key").exit_code == 0
    found = []
    for source in ("people.parquet", "people.csv"):
        for command in (["sample", source], ["survey", "draw", source]):
            out = f"{command[0]}-{source.replace('.', '-')}.parquet"
            done = privamp(*command, *common, "--out", out)
            assert done.exit_code == 0, done.output
            found.append({str(value) for value in parquet.read_table(out)["id"].to_pylist()})
    ids = np.asarray(IDS[kind], dtype=np.uint64 if kind == "whole numbers" else np.str_)
    sample = DESIGNS[spec].draw(Population(ids, "people"), read_key_file("a.key"))
    by_hand = {str(IDS[kind][place]) for place in sample.reveal_secret().positions}
    assert 0 < len(by_hand) < N
    assert all(people == by_hand for people in found)


def test_zeros_in_front_are_text_or_refused_and_never_other_people(privamp, tmp_path) -> None:
    ids = [f"{i:05d}" for i in range(N)]
    (tmp_path / "people.csv").write_text("id,x\n" + "".join(f"{name},1\n" for name in ids))
    parquet.write_table(pa.table({"id": ids, "x": [1] * N}), "people.parquet")
    assert privamp("sample", "--new-key", "a.key").exit_code == 0
    common = ["--design", "poisson:rate=0.3", "--id", "id", "--key-file", "a.key", "--label", "people"]
    refused = privamp("sample", "people.csv", *common, "--out", "a.parquet")
    assert refused.exit_code == 2
    assert "write such ids to Parquet, as text" in " ".join(refused.stderr.split())
    assert privamp("sample", "people.parquet", *common, "--out", "b.parquet").exit_code == 0
    assert privamp("survey", "draw", "people.csv", *common, "--out", "c.parquet").exit_code == 0
    one, other = (parquet.read_table(name)["id"].to_pylist() for name in ("b.parquet", "c.parquet"))
    assert sorted(one) == sorted(other)
