"""`privamp survey` on generated schools, and on the Californian ones where they are at hand."""

import json
import os
import stat
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from pyarrow import csv, parquet

BOUNDS = "E=0:1600,M=0:4200,H=0:4200"
COMMON = {"FILE": "schools.csv", "--strata": "level", "--size": "60", "--bounds": BOUNDS, "--epsilon": "1"}
COMMANDS = {
    "plan": COMMON | {"--value": "enroll"},
    "draw": COMMON | {"--id": "school", "--out": "sample.csv", "--key-file": "sample.key", "--label": "schools"},
    "estimate": COMMON | {"--value": "enroll", "--id": "school"},
}
FIXED = {"--strata": None, "--size": None, "--bounds": None}  # for --design
SPEC = "cluster:chosen=20,clusters=40,max_size=15"
HEAD = "school,level,enroll\n"
FILES = {
    "schools.xlsx": "", "nothing.csv": "", "header.csv": HEAD, "bad.parquet": "PAR1", "bad.csv.gz": "?", "old.csv": "",
    "uneven.csv": f"{HEAD}1,E,777\n2,M,777,5\n3,H\n", "twice.csv": "school,level,level,enroll\n1,E,E,5\n",
    "blank.csv": f"{HEAD}1,E,5\n2,,5\n3,H,5\n", "gaps.csv": f"{HEAD}1,E,\n2,M,NA\n3,H,5\n",
    "words.csv": f"{HEAD}1,E,777\n2,M,lots777\n3,H,5\n", "infinite.csv": f"{HEAD}1,E,inf\n2,M,3\n3,H,5\n",
    "doubles.csv": f"{HEAD}1,E,5\n1,M,5\n1,H,5\n", "weights.csv": "school,level,design_weight\n1,E,5\n2,M,5\n3,H,5\n",
}  # fmt: skip
READING = {
    "none.csv": "there is no file", "schools.xlsx": "must be named .csv, .csv.gz or .parquet",
    "binary.csv": "must be named in UTF-8", "latin.csv": "must be named in UTF-8",
    "nothing.csv": "is empty", "header.csv": "only a header", "bad.csv.gz": "cannot be read",
    "bad.parquet": "cannot be read as Parquet", "twice.csv": "2 columns named 'level'",
    "blank.csv": "the public column 'level' is empty for some records; fill them, or leave those records out with",
}  # fmt: skip
ODD_VALUES = ("gaps.csv", "words.csv", "infinite.csv", "uneven.csv")
BAD = [
    *[("all", {"FILE": name}, part) for name, part in READING.items()],
    *[("all", {"--size": text}, "from 1 to 600") for text in ("0", "601")],
    *[("all", {"--bounds": text}, "must be LOW:HIGH") for text in ("", "0", "9:1", "0:inf", "nan:1", "a:b")],
    *[("all", {"--epsilon": text}, "epsilon must be a finite number above 0") for text in ("0", "-1", "nan")],
    *[(command, {"FILE": "doubles.csv"}, "some repeat") for command in ("draw", "estimate")],
    *[(command, {"--method": "best"}, "method must be one of") for command in ("draw", "estimate")],
    ("all", {"--strata": "kind"}, "has no column 'kind' (--strata); it has school, level, district, enroll, public"),
    ("all", {"--bounds": "E=0:1600"}, "stratum 'H' is missing"),
    ("all", {"--bounds": f"{BOUNDS},X=0:1"}, "stratum 'X', which has no records"),
    ("all", {"--bounds": f"{BOUNDS},E=0:1"}, "a name repeats"),
    *[("all", {name: "-1"}, f"{name[2:]} must be") for name in ("--sd", "--delta")],
    *[("plan", {"--overall-sd": text}, "overall_sd must be a finite number") for text in ("nan", "inf", "-5")],
    ("plan", {"--overall-mean": "5"}, "overall_mean needs overall_sd"),
    ("plan", {"--cluster": "kind"}, "has no column 'kind' (--cluster)"),
    ("estimate", {"--bounds": None}, "needs --bounds"),
    ("estimate", {"--statistic": "median"}, "statistic must be one of"),
    ("estimate", FIXED | {"--bounds": "0:9", "--design": "poisson:rate=0.1", "--by": "level"}, "design of fixed size"),
    *[
        ("estimate", FIXED | {"--bounds": "0:4200"} | changes, part)
        for changes, part in (
            ({"--design": SPEC}, "needs --cluster COLUMN"),
            ({"--design": SPEC, "--cluster": "kind"}, "has no column 'kind' (--cluster)"),
            ({"--design": SPEC, "--cluster": "level"}, "declared max_size"),
            ({"--design": SPEC, "--cluster": "district", "--delta": "0.5"}, "delta must be"),
            ({"--design": SPEC, "--cluster": "district", "--by": "level"}, "design of fixed size"),
            ({"--design": f"{SPEC},second_size=2", "--cluster": "district"}, "use a second stage Poisson"),
            ({"--design": "systematic:step=10", "--cluster": "district"}, "omit it for other designs"),
            ({"--design": "poisson-pps:low=0.1,high=0.5"}, "needs --probability COLUMN"),
            ({"--design": "poisson-pps:low=0.1,high=0.5,per_size=1", "--probability": "enroll"}, "omit per_size"),
            ({"--design": "proportional:rate=0.1,rounding=floor"}, "rounding='random'"),
        )
    ],
    ("draw", {"FILE": "weights.csv"}, "already has a column 'design_weight'"),
    ("draw", {"--epsilon": None}, "needs --bounds and --epsilon"),
    ("draw", {"--size": None}, "give --design SPEC, or --size"),
    ("draw", FIXED | {"--design": "wor:size=5,population=700"}, "declares 700 records"),
    ("draw", FIXED | {"--design": "poisson-pps:high=0.5"}, "weights of PoissonPPS"),
    ("draw", FIXED | {"--design": "cluster:chosen=2,clusters=40,max_size=2", "--cluster": "district"}, "max_size"),
    ("draw", {"--out": "schools.csv"}, "already an input"),
    ("draw", {"--label": None}, "needs --label TEXT"),
    ("draw", {"--out": "old.csv"}, "already exists"),
    ("draw", {"--out": "sample.xlsx"}, "must be named .csv or .parquet"),
    ("draw", {"--key-file": "open.key"}, "readable by other users"),
    ("draw", {"--key-file": "short.key"}, "must hold 64 hexadecimal digits"),
]
CASES = [(one, changes, part) for who, changes, part in BAD for one in (COMMANDS if who == "all" else [who])]


