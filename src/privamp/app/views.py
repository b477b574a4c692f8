"""The views of the explorer, by their path: what each is called, asks, computes and shows."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from . import which_design, which_design_shown
from .shown import Shown


@dataclass(frozen=True, slots=True)
class View:
    """One page: its state, its jobs and their answers, and what is shown and copied."""

    path: str
    title: str
    lead: str
    state: type[Any]
    jobs: Callable[[Any], tuple[Any, ...]]  # each has a `name`
    answer: Callable[[Any], Any]
    show: Callable[[Any, dict[str, Any]], Shown]
    python: Callable[[Any], str]
    command: Callable[[Any], str]


VIEWS = (
    View(
        "/",
        "Which design?",
        "The same noise on samples of the same size: how private is each design, and how private can it not be?",
        which_design.State,
        which_design.jobs,
        which_design.answer,
        which_design_shown.show,
        which_design.python,
        which_design.command,
    ),
)
