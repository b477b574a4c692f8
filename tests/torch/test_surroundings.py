"""What holds around the engine: without torch, and on the documentation's page."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]


def test_without_torch_the_room_says_what_to_install() -> None:
    code = "import sys; sys.modules['torch'] = None; import privamp; privamp.torch.PrivacyEngine"
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=120)
    assert run.returncode == 1
    assert run.stderr.splitlines()[-1] == (
        "privamp.errors.MissingExtra: privamp.torch.PrivacyEngine needs PyTorch; "
        "install it with: pip install 'privamp[torch]'"
    )


def test_the_accounting_needs_no_torch() -> None:
    rooms = ("importance", "sampled_gaussian", "plan", "batches", "dpis")
    code = f"import sys; sys.modules['torch'] = None\nfor room in {rooms}: __import__(f'privamp.torch.{{room}}')"
    subprocess.run([sys.executable, "-c", code], check=True, timeout=120)


def test_the_page_runs_as_printed(capsys: pytest.CaptureFixture[str]) -> None:
    pytest.importorskip("torch", reason="torch is not installed (make test-torch)")
    page = (ROOT / "docs" / "torch.md").read_text(encoding="utf-8")
    shown = re.findall(r"^```python\n(.*?)^```$", page, re.MULTILINE | re.DOTALL)
    shown = [code for code in shown if "transformers" not in code]  # run in test_page_from_opacus.py
    assert len(shown) == 3
    namespace: dict[str, object] = {}
    for code in shown:
        exec(compile(code, "docs/torch.md", "exec"), namespace)
    epsilon = float(capsys.readouterr().out.split()[0])
    assert 2.99 < epsilon <= 3.0
