"""`privamp survey`: plan, draw and estimate on generated schools, and on the Californian ones where they are at hand."""

import json
import os
import stat
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from pyarrow import csv, parquet

from privamp.cli.survey_files import write_secrets

BOUNDS = "E=0:1600,M=0:4200,H=0:4200"
FILE = ["--population", "schools.csv"]
PLAN = ["survey", "plan", *FILE, "--strata", "level", "--size", "60", "--epsilon", "1"]
DRAW = ["survey", "draw", *FILE, "--strata", "level", "--size", "60", "--bounds", BOUNDS, "--epsilon", "1"]
DRAW += ["--id", "school", "--out", "sample.csv"]
ESTIMATE = ["survey", "estimate", *FILE, "--strata", "level", "--size", "60", "--bounds", BOUNDS, "--epsilon", "1"]
ESTIMATE += ["--value", "enroll"]
ROOT = Path(__file__).parents[2]


def answer(privamp, *arguments: str) -> dict:
    result = privamp(*arguments, "--json")
    assert result.exit_code == 0, result.output
    return json.loads(result.stdout)


def refusal(privamp, *arguments: str) -> str:
    """One sentence on stderr, the same in JSON, exit code 2, nothing written."""
    before = {path.name: path.read_bytes() for path in Path.cwd().iterdir() if path.is_file()}
    result = privamp(*arguments)
    assert (result.exit_code, result.stdout) == (2, ""), result.output
    assert len(result.stderr.splitlines()) == 1
    assert json.loads(privamp(*arguments, "--json").stdout)["error"] == result.stderr[len("Error: ") : -1]
    assert {path.name: path.read_bytes() for path in Path.cwd().iterdir() if path.is_file()} == before
    return result.stderr


def changed(table: pa.Table, name: str, values: list) -> pa.Table:
    return table.set_column(table.column_names.index(name), name, [values])


def test_plan_ranks_and_recommends(privamp, schools) -> None:
    found = answer(privamp, *PLAN, "--cluster", "district", "--value", "enroll", "--bounds", BOUNDS)
    rows = found["designs"]
    errors = [row["standard_error"] for row in rows]
    assert errors == sorted(errors)
    assert found["recommendation"] == rows[0]["name"] == "stratified, minimax"
    assert {"simple random", "poisson", "stratified, proportional", "cluster"} <= {row["name"] for row in rows}
    for row in rows:
        assert row["amplified_epsilon_lower"] <= row["amplified_epsilon_upper"] * (1 + 1e-9)
        parts = (row["standard_error_sampling"], row["standard_error_noise"])
        assert row["standard_error"] == pytest.approx(np.hypot(*parts))
    text = privamp(*PLAN, "--bounds", BOUNDS).stdout
    for part in ("Ranked by expected standard error", "Take stratified, minimax: smallest", "Treated as public"):
        assert part in text


def test_plan_uses_public_standard_deviations(privamp, schools) -> None:
    found = answer(privamp, *PLAN, "--bounds", BOUNDS, "--sd", "E=180,M=440,H=690", "--overall-sd", "400")
    assert found["recommendation"] == "stratified, optimal"
    assert found["notes"] == []


def test_plan_without_bounds_is_in_units_of_the_range(privamp, schools) -> None:
    found = answer(privamp, *PLAN)
    assert any("units of the range" in note for note in found["notes"])
    assert all(row["standard_error"] < 1 for row in found["designs"])
    assert answer(privamp, "survey", "plan", *FILE, "--size", "60", "--epsilon", "1", "--sd", "0.1")["designs"]


def test_plan_never_looks_at_values(privamp, schools) -> None:
    one = answer(privamp, *PLAN, "--value", "enroll", "--bounds", BOUNDS)
    csv.write_csv(changed(schools, "enroll", [7] * schools.num_rows), "schools.csv")
    assert answer(privamp, *PLAN, "--value", "enroll", "--bounds", BOUNDS) == one


@pytest.mark.parametrize(("name", "start"), [("plan.png", b"\x89PNG"), ("plan.svg", b"<?xml")])
def test_plan_draws_a_picture(privamp, schools, tmp_path, name, start) -> None:
    assert answer(privamp, *PLAN, "--cluster", "district", "--plot", name)["plot"] == name
    assert (tmp_path / name).read_bytes().startswith(start)


