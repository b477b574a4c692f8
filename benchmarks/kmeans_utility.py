"""The cost of private k-means against diffprivlib, Google's LSH clustering and one centre at the private mean.

    python benchmarks/kmeans_utility.py [--data FOLDER] [--peers FOLDER] [--jobs J] [--seeds S] [--only NAME] [--quick]
        [--save FILE]

Cost: sum of squared distances to the nearest centre over that to the true mean, medians of seeds; in brackets 1.25
standard deviations over the root of the number of seeds, the error of a median. Every method is told the same ball (or
box): the box is public for made-up data, digits and Adult, and the other tables are centred and cut at the 97.5
percentile of the norm beforehand, the radius then being public. Tables with more than 60,000 rows are thinned to
about that many, evenly. Adult and Fashion-MNIST were looked at only after the method was fixed.

--peers names a folder with the Python packages diffprivlib, dp-accounting (and what they need, without NumPy, SciPy
and scikit-learn) and the folder `clustering` of Google's differential-privacy repository (learning/clustering):

    pip install --no-deps --target FOLDER diffprivlib dp-accounting absl-py attrs mpmath
    cp -r differential-privacy/learning/clustering FOLDER/clustering

Without it only the other methods are run. Google's is run as its private_lsh_clustering does, less the labelling of
all records; diffprivlib's gets the smallest box about the records (the true ranges), which favours it; the private mean
is norm noise or Gaussian noise on the sum, the number of records taken as public, which favours it too.

The last lines give the bar: (epsilon, delta) against all, pure against pure, and pure with a private ball against the
others with the public one; a cell fails when the median is more than 5% above the best of the others, beyond twice both
errors together.
"""

import argparse
import importlib
import importlib.util
import json
import os
import sys
import time
import types
import warnings
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from functools import cache
from pathlib import Path
from typing import NamedTuple

for name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ.setdefault(name, "1")

import numpy as np  # noqa: E402

EPSILONS = (0.1, 0.3, 1.0, 3.0, 10.0)
DELTA = 1e-6
MOST_ROWS = 60_000
FIRST_SEED = 1000  # the constants of the method were chosen on other seeds
WITHIN = 1.05
THEIRS = ("diffprivlib", "Google LSH, (eps, delta)")


class Data(NamedTuple):
    """Records, the public ball about them, and how many clusters are asked for."""

    X: np.ndarray
    center: np.ndarray
    radius: float
    k: int


def boxed(X: np.ndarray, low: object, high: object, k: int) -> Data:
    """In a public box: the smallest ball about it."""
    low, high = (np.broadcast_to(np.asarray(end, dtype=float), X.shape[1]) for end in (low, high))
    return Data(np.clip(X, low, high), (low + high) / 2, float(np.linalg.norm((high - low) / 2)), k)


def centred(X: np.ndarray, k: int = 25, most: int = MOST_ROWS) -> Data:
    """As in the paper on importance sampling: centred, cut, centred again."""
    X = np.ascontiguousarray(X[:: max(round(len(X) / most), 1)], dtype=np.float64)
    X -= X.mean(axis=0)
    norms = np.linalg.norm(X, axis=1)
    X = X[norms < np.percentile(norms, 97.5)]
    X -= X.mean(axis=0)
    return Data(X, np.zeros(X.shape[1]), float(np.linalg.norm(X, axis=1).max()), k)


def blobs(n: int, d: int, k: int, seed: int, spread: float, half: float, sizes: np.ndarray | None = None) -> Data:
    """Normal clusters about uniform points of a cube."""
    rng = np.random.default_rng(seed)
    middles = rng.uniform(-1, 1, (k, d))
    which = rng.choice(k, n, p=np.full(k, 1 / k) if sizes is None else sizes / sizes.sum())
    return boxed(middles[which] + spread * rng.standard_normal((n, d)), -half, half, k)


def digits(folder: Path) -> Data:
    from sklearn.datasets import load_digits

    return boxed(load_digits().data, 0, 16, 10)


def adult(folder: Path) -> Data:
    """Five numbers of every person, each scaled to 0..1 by public bounds."""
    import csv
    import gzip

    high = {"age": 100, "education_num": 16, "capital_gain": 1e5, "capital_loss": 5e3, "hours_per_week": 100}
    with gzip.open(folder / "adult.csv.gz", "rt") as file:
        rows = [[float(row[name]) / most for name, most in high.items()] for row in csv.DictReader(file)]
    return boxed(np.array(rows), 0, 1, 8)


