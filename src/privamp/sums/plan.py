"""From public facts to a noise and a design: what is fixed before any record is read."""

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from typing import cast

import numpy as np

from ..amplification import amplify
from ..calibration import calibrate
from ..core.design import Design
from ..designs.importance import ImportanceSampling
from ..designs.poisson import Poisson
from ..errors import Infeasible, InvalidInput, NoTheorem
from ..mechanisms.augmented_rows import AugmentedRows
from ..numerics.log_domain import FloatArray
from ..numerics.roots import NumericalFailure, least_passing
from ..rules.noise_and_size import noise_for_size, size_for_noise
from ..rules.norm_histogram import NormHistogram
from ..rules.privacy_constrained import privacy_constrained
from ..rules.profiles import GaussianProfile, LinearProfile
from ..rules.rule import Rule
from ..rules.uniform import uniform
from .options import SumOptions
from .rows import Rows

_MOST_NOISE = 1e9  # in units of the longest row


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


def plan(rows: Rows) -> Plan:
    """The plan; raises if something is missing. It is cached: the same public facts give the same plan, and noise is
    calibrated once.
    """
    try:
        hash(rows)
    except TypeError:  # facts in a list or an array
        return _planned(rows)
    return remembered_plan(rows)


@lru_cache(maxsize=128)
def remembered_plan(rows: Rows) -> Plan:
    """The plan of rows whose facts can be compared."""
    return _planned(rows)


def _planned(rows: Rows) -> Plan:
    options, sampler = rows.options, rows.options.sampler
    if isinstance(sampler, Rule):
        return Plan(rows.mechanism(_given(rows, "a rule"), weighted=True), ImportanceSampling(sampler))
    if sampler is None or isinstance(sampler, Design):
        if options.sample_size is not None:
            raise InvalidInput("sample_size needs sampler='uniform' or 'privacy-constrained'")
        return _plain(rows, Poisson(1.0), 1.0) if sampler is None else _plain(rows, sampler, _factor(sampler))
    if sampler not in ("uniform", "privacy-constrained"):
        raise InvalidInput(
            "sampler must be None, 'uniform', 'privacy-constrained', a rule or a design such as Poisson or "
            f"WithoutReplacement, got {sampler!r} instead"
        )
    known = [options.epsilon is not None, options.scale is not None, options.sample_size is not None]
    if sum(known) != 2:
        raise InvalidInput(f"{sampler} sampling needs exactly two of epsilon, scale and sample_size")
    return _uniform(rows) if sampler == "uniform" else _constrained(rows)


def _factor(design: Design) -> float:
    """What a plain sum over the sample is multiplied with."""
    if design.weight is None or design.reads:
        raise InvalidInput(
            f"sampler must be a design with one public weight for all records that reads no columns, got {design} "
            "instead; use Poisson or WithoutReplacement, or a rule"
        )
    return design.weight


def _given(rows: Rows, what: str) -> float:
    options = rows.options
    if options.scale is None or options.epsilon is not None:
        raise InvalidInput(f"{what} needs scale=, the noise it was made for, and no epsilon=")
    return options.scale


def _plain(rows: Rows, design: Design, factor: float) -> Plan:
    """Records without weights: their sum is multiplied afterwards, which costs nothing."""
    options = rows.options
    if (options.epsilon is None) == (options.scale is None):
        raise InvalidInput("give either epsilon (noise is calibrated) or scale (noise is declared)")
    if options.scale is not None:
        return Plan(rows.mechanism(options.scale / factor), design, factor)
    unit = rows.mechanism(rows.radius).longest(rows.radius)
    found = calibrate(
        lambda s: rows.mechanism(s * unit),
        design,
        epsilon=options.epsilon or 0.0,
        delta=options.delta,
        neighbors=options.neighbors,
        within=(rows.least_noise, _MOST_NOISE),
    )
    assert isinstance(found, AugmentedRows)
    return Plan(found, design, factor)


