"""Means, histograms by group and quantiles beside OpenDP and diffprivlib: root mean squared errors in one run.

    python benchmarks/query_peers.py --data FOLDER [--runs 200] [--epsilon 0.1 1]
    python benchmarks/query_peers.py --data FOLDER --declared    # means: the noise by its scales, without any chance

FOLDER holds adult.csv.gz, api_schools.csv.gz and cbp2010_size_classes.csv.gz. All records are asked, at the same
epsilon and under the same relation; a peer that is not installed is left out, and said so. Errors are over fresh noise,
with the standard error of their ratio. "known n": one record is replaced and the number of records is public.
"secret n": one is added or removed. The peers' means of a secret number are a noisy sum over a noisy count, half of
epsilon each, which is what their documentation does. Quantiles: the error is that of the rank, in percentage points,
because it does not depend on the units; OpenDP is given 20,000 candidates between the bounds, or, for a column of whole
numbers with bounds less than that apart, all whole numbers between them. diffprivlib chooses any number.
The peers give no intervals, so privamp's quantiles are asked without.
"""

import argparse
import csv
import gzip
import importlib
import importlib.util
import math
import sys
import types
from collections.abc import Callable
from pathlib import Path

import numpy as np

from privamp import Neighbors, PrivateMean, open_table

ROOT2 = math.sqrt(2.0)
Answer = Callable[[], np.ndarray]


def column(path: Path, name: str, group: str | None = None) -> tuple[np.ndarray, np.ndarray]:
    """The numbers of a column (missing ones left out), and the group of each."""
    with gzip.open(path, "rt", newline="") as file:
        rows = [row for row in csv.DictReader(file) if row[name] not in ("", "NA", "?")]
    return np.array([float(row[name]) for row in rows]), np.array([row[group] if group else "" for row in rows])


def error(answer: Answer, truth: np.ndarray, runs: int) -> tuple[float, float]:
    """Root mean squared error over the runs, and its relative standard error."""
    squares = np.array([np.mean((np.asarray(answer()) - truth) ** 2) for _ in range(runs)])
    mean = float(np.mean(squares))
    return math.sqrt(mean), float(np.std(squares)) / math.sqrt(runs) / (2.0 * mean) if mean else 0.0


def ranks(x: np.ndarray, qs: list[float], answer: Answer) -> Answer:
    """How far the released quantiles' ranks are from theirs, in percentage points: nothing for one inside a tie."""
    held = np.sort(x)

    def off() -> np.ndarray:
        found = np.asarray(answer())
        low, high = (np.searchsorted(held, found, side) / len(held) for side in ("left", "right"))
        return 100.0 * (np.maximum(low - qs, 0.0) - np.maximum(qs - high, 0.0))

    return off


