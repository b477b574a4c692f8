"""SD section 7 and appendix E.1: strata, proportional sampling, and Neyman allocation of County Business Patterns.

The paper's population is made up by a linear program from twelve size classes. The file at hand (2010) has eight: the
classes 1-4, 5-9, 10-19 and 20-49, 50-99 and 1000-1499, 1500-2499 are merged. Ours puts a share of every class at its
upper end and the rest at its lower end, as corners of such a program do; the share makes the number of employees right.
"""

import csv
import gzip
import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from itertools import combinations
from pathlib import Path

import numpy as np

from ...designs.rounded_size import random_added
from ...numerics.log_domain import FloatArray, log_mix
from ...numerics.printing import shown_down, shown_up
from ...numerics.roots import least_passing
from ...verify.exact import exact_epsilon_of_laws
from ..data import shared_file
from ..files import Table, compared
from ..printed import Check, apart, said
from ..registry import Entry, Outcome
from .figure_2 import SD
from .laws import Law
from .rounding_factor import printed_bound

BEFORE = (1261, 621, 517, 1969, 833, 1947, 1058, 762, 257, 248, 306, 225)
AFTER = (1259, 620, 516, 1965, 831, 1943, 1056, 761, 257, 247, 306, 244)
TARGET = 10_000
CLASSES = {"n1_19": (1, 19), "n20_99": (20, 99), "n100_249": (100, 249), "n250_499": (250, 499),
           "n500_999": (500, 999), "n1000_2499": (1000, 2499), "n2500_4999": (2500, 4999),
           "n5000": (5000, 10_000)}  # fmt: skip
MERGED = ((0, 1, 2), (3, 4), (5,), (6,), (7,), (8, 9), (10,), (11,))  # the paper's strata in each class of the file
MOVED = "draws are moved, not added: 19 more at the top are 18 fewer elsewhere, and each of them shows"
UP = "the sizes were rounded up, every one of them"
SUM = "a record that changes its stratum leaves one and enters another: the losses add up"
OTHER = "the file has 2010 and eight size classes, the paper another year and twelve"


def kept(record: int, chance: Fraction) -> Law:
    """One record of a stratum of its own."""
    return {(record,): chance, (): 1 - chance} if chance < 1 else {(record,): Fraction(1)}


def definition_7_1() -> Iterator[Check]:
    """A record moves between strata of rates 1, 1 and 0.1, 0.5."""
    nobody: Law = {(): Fraction(1)}
    for rates in ((Fraction(1), Fraction(1)), (Fraction(1, 10), Fraction(1, 2))):
        first, second = (kept(k, rate) for k, rate in enumerate(rates))
        most = max(exact_epsilon_of_laws(law, nobody, 1.0, "add-remove") for law in (first, second))
        moved = exact_epsilon_of_laws(first, second, 1.0, "add-remove")
        where = f"rates {float(rates[0]):g} and {float(rates[1]):g}, epsilon 1"
        yield Check(f"Definition 7.1: a move costs max(eps_s, eps_s'), {where}", f"{most:.4f}", f"{moved:.4f} exactly",
                    moved <= most + 1e-9, SUM)  # fmt: skip


def theorem_7_2() -> Iterator[Check]:
    """Proportional sampling, and the lambda that it allows."""
    r = Fraction(1, 100)
    claim, truth = printed_bound(0.01, 0.5), random_added(r, 0.5)
    yield said(f"Theorem 7.2, r = 0.01, epsilon 0.5: at most {shown_up(claim, 4)}", truth <= claim, f"{truth:.5f}",
               better=f"{shown_down(claim / truth, 3)} times smaller, for strata of any size")  # fmt: skip
    target = 1e-4
    theirs = least_passing(lambda x: target - printed_bound(0.01, x), 1e-6, 1.0)
    ours = least_passing(lambda x: target - random_added(r, x), 1e-6, 1.0)
    printed = target / 0.06
    yield Check("lambda for epsilon 1e-4 at r = 0.01: epsilon/(6r)", f"{printed:.6f}", f"{theirs:.6f} by the theorem",
                abs(theirs / printed - 1.0) < 0.01, better=f"the exact supremum allows {ours:.6f}")  # fmt: skip


