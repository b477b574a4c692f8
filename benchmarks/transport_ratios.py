"""Transport's bound beside an attack, the worst noisy sum over record values: three settings of every design."""

import warnings

import numpy as np

from privamp import ClusterPPS, ClusterSampling, Gaussian, Neighbors, Poisson, RandomSize, amplify
from privamp.verify import exact_delta

AR, RO = Neighbors.ADD_REMOVE, Neighbors.REPLACE_ONE
WITHIN = Neighbors("replace-one", scope="within cluster")
SETTINGS = ((1.0, 0.3), (2.0, 0.2), (3.0, 0.1))  # sigma, epsilon


def cases():
    """(what, design, population, relation)."""
    coins = ClusterSampling(1, 3, 2, Poisson(0.3))
    fixed = ClusterSampling(1, 2, 4, 2, min_size=2)
    whole = ClusterSampling(1, 3, 2)
    pps = ClusterPPS((0.5, 0.3, 0.2), 2)
    yield "clusters, coins, one more", coins, coins.sized((1, 2, 2)), AR
    yield "clusters, coins, replaced inside", coins, coins.sized((1, 2, 2)), WITHIN
    yield "clusters, 2 members each, one more", fixed, fixed.sized((2, 2)), AR
    yield "clusters, 2 members each, replaced", fixed, fixed.sized((2, 2)), WITHIN
    yield "clusters, moved", whole, whole.sized((2, 1, 2)), RO
    yield "one cluster by chances, moved", pps, pps.sized((2, 1, 2)), RO
    yield "random size", RandomSize.uniform(1, 3, 5), 5, RO


def main() -> None:
    """One line per design and setting."""
    warnings.simplefilter("ignore")
    print(f"{'design':36s} {'sigma':>5s} {'epsilon':>7s} {'bound':>11s} {'attack':>11s} {'ratio':>6s}")
    for what, design, population, relation in cases():
        for sigma, epsilon in SETTINGS:
            bound = amplify(Gaussian(sigma), design, relation).delta(epsilon)
            attack = exact_delta(
                design, Gaussian(sigma), population, relation, epsilon, values=(-1.0, -0.5, 0.0, 0.5, 1.0)
            )
            ratio = bound / attack if attack > 0 else np.inf
            print(f"{what:36s} {sigma:5g} {epsilon:7g} {bound:11.4e} {attack:11.4e} {ratio:6.3f}")


if __name__ == "__main__":
    main()
