"""MUST Table 7: how many distinct records a sample contains, and how long it takes to draw.

The printed means are n eta, exactly. The times are those of another program (R, without keys); they are shown but not
compared.
"""

import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from ...chance.keys import Key
from ...core.population import Population
from ...report.html import Report
from ..files import columns, csv_of, publish
from ..printed import HEADER, Check, agrees, counted
from ..registry import Entry, Outcome
from . import experiment as experiment
from . import setting as must
from .table_4 import drawn

SETTINGS: Final = {
    "1": (300, 50, 30),
    "2": (1000, 200, 100),
    "3 (adult)": (30969, 500, 300),
    "3 (MNIST)": (60000, 3000, 2000),
}
# min, mean, max of the distinct records, and the time against WR in percent
PRINTED: Final[dict[str, dict[str, tuple[int, int, int, float]]]] = {
    "1": {
        "WOR": (30, 30, 30, 41.67), "Poisson": (14, 30, 52, 233.33), "WR": (22, 29, 30, 0.0),
        "MUSTow": (15, 23, 29, 66.67), "MUSTww": (15, 22, 29, 75.00),
    },
    "2": {
        "WOR": (100, 100, 100, 18.75), "Poisson": (61, 100, 138, 437.50), "WR": (87, 95, 100, 0.0),
        "MUSTow": (67, 79, 90, 106.25), "MUSTww": (64, 76, 87, 87.50),
    },
    "3 (adult)": {
        "WOR": (300, 300, 300, 146.43), "Poisson": (241, 300, 373, 7825.00), "WR": (292, 299, 300, 0.0),
        "MUSTow": (204, 226, 246, 232.14), "MUSTww": (205, 225, 250, 103.57),
    },
    "3 (MNIST)": {
        "WOR": (2000, 2000, 2000, 46.24), "Poisson": (1839, 2000, 2174, 2162.92), "WR": (1945, 1967, 1986, 0.0),
        "MUSTow": (1409, 1460, 1513, 140.32), "MUSTww": (1378, 1442, 1501, 91.94),
    },
}  # fmt: skip
OTHER_SIZES = "the text of the experiment says m = 100, b = 200"
WR_FIRST = "in its own rows WR is the fastest: WOR takes 19 to 146 percent longer"
OW_FIRST = "in its own row of experiment 1 MUSTww takes longer than MUSTow"
QUICK, FULL = 60, 10_000
COLUMNS = ("experiment", "design", "mean, print", "n eta", "min to max, printed", "ours", "time, print", "ours")


@dataclass(frozen=True, slots=True)
class Line:
    """One design in one setting."""

    setting: str
    name: str
    expected: float
    least: int
    most: int
    seconds: float


def lines(draws: int) -> Iterator[Line]:
    """Draw and count; the data are only ids."""
    for setting, (n, b, m) in SETTINGS.items():
        population = Population(n)
        for name in PRINTED[setting]:
            of, key = experiment.design(name, n, m, b), Key.generate()
            start = time.perf_counter()
            sizes = [drawn(of, population, key.subkey(t)).positions.size for t in range(draws)]
            seconds = (time.perf_counter() - start) / draws
            yield Line(setting, name, of.expected_distinct(n), min(sizes), max(sizes), seconds)


def checks(found: list[Line]) -> Iterator[Check]:
    """Check the means to their printed digits, the draws against the paper's range, and its sentences."""
    for line in found:
        mean = PRINTED[line.setting][line.name][1]
        where = f"{line.setting}, {line.name}"
        agree = agrees(line.expected, str(mean))
        yield Check(f"{where}: mean distinct records", str(mean), f"{line.expected:.5g}", agree)
    adult = SETTINGS["3 (adult)"]
    yield Check("3 (adult): b, m", f"{adult[1]}, {adult[2]}", "200, 100", agrees=False, erratum=OTHER_SIZES)
    times = {s: {name: p[3] for name, p in row.items()} for s, row in PRINTED.items()}
    fastest = all(row["WOR"] <= row["WR"] for row in times.values())
    yield Check("'WOR in general is the fastest'", "WOR", "WR", fastest, WR_FIRST)
    quicker = all(row["MUSTww"] < row["MUSTow"] for row in times.values())
    yield Check("'MUSTww takes less time than MUSTow in all'", "all", "all but 1", quicker, OW_FIRST)


def reproduced(out_dir: Path, draws: int) -> Outcome:
    """Draw, compare and write the files."""
    found = list(lines(draws))
    base = {line.setting: line.seconds for line in found if line.name == "WR"}
    table = []
    for line in found:
        least, mean, most, slower = PRINTED[line.setting][line.name]
        ours = 100.0 * (line.seconds / base[line.setting] - 1.0)
        table.append((line.setting, line.name, mean, f"{line.expected:.1f}", f"{least} to {most}",
                      f"{line.least} to {line.most}", f"{slower:+.0f}%", f"{ours:+.0f}%"))  # fmt: skip
    result = list(checks(found))
    remark = (
        f"Minimum and maximum over {draws} draws (10,000 in the paper); times against WR. Ours use a keyed number "
        "for every record, so that one key gives one sample on many machines: every design reads all records. "
        "Fewer distinct records are no gain as such: a smaller simple random sample has as few and is more private."
    )
    text = "\n".join(
        [columns(COLUMNS, table), "", columns(HEADER, (c.row for c in result)), "", remark, counted(result) + "."]
    )
    report = Report("MUST Table 7, recomputed", f"Distinct records in a sample: {counted(result)}.")
    report.add_text(remark)
    report.add_table(COLUMNS, table, "Distinct records and time.")
    report.add_table(HEADER, [c.row for c in result], "Each printed mean and three sentences.")
    return publish(out_dir, ENTRY.name, text, result, report, {".csv": csv_of(COLUMNS, table)})


def run(out_dir: Path) -> Outcome:
    """Run with a few draws; the means are still exact."""
    return reproduced(out_dir, QUICK)


def full(out_dir: Path) -> Outcome:
    """Run with the paper's 10,000 draws."""
    return reproduced(out_dir, FULL)


ENTRY = Entry(
    name="must-table-7",
    paper=must.MUST,
    title="Table 7: distinct records in a sample, and the time to draw it",
    summary="means are n eta exactly; two sentences about time contradict the table, and Adult has other sizes",
    run=run,
    full=full,
    errata="smaller-slips-in-the-experiments",
)
