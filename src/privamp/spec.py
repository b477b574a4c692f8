"""Spec strings: one short line per design and mechanism, the same everywhere.

    poisson:rate=0.01                                wor:size=100,population=1000
    multistage:wor=118,wr=200,population=10000       gaussian:sigma=4,sensitivity=2
    random-size:low=10,high=90,population=1000       proportional:rate=0.1,rounding=random
    systematic:step=10                               systematic:step=10,order=slots,max_slot=5
    importance:rule=privacy-constrained,epsilon=1,radius=4,scale=10,column=age+income
    balls-in-bins:rounds=100,epochs=10               cyclic-poisson:rate=0.01,bands=4,steps=1000
    rounds:steps=100,design=poisson:rate=0.01        (a design's own spec comes last)

Repeated stage keys keep their order. A question mark marks the unknown for `calibrate`.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from .core.design import Design
from .core.mechanism import Mechanism
from .core.neighbors import Neighbors
from .core.schedule import Schedule
from .designs.cluster import ClusterSampling
from .designs.conditional_poisson import ConditionalPoisson
from .designs.importance import ImportanceSampling
from .designs.multistage import MultiStage
from .designs.poisson import Poisson
from .designs.poisson_pps import PoissonPPS
from .designs.proportional import Proportional
from .designs.random_size import RandomSize
from .designs.shared_rate import SharedRate
from .designs.simple_random import WithoutReplacement
from .designs.systematic import Systematic
from .designs.with_replacement import WithReplacement
from .errors import InvalidInput
from .mechanisms.black_box import ApproxDP, PureDP
from .mechanisms.discrete_gaussian import DiscreteGaussian
from .mechanisms.discrete_laplace import DiscreteLaplace
from .mechanisms.fixed_point import ExactGaussian, ExactLaplace
from .mechanisms.gaussian import Gaussian
from .mechanisms.geometric import GeometricCount
from .mechanisms.laplace import Laplace
from .mechanisms.norm_noise import NormNoise
from .mechanisms.randomized_response import RandomizedResponse
from .rules.coreset import coreset
from .rules.privacy_constrained import privacy_constrained
from .rules.profiles import GaussianProfile, LinearProfile
from .rules.uniform import uniform
from .schedules.balls_in_bins import BallsInBins
from .schedules.cyclic_poisson import CyclicPoisson
from .schedules.rounds import Rounds
from .validation import one_of

UNKNOWN = "?"


@dataclass(frozen=True, slots=True)
class Word:
    """One spec word: what it makes and which keys it takes."""

    make: Callable[..., Any]
    required: tuple[str, ...]
    optional: tuple[str, ...] = ()
    whole: tuple[str, ...] = ()
    text: tuple[str, ...] = ()  # keys whose value is a word


def _multistage(population: int, stages: list[tuple[str, int]]) -> MultiStage:
    return MultiStage(tuple(stages), population)


def _cluster(
    chosen: int,
    clusters: int,
    max_size: int,
    second_rate: float | None = None,
    second_size: int | None = None,
    min_size: int = 0,
) -> ClusterSampling:
    if second_rate is not None and second_size is not None:
        raise InvalidInput("a cluster design takes second_rate or second_size, got both instead")
    second = second_size if second_rate is None else Poisson(second_rate)
    return ClusterSampling(chosen, clusters, max_size, second, min_size)


_RULES: dict[str, tuple[Callable[..., Any], tuple[str, ...]]] = {
    "privacy-constrained": (privacy_constrained, ("epsilon",)),
    "uniform": (uniform, ("rate",)),
    "coreset": (coreset, ("share", "size", "population", "mean_squared_norm")),
}
_RULE_KEYS = tuple(dict.fromkeys(key for _, keys in _RULES.values() for key in keys))


def _importance(
    rule: str,
    radius: float,
    scale: float | None = None,
    sigma: float | None = None,
    delta: float = 0.0,
    arithmetic: str = "exact",
    column: str = "x",
    **facts: float,
) -> ImportanceSampling:
    """A rule for the sum of `column` under Laplace noise of `scale` or Gaussian noise of `sigma`."""
    one_of(tuple(_RULES), rule=rule)
    one_of(("exact", "idealised"), arithmetic=arithmetic)
    make, needed = _RULES[rule]
    if (scale is None) == (sigma is None):
        raise InvalidInput("an importance design takes scale=… (Laplace noise) or sigma=… (Gaussian noise), not both")
    if set(facts) != set(needed):
        raise InvalidInput(f"the rule {rule!r} takes {', '.join(needed)}, got {', '.join(facts) or 'none'} instead")
    exact = arithmetic == "exact"
    profile: LinearProfile | GaussianProfile
    if scale is not None:
        profile = LinearProfile.of((ExactLaplace if exact else Laplace)(scale, radius))
    else:
        profile = GaussianProfile.of((ExactGaussian if exact else Gaussian)(float(sigma or 0.0), radius))
    more: dict[str, Any] = {"dimension": column.count("+") + 1} if rule == "coreset" and scale is not None else {}
    return ImportanceSampling(make(profile, radius=radius, delta=delta, **facts, **more), column)


DESIGNS: dict[str, Word] = {
    "poisson": Word(Poisson, ("rate",)),
    "wor": Word(WithoutReplacement, ("size", "population"), whole=("size", "population")),
    "wr": Word(WithReplacement, ("size", "population"), whole=("size", "population")),
    "multistage": Word(_multistage, ("population",), ("wor", "wr"), whole=("population", "wor", "wr")),
    "random-size": Word(RandomSize.uniform, ("low", "high", "population"), whole=("low", "high", "population")),
    "random-size-normal": Word(RandomSize.truncated_normal, ("mean", "sd", "population"), whole=("population",)),
    "proportional": Word(Proportional, ("rate",), ("rounding", "at_most"), whole=("at_most",), text=("rounding",)),
    "shared-rate": Word(
        SharedRate,
        ("size", "at_least", "strata"),
        ("rounding",),
        whole=("size", "at_least", "strata"),
        text=("rounding",),
    ),
    "systematic": Word(
        Systematic, ("step",), ("order", "max_slot", "at_most"), ("step", "max_slot", "at_most"), ("order",)
    ),
    "cluster": Word(
        _cluster,
        ("chosen", "clusters", "max_size"),
        ("second_rate", "second_size", "min_size"),
        whole=("chosen", "clusters", "max_size", "second_size", "min_size"),
    ),
    "poisson-pps": Word(PoissonPPS, ("high",), ("low", "per_size")),
    "conditional-poisson": Word(
        ConditionalPoisson, ("size", "population", "low", "high"), whole=("size", "population")
    ),
    "importance": Word(
        _importance,
        ("rule", "radius"),
        ("scale", "sigma", "delta", "arithmetic", "column", *_RULE_KEYS),
        text=("rule", "arithmetic", "column"),
    ),
}

SCHEDULES: dict[str, Word] = {
    "balls-in-bins": Word(BallsInBins, ("rounds",), ("epochs", "times"), whole=("rounds", "epochs", "times")),
    "cyclic-poisson": Word(CyclicPoisson, ("rate", "bands", "steps"), whole=("bands", "steps")),
    "rounds": Word(Rounds, ("steps",), whole=("steps",)),
}

_NOISE = ("sensitivity", "neighbors")
MECHANISMS: dict[str, Word] = {
    "laplace": Word(Laplace, ("scale",), _NOISE),
    "gaussian": Word(Gaussian, ("sigma",), _NOISE),
    "discrete-laplace": Word(DiscreteLaplace, ("scale",), _NOISE, whole=("sensitivity",)),
    "discrete-gaussian": Word(DiscreteGaussian, ("sigma",), _NOISE, whole=("sensitivity",)),
    "exact-laplace": Word(ExactLaplace, ("scale",), ("sensitivity",)),
    "exact-gaussian": Word(ExactGaussian, ("sigma",), ("sensitivity",)),
    "geometric": Word(GeometricCount, ("epsilon",), ("neighbors",)),
    "randomized-response": Word(RandomizedResponse, ("epsilon",), ("categories",), whole=("categories",)),
    "norm": Word(NormNoise, ("scale", "dimension"), ("p", *_NOISE), whole=("dimension",)),
    "pure": Word(PureDP, ("epsilon",), ("neighbors",)),
    "approx": Word(ApproxDP, ("epsilon", "delta"), ("neighbors",)),
}


def design(text: str) -> Design:
    """A design from its spec.

    >>> design("multistage:wor=118,wr=200,population=10000")
    MultiStage(stages=(('wor', 118), ('wr', 200)), population=10000)
    """
    return _read(text, DESIGNS, "design", {})  # type: ignore[no-any-return]


def design_or_schedule(text: str) -> Design | Schedule:
    """A design, or a schedule of many rounds, from its spec.

    >>> design_or_schedule("rounds:steps=100,design=poisson:rate=0.01")
    Rounds(design=Poisson(rate=0.01), steps=100)
    """
    if text.startswith("rounds:"):
        counts, marker, inner = text.partition("design=")
        if not marker:
            raise InvalidInput(f"'rounds' needs steps=… and, last, design=…, got {text!r} instead")
        word = Word(lambda steps: Rounds(design(inner), steps), ("steps",), whole=("steps",))
        return _read(counts.rstrip(","), SCHEDULES | {"rounds": word}, "schedule", {})  # type: ignore[no-any-return]
    words = DESIGNS | SCHEDULES
    return _read(text, words, "design", {})  # type: ignore[no-any-return]


def design_with_unknown(text: str) -> Design | tuple[str, Callable[[Any], Design]]:
    """A design, or the key of its unknown and a function of it."""
    return _read(text, DESIGNS, "design", {}, unknown=True)  # type: ignore[no-any-return]


def mechanism(text: str, neighbors: Neighbors) -> Mechanism:
    """A mechanism from its spec; its sensitivity is stated for `neighbors` unless the spec says otherwise.

    >>> mechanism("gaussian:sigma=4,sensitivity=2", Neighbors.REPLACE_ONE).sensitivity
    2.0
    """
    return _read(text, MECHANISMS, "mechanism", {"neighbors": neighbors})  # type: ignore[no-any-return]


def mechanism_with_unknown(text: str, neighbors: Neighbors) -> Mechanism | tuple[str, Callable[[Any], Mechanism]]:
    """A mechanism, or the key of its unknown and a function of it."""
    return _read(text, MECHANISMS, "mechanism", {"neighbors": neighbors}, unknown=True)  # type: ignore[no-any-return]


def stated_for(chosen: Design | Schedule, neighbors: Neighbors | None) -> Neighbors:
    """The relation a mechanism's sensitivity is read for: the one asked about, unless the design needs another."""
    if isinstance(chosen, Schedule):
        designs = [block for block, _ in chosen.blocks() if isinstance(block, Design)]
        return stated_for(designs[0], neighbors) if designs else Neighbors.ADD_REMOVE
    wanted = (neighbors or chosen.natural).per_record
    needs = {theorem.needs for theorem in chosen.theorems if theorem.gives == wanted.kind}
    return Neighbors.ADD_REMOVE if needs == {"add-remove"} else wanted


