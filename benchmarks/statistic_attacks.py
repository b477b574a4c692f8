"""Attack random tiny designs with hill-climbed statistics: how many comparisons, how many false bounds.

For a tiny design and two neighbouring populations the law of the sample is enumerated. A statistic that moves by at
most one per record is climbed, one sample's value at a time, to make delta large; the last one's delta is computed
exactly and compared with the certificate. A ratio of 1 means that the attack reaches it.

python benchmarks/statistic_attacks.py [--seconds 60] [--seed 1]
"""

import argparse
import math
import time
import warnings
from collections import Counter, defaultdict
from collections.abc import Iterator
from itertools import combinations
from typing import Any

import numpy as np

from privamp import (
    ClusterSampling,
    Gaussian,
    InvalidInput,
    Laplace,
    MultiStage,
    Neighbors,
    NoTheorem,
    Poisson,
    Proportional,
    SharedRate,
    Stratified,
    amplify,
)
from privamp.core.population import Population
from privamp.designs.strata import joined
from privamp.errors import DegradingDesign
from privamp.verify.enumerate import exact_delta_of_laws
from privamp.verify.symmetry import collect

AR, RO = Neighbors.ADD_REMOVE, Neighbors.REPLACE_ONE
EPSILONS = (0.0, 0.1, 0.3, 0.8, 1.5)
STEPS, LARGEST = 25, 160  # of one climb; samples of one graph
GRID = np.linspace(-14.0, 14.0, 1401)

Units = tuple[int, ...]


def clusters(rng: np.random.Generator) -> Any:
    count = int(rng.integers(2, 4))
    caps = tuple(int(cap) for cap in rng.integers(1, 3, count))
    second = Poisson(float(rng.uniform(0.05, 0.95))) if rng.random() < 0.7 else None
    design = ClusterSampling(int(rng.integers(1, count + 1)), count, caps, second)
    return design, design.sized(tuple(int(rng.integers(0, cap + 1)) for cap in caps)), rng.choice([AR, RO])


def stages(rng: np.random.Generator) -> Any:
    count = size = int(rng.integers(2, 5))
    chain: list[tuple[Any, int]] = []
    for _ in range(int(rng.integers(2, 4))):
        kind = str(rng.choice(["wor", "wr"]))
        size = int(rng.integers(1, (size if kind == "wor" else 3) + 1))
        chain.append((kind, size))
    return MultiStage(chain, count), count, RO


def strata(rng: np.random.Generator) -> Any:
    """Shares and coins; a record may move."""
    parts, sizes = {}, {}
    for name in "ab":
        sizes[name] = int(rng.integers(1, 4))
        own = [Proportional(float(rng.choice([0.3, 0.5]))), Poisson(float(rng.uniform(0.1, 0.9)))]
        parts[name] = own[int(rng.integers(2))]
    return Stratified(parts), joined({name: Population(size) for name, size in sizes.items()}), rng.choice([AR, RO])


def shared(rng: np.random.Generator) -> Any:
    count, number = int(rng.integers(3, 6)), int(rng.integers(1, 3))
    labels = np.sort(rng.integers(0, 2, count))
    return SharedRate(number, count, 2), Population(count, stratum=labels), rng.choice([AR, RO])


KINDS = {"clusters": clusters, "stages": stages, "strata, moved": strata, "shared rate, moved": shared}


def graph(samples: set[Units]) -> tuple[list[Units], list[list[int]]]:
    """All parts of the samples, and which of them differ by one record."""
    found = {part for units in samples for size in range(len(units) + 1) for part in combinations(units, size)}
    nodes = sorted(found)
    place, beside = {node: i for i, node in enumerate(nodes)}, [[] for _ in nodes]
    for node, i in place.items():
        for k in range(len(node)):
            j = place[node[:k] + node[k + 1 :]]
            beside[i].append(j)
            beside[j].append(i)
    return nodes, beside


def distances(starts: list[int], beside: list[list[int]]) -> list[int]:
    """To the nearest of some nodes."""
    found = dict.fromkeys(starts, 0)
    queue = list(starts)
    for i in queue:
        for j in beside[i]:
            if j not in found:
                found[j] = found[i] + 1
                queue.append(j)
    return [found[i] for i in range(len(beside))]


