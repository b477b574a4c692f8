"""One `amplify` call with one number read off, against one delta of the bare mechanism."""

import statistics
import time

from privamp import Gaussian, Laplace, MultiStage, Neighbors, Poisson, WithoutReplacement, WithReplacement, amplify

RO = Neighbors.REPLACE_ONE
CASES = {
    "Poisson, Gaussian": (Gaussian(1.0), Poisson(0.01)),
    "without replacement, Gaussian": (Gaussian(1.0, neighbors=RO), WithoutReplacement(400, 1000)),
    "with replacement, Gaussian": (Gaussian(1.0, neighbors=RO), WithReplacement(400, 1000)),
    "two stages, Gaussian": (Gaussian(1.0, neighbors=RO), MultiStage([("wor", 118), ("wr", 200)], 10_000)),
    "two stages, Laplace": (Laplace(4.0, neighbors=RO), MultiStage([("wor", 118), ("wr", 200)], 10_000)),
}


def median_ms(run, repeats=15):
    times = []
    for _ in range(repeats):
        started = time.perf_counter()
        run()
        times.append(1e3 * (time.perf_counter() - started))
    return statistics.median(times)


if __name__ == "__main__":
    import warnings

    warnings.simplefilter("ignore")
    bare = median_ms(lambda: Gaussian(1.0).profile(RO).delta(1.0))
    for name, (mechanism, design) in CASES.items():
        call = median_ms(lambda m=mechanism, d=design: amplify(m, d))
        read = median_ms(lambda m=mechanism, d=design: amplify(m, d).delta(1.0))
        print(
            f"{name:32s} call {call / bare:6.1f}, with delta {read / bare:6.1f} bare deltas ({call:.2f}, {read:.2f} ms)"
        )
