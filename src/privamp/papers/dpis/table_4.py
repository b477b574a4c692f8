"""DPIS Table 4: adaptive clipping on and off."""

from collections.abc import Iterator
from pathlib import Path

from ..printed import Check, said
from ..registry import Entry, Outcome
from .ablations import reproduced
from .figure_1 import DPIS
from .printed_tables import TABLE_3, TABLE_4

OPTIONS = {"adaptive clipping": {"external_clip": 4.0, "quantile": 1.0}, "a fixed clip": {}}
EPSILON = 2.0


def sentences() -> Iterator[Check]:
    """Section 5.5, and the agreement with Table 3."""
    gains = {data: [a - b for a, b in zip(*rows, strict=True)] for data, rows in TABLE_4.items()}
    shown = {data: ", ".join(f"{g:+.1f}" for g in row) for data, row in gains.items()}
    yield said("IMDb: adaptive clipping noticeably improves DPIS", min(gains["IMDb"]) >= 0.4, shown["IMDb"])
    for data in ("MNIST", "FMNIST", "CIFAR-10"):
        yield said(f"{data}: adaptive clipping is less effective", max(gains[data]) < min(gains["IMDb"]), shown[data])
    for data, rows in TABLE_4.items():
        used = rows[0] if data == "IMDb" else rows[1]
        for epsilon, here, there in zip((0.5, 1.0, 2.0, 3.0), used, TABLE_3[data]["DPIS"], strict=False):
            yield Check(f"{data}, epsilon {epsilon:g}: the same run as in Table 3", f"{there}", f"{here} in Table 4",
                        abs(here - there) < 0.15)  # fmt: skip


def run(out_dir: Path) -> Outcome:
    """2,000 pictures."""
    return reproduced(out_dir, ENTRY, list(sentences()), OPTIONS, (98.5, 98.6), EPSILON, False)


def full(out_dir: Path) -> Outcome:
    """All pictures."""
    return reproduced(out_dir, ENTRY, list(sentences()), OPTIONS, (98.5, 98.6), EPSILON, True)


ENTRY = Entry(
    name="dpis-table-4",
    paper=DPIS,
    title="Table 4: adaptive clipping",
    summary="the sentences, agreement with Table 3, and our own training on MNIST (needs torch and mnist.npz)",
    run=run,
    full=full,
)
