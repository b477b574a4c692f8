"""Every example of every help text works when pasted."""

import json
import re
import shlex

import pytest

COMMANDS = (["demo"], ["amplify"], ["compare"], ["calibrate"], ["audit", "designs"], ["reproduce"])


def examples(text: str) -> list[list[str]]:
    joined = re.sub(r"\\\n\s*", " ", text.partition("Examples:\n")[2])
    return [shlex.split(line) for line in joined.splitlines() if line.strip().startswith("privamp ")]


@pytest.mark.parametrize("command", COMMANDS, ids=" ".join)
def test_examples_work(privamp, command) -> None:
    found = examples(privamp(*command, "--help").stdout)
    assert found
    for example in found:
        assert example[: 1 + len(command)] == ["privamp", *command]
        result = privamp(*example[1:])
        assert result.exit_code == 0, result.output
        if "--json" in example:
            assert json.loads(result.stdout)["schema"] == 1
