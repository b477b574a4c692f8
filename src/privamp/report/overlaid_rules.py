"""Importance-sampling rules side by side: one noise, one expected sample size, four ways to choose probabilities.

Everything here is public: the noise, the domain, and a guess of how the norms are distributed. The guess affects the
expected sample sizes, never the guarantees.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

import numpy as np

from ..core.mechanism import Mechanism
from ..errors import Infeasible, InvalidInput
from ..mechanisms.gaussian import Gaussian
from ..mechanisms.laplace import Laplace
from ..mechanisms.norm_noise import NormNoise
from ..numerics.log_domain import FloatArray, as_floats
from ..numerics.printing import as_asked, shown_up
from ..numerics.roots import least_passing
from ..rules.coreset import coreset, largest_size
from ..rules.noise_and_size import noise_for_guarantee, noise_for_size
from ..rules.norm_histogram import NormHistogram
from ..rules.privacy_constrained import privacy_constrained
from ..rules.profiles import GaussianProfile, LinearProfile
from ..rules.rule import Rule
from ..rules.uniform import uniform
from ..rules.variance_optimal import variance_optimal
from ..validation import in_range, one_of, positive, whole
from .pictures import COLORS, GREY, check_picture, new_figure, plain_ticks, save, tidy

Noise = Literal["laplace", "norm", "gaussian"]
NOISES = ("laplace", "norm", "gaussian")
CONSTRAINED = "privacy-constrained"
_SHARE = 0.5  # the coreset rule's uniform part
_FINE = 200  # norms of a curve


@dataclass(frozen=True, slots=True)
class Facts:
    """The public facts that all rules are made from."""

    noise: Noise
    epsilon: float
    delta: float
    radius: float
    dimension: int
    norms: NormHistogram = field(repr=False)

    def __post_init__(self) -> None:
        one_of(NOISES, noise=self.noise)
        positive(epsilon=self.epsilon, radius=self.radius)
        whole(1, dimension=self.dimension)
        in_range(0, 1, delta=self.delta)
        if self.noise == "gaussian" and not 0 < self.delta < 1:
            raise InvalidInput(f"Gaussian noise needs a delta strictly between 0 and 1, got {self.delta:g} instead")
        if self.noise != "gaussian" and self.delta != 0:
            raise InvalidInput(
                f"delta must be 0 for {self.noise} noise, got {self.delta:g}; use gaussian noise for a delta above 0"
            )
        if self.norms.norms[-1] > self.radius:
            raise InvalidInput(
                f"norms must not exceed the radius {self.radius:g}, got {self.norms.norms[-1]:g}; enlarge the radius"
            )

    def mechanism(self, scale: float) -> Mechanism:
        """A sum with noise of this scale."""
        if self.noise == "laplace":
            return Laplace(scale)
        return Gaussian(scale) if self.noise == "gaussian" else NormNoise(scale, self.dimension)

    def profile(self, mechanism: Mechanism) -> Any:
        """How much a record of each norm influences the release."""
        return (GaussianProfile if self.noise == "gaussian" else LinearProfile).of(mechanism)

    @property
    def mean_square(self) -> float:
        """The mean squared norm of the guessed norms."""
        u, n = self.norms.arrays()
        return float(np.sum(n * u**2) / np.sum(n))

    @property
    def is_l2(self) -> bool:
        """Whether the noise measures records by their l2 norm; in one dimension all norms are the same."""
        return self.noise != "laplace" or self.dimension == 1


@dataclass(frozen=True, slots=True)
class Row:
    """One rule at the common noise."""

    name: str
    rule: Rule
    facts: Facts
    noise_needed: float | None  # noise that would meet the target at this size

    @property
    def epsilon(self) -> float:
        """Certified for every record in the ball."""
        return self.rule.guarantee().epsilon(self.facts.delta)

    @property
    def expected_size(self) -> float:
        """The expected sample size for the guessed norms."""
        return self.rule.expected_size(*self.facts.norms.arrays())

    @property
    def sampling_error(self) -> float:
        """Standard deviation of the weighted sum from sampling, all dimensions together, for the guessed norms."""
        u, n = self.facts.norms.arrays()
        return math.sqrt(float(np.sum(n * (self.rule.weights_of_norms(u) - 1.0) * u**2)))

    def to_json(self, norms: FloatArray) -> dict[str, Any]:
        """The rule's name and all its numbers, as the command prints them."""
        return {
            "rule": self.name,
            "epsilon_upper": self.epsilon,
            "expected_size": self.expected_size,
            "noise_needed": self.noise_needed,
            "sampling_error": self.sampling_error,
            "probabilities": self.rule.of_norms(norms).tolist(),
            "weights": self.rule.weights_of_norms(norms).tolist(),
            "losses": self.rule.losses_of_norms(norms).tolist(),
        }


@dataclass(frozen=True, slots=True)
class Overlay:
    """All rules at one noise scale."""

    facts: Facts
    scale: float
    rows: tuple[Row, ...]
    left_out: str = ""  # why a rule is missing

    @property
    def everybody(self) -> Row:
        """The same noise without sampling."""
        facts = self.facts
        profile = facts.profile(facts.mechanism(self.scale))
        return Row("everybody", uniform(profile, rate=1.0, radius=facts.radius, delta=facts.delta), facts, None)


