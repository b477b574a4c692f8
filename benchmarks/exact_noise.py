"""What exact noise costs: nanoseconds a draw, against floats and against OpenDP's samplers, in one run.

    python benchmarks/exact_noise.py

Ratios are to a baseline of the same run, so the machine cancels. Where the `opendp` package can be imported its
draws are also compared with ours: a chi-square test of two samples of the same law, at false alarm 1e-9, and a twin
with 10 percent more noise that the same test must catch. Last, what discreteness costs in epsilon.
"""

import math
import time

import numpy as np
from scipy.special import chdtrc

from privamp import ExactGaussian, ExactLaplace, Gaussian, Laplace, Neighbors, Poisson, PrivateSum
from privamp.chance.discrete import discrete_gaussian, discrete_laplace
from privamp.chance.stream import Stream
from privamp.core.profile import Profile
from privamp.mechanisms.discrete_gaussian_vectors import discrete_gaussian_vector_curve, renyi_curve
from privamp.mechanisms.gaussian import gaussian_curve

DRAWS = 200_000
ROWS = 10**6
KINDS = {
    "laplace": (Laplace(50.0, 30.0), ExactLaplace(50.0, 30.0), 1),
    "gaussian": (Gaussian(50.0, 8.0), ExactGaussian(50.0, 8.0), 2),
}
WANTED = {"discrete Laplace": 100.0, "discrete Gaussian": 200.0}  # nanoseconds a draw
THEIRS = 20_000
SCALES = (3.5, 1000.25, 2.0**30 + 0.5)
FALSE_ALARM = 1e-9
AR = Neighbors.ADD_REMOVE


def cost(work, n, repeats=3):
    """Best of a few runs, in nanoseconds of one core an item (a busy machine does not count); the first warms up."""
    work()
    best = math.inf
    for _ in range(repeats):
        start = time.process_time()
        work()
        best = min(best, time.process_time() - start)
    return best / n * 1e9


def same_law(one, other):
    """Two-sample chi-square over forty cells that are equally full of `one`; False below the false alarm."""
    edges = np.unique(np.quantile(one, np.linspace(0, 1, 41)[1:-1]))
    a, b = (np.bincount(np.searchsorted(edges, x), minlength=edges.size + 1).astype(float) for x in (one, other))
    fair = (a + b) / (a.sum() + b.sum())
    statistic = sum((((x - fair * x.sum()) ** 2) / np.maximum(fair * x.sum(), 1e-300)).sum() for x in (a, b))
    return chdtrc(edges.size, statistic) > FALSE_ALARM


def opendp_samplers():
    """Their discrete Laplace and Gaussian on n zeros, or None."""
    try:
        import opendp.prelude as dp
    except ImportError:
        return None
    dp.enable_features("contrib")

    def sampler(make, distance):
        def draw(scale, n):
            domain = dp.vector_domain(dp.atom_domain(T="i64"), size=n)
            return np.asarray(make(domain, distance, scale=scale)([0] * n), dtype=np.int64)

        return draw

    return {
        "discrete Laplace": sampler(dp.m.make_laplace, dp.l1_distance(T="i64")),
        "discrete Gaussian": sampler(dp.m.make_gaussian, dp.l2_distance(T="f64")),
    }


def main():
    stream = Stream.from_os()
    ours = {"discrete Laplace": discrete_laplace, "discrete Gaussian": discrete_gaussian}
    floats = {
        "discrete Laplace": cost(lambda: stream.laplaces(DRAWS), DRAWS),
        "discrete Gaussian": cost(lambda: stream.normals(DRAWS), DRAWS),
    }
    theirs = opendp_samplers()
    if theirs is None:
        print("opendp cannot be imported: its samplers are NOT compared in this run")
    for name, draw in ours.items():
        for scale in SCALES:
            own = cost(lambda d=draw, s=scale: d(stream, s, DRAWS), DRAWS)
            met = "yes" if own <= WANTED[name] else "NO"
            line = f"{name:18} scale {scale:14.2f} {own:7.0f} ns a draw (at most {WANTED[name]:.0f} wanted: {met}), "
            line += f"{own / floats[name]:5.1f} x idealised floats"
            if theirs is not None:
                other = cost(lambda n=name, s=scale: theirs[n](s, THEIRS), THEIRS, repeats=1)
                one, two = draw(stream, scale, 50_000), theirs[name](scale, 50_000)
                twin = draw(stream, scale * 1.1, 50_000)
                line += f"; opendp {other:7.0f} ns ({other / own:4.1f} x ours), same law: {same_law(one, two)}"
                line += f", 10% more noise caught: {not same_law(twin, two)}"
            print(line)
    _whole_path()
    _cost_in_epsilon()


