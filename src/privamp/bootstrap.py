"""Private bootstraps: subsampling, m-out-of-n, double, bag of little bootstraps; estimates with honest intervals."""

from .workloads.bootstrap import (
    Bounded,
    Finding,
    Mean,
    Plan,
    Procedure,
    Quantile,
    Regression,
    Result,
    Variance,
    plan,
    run,
)

__all__ = [
    "Bounded",
    "Finding",
    "Mean",
    "Plan",
    "Procedure",
    "Quantile",
    "Regression",
    "Result",
    "Variance",
    "plan",
    "run",
]
