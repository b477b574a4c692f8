"""What a sample buys and costs: records used, time and error of a mean at equal certified epsilon.

    python benchmarks/query_trade.py [--records 2000000] [--epsilon 0.1 1] [--rate 1 0.1 0.01] [--runs 20]

A Parquet file of made-up incomes (lognormal, cut to 0 and 200,000) is asked for its mean: by privamp from all records
and from samples, the noise calibrated so that the certified epsilon is the same, and by OpenDP and diffprivlib from all
records. Columns: records that are used (the expected number; every file is read through, because each record's coin is
tossed by its place), seconds for one answer, reading included (the median), the standard errors of noise and sampling
that the release states, and the root mean squared error over the runs, all over the true mean. OpenDP hides the number
of records, as privamp does: a noisy sum over a noisy count. diffprivlib takes it as public, which is easier.
"""

import argparse
import math
import statistics
import tempfile
import time
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from query_peers import peers

from privamp import Poisson, open_table

BOUNDS = (0.0, 200_000.0)


def timed(answer, runs: int) -> tuple[list, float]:
    """What it gives in every run, and the median time of one."""
    found, seconds = [], []
    for _ in range(runs):
        begun = time.perf_counter()
        found.append(answer())
        seconds.append(time.perf_counter() - begun)
    return found, statistics.median(seconds)


def line(who: str, used: float, seconds: float, stated: tuple[float, float] | None, values: list, truth: float) -> None:
    """One row; errors in millionths of the mean."""
    error = math.sqrt(float(np.mean((np.array(values) - truth) ** 2))) / truth
    own = "       -         -" if stated is None else f"{1e6 * stated[0] / truth:8.1f}  {1e6 * stated[1] / truth:8.1f}"
    about = error / math.sqrt(2.0 * len(values))
    print(f"{who:24s} {used:10.0f}  {seconds:7.3f}  {own}  {1e6 * error:8.1f} ± {1e6 * about:.1f}", flush=True)


def compared(path: Path, epsilon: float, asked: argparse.Namespace, truth: float, others: dict) -> None:
    """All rows of one epsilon."""
    print(f"\nepsilon {epsilon:g}          records  seconds     noise  sampling     error  (millionths of the mean)")
    for rate in asked.rate:
        table = open_table(path).sample(Poisson(rate))
        made, seconds = timed(lambda t=table: t.mean("income", BOUNDS).run(epsilon=epsilon), asked.runs)
        stated = statistics.median(r.noise_error for r in made), statistics.median(r.sampling_error for r in made)
        line(f"privamp, Poisson({rate:g})", rate * asked.records, seconds, stated, [r.value for r in made], truth)
        assert all(r.guarantee.epsilon() <= epsilon * (1 + 1e-9) for r in made)
    for who, peer in others.items():
        ask = getattr(peer, "secret_mean", None) or peer.known_mean

        def answer(ask=ask):
            x = pq.read_table(path, columns=["income"])["income"].to_numpy()
            return float(ask(x, BOUNDS, epsilon)()[0])

        values, seconds = timed(answer, asked.runs)
        line(who, asked.records, seconds, None, values, truth)


def main() -> None:
    """One table for every epsilon."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--records", type=int, default=2_000_000)
    parser.add_argument("--epsilon", type=float, nargs="+", default=[0.1, 1.0])
    parser.add_argument("--rate", type=float, nargs="+", default=[1.0, 0.1, 0.01])
    parser.add_argument("--runs", type=int, default=20)
    asked = parser.parse_args()
    x = np.minimum(np.random.default_rng(4).lognormal(10.0, 0.7, asked.records), BOUNDS[1])
    others = peers()
    print(f"{asked.records} records, {asked.runs} runs of each")
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "people.parquet"
        pq.write_table(pa.table({"income": x}), path)
        for epsilon in asked.epsilon:
            compared(path, epsilon, asked, float(x.mean()), others)


if __name__ == "__main__":
    main()