@pytest.fixture(autouse=True)
def schools(tmp_path) -> pa.Table:
    """600 made-up schools in 40 districts, also as schools.csv in the folder in which `privamp` runs."""
    rng, n = np.random.default_rng(4), 600
    level = np.repeat(["E", "M", "H"], [400, 120, 80])
    enroll = (np.where(level == "E", 1600, 4200) * rng.beta(2, 4, n)).astype(int)
    ids, public = [f"s{k:04d}" for k in range(n)], rng.integers(0, 2, n)
    columns = {"school": ids, "level": level, "district": np.arange(n) % 40 + 100, "enroll": enroll, "public": public}
    csv.write_csv(pa.table(columns), tmp_path / "schools.csv")
    return pa.table(columns)


def question(command: str, changes: dict[str, str | None] | None = None) -> list[str]:
    options = {name: value for name, value in (COMMANDS[command] | (changes or {})).items() if value is not None}
    if options["FILE"] in FILES and "--size" in options:  # those are tiny
        options["--size"] = "3"
    return ["survey", command, options.pop("FILE"), *(word for pair in options.items() for word in pair)]


def test_the_file_has_one_form_and_the_old_one_warns(privamp) -> None:
    new = privamp(*question("plan"), "--json")
    _, _, file, *others = question("plan")
    old = privamp("survey", "plan", "--population", file, *others, "--json")
    assert (old.exit_code, old.stdout) == (0, new.stdout)
    assert "--population FILE is now just FILE" in " ".join(old.stderr.split())
    assert not new.stderr
    for words in ([], [file, "--population", file]):
        refused = privamp("survey", "plan", *words, *others)
        assert refused.exit_code == 2
        assert "needs the file of records" in refused.stderr


