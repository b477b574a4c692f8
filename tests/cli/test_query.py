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
        ([], "nothing was asked"),
        (["--mean", "enroll"], "needs --bounds LOW:HIGH"),
        (["--mean", "nobody", "--bounds", "0:1"], "no column 'nobody'"),
        (["--mean", "enroll", "--bounds", "1:0"], "LOW < HIGH"),
        (["--count", "--by", "level"], "needs --values"),
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
