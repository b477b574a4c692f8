"""How many records to draw from each stratum when the answer is released with noise.

The estimate is sum_h N_h mean_h / N plus noise; strata are drawn without replacement, their sizes N_h and ranges R_h
are public, neighbours replace one record within its stratum. Rates and noise are chosen together (`program`), then
rounded to whole sizes, and the noise is computed again from those. Sampling never reduces the noise that a weighted
mean needs; it only saves interviews.
"""

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from importlib import import_module
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..amplification import amplify
from ..core.guarantee import Guarantee
from ..designs.simple_random import WithoutReplacement
from ..designs.stratified import WITHIN, Stratified
from ..errors import Infeasible, InvalidInput
from ..mechanisms.fixed_point import ExactGaussian, ExactLaplace
from ..mechanisms.per_stratum import PerStratum
from ..numerics.log_domain import FloatArray
from ..validation import nonnegative, one_of, positive, whole
from .hidden_signal import Strength, strength
from .program import Problem, best_rates, shared

METHODS = ("optimal", "minimax", "proportional", "neyman")
_SLOWER = np.concatenate([[0.0], np.geomspace(1e-5, 0.3, 40)])  # how much more noise a rounding may start from
_ROUND_UP = 1.0 + 1e-10  # the certified epsilon must not exceed the target by rounding


@dataclass(frozen=True, slots=True)
class Stratum:
    """Public facts about a stratum: records, range of the values, their standard deviation if known, own epsilon."""

    name: str | int
    population: int  # N_h
    range: float  # R_h = largest - smallest value allowed
    sd: float | None = None  # S_h with divisor N_h - 1, when it is public or released (`pilot`)
    epsilon: float | None = None  # instead of the common one

    def __post_init__(self) -> None:
        whole(1, population=self.population)
        positive(range=self.range)
        if self.sd is not None:
            nonnegative(sd=self.sd)
            if self.population > 1 and self.sd > self.largest_sd * (1.0 + 1e-9):
                raise InvalidInput(
                    f"sd of stratum {self.name!r} must be at most {self.largest_sd:.6g}, the largest for "
                    f"{self.population} values within a range of {self.range:g}, got {self.sd:g} instead; correct it, "
                    "or widen the bounds"
                )
        if self.epsilon is not None:
            positive(epsilon=self.epsilon)

    @property
    def largest_sd(self) -> float:
        """The largest standard deviation that the range allows: half the records at each end."""
        n = self.population
        return 0.5 * self.range * math.sqrt(n / (n - 1)) if n > 1 else 0.0


@dataclass(frozen=True, slots=True)
class Cost:
    """The variance of the released mean: sampling, noise, both; and the noise's scale."""

    sampling: float
    noise: float
    scale: float  # b of Laplace noise, sigma of Gaussian noise

    @property
    def total(self) -> float:
        """Sampling and noise together."""
        return self.sampling + self.noise


@dataclass(frozen=True)
class Allocation:
    """Sizes per stratum and their variances. `ideal_*` is the solution before rounding to whole records."""

    strata: tuple[Stratum, ...]
    method: str
    epsilon: float
    delta: float
    noise: str
    sizes: dict[str | int, int]
    cost: Cost  # at the standard deviations given; at the largest possible ones where none is
    worst_cost: Cost  # at the largest standard deviations that the ranges allow
    ideal_sizes: dict[str | int, float]
    ideal_cost: Cost
    ideal_worst_cost: Cost

    @property
    def scale(self) -> float:
        """The scale of the noise (b, or sigma) on the released mean."""
        return self.cost.scale

    @property
    def variance(self) -> float:
        """Total variance of the released mean, with whole sizes."""
        return self.cost.total

    def plot(self) -> Any:
        """A matplotlib figure of the sizes, drawn and before rounding (pip install 'privamp[plots]')."""
        return import_module("..report.shown_plans", __package__).allocation_figure(self)

    def _repr_html_(self) -> str:
        """The allocation as notebooks show it."""
        text: str = import_module("..report.shown_plans", __package__).allocation_fragment(self)
        return text

    def design(self) -> Stratified:
        """The design that draws these sizes."""
        return Stratified((h.name, WithoutReplacement(self.sizes[h.name], h.population)) for h in self.strata)

    def mechanism(self) -> PerStratum:
        """Exact noise for the mean; a replaced record moves it by R_h N_h / (N n_h), either record by half."""
        total = sum(h.population for h in self.strata)
        each = [0.5 * h.range * h.population / (total * self.sizes[h.name]) for h in self.strata]
        noise = (ExactLaplace if self.noise == "laplace" else ExactGaussian)(self.scale, max(each))
        return PerStratum(noise, tuple((h.name, half) for h, half in zip(self.strata, each, strict=True)))

    @cached_property
    def guarantee(self) -> Guarantee:
        """The certificate for one release, replace-one within a stratum."""
        return amplify(self.mechanism(), self.design(), WITHIN)