def answer(privamp, command: str, changes: dict[str, str | None] | None = None, *flags: str) -> dict:
    result = privamp(*question(command, changes), *flags, "--json")
    assert result.exit_code == 0, result.output
    return json.loads(result.stdout)


@pytest.mark.parametrize(("command", "changes", "part"), CASES, ids=str)
def test_bad_input_is_one_sentence_and_writes_nothing(privamp, tmp_path, command, changes, part) -> None:
    for name, text in (FILES | {"open.key": "77" * 32, "short.key": "77"}).items():
        (tmp_path / name).write_text(text, encoding="utf-8")
        (tmp_path / name).chmod(0o644 if name == "open.key" else 0o600)
    (tmp_path / "binary.csv").write_bytes(bytes(range(256)) * 9)
    (tmp_path / "latin.csv").write_bytes(b"school,gr\xf6\xdfe\n1,5\n")
    before = {path.name: path.read_bytes() for path in tmp_path.iterdir()}
    result = privamp(*question(command, changes))
    assert (result.exit_code, result.stdout) == (2, ""), result.output
    assert (len(result.stderr.splitlines()), part in result.stderr) == (1, True), result.stderr
    assert "77" not in result.stderr  # no entry of a file is shown
    error = json.loads(privamp(*question(command, changes), "--json").stdout)
    assert result.stderr == f"Error: {error['error']}\n"
    assert {path.name: path.read_bytes() for path in tmp_path.iterdir()} == before


@pytest.mark.parametrize("name", ODD_VALUES)
def test_no_value_is_refused(privamp, tmp_path, name) -> None:
    """A missing, infinite or worded value stopped the command; one of them told how many there are."""
    for file in ODD_VALUES:
        (tmp_path / file).write_text(FILES[file], encoding="utf-8")
    for changes in ({}, FIXED | {"--bounds": "0:9", "--design": "poisson:rate=0.5"}):
        found = answer(privamp, "estimate", {"FILE": name} | changes)
        assert found["epsilon_upper"] <= 1
        assert any("can be read is public" in words for words in found["assumes"])


def test_an_empty_file_is_answered_where_the_number_of_records_is_secret(privamp, tmp_path) -> None:
    (tmp_path / "header.csv").write_text(HEAD, encoding="utf-8")
    for design in ("poisson:rate=0.5", "systematic:step=7", "proportional:rate=0.1"):
        found = answer(privamp, "estimate", FIXED | {"FILE": "header.csv", "--size": None, "--bounds": "0:9",
                                                     "--design": design, "--id": None})  # fmt: skip
        assert not any("how many records" in words for words in found["assumes"])


def test_the_number_of_records_is_printed_for_fixed_sizes_only(privamp) -> None:
    loose = answer(privamp, "draw", FIXED | {"--design": "poisson:rate=0.5", "--key-file": None}, "--overwrite")
    assert "population" not in loose
    assert answer(privamp, "draw", {"--key-file": None}, "--overwrite")["population"] == 600


def test_plan_ranks_and_recommends(privamp, schools, tmp_path) -> None:
    found = answer(privamp, "plan", {"--cluster": "district", "--plot": "plan.png"})
    rows = found["designs"]
    assert rows == sorted(rows, key=lambda row: row["standard_error"])
    assert found["recommendation"] == rows[0]["name"] == "stratified, minimax"
    assert {"simple random", "poisson", "stratified, proportional", "cluster"} <= {row["name"] for row in rows}
    assert all(r["amplified_epsilon_lower"] <= r["amplified_epsilon_upper"] * (1 + 1e-9) for r in rows)
    assert (tmp_path / "plan.png").read_bytes().startswith(b"\x89PNG")
    assert "Take stratified, minimax: smallest" in privamp(*question("plan")).stdout
    known = {"--sd": "E=180,M=440,H=690", "--overall-sd": "400", "--delta": "1e-6"}
    assert answer(privamp, "plan", known)["recommendation"] == "stratified, optimal"
    assert any("units of the range" in note for note in answer(privamp, "plan", {"--bounds": None})["notes"])
    parquet.write_table(schools.set_column(3, "enroll", [[7] * 600]), "schools.parquet")
    assert answer(privamp, "plan", {"FILE": "schools.parquet"}) == answer(privamp, "plan")  # no value is used