def printed_allocations() -> Iterator[Check]:
    """What can be said of the two allocations alone."""
    for name, sizes in (("first", BEFORE), ("second", AFTER)):
        yield Check(f"E.1: the {name} allocation has the target size", f"{TARGET}", f"{sum(sizes)}",
                    sum(sizes) == TARGET, UP)  # fmt: skip
    top = AFTER[-1] - BEFORE[-1]
    yield Check("E.1: difference in the top stratum", "19", f"{top}", top == 19)
    distance = sum(abs(a - b) for a, b in zip(AFTER, BEFORE, strict=True))
    yield Check("section 7.2: how far the allocations differ", "19", f"{distance} draws in all", distance == 19, MOVED)
    yield scaled_down()
    loss = 0.1 * distance
    yield said("E.1: an epsilon of 0.1 is enough to notice the change", loss > 1.0,
               f"a 0.1-DP mechanism loses at least {loss:.1f}, which is {distance} times 0.1")  # fmt: skip
    fixed = float(log_mix(BEFORE[-1] / 350, 0.2))
    yield Check("with sizes from public standard deviations nothing is moved", "-", f"{fixed:.4f} at epsilon 0.1",
                fixed < 0.2, better=f"{loss / fixed:.0f} times less than Neyman on the data")  # fmt: skip


def scaled_down() -> Check:
    """Strata that no record left or entered lose in proportion; sizes were rounded up."""
    lows = [(a - 1) / b for a, b in zip(AFTER[1:-1], BEFORE[1:-1], strict=True)]
    highs = [a / (b - 1) for a, b in zip(AFTER[1:-1], BEFORE[1:-1], strict=True)]
    return replace(said("E.1: one factor makes the second allocation of the ten middle strata", max(lows) < min(highs),
                        f"between {max(lows):.5f} and {min(highs):.5f}"), inside=True)  # fmt: skip


def section_7_2() -> Iterator[Check]:
    """Neyman's rule for the weighted mean, on six records in two strata."""
    strata = ((0.0, 1.0, 2.0), (0.0, 5.0, 10.0))
    everybody = sum(map(sum, strata)) / 6
    estimates = [(sum(a) * 3 / len(a) + sum(b) * 3 / len(b)) / 6
                 for a in combinations(strata[0], 1) for b in combinations(strata[1], 2)]  # fmt: skip
    mean = sum(estimates) / len(estimates)
    yield said("section 7.2: the weighted mean is unbiased (1 and 2 of two strata)", abs(mean - everybody) < 1e-12,
               f"{mean:.6f} over all samples, {everybody:.6f} in the population")  # fmt: skip
    counts, spreads, total = (600, 300, 100), (1.0, 4.0, 20.0), 60

    def variance(sizes: Sequence[int]) -> float:
        return sum((n * s) ** 2 * (1 / m - 1 / n) for n, s, m in zip(counts, spreads, sizes, strict=True))

    every = ((i, j, total - i - j) for i in range(1, 58) for j in range(1, 59 - i))
    best = min(every, key=variance)
    share = [n * s for n, s in zip(counts, spreads, strict=True)]
    rule = [total * x / sum(share) for x in share]
    yield said("section 7.2: Neyman allocation is optimal for the weighted mean (three strata, all 1711 allocations)",
               all(abs(a - b) < 1.0 for a, b in zip(best, rule, strict=True)),
               f"{best}, by the rule {', '.join(f'{x:.1f}' for x in rule)}")  # fmt: skip


@dataclass(frozen=True, slots=True)
class Classes:
    """Establishments by size class; a `share` of each stands at the upper end."""

    counts: FloatArray
    share: float

    @classmethod
    def read(cls, path: Path) -> "Classes":
        """Add up the file; the share is the one that gives its number of employees."""
        with gzip.open(path, "rt", encoding="utf-8") as text:
            rows = list(csv.DictReader(text))
        counts = np.array([sum(float(row[name]) for row in rows) for name in CLASSES])
        employees = sum(float(row["employment"]) for row in rows)
        low, high = (float(counts @ np.array([ends[k] for ends in CLASSES.values()])) for k in (0, 1))
        return cls(counts, (employees - low) / (high - low))

    def spreads(self, share_at_the_top: float | None = None) -> FloatArray:
        """A_h = sqrt(N_h SS_h) of every class."""
        shares = np.full(len(CLASSES), self.share)
        shares[-1] = self.share if share_at_the_top is None else share_at_the_top
        widths = np.array([high - low for low, high in CLASSES.values()], dtype=float)
        spread: FloatArray = self.counts * widths * np.sqrt(shares * (1.0 - shares))
        return spread

    def after(self, spreads: FloatArray, share: float) -> FloatArray:
        """The same when the smallest establishment grows to 10,000 employees."""
        n, (low, high) = self.counts[-1], CLASSES["n5000"]
        mean = low + share * (high - low)
        squares = spreads[-1] ** 2 / n + (high - mean) ** 2 * n / (n + 1.0)
        changed = spreads.copy()
        changed[-1] = math.sqrt((n + 1.0) * squares)
        first, ends = self.counts[0], CLASSES["n1_19"]
        at_one = spreads[0] ** 2 / first - ((ends[1] - ends[0]) * self.share) ** 2 * first / (first - 1.0)
        changed[0] = math.sqrt((first - 1.0) * at_one)
        return changed


