"""The second oracle: how far one record can move a release, measured on the running code.

Every proof of a job begins with "one record changes the statistic by at most the declared sensitivity". `check_release`
tests that premise. It runs the job on two data sets that differ by one record, with the noise recorded: the second run
gets the answers of the first, so that later releases stay comparable. Then it compares all outputs:

    statistic   each value before noise: no farther apart than the mechanism declares, in its own norm
    plan        the mechanisms (noise scale, sensitivity, grid), how many there are, types and shapes of answers: equal
    result      everything readable off what the job returns: equal, because it may depend on the answers only
    messages    warnings, log lines of every logger, printed lines: equal
    errors      their type, text, notes, attributes and traceback, with what they were raised from: equal

What a job writes elsewhere (files, processes, global variables) is not seen: it must return its outputs. A passed check
is evidence, not proof: these records, in these positions, moved nothing too far.
"""

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Any

from ..core.mechanism import Mechanism
from ..core.neighbors import Neighbors
from ..errors import InvalidInput, NoTheorem
from ..testing import seeded_stream
from ..validation import in_range
from .displacement import MARGIN, displacement
from .observe import Job, Run, is_copied, observed
from .report import Report, Tally
from .traces import Traces, difference, traces

KINDS = ("statistic", "plan", "result", "messages", "errors")
_KEPT = 16  # runs on first data sets that later pairs may share
_FARTHEST = 1e6  # largest `rounding`, in sensitivities: more would let everything pass
Progress = Callable[[int], None]  # pairs done


@dataclass(frozen=True, slots=True)
class Pair:
    """Two data sets that differ by one record, and a phrase that says how; `record` names the record itself."""

    what: str
    one: Any = field(repr=False)
    other: Any = field(repr=False)
    neighbors: Neighbors = Neighbors.ADD_REMOVE
    record: str = ""


Most = Callable[[Mechanism, Pair, int], float]  # the int: which release of the job, from 1


def declared(mechanism: Mechanism, pair: Pair, number: int = 1) -> float:
    """How many declared sensitivities one step of the pair's relation is: 1, or 2 where records are replaced."""
    try:
        return float(mechanism.records_apart(pair.neighbors))
    except NoTheorem as error:
        raise InvalidInput(f"{error}; check this job with pairs in which one record is replaced") from None


def check_release(
    job: Job,
    pairs: Iterable[Pair],
    *,
    name: str = "job",
    most: Most = declared,
    rounding: float = 0.0,
    least_released: float = 0.5,
    seed: int = 0,
    progress: Progress | None = None,
) -> Report:
    """Run `job` on both data sets of every pair and compare all outputs.

    Parameters
    ----------
    job
        A function of the data that runs the real code and returns what it would give out. A job that draws a sample
        must use the same test key every time (`privamp.testing.seeded_key`).
    pairs
        Data sets that differ by one record: see `privamp.verify.pairs_of`. On an array, list, tuple, dictionary or set
        that is the first of several pairs, the job is run once.
    most
        `most(mechanism, pair, number)`: how many declared sensitivities the record of this pair may move this
        mechanism, which makes release `number` of the job. For weighted samples it is the record's weight times its
        share of the largest norm; for samples with repeated records, how often the record was drawn.
    rounding
        The job's own stated bound on the rounding of its sums, in units of the sensitivity; 0 for sums of whole
        numbers.
    least_released
        The share of pairs in which both runs must reach a release. Runs that stop before it with one and the same error
        look equal and show nothing.

    Returns
    -------
    Report
        `report.ok`, `report.violations` (one sentence each; errors and messages are quoted, so use made-up records).

    Example
    -------
    >>> import numpy as np
    >>> from privamp import Laplace
    >>> from privamp.verify import hard_numbers, pairs_of
    >>> def job(bounded):
    ...     return lambda x: Laplace(2.0).release(float(bounded(x).sum()), seeded_stream(1))
    >>> pairs = list(pairs_of(np.full(4, 0.5), hard_numbers()))
    >>> check_release(job(lambda x: np.clip(np.nan_to_num(x), -1, 1)), pairs).ok
    True
    >>> check_release(job(lambda x: np.clip(x, -1, 1)), pairs).violations[0]
    'nan added at 0 of 4: 1 releases become 0'
    """
    in_range(0, _FARTHEST, rounding=rounding)
    in_range(0, 1, least_released=least_released)
    counts = dict.fromkeys(KINDS, 0)
    found: dict[str, list[str]] = {kind: [] for kind in KINDS}
    done = released = 0
    runs = _Runs(job, seed)
    for done, pair in enumerate(pairs, 1):
        if done == 1:
            observed(job, pair.one, seeded_stream(seed))  # triggers messages that imports and caches emit only once
        one = runs.on(pair.one)
        other = observed(job, pair.other, seeded_stream(seed + 1), [taken.answer for taken in one.taken])
        released += bool(one.taken and other.taken)
        for kind, problem in _compared(one, other, pair, most, rounding):
            counts[kind] += 1
            if problem:
                found[kind].append(f"{pair.what}: {problem}")
        if progress:
            progress(done)
    if not released or released < least_released * done:
        found["plan"].append(f"only {released} of {done} pairs reached a release, so too little was checked")
    tallies = (Tally(kind, counts[kind], done if kind == KINDS[0] else 0, tuple(found[kind])) for kind in KINDS)
    return Report(name, tuple(tallies), released)


