"""Spec strings: one short line per design and mechanism, the same everywhere.

    poisson:rate=0.01                                wor:size=100,population=1000
    multistage:wor=118,wr=200,population=10000       gaussian:sigma=4,sensitivity=2
    random-size:low=10,high=90,population=1000       proportional:rate=0.1,rounding=random
    systematic:step=10                               systematic:step=10,order=slots,max_slot=5
    class-rates:rates=common=0.01+rare=0.2           capped-poisson:rate=0.1,most=120
    importance:rule=privacy-constrained,epsilon=1,radius=4,scale=10,column=age+income
    balls-in-bins:rounds=100,epochs=10               cyclic-poisson:rate=0.01,bands=4,steps=1000
    rounds:steps=100,design=poisson:rate=0.01        (a design's own spec comes last)
    stratified:shops=[poisson:rate=0.1],mines=[wor:size=5,population=50]    (a design for each stratum, in brackets)
    random-size-law:chances=10=0.5+20=0.5,population=100    (each size that may be drawn, with its chance)
    cluster-pps:probabilities=0.2+0.3+0.5,max_size=4  cluster-by-size:clusters=50,max_size=4,min_size=2
    proportional-pps:size=10,low=1,high=5,at_least=1000

Repeated stage keys keep their order. A question mark marks the unknown for `calibrate`.
"""

import re
from collections.abc import Callable
from dataclasses import replace
from typing import Any

from .core.design import Design
from .core.mechanism import Mechanism
from .core.neighbors import Neighbors
from .core.schedule import Schedule
from .core.words import Word, added_words
from .core.written import load_installed
from .designs.class_rates import ClassRates
from .designs.cluster import ClusterSampling
from .designs.cluster_by_size import ClusterBySize
from .designs.cluster_pps import ClusterPPS
from .designs.conditional_poisson import ConditionalPoisson
from .designs.importance import ImportanceSampling
from .designs.multistage import MultiStage
from .designs.poisson import Poisson
from .designs.poisson_pps import PoissonPPS
from .designs.pps_clusters import PPSClusters
from .designs.proportional import Proportional
from .designs.proportional_pps import ProportionalPPS
from .designs.random_size import RandomSize
from .designs.shared_rate import SharedRate
from .designs.simple_random import WithoutReplacement
from .designs.stratified import Stratified
from .designs.systematic import Systematic
from .designs.systematic_pps import SystematicPPS
from .designs.truncated_poisson import TruncatedPoisson
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
from .rules.variance_optimal import variance_optimal
from .schedules.balls_in_bins import BallsInBins
from .schedules.cyclic_poisson import CyclicPoisson
from .schedules.rounds import Rounds
from .validation import meant, one_of, whole

UNKNOWN = "?"


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


def _joined(kind: Callable[[str], Any], text: str, name: str) -> tuple[Any, ...]:
    try:
        return tuple(kind(each) for each in text.split("+"))
    except ValueError:
        what = "whole numbers" if kind is int else "numbers"
        raise InvalidInput(f"{name} must be {what} joined by '+', got {text!r} instead") from None


def _cluster_pps(probabilities: str, max_size: int | None = None, caps: str | None = None) -> ClusterPPS:
    if (max_size is None) == (caps is None):
        raise InvalidInput("'cluster-pps' takes max_size=… for all clusters, or caps=… with one number each")
    chances = _joined(float, probabilities, "probabilities")
    return ClusterPPS(chances, _joined(int, caps, "caps") if caps is not None else int(max_size or 0))


def _pps_clusters(sizes: str, chosen: int, take: int) -> PPSClusters:
    return PPSClusters(_joined(int, sizes, "sizes"), chosen, take)


def _systematic_pps(sizes: str, chosen: int, max_size: int = 1) -> SystematicPPS:
    return SystematicPPS(_joined(int, sizes, "sizes"), chosen, max_size)


def _random_size_law(chances: str, population: int) -> RandomSize:
    whole(1, 10**7, population=population)  # kept as one number per record
    pairs = [each.partition("=") for each in chances.split("+")]
    sizes, law = (_joined(int, "+".join(size for size, _, _ in pairs), "sizes"), [0.0] * (population + 1))
    known = _joined(float, "+".join(chance for _, _, chance in pairs), "chances")
    if len(set(sizes)) < len(sizes) or min(sizes) < 0 or max(sizes) > population:
        rule = f"chances must be SIZE=CHANCE joined by '+', each size from 0 to {population} once"
        raise InvalidInput(f"{rule}, got {chances!r} instead")
    for size, chance in zip(sizes, known, strict=True):
        law[size] = chance
    return RandomSize(tuple(law))


