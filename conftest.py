"""Modules that need an extra are not searched for examples where it is missing."""

from importlib.util import find_spec

TORCH = "src/privamp/workloads/torch"
collect_ignore = (
    []
    if find_spec("torch")
    else [
        "src/privamp/torch.py",
        "tests/support/small_runs.py",
        "src/privamp/cli/train_run.py",
        *(f"{TORCH}/{name}.py" for name in ("checkpoint", "criterion", "engine", "ghost", "layers", "loader", "lstm")),
        *(f"{TORCH}/{name}.py" for name in ("models", "noise", "records", "run")),
    ]
)
