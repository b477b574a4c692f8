"""`survey.allocate` beside the stratified design of arXiv 2501.18121 (Chen, Pasupathy & Awan 2025).

Reconstructed from the paper's abstract; its own experiments are not repeated here. Every stratum mean gets Laplace
noise of its own, with the nominal budget log(1 + (e^eps - 1) N_h/n_h) that sampling n_h of N_h amplifies to eps, and
the whole sizes minimise

    sum_h (N_h/N)^2 [(1 - n_h/N_h) S_h^2/n_h + 2 (R_h / (n_h log(1 + (e^eps - 1) N_h/n_h)))^2].

The sum is convex in each n_h and the strata meet in the total only, so handing out one record after the other where it
helps most finds the best whole sizes exactly (Gross 1956). `allocate` adds one noise to the weighted mean instead,
whose scale the most exposed stratum decides; the other design also releases the stratum means. Both protect one record
replaced within its stratum.

    python benchmarks/allocation_paper.py
"""

import heapq
import math

from privamp.survey import Stratum, allocate

FRAMES = {
    "docs/allocation.md, 1,000 of 10,000": (
        [
            Stratum("a", 5000, 10, 3), Stratum("b", 3000, 50, 12), Stratum("c", 1500, 200, 40),
            Stratum("d", 500, 1000, 15),
        ],
        1000,
    ),
    "equal strata, 400 of 4,000": ([Stratum(name, 1000, 1, 0.3) for name in "abcd"], 400),
    "one small stratum, 300 of 3,000": (
        [Stratum("many", 2800, 1, 0.4), Stratum("few", 200, 1, 0.1)], 300,
    ),
    "schools by level, 200 of 6,157": (
        [Stratum("E", 4397, 1600, 180), Stratum("M", 1009, 4200, 440), Stratum("H", 751, 4200, 690)], 200,
    ),
}  # fmt: skip


def stratum_variance(h, n, total, epsilon, *, noise=True):
    """The part of one stratum in the variance of the mean, with noise of its own."""
    share, rate = h.population / total, n / h.population
    nominal = math.log1p(math.expm1(epsilon) / rate)
    return share**2 * ((1 - rate) * h.sd**2 / n + (2 * (h.range / (n * nominal)) ** 2 if noise else 0.0))


def by_stratum(strata, size, epsilon, *, noise=True):
    """Whole sizes that minimise the variance with noise per stratum (or, without noise, Neyman's)."""
    total = sum(h.population for h in strata)
    sizes = dict.fromkeys((h.name for h in strata), 1)
    part = lambda h, n: stratum_variance(h, n, total, epsilon, noise=noise)  # noqa: E731
    gains = [(part(h, 2) - part(h, 1), k) for k, h in enumerate(strata) if h.population > 1]
    heapq.heapify(gains)
    for _ in range(size - len(strata)):
        _, k = heapq.heappop(gains)
        h = strata[k]
        sizes[h.name] += 1
        n = sizes[h.name]
        if n < h.population:
            heapq.heappush(gains, (part(h, n + 1) - part(h, n), k))
    return sizes


def variance_by_stratum(strata, sizes, epsilon):
    """Of the mean, with noise per stratum."""
    total = sum(h.population for h in strata)
    return sum(stratum_variance(h, sizes[h.name], total, epsilon) for h in strata)


def main():
    """Print both designs at three budgets."""
    print("total variance of the mean: noise per stratum (Neyman sizes, best sizes) | one noise (Neyman, optimal)")
    for name, (strata, size) in FRAMES.items():
        for epsilon in (0.1, 0.5, 2.0):
            neyman = by_stratum(strata, size, epsilon, noise=False)
            best = by_stratum(strata, size, epsilon)
            theirs = [variance_by_stratum(strata, sizes, epsilon) for sizes in (neyman, best)]
            ours = [allocate(strata, size, epsilon, method).variance for method in ("neyman", "optimal")]
            sizes = "/".join(str(n) for n in best.values())
            own = "/".join(str(n) for n in allocate(strata, size, epsilon).sizes.values())
            print(
                f"{name}, eps {epsilon:g}: {theirs[0]:.4g}, {theirs[1]:.4g} ({sizes}) | {ours[0]:.4g}, {ours[1]:.4g} "
                f"({own}); ratio of the best {ours[1] / theirs[1]:.2f}"
            )


if __name__ == "__main__":
    main()
