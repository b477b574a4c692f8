"""The views of the explorer, by their path: title, question, computation and display of each."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from . import plan_survey, plan_survey_shown, plan_training, plan_training_shown, which_design, which_design_shown
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
    python: Callable[[Any, dict[str, Any]], str]
    command: Callable[[Any, dict[str, Any]], str]


VIEWS = (
    View(
        "/",
        "Which design?",
        "The same noise on samples of the same size: how private is each design, by proof and by attack?",
        which_design.State,
        which_design.jobs,
        which_design.answer,
        which_design_shown.show,
        which_design.python,
        which_design.command,
    ),
    View(
        "/survey",
        "Plan a survey",
        "How many interviews in each stratum give the best private mean?",
        plan_survey.State,
        plan_survey.jobs,
        plan_survey.answer,
        plan_survey_shown.show,
        plan_survey.python,
        plan_survey.command,
    ),
    View(
        "/training",
        "Plan a training",
        "Private gradient descent, epoch by epoch: the epsilon of each way to make batches, and the gain of banded "
        "noise.",
        plan_training.State,
        plan_training.jobs,
        plan_training.answer,
        plan_training_shown.show,
        plan_training.python,
        plan_training.command,
    ),
)