def overlay(facts: Facts, *, scale: float | None, size: float | None) -> Overlay:
    """The privacy-constrained rule at this noise, or at this expected size, and the others at its expected size."""
    if scale is None:
        found = noise_for_size(
            facts.mechanism, facts.norms, size=size or facts.norms.population / 10, epsilon=facts.epsilon,
            delta=facts.delta, radius=facts.radius,
        )  # fmt: skip
        scale, constrained = found.noise, found.rule
    else:
        profile = facts.profile(facts.mechanism(scale))
        constrained = privacy_constrained(profile, facts.epsilon, facts.delta, radius=facts.radius)
    size = constrained.expected_size(*facts.norms.arrays())
    others, left_out = _others(facts, size)
    rows = [Row(CONSTRAINED, constrained, facts, scale)]
    for name, make in others.items():
        rows.append(Row(name, make(facts.mechanism(scale)), facts, _needed(facts, make)))
    return Overlay(facts, scale, tuple(rows), left_out)


def _others(facts: Facts, size: float) -> tuple[dict[str, Callable[[Mechanism], Rule]], str]:
    """How to make the other rules from a mechanism, at this expected size."""
    n, r, delta = facts.norms.population, facts.radius, facts.delta
    kappa = _kappa(facts, size)
    made: dict[str, Callable[[Mechanism], Rule]] = {
        "uniform": lambda m: uniform(facts.profile(m), rate=min(size / n, 1.0), radius=r, delta=delta),
        "variance-optimal": lambda m: variance_optimal(facts.profile(m), kappa=kappa, radius=r, delta=delta),
    }
    if not facts.is_l2:
        return made, "coreset uses l2 norms and Laplace noise l1 norms, so it is shown only for norm and gaussian noise"
    if size > largest_size(_SHARE, n, facts.mean_square, r):
        return made, "coreset would need a probability above 1 at the radius for this size; use a smaller size"
    public: dict[str, Any] = {
        "population": n,
        "mean_squared_norm": facts.mean_square,
        "radius": r,
        "dimension": facts.dimension,
    }
    made["coreset"] = lambda m: coreset(facts.profile(m), share=_SHARE, size=size, delta=delta, **public)
    return made, ""


def _kappa(facts: Facts, size: float) -> float:
    """The constant with which min(1, kappa·norm) expects `size` records."""
    u, n = facts.norms.arrays()
    return least_passing(
        lambda kappa: size - float(np.sum(n * np.minimum(kappa * u, 1.0))), 1e-12 / facts.radius, 1e12 / facts.radius,
        relative=1e-10,
    )  # fmt: skip


def _needed(facts: Facts, make: Callable[[Mechanism], Rule]) -> float | None:
    within = (1e-6 * facts.radius / facts.epsilon, 1e9 * facts.radius / min(facts.epsilon, 1.0))
    try:
        found = noise_for_guarantee(facts.mechanism, make, epsilon=facts.epsilon, delta=facts.delta, within=within)
    except Infeasible:
        return None
    return float(found.sigma if isinstance(found, Gaussian) else found.scale)  # type: ignore[attr-defined]


def draw_overlay(found: Overlay, path: Path) -> None:
    """Write the picture of all rules as a PNG file."""
    check_picture(path)
    save(picture_of_overlay(found), path)


def picture_of_overlay(found: Overlay) -> Any:
    """Probability and loss against norm, every rule."""
    facts = found.facts
    norms = np.linspace(facts.radius / _FINE, facts.radius, _FINE)
    figure = new_figure(11.0, 5.3)
    left, right = figure.subplots(1, 2)
    styles = ("-", (0, (6, 2)), (0, (2, 1.5)), (0, (6, 2, 1.5, 2)))
    for row, color, style in zip(found.rows, (COLORS[1], COLORS[0], COLORS[2], COLORS[3]), styles, strict=False):
        how = {"color": color, "linestyle": style, "linewidth": 2.2}
        left.plot(norms, row.rule.of_norms(norms), label=f"{row.name}: ε ≤ {shown_up(row.epsilon, 3)}", **how)
        right.plot(norms, row.rule.losses_of_norms(norms), **how)
    everybody = f"all records: ε ≤ {shown_up(found.everybody.epsilon, 3)}"
    right.plot(norms, found.everybody.rule.losses_of_norms(norms), color=GREY, lw=1.8, ls=":", label=everybody)
    right.axhline(facts.epsilon, color=GREY, lw=0.9)
    at = f" at δ = {as_asked(facts.delta)}" if facts.delta else ""
    where = {"transform": right.get_yaxis_transform(), "va": "bottom", "color": GREY}
    right.text(0.02, facts.epsilon, f"target ε = {as_asked(facts.epsilon)}{at}", **where)
    norm = {"laplace": "ℓ1 norm", "norm": "ℓ2 norm", "gaussian": "ℓ2 norm"}[facts.noise]
    left.set(yscale="log", xlabel=f"{norm} of the record", ylabel="probability of being kept, q")
    right.set(yscale="log", xlabel=f"{norm} of the record", ylabel=f"privacy loss of the record, ε{at}")
    for axes in (left, right):
        axes.set_xlim(0.0, facts.radius)
        plain_ticks(axes.yaxis, (1, 2, 5) if _decades(axes) < 2.5 else (1,))
    size = found.rows[0].expected_size
    of = (
        f"{size:,.3g} of {facts.norms.population:,.6g} records expected, {facts.noise} noise {shown_up(found.scale, 4)}"
    )
    tidy(left, "Probability of being kept", of)
    tidy(right, "Privacy loss", "all rules with the same noise and expected size")
    lines = [line for axes in (left, right) for line in axes.get_legend_handles_labels()[0]]
    figure.legend(handles=lines, loc="outside lower center", ncols=3, frameon=False, handlelength=3.2)
    return figure


def _decades(axes: Any) -> float:
    low, high = axes.get_ylim()
    return math.log10(high / low)


def even(radius: float, population: float) -> NormHistogram:
    """Equally many records at every norm from 0 to the radius."""
    positive(radius=radius, population=population)
    return NormHistogram(as_floats(radius * np.arange(1, 51) / 50), np.full(50, population / 50))
