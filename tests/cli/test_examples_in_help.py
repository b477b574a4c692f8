"""Every example of every help text works when it is pasted into an empty folder."""

import json
import re
import shlex
from importlib.util import find_spec

import pytest
import typer
from typer.core import TyperGroup

from privamp.cli.application import app

SLOW = {("audit", name) for name in ("designs", "records", "workloads", "bounds", "release", "mistakes")}
NEEDS_TORCH = pytest.mark.skipif(find_spec("torch") is None, reason="torch is not installed (make test-torch)")
NEEDS_APP = pytest.mark.skipif(find_spec("nicegui") is None, reason="NiceGUI is not installed (make test-app)")


def commands(group: TyperGroup, path: tuple[str, ...] = ()):
    for name, command in group.commands.items():
        here = (*path, name)
        if isinstance(command, TyperGroup):
            yield from commands(command, here)
        else:
            marks = [pytest.mark.slow] * (here in SLOW) + [NEEDS_TORCH] * (here == ("train",))
            marks += [NEEDS_APP] * (here == ("serve",))
            yield pytest.param(here, id=" ".join(here), marks=marks)


def examples(text: str) -> list[list[str]]:
    joined = re.sub(r"\\\n\s*", " ", text.partition("Examples:\n")[2])
    return [shlex.split(line) for line in joined.splitlines() if line.strip().startswith("privamp ")]


def paste(privamp, example: list[str], folder) -> None:
    """Run one line as a shell would, with what `>` means."""
    asked, target = (example[1:-2], example[-1]) if ">" in example else (example[1:], "")
    result = privamp(*asked)
    told = 1 if "--claim" in example else 0  # the claim of that example is false
    assert result.exit_code == told, f"{' '.join(example)}: {result.output}"
    if target:
        (folder / target).write_text(result.stdout, encoding="utf-8")
    elif "--json" in example:
        assert json.loads(result.stdout)["schema"] == 1


@pytest.mark.parametrize("command", list(commands(typer.main.get_command(app))))
def test_examples_work(privamp, tmp_path, command) -> None:
    found = examples(privamp(*command, "--help").stdout)
    assert any(example[1 : 1 + len(command)] == list(command) for example in found), "the help shows no example"
    for example in found:
        paste(privamp, example, tmp_path)


def test_an_example_that_fails_is_caught(privamp, tmp_path) -> None:
    with pytest.raises(AssertionError, match="nobody"):
        paste(privamp, ["privamp", "query", "nobody.csv", "--count", "--epsilon", "1"], tmp_path)