@pytest.mark.parametrize("name", ["sample.csv", "sample.parquet"])
def test_draw_writes_a_secret_file_with_weights(privamp, schools, tmp_path, name) -> None:
    csv.write_csv(schools.append_column("code", [[f"{k:06d}" for k in range(600)]]), "schools.csv")
    for method in ("proportional", "minimax", "optimal"):
        found = answer(privamp, "draw", {"--out": name, "--method": method}, "--overwrite")
    assert {path.name for path in tmp_path.iterdir()} == {"schools.csv", "sample.key", "sample.key.survey.json", name}
    assert {stat.S_IMODE((tmp_path / file).stat().st_mode) for file in (name, "sample.key")} == {0o600}
    text = csv.ConvertOptions(column_types={"code": pa.string()})
    table = csv.read_csv(name, convert_options=text) if name.endswith("csv") else parquet.read_table(name)
    assert sum(table["design_weight"].to_pylist()) == pytest.approx(600)
    levels, first = table["level"].to_pylist(), (tmp_path / name).read_bytes()
    assert {h["name"]: h["size"] for h in found["strata"]} == {level: levels.count(level) for level in set(levels)}
    assert table.schema.field("enroll").type == pa.int64()
    assert {len(code) for code in table["code"].to_pylist()} == {6}  # leading zeros are kept
    answer(privamp, "draw", {"--out": name}, "--overwrite")
    assert (tmp_path / name).read_bytes() == first  # the same key
    answer(privamp, "draw", {"--out": name, "--key-file": None}, "--overwrite")
    assert (tmp_path / name).read_bytes() != first


FIXED_SIZE = ["wor:size=60,population=600", "wr:size=600,population=600", "multistage:wor=300,wr=200,population=600"]
LOOSE = ["poisson:rate=0.5", "random-size:low=100,high=300,population=600", "systematic:step=7"]
LOOSE += ["cluster:chosen=20,clusters=40,max_size=60,second_rate=0.5"]


@pytest.mark.parametrize("design", [*FIXED_SIZE, "proportional:rate=0.3,rounding=half-up", *LOOSE])
def test_weights_of_other_designs_are_unbiased(privamp, design) -> None:
    changes = FIXED | {"--design": design, "--cluster": "district", "--key-file": None}
    sums = []
    for _ in range(8):
        said = privamp(*question("draw", changes), "--overwrite").stdout.replace(design, "")
        table = csv.read_csv("sample.csv")
        sums.append(sum(table["design_weight"].to_pylist()))
        assert ("SECRET" in said, str(table.num_rows) in said) == (True, False)
    assert abs(np.mean(sums) - 600) <= (1e-6 if design not in LOOSE else 3 * max(np.std(sums), 40))


def test_sample_and_key_appear_together_or_not_at_all(privamp, tmp_path, monkeypatch) -> None:
    for step in ("replace", "link"):
        monkeypatch.setattr(os, step, lambda *_: (_ for _ in ()).throw(OSError(28, "No space left on device")))
    result = privamp(*question("draw"))
    assert (result.exit_code, os.listdir(tmp_path)) == (2, ["schools.csv"])


