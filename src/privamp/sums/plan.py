"""From public facts to a noise and a design: what is fixed before a single record is looked at."""

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import cast

import numpy as np

from ..amplification import amplify
from ..calibration import calibrate
from ..core.design import Design
from ..core.neighbors import Neighbors
from ..designs.importance import ImportanceSampling
from ..designs.poisson import Poisson
from ..errors import Infeasible, InvalidInput, NoTheorem
from ..mechanisms.augmented_rows import AugmentedRows
from ..mechanisms.fixed_point import RECORDS, grid_for
from ..numerics.log_domain import FloatArray
from ..numerics.roots import NumericalFailure, least_passing
from ..rules.noise_and_size import noise_for_size, size_for_noise
from ..rules.norm_histogram import NormHistogram
from ..rules.privacy_constrained import privacy_constrained
from ..rules.profiles import GaussianProfile, LinearProfile
from ..rules.rule import Rule
from ..rules.uniform import uniform
from .noises import make_noise, norm_of

_LEAST_NOISE, _MOST_NOISE = 1e-9, 1e9  # between them noise is looked for
_HEAVY = 16.0  # a weighted sum may stray this far above radius * records before it wraps around


@dataclass(frozen=True, slots=True)
class Facts:
    """Everything public about one release."""

    radius: float
    epsilon: float | None
    delta: float
    noise: str
    arithmetic: str
    p: float
    scale: float | None  # of the noise in the answer
    sample_size: float | None
    population: int | None
    dimension: int  # of the rows
    per_record: float  # see AugmentedRows
    per_norm: float
    neighbors: Neighbors | None
    norms: NormHistogram | None

    def histogram(self) -> NormHistogram:
        """The public norms; all at the radius when none are given."""
        if self.norms is not None:
            return self.norms
        self.rate()
        return NormHistogram([self.radius], [float(self.population or 0)])

    def mechanism(self, scale: float, *, weighted: bool = False) -> AugmentedRows:
        """The noise of this scale on the rows."""
        p = norm_of(self.noise, self.p)
        own = self.per_norm * self.radius
        longest = self.per_record + own if self.noise != "gaussian" else math.hypot(self.per_record, own)
        longest *= 1.0 + 1e-12
        grid = 0.0
        if self.arithmetic == "exact":
            grid = grid_for(scale, longest * (_HEAVY if weighted else 1.0), self.population or RECORDS)
        noise = make_noise(self.noise, self.arithmetic, scale, self.dimension, p, longest, grid)
        return AugmentedRows(noise, self.radius, self.per_record, self.per_norm)

    def least_noise(self) -> float:
        """In units of the longest row: less does not fit 64 bits in exact arithmetic."""
        return max(_LEAST_NOISE, 2.0**-52 * (self.population or RECORDS) if self.arithmetic == "exact" else 0.0)

    def rate(self) -> float:
        """sample_size / population."""
        if self.sample_size is None or self.population is None:
            raise InvalidInput("a sample size needs the public number of records; give sample_size= and population=")
        if not 0 < self.sample_size <= self.population:
            raise InvalidInput(
                f"sample_size must be above 0 and at most the population, got {self.sample_size!r} instead"
            )
        return self.sample_size / self.population

    def meets(self, log_delta: float, pure: float) -> float:
        """How far from the target; at most 0 when it is reached."""
        assert self.epsilon is not None
        return log_delta - math.log(self.delta) if self.delta else pure / self.epsilon - 1.0


@dataclass(frozen=True, slots=True)
class Plan:
    """A noise, a design, and what the released sum is multiplied with."""

    mechanism: AugmentedRows
    design: Design
    factor: float = 1.0

    @property
    def rule(self) -> Rule | None:
        """The rule, where records have weights."""
        return cast("Rule | None", self.design.weighing_rule)

    @property
    def records(self) -> int | None:
        """The number of records that there must be, where the design is stated for replaced ones and declares it."""
        return None if self.design.natural.kind == "add-remove" else self.design.public_size

    @property
    def spread(self) -> float | None:
        """The sampling variance is at most this times the sum of squares; None where no bound is known."""
        return 1.0 if self.rule is not None else self.design.spread

    @property
    def grid(self) -> float:
        """The grid of the answer; 0 in idealised arithmetic."""
        return getattr(self.mechanism.noise, "grid", 0.0) * self.factor

    def worst(self, power: int, radius: float) -> float:
        """An upper bound on the supremum of (w(u) - 1) u^power over the ball; weights fall as the norm u grows."""
        if self.rule is None:
            if self.spread is None:
                raise NoTheorem("no bound on the sampling variance of this design is known")
            return self.spread * radius**power
        end = radius if self.rule.radius is None else self.rule.radius
        edges = np.concatenate([[0.0], end * np.exp2(-np.arange(2400, -1, -1) / 32.0)])
        w: FloatArray = self.rule.weights_of_norms(edges)
        return float(np.max((w[:-1] - 1.0) * edges[1:] ** power))


def plan(facts: Facts, sampler: str | Rule | Design | None) -> Plan:
    """The plan, or a sentence that says what is missing."""
    if isinstance(sampler, Rule):
        return Plan(facts.mechanism(_given(facts, "a rule"), weighted=True), ImportanceSampling(sampler))
    if sampler is None:
        return _plain(facts, Poisson(1.0), 1.0)
    if isinstance(sampler, Design):
        return _plain(facts, sampler, _factor(sampler))
    if sampler not in ("uniform", "privacy-constrained"):
        raise InvalidInput(
            "sampler must be None, 'uniform', 'privacy-constrained', a rule or a design such as Poisson or "
            f"WithoutReplacement, got {sampler!r} instead"
        )
    known = [facts.epsilon is not None, facts.scale is not None, facts.sample_size is not None]
    if sum(known) != 2:
        raise InvalidInput(f"{sampler} sampling needs exactly two of epsilon, scale and sample_size")
    return _uniform(facts) if sampler == "uniform" else _constrained(facts)


