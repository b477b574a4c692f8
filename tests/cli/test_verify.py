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


def places(data, before=()):
    """Every place of a nested answer that holds a text, a number or a list."""
    parts = data.items() if isinstance(data, dict) else enumerate(data) if isinstance(data, list) else ()
    if isinstance(data, list) or not parts:
        yield before
    for name, part in parts:
        yield from places(part, (*before, name))


def changed(value):
    if isinstance(value, bool) or value is None:
        return not value
    if isinstance(value, (int, float)):
        return value + 1 if isinstance(value, int) else value * 0.9 - 1e-9
    return value + "x" if isinstance(value, str) else value[:-1]


def test_a_change_at_any_place_is_noticed(tmp_path):
    """`schema` could be changed: an answer of another form was read as one of this form."""
    ask = ["--design", "poisson:rate=0.1", "--mechanism", "laplace:scale=1", "--json"]
    answer = json.loads(CliRunner().invoke(app, ["amplify", *ask]).stdout)
    missed, inside = [], ("certificate", "schema", "neighbors", "steps", "private", "because", "assumes")
    for place in [place for place in places(answer) if place and place[0] in inside]:
        other = json.loads(json.dumps(answer))
        holder = other
        for name in place[:-1]:
            holder = holder[name]
        if (new := changed(holder[place[-1]])) != holder[place[-1]]:
            holder[place[-1]] = new
            missed += [place] if verified(tmp_path, other).exit_code == 0 else []
    assert not missed