@dataclass(slots=True)
class _Runs:
    """A job's runs on first data sets, which several pairs share: the same data, key and noise give the same run."""

    job: Job
    seed: int
    known: dict[int, tuple[Any, Traces, Run]] = field(default_factory=dict)

    def on(self, data: Any) -> Run:
        """The run on this very object, unless the job or the maker of the pairs may have changed it."""
        if not is_copied(data):
            return self._run(data)
        content = traces(data)
        known = self.known.get(id(data))
        if known is None or known[1] != content:
            if known is None and len(self.known) == _KEPT:
                self.known.pop(next(iter(self.known)))
            self.known[id(data)] = known = data, content, self._run(data)
        return known[2]

    def _run(self, data: Any) -> Run:
        return observed(self.job, data, seeded_stream(self.seed))


def _compared(one: Run, other: Run, pair: Pair, most: Most, rounding: float) -> Iterable[tuple[str, str | None]]:
    """(kind, problem or None) for every comparison of two runs."""
    counts = len(one.taken), len(other.taken)
    yield "plan", None if counts[0] == counts[1] else f"{counts[0]} releases become {counts[1]}"
    for number, (a, b) in enumerate(zip(one.taken, other.taken, strict=False), 1):
        if a.mechanism != b.mechanism:
            yield "plan", f"release {number} is by {b.mechanism} instead of {a.mechanism}"
            continue
        yield "plan", None if a.form == b.form else f"release {number} answers {b.form} instead of {a.form}"
        moved, allowed = displacement(a.mechanism, a.value, b.value), most(a.mechanism, pair, number)
        fine = moved <= allowed * MARGIN + rounding
        yield "statistic", None if fine else f"release {number} moves by {moved:.6g} sensitivities, not {allowed:.6g}"
    yield "errors", _unequal(one.error, other.error) or _raised(one, other)
    if one.error is None and other.error is None:
        path = difference(one.result, other.result)
        yield "result", None if path is None else f"{path} differs although all answers are the same"
    new = {*one.said} ^ {*other.said}
    yield "messages", None if one.said == other.said else f"a message differs: {min(new, default='their order')}"


def _raised(one: Run, other: Run) -> str | None:
    path = difference(one.raised, other.raised)
    return None if path is None else f"the error is the same, but {path} differs"


def _unequal(one: str | None, other: str | None) -> str | None:
    return None if one == other else f"the error {other or 'none'} in place of {one or 'none'}"
