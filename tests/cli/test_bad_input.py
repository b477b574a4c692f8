"""Whatever is wrong with a question, the answer is one sentence and exit code 2, and no file appears."""

import json

import pytest

GAUSSIAN = "gaussian:sigma=1"
AMPLIFY = {"--design": "poisson:rate=0.1", "--mechanism": GAUSSIAN, "--delta": "1e-6"}
COMPARE = {"--size": "4", "--population": "10", "--mechanism": GAUSSIAN}
CALIBRATE = {"--design": "poisson:rate=0.1", "--mechanism": "gaussian:sigma=?", "--epsilon": "1", "--delta": "1e-6"}
COMMANDS = {"amplify": AMPLIFY, "compare": COMPARE, "calibrate": CALIBRATE}

# (command, options that differ from a good question; None drops one)
BAD = [
    ("amplify", {"--design": "poisson:rate=nan"}),
    ("amplify", {"--design": "poisson:rate=inf"}),
    ("amplify", {"--design": "poisson:rate=1.5"}),
    ("amplify", {"--design": "poisson:rate=-0.1"}),
    ("amplify", {"--design": "poisson:rate="}),
    ("amplify", {"--design": "poisson"}),
    ("amplify", {"--design": "poisson:rate=0.1,rate=0.2"}),
    ("amplify", {"--design": "poisson:rate=?"}),
    ("amplify", {"--design": "poison:rate=0.1"}),
    ("amplify", {"--design": "poisson:speed=0.1"}),
    ("amplify", {"--design": ""}),
    ("amplify", {"--design": "wor:size=11,population=10"}),
    ("amplify", {"--design": "wor:size=0,population=10"}),
    ("amplify", {"--design": "wor:size=0,population=0"}),
    ("amplify", {"--design": "wor:size=1,population=0"}),
    ("amplify", {"--design": "wor:size=2.5,population=10"}),
    ("amplify", {"--design": "wr:size=0,population=10"}),
    ("amplify", {"--design": "multistage:population=10"}),
    ("amplify", {"--design": "multistage:wor=5,wr=0,population=10"}),
    ("amplify", {"--design": "multistage:wor=5,wor=6,population=10"}),
    ("amplify", {"--design": "multistage:wor=5,wr=3,population=10", "--neighbors": "add-remove"}),
    ("amplify", {"--design": "cyclic-poisson:rate=0.01,bands=10,steps=5"}),
    ("amplify", {"--design": "cyclic-poisson:rate=0.5,bands=4,steps=10"}),
    ("amplify", {"--design": "cyclic-poisson:rate=0.1,bands=0,steps=10"}),
    ("amplify", {"--design": "balls-in-bins:rounds=0"}),
    ("amplify", {"--design": "balls-in-bins:rounds=10,times=11"}),
    ("amplify", {"--design": "balls-in-bins:rounds=10,epochs=0"}),
    ("amplify", {"--design": "capped-poisson:rate=0.1,most=0"}),
    ("amplify", {"--design": "rounds:steps=0,design=poisson:rate=0.1"}),
    ("amplify", {"--mechanism": "gaussian:sigma=nan"}),
    ("amplify", {"--mechanism": "gaussian:sigma=inf"}),
    ("amplify", {"--mechanism": "gaussian:sigma=0"}),
    ("amplify", {"--mechanism": "gaussian:sigma=-1"}),
    ("amplify", {"--mechanism": "gaussian:sigma=1,sensitivity=0"}),
    ("amplify", {"--mechanism": "laplace:scale=-inf"}),
    ("amplify", {"--mechanism": "pure:epsilon=-1"}),
    ("amplify", {"--mechanism": "approx:epsilon=1,delta=2"}),
    ("amplify", {"--mechanism": "approx:epsilon=1,delta=0.5"}),
    ("amplify", {"--mechanism": "gaussian:sigma=1,neighbors=friends"}),
    ("amplify", {"--mechanism": "gaussian:sigma=1,neighbors=replace-one"}),
    ("amplify", {"--mechanism": "[red]"}),
    ("amplify", {"--neighbors": "friends"}),
    ("amplify", {"--delta": "0"}),
    ("amplify", {"--delta": "1"}),
    ("amplify", {"--delta": "-1e-6"}),
    ("amplify", {"--delta": "nan"}),
    ("amplify", {"--delta": "many"}),
    ("amplify", {"--delta": None}),
    ("amplify", {"--epsilon": "1"}),
    ("amplify", {"--delta": None, "--epsilon": "inf"}),
    ("amplify", {"--delta": None, "--epsilon": "-1"}),
    ("amplify", {"--delta": None, "--epsilon": "nan"}),
    ("amplify", {"--steps": "0"}),
    ("amplify", {"--steps": "-3"}),
    ("amplify", {"--steps": "1.5"}),
    ("amplify", {"--steps": "1" + "0" * 30}),
    ("amplify", {"--queries": "0"}),
    ("amplify", {"--queries": "1000000000"}),
    ("amplify", {"--records-per-person": "0"}),
    ("amplify", {"--design": None}),
    ("amplify", {"--mechanism": None}),
    ("amplify", {"--colour": "red"}),
    ("calibrate", {"--mechanism": GAUSSIAN}),
    ("calibrate", {"--design": "poisson:rate=?"}),
    ("calibrate", {"--design": "multistage:wor=?,wr=?,population=10", "--mechanism": GAUSSIAN}),
    ("calibrate", {"--mechanism": "norm:scale=1,dimension=?"}),
    ("calibrate", {"--mechanism": "gaussian:sigma=1,neighbors=?"}),
    ("calibrate", {"--mechanism": "discrete-laplace:scale=1,sensitivity=?"}),
    ("calibrate", {"--design": "wor:size=?,population=1", "--mechanism": GAUSSIAN}),
    ("calibrate", {"--design": "wor:size=?,population=0", "--mechanism": GAUSSIAN}),
    ("calibrate", {"--design": "wor:size=?", "--mechanism": GAUSSIAN}),
    ("calibrate", {"--epsilon": "0"}),
    ("calibrate", {"--epsilon": "nan"}),
    ("calibrate", {"--delta": "1"}),
    ("calibrate", {"--delta": None}),
    ("calibrate", {"--steps": "0"}),
    ("compare", {"--size": "11"}),
    ("compare", {"--size": "0"}),
    ("compare", {"--population": "0"}),
    ("compare", {"--population": None}),
    ("compare", {"--size": None}),
    ("compare", {"--design": "poisson:rate=0.1"}),
    ("compare", {"--epsilon": "0"}),
    ("compare", {"--delta": "1"}),
    ("compare", {"--neighbors": "friends"}),
    ("compare", {"--steps": "0"}),
    ("compare", {"--mechanism": "gaussian:sigma=0"}),
    ("compare", {"--plot": "picture.bmp"}),
    ("compare", {"--plot": "picture"}),
    ("compare", {"--plot": "no/such/folder/picture.png"}),
    ("compare", {"--plot": "\0.png"}),
]


