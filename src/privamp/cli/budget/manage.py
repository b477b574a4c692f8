"""`privamp budget`: create a budget store, show its state and its log, cancel reservations of crashed programs."""

from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from ..console import emit, facts, grid, lower, number, one_line, say, upper
from ..options import Json, Records
from .audit import SigningKey, signing_key

if TYPE_CHECKING:
    from ...accounting.budget import Budget
    from ...accounting.budget_log import Entry

CREATE_EXAMPLES = """\
Examples:
  privamp budget create study.db --epsilon 3 --delta 1e-6 --population patients

  privamp budget create study.db --epsilon 1 --population nurses --neighbors replace-one --json"""
SHOW_EXAMPLES = """\
Examples:
  privamp example study --out study.db

  privamp budget show study.db --population patients

  privamp budget show study.db --last 5 --json"""
LOG_EXAMPLES = """\
Examples:
  privamp example study --out study.db

  privamp budget log study.db --population patients --last 20

  privamp budget log study.db --jsonl > trail.jsonl"""
CANCEL_EXAMPLES = """\
Examples:
  privamp example study --out study.db

  privamp budget cancel study.db 9 --population patients --reason "the machine was switched off" """

File = Annotated[Path, typer.Argument(metavar="FILE", help="The budget store.")]
Label = Annotated[
    str | None,
    typer.Option("--population", metavar="LABEL", help="The population; by default all populations of the store."),
]


def create(
    file: File,
    epsilon: Annotated[float, typer.Option("--epsilon", metavar="E", help="The total epsilon.")],
    population: Annotated[
        str,
        typer.Option("--population", metavar="LABEL", help="Label of the protected population; one budget per label."),
    ],
    delta: Annotated[float, typer.Option("--delta", metavar="D", help="The total delta.")] = 0.0,
    rule: Annotated[
        str | None,
        typer.Option("--rule", metavar="RULE", help="pure, basic, renyi or gdp; by default pure or renyi."),
    ] = None,
    order: Annotated[
        float | None,
        typer.Option("--order", metavar="A", help="The Rényi order, fixed from now on; chosen by default."),
    ] = None,
    neighbors: Annotated[
        str, typer.Option("--neighbors", metavar="RELATION", help="add-remove or replace-one.")
    ] = "add-remove",
    records_per_person: Records = 1,
    group: Annotated[
        bool, typer.Option("--group", help="Share a new store with the file's group (mode 0660 instead of 0600).")
    ] = False,
    json: Json = False,
) -> None:
    """Set a limit for a population, in a new store or as another budget in an existing one.

    Nothing is overwritten, and a limit cannot be changed later. The rule says what is added up: pure epsilons; epsilons
    and deltas (basic); Rényi divergences of one order (renyi); squared shifts of Gaussian noise (gdp).
    """
    from ...accounting.budget import Budget
    from ...core.neighbors import Neighbors

    relation = Neighbors.parse(neighbors).for_person(records_per_person)
    budget = Budget.create(
        file,
        population=population,
        epsilon=epsilon,
        delta=delta,
        rule=rule,
        order=order,
        neighbors=relation,
        shared=group,
    )
    if json:
        emit(_summary(budget))
    else:
        _print(budget)


def show(
    file: File,
    population: Label = None,
    last: Annotated[int, typer.Option("--last", metavar="N", help="Number of newest entries to show.")] = 10,
    json: Json = False,
) -> None:
    """Show the state of each budget of a store, and its newest entries.

    'Spent' is everything that counts; the part that is reserved without an answer is shown next to it. Each entry has
    its job, its columns, its author and its outcome; --json adds its certificate.
    """
    from ...validation import whole

    whole(1, last=last)
    budgets = _budgets(file, population)
    if json:
        emit({"budgets": [_summary(budget) | {"entries": _entries(budget, last)} for budget in budgets]})
        return
    for budget in budgets:
        _print(budget)
        _print_entries(budget, last)


