"""IS Figure 3: cost of private k-means over epsilon, on KDD-Protein, RNA and Covertype (Song is not available).

The figure prints no numbers, and its costs, if they come from the released code, are not those of a private method (the
noise is d times too small). Every sentence about it is checked with the corrected method. `--quick` runs one data set,
thinned.
"""

import math
from pathlib import Path

from ..files import Picture, Table, compared
from ..printed import Check
from ..registry import Entry, Outcome
from . import trade_offs
from .dp_lloyd import SAMPLERS
from .figure_2 import IS

EPSILONS = (0.5, 1.0, 3.0, 10.0, 100.0, 1000.0, math.inf)
ALL_ROWS = 10**7


def reproduced(out_dir: Path, names: tuple[str, ...], most: int, shares: tuple[float, ...], seeds: int) -> Outcome:
    """Run, compare, draw and write the files."""
    mended = [trade_offs.measured(name, most, shares, EPSILONS, seeds, SAMPLERS) for name in names]
    several = [trade_offs.with_released_noise(costs, most, seeds) for costs in mended]
    checks = [check for costs in several for check in trade_offs.over_epsilon(costs)]
    own = trade_offs.ours(names[0], most, shares[0], (1.0, 3.0, 10.0), max(seeds // 3, 1))
    checks += [beaten(several[0], several[0].sizes[0], epsilon, value) for epsilon, value in own.items()]
    checks += trade_offs.absent(("Song",), "Figure 3")
    table = Table(trade_offs.HEADER, trade_offs.rows(several), f"Medians of {seeds} seeds.")
    seen = Picture(trade_offs.picture(several, "epsilon"), "Cost over epsilon.", "unif lies above core and opt.")
    return compared(out_dir, ENTRY, checks, remark=trade_offs.LOOKED, table=table, picture=seen)


def beaten(costs: trade_offs.Costs, size: int, epsilon: float, value: float) -> Check:
    """Compare `PrivateKMeans` with the best of the paper's samplers, both private."""
    best = min(costs.at(sampler, size, epsilon) for sampler in SAMPLERS)
    what = f"{costs.name}, m = {size}, epsilon {epsilon:g}: PrivateKMeans against the best of the three"
    gain = f"{best / value:.2f} times lower cost than the best sampler of the paper" if value < best else ""
    return Check(what, "-", f"{value:.4f} against {best:.4f}", value <= 1.1 * best, better=gain)


def run(out_dir: Path) -> Outcome:
    """Run one data set, thinned to 36,000 rows."""
    return reproduced(out_dir, ("KDD-Protein",), 36_000, (0.05,), 3)


def full(out_dir: Path) -> Outcome:
    """Run three data sets, all rows, three sizes, 50 seeds."""
    return reproduced(out_dir, ("KDD-Protein", "RNA", "Covertype"), ALL_ROWS, (0.01, 0.035, 0.1), 50)


ENTRY = Entry(
    name="is-figure-3",
    paper=IS,
    title="Figure 3: cost over epsilon",
    summary="private k-means under three samplers; every sentence of the text is checked (needs kdd_protein.npz)",
    run=run,
    full=full,
    errata="is-released-code-the-noise",
)