def fashion(folder: Path) -> Data:
    """60,000 pictures, each the 49 means of its four by four squares."""
    X = np.load(folder / "fashion_mnist.npz")["X_train"].astype(np.float64)
    return boxed(X.reshape(-1, 7, 4, 7, 4).mean(axis=(2, 4)).reshape(-1, 49), 0, 255, 10)


def cod_rna(folder: Path) -> Data:
    held = np.load(folder / "cod_rna_partial.npz")
    return centred(np.concatenate([held["X_train"], held["X_test"]]))


SETS: dict[str, Callable[[Path], Data]] = {
    "blobs, 2 columns": lambda folder: blobs(20_000, 2, 15, 1, 0.06, 1.2),
    "blobs, 8 columns": lambda folder: blobs(20_000, 8, 8, 2, 0.15, 1.5),
    "unequal clusters": lambda folder: blobs(100_000, 4, 8, 3, 0.05, 1.2, 2.0 ** -np.arange(8)),
    "digits": digits,
    "cod-rna": cod_rna,
    "Covertype": lambda folder: centred(np.load(folder / "covertype.npz")["X"]),
    "KDD-Protein": lambda folder: centred(np.load(folder / "kdd_protein.npz")["X"]),
    "ijcnn1": lambda folder: centred(np.load(folder / "ijcnn1.npz")["X_train"]),
    "Adult (held out)": adult,
    "Fashion-MNIST (held out)": fashion,
}


@cache
def loaded(name: str, folder: Path) -> Data:
    return SETS[name](folder)


def cost(data: Data, centres: np.ndarray) -> float:
    """On all records: not private, for this table only."""
    mean = data.X.mean(axis=0)
    centres = centres - mean
    half, total, all_of_it = 0.5 * np.sum(centres**2, axis=1), 0.0, 0.0
    for at in range(0, len(data.X), 8192):
        rows = data.X[at : at + 8192] - mean
        square = np.sum(rows**2)
        all_of_it += square
        total += square - 2.0 * np.sum(np.max(rows @ centres.T - half, axis=1))
    return float(total / all_of_it)


def ours(data: Data, epsilon: float, seed: int, delta: float = 0.0, **options: object) -> np.ndarray:
    from privamp import PrivateKMeans
    from privamp.testing import seeds_allowed

    asked = {"radius": data.radius, "center": data.center, "noise": "gaussian" if delta else "norm"} | options
    model = PrivateKMeans(data.k, epsilon=epsilon, delta=delta, random_state=FIRST_SEED + seed, n_jobs=1, **asked)
    with seeds_allowed():
        model.fit(data.X)
    assert model.guarantee_.epsilon(delta) <= epsilon * (1.0 + 1e-12)  # evaluated, and rounded up by an ulp
    return model.cluster_centers_


def one_centre(data: Data, epsilon: float, seed: int, delta: float = 0.0) -> np.ndarray:
    """All of epsilon on the sum of the records about the middle of the ball."""
    rng, d = np.random.default_rng(seed), data.X.shape[1]
    if delta:
        noise = rng.normal(0.0, 1.0 / shift(epsilon, delta), d)
    else:
        noise = rng.standard_normal(d)
        noise *= rng.gamma(d, 1.0 / epsilon) / np.linalg.norm(noise)
    mean = (data.X - data.center).mean(axis=0) / data.radius + noise / len(data.X)
    return (data.center + data.radius * mean / max(np.linalg.norm(mean), 1.0))[None]


@cache
def shift(epsilon: float, delta: float) -> float:
    from privamp.rules.gaussian_weights import largest_influence

    return float(largest_influence(np.array([1.0]), epsilon, delta)[0])


def without_privacy(data: Data, epsilon: float, seed: int) -> np.ndarray:
    from sklearn.cluster import KMeans

    return KMeans(data.k, n_init=1, random_state=seed).fit(data.X).cluster_centers_


@cache
def diffprivlib_kmeans() -> type:
    """Only its k-means: its forests do not import with newer versions of scikit-learn."""
    spec = importlib.util.find_spec("diffprivlib")
    for name in ("diffprivlib", "diffprivlib.models"):
        module = types.ModuleType(name)
        module.__path__ = [str(Path(spec.origin).parent / name.partition(".")[2])]
        sys.modules[name] = module
    return importlib.import_module("diffprivlib.models.k_means").KMeans


