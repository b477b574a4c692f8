"""`privamp budget rotate-key`: which samples a key drew, in the budget's log and in files, before it is replaced."""

import json

import numpy as np
import pyarrow as pa
from pyarrow import parquet

from privamp import Budget, ExactLaplace, Laplace, Poisson, Population
from privamp.engines import local
from privamp.tables.key_files import make_key_file


def test_rotation_says_which_samples_change(privamp, tmp_path):
    budget = Budget.create("study.db", population="people", epsilon=5.0)
    old, other = make_key_file("old.key"), make_key_file("other.key")
    Poisson(0.5).draw(Population(50, "people"), old).declare([Laplace(2.0)]).charge(budget, note="wave 1")
    Poisson(0.5).draw(Population(50, "people"), other).declare([Laplace(2.0)]).charge(budget, note="wave 2")
    parquet.write_table(pa.table({"id": np.arange(50), "x": np.linspace(0.0, 1.0, 50)}), "data.parquet")
    stored = local.draw("data.parquet", Poisson(0.5), key=old, id="id", label="file")
    stored.declare([ExactLaplace(scale=2.0)]).charge(budget, note="from a file")
    for key, name in ((old, "a.parquet"), (other, "b.parquet")):
        local.write("data.parquet", Poisson(0.5), name, key=key, id="id", label="file")
    asked = ("budget", "rotate-key", "study.db", "--key", "old.key", "--sample", "a.parquet", "--sample", "b.parquet")
    told = json.loads(privamp(*asked, "--json").stdout)
    assert [sample["what"] for sample in told["samples"]] == ["wave 1", "from a file"]
    assert told["files"] == [{"file": "a.parquet", "changes": True}, {"file": "b.parquet", "changes": False}]
    assert told["key"] == old.fingerprint.hex()
    assert told["new_key"] is None
    made = privamp(*asked, "--new-key", "new.key")
    assert made.exit_code == 0, made.output
    assert "2 samples change" in made.stdout
    assert (tmp_path / "new.key").exists()
    assert privamp(*asked, "--new-key", "new.key").exit_code == 2  # a key is never overwritten
    assert "no sample" in privamp("budget", "rotate-key", "study.db", "--key", "new.key").stdout
    assert old.secret_bytes().hex() not in made.output + json.dumps(told)
