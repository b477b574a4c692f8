"""SD section 6: lower bounds for unequal probabilities, clusters drawn by size, and systematic samples."""

import math
from collections.abc import Iterator, Sequence
from fractions import Fraction
from itertools import permutations
from pathlib import Path

from ...amplification import amplify
from ...core.neighbors import Neighbors
from ...designs.poisson_pps import PoissonPPS
from ...mechanisms.black_box import PureDP
from ...verify.exact import exact_epsilon_of_laws
from ..files import compared
from ..printed import Check, said
from ..registry import Entry, Outcome
from .figure_2 import SD
from .laws import NEW, Law, mixed, subsets

RO = Neighbors.REPLACE_ONE
INSERTED = "one insertion moves every later record to another cluster, so the loss grows with the sample"
EMPTY = "when an empty cluster gains its first member, the loss grows with the size of the others"


def proposition_6_1() -> Iterator[Check]:
    """Three records, the first kept with probability a, the others always; the answer reveals whether it was kept."""
    low, high = 1.0 / (1.0 + math.e), math.e / (1.0 + math.e)
    for a, a_new in ((0.5, 0.5), (0.9, 0.1), (0.1, 0.9)):
        p, p_new, q = high, low, low  # probabilities of the event with the record, with its replacement, and without
        bound = math.log(p / p_new * a / a_new / (1.0 + q * (1.0 - a_new) / (p_new * a_new)))
        loss = math.log((a * p + (1.0 - a) * q) / (a_new * p_new + (1.0 - a_new) * q))
        yield said(f"Equation 4, a = {a:g}, a' = {a_new:g}, epsilon 1: at least {bound:.4f}", bound <= loss + 1e-12,
                   f"{loss:.4f}")  # fmt: skip
    certain = math.log(high / low)
    yield Check("no amplification where a = a' = 1", "1", f"{certain:.6f}", abs(certain - 1.0) < 1e-12)
    degraded = math.log(high / (0.1 * high + 0.9 * low))  # the answer reveals whether any record was kept: p = p'
    yield said("a data-dependent probability can lose more than p/p' (a = 1, a' = 0.1, p = p')", degraded > 0.0,
               f"{degraded:.4f} > 0")  # fmt: skip
    still = exact_epsilon_of_laws(kept(0, Fraction(1, 10)), kept(NEW, Fraction(1, 1000)), 1.0, "add-remove")
    yield said("amplification is possible even if a/a' is large (0.1 and 0.001, epsilon 1)", still < 1.0,
               f"{still:.4f} exactly")  # fmt: skip
    members = 5  # members of the cluster of record i; Laplace noise on their number
    correlated = 0.5 * members
    yield said("q'/p' can exceed epsilon through correlations (clusters of 5 counted at epsilon 0.5)", correlated > 0.5,
               f"log(p'/q') = {correlated:g}")  # fmt: skip


def kept(record: int, chance: Fraction) -> Law:
    """The record with this probability, otherwise an empty sample."""
    return {(record,): chance, (): 1 - chance}


def section_6_1() -> Iterator[Check]:
    """Check elements drawn with unequal probabilities."""
    for a in (Fraction(1, 10), Fraction(3, 5)):
        first, second = math.log(math.e * a), math.log1p(float(a) * math.expm1(1.0))
        truth = exact_epsilon_of_laws(kept(0, a), kept(NEW, a), 1.0, "add-remove")
        where = f"largest probability {float(a):g}, epsilon 1"
        yield said(f"at least log(a e^eps) = {first:.4f}, {where}", first <= truth, f"{truth:.4f} exactly")
        yield said(f"at least log(1 + a(e^eps - 1)) = {second:.4f}, {where}", second <= truth, f"{truth:.4f} exactly",
                   better=f"a lower bound {truth / second:.2f} times as large, which Poisson reaches")  # fmt: skip
    found = amplify(PureDP(1.0), PoissonPPS(high=0.6), RO).epsilon()
    yield Check("our guarantee for probabilities up to 0.6 is that value", "-", f"{found:.4f}",
                abs(found - truth) < 1e-6)  # fmt: skip
    equal = exact_epsilon_of_laws(subsets(range(4), 2), subsets([1, 2, 3, NEW], 2), 1.0, "replace-one")
    yield said("equal sizes r_i: simple random sampling, which amplifies", equal < 1.0, f"{equal:.4f} < 1")


