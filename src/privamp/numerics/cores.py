"""How many cores this process may use."""

import os


def cores() -> int:
    """Those it is pinned to, where the system says so."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
