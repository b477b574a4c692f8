"""`import privamp` stays light: the slow libraries load when they are used, not before."""

import subprocess
import sys

import pytest

SLOW = ("torch", "pyspark", "matplotlib", "sklearn", "dp_accounting", "scipy.stats", "scipy.optimize",
        "opacus", "opendp", "jax", "privamp.adapters")  # fmt: skip


def slow_modules_after(statements: str) -> set[str]:
    code = f"import sys\n{statements}\nprint(*(name for name in {SLOW!r} if name in sys.modules))"
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=120)
    assert run.returncode == 0, run.stderr
    return set(run.stdout.split())


@pytest.mark.parametrize("touched", ["privamp", "privamp.Poisson", "privamp.Gaussian"])
def test_slow_libraries_stay_unloaded(touched: str) -> None:
    assert slow_modules_after(f"import privamp\n{touched}") == set()


def test_a_slow_import_is_noticed() -> None:
    assert "scipy.optimize" in slow_modules_after("import scipy.optimize")
