"""`privamp calibrate`: the noise, rate or size that reaches a wanted guarantee."""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Annotated, Any

import typer

from .amplify import answers, findings, opening
from .console import degrading, emit, facts, waiting
from .options import DesignSpec, Json, MechanismSpec, Records, Relation, Steps, check_counts, relation

if TYPE_CHECKING:
    from ..core.neighbors import Neighbors

EXAMPLES = """\
Examples:
  privamp calibrate --design poisson:rate=0.01 --mechanism 'gaussian:sigma=?' --epsilon 1 --delta 1e-6

  privamp calibrate --design 'wor:size=?,population=1000' --mechanism laplace:scale=1 --epsilon 0.5 --json"""

_NOISE = ("sigma", "scale", "epsilon", "sensitivity")  # what a mechanism can be solved for
_MOST_RECORDS = 10**9


def calibrate(
    design: DesignSpec,
    mechanism: MechanismSpec,
    epsilon: Annotated[float, typer.Option("--epsilon", metavar="E", help="The epsilon to reach.")],
    delta: Annotated[float, typer.Option("--delta", metavar="D", help="The delta to reach; 0 asks for pure DP.")] = 0.0,
    neighbors: Relation = None,
    steps: Steps = 1,
    records_per_person: Records = 1,
    json: Json = False,
) -> None:
    """Solve for the one unknown, marked '?' in one spec: the least noise, or the largest rate or size.

    The answer always satisfies the guarantee: it is rounded to the private side. Quote the spec, because
    shells give '?' a meaning of their own.
    """
    from ..accounting.composition import compose
    from ..amplification import amplify
    from ..calibration import calibrate as solve

    check_counts(steps=steps)
    unknown, other, wanted = _read(design, mechanism, neighbors, records_per_person)
    pair = (other, unknown.make) if unknown.in_design else (unknown.make, other)
    with waiting("calibrating", quiet=json):
        solved: Any = solve(*pair, epsilon=epsilon, delta=delta, steps=steps, neighbors=wanted, within=unknown.within)
    value = unknown.tried[solved]
    filled = {"design": _filled(design, value), "mechanism": _filled(mechanism, value)}
    plan, noise = (solved, other) if unknown.in_design else (other, solved)
    with degrading(), waiting("certifying", quiet=json):
        guarantee = amplify(noise, plan, wanted)
        guarantee = compose(guarantee, steps) if steps > 1 else guarantee
        answer = answers(guarantee, epsilon=epsilon if delta else None, delta=None)
    head = filled | {"mechanism_neighbors": noise.neighbors.kind}
    if json:
        emit({"unknown": unknown.key, "value": value, "wanted": {"epsilon": epsilon, "delta": delta}} | head | answer)
    else:
        facts([(unknown.key, repr(value)), *opening(head, guarantee), *findings(answer)])


@dataclass(slots=True)
class Unknown:
    """The one parameter to solve for: where it stands, what it makes, and between which ends it lies."""

    key: str
    build: Callable[[Any], Any]
    in_design: bool
    within: tuple[float, float] | None = None
    tried: dict[Any, float] = field(default_factory=dict)  # what was made → its value

    def make(self, value: float) -> Any:
        """The design or mechanism with this value."""
        made = self.build(value)
        self.tried[made] = value
        return made


def _read(design: str, mechanism: str, neighbors: str | None, records: int) -> tuple[Unknown, Any, "Neighbors"]:
    """The unknown, the part that is known, and the relation asked about."""
    from .. import spec
    from ..errors import InvalidInput

    hole = spec.design_with_unknown(design)
    unknown = _of_design(design, *hole) if isinstance(hole, tuple) else None
    plan = hole if not isinstance(hole, tuple) else hole[1](unknown.within[0])  # type: ignore[union-attr,index]
    wanted = relation(neighbors, plan, records)
    noise = spec.mechanism_with_unknown(mechanism, spec.stated_for(plan, wanted))
    if isinstance(noise, tuple) and unknown is None:
        return _of_mechanism(mechanism, *noise), plan, wanted
    if unknown is None or isinstance(noise, tuple):
        raise InvalidInput("mark exactly one unknown with '?', such as gaussian:sigma=? or poisson:rate=?")
    return unknown, noise, wanted


def _of_mechanism(text: str, key: str, build: Callable[[Any], Any]) -> Unknown:
    from ..errors import InvalidInput
    from ..spec import MECHANISMS

    if key not in _NOISE or key in MECHANISMS[text.partition(":")[0]].whole:
        raise InvalidInput(f"the unknown of a mechanism must be its sigma, scale, epsilon or sensitivity, got {key}=?")
    return Unknown(key, build, in_design=False)


def _of_design(text: str, key: str, build: Callable[[Any], Any]) -> Unknown:
    from ..errors import InvalidInput

    low, high = (1e-12, 1.0) if key == "rate" else _sizes(text, key)
    if not low < high:
        build(low)  # says what is wrong with the rest of the spec, if anything is
        raise InvalidInput(f"{key} can only be {low} in {text!r}, so there is nothing to solve for")
    return Unknown(key, build, in_design=True, within=(low, high))


def _sizes(text: str, key: str) -> tuple[int, int]:
    """The smallest and largest value of a whole number in a design, given its other numbers."""
    name, _, rest = text.partition(":")
    pairs = [(k.strip(), v) for k, _, v in (item.partition("=") for item in rest.split(","))]
    stages = [(name if k == "size" else k, v) for k, v in pairs if k != "population"]
    if key == "population":
        kind, size = stages[0] if stages else ("wr", "1")
        return (int(size) if kind == "wor" else 1), _MOST_RECORDS
    population = next(int(v) for k, v in pairs if k == "population")
    at = next(i for i, (_, v) in enumerate(stages) if v == "?")
    low = int(stages[at + 1][1]) if at + 1 < len(stages) and stages[at + 1][0] == "wor" else 1
    before = int(stages[at - 1][1]) if at > 0 else population
    return low, before if stages[at][0] == "wor" else max(population, low)


def _filled(text: str, value: float) -> str:
    return text.replace("?", repr(value))