def test_gaussian_noise_with_delta(privamp, schools) -> None:
    assert answer(privamp, *PLAN, "--delta", "1e-6")["noise"] == "gaussian"
    found = answer(privamp, *ESTIMATE, "--delta", "1e-6")
    assert (found["delta"], found["estimates"][0]["noise"]) == (1e-6, "gaussian")
    assert found["epsilon_upper"] == pytest.approx(1, abs=1e-6)


@pytest.mark.parametrize("name", ["sample.csv", "sample.parquet"])
@pytest.mark.parametrize("method", ["optimal", "minimax", "proportional"])
def test_draw_writes_weights_that_add_up(privamp, schools, tmp_path, name, method) -> None:
    found = answer(privamp, *DRAW[:-1], name, "--method", method)
    table = csv.read_csv(name) if name.endswith("csv") else parquet.read_table(name)
    assert table.column_names == [*schools.column_names, "design_weight"]
    assert sum(table["design_weight"].to_pylist()) == pytest.approx(schools.num_rows)
    levels = table["level"].to_pylist()
    assert {h["name"]: h["size"] for h in found["strata"]} == {level: levels.count(level) for level in set(levels)}
    assert set(table["school"].to_pylist()) <= set(schools["school"].to_pylist())
    assert table.schema.field("enroll").type == pa.int64()
    assert stat.S_IMODE((tmp_path / name).stat().st_mode) == 0o600
    assert sorted(path.name for path in tmp_path.iterdir()) == sorted(["schools.csv", name])


def test_csv_text_is_not_touched(privamp, schools) -> None:
    codes = [f"{k:06d}" for k in range(schools.num_rows)]
    csv.write_csv(schools.append_column("code", [codes]), "schools.csv")
    assert privamp(*DRAW).exit_code == 0
    assert set(Path("sample.csv").read_text().split('"')) >= {"code", "design_weight"}
    assert privamp(*DRAW[:-1], "sample.parquet").exit_code == 0
    assert set(parquet.read_table("sample.parquet")["code"].to_pylist()) <= set(codes)


@pytest.mark.parametrize(
    "design",
    [
        "poisson:rate=0.5", "wor:size=60,population=600", "wr:size=600,population=600", "systematic:step=3",
        "multistage:wor=300,wr=200,population=600", "random-size:low=100,high=300,population=600",
        "proportional:rate=0.3,rounding=half-up", "cluster:chosen=20,clusters=40,max_size=60",
        "cluster:chosen=20,clusters=40,max_size=60,second_rate=0.5",
    ],
)  # fmt: skip
def test_weights_of_other_designs_are_unbiased(privamp, schools, design) -> None:
    given = ["survey", "draw", *FILE, "--design", design, "--cluster", "district", "--out", "sample.csv", "--overwrite"]
    sums = []
    for _ in range(8):
        result = privamp(*given)
        assert result.exit_code == 0, result.output
        sums.append(sum(csv.read_csv("sample.csv")["design_weight"].to_pylist()))
    spread = max(float(np.std(sums)), 1.0)
    assert abs(np.mean(sums) - 600) < 5 * spread


def test_nothing_that_was_drawn_is_printed(privamp, schools) -> None:
    result = privamp("survey", "draw", *FILE, "--design", "poisson:rate=0.5", "--out", "sample.csv")
    size = csv.read_csv("sample.csv").num_rows
    assert result.exit_code == 0
    assert "SECRET" in result.stdout
    assert str(size) not in result.stdout


def test_one_key_draws_one_sample(privamp, schools, tmp_path) -> None:
    key = ["--key-file", "sample.key"]
    assert answer(privamp, *DRAW, *key)["key_file"] == "sample.key"
    assert stat.S_IMODE((tmp_path / "sample.key").stat().st_mode) == 0o600
    assert len(bytes.fromhex((tmp_path / "sample.key").read_text())) == 32
    first = (tmp_path / "sample.csv").read_bytes()
    assert privamp(*DRAW, *key, "--overwrite").exit_code == 0
    assert (tmp_path / "sample.csv").read_bytes() == first
    assert privamp(*DRAW, "--overwrite").exit_code == 0
    assert (tmp_path / "sample.csv").read_bytes() != first


@pytest.mark.parametrize(("content", "mode"), [("ab" * 32, 0o644), ("ab", 0o600), ("xy" * 32, 0o600), ("é", 0o600)])
def test_bad_key_files_are_refused_and_not_shown(privamp, schools, tmp_path, content, mode) -> None:
    path = tmp_path / "sample.key"
    path.write_text(content, encoding="utf-8")
    path.chmod(mode)
    sentence = refusal(privamp, *DRAW, "--key-file", "sample.key")
    assert "sample.key" in sentence
    assert content not in sentence.replace("sample.key", "")


