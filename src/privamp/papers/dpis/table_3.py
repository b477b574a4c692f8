"""DPIS Table 3: test accuracy of DPIS and four competitors.

The sentences about the table are held against the printed numbers. Ours are trained on MNIST, all methods at one
(epsilon, delta) for the run and with the same batch and steps. DPIS and HF see scattering features, the others pixels,
as in the paper: the fair comparison is DPIS with HF. CIFAR-10 and the GloVe vectors are not at hand.
"""

from collections.abc import Iterator
from functools import partial
from pathlib import Path

from ..files import compared
from ..printed import Check, said
from ..registry import Entry, Outcome
from .figure_1 import DPIS
from .printed_tables import EPSILONS, NON_PRIVATE, TABLE_3
from .trained_cells import not_at_hand, trained
from .training import METHODS, accuracy

BY_IMDB = "1.6 to 2.6 points above the best competitor in its own row, and below 2 at three of five epsilons"
HALF = "HF, on the same features, is better at the doubled budget at epsilon 0.5 and 1"
QUICK, FULL = (2.0,), EPSILONS


def sentences() -> Iterator[Check]:
    """Section 5.4 against its own table."""
    for data, rows in TABLE_3.items():
        gaps = [row - best(data, i) for i, row in enumerate(rows["DPIS"])]
        yield said(f"{data}: DPIS outperforms every competitor at every epsilon", min(gaps) > 0.0,
                   f"by {min(gaps):.1f} to {max(gaps):.1f} points in print")  # fmt: skip
        rises = all(list(row) == sorted(row) for row in rows.values())
        below = max(map(max, rows.values())) <= NON_PRIVATE[data]
        yield said(f"{data}: accuracy grows with epsilon and stays below the non-private one", rises and below,
                   f"below {NON_PRIVATE[data]}")  # fmt: skip
    gaps = [row - best("IMDb", i) for i, row in enumerate(TABLE_3["IMDb"]["DPIS"])]
    yield Check("IMDb: DPIS is 2-3% above the best competitor", "2 to 3", ", ".join(f"{g:.1f}" for g in gaps),
                all(1.95 <= g <= 3.05 for g in gaps), BY_IMDB)  # fmt: skip
    for data in ("MNIST", "FMNIST", "IMDb"):
        pairs = [(0, 1), (1, 2), (2, 4)]  # epsilon 0.5 with 1, 1 with 2, 2 with 4
        short = max(best(data, j) - TABLE_3[data]["DPIS"][i] for i, j in pairs)
        yield said(f"{data}: DPIS at half the budget has roughly the accuracy of the others (within 0.7 points)",
                   short <= 0.7, f"up to {short:.1f} points below the best of them", HALF if data == "FMNIST" else
                   "TS and Decay are better at the doubled budget" if data == "IMDb" else "")  # fmt: skip
    better = [d for d in TABLE_3 if all(a >= b for a, b in zip(TABLE_3[d]["DP-SGD-Decay"], TABLE_3[d]["DP-SGD-TS"],
                                                               strict=True))]  # fmt: skip
    yield said("DP-SGD-Decay does not ensure more than DP-SGD-TS", len(better) < len(TABLE_3),
               f"it is at least as good everywhere on {', '.join(better) or 'no data set'}")  # fmt: skip


def best(data: str, at: int) -> float:
    """The best competitor in print."""
    return max(row[at] for method, row in TABLE_3[data].items() if method != "DPIS")


def reproduced(out_dir: Path, epsilons: tuple[float, ...], full: bool) -> Outcome:
    """Check the sentences, train, write."""
    found: dict[str, float] = {}
    cells = [(f"MNIST, {method}, epsilon {epsilon:g}", TABLE_3["MNIST"][method][EPSILONS.index(epsilon)],
              partial(accuracy, method, epsilon=epsilon)) for epsilon in epsilons for method in METHODS]  # fmt: skip
    checks = [*sentences(), *trained(cells, full, found), *not_at_hand("Table 3")]
    for epsilon in epsilons if found else ():
        ours, features, plain = (found[f"MNIST, {m}, epsilon {epsilon:g}"] for m in ("DPIS", "DP-SGD-HF", "DP-SGD"))
        checks.append(Check(f"ours, epsilon {epsilon:g}: features matter more than the sampler", "-",
                            f"DPIS {ours:.1f}, HF {features:.1f}, DP-SGD on pixels {plain:.1f}",
                            features - plain > abs(ours - features)))  # fmt: skip
    return compared(out_dir, ENTRY, checks)


def run(out_dir: Path) -> Outcome:
    """One epsilon, 2,000 pictures, in a minute."""
    return reproduced(out_dir, QUICK, False)


def full(out_dir: Path) -> Outcome:
    """Every epsilon, all pictures (an accelerator, or hours)."""
    return reproduced(out_dir, FULL, True)


ENTRY = Entry(
    name="dpis-table-3",
    paper=DPIS,
    title="Table 3: accuracy of DPIS and its competitors",
    summary="the sentences about the table, and our own training on MNIST (needs torch and mnist.npz)",
    run=run,
    full=full,
    errata="dpis-table-3-what-the-text-says-of-it",
)
