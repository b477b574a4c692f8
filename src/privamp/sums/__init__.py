"""Private sums and means of vectors, on all records or on a sample."""

from typing import Any

from ..core.release import Release, renamed
from .private_mean import PrivateMean
from .private_sum import PrivateSum

__all__ = ["PrivateMean", "PrivateSum", "Release"]


def __getattr__(name: str) -> Any:
    if name == "Estimated":
        renamed("privamp.sums.Estimated", "privamp.Release")
        return Release
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
