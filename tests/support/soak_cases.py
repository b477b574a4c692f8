"""Random mechanisms, designs and relations, many parameters at the ends of their ranges, and what must hold."""

import math
import warnings
from dataclasses import replace

import numpy as np

from privamp import (
    ApproxDP,
    ClusterPPS,
    ClusterSampling,
    ConditionalPoisson,
    DiscreteGaussian,
    DiscreteLaplace,
    ExactGaussian,
    ExactLaplace,
    Gaussian,
    GeometricCount,
    Joint,
    Laplace,
    MultiStage,
    Neighbors,
    NormNoise,
    Poisson,
    PoissonPPS,
    PrivampError,
    Proportional,
    PureDP,
    RandomizedResponse,
    RandomSize,
    SharedRate,
    Stratified,
    Systematic,
    WithoutReplacement,
    WithReplacement,
    amplify,
    compose,
)
from privamp.core.curves import group
from privamp.numerics.roots import NumericalFailure

AR, RO = Neighbors.ADD_REMOVE, Neighbors.REPLACE_ONE
DELTAS = (0.3, 1e-3, 1e-9, 1e-30)


class Draws:
    """Random parameters; a third of them at an end."""

    def __init__(self, seed):
        self.rng = np.random.default_rng(seed)

    def pick(self, *options):
        return options[int(self.rng.integers(len(options)))]

    def between(self, low, high):
        return float(math.exp(self.rng.uniform(math.log(low), math.log(high))))

    def epsilon(self):
        return self.pick(self.between(1e-12, 700.0), self.between(0.05, 5.0), self.pick(1e-12, 1.0, 36.7, 38.0, 700.0))

    def rate(self):
        return self.pick(self.between(1e-12, 1.0), float(self.rng.random()), self.pick(1e-12, 0.5, 1.0 - 2.0**-53, 1.0))

    def size(self, most=10**9):
        return int(self.pick(round(self.between(1, most)), int(self.rng.integers(1, min(most, 9) + 1)), 1, most))

    def mechanism(self):
        n, e = self.pick(AR, RO), self.epsilon()
        return self.pick(
            lambda: PureDP(e, neighbors=n),
            lambda: ApproxDP(min(e, 50.0), self.pick(0.0, 1e-300, self.between(1e-12, 0.9), 1.0), neighbors=n),
            lambda: Laplace(1.0 / e, self.pick(1.0, 0.3), n),
            lambda: Gaussian(1.0 / e, self.pick(1.0, 0.3), n),
            lambda: DiscreteLaplace(max(1.0 / e, 1e-2), self.size(50), n),
            lambda: DiscreteGaussian(min(max(1.0 / e, 0.05), 1e4), self.size(50), n),
            lambda: ExactLaplace(1.0 / e),
            lambda: ExactGaussian(1.0 / e),
            lambda: GeometricCount(min(max(e, 1e-9), 100.0), n),
            lambda: NormNoise(1.0 / e, self.size(30), self.pick(1.0, 2.0, math.inf), neighbors=n),
            lambda: RandomizedResponse(e, self.size(50) + 1),
            lambda: Joint([PureDP(e, neighbors=n)] * self.size(5)),
            lambda: Joint([Gaussian(1.0 / e, neighbors=n)] * self.size(20)),
        )()

    def design(self):
        n = self.size()
        m = max(1, min(n, self.size(n)))
        few, cap, k = self.size(min(n, 10**4)), self.size(20), self.size(200)
        return self.pick(
            lambda: Poisson(self.rate()),
            lambda: PoissonPPS(self.rate()),
            lambda: WithoutReplacement(m, n),
            lambda: WithReplacement(min(few, 50), n),
            lambda: MultiStage((("wor", min(m, 500)), ("wr", self.size(50))), n),
            lambda: MultiStage((("wr", self.size(50)), ("wr", self.size(50))), n),
            lambda: RandomSize.uniform(0, self.size(min(n, 40)), min(max(n, 1), 40) if n >= 40 else 40),
            lambda: Proportional(self.rate()),
            lambda: SharedRate(min(m, 100), max(m, 100), self.size(5)),
            lambda: Systematic(self.size(1000)),
            lambda: Systematic(k, "slots", cap),
            lambda: ClusterSampling(self.size(k), k, cap),
            lambda: ClusterSampling(self.size(k), k, cap, Poisson(self.rate())),
            lambda: ClusterSampling(self.size(k), k, cap, self.size(cap), self.pick(0, cap)),
            lambda: ClusterSampling(self.size(k), k, cap, trim=True),
            lambda: ClusterPPS((0.5, 0.25, 0.25), cap),
            lambda: ClusterPPS.proportional_to_size(k, cap, self.pick(1, cap)),
            lambda: ConditionalPoisson(m, n, 1.0, self.between(1.0, 1e6)),
            lambda: PoissonPPS.proportional(min(m, 1000), 1.0, self.between(1.0, 1e3), n),
            lambda: Stratified({"a": Poisson(self.rate()), "b": Poisson(self.rate())}),
            lambda: Stratified({"a": WithoutReplacement(m, n), "b": WithoutReplacement(1, self.size())}),
        )()

    def relation(self):
        scope = self.pick("anywhere", "anywhere", "within stratum", "within cluster")
        kind = self.pick(AR, RO) if scope == "anywhere" else replace(RO, scope=scope)
        return kind.for_person(self.pick(1, 1, 2, 3, 7))


