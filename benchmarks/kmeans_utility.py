"""The cost of private k-means, all private steps included: k-means cost / mean squared norm, median over seeds.

    python benchmarks/kmeans_utility.py [--quick] [--data FOLDER] [--diffprivlib PYTHON]

Data are centred, cut at the 97.5 percentile of the norm and centred again beforehand; the radius is then public. One
table per data set; `nobody protected` is scikit-learn's k-means. --diffprivlib names a Python that has diffprivlib
(with scikit-learn 1.8 at most), whose KMeans is run at the same epsilon, with its bounds given as the true column
ranges (which it needs to be public).
"""

import argparse
import json
import os
import subprocess
import tempfile
import time
from pathlib import Path

import numpy as np

from privamp import PrivateKMeans
from privamp.testing import seeds_allowed

FILES = {
    "covertype": ("covertype.npz", "X"),
    "kdd_protein": ("kdd_protein.npz", "X"),
    "ijcnn1": ("ijcnn1.npz", "X_train"),
}
SIZES = {"covertype": 20_000, "kdd_protein": 20_000, "ijcnn1": 10_000}
EPSILONS = (0.5, 1.0, 3.0, 10.0)
K, DELTA = 25, 1e-6
FIRST_SEED = 1000  # the constants of the method were chosen on seeds 0 to 7
METHODS = {
    "uniform, pure": {"sampler": "uniform"},
    "privacy-constrained, pure": {"sampler": "privacy-constrained"},
    "privacy-constrained, (eps, 1e-6)": {"sampler": "privacy-constrained", "noise": "gaussian", "delta": DELTA},
    "coreset, pure": {"sampler": "coreset"},
    "all records, pure": {"sampler": None, "sample_size": None},
}
THEIRS = """
import json, sys, warnings
import numpy as np
warnings.simplefilter("ignore")
from diffprivlib.models import KMeans
X = np.load(sys.argv[1]); low, high = X.min(0), X.max(0)
for epsilon in json.loads(sys.argv[3]):
    for seed in range(int(sys.argv[2])):
        model = KMeans(25, epsilon=epsilon, bounds=(low, high), random_state=seed).fit(X)
        print(json.dumps([epsilon, model.cluster_centers_.tolist()]), flush=True)
"""


def records(folder: Path, name: str) -> np.ndarray:
    file, field = FILES[name]
    X = np.ascontiguousarray(np.load(folder / file)[field], dtype=np.float64)
    X -= X.mean(axis=0)
    norms = np.linalg.norm(X, axis=1)
    X = X[norms < np.percentile(norms, 97.5)]
    return X - X.mean(axis=0)


def cost(X: np.ndarray, centres: np.ndarray) -> float:
    """On all records: not private, for this table only."""
    half, total = 0.5 * np.sum(centres**2, axis=1), 0.0
    for at in range(0, len(X), 8192):
        rows = X[at : at + 8192]
        total += np.sum(rows**2) - 2.0 * np.sum(np.max(rows @ centres.T - half, axis=1))
    return float(total / np.sum(X**2))


def ours(X: np.ndarray, size: int, epsilon: float, seeds: int, options: dict) -> list[float]:
    radius = float(np.linalg.norm(X, axis=1).max())
    costs = []
    for seed in range(FIRST_SEED, FIRST_SEED + seeds):
        asked = {"sample_size": size} | options
        model = PrivateKMeans(K, epsilon=epsilon, radius=radius, random_state=seed, **asked).fit(X)
        assert model.guarantee_.epsilon(model.delta) <= epsilon
        costs.append(cost(X, model.cluster_centers_))
    return costs


def theirs(python: str, X: np.ndarray, seeds: int) -> dict[float, list[float]]:
    with tempfile.TemporaryDirectory() as folder:
        np.save(Path(folder) / "x.npy", X)
        command = [python, "-c", THEIRS, str(Path(folder) / "x.npy"), str(seeds), json.dumps(EPSILONS)]
        lines = subprocess.run(command, capture_output=True, text=True, check=True).stdout.splitlines()
    found: dict[float, list[float]] = {epsilon: [] for epsilon in EPSILONS}
    for line in lines:
        epsilon, centres = json.loads(line)
        found[epsilon].append(cost(X, np.array(centres)))
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    default = os.environ.get("PRIVAMP_SHARED", Path(__file__).parents[2] / "shared")
    parser.add_argument("--data", type=Path, default=Path(default) / "data")
    parser.add_argument("--only", choices=FILES, help="one data set")
    parser.add_argument("--seeds", type=int, default=20)
    parser.add_argument("--quick", action="store_true", help="3 seeds, two epsilons, every tenth record")
    parser.add_argument("--diffprivlib", metavar="PYTHON", help="a Python that has diffprivlib")
    asked = parser.parse_args()
    seeds, epsilons = (3, (1.0, 10.0)) if asked.quick else (asked.seeds, EPSILONS)
    for name in [asked.only] if asked.only else FILES:
        X, size = records(asked.data, name), SIZES[name]
        if asked.quick:
            X, size = X[::10], size // 10
        from sklearn.cluster import KMeans

        open_costs = [cost(X, KMeans(K, n_init=1, random_state=s).fit(X).cluster_centers_) for s in range(3)]
        print(f"\n{name}: {X.shape[0]} x {X.shape[1]}, k={K}, m={size}, median of {seeds} seeds")
        print(f"{'epsilon':34s}" + "".join(f"{e:9g}" for e in epsilons) + "    seconds a fit")
        print(f"{'nobody protected':34s}" + f"{np.median(open_costs):9.4f}" * len(epsilons))
        table: dict[str, list[float]] = {}
        for label, options in METHODS.items():
            began = time.perf_counter()
            with seeds_allowed():
                table[label] = [float(np.median(ours(X, size, e, seeds, options))) for e in epsilons]
            seconds = (time.perf_counter() - began) / (seeds * len(epsilons))
            print(f"{label:34s}" + "".join(f"{c:9.4f}" for c in table[label]) + f"{seconds:9.2f}", flush=True)
        if asked.diffprivlib and not asked.quick:
            found = theirs(asked.diffprivlib, X, seeds)
            print(f"{'diffprivlib, all records':34s}" + "".join(f"{np.median(found[e]):9.4f}" for e in epsilons))
        uniform, pure, gauss = list(table.values())[:3]
        print(
            "privacy-constrained <= uniform:",
            "yes" if all(p <= u for p, u in zip(pure, uniform, strict=True)) else "no",
        )
        print("(eps, delta) <= pure:", "yes" if all(g <= p for g, p in zip(gauss, pure, strict=True)) else "no")


if __name__ == "__main__":
    main()
