"""`privamp calibrate`: the noise, rate or size that reaches a target guarantee."""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Annotated, Any

import typer

from .amplify import answers, findings, opening
from .console import degrading, emit, facts, waiting
from .options import DesignSpec, Json, MechanismSpec, Records, Relation, Steps, check_counts, given, relation

if TYPE_CHECKING:
    from ..core.neighbors import Neighbors

EXAMPLES = """\
Examples:
  privamp calibrate --design poisson:rate=0.01 --mechanism 'gaussian:sigma=?' --epsilon 1 --delta 1e-6

  privamp calibrate --design 'wor:size=?,population=1000' --mechanism laplace:scale=1 --epsilon 0.5 --json"""

_NOISE = ("sigma", "scale", "epsilon", "sensitivity")  # what a mechanism can be solved for
_MOST_RECORDS, _MOST_IN_A_TABLE = 10**9, 10**4


def calibrate(
    design: DesignSpec,
    mechanism: MechanismSpec,
    epsilon: Annotated[float, typer.Option("--epsilon", metavar="E", help="The epsilon to reach.")],
    delta: Annotated[float, typer.Option("--delta", metavar="D", help="The delta to reach; 0 means pure DP.")] = 0.0,
    neighbors: Relation = None,
    steps: Steps = 1,
    records_per_person: Records = 1,
    json: Json = False,
) -> None:
    """Solve for one unknown, marked '?' in a spec: the smallest noise, or the largest rate or size.

    The result always satisfies the guarantee: it is rounded in the safe direction. Quote the spec, because
    '?' is special in most shells.
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
        asked = {"unknown": unknown.key, "value": value, "within": unknown.within}
        emit(asked | {"wanted": {"epsilon": epsilon, "delta": delta}} | head | answer)
    else:
        at_end = f" (an end of the search range {unknown.within})" if value in (unknown.within or ()) else ""
        facts([(unknown.key, f"{value!r}{at_end}"), *opening(head, guarantee), *findings(answer)])


@dataclass(slots=True)
class Unknown:
    """The one parameter to solve for: where it is in the spec, what it makes, and its range."""

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
    """The unknown, the known part, and the requested relation."""
    from .. import spec
    from ..errors import InvalidInput

    with given("--design"):
        hole = spec.design_with_unknown(design)
    unknown = _of_design(design, *hole) if isinstance(hole, tuple) else None
    plan = hole if not isinstance(hole, tuple) else hole[1](unknown.within[0])  # type: ignore[union-attr,index]
    wanted = relation(neighbors, plan, records)
    with given("--mechanism"):
        noise = spec.mechanism_with_unknown(mechanism, spec.stated_for(plan, wanted))
    if isinstance(noise, tuple) and unknown is None:
        return _of_mechanism(mechanism, *noise), plan, wanted
    if unknown is None or isinstance(noise, tuple):
        raise InvalidInput("mark exactly one unknown with '?', such as gaussian:sigma=? or poisson:rate=?")
    return unknown, noise, wanted


def _of_mechanism(text: str, key: str, build: Callable[[Any], Any]) -> Unknown:
    from ..errors import InvalidInput
    from ..spec import mechanism_word

    if key not in _NOISE or key in mechanism_word(text).whole:
        raise InvalidInput(f"the unknown of a mechanism must be its sigma, scale, epsilon or sensitivity, got {key}=?")
    return Unknown(key, build, in_design=False)


def _of_design(text: str, key: str, build: Callable[[Any], Any]) -> Unknown:
    from ..errors import InvalidInput
    from ..spec import design_word, part_with_unknown

    text = part_with_unknown(text)
    word = design_word(text)
    if key in word.text:
        raise InvalidInput(f"{key} is a word, so it cannot be solved for; mark a number with '?'")
    low, high = _range(text, key, build, is_whole=key in word.whole)
    if not low < high:
        raise InvalidInput(
            f"{key} can only be {low} in {text!r}, so there is nothing to solve for; mark another number with '?'"
        )
    return Unknown(key, build, in_design=True, within=(low, high))


def _range(text: str, key: str, build: Callable[[Any], Any], *, is_whole: bool) -> tuple[float, float]:
    """The smallest and largest valid value of the design, found by trial; whole numbers up to the population."""
    from ..errors import InvalidInput

    declared = [item.partition("=")[2] for item in text.split(",") if item.startswith("population=")]
    table = text.startswith(("random-size", "cluster"))  # kept as one number per record or cluster
    most = int(declared[0]) if declared and key != "population" else (_MOST_IN_A_TABLE if table else _MOST_RECORDS)
    doubling = [2**k for k in range(31) if 2**k < most] + [most]
    tried = doubling if is_whole else [1e-12, *(10.0**-k for k in range(11, 0, -1)), 0.5, 1.0, 10.0, 1e3]

    def is_valid(value: float) -> bool:
        try:
            build(value)
        except InvalidInput:
            return False
        return True

    valid = [value for value in tried if is_valid(value)]
    if not valid:
        build(tried[0])  # says what is wrong with the rest of the spec
    first, last = tried.index(valid[0]), tried.index(valid[-1])
    low = valid[0] if first == 0 else _edge(is_valid, valid[0], tried[first - 1], is_whole)
    high = valid[-1] if last == len(tried) - 1 else _edge(is_valid, valid[-1], tried[last + 1], is_whole)
    return low, high


def _edge(is_valid: Callable[[float], bool], inside: float, outside: float, is_whole: bool) -> float:
    """The last valid value on the way from a valid to an invalid one."""
    from ..numerics.roots import halved, largest_passing

    if is_whole:
        sign = 1 if outside > inside else -1
        return sign * largest_passing(lambda x: is_valid(sign * x), sign * int(inside), sign * int(outside))
    return halved(lambda x: not is_valid(x), inside, outside, until=lambda a, b: abs(b - a) <= 1e-12)[0]


def _filled(text: str, value: float) -> str:
    return text.replace("?", repr(value))
