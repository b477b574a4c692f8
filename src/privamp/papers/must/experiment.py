"""Shared by the experiments of MUST section 4.2: the five designs, the paper's noise, and honest noise.

The paper fixes eps' per answer and delta = 1/n before sampling, takes eps = log(1 + (e^eps' - 1)/eta), and sets sigma
by a Gaussian mechanism of that (eps, delta), for a statistic assumed to move by range/n. The statistic is a mean
over the m drawn entries, so each copy of a record moves it by range/m: n/m times as much (and 2C/m, not C/m, for
gradients clipped to C). Honest noise is calibrated to (eps', 1/n) *after* sampling by the library's own bounds, for
the true sensitivity, under replace-one, the paper's relation; for Poisson sampling too.
"""

import math
from functools import cache
from typing import Final

from ...accounting.composition import compose
from ...amplification import amplify
from ...core.design import Design
from ...core.guarantee import Guarantee
from ...core.neighbors import Neighbors
from ...core.profile import Profile
from ...designs.multiplicity import shared_absence
from ...designs.multistage import MultiStage
from ...designs.poisson import Poisson
from ...designs.simple_random import WithoutReplacement
from ...designs.with_replacement import WithReplacement
from ...mechanisms.gaussian import Gaussian
from ...numerics.roots import NumericalFailure, least_passing
from ..data import shared_file as shared_file

AR, RO = Neighbors.ADD_REMOVE, Neighbors.REPLACE_ONE
FIVE: Final = ("Poisson", "WOR", "WR", "MUSTow", "MUSTww")
DIVIDED_BY_N = "the noise is set for a sensitivity over n, but a mean over m entries moves n/m times as much"


def design(name: str, n: int, m: int, b: int) -> Design:
    """One of the five designs of the experiments: m drawn from n, with b in the stage between."""
    if name == "Poisson":
        return Poisson(m / n)
    if name == "WOR":
        return WithoutReplacement(m, n)
    if name == "WR":
        return WithReplacement(m, n)
    first = "wor" if name == "MUSTow" else "wr"
    return MultiStage(((first, b), ("wr", m)), n)


def chance_of_being_drawn(of: Design) -> float:
    """The paper's eta."""
    return of.appearances().eta


def base_epsilon(of: Design, amplified: float) -> float:
    """The paper's eps before sampling for a given eps' after it."""
    return math.log1p(math.expm1(amplified) / chance_of_being_drawn(of))


def dwork_roth(sensitivity: float, epsilon: float, delta: float) -> float:
    """sigma = sensitivity sqrt(2 log(1.25/delta))/eps, the paper's noise in experiments 1 and 2."""
    return sensitivity * math.sqrt(2.0 * math.log(1.25 / delta)) / epsilon


def exact_gaussian(sensitivity: float, epsilon: float, delta: float) -> float:
    """The smallest sigma by the exact Gaussian profile, the paper's noise in experiment 3."""

    def excess(sigma: float) -> float:
        return float(Gaussian(sigma, sensitivity).profile(AR).log_delta(epsilon)) - math.log(delta)

    return least_passing(excess, 1e-3 * sensitivity, 1e12 * sensitivity)


def printed_bound(of: Design, ratio: float) -> Profile:
    """MUST Theorem 4 for noise of standard deviation 1 on a value that one copy moves by `ratio`."""
    return shared_absence(of.appearances(), Gaussian(1.0, ratio, RO), RO)


def certified(of: Design, sigma: float, sensitivity: float) -> Guarantee:
    """One answer under replace-one; `sensitivity` is how far one copy moves it when it is replaced.

    A record adds at most half of that (values are centred), which is the add/remove sensitivity that Poisson needs.
    """
    return amplify(Gaussian(sigma, 0.5 * sensitivity, AR), of, RO)


@cache
def honest(of: Design, sensitivity: float, epsilon: float, delta: float, steps: int = 1, start: float = 1.0) -> float:
    """The smallest sigma (to 0.1%, rounded up) with (epsilon, delta) over `steps` fresh samples.

    The search starts at `start` times the sensitivity.
    """

    @cache
    def excess(sigma: float) -> float:
        try:
            return float(compose(certified(of, sigma, sensitivity), steps).upper.log_delta(epsilon)) - math.log(delta)
        except NumericalFailure:
            return math.inf  # too little noise to compose

    low = high = start * sensitivity
    while excess(high) > 0.0:
        low, high = high, 2.0 * high
    while excess(low) <= 0.0:
        low, high = 0.5 * low, low
    return least_passing(excess, low, high, relative=1e-3)
