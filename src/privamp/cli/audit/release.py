"""`privamp audit release|workloads|mistakes`: statistical attacks on the running code."""

import os
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from ...numerics.printing import as_asked
from ..console import emit, facts, grid, lower, say, upper, waiting
from ..options import DesignSpec, Json, MechanismSpec, Relation, check_counts, given, relation

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ...audits.audit import Audit
    from ...verify.attack import Finding

RELEASE_EXAMPLES = """\
Examples:
  privamp audit release --design poisson:rate=0.3 --mechanism laplace:scale=1 --trials 2000

  privamp audit release --design wor:size=5,population=20 --mechanism gaussian:sigma=2 \\
      --delta 1e-3 --trials 2000 --plot tradeoff.png

  privamp audit release --design poisson:rate=0.1 --mechanism laplace:scale=1 --claim 0.05 --trials 20000"""

WORKLOADS_EXAMPLES = """\
Examples:
  privamp audit workloads --trials 400 --only sum"""

MISTAKES_EXAMPLES = """\
Examples:
  privamp audit mistakes --plot mistakes.png"""

Confidence = Annotated[
    float,
    typer.Option("--confidence", metavar="C", help="Confidence of the demonstrated epsilon (Clopper and Pearson)."),
]
Jobs = Annotated[int, typer.Option("--jobs", metavar="J", help="Number of processes; 0 means one per core.")]
Trials = Annotated[
    int | None,
    typer.Option("--trials", metavar="N", help="N runs with and N without the record; each audit has a default."),
]
Plot = Annotated[Path | None, typer.Option("--plot", metavar="FILE", help="Save the trade-off curves, .png or .svg.")]
Only = Annotated[str, typer.Option("--only", metavar="WORD", help="Only audits whose name contains this word.")]


def release(
    design: DesignSpec,
    mechanism: MechanismSpec,
    neighbors: Relation = None,
    queries: Annotated[int, typer.Option("--queries", metavar="K", help="Releases from the same sample.")] = 1,
    steps: Annotated[int, typer.Option("--steps", metavar="K", help="Number of fresh draws.")] = 1,
    delta: Annotated[float, typer.Option("--delta", metavar="D", help="Demonstrate epsilon at this delta.")] = 0.0,
    claim: Annotated[
        float | None,
        typer.Option("--claim", metavar="E", help="The epsilon to refute; by default the one privamp certifies."),
    ] = None,
    population: Annotated[
        int | None, typer.Option("--population", metavar="N", help="Number of records, if the design does not give it.")
    ] = None,
    trials: Annotated[
        int, typer.Option("--trials", metavar="N", help="N runs with and N without the record.")
    ] = 20_000,
    confidence: Confidence = 0.95,
    jobs: Jobs = 0,
    plot: Plot = None,
    json: Json = False,
) -> None:
    """Attack a mechanism on a design: run it many times with and without one record.

    The demonstrated epsilon is a lower bound that holds with the stated confidence. Exit code 1 when it is above the
    claim, which is then false. An attack that finds nothing proves nothing.
    """
    from ... import spec
    from ...audits.release import Attacked, release_audit
    from ...validation import whole

    _check(confidence, jobs, plot, trials, claim, delta)
    check_counts(steps=steps, queries=queries)
    if population is not None:
        whole(1, 10**7, population=population)
    with given("--design"):
        plan = spec.design(design)
    wanted = relation(neighbors, plan)
    with given("--mechanism"):
        noise = spec.mechanism(mechanism, spec.stated_for(plan, wanted))
    attacked = Attacked(
        queries=queries, steps=steps, delta=delta, claimed=claim, population=population, trials=trials
    )  # fmt: skip
    audit = release_audit(noise, plan, wanted, attacked)
    findings = _performed([audit], None, confidence, jobs, json)
    _draw(findings, [audit], plot)
    found = findings[0]
    head = {"design": design, "mechanism": mechanism, "neighbors": wanted.kind, "queries": queries, "steps": steps}
    if json:
        emit(head | _answer(found) | ({"plot": str(plot)} if plot else {}))
    else:
        facts([(name, str(value)) for name, value in head.items()] + _rows(found))
        if plot:
            say(f"Picture: {plot}")
    if found.refuted:
        raise typer.Exit(1)


