"""docs/queries.md runs as printed."""

import re
from pathlib import Path

PAGE = Path(__file__).parents[2] / "docs" / "queries.md"


def test_the_page_runs_as_printed(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    names: dict[str, object] = {}
    blocks = re.findall(r"```python\n(.*?)```", PAGE.read_text(encoding="utf-8"), re.DOTALL)
    assert len(blocks) == 4
    for block in blocks:
        exec(block, names)
    assert names["mean"].guarantee.epsilon(1e-6) <= 1.0