_RULES: dict[str, tuple[Callable[..., Any], tuple[str, ...]]] = {
    "privacy-constrained": (privacy_constrained, ("epsilon",)),
    "uniform": (uniform, ("rate",)),
    "variance-optimal": (variance_optimal, ("kappa",)),
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


def _words(*kinds: type[Design] | type[Schedule]) -> dict[str, Word]:
    """The spec words that classes define themselves."""
    return {kind.word.name: replace(kind.word, make=kind) for kind in kinds if kind.word is not None}


def _named(*words: Word) -> dict[str, Word]:
    return {word.name: word for word in words}


_SIZES = ("low", "high", "population")
DESIGNS: dict[str, Word] = {
    **_words(Poisson, WithoutReplacement, WithReplacement),
    **_named(
        Word("multistage", ("population",), ("wor", "wr"), whole=("population", "wor", "wr"), make=_multistage),
        Word("random-size", _SIZES, whole=_SIZES, make=RandomSize.uniform),
        Word(
            "random-size-law", ("chances", "population"), whole=("population",), text=("chances",),
            make=_random_size_law,
        ),
        Word(
            "random-size-normal", ("mean", "sd", "population"), whole=("population",), make=RandomSize.truncated_normal
        ),
    ),
    **_words(Proportional, SharedRate, Systematic),
    **_named(
        Word(
            "cluster", ("chosen", "clusters", "max_size"), ("second_rate", "second_size", "min_size"),
            whole=("chosen", "clusters", "max_size", "second_size", "min_size"), make=_cluster,
        ),
        Word(
            "cluster-pps", ("probabilities",), ("max_size", "caps"), whole=("max_size",),
            text=("probabilities", "caps"), make=_cluster_pps,
        ),
        Word(
            "pps-clusters", ("sizes", "chosen", "take"), whole=("chosen", "take"), text=("sizes",), make=_pps_clusters
        ),
        Word(
            "systematic-pps", ("sizes", "chosen"), ("max_size",), whole=("chosen", "max_size"), text=("sizes",),
            make=_systematic_pps,
        ),
        Word("stratified", ()),  # strata are read by their names
    ),
    **_words(ClusterBySize, ProportionalPPS, PoissonPPS, ClassRates, TruncatedPoisson, ConditionalPoisson),
    **_named(
        Word(
            "importance", ("rule", "radius"), ("scale", "sigma", "delta", "arithmetic", "column", *_RULE_KEYS),
            text=("rule", "arithmetic", "column"), make=_importance,
        )
    ),
}  # fmt: skip

SCHEDULES: dict[str, Word] = {
    **_words(BallsInBins, CyclicPoisson),
    **_named(Word("rounds", ("steps",), whole=("steps",), make=Rounds)),
}

_NOISE = ("sensitivity", "neighbors")
MECHANISMS: dict[str, Word] = _named(
    Word("laplace", ("scale",), _NOISE, make=Laplace),
    Word("gaussian", ("sigma",), _NOISE, make=Gaussian),
    Word("discrete-laplace", ("scale",), _NOISE, whole=("sensitivity",), make=DiscreteLaplace),
    Word("discrete-gaussian", ("sigma",), _NOISE, whole=("sensitivity",), make=DiscreteGaussian),
    Word("exact-laplace", ("scale",), ("sensitivity",), make=ExactLaplace),
    Word("exact-gaussian", ("sigma",), ("sensitivity",), make=ExactGaussian),
    Word("geometric", ("epsilon",), ("neighbors",), make=GeometricCount),
    Word("randomized-response", ("epsilon",), ("categories",), whole=("categories",), make=RandomizedResponse),
    Word("norm", ("scale", "dimension"), ("p", *_NOISE), whole=("dimension",), make=NormNoise),
    Word("pure", ("epsilon",), ("neighbors",), make=PureDP),
    Word("approx", ("epsilon", "delta"), ("neighbors",), make=ApproxDP),
)


def design(text: str) -> Design:
    """A design from its spec.

    >>> design("multistage:wor=118,wr=200,population=10000")
    MultiStage(stages=(('wor', 118), ('wr', 200)), population=10000)
    """
    return _design(text, unknown=False)  # type: ignore[no-any-return]


def _design(text: str, *, unknown: bool) -> Any:
    """A design, or with `unknown` perhaps the key of its unknown and a function of it."""
    if not _is_stratified(text):
        return _read(text, DESIGNS, "design", {}, Design, unknown=unknown)
    found: dict[str | int, Any] = {name: _design(part, unknown=unknown) for name, part in _strata(text).items()}
    holes = {name: part for name, part in found.items() if isinstance(part, tuple)}
    if len(holes) > 1:
        raise InvalidInput(f"design {text!r} has {len(holes)} unknowns marked '?', only one is allowed here")
    if not holes:
        return Stratified(found)
    ((name, (key, build)),) = holes.items()
    return key, lambda value: Stratified(found | {name: build(value)})


def _is_stratified(text: str) -> bool:
    return text.partition(":")[0] == "stratified"


def _strata(text: str) -> dict[str, str]:
    """The specs in brackets by the names of their strata."""
    rest = text.partition(":")[2]
    found = re.findall(r"([^=,\[\]]+)=\[([^\[\]]*)\]", rest)
    if not found or ",".join(f"{name}=[{part}]" for name, part in found) != rest:
        raise InvalidInput(f"'stratified' takes name=[design],name=[design],… got {text!r} instead")
    if len(dict(found)) < len(found):
        raise InvalidInput(f"'stratified' takes each stratum once, got one twice in {text!r}")
    return dict(found)


def part_with_unknown(text: str) -> str:
    """The design that has the unknown: that of a stratum, or the whole spec."""
    parts = _strata(text).values() if _is_stratified(text) else [text]
    return next((part for part in parts if UNKNOWN in part), text)


def design_or_schedule(text: str) -> Design | Schedule:
    """A design, or a schedule of many rounds, from its spec.

    >>> design_or_schedule("rounds:steps=100,design=poisson:rate=0.01")
    Rounds(design=Poisson(rate=0.01), steps=100)
    """
    if text.startswith("rounds:"):
        counts, marker, inner = text.partition("design=")
        if not marker:
            raise InvalidInput(f"'rounds' needs steps=… and, last, design=…, got {text!r} instead")
        word = Word("rounds", ("steps",), whole=("steps",), make=lambda steps: Rounds(design(inner), steps))
        return _read(counts.rstrip(","), SCHEDULES | {"rounds": word}, "schedule", {}, Schedule)  # type: ignore[no-any-return]
    if _is_stratified(text):
        return design(text)
    words = DESIGNS | SCHEDULES
    return _read(text, words, "design", {}, Design, Schedule)  # type: ignore[no-any-return]


def design_with_unknown(text: str) -> Design | tuple[str, Callable[[Any], Design]]:
    """A design, or the key of its unknown and a function of it."""
    return _design(text, unknown=True)  # type: ignore[no-any-return]


def mechanism(text: str, neighbors: Neighbors) -> Mechanism:
    """A mechanism from its spec; its sensitivity is for `neighbors` unless the spec says otherwise.

    >>> mechanism("gaussian:sigma=4,sensitivity=2", Neighbors.REPLACE_ONE).sensitivity
    2.0
    """
    return _read(text, MECHANISMS, "mechanism", {"neighbors": neighbors}, Mechanism)  # type: ignore[no-any-return]


def mechanism_with_unknown(text: str, neighbors: Neighbors) -> Mechanism | tuple[str, Callable[[Any], Mechanism]]:
    """A mechanism, or the key of its unknown and a function of it."""
    given = {"neighbors": neighbors}
    return _read(text, MECHANISMS, "mechanism", given, Mechanism, unknown=True)  # type: ignore[no-any-return]


def design_word(text: str) -> Word:
    """What the word at the start of a design's spec takes."""
    name = text.partition(":")[0]
    return _known(name, DESIGNS, (Design,))[name]


def mechanism_word(text: str) -> Word:
    """What the word at the start of a mechanism's spec takes."""
    name = text.partition(":")[0]
    return _known(name, MECHANISMS, (Mechanism,))[name]


def stated_for(chosen: Design | Schedule, neighbors: Neighbors | None) -> Neighbors:
    """The relation of a mechanism's sensitivity: the requested one, unless the design needs another."""
    if isinstance(chosen, Schedule):
        designs = [block for block, _ in chosen.blocks() if isinstance(block, Design)]
        return stated_for(designs[0], neighbors) if designs else Neighbors.ADD_REMOVE
    wanted = (neighbors or chosen.natural).per_record
    needs = {theorem.needs for theorem in chosen.theorems if theorem.gives == wanted.kind}
    return Neighbors.ADD_REMOVE if needs == {"add-remove"} else wanted


def _known(name: str, own: dict[str, Word], kinds: tuple[type, ...]) -> dict[str, Word]:
    """The words of privamp, then registered ones and those of installed packages."""
    words = {word: made for kind in kinds for word, made in added_words(kind).items()} | own
    if name not in words and load_installed(name):
        words = {word: made for kind in kinds for word, made in added_words(kind).items()} | own
    return words


def _read(
    text: str, own: dict[str, Word], what: str, defaults: dict[str, Any], *kinds: type, unknown: bool = False
) -> Any:
    name, _, rest = text.partition(":")
    words = _known(name, own, kinds)
    if name not in words:
        listed = ", ".join(words)
        raise InvalidInput(f"{what} must start with one of {listed}, got {name!r} instead{meant(name, words)}")
    word = words[name]
    make = word.make
    assert make is not None  # every word in a table has one
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
            return make(**{k: v for k, v in filled if k not in ("wor", "wr")}, stages=stages)
        return make(**{**allowed, **dict(filled)})

    return (holes[0], build) if holes else build(None)


def _pair(item: str, name: str, word: Word) -> tuple[str, Any]:
    key, equals, value = item.partition("=")
    key = key.strip()
    known = (*word.required, *word.optional)
    if not equals or key not in known:
        listed = ", ".join(f"{k}=…" for k in known)
        raise InvalidInput(f"{name!r} takes {listed}, got {item!r} instead{meant(key, known)}")
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
