"""The scripts of docs/loops.md, as printed: the Trainer of Hugging Face, Lightning, and the choice among settings."""

import re
from pathlib import Path

import pytest

pytest.importorskip("torch", reason="torch is not installed (make test-torch)")
pytest.importorskip("transformers")
pytest.importorskip("accelerate")
pytest.importorskip("lightning")

PAGE = Path(__file__).parents[2] / "docs" / "loops.md"


@pytest.mark.filterwarnings("ignore")
def test_the_scripts_run_and_take_the_planned_steps(tmp_path):
    blocks = re.findall(r"```python\n(.*?)```", PAGE.read_text(), re.DOTALL)
    assert len(blocks) == 4
    names: dict[str, object] = {}
    for block in blocks:
        exec(compile(block, str(PAGE), "exec"), names)
    for name in ("engine", "lightning_engine"):
        engine = names[name]
        assert engine.is_finished
        assert engine.step == 8  # 2 epochs of 60 records, 15 at a time
        assert engine.get_epsilon(1e-5) <= 3.0
    assert names["best"].setting in (0.01, 0.1, 1.0)
    options = {"output_dir": str(tmp_path), "max_grad_norm": 1.0, "use_cpu": True, "report_to": []}
    args = names["transformers"].TrainingArguments(**options)
    with pytest.raises(ValueError, match="max_grad_norm=0"):
        names["PrivateTrainer"](model=names["model"], batches=names["batches"], args=args)
