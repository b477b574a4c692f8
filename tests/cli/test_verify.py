"""`privamp verify` recomputes what a command printed, and notices every change."""

import json

import pytest
from typer.testing import CliRunner

from privamp.cli.application import app

ASK = ["--design", "poisson:rate=0.01", "--mechanism", "gaussian:sigma=1", "--steps", "10", "--epsilon", "1", "--json"]


@pytest.fixture
def answer():
    return json.loads(CliRunner().invoke(app, ["amplify", *ASK]).stdout)


def verified(tmp_path, data, *options):
    path = tmp_path / "certificate.json"
    path.write_text(data if isinstance(data, str) else json.dumps(data))
    return CliRunner().invoke(app, ["verify", str(path), *options])


def test_an_answer_is_confirmed(tmp_path, answer):
    result = verified(tmp_path, answer)
    assert result.exit_code == 0
    assert "Every number agrees" in result.stdout
    assert json.loads(verified(tmp_path, answer, "--json").stdout)["agrees"] is True


@pytest.mark.parametrize("name", ["delta_upper", "delta_lower"])
def test_a_changed_number_beside_the_certificate_is_noticed(tmp_path, answer, name):
    result = verified(tmp_path, answer | {name: answer[name] * 0.999}, "--json")
    assert result.exit_code == 1
    assert "stated as" in json.loads(result.stdout)["disagreements"][0]


def test_a_changed_certificate_is_noticed(tmp_path, answer):
    answer["certificate"]["claims"][0]["times"] = 9
    assert verified(tmp_path, answer).exit_code == 1


@pytest.mark.parametrize("text", ["", "[1]", "{", "{}", '{"format": 99, "claims": []}', "null", "\x00"])
def test_bad_files_get_one_sentence(tmp_path, text):
    result = verified(tmp_path, text, "--json")
    assert result.exit_code == 2
    assert "error" in json.loads(result.stdout)


def test_a_missing_file_gets_one_sentence():
    assert CliRunner().invoke(app, ["verify", "no-such-file.json"]).exit_code == 2
