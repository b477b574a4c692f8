"""Rounds under replace-one, followed one by one: both ends of epsilon, and the seconds that each of them takes.

python benchmarks/rounds.py [--runs 2]
"""

import argparse
import time

from privamp import Gaussian, Neighbors, WithoutReplacement, amplify, compose
from privamp.accounting import gaussian_rounds

SETTINGS = ((2.0, 256, 60_000, 1000, 1e-5), (4.0, 100, 1000, 100, 1e-6))  # sigma, size, population, rounds, delta


def measured(sigma: float, size: int, population: int, rounds: int, delta: float) -> tuple[float, float, float, float]:
    """Lower and upper epsilon, and seconds of each, nothing being known from before."""
    gaussian_rounds._block.cache_clear()
    start = time.perf_counter()
    one = amplify(Gaussian(sigma), WithoutReplacement(size, population), Neighbors.REPLACE_ONE)
    found = compose(one, rounds, adaptive=True)
    high, between = found.epsilon(delta), time.perf_counter()
    low = found.lower.epsilon(delta)
    return low, high, time.perf_counter() - between, between - start


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--runs", type=int, default=2)
    runs = parser.parse_args().runs
    compose(amplify(Gaussian(4.0), WithoutReplacement(10, 100), Neighbors.REPLACE_ONE), 3).epsilon(1e-5)  # imports
    for setting in SETTINGS:
        sigma, size, population, rounds, delta = setting
        print(f"{size} of {population}, {rounds} rounds, sigma {sigma:g}, delta {delta:g}")
        for _ in range(runs):
            low, high, low_s, high_s = measured(*setting)
            seconds = f"both ends {low_s + high_s:.2f} s (lower {low_s:.2f}, upper {high_s:.2f})"
            print(f"  [{low:.6f}, {high:.6f}]  {seconds}", flush=True)


if __name__ == "__main__":
    main()