def _whole_path():
    """Clip to noisy answer by the two ways to release a sum, the draw left out, beside plain NumPy."""
    rows = np.random.default_rng(0).normal(size=(ROWS, 10))
    print(f"sum of {ROWS:,} rows of 10, clip to noisy answer:")
    for kind, noises in KINDS.items():
        plain, *times = in_turn(
            [lambda p=noises[2]: _plain(rows, p), *_released(rows, *noises[:2]), *_jobs(rows, kind)]
        )
        print(f"  {kind:8} plain NumPy floats, no guarantee about rounding: {plain:6.0f} ns a row")
        for way, idealised, exact in (("Sample.release", *times[:2]), ("PrivateSum", *times[2:])):
            met = "yes" if exact <= 1.3 * idealised else "NO"
            print(
                f"  {kind:8} {way:14} idealised {idealised:6.0f}, exact {exact:6.0f} ns a row: ratio "
                f"{exact / idealised:.2f} (at most 1.3 wanted: {met}); {exact / plain:.2f} of plain NumPy"
            )


def _plain(rows, p):
    norms = np.abs(rows).sum(axis=1) if p == 1 else np.sqrt(np.einsum("ij,ij->i", rows, rows))
    return (rows * np.minimum(1.0, 50.0 / np.maximum(norms, 1e-300))[:, None]).sum(axis=0) + np.random.normal(size=10)


def _released(rows, *noises):
    """The same sample for all; its ledger grows, which nobody asks."""
    sample = Poisson(1.0).draw(len(rows))
    return [lambda noise=noise: sample.release(noise, rows) for noise in noises]


def _jobs(rows, kind):
    """All records, so that nothing is drawn."""
    options = {"bounds": 50.0, "epsilon": 1.0, "noise": kind, "delta": 0.0 if kind == "laplace" else 1e-6}
    return [
        lambda arithmetic=arithmetic: PrivateSum(arithmetic=arithmetic, **options).release(rows)
        for arithmetic in ("idealised", "exact")
    ]


def in_turn(works, repeats=5):
    """Nanoseconds of one core a row, the least of several repeats, taken in turns."""
    return np.min([[cost(work, ROWS, repeats=1) for work in works] for _ in range(repeats)], axis=0).tolist()


def _cost_in_epsilon():
    print("epsilon at delta 1e-6, discrete against continuous noise of the same size (theta = 1):")
    continuous = Profile.symmetric(gaussian_curve(1.0)).epsilon(1e-6)
    for sigma in (2.0, 4.0, 10.0, 100.0, 2.0**20):
        vector = Profile.symmetric(discrete_gaussian_vector_curve(sigma, sigma, 10)).epsilon(1e-6)
        renyi = Profile.symmetric(renyi_curve(0.5)).epsilon(1e-6)
        print(
            f"  Gaussian, sigma {sigma:9.0f} grid units, 10 coordinates: {vector / continuous - 1:+.1e} "
            f"(by Rényi alone {renyi / continuous - 1:+.1e})"
        )
    exact, plain = ExactLaplace(1.0).profile(AR), Laplace(1.0).profile(AR)
    print(f"  Laplace, default grid: pure epsilon {exact.epsilon() / plain.epsilon() - 1:+.1e}, ", end="")
    print(f"delta(0.5) {exact.delta(0.5) / plain.delta(0.5) - 1:+.1e}")


if __name__ == "__main__":
    main()