def test_estimate_has_both_errors_and_a_guarantee(privamp, schools) -> None:
    for changes in ({}, {"--sd": "range"}, {"--sd": "E=180,M=440,H=690"}, {"--delta": "1e-6"}):
        found = answer(privamp, "estimate", changes)
        (one,) = found["estimates"]
        assert min(one["standard_error_sampling"], one["standard_error_noise"]) > 0
        assert one["interval_95"][0] < one["estimate"] < one["interval_95"][1]
        assert abs(one["estimate"] - np.mean(schools["enroll"].to_pylist())) < 12 * one["standard_error"]
        assert found["epsilon_upper"] == pytest.approx(1, abs=1e-6)
    text = privamp(*question("estimate")).stdout
    assert all(part in text for part in ("mean of enroll", "from sampling", "95% interval", "because", "at most 1"))
    groups = {"--statistic": "total", "--by": "level"}
    assert [row["group"] for row in answer(privamp, "estimate", groups)["estimates"]] == ["E", "H", "M"]
    assert "total of enroll by level" in privamp(*question("estimate", groups)).stdout
    asked = FIXED | {"--value": "public", "--statistic": "proportion", "--design": "poisson:rate=0.5"}
    assert -1 < answer(privamp, "estimate", asked)["estimates"][0]["estimate"] < 2


@pytest.mark.parametrize("delta", ["0", "1e-6"])
@pytest.mark.parametrize("statistic", ["mean", "total"])
@pytest.mark.parametrize(
    ("design", "column"),
    [
        (SPEC, {"--cluster": "district"}),
        (f"{SPEC},second_rate=0.5", {"--cluster": "district"}),
        ("systematic:step=4", {}),
        ("proportional:rate=0.2", {}),
        ("poisson-pps:low=0.3,high=0.6", {"--probability": "chance", "FILE": "chances.csv"}),
    ],
)
def test_estimates_from_other_designs(privamp, schools, tmp_path, design, column, statistic, delta) -> None:
    table = schools.append_column("chance", [np.where(schools["level"].to_numpy() == "E", 0.3, 0.6)])
    csv.write_csv(table, tmp_path / "chances.csv")
    found = answer(
        privamp, "estimate", FIXED | column
        | {"--bounds": "0:4200", "--design": design, "--statistic": statistic, "--delta": delta},
    )  # fmt: skip
    (one,) = found["estimates"]
    truth = np.mean(schools["enroll"].to_pylist()) * (600 if statistic == "total" else 1)
    assert abs(one["estimate"] - truth) < 12 * one["standard_error"]
    assert one["sampling_error_is"] == "private estimate"
    assert 1 - (1e-6 if delta == "0" else 1e-3) <= found["epsilon_upper"] <= 1


def test_a_plan_takes_further_designs_with_either_noise(privamp, schools) -> None:
    for delta in ("0", "1e-6"):
        asked = {"--design": "systematic:step=10", "--cluster": "district", "--delta": delta}
        rows = answer(privamp, "plan", asked)["designs"]
        (mine,) = [row for row in rows if row["name"] == "systematic:step=10"]
        assert mine["standard_error_noise"] > 0
        assert mine["neighbors"] == "add-remove"


def test_the_schools_of_california(privamp) -> None:
    path = Path(os.environ.get("PRIVAMP_SHARED", Path(__file__).parents[3] / "shared"), "data", "api_schools.csv.gz")
    if not path.exists():
        pytest.skip("api_schools.csv.gz is neither below PRIVAMP_SHARED nor in a folder 'shared' beside the repository")
    here = {"FILE": str(path), "--strata": "stype", "--size": "200", "--id": None}
    here |= {"--sd": "E=175.8747,M=438.6117,H=688.3190"}
    rows = answer(privamp, "plan", here | {"--cluster": "dnum"}, "--drop-missing")["designs"]
    variance = {row["name"]: row["standard_error"] ** 2 for row in rows}
    assert variance["stratified, optimal"] == pytest.approx(404.2, rel=0.005)
    assert variance["stratified, minimax"] == pytest.approx(416.1, rel=0.005)
    assert variance["stratified, proportional"] == pytest.approx(594.4, rel=0.02)  # whole sizes cost a little
    (one,) = answer(privamp, "estimate", here | {"--id": "cds"}, "--drop-missing")["estimates"]
    assert one["standard_error"] == pytest.approx(404.2**0.5, rel=0.02)
