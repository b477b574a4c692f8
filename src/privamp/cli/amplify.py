"""`privamp amplify`: the guarantee of one mechanism on one design."""

import math
from typing import TYPE_CHECKING, Annotated, Any

import typer

from .console import degrading, emit, facts, lower, upper, waiting
from .options import DesignSpec, Json, MechanismSpec, Records, Relation, Steps, check_counts, given, relation

if TYPE_CHECKING:
    from ..core.guarantee import Guarantee

EXAMPLES = """\
Examples:
  privamp amplify --design poisson:rate=0.01 --mechanism gaussian:sigma=1 --delta 1e-6

  privamp amplify --design wor:size=100,population=1000 --mechanism pure:epsilon=1 --json

  privamp amplify --design multistage:wor=118,wr=200,population=10000 \\
      --mechanism gaussian:sigma=4,sensitivity=2 --neighbors replace-one --epsilon 1

  privamp amplify --design poisson:rate=0.01 --mechanism gaussian:sigma=1 --steps 100 --delta 1e-5

  privamp amplify --design balls-in-bins:rounds=100 --mechanism gaussian:sigma=1 --delta 1e-6"""


def amplify(
    design: DesignSpec,
    mechanism: MechanismSpec,
    neighbors: Relation = None,
    steps: Steps = 1,
    queries: Annotated[
        int, typer.Option("--queries", metavar="K", help="Run the mechanism K times on the same sample.")
    ] = 1,
    records_per_person: Records = 1,
    epsilon: Annotated[
        float | None, typer.Option("--epsilon", metavar="E", help="Report delta at this epsilon.")
    ] = None,
    delta: Annotated[float | None, typer.Option("--delta", metavar="D", help="Report epsilon at this delta.")] = None,
    json: Json = False,
) -> None:
    """Compute the guarantee of a mechanism run on a sample: a certified upper bound and a lower bound from an attack.

    A mechanism's sensitivity is interpreted for the requested relation, or for add-remove where the design's theorem
    needs that (Poisson); set neighbors=... in its spec to override this. The output shows which was used.
    """
    from .. import spec
    from ..accounting.composition import compose
    from ..accounting.joint import Joint
    from ..amplification import amplify as certify

    _check_question(epsilon, delta)
    check_counts(steps=steps, queries=queries)
    with given("--design"):
        plan = spec.design_or_schedule(design)
    wanted = relation(neighbors, plan, records_per_person)
    with given("--mechanism"):
        noise = spec.mechanism(mechanism, spec.stated_for(plan, wanted))
    with degrading(), waiting("certifying", quiet=json):
        guarantee = certify(Joint([noise] * queries) if queries > 1 else noise, plan, wanted)
        guarantee = compose(guarantee, steps) if steps > 1 else guarantee
        answer = answers(guarantee, epsilon=epsilon, delta=delta)
    head: dict[str, Any] = {"design": design, "mechanism": mechanism, "mechanism_neighbors": noise.neighbors.kind}
    if queries > 1:
        head["queries"] = queries
    if json:
        emit(head | answer)
    else:
        facts([*opening(head, guarantee), *findings(answer)])


def _check_question(epsilon: float | None, delta: float | None) -> None:
    from ..errors import InvalidInput
    from ..validation import in_range, nonnegative

    if epsilon is not None and delta is not None:
        raise InvalidInput("give --epsilon (to get delta) or --delta (to get epsilon), not both")
    if epsilon is not None:
        nonnegative(epsilon=epsilon)
    if delta is not None:
        in_range(0, 1, open_ends=True, delta=delta)


def answers(
    guarantee: "Guarantee", *, epsilon: float | None, delta: float | None, certificate: bool = True
) -> dict[str, Any]:
    """The requested numbers with their reasons, ready for JSON; raises if there is no such number."""
    from ..errors import Infeasible, InvalidInput

    if epsilon is None and delta is None and not math.isfinite(guarantee.epsilon()):
        raise InvalidInput("this release is not pure DP, so one number cannot describe it; give --delta or --epsilon")
    answer = (guarantee.to_json if certificate else guarantee.stated)(epsilon=epsilon, delta=delta)
    if delta is not None and answer["epsilon_upper"] is None:
        raise Infeasible(
            f"no epsilon reaches delta {delta:g}, this release is never that private; use a larger --delta"
        )
    if answer.pop("private", True) is False:
        answer["private"] = False
    return answer


def opening(head: dict[str, Any], guarantee: "Guarantee") -> list[tuple[str, str]]:
    """The question, in words."""
    many = f", {head['queries']} times on one sample" if "queries" in head else ""
    fresh = f", {guarantee.steps} fresh draws" if guarantee.steps > 1 else ""
    return [
        ("design", f"{head['design']}{fresh}"),
        ("mechanism", f"{head['mechanism']}{many} (sensitivity for {head['mechanism_neighbors']})"),
        ("relation", str(guarantee.neighbors)),
    ]


def findings(answer: dict[str, Any]) -> list[tuple[str, str]]:
    """The numbers, why they hold, and what they assume."""
    asked = next((f" at {name} {answer[name]:g}" for name in ("epsilon", "delta") if name in answer), ", pure")
    what = "delta" if "epsilon" in answer else "epsilon"
    attack = answer[f"{what}_lower"]
    lines = [
        (f"{what}{asked}", f"at most {upper(answer[f'{what}_upper'], 6)}  (certified)"),
        ("", f"at least {lower(attack, 6)}  (a known attack)" if attack is not None else "no attack is known"),
        *_listed("because", answer["because"]),
        *_proofs(answer["because"]),
        *_listed("assumes", answer["assumes"]),
    ]
    if answer.get("degrades"):
        lines.append(("LOSES", "this design makes the release LESS private than the mechanism on all the data"))
    return lines


def _proofs(because: list[str]) -> list[tuple[str, str]]:
    from ..proofs import cited

    names = dict.fromkeys(name for line in because for name in cited(line))
    return [("proofs", ", ".join(f"privamp theorem {name}" for name in names))] if names else []


def _listed(name: str, sentences: list[str]) -> list[tuple[str, str]]:
    return [(name if index == 0 else "", sentence) for index, sentence in enumerate(sentences)]
