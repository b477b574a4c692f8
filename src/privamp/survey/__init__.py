"""Surveys under differential privacy: plan a design, allocate the sample, release an estimate with both its errors."""

from typing import Any

from ..core.release import Release, renamed
from ..errors import InvalidInput
from .adjust_options import AdjustOptions
from .adjusting import adjust
from .allocation import Allocation, Cost, Stratum, allocate
from .answers import answers
from .estimation import estimate
from .guarantees import guarantees
from .neyman import NeymanChange, allocation_loss, neyman_sensitivity
from .options import EstimateOptions
from .piloting import Pilot, pilot
from .planning import Plan, PlanOptions, PlanRow, plan

__all__ = [
    "AdjustOptions",
    "Allocation",
    "Cost",
    "EstimateOptions",
    "NeymanChange",
    "Pilot",
    "Plan",
    "PlanOptions",
    "PlanRow",
    "Release",
    "Stratum",
    "adjust",
    "allocate",
    "allocation_loss",
    "answers",
    "estimate",
    "guarantees",
    "neyman_sensitivity",
    "pilot",
    "plan",
]


_REPLICATES = {"replicate_weights", "bootstrap_weights", "jackknife_weights", "brr_weights"}
NO_REPLICATES = (
    "replicate weights are not supported: each column of them reveals who was drawn, and a weight that is fitted on "
    "the sample depends on other people's answers, so no noise would be enough; estimate and adjust release the "
    "sampling error itself, and privamp.bootstrap resamples with noise"
)


def __getattr__(name: str) -> Any:
    if name in _REPLICATES:
        raise InvalidInput(NO_REPLICATES)
    if name == "Estimate":
        renamed("privamp.survey.Estimate", "privamp.Release")
        return Release
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
