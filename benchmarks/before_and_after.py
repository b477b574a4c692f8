"""What jobs cost now against an older state of this repository, as ratios in one run.

    git worktree add --detach ../before 00963f4      # the state before one record's reach was checked in every job
    python benchmarks/before_and_after.py ../before/src
    python benchmarks/before_and_after.py ../before/src --only spark --rows 1000000
    python benchmarks/before_and_after.py ../before/src --cpu       # where others use the machine, too

Every job runs in a process of its own, both states in turn; the best of a few runs counts, so that the machine cancels.
A job whose libraries are missing is skipped.
"""

import argparse
import os
import subprocess
import sys
from pathlib import Path

NOW = Path(__file__).parents[1] / "src"
START = """
import os, sys, time, warnings
import numpy as np
warnings.simplefilter("ignore")
rows, repeats, clock = int(sys.argv[1]), int(sys.argv[2]), getattr(time, sys.argv[3])
rng = np.random.default_rng(1)

def best(job):
    times = []
    for _ in range(repeats + 1):  # the first one warms up
        start = clock()
        job()
        times.append(clock() - start)
    print(min(times[1:]))
"""
SGD = """
try:
    from privamp.sgd import PrivateLogistic
except ImportError:
    from privamp.workloads.sgd import PrivateLogistic
from privamp import Poisson
n = rows // 50
X = rng.standard_normal((n, 20)) / 5
y = (X[:, 0] + rng.standard_normal(n) / 3 > 0).astype(int)
best(lambda: PrivateLogistic(design=Poisson(0.05), sigma=5.0, steps=60, records=n).fit(X, y))
"""
BOOTSTRAP = """
from privamp import bootstrap
from privamp.bootstrap import Mean
x = rng.uniform(0, 1, rows // 50)
best(lambda: bootstrap.run(x, Mean((0.0, 1.0)), epsilon=1.0, delta=1e-6))
"""
SUM = """
from privamp import ExactLaplace, Key, Poisson
NOISE, x = ExactLaplace(2.0), rng.standard_normal((rows, 4)).astype(np.float32)
best(lambda: Poisson(0.1).draw(rows, Key.generate()).release(NOISE, NOISE.sum_of(x)))
"""
KMEANS = """
from privamp import PrivateKMeans
x = rng.standard_normal((rows // 10, 8)).astype(np.float32) / 4
best(lambda: PrivateKMeans(n_clusters=8, epsilon=1.0, radius=1.0).fit(x))
"""
SPARK = """
import tempfile
from privamp import ExactLaplace, Key, Poisson
from privamp.spark import draw, session
from pyspark.sql import functions
spark = session("local[2]")
spark.sparkContext.setLogLevel("OFF")
folder = tempfile.mkdtemp()
numbers = [(functions.hash("id", functions.lit(k)) / 2.0**31).alias(name) for k, name in enumerate("abcd")]
spark.range(rows).select("id", *numbers).write.mode("overwrite").parquet(folder)
table = spark.read.parquet(folder)
best(lambda: draw(table, Poisson(0.1), key=Key.generate(), id="id").release_sum(ExactLaplace(2.0), ["a", "b"]))
"""
SMALL_SUM = """
from inspect import signature
from privamp import PrivateSum
name = "bounds" if "bounds" in signature(PrivateSum).parameters else "radius"  # as it was called before
x = rng.uniform(0, 0.5, (rows // 1000, 2))
best(lambda: [PrivateSum(**{name: 1.0}, epsilon=1.0).release(x) for _ in range(10)])
"""
COMPOSE = """
from itertools import count
from privamp import Gaussian, Poisson, amplify, compose
sigmas = count(1000)  # another one in every run: nothing is remembered
best(lambda: compose(amplify(Gaussian(next(sigmas) / 500), Poisson(0.01)), 1000).epsilon(1e-6))
"""
LITTLE = """
from privamp import bootstrap
from privamp.bootstrap import Mean
x = rng.uniform(0, 1, rows // 50)
best(lambda: bootstrap.run(x, Mean((0.0, 1.0)), epsilon=1.0, delta=1e-6, method="little"))
"""
FILES = """
import tempfile
import pyarrow as pa
import pyarrow.parquet as pq
from privamp import ExactLaplace, Key, Poisson
from privamp.engines import local
path = f"{tempfile.mkdtemp()}/people.parquet"
pq.write_table(pa.table({"id": np.arange(rows), "x": rng.uniform(0, 1, rows)}), path)
best(lambda: local.draw(path, Poisson(0.1), key=Key.generate(), id="id").release_sum(ExactLaplace(2.0), "x"))
"""
TORCH = """
from inspect import signature
import torch
from torch import nn
from torch.utils.data import TensorDataset
from privamp import Key
from privamp.torch import PrivacyEngine
torch.set_num_threads(1)
torch.manual_seed(0)
n = rows // 50
x, y = torch.randn(n, 20), torch.randint(0, 2, (n,))
module, made = nn.Sequential(nn.Linear(20, 64), nn.ReLU(), nn.Linear(64, 2)), PrivacyEngine(key=Key.generate())
known = signature(made.make_private).parameters
made.make_private(
    module=module, optimizer=torch.optim.SGD(module.parameters(), 0.1), criterion=nn.CrossEntropyLoss(),
    data_loader=TensorDataset(x, y), sample_rate=0.02, steps=10_000, noise_multiplier=1.0, max_grad_norm=1.0,
    **{"population" if "population" in known else "public_size": n},
)
best(lambda: [made._one_step(made._run) for _ in range(20)])
"""
JOBS = {
    "small sum": SMALL_SUM,
    "compose": COMPOSE,
    "little bootstrap": LITTLE,
    "files": FILES,
    "torch step": TORCH,
    "array sum": SUM,
    "SGD": SGD,
    "bootstrap": BOOTSTRAP,
    "k-means": KMEANS,
    "Spark sum": SPARK,
}


def seconds(source: Path, code: str, rows: int, repeats: int, clock: str) -> float | str:
    """The best time of a job in one state, or why there is none."""
    path = os.pathsep.join(filter(None, [str(source.resolve()), os.environ.get("PYTHONPATH")]))
    environment = {**os.environ, "PYTHONPATH": path}
    command = [sys.executable, "-c", START + code, str(rows), str(repeats), clock]
    run = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    lines = run.stdout.strip().splitlines()
    return float(lines[-1]) if run.returncode == 0 and lines else run.stderr.strip().splitlines()[-1]


def main() -> None:
    """Print one line per job."""
    parser = argparse.ArgumentParser(description="jobs now against jobs in an older state")
    parser.add_argument("before", type=Path, help="the src folder of the older state")
    parser.add_argument("--rows", type=int, default=1_000_000)
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--turns", type=int, default=2)
    parser.add_argument("--only", default="", help="part of a job's name")
    parser.add_argument("--cpu", action="store_true", help="processor time, for a machine that others use too")
    asked = parser.parse_args()
    clock = "process_time" if asked.cpu else "perf_counter"
    for name, code in JOBS.items():
        if asked.only.lower() not in name.lower():
            continue
        found = {asked.before: [], NOW: []}
        for _ in range(asked.turns):
            for source, times in found.items():
                times.append(seconds(source, code, asked.rows, asked.repeats, clock))
        odd = next((time for times in found.values() for time in times if isinstance(time, str)), None)
        if odd is not None:
            print(f"{name:16} skipped: {odd}", flush=True)
            continue
        old, new = (min(times) for times in found.values())
        print(f"{name:16} before {old:8.3f} s, now {new:8.3f} s: {new / old:5.2f} times", flush=True)


if __name__ == "__main__":
    main()
