"""An audit: two data sets that differ by one record, and the claim that is tested on them."""

import os
import signal
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..verify.attack import Finding, Score, attacked

World = Callable[[bool, int], NDArray[Any]]  # (is the record there?, runs) -> released values, one row per run
Advance = Callable[[int, int], None]
_PIECES = 8  # a world is run in this many pieces, so that every core has work and progress shows


@dataclass(frozen=True, slots=True)
class Audit:
    """What is claimed, how it is run, and how its output is scored (None: a score is learned)."""

    name: str
    what: str  # one line for the reader
    claimed: float  # epsilon at delta
    run: World
    delta: float = 0.0
    score: Score | None = None
    trials: int = 4000  # runs of each world
    tradeoff: Callable[[Any], Any] | None = None  # the claimed trade-off curve, where it is known


def performed(
    audits: Sequence[Audit],
    *,
    trials: int | None = None,
    confidence: float = 0.999,
    jobs: int = 1,
    advance: Advance = lambda done, total: None,
) -> Iterator[Finding]:
    """Run every audit, on `jobs` processes; findings come in order."""
    plan = [(i, there, part) for i, a in enumerate(audits) for there in (True, False) for part in _shares(a, trials)]
    values: dict[tuple[int, bool], list[NDArray[Any]]] = {(i, t): [] for i, t, _ in plan}
    total, finished = len(plan), 0
    for done, ((i, there, _), rows) in enumerate(_run(audits, plan, jobs), 1):
        values[i, there].append(rows)
        advance(done, total)
        while finished < len(audits) and _complete(finished, values, plan):
            yield _judged(audits[finished], values, finished, confidence)
            finished += 1


def _shares(audit: Audit, trials: int | None) -> list[int]:
    runs = trials or audit.trials
    return [len(part) for part in np.array_split(np.arange(runs), min(_PIECES, runs))]


def _complete(i: int, values: dict[tuple[int, bool], list[NDArray[Any]]], plan: list[tuple[int, bool, int]]) -> bool:
    return all(len(values[i, there]) == sum(1 for j, t, _ in plan if (j, t) == (i, there)) for there in (True, False))


def _judged(audit: Audit, values: dict[tuple[int, bool], list[NDArray[Any]]], i: int, confidence: float) -> Finding:
    p, q = (np.concatenate(values.pop((i, there))) for there in (True, False))
    return attacked(audit.name, p, q, audit.claimed, delta=audit.delta, score=audit.score, confidence=confidence)


_WORK: Sequence[Audit] = ()  # inherited by forked workers: worlds are closures, which cannot be pickled


def _piece(task: tuple[int, bool, int]) -> tuple[tuple[int, bool, int], NDArray[Any]]:
    i, there, runs = task
    return task, np.asarray(_WORK[i].run(there, runs))


def _run(
    audits: Sequence[Audit], plan: list[tuple[int, bool, int]], jobs: int
) -> Iterator[tuple[tuple[int, bool, int], NDArray[Any]]]:
    from concurrent.futures import ProcessPoolExecutor
    from multiprocessing import get_all_start_methods, get_context

    global _WORK
    _WORK = audits
    if jobs == 1 or "fork" not in get_all_start_methods():
        yield from map(_piece, plan)
        return
    pool = ProcessPoolExecutor(min(jobs, len(plan)), get_context("fork"), _leave_interrupts_to_the_parent)
    is_interrupted = False
    try:
        yield from pool.map(_piece, plan)
    except KeyboardInterrupt:
        is_interrupted = True
        raise
    finally:
        pool.shutdown(wait=not is_interrupted, cancel_futures=True)


def _leave_interrupts_to_the_parent() -> None:
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    os.environ.setdefault("OMP_NUM_THREADS", "1")
