"""Surveys under differential privacy: plan a design, allocate the sample, release an estimate with both its errors."""

from typing import Any

from ..core.release import Release, renamed
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


def __getattr__(name: str) -> Any:
    if name == "Estimate":
        renamed("privamp.survey.Estimate", "privamp.Release")
        return Release
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