def _uniform(rows: Rows) -> Plan:
    options = rows.options
    if options.scale is None or options.epsilon is None:
        rate = _rate(options)
        return _plain(rows, Poisson(rate), 1.0 / rate)
    scale = options.scale

    def excess(q: float) -> float:
        try:
            guarantee = amplify(rows.mechanism(scale * q), Poisson(q), options.neighbors)
        except InvalidInput:  # so little noise that the sum does not fit its grid
            return math.inf
        return _missed(options, float(guarantee.upper.log_delta(options.epsilon or 0.0)), guarantee.epsilon())

    rate = _solved(excess, 1e-6, 1.0, "not even all records reach this epsilon at this scale; add noise")
    return Plan(rows.mechanism(scale * rate), Poisson(rate), 1.0 / rate)


def _constrained(rows: Rows) -> Plan:
    """Weights by the rule; the size is for the public norms, or the largest possible if none are given."""
    options = rows.options
    if options.scale is None:
        try:
            found = noise_for_size(
                lambda s: rows.mechanism(s * rows.radius, weighted=True),
                _histogram(rows),
                size=options.sample_size or 0.0,
                epsilon=options.epsilon or 0.0,
                delta=options.delta,
                radius=rows.radius,
            )
        except Infeasible:  # its message counts noise in units of the radius
            raise Infeasible(
                f"an expected size of {options.sample_size:g} cannot be reached at epsilon {options.epsilon:g}: even "
                "the least noise that a record at the bounds allows gives fewer; use a smaller size, a larger "
                "epsilon or closer bounds"
            ) from None
        assert isinstance(found.mechanism, AugmentedRows)
        return Plan(found.mechanism, ImportanceSampling(found.rule))
    mechanism = rows.mechanism(options.scale, weighted=True)
    epsilon = options.epsilon or _epsilon_for_size(rows, mechanism)
    return Plan(mechanism, ImportanceSampling(_rule(rows, mechanism, epsilon)))


def _epsilon_for_size(rows: Rows, mechanism: AugmentedRows) -> float:
    """The least epsilon with which the sample is small enough: rarer records need more of it."""
    options = rows.options
    if options.norms is None:  # all at the radius: a uniform sample's epsilon
        own = uniform(_profile(mechanism), rate=_rate(options), radius=rows.radius)
        return own.guarantee().epsilon(options.delta) * (1.0 + 1e-12)
    histogram = _histogram(rows)

    def excess(epsilon: float) -> float:
        try:
            size = size_for_noise(mechanism, histogram, epsilon=epsilon, delta=options.delta, radius=rows.radius)
        except Infeasible:
            return math.inf
        return math.log(size / (options.sample_size or 0.0))

    return _solved(excess, 1e-4, 100.0, "no epsilon reaches this size at this scale; add noise", relative=1e-5)


def _profile(mechanism: AugmentedRows) -> LinearProfile | GaussianProfile:
    influence = mechanism.influence
    return LinearProfile(influence) if influence.kind == "pure" else GaussianProfile(influence)


def _rule(rows: Rows, mechanism: AugmentedRows, epsilon: float) -> Rule:
    profile = _profile(mechanism)
    if isinstance(profile, GaussianProfile):
        return privacy_constrained(profile, epsilon, rows.options.delta, radius=rows.radius)
    return privacy_constrained(profile, epsilon, radius=rows.radius)


def _rate(options: SumOptions) -> float:
    """sample_size / population."""
    if options.sample_size is None or options.population is None:
        raise InvalidInput("a sample size needs the public number of records; give sample_size= and population=")
    if not 0 < options.sample_size <= options.population:
        raise InvalidInput(
            f"sample_size must be above 0 and at most the population, got {options.sample_size!r} instead"
        )
    return options.sample_size / options.population


def _histogram(rows: Rows) -> NormHistogram:
    """The public norms; all at the radius when none are given."""
    options = rows.options
    if options.norms is not None:
        return options.norms
    _rate(options)
    return NormHistogram([rows.radius], [float(options.population or 0)])


def _missed(options: SumOptions, log_delta: float, pure: float) -> float:
    """How far from the target; at most 0 when it is reached."""
    assert options.epsilon is not None
    return log_delta - math.log(options.delta) if options.delta else pure / options.epsilon - 1.0


def _solved(excess: Callable[[float], float], low: float, high: float, why: str, relative: float = 1e-9) -> float:
    try:
        return least_passing(excess, low, high, relative=relative)
    except NumericalFailure:
        raise Infeasible(why) from None