def sizes_of(spreads: FloatArray) -> list[int]:
    """Neyman's sizes, rounded up as the paper's."""
    return [math.ceil(x - 1e-9) for x in spreads / spreads.sum() * TARGET]


def merged(sizes: Sequence[int]) -> list[int]:
    """The paper's sizes in the classes of the file."""
    return [sum(sizes[i] for i in group) for group in MERGED]


def reproduced_allocations(classes: Classes) -> Iterator[Check]:
    """The two allocations from the file."""
    spreads = classes.spreads()
    ours, theirs = sizes_of(spreads), merged(BEFORE)
    for name, printed, found in zip(CLASSES, theirs, ours, strict=True):
        yield apart(f"E.1: draws in class {name[1:].replace('_', '-')}", f"{printed}", OTHER, f"{found}")
    after = sizes_of(classes.after(spreads, classes.share))
    for name, printed, found in zip(CLASSES, merged(AFTER), after, strict=True):
        yield apart(f"E.1: draws in class {name[1:].replace('_', '-')}, neighbour", f"{printed}", OTHER, f"{found}")
    alone = [i for i, group in enumerate(MERGED) if len(group) == 1]
    ratios = [(theirs[i] / sum(theirs[j] for j in alone)) / (ours[i] / sum(ours[j] for j in alone)) for i in alone]
    close = min(ratios) > 1.0 / 1.5 and max(ratios) < 1.5
    yield Check("shares among the five classes that are not merged, printed over ours", "-",
                ", ".join(f"{r:.2f}" for r in ratios), close)  # fmt: skip
    yield from neighbours(classes)


def neighbours(classes: Classes) -> Iterator[Check]:
    """One establishment grows to 10,000 employees."""
    spreads = classes.spreads()
    before, after = sizes_of(spreads), sizes_of(classes.after(spreads, classes.share))
    top = after[-1] - before[-1]
    yield apart("E.1: one establishment moves 19 draws to the top", "19", f"{OTHER}; see the next row", f"{top}")
    wanted = (AFTER[-1] / BEFORE[-1]) / (sum(AFTER[:-1]) / sum(BEFORE[:-1]))

    def ratio(share: float) -> float:
        changed = classes.spreads(share)
        return float(classes.after(changed, share)[-1] / changed[-1])

    share = least_passing(lambda s: ratio(s) - wanted, 1e-6, 0.5)
    at_top = share * float(classes.counts[-1])
    shown = f"about {at_top:.1f} of {classes.counts[-1]:.0f} at 10,000 employees and the rest at 5,000"
    yield Check("a top class in which one establishment changes 225 to 244", "-", shown, 1 < at_top < 20)


def run(out_dir: Path) -> Outcome:
    """Compute, compare and write the files."""
    classes = Classes.read(shared_file("cbp2010_size_classes.csv.gz"))
    found = [
        *definition_7_1(),
        *theorem_7_2(),
        *section_7_2(),
        *printed_allocations(),
        *reproduced_allocations(classes),
    ]
    spreads = classes.spreads()
    columns = (classes.counts.astype(int).tolist(), merged(BEFORE), merged(AFTER), sizes_of(spreads),
               sizes_of(classes.after(spreads, classes.share)))  # fmt: skip
    rows = [(name, *(str(column[i]) for column in columns)) for i, name in enumerate(CLASSES)]
    header = ("class", "establishments", "printed", "neighbour, printed", "ours", "neighbour, ours")
    remark = f"Made-up population: {classes.share:.3f} of every class at its upper end, the rest at its lower end."
    return compared(out_dir, ENTRY, found, remark=remark, table=Table(header, rows, "Neyman allocation of 10,000."))


ENTRY = Entry(
    name="sd-strata",
    paper=SD,
    title="Section 7 and appendix E.1: strata and Neyman allocation",
    summary="Definition 7.1, Theorem 7.2 and the two allocations (needs cbp2010_size_classes.csv.gz)",
    run=run,
    errata="sd-section-71-the-neyman-example",
)
