"""`privamp audit designs`: every design against exact results on small cases."""

import os
import signal
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Annotated

import typer

from ..console import emit, grid, say, waiting
from ..options import Json

if TYPE_CHECKING:
    from ...core.design import Design
    from ...verify.report import Report

EXAMPLES = """\
Examples:
  privamp audit designs --checks 200

More checks find rarer mistakes: 2000 take about a minute, 100000 less than an hour on two cores."""

_SHARE = 250  # checks of each kind in one piece of work; a piece takes seconds
Piece = tuple[int, int, int]  # which design, how many checks of each kind, seed


def designs(
    checks: Annotated[
        int, typer.Option("--checks", metavar="N", help="Compare at least N numbers with exact results.")
    ] = 2000,
    jobs: Annotated[int, typer.Option("--jobs", metavar="J", help="Number of processes; 0 means one per core.")] = 0,
    json: Json = False,
) -> None:
    """Check every design against exact results on small cases: no bound below them, no attack above.

    The exact results come from a linear program over all mechanisms and from enumeration; samplers are tested
    against their law, and planted mistakes must be caught. Exit code 1 if anything is violated.
    """
    from ...validation import whole

    whole(1, 10**8, checks=checks)
    whole(0, 1024, jobs=jobs)
    kinds = all_designs()
    pieces = _pieces(len(kinds), checks)
    reports: dict[int, list[Report]] = {which: [] for which in range(len(kinds))}
    with waiting("auditing designs", quiet=json) as advance:
        for done, (which, report) in enumerate(_run(pieces, jobs or os.cpu_count() or 1), 1):
            reports[which].append(report)
            advance(done, len(pieces))
    merged = [_merged(parts) for parts in reports.values()]
    _show(merged, json)
    if any(not report.ok for report in merged):
        raise typer.Exit(1)


def all_designs() -> "list[type[Design]]":
    """Every concrete design of the package, by name; new designs are found automatically."""
    import inspect
    import pkgutil
    from importlib import import_module

    from ... import designs as room
    from ...core.design import Design

    modules = [import_module(f"{room.__name__}.{info.name}") for info in pkgutil.iter_modules(room.__path__)]
    found = {
        kind
        for module in modules
        for kind in vars(module).values()
        if isinstance(kind, type) and issubclass(kind, Design) and not inspect.isabstract(kind)
    }
    return sorted(found, key=lambda kind: kind.__name__)


def _pieces(kinds: int, checks: int) -> list[Piece]:
    """Split the work: bounds and deltas are counted separately, so each design gets half its share of each."""
    each = -(-checks // (2 * kinds))
    shares = [min(_SHARE, each - start) for start in range(0, each, _SHARE)]
    return [(which, share, seed) for seed, share in enumerate(shares) for which in range(kinds)]


def _check(piece: Piece) -> "tuple[int, Report]":
    from ...verify import checks

    which, share, seed = piece
    return which, checks.check_design(all_designs()[which], checks=share, seed=seed)


def _run(pieces: list[Piece], jobs: int) -> "Iterator[tuple[int, Report]]":
    from concurrent.futures import ProcessPoolExecutor, as_completed

    if jobs == 1 or len(pieces) == 1:
        yield from map(_check, pieces)
        return
    pool = ProcessPoolExecutor(min(jobs, len(pieces)), initializer=_leave_interrupts_to_the_parent)
    try:
        yield from (future.result() for future in as_completed([pool.submit(_check, piece) for piece in pieces]))
    finally:
        pool.shutdown(wait=False, cancel_futures=True)


def _leave_interrupts_to_the_parent() -> None:
    signal.signal(signal.SIGINT, signal.SIG_IGN)


def _merged(parts: "Iterable[Report]") -> "Report":
    """One report per design. Random cases add up; cases that every piece checks count once."""
    from ...verify.report import Report, Tally

    reports = list(parts)
    by_kind: dict[str, list[Tally]] = {}
    for tally in (t for report in reports for t in report.tallies):  # a theorem may be missing in a small piece
        by_kind.setdefault(tally.kind, []).append(tally)
    tallies = []
    for kind, same in by_kind.items():
        cases = (max if kind in ("structure", "sampler follows its law") else sum)(t.cases for t in same)
        violations = tuple(dict.fromkeys(v for t in same for v in t.violations))
        tallies.append(Tally(kind, sum(t.comparisons for t in same), cases, violations))
    return Report(reports[0].design, tuple(tallies))


def _show(reports: "list[Report]", json: bool) -> None:
    cases, compared = sum(r.cases for r in reports), sum(r.comparisons for r in reports)
    violations = [v for r in reports for v in r.violations]
    if json:
        kinds = [
            {"design": r.design, "checks": r.comparisons, "cases": r.cases, "violations": list(r.violations)}
            for r in reports
        ]
        found = {"checks": compared, "cases": cases, "violations": len(violations), "ok": not violations}
        emit(found | {"designs": kinds})
        return
    rows = ([r.design, f"{r.comparisons:,}", f"{r.cases:,}", f"{len(r.violations):,}"] for r in reports)
    grid("Designs against exact results", ["<design", "checks", "different cases", "violations"], rows)
    for violation in violations[:20]:
        say(f"  violated: {violation}", "red")
    verdict = "no violation" if not violations else f"{len(violations):,} VIOLATIONS"
    say(f"{compared:,} checks on {cases:,} different cases: {verdict}.")
