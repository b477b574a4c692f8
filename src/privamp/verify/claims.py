"""What a design claims about one mechanism: all its theorems together, and each of them alone."""

import warnings
from typing import Any

import numpy as np

from ..core.design import Design
from ..core.mechanism import Mechanism
from ..core.neighbors import Neighbors
from ..core.population import Population
from ..core.profile import Profile
from ..core.theorem import Theorem
from ..errors import NoTheorem


def pure(epsilon: float, neighbors: Neighbors, design: Design, population: Population) -> Mechanism:
    """Any epsilon-DP mechanism; for weighted samples a sum that is epsilon-DP at weight and norm 1."""
    from ..mechanisms.black_box import PureDP
    from ..mechanisms.norm_noise import NormNoise

    if design.moves(population) is not None:
        return NormNoise(1.0 / epsilon, dimension=1, neighbors=neighbors)
    return PureDP(epsilon, neighbors=neighbors)


def amplified(mechanism: Mechanism, design: Design, neighbors: Neighbors) -> Any:
    """The guarantee; a design that degrades is still to be checked, so it does not warn."""
    from ..amplification import amplify

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return amplify(mechanism, design, neighbors)


def amplified_or_none(mechanism: Mechanism, design: Design, neighbors: Neighbors) -> Any:
    """The guarantee, or None where nothing is proved."""
    try:
        return amplified(mechanism, design, neighbors)
    except NoTheorem:
        return None


def each_theorem(mechanism: Mechanism, design: Design, out: Neighbors) -> list[tuple[str, Profile]]:
    """Every theorem that speaks about this case, on its own: one that never binds must be true as well."""
    claims = []
    for theorem in design.theorems:
        try:
            if theorem.covers(mechanism, out):
                label = f"{theorem.name} [{mechanism.neighbors.kind} → {out.kind}]"
                claims.append((label, theorem.bound(design, mechanism, out).rounded_up()))
        except NoTheorem:
            continue
    return claims


def is_called_tight(design: Design, mechanism: Mechanism, into: Neighbors, out: Neighbors) -> bool:
    """Whether some theorem says its value is exact here."""
    return any(t.tight and t.needs == into.kind and _answers(t, design, mechanism, out) for t in design.theorems)


def _answers(theorem: Theorem, design: Design, mechanism: Mechanism, out: Neighbors) -> bool:
    """Whether the theorem covers this instance: one about other instances of the class refuses."""
    try:
        if not theorem.covers(mechanism, out):
            return False
        theorem.bound(design, mechanism, out)
    except NoTheorem:
        return False
    return True


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
