"""The oracle: exact truth on small cases, and the suite of checks every design must pass."""

from .checks import check_design
from .enumerate import exact_delta, exact_delta_of_laws
from .exact import exact_epsilon, exact_epsilon_of_laws
from .report import Report

__all__ = [
    "Report",
    "check_design",
    "exact_delta",
    "exact_delta_of_laws",
    "exact_epsilon",
    "exact_epsilon_of_laws",
]