class OpenDP:
    """The measurements as its documentation builds them."""

    def __init__(self) -> None:
        import opendp.prelude as dp

        dp.enable_features("contrib")
        self.dp = dp

    def known_mean(self, x: np.ndarray, bounds: tuple[float, float], epsilon: float) -> Answer:
        dp = self.dp
        space = dp.vector_domain(dp.atom_domain(bounds=bounds, nan=False), size=len(x)), dp.symmetric_distance()
        make = dp.binary_search_chain(lambda s: space >> dp.t.then_mean() >> dp.m.then_laplace(s), 2, epsilon)
        data = np.clip(x, *bounds).tolist()
        return lambda: np.array([make(data)])

    def known_noise(self, x: np.ndarray, bounds: tuple[float, float], epsilon: float) -> float:
        """Standard deviation of `known_mean`, from the scale that its calibration finds."""
        dp = self.dp
        space = dp.vector_domain(dp.atom_domain(bounds=bounds, nan=False), size=len(x)), dp.symmetric_distance()
        return ROOT2 * dp.binary_search_param(lambda s: space >> dp.t.then_mean() >> dp.m.then_laplace(s), 2, epsilon)

    def secret_noise(self, x: np.ndarray, bounds: tuple[float, float], epsilon: float) -> float:
        """The same of `secret_mean`, to first order: the mean of the clipped records times the noise of the count."""
        dp = self.dp
        space = dp.vector_domain(dp.atom_domain(bounds=bounds, nan=False)), dp.symmetric_distance()
        total = dp.binary_search_param(lambda s: space >> dp.t.then_sum() >> dp.m.then_laplace(s), 1, epsilon / 2)
        count = dp.binary_search_param(lambda s: space >> dp.t.then_count() >> dp.m.then_laplace(s), 1, epsilon / 2)
        return ROOT2 * math.hypot(total, float(np.clip(x, *bounds).mean()) * count) / len(x)

    def secret_mean(self, x: np.ndarray, bounds: tuple[float, float], epsilon: float) -> Answer:
        dp = self.dp
        space = dp.vector_domain(dp.atom_domain(bounds=bounds, nan=False)), dp.symmetric_distance()
        total = dp.binary_search_chain(lambda s: space >> dp.t.then_sum() >> dp.m.then_laplace(s), 1, epsilon / 2)
        count = dp.binary_search_chain(lambda s: space >> dp.t.then_count() >> dp.m.then_laplace(s), 1, epsilon / 2)
        data = np.clip(x, *bounds).tolist()
        return lambda: np.clip([total(data) / max(count(data), 1)], *bounds)

    def histogram(self, cells: np.ndarray, names: list[str], epsilon: float) -> Answer:
        dp = self.dp
        space = dp.vector_domain(dp.atom_domain(T=str)), dp.symmetric_distance()
        make = dp.binary_search_chain(
            lambda s: space >> dp.t.then_count_by_categories(names, null_category=False) >> dp.m.then_laplace(s),
            1, epsilon,
        )  # fmt: skip
        data = cells.tolist()
        return lambda: np.array(make(data), dtype=float)

    def quantiles(self, x: np.ndarray, qs: list[float], bounds: tuple[float, float], epsilon: float) -> Answer:
        dp = self.dp
        space = dp.vector_domain(dp.atom_domain(T=float, nan=False)), dp.symmetric_distance()
        candidates = np.linspace(*bounds, 20_000).tolist()
        if np.array_equal(x, np.rint(x)) and bounds[1] - bounds[0] < 20_000:
            candidates = np.arange(bounds[0], bounds[1] + 1.0).tolist()
        each = [
            dp.binary_search_chain(
                lambda s, q=q: space >> dp.m.then_private_quantile(dp.max_divergence(), candidates, q, s),
                1, epsilon / len(qs),
            )
            for q in qs
        ]  # fmt: skip
        data = x.tolist()
        return lambda: np.array([make(data) for make in each])


def diffprivlib_tools() -> types.ModuleType:
    """Only its tools: its forests do not import with newer versions of scikit-learn."""
    spec = importlib.util.find_spec("diffprivlib")
    if spec is None or spec.origin is None:
        raise ImportError("diffprivlib")
    package = types.ModuleType("diffprivlib")
    package.__path__ = [str(Path(spec.origin).parent)]
    sys.modules.setdefault("diffprivlib", package)
    return importlib.import_module("diffprivlib.tools")


class Diffprivlib:
    """Its tools, which hold for one replaced record and a public number of records."""

    def __init__(self) -> None:
        import warnings

        warnings.simplefilter("ignore")
        self.tools = diffprivlib_tools()

    def known_mean(self, x: np.ndarray, bounds: tuple[float, float], epsilon: float) -> Answer:
        return lambda: np.array([self.tools.mean(x, epsilon=epsilon, bounds=bounds)])

    def known_noise(self, x: np.ndarray, bounds: tuple[float, float], epsilon: float) -> float:
        """Laplace noise of scale (U - L)/(n epsilon), as its documentation says."""
        return ROOT2 * (bounds[1] - bounds[0]) / (len(x) * epsilon)

    def quantiles(self, x: np.ndarray, qs: list[float], bounds: tuple[float, float], epsilon: float) -> Answer:
        return lambda: np.array([self.tools.quantile(x, q, epsilon=epsilon / len(qs), bounds=bounds) for q in qs])


def peers() -> dict[str, object]:
    """Those that are installed."""
    found: dict[str, object] = {}
    for name, kind in {"OpenDP": OpenDP, "diffprivlib": Diffprivlib}.items():
        try:
            found[name] = kind()
        except ImportError:
            print(f"{name} is not installed: NOT compared in this run")
    return found


def ours(x: np.ndarray, cells: np.ndarray, bounds: tuple[float, float], epsilon: float) -> dict[str, Answer]:
    """The same questions to privamp."""
    import pyarrow as pa

    whole = x.astype(np.int64)
    table = open_table(pa.table({"x": whole if np.array_equal(whole, x) else x, "cell": cells}))
    names = sorted(set(cells.tolist()))
    known = PrivateMean(bounds=bounds, epsilon=epsilon, population=len(x), neighbors=Neighbors.REPLACE_ONE)
    return {
        "mean, known n": lambda: np.array([known.release(x).value]),
        "mean, secret n": lambda: np.array([table.mean("x", bounds).run(epsilon=epsilon).value]),
        "histogram": lambda: np.asarray(table.count().by("cell", names).run(epsilon=epsilon).value, dtype=float),
        "median": lambda: np.array([table.median("x", bounds, interval=False).run(epsilon=epsilon).value]),
        "quantiles": lambda: np.asarray(
            table.quantile("x", QS, bounds, interval=False).run(epsilon=epsilon).value, dtype=float
        ),
    }


