"""Private bootstraps: subsampling, m-out-of-n, double, bag of little bootstraps; estimates with honest intervals."""

from .bounded import Bounded
from .moments import Mean, Variance
from .planning import Plan, PlanOptions, plan
from .procedure import Procedure
from .quantile import Quantile
from .regression import Regression
from .result import Result
from .running import run
from .spread import Finding

__all__ = [
    "Bounded",
    "Finding",
    "Mean",
    "Plan",
    "PlanOptions",
    "Procedure",
    "Quantile",
    "Regression",
    "Result",
    "Variance",
    "plan",
    "run",
]