def log(
    file: File,
    population: Label = None,
    last: Annotated[int | None, typer.Option("--last", metavar="N", help="Only the newest N entries.")] = None,
    jsonl: Annotated[
        bool, typer.Option("--jsonl", help="Export the whole store as JSON lines that 'budget verify' can check.")
    ] = False,
    key: SigningKey = None,
    json: Json = False,
) -> None:
    """List every reservation: time, purpose, cost and outcome.

    'answered' was returned, 'failed' ended in an error, 'spent' drew noise, 'reserved' did not yet or is still running:
    all of these count. Only 'cancelled' does not. --jsonl exports every event of the store with its hashes, and --key
    signs it.
    """
    from ...errors import InvalidInput
    from ...validation import whole

    if jsonl and (json or population is not None or last is not None):
        raise InvalidInput("--jsonl exports the whole store, so it excludes --population, --last and --json; omit them")
    if key is not None and not jsonl:
        raise InvalidInput("--key signs the export of --jsonl; add --jsonl, or omit --key")
    if jsonl:
        from ...accounting.budget_store import Store
        from ...accounting.budget_trail import trail

        for line in trail(Store(file, read_only=True), signing_key(key)):
            print(line)
        return
    if last is not None:
        whole(1, last=last)
    budgets = _budgets(file, population)
    if json:
        emit({"budgets": [{"population": b.population, "entries": _entries(b, last)} for b in budgets]})
        return
    for budget in budgets:
        if not _print_entries(budget, last):
            say(f"{budget.population}: nothing spent yet")


def cancel(
    file: File,
    entry: Annotated[int, typer.Argument(metavar="ENTRY", help="The entry's number, as 'budget show' prints it.")],
    reason: Annotated[str, typer.Option("--reason", metavar="TEXT", help="The reason, kept in the log.")],
    population: Label = None,
    json: Json = False,
) -> None:
    """Return the reservation of a program that crashed before it drew any noise.

    This is refused once noise may have been drawn: what was spent stays spent. If the program is still running, it gets
    an error before it draws.
    """
    from ...accounting.budget import Budget

    budget = Budget.open(file, population)
    budget.cancel(entry, reason)
    if json:
        emit(_summary(budget) | {"cancelled": entry})
    else:
        say(f"entry {entry} was cancelled; left: {_amount(budget.status().left)}")


def _budgets(file: Path, population: str | None) -> "list[Budget]":
    from ...accounting.budget import Budget
    from ...accounting.budget_store import Store

    if population is not None:
        return [Budget.open(file, population, read_only=True)]
    store = Store(file, read_only=True)
    return [Budget(store, label) for label in store.populations()]


def _entries(budget: "Budget", last: int | None) -> list[dict[str, Any]]:
    return [asdict(entry) for entry in budget.log(last)]


def _print_entries(budget: "Budget", last: int | None) -> bool:
    """A table of entries; False when there are none."""
    rows = [
        [
            str(e.number),
            e.time,
            one_line(_bought(e)),
            _amount(e.cost, upper),
            e.state,
            one_line(f"{e.user}, {e.program}"),
        ]
        for e in budget.log(last)
    ]
    if rows:
        heads = ["entry", "<time (UTC)", "<what", "cost", "<state", "<by"]
        grid(f"{one_line(budget.population)} ({budget.limit.rule})", heads, rows)
    return bool(rows)


def _bought(entry: "Entry") -> str:
    job = f"{entry.job}({', '.join(entry.columns)})" if entry.columns else entry.job
    why = f"cancelled: {entry.reason}" if entry.reason else ""
    return "; ".join(filter(None, (job, entry.note, why)))


def _summary(budget: "Budget") -> dict[str, Any]:
    status = budget.status()
    return {
        "population": budget.population,
        "neighbors": budget.neighbors.kind,
        "records_per_person": budget.neighbors.records,
        "rule": budget.limit.rule,
        **budget.limit.facts(),
        "limit": status.limit,
        "spent": status.spent,
        "reserved": status.reserved,
        "left": status.left,
        "because": list(budget.guarantee().because),
        "assumes": list(budget.guarantee().assumes),
    }


def _print(budget: "Budget") -> None:
    status = budget.status()
    goal = ", ".join(f"{name} {number(value)}" for name, value in budget.limit.facts().items())
    facts(
        [
            ("population", one_line(budget.population)),
            ("protects", str(budget.neighbors)),
            ("rule", f"{budget.limit.rule}: {goal}"),
            ("limit", _amount(status.limit)),
            ("spent", _amount(status.spent, upper)),
            ("reserved, no answer", _amount(status.reserved, upper)),
            ("left", _amount(status.left, lower)),
        ]
    )


def _amount(amounts: dict[str, float], shown: Callable[[float, int], str] = number) -> str:
    words = {"renyi_loss": "Rényi loss", "mu_squared": "mu squared"}
    if "renyi_loss" in amounts:
        words["delta"] = "mass cut off"
    return ", ".join(f"{words.get(name, name)} {shown(value, 6)}" for name, value in amounts.items())
