"""How close every certified epsilon is to the best known attack: all designs, relations and kinds of noise."""

import warnings
from collections.abc import Iterator
from dataclasses import dataclass

from ..accounting.composition import compose
from ..amplification import amplify
from ..core.design import Design
from ..core.mechanism import Mechanism
from ..core.neighbors import Neighbors
from ..designs.cluster import ClusterSampling
from ..designs.cluster_by_size import ClusterBySize
from ..designs.cluster_pps import ClusterPPS
from ..designs.conditional_poisson import ConditionalPoisson
from ..designs.multistage import MultiStage
from ..designs.poisson import Poisson
from ..designs.poisson_pps import PoissonPPS
from ..designs.proportional import Proportional
from ..designs.proportional_pps import ProportionalPPS
from ..designs.random_size import RandomSize
from ..designs.shared_rate import SharedRate
from ..designs.simple_random import WithoutReplacement
from ..designs.stratified import Stratified
from ..designs.systematic import Systematic
from ..designs.systematic_pps import SystematicPPS
from ..designs.truncated_poisson import TruncatedPoisson
from ..designs.with_replacement import WithReplacement
from ..errors import PrivampError
from ..mechanisms.black_box import PureDP
from ..mechanisms.gaussian import Gaussian
from ..mechanisms.laplace import Laplace

DESIGNS: dict[str, Design] = {
    "Poisson, rate .01": Poisson(0.01),
    "without replacement, 100 of 1,000": WithoutReplacement(100, 1000),
    "with replacement, 100 of 1,000": WithReplacement(100, 1000),
    "two stages, wor 100 then wr 50 of 1,000": MultiStage((("wor", 100), ("wr", 50)), 1000),
    "three stages, wor 200, wr 100, wr 50 of 1,000": MultiStage((("wor", 200), ("wr", 100), ("wr", 50)), 1000),
    "truncated Poisson, rate .1, cap 120": TruncatedPoisson(0.1, 120, 800, 1000),
    "random size, 50 to 150 of 1,000": RandomSize.uniform(50, 150, 1000),
    "proportional, rate .1": Proportional(0.1),
    "shared rate, 100 of at least 1,000, 3 strata": SharedRate(100, 1000, 3),
    "systematic, every tenth, secret order": Systematic(10),
    "systematic, slots of 3": Systematic(10, "slots", 3),
    "clusters, 5 of 50, up to 4 members": ClusterSampling(5, 50, 4),
    "clusters, 5 of 50, up to 10 members by coins .3": ClusterSampling(5, 50, 10, Poisson(0.3)),
    "systematic by public size, 3 of 6 clusters": SystematicPPS((40, 60, 50, 50, 40, 60), 3),
    "one of 3 clusters, public probabilities": ClusterPPS((0.5, 0.3, 0.2), 3),
    "one of 4 clusters by size": ClusterBySize(4, 5, 2),
    "Poisson, public probabilities up to .1": PoissonPPS(0.1, 0.01),
    "Poisson proportional to size": ProportionalPPS(10.0, 1.0, 3.0, 1000),
    "conditional Poisson, 100 of 1,000, odds 1 to 3": ConditionalPoisson(100, 1000, 1.0, 3.0),
    "stratified, Poisson .1 and 10 of 50": Stratified([("a", Poisson(0.1)), ("b", WithoutReplacement(10, 50))]),
}
NOISES: dict[str, tuple[Mechanism, float]] = {  # and the delta at which epsilon is reported
    "pure, epsilon 1": (PureDP(1.0), 0.0),
    "Laplace, scale 1": (Laplace(1.0), 1e-6),
    "Gaussian, sigma 2": (Gaussian(2.0), 1e-6),
}
RELATIONS = {"add-remove": Neighbors.ADD_REMOVE, "replace-one": Neighbors.REPLACE_ONE}


@dataclass(frozen=True, slots=True)
class Bound:
    """One row: epsilon from above and from below; both None where nothing is certified."""

    design: str
    relation: str
    noise: str
    rounds: int
    upper: float | None
    lower: float | None

    @property
    def ratio(self) -> float | None:
        """Upper over lower; None where one of them is missing or nothing is lost."""
        return None if self.upper is None or not self.lower else self.upper / self.lower


def bounds(rounds: int = 1, named: str = "") -> Iterator[Bound]:
    """Every design whose name contains `named`, under every relation, with every noise."""
    for design in (name for name in DESIGNS if named.lower() in name.lower()):
        for relation in RELATIONS:
            for noise in NOISES:
                yield bound(design, relation, noise, rounds)


def bound(design: str, relation: str, noise: str, rounds: int = 1) -> Bound:
    """One row."""
    mechanism, delta = NOISES[noise]
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # designs that lose privacy are in the table
            one = amplify(mechanism, DESIGNS[design], RELATIONS[relation])
            guarantee = one if rounds == 1 else compose(one, rounds)
            lower = guarantee.lower.epsilon(delta) if guarantee.lower else None
            return Bound(design, relation, noise, rounds, guarantee.epsilon(delta), lower)
    except PrivampError:
        return Bound(design, relation, noise, rounds, None, None)