def _read(text: str, words: dict[str, Word], what: str, defaults: dict[str, Any], unknown: bool = False) -> Any:
    name, _, rest = text.partition(":")
    if name not in words:
        raise InvalidInput(f"{what} must start with one of {', '.join(words)}, got {name!r} instead")
    word = words[name]
    pairs = [_pair(item, name, word) for item in rest.split(",")] if rest else []
    keys = [key for key, _ in pairs if not (name == "multistage" and key in ("wor", "wr"))]
    for key in word.required:
        if key not in keys:
            raise InvalidInput(f"{what} {name!r} needs {', '.join(word.required)}, but {key} is missing in {text!r}")
    for key in keys:
        if keys.count(key) > 1:
            raise InvalidInput(f"{what} {name!r} takes {key} once, got it twice in {text!r}")
    holes = [key for key, value in pairs if value == UNKNOWN]
    if len(holes) > (1 if unknown else 0):
        rule = "only one is" if unknown else "none is"
        raise InvalidInput(f"{what} {text!r} has {len(holes)} unknowns marked '?', {rule} allowed here")
    allowed = {k: v for k, v in defaults.items() if k in (*word.required, *word.optional)}

    def build(value: Any) -> Any:
        filled = [(k, value if v == UNKNOWN else v) for k, v in pairs]
        if name == "multistage":
            stages = [(k, v) for k, v in filled if k in ("wor", "wr")]
            return word.make(**{k: v for k, v in filled if k not in ("wor", "wr")}, stages=stages)
        return word.make(**{**allowed, **dict(filled)})

    return (holes[0], build) if holes else build(None)


def _pair(item: str, name: str, word: Word) -> tuple[str, Any]:
    key, equals, value = item.partition("=")
    key = key.strip()
    known = (*word.required, *word.optional)
    if not equals or key not in known:
        raise InvalidInput(f"{name!r} takes {', '.join(f'{k}=…' for k in known)}, got {item!r} instead")
    if value == UNKNOWN:
        return key, UNKNOWN
    if key == "neighbors":
        return key, Neighbors.parse(value)
    if key in word.text:
        return key, value
    try:
        return key, int(value) if key in word.whole else float(value)
    except ValueError:
        kind = "a whole number" if key in word.whole else "a number"
        raise InvalidInput(f"{key} must be {kind}, got {value!r} instead") from None
