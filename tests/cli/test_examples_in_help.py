"""Every example of every help text works when pasted."""

import json
import re
import shlex
from importlib.util import find_spec

import numpy as np
import pytest

import budget_version_1
from privamp import Budget, Gaussian

COMMANDS = (["demo"], ["amplify"], ["compare"], ["calibrate"], ["reproduce"])
COMMANDS += (["survey", "plan"], ["survey", "draw"], ["survey", "estimate"], ["bootstrap"])
COMMANDS += (["weights"], ["kmeans"], ["sample"], ["query"])
COMMANDS += (pytest.param(["audit", "designs"], marks=pytest.mark.slow),)  # tests/verify checks the designs, too
NEEDS_TORCH = pytest.mark.skipif(find_spec("torch") is None, reason="torch is not installed (make test-torch)")
COMMANDS += (pytest.param(["train"], marks=NEEDS_TORCH),)
COMMANDS += tuple(["budget", name] for name in ("create", "show", "log", "cancel", "head", "verify", "backup"))
COMMANDS += (["budget", "rotate-key"], ["budget", "migrate"])

# The file that the survey examples name: made-up schools at three levels in ten districts.
SCHOOLS = "school,level,district,enroll\n" + "".join(
    f"s{k:03d},{'EEEMH'[k % 5]},d{k // 30},{200 + 37 * k % 1300}\n" for k in range(300)
)

# The file that the k-means examples name: made-up points around four corners.
POINTS = "x,y\n" + "".join(
    f"{(-1) ** k * 0.5 + 0.01 * (k % 7)},{(-1) ** (k // 2) * 0.5 + 0.01 * (k % 5)}\n" for k in range(3000)
)


# The files that the training examples name: noise with two kinds of labels.
ADULT = "age,job,income,split\n" + "".join(
    f"{20 + k % 60},j{k % 9},{('<=50K', '>50K')[k % 3 == 0]},{('train', 'test')[k % 4 == 0]}\n" for k in range(600)
)


def write_pictures(path) -> None:
    rng = np.random.default_rng(0)
    parts = {"train": 600, "test": 50}
    x = {f"X_{name}": rng.integers(0, 256, (n, 28, 28), np.uint8) for name, n in parts.items()}
    np.savez(path, **x, **{f"y_{name}": rng.integers(0, 10, n, np.uint8) for name, n in parts.items()})


def make_budget(privamp, folder) -> None:
    """The store, the key, the head and the trail that the examples name."""
    made = privamp("budget", "create", "study.db", "--epsilon", "3", "--delta", "1e-6", "--population", "patients")
    assert made.exit_code == 0
    Budget.open(folder / "study.db").reserve(Gaussian(5.0))  # entry 3
    privamp("sample", "--new-key", "auditor.key")
    budget_version_1.write(folder / "old.db")
    (folder / "head.json").write_text(privamp("budget", "head", "study.db").stdout)
    (folder / "trail.jsonl").write_text(privamp("budget", "log", "study.db", "--jsonl").stdout)


def examples(text: str) -> list[list[str]]:
    joined = re.sub(r"\\\n\s*", " ", text.partition("Examples:\n")[2])
    return [shlex.split(line) for line in joined.splitlines() if line.strip().startswith("privamp ")]


@pytest.mark.parametrize("command", COMMANDS, ids=" ".join)
def test_examples_work(privamp, tmp_path, command) -> None:
    (tmp_path / "schools.csv").write_text(SCHOOLS, encoding="utf-8")
    (tmp_path / "points.csv").write_text(POINTS, encoding="utf-8")
    (tmp_path / "adult.csv").write_text(ADULT, encoding="utf-8")
    write_pictures(tmp_path / "mnist.npz")
    if command[0] == "budget" and command[1] != "create":
        make_budget(privamp, tmp_path)
    found = examples(privamp(*command, "--help").stdout)
    assert found
    for example in found:
        assert example[: 1 + len(command)] == ["privamp", *command]
        redirected = example.index(">") if ">" in example else len(example)
        result = privamp(*example[1:redirected])
        assert result.exit_code == 0, result.output
        if "--json" in example:
            assert json.loads(result.stdout)["schema"] == 1
