"""What privacy-constrained weights cost, in passes of np.exp over the same array, and next to bisection.

    python benchmarks/importance_weights.py

Norms are those of Covertype as in the importance sampling paper's Table 1 (centred, the largest 2.5% dropped, centred
again) where the data are at hand (PRIVAMP_SHARED, or a `shared` folder beside the repository), otherwise made up. Every
figure is a ratio of times measured in the same run; CPU time of the thread, so that other work on the machine does not
count.
"""

import os
import time
from pathlib import Path

import numpy as np

from privamp import GaussianProfile, Influence, Laplace, LinearProfile, privacy_constrained
from privamp.rules.linear_weights import linear_weights
from privamp.rules.noise_and_size import noise_for_size
from privamp.rules.norm_histogram import NormHistogram

RECORDS = 566_486


def norms():
    """The norms over their largest, and where they come from."""
    folder = Path(os.environ.get("PRIVAMP_SHARED", Path(__file__).resolve().parents[2] / "shared"))
    file = folder / "data" / "covertype.npz"
    if not file.exists():
        made_up = np.random.default_rng(0).gamma(4.0, size=RECORDS)
        return np.minimum(made_up / 14.0, 1.0), "made-up norms (Covertype is not at hand)"
    x = np.load(file)["X"].astype(np.float64)
    x -= x.mean(axis=0)
    u = np.linalg.norm(x, axis=1)
    x = x[u < np.quantile(u, 0.975)]
    x -= x.mean(axis=0)
    u = np.linalg.norm(x, axis=1)
    return u / u.max(), "Covertype norms"


def bisection(c, epsilon):
    """The obvious vectorised solution, to a relative 1e-3, which is not private: the benchmark's reference only."""
    target = np.expm1(epsilon)
    low, high = np.ones_like(c), np.full_like(c, 2.0)
    while True:
        short = np.expm1(c * high) / high < target
        if not short.any():
            break
        high = np.where(short, 2.0 * high, high)
    while np.max((high - low) / low) > 1e-3:
        middle = 0.5 * (low + high)
        fine = np.expm1(c * middle) / middle <= target
        low, high = np.where(fine, middle, low), np.where(fine, high, middle)
    return low


def cost(work, repeats=40):
    """Best of several runs; the first one warms up."""
    work()
    best = float("inf")
    for _ in range(repeats):
        start = time.thread_time()
        work()
        best = min(best, time.thread_time() - start)
    return best


def main():
    u, source = norms()
    one = cost(lambda: np.exp(u), 60)
    print(f"{source}, {u.size:,} records; one pass of np.exp = 1")
    print(f"{'epsilon':>8} {'weights':>8} {'and q':>8} {'bisection':>10} {'ratio':>6}")
    for epsilon in (0.01, 0.1, 0.5, 1.0, 3.0, 10.0, 100.0):
        c = np.maximum(u * epsilon, 1e-300)
        weights = cost(lambda c=c, e=epsilon: linear_weights(c, e, 2.0**40)) / one
        rule = privacy_constrained(LinearProfile(Influence("pure", 0.0, epsilon / (1.0 + 1e-12))), epsilon, radius=1.0)
        both = cost(lambda rule=rule: rule.of_norms(u)) / one
        slow = cost(lambda c=c, e=epsilon: bisection(c, e), 2) / one
        print(f"{epsilon:8g} {weights:8.1f} {both:8.1f} {slow:10.1f} {slow / weights:6.1f}")
    gaussian = privacy_constrained(GaussianProfile(Influence("gaussian", 0.0, 0.2367)), 1.0, 1e-6, radius=1.0)
    gaussian.of_norms(u[:1])
    print(f"(1, 1e-6)-DP with Gaussian noise, probabilities: {cost(lambda: gaussian.of_norms(u)) / one:.1f} passes")
    histogram = NormHistogram(*np.unique(np.ceil(u * 256) / 256, return_counts=True))
    for size in (2_000, 20_000):
        found = noise_for_size(Laplace, histogram, size=size, epsilon=1.0, radius=1.0)
        print(
            f"noise for an expected size of {size:,}: {found.noise:.4g}, {found.evaluations} evaluations of the weights"
        )


if __name__ == "__main__":
    main()
