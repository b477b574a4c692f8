"""The exact cluster formula for 10,000 clusters of up to 1,000 members, over the whole range of draws."""

import time

import numpy as np

from privamp import ClusterSampling

CLUSTERS, LARGEST = 10_000, 1_000


def main():
    caps = tuple(int(c) for c in np.random.default_rng(0).integers(1, LARGEST + 1, CLUSTERS))
    slowest = 0.0
    for chosen in (1, 100, 5_000, 9_999):
        design = ClusterSampling(chosen, CLUSTERS, caps)
        for epsilon in (1e-4, 0.01, 1.0, 20.0):
            started = time.perf_counter()
            loss = design.added_loss(epsilon)
            slowest = max(slowest, time.perf_counter() - started)
            print(f"{chosen:6d} of {CLUSTERS} clusters, epsilon {epsilon:7g}: {loss:.10g}")
    print(f"slowest formula: {slowest:.2f} s")


if __name__ == "__main__":
    main()
