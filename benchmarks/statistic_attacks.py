"""Attack random tiny designs with hill-climbed statistics: how many comparisons, how many false bounds.

For a tiny design and two neighbouring populations the law of the sample is enumerated. A statistic that moves by at
most one per record is climbed, one sample's value at a time, to make delta large; the last one's delta is computed
exactly and compared with the certificate. A ratio of 1 means that the attack reaches it. The wrong certificates of
tests/verify/test_statistic_attacks.py are caught this way.

python benchmarks/statistic_attacks.py [--seconds 60] [--seed 1]
"""

import argparse
import math
import time
import warnings
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

import numpy as np

from privamp import (
    ClusterSampling,
    DiscreteGaussian,
    DiscreteLaplace,
    Gaussian,
    Guarantee,
    InvalidInput,
    Laplace,
    MultiStage,
    Neighbors,
    NoTheorem,
    Poisson,
    PoissonPPS,
    Proportional,
    SharedRate,
    Stratified,
    WithoutReplacement,
    amplify,
)
from privamp.core.population import Population
from privamp.designs.strata import joined
from privamp.errors import DegradingDesign
from privamp.verify.enumerate import exact_delta_of_laws
from privamp.verify.noise import noise_of
from privamp.verify.symmetry import collect

AR, RO = Neighbors.ADD_REMOVE, Neighbors.REPLACE_ONE
INSIDE = replace(RO, scope="within stratum")
NOISES = [kind(scale) for kind in (Gaussian, Laplace, DiscreteGaussian, DiscreteLaplace) for scale in (0.5, 1.0, 3.0)]
EPSILONS = (0.0, 0.1, 0.3, 0.8, 1.5)
STEPS, LARGEST = 25, 80  # of one climb; samples of one law
POINTS = {True: np.arange(-60.0, 61.0), False: np.linspace(-14.0, 14.0, 1401)}  # where discrete and other noise is seen

Units = tuple[int, ...]
Law = dict[Units, Any]
Case = tuple[Any, Any, Neighbors]  # design, population, relation
Certify = Callable[[Any, Any, Neighbors], Guarantee]


def clusters(rng: np.random.Generator) -> Case:
    """Whole, with coins for their members, or with a fixed number of them."""
    count = int(rng.integers(2, 4))
    caps = tuple(int(cap) for cap in rng.integers(1, 3, count))
    second = [Poisson(float(rng.uniform(0.05, 0.95))), 1, None][int(rng.choice(3, p=[0.6, 0.2, 0.2]))]
    design = ClusterSampling(int(rng.integers(1, count + 1)), count, caps, second)
    return design, design.sized(tuple(int(rng.integers(0, cap + 1)) for cap in caps)), rng.choice([AR, RO])


def trimmed(rng: np.random.Generator) -> Case:
    """Clusters that may be larger than their caps."""
    count = int(rng.integers(2, 4))
    caps = tuple(int(cap) for cap in rng.integers(1, 3, count))
    second = Poisson(float(rng.uniform(0.05, 0.95))) if rng.random() < 0.5 else None
    design = ClusterSampling(int(rng.integers(1, count)), count, caps, second, trim=True)
    return design, design.sized(tuple(int(rng.integers(0, cap + 2)) for cap in caps)), rng.choice([AR, RO])


def stages(rng: np.random.Generator) -> Case:
    count = size = int(rng.integers(2, 5))
    chain: list[tuple[Any, int]] = []
    for _ in range(int(rng.integers(2, 4))):
        kind = str(rng.choice(["wor", "wr"]))
        size = int(rng.integers(1, (size if kind == "wor" else 3) + 1))
        chain.append((kind, size))
    return MultiStage(chain, count), count, RO


def strata(rng: np.random.Generator) -> Case:
    """Shares and coins; a record may move."""
    parts, sizes = {}, {}
    for name in "ab":
        sizes[name] = int(rng.integers(1, 4))
        own = [Proportional(float(rng.choice([0.3, 0.5]))), Poisson(float(rng.uniform(0.1, 0.9)))]
        parts[name] = own[int(rng.integers(2))]
    return Stratified(parts), joined({name: Population(size) for name, size in sizes.items()}), rng.choice([AR, RO])


def fixed_strata(rng: np.random.Generator) -> Case:
    """Fixed numbers of records of public numbers; a record stays in its stratum, or moves."""
    parts, sizes = {}, {}
    for name in "ab":
        sizes[name] = int(rng.integers(2, 5))
        parts[name] = WithoutReplacement(int(rng.integers(1, sizes[name] + 1)), sizes[name])
    population = joined({name: Population(size) for name, size in sizes.items()})
    return Stratified(parts), population, rng.choice([AR, RO, INSIDE])


def shared(rng: np.random.Generator) -> Case:
    count, number = int(rng.integers(3, 6)), int(rng.integers(1, 3))
    labels = np.sort(rng.integers(0, 2, count))
    return SharedRate(number, count, 2), Population(count, stratum=labels), rng.choice([AR, RO])


