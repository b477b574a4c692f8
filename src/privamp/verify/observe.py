"""One run of a job with everything that leaves it: releases before noise, the result, messages, the error."""

from collections.abc import Callable, Iterator, Sequence
from copy import deepcopy
from dataclasses import dataclass
from traceback import extract_tb
from types import FunctionType
from typing import Any

import numpy as np

from ..chance.stream import Stream
from ..core.ledger import REGISTRY
from ..core.tape import Taken, Tape, taping
from .listening import chain, listening, shown
from .traces import Traces, traces

Job = Callable[[Any], Any]


@dataclass(frozen=True, slots=True)
class Run:
    """What left one run of a job."""

    taken: tuple[Taken, ...]
    result: Traces
    said: tuple[str, ...]  # warnings, log lines, printed lines
    error: str | None
    raised: Traces = ()  # where the error came from, line by line, and what else it carries


def observed(job: Job, data: Any, stream: Stream, answers: Sequence[Any] = ()) -> Run:
    """Run the job on the data with its noise taped; `answers` are given back in place of fresh noise.

    The ledgers of the run are its own, so that one key may be used on both data sets, and so is its data: a job that
    changes its input changes a copy. The result is read while the tape runs, because reading an iterator runs the job.
    """
    tape = Tape(stream, answers)
    result: Traces = ()
    raised: Traces = ()
    error = None
    with listening() as said, REGISTRY.set_aside(), taping(tape):
        try:
            result = (*traces(job(_own(data))), *traces(_state(job), "the job"))
        except (Exception, SystemExit) as problem:
            error, raised = " ← ".join(map(shown, chain(problem))), tuple(_places(problem))
    return Run(tuple(tape.taken), result, tuple(said), error, raised)


def is_copied(data: Any) -> bool:
    """Whether a run gets a copy of these data, so that no run changes them."""
    return isinstance(data, (np.ndarray, list, tuple, dict, set))


def _own(data: Any) -> Any:
    return deepcopy(data) if is_copied(data) else data


def _state(job: Job) -> Any:
    """What a job that is an object keeps of its last run."""
    return None if isinstance(job, (FunctionType, type)) else job


def _places(problem: BaseException) -> Iterator[tuple[str, str]]:
    """The lines of code that a traceback shows, and the attributes of every error in it."""
    for one in chain(problem):
        lines = extract_tb(one.__traceback__)
        yield "its traceback", " ".join(f"{line.filename}:{line.lineno}" for line in lines)
        yield from ((f"the error{path.removeprefix('result')}", text) for path, text in traces(dict(vars(one))))
