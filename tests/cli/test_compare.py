import json

import pytest

READY = ["compare", "--size", "400", "--population", "1000", "--mechanism", "gaussian:sigma=2"]
EPSILONS = [1.855, 3.79, 14.97, 24.95, 54.706]  # attacks at delta 1e-6; THEORY 4 with sensitivity/sigma = 1


@pytest.fixture
def found(privamp) -> dict:
    result = privamp(*READY, "--json")
    assert result.exit_code == 0, result.output
    return json.loads(result.stdout)


def test_the_order_of_theory_4(found) -> None:
    labels = [row["label"] for row in found["designs"]]
    assert labels == ["Poisson 0.4", "WOR 400", "WR 400", "WOR 500 → WR 400", "WR 500 → WR 400"]
    assert [row["rank"] for row in found["designs"]] == [1, 2, 3, 4, 5]
    for row, attack in zip(found["designs"], EPSILONS, strict=True):
        assert row["epsilon_lower"] == pytest.approx(attack, abs=0.01)
        assert row["epsilon_lower"] <= row["epsilon_upper"]
        assert row["delta_lower"] <= row["delta_upper"]
        assert row["expected_size"] == pytest.approx(400)


def test_must_sees_the_reverse(found) -> None:
    amplified = [row["amplified_epsilon"] for row in found["designs"]]
    assert amplified == sorted(amplified, reverse=True)
    for row in found["designs"]:
        assert row["expected_distinct"] == pytest.approx(1000 * row["eta"])
    last = found["designs"][-1]
    assert last["eta"] == pytest.approx(0.240908, abs=1e-6)
    assert last["amplified_delta"] == pytest.approx(0.0820329, abs=1e-6)  # Theorem A alone: 0.0827572
    assert last["type"] == "strong"


def test_one_mechanism_for_all(found, privamp) -> None:
    assert (found["neighbors"], found["mechanism_neighbors"]) == ("replace-one", "add-remove")
    fixed = ["compare", "--design", "wor:size=4,population=10", "--design", "wr:size=4,population=10"]
    alone = json.loads(privamp(*fixed, "--mechanism", "pure:epsilon=1", "--json").stdout)
    assert alone["mechanism_neighbors"] == "replace-one"


def test_people_see_the_table_the_reason_and_the_advice(privamp) -> None:
    text = privamp(*READY).stdout
    for part in ("Ranked by ε at δ = 1e-06", "WOR 500 → WR 400", "ε' alone misleads", "Use Poisson or WOR", "strong"):
        assert part in text


def test_advice_has_the_numbers_of_this_question(found, privamp) -> None:
    assert [one["label"] for one in found["advice"]] == ["WR 400", "WOR 500 → WR 400", "WR 500 → WR 400"]
    for one, size in zip(found["advice"], (329, 275, 240), strict=True):
        assert one["instead_size"] == size
        assert one["better_on_every_axis"] is True
        assert one["instead_epsilon"] < one["instead_epsilon_same_noise"] < one["epsilon_lower"]
        assert one["sentence"] in privamp(*READY).stdout


def test_no_advice_without_repeats(privamp) -> None:
    text = privamp("compare", "--design", "wor:size=4,population=10", "--mechanism", "pure:epsilon=1").stdout
    assert "Use Poisson" not in text
    assert "distinct records" not in text


def test_no_theorem_is_a_row(privamp) -> None:
    result = privamp(*READY, "--neighbors", "add-remove")
    assert result.exit_code == 0
    assert result.stdout.count("no theorem") == 4  # in the table and in the lines below it
    assert "MultiStage" in result.stdout
    rows = json.loads(privamp(*READY, "--neighbors", "add-remove", "--json").stdout)["designs"]
    assert [row["rank"] for row in rows] == [1, 2, 3, None, None]
    assert rows[-1]["epsilon_upper"] is None
    assert "theorems give replace-one" in rows[-1]["reason"]


def test_uneven_sizes_are_noticed(privamp) -> None:
    designs = ["--design", "wor:size=4,population=10", "--design", "poisson:rate=0.5"]
    result = privamp("compare", *designs, "--mechanism", "pure:epsilon=1")
    assert result.exit_code == 0
    assert result.stderr == "Warning: expected sizes run from 4 to 5; compare designs at equal expected size\n"


def test_poisson_alone_has_no_size(privamp) -> None:
    question = ["--design", "poisson:rate=0.5", "--mechanism", "pure:epsilon=1"]
    found = json.loads(privamp("compare", *question, "--json").stdout)
    assert found["designs"][0]["expected_size"] is None
    assert found["population"] is None


def test_never_that_private(privamp) -> None:
    result = privamp("compare", "--size", "4", "--population", "10", "--mechanism", "approx:epsilon=1,delta=0.1")
    assert result.exit_code == 0, result.output
    assert "∞" in result.stdout


def test_numerical_failure_is_a_row_and_exit_1(privamp, monkeypatch) -> None:
    from privamp.numerics.roots import NumericalFailure

    def amplify(*_):
        raise NumericalFailure("no root was found")

    monkeypatch.setattr("privamp.report.comparison.amplify", amplify)
    result = privamp(*READY)
    assert result.exit_code == 1
    assert "no root was found" in result.stdout


@pytest.mark.parametrize(
    ("name", "start"), [("a.png", b"\x89PNG"), ("a.svg", b"<?xml"), ("a.PNG", b"\x89PNG"), ("a.html", b"<!DOCTYPE")]
)
def test_pictures(privamp, tmp_path, name, start) -> None:
    question = ["compare", "--size", "4", "--population", "10", "--mechanism", "gaussian:sigma=1"]
    result = privamp(*question, "--plot", name)
    assert result.exit_code == 0, result.output
    assert (tmp_path / name).read_bytes().startswith(start)
    assert [path.name for path in tmp_path.iterdir()] == [name]


def test_a_picture_appears_whole_or_not_at_all(privamp, tmp_path, monkeypatch) -> None:
    def savefig(self, path, **_):
        path.write_bytes(b"half")
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("matplotlib.figure.Figure.savefig", savefig)
    (tmp_path / "old.png").write_bytes(b"old")
    result = privamp(*READY, "--plot", "old.png")
    assert (result.exit_code, result.stdout) == (2, "")
    assert "No space left" in result.stderr
    assert [(path.name, path.read_bytes()) for path in tmp_path.iterdir()] == [("old.png", b"old")]
