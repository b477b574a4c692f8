"""Multiset samples over many rounds: both bounds on delta at epsilon 1 and on epsilon, and how long they take.

n = 10,000, first stage 118, then 200 draws with replacement, sigma = 4, records in [-1, 1]. Times are of this process's
processor, both bounds together, nothing kept from run to run.
"""

import time

from privamp import Gaussian, MultiStage, Neighbors, WithoutReplacement, WithReplacement, amplify, compose
from privamp.accounting import discretize
from privamp.designs import shared_copies

RO = Neighbors.REPLACE_ONE
NOISE = Gaussian(4.0, 2.0, neighbors=RO)
DESIGNS = {
    "WOR": WithoutReplacement(200, 10_000),
    "WR": WithReplacement(200, 10_000),
    "MUSTow": MultiStage([("wor", 118), ("wr", 200)], 10_000),
    "MUSTww": MultiStage([("wr", 118), ("wr", 200)], 10_000),
}
ALLOWED = {"WOR": 2.0, "WR": 2.0, "MUSTow": 5.0, "MUSTww": 10.0}  # seconds at k = 1000


def timed(question):
    """The answer, and the seconds it took from nothing."""
    shared_copies._table.cache_clear()
    started = time.process_time()
    return question(), time.process_time() - started


def both_deltas(design, steps, interval=None):
    guarantee = compose(amplify(NOISE, design), steps, interval=interval)
    return guarantee.lower.delta(1.0), guarantee.delta(1.0)


def both_epsilons(mechanism, design, delta, steps=1):
    guarantee = compose(amplify(mechanism, design), steps)
    return guarantee.lower.epsilon(delta), guarantee.epsilon(delta)


def single_releases() -> None:
    print("single release, delta at epsilon 1")
    for name, design in list(DESIGNS.items())[1:]:
        a, b = (theorem.bound(design, NOISE, RO).delta(1.0) for theorem in design.theorems[:2])
        attack = amplify(NOISE, design).lower.delta(1.0)
        print(f"  {name:7} A {a:.6e}  B {b:.6e}  attack {attack:.6e}  B/attack {b / attack:.5f}")


def rounds() -> None:
    print("k rounds, [attack, certified] delta at epsilon 1 (equal shares: MUSTow 8.170e-03 at 200, 9.299e-02 at 1000)")
    for name, design in DESIGNS.items():
        for steps in (10, 200, 1000, 10_000, 100_000):
            (low, high), seconds = timed(lambda d=design, k=steps: both_deltas(d, k))
            limit = f" (at most {ALLOWED[name]:g})" if steps == 1000 else ""
            print(f"  {name:7} k={steps:<7} [{low:.4e}, {high:.4e}]  {seconds:.1f} s{limit}")


def epsilons() -> None:
    print("1000 rounds, [attack, certified] epsilon at delta 1e-6")
    for name, design in DESIGNS.items():
        (low, high), seconds = timed(lambda d=design: both_epsilons(NOISE, d, 1e-6, 1000))
        print(f"  {name:7} [{low:.4f}, {high:.4f}]  {seconds:.1f} s")
    print("one release, [attack, certified] epsilon at delta 1e-6, n = 1000, b = 500, m = 400, shift/sigma = 1")
    for name, design in (
        ("WR", WithReplacement(400, 1000)),
        ("MUSTow", MultiStage([("wor", 500), ("wr", 400)], 1000)),
        ("MUSTww", MultiStage([("wr", 500), ("wr", 400)], 1000)),
    ):
        (low, high), seconds = timed(lambda d=design: both_epsilons(Gaussian(1.0, neighbors=RO), d, 1e-6))
        print(f"  {name:7} [{low:.3f}, {high:.3f}]  {seconds:.1f} s")


def grids() -> None:
    """The curve is evaluated where its chords need it, so finer grids cost little more than their transform."""
    print("MUSTow, 1000 rounds, over the grid")
    design = DESIGNS["MUSTow"]
    farthest = discretize.reach(amplify(NOISE, design).upper)
    for interval in (4e-3, 2e-3, 1e-3, 5e-4, 2.5e-4, 1.25e-4):
        (low, high), seconds = timed(lambda i=interval: both_deltas(design, 1000, i))
        print(f"  {int(farthest / interval):>9,} points  [{low:.5e}, {high:.5e}]  {seconds:.2f} s")


if __name__ == "__main__":
    single_releases()
    rounds()
    epsilons()
    grids()
