"""The design of examples/truncated_poisson.py, loaded as the module that its user would import."""

import importlib.util
import sys
from pathlib import Path

FILE = Path(__file__).parents[2] / "examples" / "truncated_poisson.py"


def loaded() -> type:
    if "truncated_poisson" in sys.modules:  # this file may be read under two names
        return sys.modules["truncated_poisson"].TruncatedPoisson
    made = importlib.util.spec_from_file_location("truncated_poisson", FILE)
    module = importlib.util.module_from_spec(made)
    sys.modules["truncated_poisson"] = module  # so that it pickles
    made.loader.exec_module(module)
    return module.TruncatedPoisson


TruncatedPoisson = loaded()
