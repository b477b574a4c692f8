"""`privamp audit records`: how far one record can move the releases of every job."""

import os
from typing import TYPE_CHECKING, Annotated, Any

import typer

from ..console import emit, grid, say, waiting
from ..options import Json

if TYPE_CHECKING:
    from collections.abc import Iterator

    from ...verify.report import Report

EXAMPLES = """\
Examples:
  privamp audit records

  privamp audit records --only "array sum" --pairs 200

A job runs twice for each pair of data sets: 60 pairs for every job take a few minutes, 2000 take hours."""

_SHARE = 200  # pairs of one job in one piece of work
Piece = tuple[bool, int, int, int]  # planted?, which, pairs, seed


def records(
    pairs: Annotated[int, typer.Option("--pairs", metavar="N", help="Pairs of data sets for each job.")] = 60,
    only: Annotated[str, typer.Option("--only", metavar="WORD", help="Only jobs whose name contains this word.")] = "",
    seed: Annotated[
        int, typer.Option("--seed", metavar="S", help="Seed of the data around the adversarial records.")
    ] = 0,
    jobs: Annotated[int, typer.Option("--jobs", metavar="J", help="Number of processes; 0 means one per core.")] = 0,
    json: Json = False,
) -> None:
    """Check how much one record can change: run every shipped job on pairs of data sets that differ by one record.

    Noise is captured instead of drawn. The statistic before noise must stay within the declared sensitivity; the plan,
    the result, messages and errors must be equal. Planted mistakes must be found. Exit code 1 when a job fails or a
    planted mistake is missed.
    """
    from ...errors import InvalidInput
    from ...validation import whole

    whole(1, 10**7, pairs=pairs)
    whole(0, 2**32, seed=seed)
    whole(0, 1024, jobs=jobs)
    chosen, skipped = _chosen(only)
    if not chosen:
        raise InvalidInput(f"no job that can run here has {only!r} in its name; `privamp audit records` runs all")
    pieces = _pieces(chosen, pairs, seed)
    found: dict[tuple[bool, int], list[Report]] = {which: [] for which in chosen}
    with waiting("auditing records", quiet=json) as advance:
        for done, (which, report) in enumerate(_run(pieces, jobs or os.cpu_count() or 1), 1):
            found[which].append(report)
            advance(done, len(pieces))
    rows = [_row(which, reports) for which, reports in found.items()]
    _show(rows, skipped, json)
    if any(not row["ok"] for row in rows):
        raise typer.Exit(1)


def _chosen(only: str) -> tuple[list[tuple[bool, int]], list[tuple[str, str]]]:
    from ...audits import records as room

    chosen, skipped = [], []
    for is_planted, audits in ((False, room.jobs()), (True, room.planted())):
        for place, audit in enumerate(audits):
            if only.lower() in audit.name.lower():
                missing = audit.missing
                if missing is None:
                    chosen.append((is_planted, place))
                else:
                    skipped.append((audit.name, missing))
    return chosen, skipped


def _pieces(chosen: list[tuple[bool, int]], pairs: int, seed: int) -> list[Piece]:
    """The pairs of every job, in pieces; planted mistakes always get enough pairs to be found."""
    from ...audits import records as room

    planted = room.planted()
    wanted = {which: max(pairs, planted[which[1]].quick) if which[0] else pairs for which in chosen}
    return [
        (*which, min(_SHARE, most - start), seed + start // _SHARE)
        for start in range(0, max(wanted.values()), _SHARE)
        for which, most in wanted.items()
        if start < most
    ]


def _check(piece: Piece) -> "tuple[tuple[bool, int], Report]":
    from ...audits import records as room

    is_planted, place, pairs, seed = piece
    audit = (room.planted() if is_planted else room.jobs())[place]
    return (is_planted, place), audit.perform(pairs, seed=seed)


def _run(pieces: list[Piece], jobs: int) -> "Iterator[tuple[tuple[bool, int], Report]]":
    from concurrent.futures import ProcessPoolExecutor, as_completed
    from multiprocessing import get_context

    if jobs == 1 or len(pieces) == 1:
        yield from map(_check, pieces)
        return
    pool = ProcessPoolExecutor(min(jobs, len(pieces)), get_context("spawn"))  # torch and Spark do not survive a fork
    try:
        yield from (future.result() for future in as_completed([pool.submit(_check, piece) for piece in pieces]))
    finally:
        pool.shutdown(wait=False, cancel_futures=True)


def _row(which: tuple[bool, int], reports: "list[Report]") -> dict[str, Any]:
    is_planted, _ = which
    violations = list(dict.fromkeys(v for report in reports for v in report.violations))
    return {
        "job": reports[0].design,
        "planted": is_planted,
        "pairs": sum(report.cases for report in reports),
        "released": sum(report.released or 0 for report in reports),
        "comparisons": sum(report.comparisons for report in reports),
        "violations": violations,
        "ok": bool(violations) if is_planted else not violations,
    }


def _show(rows: list[dict[str, Any]], skipped: list[tuple[str, str]], json: bool) -> None:
    pairs, compared = (sum(row[name] for row in rows) for name in ("pairs", "comparisons"))
    if json:
        absent = [{"job": name, "needs": module} for name, module in skipped]
        emit({"ok": all(row["ok"] for row in rows), "pairs": pairs, "jobs": rows, "skipped": absent})
        return
    for is_planted, title in ((False, "How far one record moves each release"), (True, "Planted mistakes")):
        part = [row for row in rows if row["planted"] is is_planted]
        if part:
            heads = ["<job", "pairs", "released", "comparisons", "found", "<verdict"]
            grid(title, heads, ([*_cells(row), _verdict(row)] for row in part))
    for row in rows:
        if not row["planted"]:
            for violation in row["violations"][:5]:
                say(f"  {row['job']}: {violation}", "red")
    for name, module in skipped:
        say(f"Skipped: {name} needs {module}, which is not installed.")
    failed = sum(not row["ok"] for row in rows)
    verdict = "all checks passed" if not failed else f"{failed} FAILED"
    say(f"{compared:,} comparisons on {pairs:,} pairs of data sets: {verdict}.")


def _cells(row: dict[str, Any]) -> list[str]:
    counts = (row["pairs"], row["released"], row["comparisons"], len(row["violations"]))
    return [row["job"], *(f"{count:,}" for count in counts)]


def _verdict(row: dict[str, Any]) -> str:
    if row["planted"]:
        return "found" if row["ok"] else "MISSED"
    return "ok" if row["ok"] else "FAILED"
