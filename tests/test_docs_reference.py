"""The reference shows every public name once."""

import ast
import importlib
import re
from pathlib import Path

import pytest

import privamp

ROOT = Path(__file__).parents[1]
PAGES = {page.stem: page.read_text(encoding="utf-8") for page in (ROOT / "docs" / "reference").glob("*.md")}
SHOWN = [name for page in PAGES.values() for name in re.findall(r"^::: (\S+)$", page, re.M)]
ROOMS = ("survey", "bootstrap", "sgd", "verify", "datasets", "torch", "spark", "kmeans", "sums")


def exported(room: str) -> list[str]:
    """`__all__` of a room, read without importing what it needs."""
    tree = ast.parse((ROOT / "src" / "privamp" / room / "__init__.py").read_text(encoding="utf-8"))
    for node in tree.body:
        if isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == "__all__":
            return list(ast.literal_eval(node.value))
    return []


def test_every_name_of_privamp_is_shown_once() -> None:
    for name, home in privamp._HOME.items():
        assert SHOWN.count(f"privamp.{home}.{name}") == 1, f"docs/reference does not show privamp.{name} once"


@pytest.mark.parametrize("room", ROOMS)
def test_every_name_of_a_room_is_shown(room: str) -> None:
    shown = {name.rpartition(".")[2] for name in SHOWN}
    assert not set(exported(room)) - shown, f"docs/reference does not show all of privamp.{room}"


def test_what_is_shown_exists() -> None:
    for name in SHOWN:
        module, _, last = name.rpartition(".")
        if ".torch." in name:  # torch may be missing
            assert (ROOT / "src" / Path(*module.split("."))).with_suffix(".py").exists()
            continue
        assert hasattr(importlib.import_module(module), last), name
