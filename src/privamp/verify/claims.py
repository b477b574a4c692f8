"""What a design claims about one mechanism: all its theorems together, and each of them alone."""

import warnings
from collections import Counter
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from ..core.design import Design
from ..core.mechanism import Mechanism
from ..core.neighbors import Neighbors
from ..core.population import Population
from ..core.profile import Curve, Profile
from ..core.theorem import Theorem
from ..errors import NoTheorem
from ..numerics.log_domain import FloatArray


def pure(epsilon: float, neighbors: Neighbors, design: Design, population: Population) -> Mechanism:
    """Any epsilon-DP mechanism; for weighted samples a sum that is epsilon-DP at weight and norm 1."""
    from ..mechanisms.black_box import PureDP
    from ..mechanisms.norm_noise import NormNoise

    if design.moves(population) is not None:
        return NormNoise(1.0 / epsilon, dimension=1, neighbors=neighbors)
    return PureDP(epsilon, neighbors=neighbors)


def is_proved(mechanism: Mechanism, design: Design, neighbors: Neighbors) -> bool:
    """Whether some theorem covers the case."""
    from ..amplification import theorem_bounds

    try:
        return bool(theorem_bounds(mechanism, design, neighbors))
    except NoTheorem:
        return False


@dataclass(frozen=True, slots=True)
class Claims:
    """The guarantee, every theorem that covers the case by name, and whether one is declared tight."""

    guarantee: Any
    alone: tuple[tuple[str, Profile], ...]
    is_called_tight: bool


def claims_of(mechanism: Mechanism, design: Design, out: Neighbors) -> Claims:
    """All claims, as `amplify` makes them; a theorem that never binds must be true as well.

    The guarantee and its theorems share their curves, which are evaluated once at the same epsilons.
    """
    from ..amplification import guaranteed, theorem_bounds

    bounds = [(name, _remembered(bound)) for name, bound in theorem_bounds(mechanism, design, out)]
    namesakes = Counter(map(str, design.theorems))
    known = {name: bound for name, bound in bounds if namesakes[name] == 1}
    alone, is_tight = list[tuple[str, Profile]](), False
    for theorem in design.theorems:
        bound = _alone(theorem, mechanism, design, out, known)
        if bound is not None:
            alone.append((f"{theorem.name} [{mechanism.neighbors.kind} → {out.kind}]", bound.rounded_up()))
            is_tight |= theorem.tight and theorem.needs == mechanism.neighbors.kind
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # degrading designs are checked too
        return Claims(guaranteed(mechanism, design, out, bounds), tuple(alone), is_tight)


def claims_or_none(mechanism: Mechanism, design: Design, out: Neighbors) -> Claims | None:
    """All claims, or None if no theorem covers the case."""
    try:
        return claims_of(mechanism, design, out)
    except NoTheorem:
        return None


def _alone(
    theorem: Theorem, mechanism: Mechanism, design: Design, out: Neighbors, known: dict[str, Profile]
) -> Profile | None:
    """The bound of one theorem, or None if it is about other mechanisms or other instances of the class."""
    try:
        if not theorem.covers(mechanism, out):
            return None
        return known.get(str(theorem)) or theorem.bound(design, mechanism, out)
    except NoTheorem:
        return None


def _remembered(profile: Profile) -> Profile:
    """The same profile with cached curves."""
    forward = _remembered_curve(profile.forward)
    return Profile(forward, forward if profile.is_symmetric else _remembered_curve(profile.backward))


def _remembered_curve(curve: Curve) -> Curve:
    known: dict[tuple[tuple[int, ...], bytes], FloatArray] = {}

    def log_delta(epsilon: FloatArray) -> FloatArray:
        asked = epsilon.shape, epsilon.tobytes()
        if asked not in known:
            known[asked] = curve.log_delta(epsilon)
        return known[asked]

    return replace(curve, log_delta=log_delta)


def _gaussian(random: np.random.Generator, neighbors: Neighbors) -> Mechanism:
    from ..mechanisms.gaussian import Gaussian

    return Gaussian(float(random.uniform(0.4, 3.0)), neighbors=neighbors)


def _laplace(random: np.random.Generator, neighbors: Neighbors) -> Mechanism:
    from ..mechanisms.laplace import Laplace

    return Laplace(float(random.uniform(0.3, 3.0)), neighbors=neighbors)


def _discrete_laplace(random: np.random.Generator, neighbors: Neighbors) -> Mechanism:
    from ..mechanisms.discrete_laplace import DiscreteLaplace

    return DiscreteLaplace(float(random.uniform(0.3, 3.0)), neighbors=neighbors)


NOISES = (_gaussian, _gaussian, _laplace, _discrete_laplace)  # Gaussian twice: it has theorems of its own
