"""Surveys: plan, allocate, estimate."""

from .allocation import Allocation, Cost, Stratum, allocate

__all__ = ["Allocation", "Cost", "Stratum", "allocate"]