def shares(rng: np.random.Generator) -> Case:
    """A share of at most so many records."""
    most, rounding = int(rng.integers(2, 6)), str(rng.choice(["random", "floor", "half-up", "ceil"]))
    design = Proportional(float(rng.uniform(0.1, 0.9)), rounding, at_most=most)  # type: ignore[arg-type]
    return design, most - 1, rng.choice([AR, RO])


def by_size(rng: np.random.Generator) -> Case:
    """Coins in proportion to private sizes."""
    count, high = int(rng.integers(3, 6)), float(rng.uniform(1.0, 3.0))
    design = PoissonPPS.proportional(float(rng.uniform(0.3, 2.0)), 1.0, high, count)
    return design, Population(count, size=rng.choice([1.0, high], count)), rng.choice([AR, RO])


KINDS = {
    "clusters": clusters,
    "trimmed clusters": trimmed,
    "stages": stages,
    "strata, moved": strata,
    "fixed strata": fixed_strata,
    "shared rate, moved": shared,
    "shares, at most": shares,
    "by private size": by_size,
}


def distances(samples: list[Units]) -> np.ndarray:
    """How many records must be added or removed, shape (N, N)."""
    ids = sorted({unit for units in samples for unit in units})
    counts = np.array([[units.count(i) for i in ids] for units in samples]).reshape(len(samples), len(ids))
    return np.asarray(np.abs(counts[:, None] - counts).sum(axis=2))


def moved(values: np.ndarray, at: int, by: int, apart: np.ndarray) -> np.ndarray:
    """One value changed, and the others just so far that no two differ by more than their samples."""
    new = values[at] + by
    return np.asarray(np.maximum(values, new - apart[at]) if by > 0 else np.minimum(values, new + apart[at]))


def quick_delta(noise: Any, values: np.ndarray, gap: np.ndarray) -> float:
    """About delta, by a sum over some points; `gap` is P - e^eps Q by sample."""
    places, index = np.unique(values, return_inverse=True)
    seen = noise_of(noise)
    points = POINTS[seen.is_discrete]
    sums = seen.density(points[:, None] - places) @ np.bincount(index, gap)
    return float(np.sum(np.maximum(sums, 0.0)) * (points[1] - points[0]))


def climbed(noise: Any, p: Law, q: Law, epsilon: float, rng: np.random.Generator) -> float:
    """delta of the best statistic found, exactly."""
    samples = sorted(set(p) | set(q))
    apart = distances(samples)
    first, second = (np.array([float(law.get(units, 0)) for units in samples]) for law in (p, q))
    gap = first - math.exp(epsilon) * second
    likelier = np.flatnonzero(gap > 0.0)
    starts = likelier if likelier.size and rng.random() < 0.7 else rng.integers(0, len(samples), 2)
    values = -apart[starts].min(axis=0)
    best = quick_delta(noise, values, gap)
    for _ in range(STEPS):
        new = moved(values, int(rng.integers(len(samples))), int(rng.choice([-1, 1])), apart)
        if (delta := quick_delta(noise, new, gap)) >= best:
            values, best = new, delta
    laws: list[dict[float, float]] = []
    for law in (first, second):
        total: defaultdict[float, float] = defaultdict(float)
        for value, chance in zip(values.tolist(), law.tolist(), strict=True):
            total[float(value)] += chance
        laws.append({place: chance for place, chance in total.items() if chance > 0.0})
    return float(exact_delta_of_laws(laws[0], laws[1], noise, epsilon))


def attacks(kind: str, rng: np.random.Generator, certify: Certify = amplify) -> Iterator[tuple[float, float, str]]:
    """(delta reached, certified, what) of one random design."""
    noise = NOISES[int(rng.integers(len(NOISES)))]
    try:
        design, population, relation = KINDS[kind](rng)
        guarantee = certify(noise, design, relation)
    except (NoTheorem, InvalidInput):
        return
    pairs = list(design.neighboring(population, relation))
    for i in rng.permutation(len(pairs))[:2]:
        p, q = (collect(design.law(one)) for one in pairs[i])
        if len(set(p) | set(q)) > LARGEST:
            continue
        for epsilon in rng.choice(EPSILONS, 2, replace=False):
            certified = float(guarantee.delta(float(epsilon)))
            what = f"{design} {noise} {relation} {epsilon}"
            for one, other in ((p, q), (q, p)):
                yield climbed(noise, one, other, float(epsilon), rng), certified, what


def is_false(reached: float, certified: float) -> bool:
    """Whether an attack reaches more than is certified, beyond rounding."""
    return reached > certified * (1.0 + 1e-9) + 1e-12


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
                if is_false(reached, certified):
                    false[kind] += 1
                    print(f"FALSE: {what}: {reached:.10g} reached, {certified:.10g} certified", flush=True)
    for kind in KINDS:
        print(f"{kind:20s} {made[kind]:6d} comparisons, {false[kind]} false, largest ratio {largest[kind]:.6f}")
    print(f"{'in all':20s} {made.total():6d} comparisons, {false.total()} false")


if __name__ == "__main__":
    main()
