"""What every test run starts with: where its randomness comes from, and which modules need an extra that is missing.

The profile `checks`, the default, tries the same examples every time, so that a run says something about the code and
not about luck. `search` tries new ones: `--hypothesis-profile=search --hypothesis-seed=N`, as `make soak` does. Fresh
keys (`Key.generate`, `Stream.from_os`, every command) are made from the test's name and that seed instead of the
operating system's randomness, except in tests/chance, which is about just that. Every test begins as a process does,
with a registry of draws that knows none and no plan of a sum remembered: otherwise tests that share a key would share
a ledger, by the order they run, and a planted mistake could outlive its test.
"""

import os
from functools import cache
from hashlib import sha256
from importlib.util import find_spec
from itertools import count
from pathlib import Path

import pytest
import typer.testing
from hypothesis import HealthCheck, settings

from privamp.core.ledger import REGISTRY
from privamp.sums.plan import remembered_plan

# No deadlines and no database: neither the load of the machine nor an earlier run decides what passes.
_CALM = settings(deadline=None, database=None, suppress_health_check=[HealthCheck.too_slow])
settings.register_profile("checks", _CALM, derandomize=True)
settings.register_profile("search", _CALM, derandomize=False, print_blob=True)
settings.load_profile("checks")

# A process builds its tree of commands once; `CliRunner` would build it for every line, most of a short one's time.
typer.testing._get_command = cache(typer.testing._get_command)

_WITHOUT_TORCH = ("__init__", "batches", "dpis", "encoding", "importance", "plan", "sampled_gaussian")
_TORCH = (Path(__file__).parent / "src/privamp/torch").glob("*.py")
_ADAPTERS = ("jax_privacy", "opacus", "opendp", "torch")  # each imports its library
collect_ignore = [f"src/privamp/adapters/{name}.py" for name in _ADAPTERS if find_spec(name) is None]
collect_ignore += [] if find_spec("torch") else ["src/privamp/adapters/opacus_steps.py"]
collect_ignore += [] if find_spec("torch") else ["tests/support/small_models.py"]
collect_ignore += [] if find_spec("triton") else ["src/privamp/torch/chacha_kernel.py"]
collect_ignore += [] if find_spec("opendp") else ["src/privamp/adapters/opendp_measurements.py"]
collect_ignore += [] if find_spec("nicegui") else ["src/privamp/app/web/page.py", "src/privamp/app/web/server.py"]
collect_ignore += [] if find_spec("nicegui") else ["src/privamp/app/web/sliders.py", "src/privamp/app/web/texts.py"]
collect_ignore += (
    []
    if find_spec("torch")
    else [
        "tests/support/small_runs.py",
        "src/privamp/cli/train/run.py",
        *(str(path) for path in _TORCH if path.stem not in _WITHOUT_TORCH),
    ]
)


@pytest.fixture(autouse=True)
def fixed_chance(request, monkeypatch):
    """Make fresh keys the same in every run of a test; processes that it starts by forking still differ."""
    REGISTRY.clear()
    remembered_plan.cache_clear()
    seed, home, made = request.config.getoption("--hypothesis-seed", None), os.getpid(), count()

    def token_bytes(size: int | None = None) -> bytes:
        child = "" if os.getpid() == home else os.urandom(8).hex()
        return sha256(f"{request.node.nodeid} {seed} {next(made)} {child}".encode()).digest()[: size or 32]

    monkeypatch.setattr("privamp.chance.keys.secrets.token_bytes", token_bytes)
