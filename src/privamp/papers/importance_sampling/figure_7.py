"""IS Figure 7: cost of private k-means over the sample size on Ijcnn1 (Pose, MiniBooNE and FMA are not available).

The text calls Ijcnn1 the only data set without a clear improvement: KDD-Protein, where there is one,
is run for comparison.
"""

from pathlib import Path

from ..files import Picture, Table, compared
from ..printed import said
from ..registry import Entry, Outcome
from . import trade_offs
from .dp_lloyd import SAMPLERS
from .figure_2 import IS
from .figure_6 import BESIDE

EPSILONS = (3.0, 100.0)
QUICK, FULL = (0.06, 0.3, 0.9), (0.06, 0.1, 0.2, 0.3, 0.4, 0.9)


def reproduced(out_dir: Path, most: int, shares: tuple[float, ...], seeds: int) -> Outcome:
    """Run, compare, draw and write the files."""
    costs = trade_offs.measured("Ijcnn1", most, shares, EPSILONS, seeds, (*SAMPLERS, "full"))
    checks = list(trade_offs.over_size(costs))
    sizes = [m for m in costs.sizes if ("core", m, EPSILONS[0]) in costs.found]
    other = trade_offs.measured("KDD-Protein", most, (BESIDE,), EPSILONS, min(seeds, 5), SAMPLERS)
    for epsilon in EPSILONS:
        gap, clear = (max(c.gap(m, [epsilon]) for m in of) for c, of in ((costs, sizes), (other, other.sizes)))
        what = f"no clear improvement over unif on Ijcnn1, epsilon {epsilon:g}: less than on KDD-Protein, or on par"
        shown = f"unif costs up to {gap:.3f} times the others; {clear:.3f} on KDD-Protein"
        checks.append(said(what, gap < max(clear, trade_offs.PAR), shown, differs=trade_offs.WRONG_NOISE))
    checks += trade_offs.absent(("Pose", "MiniBooNE", "FMA"), "Figure 7")
    table = Table(trade_offs.HEADER, trade_offs.rows([costs, other]), f"Medians of {seeds} seeds.")
    seen = Picture(trade_offs.picture([costs], "size"), "Cost over m.", "Curves fall together to one line.")
    return compared(out_dir, ENTRY, checks, remark=trade_offs.LOOKED, table=table, picture=seen)


def run(out_dir: Path) -> Outcome:
    """Run on half of the rows with few seeds."""
    return reproduced(out_dir, 25_000, QUICK, 3)


def full(out_dir: Path) -> Outcome:
    """Run on all rows with 50 seeds."""
    return reproduced(out_dir, 10**7, FULL, 50)


ENTRY = Entry(
    name="is-figure-7",
    paper=IS,
    title="Figure 7: cost over the sample size, Ijcnn1",
    summary="private k-means at epsilon 3 and 100, compared with all records (needs ijcnn1.npz and kdd_protein.npz)",
    run=run,
    full=full,
    errata="is-released-code-the-noise",
)
