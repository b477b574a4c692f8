"""Two oracles: exact results on small cases for theorems and designs, and the effect of one record for jobs."""

from .checks import check_design
from .enumerate import exact_delta, exact_delta_of_laws
from .exact import exact_epsilon, exact_epsilon_of_laws
from .hard_pairs import hard_numbers, hard_rows, odd_rows, pairs_of
from .one_record import Pair, check_release
from .report import Report
from .schedules import check_schedule

__all__ = [
    "Pair",
    "Report",
    "check_design",
    "check_release",
    "check_schedule",
    "exact_delta",
    "exact_delta_of_laws",
    "exact_epsilon",
    "exact_epsilon_of_laws",
    "hard_numbers",
    "hard_rows",
    "odd_rows",
    "pairs_of",
]