def by_size(first: Sequence[int], second: Sequence[int]) -> Law:
    """One of two clusters, with probability proportional to its size."""
    total = len(first) + len(second)
    drawn = [(Fraction(len(c), total), {tuple(sorted(c)): Fraction(1)}) for c in (first, second) if c]
    return mixed(drawn)


def section_6_2() -> Iterator[Check]:
    """Check clusters drawn by size."""
    old, new = by_size([0, 1], [2, 3, 4]), by_size([0, 1, NEW], [2, 3, 4])
    loss = exact_epsilon_of_laws(old, new, 1.0, "add-remove")
    yield said("large clusters drawn by size do not amplify (sizes 2 and 3, epsilon 1)", loss > 0.9, f"{loss:.4f}")
    chances = {Fraction(size, 10) * Fraction(2, size) for size in (2, 3, 5)}
    yield said("drawn by size and then 2 members at random: every record has the same probability (sizes 2, 3, 5)",
               chances == {Fraction(1, 5)}, f"{', '.join(map(str, chances))} for every member")  # fmt: skip
    grown = [exact_epsilon_of_laws(by_size([0], range(1, n + 1)), by_size([0], [*range(1, n + 1), NEW]), 1.0,
                                   "add-remove") for n in (1, 3, 6)]  # fmt: skip
    off = [abs(loss - 1.0) for loss in grown]
    yield said("a single large cluster is pushed towards no amplification (1, 3 and 6 members beside 1, epsilon 1)",
               off == sorted(off, reverse=True), ", ".join(f"{x:.4f}" for x in grown))  # fmt: skip
    for n in (6, 9):
        members = list(range(n))
        empty = exact_epsilon_of_laws(by_size([], members), by_size([NEW], members), 1.0, "add-remove")
        yield Check(f"the loss is controlled by limiting sizes (an empty cluster beside {n} members, epsilon 1)",
                    "controlled", f"{empty:.2f} exactly", empty <= 1.0, EMPTY)  # fmt: skip


def every(order: Sequence[int], step: int) -> Law:
    """Check systematic sampling of an ordered list."""
    return mixed([(Fraction(1, step), {tuple(sorted(order[j::step])): Fraction(1)}) for j in range(step)])


def section_6_3() -> Iterator[Check]:
    """Systematic samples."""
    random = mixed([(Fraction(1, 24), every(order, 2)) for order in permutations(range(4))])
    same = random == subsets(range(4), 2)
    yield said("a secret random order gives simple random sampling (4 records, step 2)", same,
               "the same law exactly" if same else "another law")  # fmt: skip
    for n, shown in ((4, 2.620), (6, 3.620), (8, 4.620)):
        half = n // 2
        new = [*range(half), NEW, *range(half, n)]
        loss = exact_epsilon_of_laws(every(range(n), 2), every(new, 2), 1.0, "add-remove")
        yield Check(f"a known order is cluster sampling, which loses at most epsilon ({n} records, one inserted)",
                    "like clusters", f"{loss:.3f} exactly", loss <= 1.0, INSERTED)  # fmt: skip
        yield Check(f"that loss, {n} records", "-", f"{shown}", abs(loss - shown) < 1e-3)


def run(out_dir: Path) -> Outcome:
    """Compute, compare and write the files."""
    return compared(out_dir, ENTRY, [*proposition_6_1(), *section_6_1(), *section_6_2(), *section_6_3()])


ENTRY = Entry(
    name="sd-other-designs",
    paper=SD,
    title="Section 6: unequal probabilities and systematic samples",
    summary="Proposition 6.1 and sections 6.1 to 6.3, compared with exact losses on small populations",
    run=run,
    errata="sd-section-63-systematic-sampling-from-a-sorted-list",
)