def problems(mechanism, design, relation, steps=1):
    """Sentences about whatever is wrong; nothing when it is refused or right."""
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        try:
            one = amplify(mechanism, design, relation)
            found = compose(one, steps) if steps > 1 else one
            return list(_wrong(mechanism, relation, one, found))
        except (PrivampError, NumericalFailure):
            return []


def _wrong(mechanism, relation, one, found):
    top = found.epsilon()
    end = top if math.isfinite(top) else max(found.epsilon(1e-12), 1.0)
    if not math.isfinite(end) or end <= 0.0:
        end = 1.0
    at = np.concatenate([[0.0], end * np.array([1e-9, 1e-3, 0.1, 0.3, 0.6, 0.9, 1.0 - 1e-9, 1.0, 1.5])])
    at = np.unique(np.concatenate([-at, at]))
    delta = np.asarray(found.delta(at))
    if np.any(np.isnan(delta)) or np.any(delta < 0) or np.any(delta > 1):
        yield f"delta is not a probability: {delta}"
    above = delta[at >= 0]
    if np.any(np.diff(above) > 1e-2 * above[1:]):
        yield f"delta grows with epsilon: {above}"
    if np.any(delta < -np.expm1(np.minimum(at, 0.0)) * (1.0 - 1e-12)):
        yield "delta at a negative epsilon is below 1 - e^epsilon"
    if math.isfinite(top) and found.delta(top * (1.0 + 1e-12)) > 0.0:
        yield "delta does not vanish at the pure epsilon"
    yield from _back_and_forth(found, top)
    yield from _lower(found, at, delta)
    yield from _group(one, relation)


def _back_and_forth(found, top):
    values = [found.epsilon(delta) for delta in DELTAS]
    # each is an upper bound by itself, from a search of its own: they may disagree in late digits
    if any(a > b * (1.0 + 1e-9) for a, b in zip(values, [*values[1:], top], strict=True)):
        yield f"epsilon falls when delta does: {values}, {top}"
    for delta, epsilon in zip(DELTAS, values, strict=True):
        if math.isfinite(epsilon) and found.delta(epsilon) > delta * (1.0 + 1e-13):
            yield f"delta({epsilon}) is {found.delta(epsilon)}, above {delta}"


def _lower(found, at, delta):
    if found.lower is None:
        return
    lower = np.asarray(found.lower.delta(at))
    if np.any(np.isnan(lower)) or np.any(lower > delta * (1.0 + 1e-12) + 1e-300):
        yield f"the lower bound exceeds the upper: {lower} > {delta}"
    for share in (0.0, *DELTAS):
        if found.lower.epsilon(share) > found.epsilon(share) * (1.0 + 1e-12):
            yield f"lower epsilon({share}) is {found.lower.epsilon(share)}, upper {found.epsilon(share)}"


def _group(one, relation):
    if relation.records == 1 and math.isfinite(one.epsilon()):
        pair = group(one.upper, 2)
        two, single = (np.asarray(profile.delta([0.0, 0.5])) for profile in (pair, one.upper))
        if pair.largest_loss < one.epsilon() or np.any(two < single * (1.0 - 1e-12)):
            yield "two records lose less than one"
