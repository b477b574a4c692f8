"""Surveys under differential privacy: plan a design, allocate the sample, release an estimate with both its errors."""

from .workloads.survey import (
    Allocation,
    Cost,
    Estimate,
    NeymanChange,
    Plan,
    PlanRow,
    Stratum,
    allocate,
    allocation_loss,
    estimate,
    guarantees,
    neyman_sensitivity,
    plan,
)

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
