"""Modules that need an extra are not searched for examples where it is missing."""

from importlib.util import find_spec

TORCH = "src/privamp/workloads/torch"
collect_ignore = (
    []
    if find_spec("torch")
    else [
        "src/privamp/torch.py",
        *(f"{TORCH}/{name}.py" for name in ("checkpoint", "criterion", "engine", "ghost", "layers", "loader", "lstm")),
        *(f"{TORCH}/{name}.py" for name in ("noise", "records", "run")),
    ]
)
