"""A test run tries the same things every time, unless it is asked to search."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from privamp import Key

ROOT = Path(__file__).parents[1]
PROBE = """
from hypothesis import given, strategies as st

@given(st.floats())
def test_shows_what_it_tries(x):
    print("tried", x.hex())
"""


@pytest.fixture
def tried(tmp_path):
    """tried(*flags): the examples that a run with these flags tries."""
    (tmp_path / "conftest.py").write_text((ROOT / "conftest.py").read_text())
    (tmp_path / "test_probe.py").write_text(PROBE)

    def run(*flags: str) -> list[str]:
        command = [sys.executable, "-m", "pytest", "-q", "-s", "-p", "no:cacheprovider", *flags, "test_probe.py"]
        environment = {name: text for name, text in os.environ.items() if not name.startswith("PYTEST")}
        done = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True, check=True)
        return [line for line in done.stdout.splitlines() if "tried" in line]

    return run


def test_hypothesis_tries_the_same_examples_unless_it_is_asked_to_search(tried):
    first = tried("--hypothesis-seed=1")  # a seed alone does not start a search
    assert len(first) >= 50
    assert tried("--hypothesis-seed=2") == first
    assert tried("--hypothesis-profile=search", "--hypothesis-seed=1") != first


def test_fresh_keys_are_the_same_in_every_run_of_a_test(request):
    if request.config.getoption("--hypothesis-seed") is not None:
        pytest.skip("a search draws other keys")
    first = Key.generate().secret_bytes().hex()
    assert first.startswith("f0803a868611528d")
    assert Key.generate().secret_bytes().hex() != first