def diffprivlib(data: Data, epsilon: float, seed: int) -> np.ndarray:
    low, high = data.X.min(axis=0), data.X.max(axis=0)
    high = np.maximum(high, low + 1e-6 * data.radius)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model = diffprivlib_kmeans()(data.k, epsilon=epsilon, bounds=(low, high), random_state=seed).fit(data.X)
    return model.cluster_centers_


@cache
def google_noise(epsilon: float) -> object:
    from clustering import clustering_params, privacy_calculator

    asked = clustering_params.DifferentialPrivacyParam(epsilon, DELTA)
    return privacy_calculator.PrivacyCalculator(asked, 1.0, 20, clustering_params.PrivacyCalculatorMultiplier())


def google(data: Data, epsilon: float, seed: int) -> np.ndarray:
    """In the unit ball about the public centre, as its authors advise."""
    from clustering import clustering_algorithm, clustering_params, coreset_params, default_clustering_params
    from sklearn.cluster import KMeans

    np.random.seed(seed)
    noise = google_noise(epsilon)
    held = clustering_params.Data((data.X - data.center) / data.radius, 1.0)
    held = clustering_params.Data(held.clip_by_radius(), 1.0)
    tree, count = default_clustering_params.default_tree_param(data.k, held, noise, 20)
    parameters = coreset_params.CoresetParam(noise, tree, "", 1.0)
    coreset = clustering_algorithm.get_private_coreset(held, parameters, count)
    k = min(data.k, len(coreset.datapoints))
    model = KMeans(k, init="k-means++").fit(coreset.datapoints, sample_weight=coreset.weights)
    return data.center + data.radius * model.cluster_centers_


METHODS: dict[str, Callable[[Data, float, int], np.ndarray]] = {
    "no privacy": without_privacy,
    "privamp, pure": ours,
    "privamp, (eps, delta)": lambda data, epsilon, seed: ours(data, epsilon, seed, DELTA),
    "privamp, pure, private ball": lambda data, epsilon, seed: ours(
        data, epsilon, seed, radius="private", center="private"
    ),
    "privamp, pure, m = 10,000": lambda data, epsilon, seed: ours(data, epsilon, seed, sample_size=10_000),
    "diffprivlib": diffprivlib,
    "Google LSH, (eps, delta)": google,
    "one centre, pure": one_centre,
    "one centre, (eps, delta)": lambda data, epsilon, seed: one_centre(data, epsilon, seed, DELTA),
}
SHOWN_ONLY = ("no privacy", "privamp, pure, private ball", "privamp, pure, m = 10,000")  # not in the bar


def run(task: tuple[str, str, float, tuple[int, ...], Path]) -> tuple[str, str, float, list[float], float]:
    name, method, epsilon, seeds, folder = task
    data, began = loaded(name, folder), time.process_time()
    costs = [cost(data, METHODS[method](data, epsilon, seed)) for seed in seeds]
    return name, method, epsilon, costs, time.process_time() - began


def tasks(names: list[str], methods: list[str], epsilons: tuple[float, ...], seeds: int, folder: Path) -> list[tuple]:
    """The slowest first, some seeds each."""
    found = []
    for method in methods:
        for name in names:
            for epsilon in epsilons[:1] if method == "no privacy" else epsilons:
                few = min(seeds, 3) if method == "no privacy" else seeds
                step = 2 if method in THEIRS else 5
                found += [
                    (name, method, epsilon, tuple(range(at, min(at + step, few))), folder) for at in range(0, few, step)
                ]
    heavy = {"diffprivlib": 2, "Google LSH, (eps, delta)": 1}
    return sorted(found, key=lambda task: -heavy.get(task[1], 0))


def label(task: tuple) -> str:
    return " | ".join(map(str, task[:4]))


def saved(file: Path | None) -> dict[str, tuple[list[float], float]]:
    """What an earlier run has done."""
    if file is None or not file.exists():
        return {}
    return {label: (costs, seconds) for label, costs, seconds in map(json.loads, file.read_text().splitlines())}


def started(peers: Path | None) -> None:
    """In every process: where the others' packages are."""
    warnings.simplefilter("ignore")
    if peers is not None:
        sys.path.append(str(peers))


def error(costs: list[float]) -> float:
    return 1.25 * float(np.std(costs)) / len(costs) ** 0.5


def shown(error: float) -> str:
    return f"{error:.4f}" if error < 1e3 else f"{error:.0e}"