def workloads(
    only: Only = "",
    trials: Trials = None,
    confidence: Confidence = 0.999,
    jobs: Jobs = 0,
    plot: Plot = None,
    json: Json = False,
) -> None:
    """Attack every shipped workload at its claimed epsilon; none may be refuted. Exit code 1 if one is."""
    from ...audits.workloads import WORKLOADS

    findings = _series([make() for make in _named(WORKLOADS, only)], trials, confidence, jobs, plot, json)
    bad = [found.name for found in findings if found.refuted]
    _judged(f"{len(findings)} workloads", f"REFUTED: {', '.join(bad)}" if bad else "", "none refuted", json)


def mistakes(
    only: Only = "",
    trials: Trials = None,
    confidence: Confidence = 0.999,
    jobs: Jobs = 0,
    plot: Plot = None,
    json: Json = False,
) -> None:
    """Attack known mistakes at their claimed epsilon; each must be found. Exit code 1 if one is missed."""
    from ...audits.planted import PLANTED

    findings = _series([make() for make in _named(PLANTED, only)], trials, confidence, jobs, plot, json)
    missed = [found.name for found in findings if not found.refuted]
    _judged(f"{len(findings)} mistakes", f"MISSED: {', '.join(missed)}" if missed else "", "all found", json)


def _judged(what: str, wrong: str, right: str, json: bool) -> None:
    """Print the outcome of a series; exit code 1 if something is wrong."""
    if not json:
        say(f"{what}, {wrong or right}.")
    if wrong:
        raise typer.Exit(1)


def _named(makers: "Sequence[Any]", word: str) -> "list[Any]":
    from ...errors import InvalidInput

    found = [make for make in makers if word.lower().replace(" ", "_") in make.__name__]
    if not found:
        names = ", ".join(make.__name__.replace("_", " ") for make in makers)
        raise InvalidInput(f"no audit has {word!r} in its name; there are: {names}")
    return found


def _series(
    audits: "list[Audit]", trials: int | None, confidence: float, jobs: int, plot: Path | None, json: bool
) -> "list[Finding]":
    _check(confidence, jobs, plot, trials, None, 0.0)
    findings = _performed(audits, trials, confidence, jobs, json)
    _draw(findings, audits, plot)
    if json:
        what = {audit.name: audit.what for audit in audits}
        emit({"audits": [{"name": f.name, "what": what[f.name]} | _answer(f) for f in findings]})
    else:
        rows = [
            [f.name, upper(f.claimed), lower(f.shown), as_asked(f.delta), f"{f.trials:,}", f.verdict] for f in findings
        ]
        heads = ["<audit", "claimed ε", "demonstrated ε", "at δ", "runs of each world", "<verdict"]
        grid(f"Attacks, {confidence:g} confidence each", heads, rows)
        if plot:
            say(f"Picture: {plot}")
    return findings


def _check(
    confidence: float, jobs: int, plot: Path | None, trials: int | None, claim: float | None, delta: float
) -> None:
    from ...report.pictures import check_picture
    from ...validation import in_range, whole
    from ...verify.attack import check_attack

    whole(0, 1024, jobs=jobs)
    in_range(0, 1, delta=delta)
    check_attack(400 if trials is None else trials, confidence, 1.0 if claim is None else claim)
    if plot is not None:
        check_picture(plot)


def _performed(audits: "list[Audit]", trials: int | None, confidence: float, jobs: int, json: bool) -> "list[Finding]":
    from ...audits.audit import performed

    with waiting("attacking", quiet=json) as advance:
        workers = jobs or os.cpu_count() or 1
        return list(performed(audits, trials=trials, confidence=confidence, jobs=workers, advance=advance))


def _draw(findings: "list[Finding]", audits: "list[Audit]", plot: Path | None) -> None:
    if plot is not None:
        from ...report.tradeoff_picture import draw_tradeoff

        draw_tradeoff(list(zip(findings, [audit.tradeoff for audit in audits], strict=True)), plot)


def _answer(found: "Finding") -> dict[str, Any]:
    return {
        "claimed_epsilon": found.claimed,
        "demonstrated_epsilon": found.shown,
        "delta": found.delta,
        "confidence": found.confidence,
        "trials": found.trials,
        "refuted": found.refuted,
    }


def _rows(found: "Finding") -> list[tuple[str, str]]:
    return [
        ("claimed ε", f"{upper(found.claimed)} at δ = {as_asked(found.delta)}"),
        ("demonstrated ε", f"{lower(found.shown)} ({found.confidence:g} confidence, {found.trials:,} runs each)"),
        ("verdict", "the claim is FALSE" if found.refuted else "not refuted (which proves nothing)"),
    ]