def moved(values: list[int], at: int, by: int, beside: list[list[int]]) -> list[int]:
    """One value changed, and the others just so far that neighbours stay within one."""
    found, queue = list(values), [at]
    found[at] += by
    for i in queue:
        for j in beside[i]:
            if abs(found[i] - found[j]) > 1:
                found[j] = found[i] - int(math.copysign(1, found[i] - found[j]))
                queue.append(j)
    return found


def quick_delta(noise: Any, values: list[int], gap: np.ndarray) -> float:
    """About delta, by a sum over a grid; `gap` is P - e^eps Q by sample."""
    places, index = np.unique(values, return_inverse=True)
    weights = np.bincount(index, gap)
    z = GRID[:, None] - places
    if isinstance(noise, Gaussian):
        density = np.exp(-0.5 * (z / noise.sigma) ** 2) / (noise.sigma * math.sqrt(2.0 * math.pi))
    else:
        density = np.exp(-np.abs(z) / noise.scale) / (2.0 * noise.scale)
    return float(np.sum(np.maximum(density @ weights, 0.0)) * (GRID[1] - GRID[0]))


def climbed(noise: Any, p: dict[Units, Any], q: dict[Units, Any], epsilon: float, rng: np.random.Generator) -> float:
    """delta of the best statistic found, exactly."""
    nodes, beside = graph(set(p) | set(q))
    first, second = (np.array([float(law.get(node, 0)) for node in nodes]) for law in (p, q))
    gap = first - math.exp(epsilon) * second
    starts = np.flatnonzero(gap > 0.0) if rng.random() < 0.7 else rng.integers(0, len(nodes), 2)
    values = [-distance for distance in distances([int(i) for i in starts] or [0], beside)]
    best = quick_delta(noise, values, gap)
    for _ in range(STEPS):
        new = moved(values, int(rng.integers(len(nodes))), int(rng.choice([-1, 1])), beside)
        if (delta := quick_delta(noise, new, gap)) >= best:
            values, best = new, delta
    laws: list[dict[float, float]] = []
    for law in (first, second):
        total: defaultdict[float, float] = defaultdict(float)
        for value, chance in zip(values, law, strict=True):
            total[float(value)] += float(chance)
        laws.append({place: chance for place, chance in total.items() if chance > 0.0})
    return float(exact_delta_of_laws(laws[0], laws[1], noise, epsilon))


def attacks(kind: str, rng: np.random.Generator) -> Iterator[tuple[float, float, str]]:
    """(delta reached, certified, what) of one random design."""
    noises = [*(Gaussian(sigma) for sigma in (0.5, 1.0, 3.0)), *(Laplace(scale) for scale in (0.5, 1.0, 3.0))]
    noise = noises[int(rng.integers(len(noises)))]
    try:
        design, population, relation = KINDS[kind](rng)
        guarantee = amplify(noise, design, relation)
    except (NoTheorem, InvalidInput):
        return
    pairs = list(design.neighboring(population, relation))
    for i in rng.permutation(len(pairs))[:2]:
        p, q = (collect(design.law(one)) for one in pairs[i])
        if sum(2 ** len(units) for units in set(p) | set(q)) > LARGEST:
            continue
        for epsilon in rng.choice(EPSILONS, 2, replace=False):
            certified = float(guarantee.delta(float(epsilon)))
            what = f"{design} {noise} {relation} {epsilon}"
            for one, other in ((p, q), (q, p)):
                yield climbed(noise, one, other, float(epsilon), rng), certified, what


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--seconds", type=float, default=60.0)
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    warnings.simplefilter("ignore", DegradingDesign)  # tiny designs often do
    rng, end = np.random.default_rng(options.seed), time.monotonic() + options.seconds
    made, false, largest = Counter[str](), Counter[str](), dict.fromkeys(KINDS, 0.0)
    while time.monotonic() < end:
        for kind in KINDS:
            for reached, certified, what in attacks(kind, rng):
                made[kind] += 1
                if certified > 1e-6:
                    largest[kind] = max(largest[kind], reached / certified)
                if reached > certified * (1.0 + 1e-9) + 1e-12:
                    false[kind] += 1
                    print(f"FALSE: {what}: {reached:.10g} reached, {certified:.10g} certified", flush=True)
    for kind in KINDS:
        print(f"{kind:20s} {made[kind]:6d} comparisons, {false[kind]} false, largest ratio {largest[kind]:.6f}")
    print(f"{'in all':20s} {made.total():6d} comparisons, {false.total()} false")


if __name__ == "__main__":
    main()