def table(name: str, data: Data, found: dict, methods: list[str], epsilons: tuple[float, ...]) -> None:
    print(f"\n| {name}, {len(data.X):,} x {data.X.shape[1]}, k = {data.k} | " + " | ".join(map(str, epsilons)) + " |")
    print("|---" * (len(epsilons) + 1) + "|")
    for method in methods:
        if method == "no privacy":
            cells = [f"{np.median(found[name, method, epsilons[0]]):.4f}"] + [""] * (len(epsilons) - 1)
        else:
            every = [found[name, method, epsilon] for epsilon in epsilons]
            cells = [f"{np.median(costs):.4f} ({shown(error(costs))})" for costs in every]
        print(f"| {method} | " + " | ".join(cells) + " |", flush=True)


def bar(names: list[str], found: dict, methods: list[str], epsilons: tuple[float, ...]) -> None:
    """Every cell against the best of the others."""
    judged = [method for method in methods if method not in SHOWN_ONLY]
    pure = [method for method in judged if not method.endswith("delta)")]
    print("\n| cells | not worse by more than 5% | better than all others | worst ratio to the best of the others |")
    print("|---|---|---|---|")
    balls = [method for method in methods if method == "privamp, pure, private ball"]
    for mine, others in (("privamp, pure", pure), ("privamp, (eps, delta)", judged), *((ball, pure) for ball in balls)):
        rivals = [method for method in others if not method.startswith("privamp")]
        kept = better = 0
        ratios = {}
        for name in names:
            for epsilon in epsilons:
                costs = found[name, mine, epsilon]
                best = min((found[name, method, epsilon] for method in rivals), key=np.median)
                room = 2.0 * np.hypot(error(costs), error(best))
                kept += np.median(costs) <= WITHIN * np.median(best) + room
                better += np.median(costs) < np.median(best)
                ratios[name, epsilon] = float(np.median(costs) / np.median(best))
        worst = max(ratios, key=lambda cell: ratios[cell])
        many = len(names) * len(epsilons)
        where = f"{ratios[worst]:.3f} ({worst[0]}, epsilon {worst[1]:g})"
        print(f"| {mine}, {many} | {kept} | {better} | {where} |")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    default = os.environ.get("PRIVAMP_SHARED", Path(__file__).parents[2] / "shared")
    parser.add_argument("--data", type=Path, default=Path(default) / "data")
    parser.add_argument("--peers", type=Path, metavar="FOLDER", help="packages of the others")
    parser.add_argument("--only", action="append", choices=SETS, help="a data set, more than once if you like")
    parser.add_argument("--seeds", type=int, default=20)
    parser.add_argument("--jobs", type=int, default=os.cpu_count())
    parser.add_argument("--save", type=Path, metavar="FILE", help="keep what is done here, and go on from there")
    parser.add_argument("--quick", action="store_true", help="3 seeds, two epsilons")
    asked = parser.parse_args()
    seeds, epsilons = (3, (1.0, 10.0)) if asked.quick else (asked.seeds, EPSILONS)
    names = asked.only or list(SETS)
    methods = [method for method in METHODS if asked.peers or method not in THEIRS]
    found: dict[tuple[str, str, float], list[float]] = {}
    spent: dict[str, float] = dict.fromkeys(methods, 0.0)
    began = time.perf_counter()
    todo = tasks(names, methods, epsilons, seeds, asked.data)
    kept = saved(asked.save)
    with ProcessPoolExecutor(asked.jobs, initializer=started, initargs=(asked.peers,)) as pool:
        done = pool.map(run, [task for task in todo if label(task) not in kept])
        for task in todo:
            if label(task) not in kept:
                kept[label(task)] = next(done)[3:]
                if asked.save:
                    with asked.save.open("a") as file:
                        file.write(json.dumps([label(task), *kept[label(task)]]) + "\n")
            costs, seconds = kept[label(task)]
            found.setdefault(task[:3], []).extend(costs)
            spent[task[1]] += seconds
    print(f"Median of {seeds} seeds, delta = {DELTA:g}. Columns: epsilon.")
    for name in names:
        table(name, loaded(name, asked.data), found, methods, epsilons)
    bar(names, found, methods, epsilons)
    print("\nProcessor seconds: " + ", ".join(f"{method} {seconds:.0f}" for method, seconds in spent.items()))
    print(f"{time.perf_counter() - began:.0f} s with {asked.jobs} processes")


if __name__ == "__main__":
    main()
