"""The installed program as a shell sees it."""

import json
import os
import subprocess
import sys

import pytest

import privamp

SLOW = ("scipy.optimize", "scipy.stats", "sklearn", "matplotlib", "dp_accounting", "numpy")


def shell(*arguments: str, **settings: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "privamp", *arguments]
    env = os.environ | {"PYTHONWARNINGS": "error::RuntimeWarning"} | settings
    return subprocess.run(command, capture_output=True, text=True, timeout=120, env=env)


def test_version_and_help() -> None:
    assert shell("--version").stdout == f"privamp {privamp.__version__}\n"
    text = shell("--help").stdout
    for command in ("demo", "amplify", "compare", "calibrate", "audit", "reproduce"):
        assert command in text


@pytest.mark.parametrize("arguments", [["--help"], ["compare", "--help"], ["--version"]], ids=" ".join)
def test_help_is_light(arguments) -> None:
    code = (
        "import sys, contextlib\nfrom privamp.cli import main\n"
        f"sys.argv = ['privamp', *{arguments!r}]\n"
        f"with contextlib.suppress(SystemExit):\n    main()\n"
        f"print('LOADED', *(name for name in {SLOW!r} if name in sys.modules))"
    )
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=120)
    assert run.returncode == 0, run.stderr
    assert run.stdout.splitlines()[-1] == "LOADED"


def test_an_answer_and_an_error() -> None:
    good = shell("amplify", "--design", "poisson:rate=0.01", "--mechanism", "pure:epsilon=1", "--json")
    assert (good.returncode, good.stderr) == (0, "")
    assert json.loads(good.stdout)["epsilon_upper"] == pytest.approx(0.017037, abs=1e-6)
    bad = shell("amplify", "--design", "poisson:rate=2", "--mechanism", "pure:epsilon=1")
    assert (bad.returncode, bad.stdout) == (2, "")
    assert bad.stderr == "Error: --design: rate must be a number from 0 to 1, got 2.0 instead\n"


def test_no_arguments_show_the_help() -> None:
    run = shell()
    assert run.returncode == 2
    assert run.stdout.count("Usage:") == 1


def test_a_terminal_without_greek_letters() -> None:
    question = ["--size", "4", "--population", "10", "--mechanism", "pure:epsilon=1"]
    run = shell("compare", *question, PYTHONIOENCODING="ascii")
    assert run.returncode == 0, run.stderr


def test_a_reader_that_leaves(tmp_path) -> None:
    command = f"'{sys.executable}' -m privamp reproduce list | true"
    run = subprocess.run(["bash", "-c", f"set -o pipefail; {command}"], capture_output=True, text=True, timeout=120)
    assert "Traceback" not in run.stderr
    assert "Error" not in run.stderr
