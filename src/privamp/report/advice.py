"""Advice for designs that repeat records: how a smaller simple random sample compares.

epsilon' measures only how few different records a multiset sample reads (n eta), and any design can achieve that by
drawing less. So each multiset design is compared with the sample without replacement that reads as many different
records: its epsilon at the same delta, with the same mechanism and with the noise on the *mean* made equal, the draws,
and the sampling error. Counts u of exchangeable records with a fixed total m give a sample mean the variance S^2 n
Var(u)/m^2, S^2 the population's.
"""

import math
import warnings
from dataclasses import asdict, dataclass, replace
from typing import Any

import numpy as np

from ..accounting.composition import compose
from ..amplification import amplify
from ..core.design import Design
from ..core.mechanism import Mechanism
from ..designs.simple_random import WithoutReplacement
from ..errors import DegradingDesign, NoTheorem
from ..numerics.printing import shown_up
from ..numerics.roots import NumericalFailure
from .comparison import Comparison, Question, Row

NEEDED = "the procedure itself needs the repeats (bag of little bootstraps, double bootstrap)"


@dataclass(frozen=True, slots=True)
class Advice:
    """One multiset design beside a simple random sample that reads as many different records."""

    label: str
    epsilon_upper: float | None  # of the multiset design, at the question's delta
    epsilon_lower: float | None
    draws: float
    distinct: float
    sampling_error: float  # of the sample mean, in standard deviations of the records
    instead_size: int
    instead_epsilon: float  # certified, same mechanism
    instead_epsilon_same_noise: float | None  # certified, with the noise on the mean as large as the multiset design's
    instead_sampling_error: float

    @property
    def better_everywhere(self) -> bool:
        """Whether it is proved to have less privacy loss at the same noise on the mean, no more records, and a smaller
        sampling error."""
        known = self.epsilon_lower if self.epsilon_lower is not None else self.epsilon_upper
        same = self.instead_epsilon_same_noise
        cheaper = known is None or (same is not None and same <= known)
        return cheaper and same is not None and self.instead_sampling_error <= self.sampling_error * (1.0 + 1e-9)

    @property
    def better(self) -> bool:
        """Whether the simple sample costs less privacy with the same mechanism."""
        return self.epsilon_upper is None or self.instead_epsilon < self.epsilon_upper

    def sentence(self) -> str:
        """The advice in one sentence."""
        records = "1 record" if self.instead_size == 1 else f"{self.instead_size:,} records"
        cost = (
            "cannot be certified here" if self.epsilon_upper is None else f"costs ε = {shown_up(self.epsilon_upper, 3)}"
        )
        other = f"a without-replacement sample of {records} has the same number of distinct records"
        if not self.better:
            return (
                f"{self.label} {cost}; {other} and costs ε = {shown_up(self.instead_epsilon, 3)}, so here the multiset "
                "design is no worse in privacy."
            )
        noise = ""
        if self.instead_epsilon_same_noise is not None:
            noise = f" (ε = {shown_up(self.instead_epsilon_same_noise, 3)} with as little noise on the mean)"
        end = "It is better in every respect: use" if self.better_everywhere else "Take"
        return (
            f"{self.label} {cost}; {other} and costs ε = {shown_up(self.instead_epsilon, 3)}{noise}, with "
            f"{self.instead_size:,} draws instead of {self.draws:g} and a sampling error of "
            f"{self.instead_sampling_error:.3g} instead of {self.sampling_error:.3g} standard deviations. "
            f"{end} {self.label} only where {NEEDED}."
        )

    def to_json(self) -> dict[str, Any]:
        """For machines."""
        verdict = {"better": self.better, "better_on_every_axis": self.better_everywhere, "sentence": self.sentence()}
        return asdict(self) | verdict


def advise(found: Comparison) -> tuple[Advice, ...]:
    """Advice for every row that repeats records, if it has a number."""
    several = (_advice(row, found.question) for row in found.rows if row.repeats)
    return tuple(advice for advice in several if advice)


def _advice(row: Row, question: Question) -> Advice | None:
    population = row.design.public_size
    if population is None or row.expected_distinct is None or row.expected_size is None:
        return None
    size = max(math.floor(row.expected_distinct + 1e-9), 1)
    instead = WithoutReplacement(size, population)
    cost = _epsilon(question.mechanism, instead, question)
    if cost is None:
        return None
    louder = _weighted(question.mechanism, row.expected_size / size)
    return Advice(
        row.label,
        row.epsilon_upper,
        row.epsilon_lower,
        row.expected_size,
        row.expected_distinct,
        sampling_error(row.design, population),
        size,
        cost,
        _epsilon(louder, instead, question) if louder else None,
        sampling_error(instead, population),
    )


def sampling_error(design: Design, population: int) -> float:
    """Standard error of the sample mean over the records' standard deviation.

    >>> round(sampling_error(WithoutReplacement(250, 1000), 1000), 6)  # sqrt((1 - 1/4)/250)
    0.054772
    """
    law = design.appearances()
    chances = np.exp(law.log_p)
    variance = float(law.counts**2 @ chances) - law.mean**2
    return math.sqrt(max(population * variance, 0.0)) / (population * law.mean)


def _weighted(mechanism: Mechanism, factor: float) -> Mechanism | None:
    """The mechanism on values `factor` times as large; None for one whose sensitivity is not known."""
    if "sensitivity" not in getattr(mechanism, "__dataclass_fields__", {}):
        return None
    plain: Any = mechanism
    louder: Mechanism = replace(plain, sensitivity=plain.sensitivity * factor)
    return louder


def _epsilon(mechanism: Mechanism, design: Design, question: Question) -> float | None:
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", DegradingDesign)
            one = amplify(mechanism, design, question.neighbors)
        return compose(one, question.steps).epsilon(question.delta)
    except (NoTheorem, NumericalFailure):
        return None
