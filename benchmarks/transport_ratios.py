"""Transport's bound beside an attack: epsilon of every survey design at three practical settings, and tiny cases.

The attack is the design's own (a noisy sum in which the record stands against others); on tiny cases it is the worst
noisy sum over record values. `--tiny` prints those too. Why a ratio is above 1.2: docs/transport.md.
"""

import sys
import warnings

import numpy as np

from privamp import (
    ClusterPPS,
    ClusterSampling,
    ConditionalPoisson,
    Gaussian,
    Laplace,
    Neighbors,
    Poisson,
    PoissonPPS,
    PPSClusters,
    Proportional,
    RandomSize,
    SharedRate,
    Stratified,
    SystematicPPS,
    WithoutReplacement,
    amplify,
)
from privamp.verify import exact_delta

AR, RO = Neighbors.ADD_REMOVE, Neighbors.REPLACE_ONE
WITHIN = Neighbors("replace-one", scope="within cluster")
DELTA = 1e-6
NOISES = (Gaussian(1.0), Gaussian(4.0), Laplace(1.0))
DESIGNS = (
    ("random size, 50 to 150 of 1,000", RandomSize.uniform(50, 150, 1000), RO),
    ("fixed share, .1", Proportional(0.1), AR),
    ("shared rate, 100 of 1,000, 3 strata", SharedRate(100, 1000, 3), AR),
    ("clusters, 5 of 50, 4 members", ClusterSampling(5, 50, 4), AR),
    ("clusters, 5 of 50, 10 members by coins .3", ClusterSampling(5, 50, 10, Poisson(0.3)), AR),
    ("clusters, 5 of 50, 2 of 4 members", ClusterSampling(5, 50, 4, 2, 2), AR),
    ("one cluster by public chances", ClusterPPS((0.5, 0.3, 0.2), 3), AR),
    ("one of 4 clusters by private size", ClusterPPS.proportional_to_size(4, 5, 2), AR),
    ("several clusters by public size, take 5", PPSClusters((40, 60, 50, 50, 40, 60) * 5, 6, 5), WITHIN),
    ("systematic by public size, 3 of 6", SystematicPPS((40, 60, 50, 50, 40, 60), 3), AR),
    ("Poisson, public chances to .1", PoissonPPS(0.1, 0.01), AR),
    ("Poisson proportional to private size", PoissonPPS.proportional(10.0, 1.0, 3.0, 1000), AR),
    ("conditional Poisson, 100 of 1,000, odds 1 to 3", ConditionalPoisson(100, 1000, 1.0, 3.0), AR),
    ("strata of shares, moved", Stratified({"a": Proportional(0.1), "b": Proportional(0.2)}), RO),
    ("strata, Poisson and 10 of 50, moved", Stratified({"a": Poisson(0.1), "b": WithoutReplacement(10, 50)}), RO),
)
SETTINGS = ((1.0, 0.3), (2.0, 0.2), (3.0, 0.1))  # sigma, epsilon of the tiny cases


def practical() -> None:
    """Epsilon at delta 1e-6, upper and lower."""
    print(f"{'design':48s} {'relation':11s} {'noise':12s} {'upper':>8s} {'attack':>8s} {'ratio':>6s}")
    for what, design, relation in DESIGNS:
        for noise in NOISES:
            stated = type(noise)(*_scale(noise), neighbors=RO if type(design) is ConditionalPoisson else AR)
            found = amplify(stated, design, relation)
            upper = found.epsilon(DELTA)
            lower = found.lower.epsilon(DELTA) if found.lower else 0.0
            ratio = f"{upper / lower:6.3f}" if lower > 0 else "  none"
            name = f"{type(noise).__name__} {_scale(noise)[0]:g}"
            print(f"{what:48s} {relation.kind:11s} {name:12s} {upper:8.4f} {lower:8.4f} {ratio}", flush=True)


def _scale(noise) -> tuple[float]:
    return (noise.sigma if isinstance(noise, Gaussian) else noise.scale,)


def cases():
    """(what, design, population, relation) of tiny cases."""
    coins = ClusterSampling(1, 3, 2, Poisson(0.3))
    fixed = ClusterSampling(1, 2, 4, 2, min_size=2)
    whole = ClusterSampling(1, 3, 2)
    pps = ClusterPPS((0.5, 0.3, 0.2), 2)
    takes, start = PPSClusters((2, 2, 1), 2, 1), SystematicPPS((3, 2, 4), 2)
    yield "clusters, coins, one more", coins, coins.sized((1, 2, 2)), AR
    yield "clusters, coins, replaced inside", coins, coins.sized((1, 2, 2)), WITHIN
    yield "clusters, 2 members each, one more", fixed, fixed.sized((2, 2)), AR
    yield "clusters, 2 members each, replaced", fixed, fixed.sized((2, 2)), WITHIN
    yield "clusters, moved", whole, whole.sized((2, 1, 2)), RO
    yield "one cluster by chances, moved", pps, pps.sized((2, 1, 2)), RO
    yield "several clusters by public size", takes, takes.sized((2, 2, 1)), WITHIN
    yield "systematic by public size", start, start.sized((1, 1, 1)), AR
    yield "random size", RandomSize.uniform(1, 3, 5), 5, RO


def tiny() -> None:
    """Delta, against the worst of all record values."""
    print(f"{'design':36s} {'sigma':>5s} {'epsilon':>7s} {'bound':>11s} {'attack':>11s} {'ratio':>6s}")
    for what, design, population, relation in cases():
        for sigma, epsilon in SETTINGS:
            bound = amplify(Gaussian(sigma), design, relation).delta(epsilon)
            attack = exact_delta(
                design, Gaussian(sigma), population, relation, epsilon, values=(-1.0, -0.5, 0.0, 0.5, 1.0)
            )
            ratio = bound / attack if attack > 0 else np.inf
            print(f"{what:36s} {sigma:5g} {epsilon:7g} {bound:11.4e} {attack:11.4e} {ratio:6.3f}", flush=True)


if __name__ == "__main__":
    warnings.simplefilter("ignore")
    practical()
    if "--tiny" in sys.argv:
        tiny()
