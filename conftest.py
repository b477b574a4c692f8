"""What every test run starts with: how Hypothesis searches, and which modules need an extra that is missing.

`checks`, the default, tries the same examples every time, so that a run says something about the code and not about
luck. `search` tries new ones: `--hypothesis-profile=search --hypothesis-seed=N`, which is what `make soak` does.
"""

from importlib.util import find_spec

from hypothesis import HealthCheck, settings

# No deadlines and no database: neither the load of the machine nor an earlier run decides what passes.
_CALM = settings(deadline=None, database=None, suppress_health_check=[HealthCheck.too_slow])
settings.register_profile("checks", _CALM, derandomize=True)
settings.register_profile("search", _CALM, derandomize=False, print_blob=True)
settings.load_profile("checks")

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
