"""IS Figure 7: cost of private k-means over the sample size on Ijcnn1 (Pose, MiniBooNE and FMA are not at hand)."""

from pathlib import Path

from ..files import Picture, Table, compared
from ..printed import apart, said
from ..registry import Entry, Outcome
from . import trade_offs
from .dp_lloyd import SAMPLERS
from .figure_2 import IS

EPSILONS = (3.0, 100.0)
QUICK, FULL = (0.06, 0.3, 0.9), (0.06, 0.1, 0.2, 0.3, 0.4, 0.9)
CLEAR = 1.25  # a clear improvement


def reproduced(out_dir: Path, most: int, shares: tuple[float, ...], seeds: int) -> Outcome:
    """Run, compare, draw, write."""
    costs = trade_offs.measured("Ijcnn1", most, shares, EPSILONS, seeds, (*SAMPLERS, "full"))
    checks = list(trade_offs.over_size(costs))
    sizes = [m for m in costs.sizes if ("core", m, EPSILONS[0]) in costs.found]
    for epsilon in EPSILONS:
        gap = max(costs.gap(m, [epsilon]) for m in sizes)
        what, shown = f"no clear improvement over unif on Ijcnn1, epsilon {epsilon:g}", f"up to {gap:.3f} times"
        checks.append(said(what, True, shown) if gap < CLEAR else apart(what, "yes", trade_offs.WRONG_NOISE, shown))
    checks += trade_offs.absent(("Pose", "MiniBooNE", "FMA"), "Figure 7")
    table = Table(trade_offs.HEADER, trade_offs.rows([costs]), f"Medians of {seeds} seeds.")
    seen = Picture(trade_offs.picture([costs], "size"), "Cost over m.", "Curves fall together to one line.")
    return compared(out_dir, ENTRY, checks, table=table, picture=seen)


def run(out_dir: Path) -> Outcome:
    """Half of the rows, few seeds."""
    return reproduced(out_dir, 25_000, QUICK, 3)


def full(out_dir: Path) -> Outcome:
    """All rows, 50 seeds."""
    return reproduced(out_dir, 10**7, FULL, 50)


ENTRY = Entry(
    name="is-figure-7",
    paper=IS,
    title="Figure 7: cost over the sample size, Ijcnn1",
    summary="private k-means at epsilon 3 and 100, beside all records (needs ijcnn1.npz)",
    run=run,
    full=full,
    errata="is-released-code-the-noise",
)