QS = [0.25, 0.5, 0.75]
COLUMNS = {
    "Adult, age by education": ("adult.csv.gz", "age", "education", (17.0, 90.0)),
    "Adult, weight by sex": ("adult.csv.gz", "fnlwgt", "sex", (0.0, 1.5e6)),
    "schools, api00 by type": ("api_schools.csv.gz", "api00", "stype", (200.0, 1000.0)),
    "business patterns, employment": ("cbp2010_size_classes.csv.gz", "employment", "faf_zone", (0.0, 5000.0)),
}


def compared(title: str, asked: argparse.Namespace, epsilon: float, others: dict[str, object]) -> None:
    """One line per question about a column."""
    file, name, group, bounds = COLUMNS[title]
    x, cells = column(asked.data / file, name, group)
    names = sorted(set(cells.tolist()))
    mean = np.array([np.clip(x, *bounds).mean()])
    truths = {
        "mean, known n": (mean, lambda peer: peer.known_mean(x, bounds, epsilon)),
        "mean, secret n": (mean, lambda peer: peer.secret_mean(x, bounds, epsilon)),
        "histogram": (
            np.array([np.sum(cells == cell) for cell in names], dtype=float),
            lambda peer: peer.histogram(cells, names, epsilon),
        ),
        "median": (np.zeros(1), lambda peer: peer.quantiles(x, [0.5], bounds, epsilon)),
        "quantiles": (np.zeros(len(QS)), lambda peer: peer.quantiles(x, QS, bounds, epsilon)),
    }
    for what, answer in ours(x, cells, bounds, epsilon).items():
        if asked.only and what not in asked.only:
            continue
        truth, call = truths[what]

        def measured(answer: Answer, what: str = what, truth: np.ndarray = truth) -> tuple[float, float]:
            qs = {"quantiles": QS, "median": [0.5]}.get(what)
            return error(ranks(x, qs, answer) if qs else answer, truth, asked.runs)

        own, spread = measured(answer)
        line = f"{title:32s} n={len(x):6d} eps {epsilon:4g}  {what:15s} {own:10.4g}"
        for who, peer in others.items():
            try:
                theirs, theirs_spread = measured(call(peer))
            except AttributeError:  # it has no such tool
                continue
            except RuntimeError:  # diffprivlib's quantile has no candidates between tied records
                line += f"   {who} fails"
                continue
            if own:
                line += f"   {who} {theirs / own:6.2f} ± {theirs / own * math.hypot(spread, theirs_spread):.2f}"
            else:
                line += f"   {who}: its error is {theirs:.2g}"
        print(line, flush=True)


def declared(title: str, asked: argparse.Namespace, epsilon: float, others: dict[str, object]) -> None:
    """The standard deviation of the noise of a mean as each library calibrates it."""
    import pyarrow as pa

    file, name, _, bounds = COLUMNS[title]
    x, _ = column(asked.data / file, name)
    known = PrivateMean(bounds=bounds, epsilon=epsilon, population=len(x), neighbors=Neighbors.REPLACE_ONE)
    own = {
        "known": known.release(x).noise_error,
        "secret": open_table(pa.table({"x": x})).mean("x", bounds).run(epsilon=epsilon).noise_error,
    }
    for what, mine in own.items():
        line = f"{title:32s} n={len(x):6d} eps {epsilon:4g}  mean, {what:6s} n {float(mine):10.4g}"
        for who, peer in others.items():
            if hasattr(peer, f"{what}_noise"):
                line += f"   {who} {getattr(peer, f'{what}_noise')(x, bounds, epsilon) / float(mine):8.6f}"
        print(line, flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--runs", type=int, default=200)
    parser.add_argument("--epsilon", type=float, nargs="+", default=[0.1, 1.0])
    parser.add_argument("--declared", action="store_true", help="the noise of means by its scales, without runs")
    parser.add_argument("--only", nargs="+", help="some questions only, such as quantiles")
    asked = parser.parse_args()
    others = peers()
    if asked.declared:
        print("standard deviation of the noise as it is calibrated: privamp's, and the peers' over it")
        for title in COLUMNS:
            for epsilon in asked.epsilon:
                declared(title, asked, epsilon, others)
        return
    print(f"{asked.runs} runs; error of privamp, and the peers' error over it (± its standard error)")
    for title in COLUMNS:
        for epsilon in asked.epsilon:
            compared(title, asked, epsilon, others)


if __name__ == "__main__":
    main()