def question(command: str, changes: dict[str, str | None]) -> list[str]:
    options = {name: value for name, value in (COMMANDS[command] | changes).items() if value is not None}
    return [command, *(word for pair in options.items() for word in pair)]


@pytest.mark.parametrize(("command", "changes"), BAD, ids=lambda value: str(value))
def test_bad_input_is_one_sentence(privamp, tmp_path, command, changes) -> None:
    result = privamp(*question(command, changes))
    assert result.exit_code == 2, result.output
    assert result.stdout == ""
    assert len(result.stderr.splitlines()) == 1
    assert result.stderr.startswith("Error: ")
    answer = privamp(*question(command, changes), "--json")
    assert answer.exit_code == 2
    error = json.loads(answer.stdout)
    assert error["schema"] == 1
    assert result.stderr == f"Error: {error['error']}\n"
    assert error["kind"] in {"InvalidInput", "NoTheorem", "Infeasible", "Usage"}
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("command", COMMANDS)
def test_the_good_question_is_answered(privamp, command) -> None:
    assert privamp(*question(command, {}), "--json").exit_code == 0


@pytest.mark.parametrize(
    "arguments",
    [
        ["nonsense"],
        ["audit", "nonsense"],
        ["audit", "designs", "--checks", "0"],
        ["audit", "designs", "--checks", "many"],
        ["audit", "designs", "--jobs", "-1"],
        ["reproduce", "no-such-figure"],
        ["reproduce", "must-eta", "--report", "there"],
        ["demo", "--out", "file/below"],
        ["demo", "extra"],
    ],
    ids=" ".join,
)
def test_other_commands_say_one_sentence(privamp, tmp_path, arguments) -> None:
    (tmp_path / "file").write_text("not a folder")
    for words in (arguments, [*arguments, "--json"]):
        result = privamp(*words)
        assert result.exit_code == 2, result.output
        assert "Traceback" not in result.output
    assert set(json.loads(result.stdout)) == {"schema", "error", "kind"}
    assert [path.name for path in tmp_path.iterdir()] == ["file"]


def test_reproduce_into_a_file_is_refused(privamp, tmp_path) -> None:
    (tmp_path / "file").write_text("not a folder")
    result = privamp("reproduce", "must-eta", "--out", "file/below")
    assert (result.exit_code, result.stdout) == (2, "")
    assert len(result.stderr.splitlines()) == 1
