"""Surveys under differential privacy: plan a design, allocate the sample, release an estimate with both its errors."""

from .allocation import Allocation, Cost, Stratum, allocate
from .estimation import estimate
from .guarantees import guarantees
from .interval import Estimate
from .neyman import NeymanChange, allocation_loss, neyman_sensitivity
from .planning import Plan, PlanRow, plan

__all__ = [
    "Allocation",
    "Cost",
    "Estimate",
    "NeymanChange",
    "Plan",
    "PlanRow",
    "Stratum",
    "allocate",
    "allocation_loss",
    "estimate",
    "guarantees",
    "neyman_sensitivity",
    "plan",
]
