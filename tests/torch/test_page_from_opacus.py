"""The script of the page "From Opacus" runs with both libraries, and the encoder of the torch page trains."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

pytest.importorskip("torch", reason="torch is not installed (make test-torch)")

DOCS = Path(__file__).parents[2] / "docs"


def blocks(page):
    return re.findall(r"```python\n(.*?)```", (DOCS / page).read_text(encoding="utf-8"), re.DOTALL)


@pytest.mark.parametrize("library", ["privamp", "opacus"])
def test_one_script_two_libraries(library, tmp_path):
    if library == "opacus":
        pytest.importorskip("opacus", reason="opacus is not installed (make test-torch)")
    (script,) = blocks("from_opacus.md")
    (tmp_path / "script.py").write_text(script, encoding="utf-8")
    command = [sys.executable, "-W", "ignore", str(tmp_path / "script.py"), library]
    done = subprocess.run(command, capture_output=True, text=True, timeout=600, check=False)
    assert done.returncode == 0, done.stderr
    found = float(done.stdout.split()[-1])
    assert 2.9 < found <= 3.01, done.stdout


def test_the_encoder_of_the_page_trains():
    pytest.importorskip("transformers", reason="transformers is not installed (make test-torch)")
    (script,) = [block for block in blocks("torch.md") if "transformers" in block]
    names = {}
    exec(
        "import torch\nfrom torch.utils.data import DataLoader\nfrom privamp.torch import PrivacyEngine\n" + script,
        names,
    )
    assert names["encoder_engine"].is_finished
    assert names["encoder_engine"].get_epsilon(1e-5) <= 3.0
