"""How far one record moves the releases of every job: one file per family of jobs.

A file lists its jobs as `JOBS` and the mistakes that must be found as `PLANTED`: functions that return a `RecordAudit`.
"""

import pkgutil
from collections.abc import Iterator
from importlib import import_module

from .audit import RecordAudit

__all__ = ["RecordAudit", "jobs", "planted"]


def jobs() -> list[RecordAudit]:
    """Every shipped job."""
    return [make() for module in _families() for make in getattr(module, "JOBS", ())]


def planted() -> list[RecordAudit]:
    """Known mistakes: each must be found."""
    return [make() for module in _families() for make in getattr(module, "PLANTED", ())]


def _families() -> Iterator[object]:
    for info in sorted(pkgutil.iter_modules(__path__), key=lambda info: info.name):
        yield import_module(f"{__name__}.{info.name}")
