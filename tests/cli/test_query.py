"""`privamp query`: answers as text, JSON and page, and what it refuses in one sentence."""

import json

import pytest

ROWS = "".join(f"{'EEM'[k % 3]},{100 + k % 50},{('yes', 'no')[k % 4 == 0]}\n" for k in range(600))


@pytest.fixture
def file(tmp_path):
    path = tmp_path / "schools.csv"
    path.write_text("level,enroll,open\n" + ROWS, encoding="utf-8")
    return str(path)


def test_several_questions_cost_one_epsilon(privamp, file, tmp_path):
    page = tmp_path / "page.html"
    found = privamp(
        "query", file, "--count", "--mean", "enroll", "--quantile", "enroll:0.9", "--proportion", "open", "--histogram",
        "enroll:2", "--bounds", "0:200", "--by", "level", "--values", "E,M", "--rate", "0.5", "--epsilon", "3",
        "--json", "--report", page,
    )  # fmt: skip
    assert found.exit_code == 0, found.output
    answer = json.loads(found.stdout)
    assert answer["epsilon_upper"] <= 3.0
    assert len(answer["questions"]) == 5
    assert len(answer["estimates"]) == 2 + 2 + 2 + 2 + 4
    assert "mean of enroll by level: E" in page.read_text(encoding="utf-8")


def test_one_question_is_told_in_words(privamp, file):
    found = privamp("query", file, "--sum", "enroll", "--bounds", "enroll=0:200", "--epsilon", "1")
    assert found.exit_code == 0
    assert "sum of enroll" in found.stdout
    assert "95% interval" in found.stdout


@pytest.mark.parametrize(
    ("asked", "sentence"),
    [
        ([], "there is no question"),
        (["--mean", "enroll"], "needs --bounds LOW:HIGH"),
        (["--mean", "nobody", "--bounds", "0:1"], "no column 'nobody'"),
        (["--mean", "enroll", "--bounds", "1:0"], "LOW < HIGH"),
        (["--count", "--by", "level"], "must be given together"),
        (["--count", "--values", "E"], "--by COLUMN"),
        (["--quantile", "enroll", "--bounds", "0:1"], "COLUMN:P"),
        (["--quantile", "enroll:most", "--bounds", "0:1"], "a probability"),
        (["--quantile", "enroll:2", "--bounds", "0:1"], "probability"),
        (["--histogram", "enroll:x", "--bounds", "0:1"], "number of bins"),
        (["--mean", "enroll", "--mean", "enroll", "--bounds", "0:1"], "asked twice"),
        (["--count", "--rate", "2"], "rate"),
        (["--count", "--confidence", "1"], "confidence"),
        (["--count", "--report", "page.txt"], ".html"),
        (["--count", "--epsilon", "0"], "epsilon"),
    ],
)
def test_bad_questions_get_one_sentence(privamp, file, asked, sentence):
    found = privamp("query", file, *([] if "--epsilon" in asked else ["--epsilon", "1"]), *asked)
    assert found.exit_code == 2
    assert sentence in " ".join(found.stderr.split())
    assert "Traceback" not in found.output


def test_values_are_found_as_they_stand_in_the_file(privamp, tmp_path):
    path = tmp_path / "a.csv"
    path.write_text("fips,flag,x\n" + "01,True,1\n" * 100 + "02,False,2\n" * 50 + ",,3\n" * 25, encoding="utf-8")

    def values(*asked):
        found = privamp("query", str(path), *asked, "--epsilon", "1000", "--json")
        assert found.exit_code == 0, found.output
        return [(one["group"], round(one["value"], 1)) for one in json.loads(found.stdout)["estimates"]]

    by_fips = [value for _, value in values("--count", "--by", "fips", "--values", "01,02,")]
    assert by_fips == pytest.approx([100, 50, 25], abs=0.3)
    assert [v for _, v in values("--proportion", "flag=True")] == pytest.approx([0.7], abs=0.1)
    several = values("--quantile", "x:0.5", "--quantile", "x:0.9", "--histogram", "x:1", "--histogram", "x:3",
                     "--bounds", "0:3")  # fmt: skip
    assert [name for name, _ in several][:3] == ["median of x", "90% quantile of x", "histogram of x in 1 bins: 0 to 3"]
    assert len({name for name, _ in several}) == 6


def test_a_report_that_cannot_be_written_costs_nothing(privamp, file, tmp_path):
    from privamp import Budget

    budget = Budget.create(tmp_path / "b.db", population="p", epsilon=3.0, delta=1e-6)
    name = tmp_path / ("r" * 250 + ".html")
    found = privamp(
        "query", file, "--count", "--epsilon", "1", "--budget", str(tmp_path / "b.db"), "--report", str(name)
    )
    assert found.exit_code != 0
    assert "shorter name" in found.stderr
    assert not list(budget.log())


def test_what_was_paid_for_is_printed_where_nothing_can_be_written(privamp, file, tmp_path, monkeypatch):
    from privamp import atomic_files

    def full(*_, **__):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(atomic_files, "write_atomically", full)
    found = privamp("query", file, "--count", "--epsilon", "1", "--report", str(tmp_path / "r.html"))
    assert found.exit_code != 0
    assert "95% interval" in found.stdout
    assert "No space left" in found.stderr


def test_numbers_are_shown_with_as_many_digits_as_their_errors_need(privamp, tmp_path):
    path = tmp_path / "a.csv"
    path.write_text("x\n" + "1\n" * 1_234_567, encoding="utf-8")
    found = privamp("query", str(path), "--count", "--epsilon", "100")
    assert "1.23457e+06" not in found.stdout
    assert " 123456" in found.stdout
