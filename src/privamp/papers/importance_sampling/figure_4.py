"""IS Figure 4: cost of private k-means over the sample size at epsilon 3 and 100 (Song is not available)."""

from pathlib import Path

from ..files import Picture, Table, compared
from ..registry import Entry, Outcome
from . import trade_offs
from .dp_lloyd import SAMPLERS
from .figure_2 import IS

EPSILONS = (3.0, 100.0)
QUICK, FULL = (0.03, 0.18, 0.9), (0.01, 0.03, 0.1, 0.18, 0.5, 0.9)
ALL_ROWS = 10**7


def reproduced(out_dir: Path, names: tuple[str, ...], most: int, shares: tuple[float, ...], seeds: int) -> Outcome:
    """Run, compare, draw and write the files."""
    several = [trade_offs.measured(name, most, shares, EPSILONS, seeds, (*SAMPLERS, "full")) for name in names]
    checks = [check for costs in several for check in trade_offs.over_size(costs)]
    checks += trade_offs.absent(("Song",), "Figure 4")
    table = Table(trade_offs.HEADER, trade_offs.rows(several), f"Medians of {seeds} seeds.")
    seen = Picture(trade_offs.picture(several, "size"), "Cost over m.", "Curves fall to the line for all records.")
    return compared(out_dir, ENTRY, checks, remark=trade_offs.LOOKED, table=table, picture=seen)


def run(out_dir: Path) -> Outcome:
    """Run one data set, thinned to 24,000 rows."""
    return reproduced(out_dir, ("KDD-Protein",), 24_000, QUICK, 3)


def full(out_dir: Path) -> Outcome:
    """Run three data sets, all rows, 50 seeds."""
    return reproduced(out_dir, ("KDD-Protein", "RNA", "Covertype"), ALL_ROWS, FULL, 50)


ENTRY = Entry(
    name="is-figure-4",
    paper=IS,
    title="Figure 4: cost over the sample size",
    summary="private k-means at epsilon 3 and 100, compared with all records (needs kdd_protein.npz)",
    run=run,
    full=full,
    errata="is-released-code-the-noise",
)