def _factor(design: Design) -> float:
    """What a plain sum over the sample is multiplied with."""
    if design.weight is None or design.reads:
        raise InvalidInput(
            "sampler must be a design that weights all records alike, by a public number, and looks at none of their "
            f"columns, got {design} instead; take Poisson or WithoutReplacement, or give a rule"
        )
    return design.weight


def _given(facts: Facts, what: str) -> float:
    if facts.scale is None or facts.epsilon is not None:
        raise InvalidInput(f"{what} needs scale=, the noise it was made for, and no epsilon=")
    return facts.scale


def _plain(facts: Facts, design: Design, factor: float) -> Plan:
    """Records without weights: their sum is multiplied afterwards, which costs nothing."""
    if facts.sample_size is not None:
        raise InvalidInput("sample_size goes with sampler='uniform' or 'privacy-constrained'")
    if (facts.epsilon is None) == (facts.scale is None):
        raise InvalidInput("give either epsilon (noise is calibrated) or scale (noise is declared)")
    if facts.scale is not None:
        return Plan(facts.mechanism(facts.scale / factor), design, factor)
    unit = facts.mechanism(facts.radius).longest(facts.radius)
    found = calibrate(
        lambda s: facts.mechanism(s * unit),
        design,
        epsilon=facts.epsilon or 0.0,
        delta=facts.delta,
        neighbors=facts.neighbors,
        within=(facts.least_noise(), _MOST_NOISE),
    )
    assert isinstance(found, AugmentedRows)
    return Plan(found, design, factor)


def _uniform(facts: Facts) -> Plan:
    if facts.scale is None or facts.epsilon is None:
        rate = facts.rate()
        return _plain(replace(facts, sample_size=None), Poisson(rate), 1.0 / rate)
    scale = facts.scale

    def excess(q: float) -> float:
        try:
            guarantee = amplify(facts.mechanism(scale * q), Poisson(q), facts.neighbors)
        except InvalidInput:  # so little noise that the sum does not fit its grid
            return math.inf
        return facts.meets(float(guarantee.upper.log_delta(facts.epsilon or 0.0)), guarantee.epsilon())

    rate = _solved(excess, 1e-6, 1.0, "even all records do not reach this epsilon at this scale; add noise")
    return Plan(facts.mechanism(scale * rate), Poisson(rate), 1.0 / rate)


def _constrained(facts: Facts) -> Plan:
    """Weights as the rule says; a size is that of the public norms, or the most there can be when none are given."""
    if facts.scale is None:
        try:
            found = noise_for_size(
                lambda s: facts.mechanism(s * facts.radius, weighted=True),
                facts.histogram(),
                size=facts.sample_size or 0.0,
                epsilon=facts.epsilon or 0.0,
                delta=facts.delta,
                radius=facts.radius,
            )
        except Infeasible:  # its message counts noise in units of the radius
            raise Infeasible(
                f"an expected size of {facts.sample_size:g} cannot be reached at epsilon {facts.epsilon:g}: even the "
                "least noise that lets a record at the radius in gives fewer; ask for less, a larger epsilon or a "
                "smaller radius"
            ) from None
        assert isinstance(found.mechanism, AugmentedRows)
        return Plan(found.mechanism, ImportanceSampling(found.rule))
    mechanism = facts.mechanism(facts.scale, weighted=True)
    epsilon = facts.epsilon or _epsilon_for_size(facts, mechanism)
    return Plan(mechanism, ImportanceSampling(_rule(facts, mechanism, epsilon)))


def _epsilon_for_size(facts: Facts, mechanism: AugmentedRows) -> float:
    """The least epsilon with which the sample is small enough: rarer records need more of it."""
    if facts.norms is None:  # all at the radius: a uniform sample's epsilon
        own = uniform(_profile(mechanism), rate=facts.rate(), radius=facts.radius)
        return own.guarantee().epsilon(facts.delta) * (1.0 + 1e-12)
    histogram = facts.histogram()

    def excess(epsilon: float) -> float:
        try:
            size = size_for_noise(mechanism, histogram, epsilon=epsilon, delta=facts.delta, radius=facts.radius)
        except Infeasible:
            return math.inf
        return math.log(size / (facts.sample_size or 0.0))

    return _solved(excess, 1e-4, 100.0, "no epsilon reaches this size at this scale; add noise", relative=1e-5)


def _profile(mechanism: AugmentedRows) -> LinearProfile | GaussianProfile:
    influence = mechanism.influence
    return LinearProfile(influence) if influence.kind == "pure" else GaussianProfile(influence)


def _rule(facts: Facts, mechanism: AugmentedRows, epsilon: float) -> Rule:
    profile = _profile(mechanism)
    if isinstance(profile, GaussianProfile):
        return privacy_constrained(profile, epsilon, facts.delta, radius=facts.radius)
    return privacy_constrained(profile, epsilon, radius=facts.radius)


def _solved(excess: Callable[[float], float], low: float, high: float, why: str, relative: float = 1e-9) -> float:
    try:
        return least_passing(excess, low, high, relative=relative)
    except NumericalFailure:
        raise Infeasible(why) from None