def allocate(
    strata: Iterable[Stratum],
    size: int,
    epsilon: float,
    method: str = "optimal",
    delta: float = 0.0,
    noise: str = "laplace",
) -> Allocation:
    """Divide `size` draws among strata for a private weighted mean.

    "optimal" minimises the total variance at the public standard deviations, "minimax" at the largest that the ranges
    allow (also what "optimal" uses where `sd` is None); "proportional" draws every stratum at one rate; "neyman"
    ignores the noise (and must not be computed from private data, see `neyman_sensitivity`).

    >>> strata = [Stratum("small", 5000, 10, 3), Stratum("large", 500, 1000, 15)]
    >>> found = allocate(strata, 600, epsilon=0.5)
    >>> found.sizes, round(found.variance, 4)
    ({'small': 157, 'large': 443}, 0.3254)
    """
    cells = _checked(strata, size, epsilon, method)
    own = np.array([epsilon if h.epsilon is None else h.epsilon for h in cells], dtype=float)
    hidden = strength(noise, own, delta)
    worst = _problem(cells, [h.largest_sd for h in cells], size, hidden)
    known = replace(worst, sd=np.array([h.largest_sd if h.sd is None else h.sd for h in cells], dtype=float))
    steered = worst if method == "minimax" else known
    rates = _ideal(steered, method)
    sizes = _whole(steered, rates, method)
    final = sizes / known.population
    names = [h.name for h in cells]
    return Allocation(
        cells, method, float(epsilon), float(delta), noise,
        dict(zip(names, sizes.tolist(), strict=True)), _cost(known, final), _cost(worst, final),
        dict(zip(names, (rates * known.population).tolist(), strict=True)), _cost(known, rates), _cost(worst, rates),
    )  # fmt: skip


def _checked(strata: Iterable[Stratum], size: int, epsilon: float, method: str) -> tuple[Stratum, ...]:
    cells = tuple(strata)
    if not cells or not all(isinstance(h, Stratum) for h in cells):
        raise InvalidInput("strata must be a list of at least one Stratum, got something else instead")
    if len({h.name for h in cells}) < len(cells):
        raise InvalidInput("every stratum must have its own name, got one twice")
    positive(epsilon=epsilon)
    one_of(METHODS, method=method)
    whole(1, size=size)
    total = sum(h.population for h in cells)
    if size > total:
        raise InvalidInput(f"size must be at most the {total} records of the strata, got {size} instead")
    if size < len(cells):
        raise InvalidInput(f"size must be at least one per stratum ({len(cells)} strata), got {size} instead")
    if method == "neyman" and any(h.sd is None for h in cells):
        raise InvalidInput("neyman allocation needs a public sd for every stratum; without them use method='minimax'")
    return cells


def _problem(cells: Sequence[Stratum], sd: Sequence[float], size: int, hidden: Strength) -> Problem:
    N = np.array([h.population for h in cells], dtype=float)
    if float((N * hidden.least).sum()) > size:
        raise Infeasible(
            f"a sample of {size} draws some stratum at a rate below 4 delta, where (epsilon, delta) protects no one; "
            "draw more or use a smaller delta"
        )
    return Problem(N, np.array([h.range for h in cells], dtype=float), np.array(sd, dtype=float), size, hidden)


def _ideal(problem: Problem, method: str) -> FloatArray:
    if method in ("optimal", "minimax"):
        return best_rates(problem)
    if method == "neyman" and np.any(problem.sd > 0):
        return shared(problem, np.full_like(problem.sd, 1e-300))
    return np.full_like(problem.population, problem.size / problem.total)


def _cost(problem: Problem, rates: FloatArray) -> Cost:
    scale = problem.scale(rates) * _ROUND_UP
    return Cost(problem.sampling_variance(rates), problem.noise_variance(scale), scale)


def _whole(problem: Problem, rates: FloatArray, method: str) -> NDArray[np.int64]:
    """Whole sizes that add up; for the optimal methods the best of many roundings, each with slightly more noise."""
    least = np.maximum(1.0, np.ceil(problem.strength.least * problem.population))
    if method in ("proportional", "neyman"):
        return _rounded(problem, rates, least, largest_remainder=True)
    s = 1.0 / (problem.total * problem.scale(rates))
    tries = []
    for slower in _SLOWER:
        floor = np.minimum(problem.floor(s * (1.0 - slower) * (1.0 - 1e-12)), 1.0)
        needed = np.maximum(least, np.ceil(problem.population * floor - 1e-9))
        if needed.sum() <= problem.size:
            wanted = np.maximum(shared(problem, floor), floor)
            tries.append(_rounded(problem, wanted, needed))
        if len(tries) == _ENOUGH:
            break
    tries.append(_rounded(problem, rates, least))
    return min(tries, key=lambda n: problem.variance(n / problem.population))


_ENOUGH = 12


def _rounded(
    problem: Problem, rates: FloatArray, least: FloatArray, *, largest_remainder: bool = False
) -> NDArray[np.int64]:
    """Round down, then assign the rest where it helps most (or by the largest remainder), within [least, N_h]."""
    N, S = problem.population, problem.sd
    n = np.clip(np.floor(rates * N + 1e-9), least, N)
    remainder = rates * N - n
    while (missing := int(problem.size - n.sum())) != 0:
        free = n < N if missing > 0 else n > least
        other = n + 1.0 if missing > 0 else n - 1.0
        with np.errstate(divide="ignore", invalid="ignore"):
            gain = remainder if largest_remainder else (N * S) ** 2 * np.abs(1.0 / n - 1.0 / other)
        order = np.argsort(np.where(free, -gain if missing > 0 else gain, np.inf), kind="stable")
        chosen = order[: min(abs(missing), int(free.sum()))]
        if chosen.size == 0:
            raise Infeasible(
                f"a sample of {problem.size} is too small for the smallest rate of every stratum; draw more"
            )
        n[chosen] += math.copysign(1.0, missing)
        remainder = rates * N - n
    return n.astype(np.int64)
