"""`privamp budget`: make a budget store, see where it stands, read its log. Only programs spend from it."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from .console import emit, facts, grid, number, say
from .options import Json, Records

if TYPE_CHECKING:
    from ..accounting.budget import Budget

CREATE_EXAMPLES = """\
Examples:
  privamp budget create study.db --epsilon 3 --delta 1e-6 --population patients

  privamp budget create study.db --epsilon 1 --population nurses --neighbors replace-one --json"""
SHOW_EXAMPLES = """\
Examples:
  privamp budget show study.db --population patients

  privamp budget show study.db --json"""
LOG_EXAMPLES = """\
Examples:
  privamp budget log study.db --population patients --last 20

  privamp budget log study.db --population patients --json"""

File = Annotated[Path, typer.Argument(metavar="FILE", help="The budget store.")]
Label = Annotated[
    str | None,
    typer.Option("--population", metavar="LABEL", help="Whose budget; all of the store's when not given."),
]


def create(
    file: File,
    epsilon: Annotated[float, typer.Option("--epsilon", metavar="E", help="The epsilon of everything together.")],
    population: Annotated[
        str, typer.Option("--population", metavar="LABEL", help="The records protected; one budget for each label.")
    ],
    delta: Annotated[float, typer.Option("--delta", metavar="D", help="The delta of everything together.")] = 0.0,
    rule: Annotated[
        str | None,
        typer.Option("--rule", metavar="RULE", help="pure, basic, renyi or gdp; pure or renyi when not given."),
    ] = None,
    order: Annotated[
        float | None,
        typer.Option("--order", metavar="A", help="The one Rényi order, fixed now; a good one if not given."),
    ] = None,
    neighbors: Annotated[
        str, typer.Option("--neighbors", metavar="RELATION", help="add-remove or replace-one.")
    ] = "add-remove",
    records_per_person: Records = 1,
    json: Json = False,
) -> None:
    """Set a limit for a population, in a new store or a further one in the same store.

    Nothing is overwritten, and a limit cannot be changed later. The rule says what is added up: pure epsilons; epsilons
    and deltas (basic); Rényi divergences of one order (renyi); squared shifts of Gaussian noise (gdp).
    """
    from ..accounting.budget import Budget
    from ..core.neighbors import Neighbors

    relation = Neighbors.parse(neighbors).for_person(records_per_person)
    budget = Budget.create(
        file, population=population, epsilon=epsilon, delta=delta, rule=rule, order=order, neighbors=relation
    )
    if json:
        emit(_summary(budget))
    else:
        _print(budget)


def show(file: File, population: Label = None, json: Json = False) -> None:
    """Where each budget of a store stands: its limit, what is spent, reserved without an answer, and left."""
    budgets = _budgets(file, population)
    if json:
        emit({"budgets": [_summary(budget) for budget in budgets]})
        return
    for budget in budgets:
        _print(budget)


def log(
    file: File,
    population: Label = None,
    last: Annotated[int | None, typer.Option("--last", metavar="N", help="Only the newest N entries.")] = None,
    json: Json = False,
) -> None:
    """Every reservation: when, what for, how much, and how it ended.

    'answered' was given out, 'failed' ended in an error, 'reserved' is under way or was cut off by a crash: all three
    count as spent. Only 'cancelled' does not.
    """
    from ..validation import whole

    if last is not None:
        whole(1, last=last)
    budgets = _budgets(file, population)
    if json:
        emit({"budgets": [{"population": b.population, "entries": _entries(b, last)} for b in budgets]})
        return
    for budget in budgets:
        rows = [[e["time"], e["note"], _amount(e["cost"]), e["state"]] for e in _entries(budget, last)]
        if rows:
            grid(f"{budget.population} ({budget.limit.rule})", ["<time (UTC)", "<note", "cost", "<state"], rows)
        else:
            say(f"{budget.population}: nothing was spent yet")


def _budgets(file: Path, population: str | None) -> "list[Budget]":
    from ..accounting.budget import Budget
    from ..accounting.budget_store import Store

    if population is not None:
        return [Budget.open(file, population)]
    store = Store(file)
    return [Budget(store, label) for label in store.populations()]


def _entries(budget: "Budget", last: int | None) -> list[dict[str, Any]]:
    return [{"time": e.time, "note": e.note, "cost": e.cost, "state": e.state} for e in budget.log(last)]


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
            ("population", budget.population),
            ("protects", str(budget.neighbors)),
            ("rule", f"{budget.limit.rule}: {goal}"),
            ("limit", _amount(status.limit)),
            ("spent", _amount(status.spent)),
            ("reserved, no answer", _amount(status.reserved)),
            ("left", _amount(status.left)),
        ]
    )


def _amount(amounts: dict[str, float]) -> str:
    words = {"renyi_loss": "Rényi loss", "mu_squared": "mu squared"}
    if "renyi_loss" in amounts:
        words["delta"] = "mass cut off"
    return ", ".join(f"{words.get(name, name)} {number(value, 6)}" for name, value in amounts.items())