def test_sample_and_key_appear_together_or_not_at_all(schools, tmp_path, monkeypatch) -> None:
    from privamp.chance.keys import Key
    from privamp.errors import InvalidInput

    def replace(*_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "replace", replace)
    before = sorted(tmp_path.iterdir())
    with pytest.raises(InvalidInput, match="No space left"):
        write_secrets(tmp_path / "sample.csv", schools, Key.generate(), tmp_path / "sample.key")
    assert sorted(tmp_path.iterdir()) == before


def test_estimate_has_both_errors_and_a_guarantee(privamp, schools) -> None:
    found = answer(privamp, *ESTIMATE)
    (one,) = found["estimates"]
    assert one["standard_error"] == pytest.approx(np.hypot(one["standard_error_sampling"], one["standard_error_noise"]))
    low, high = one["interval_95"]
    assert low < one["estimate"] < high
    assert abs(one["estimate"] - np.mean(schools["enroll"].to_pylist())) < 8 * one["standard_error"]
    assert found["epsilon_upper"] == pytest.approx(1, abs=1e-6)
    assert found["private"] is not False if "private" in found else True
    assert any("public" in sentence for sentence in found["assumes"])
    text = privamp(*ESTIMATE).stdout
    for part in ("mean of enroll", "from sampling", "95% interval", "because", "assumes", "at most 1"):
        assert part in text


def test_estimates_of_groups_totals_and_proportions(privamp, schools) -> None:
    groups = answer(privamp, *ESTIMATE, "--statistic", "total", "--by", "level")["estimates"]
    assert [row["group"] for row in groups] == ["E", "H", "M"]
    assert "total of enroll by level" in privamp(*ESTIMATE, "--statistic", "total", "--by", "level").stdout
    plain = ["survey", "estimate", *FILE, "--value", "public", "--statistic", "proportion", "--epsilon", "2"]
    for design in (["--size", "200"], ["--design", "poisson:rate=0.5"]):
        (one,) = answer(privamp, *plain, *design)["estimates"]
        assert abs(one["estimate"] - 0.5) < 8 * one["standard_error"]


@pytest.mark.parametrize("sd", ["range", "E=180,M=440,H=690", "300"])
def test_a_public_standard_deviation_is_free(privamp, schools, sd) -> None:
    noise = [answer(privamp, *ESTIMATE, *more)["estimates"][0]["standard_error_noise"] for more in ([], ["--sd", sd])]
    assert noise[1] < noise[0]


def test_parquet_and_gzip_read_alike(privamp, schools) -> None:
    with pa.CompressedOutputStream("schools.csv.gz", "gzip") as stream:
        csv.write_csv(schools, stream)
    parquet.write_table(schools, "schools.parquet")
    asked = ["--strata", "level", "--value", "enroll", "--size", "60", "--epsilon", "1"]
    names = ("schools.csv", "schools.csv.gz", "schools.parquet")
    first, *rest = (answer(privamp, "survey", "plan", "--population", name, *asked) for name in names)
    assert all(found == first for found in rest)


def test_the_schools_of_california(privamp) -> None:
    shared = Path(os.environ.get("PRIVAMP_SHARED", ROOT.parent / "shared"))
    path = shared / "data" / "api_schools.csv.gz"
    if not path.exists():
        pytest.skip("api_schools.csv.gz is neither below PRIVAMP_SHARED nor in a folder 'shared' beside the repository")
    asked = ["--population", str(path), "--strata", "stype", "--bounds", BOUNDS, "--size", "200", "--epsilon", "1"]
    plan = ["survey", "plan", *asked, "--cluster", "dnum", "--value", "enroll"]
    assert "empty for 37 of 6194" in refusal(privamp, *plan)
    known = ["--drop-missing", "--sd", "E=175.8747,M=438.6117,H=688.3190"]
    rows = {row["name"]: row["standard_error"] ** 2 for row in answer(privamp, *plan, *known)["designs"]}
    assert rows["stratified, optimal"] == pytest.approx(404.2, rel=0.005)
    assert rows["stratified, minimax"] == pytest.approx(416.1, rel=0.005)
    assert rows["stratified, proportional"] == pytest.approx(594.4, rel=0.02)  # whole sizes cost a little
    found = answer(privamp, "survey", "estimate", *asked, *known, "--value", "enroll", "--id", "cds")
    assert found["estimates"][0]["standard_error"] == pytest.approx(404.2**0.5, rel=0.02)
