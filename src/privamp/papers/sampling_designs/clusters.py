"""SD section 5: the bounds for cluster sampling, compared with the exact loss between the same populations."""

import math
from collections.abc import Iterator, Sequence
from fractions import Fraction
from itertools import combinations
from pathlib import Path
from typing import TYPE_CHECKING

from ...amplification import amplify
from ...designs.cluster import ClusterSampling
from ...mechanisms.black_box import PureDP
from ...numerics.printing import shown_down, shown_up
from ...verify.exact import exact_epsilon_of_laws
from ..files import Picture, Table, compared
from ..printed import Check, said
from ..registry import Entry, Outcome
from .figure_2 import SD
from .laws import NEW, Law, mixed, one_more_member

if TYPE_CHECKING:
    from matplotlib.figure import Figure

POPULATIONS = (((1, 1), 1), ((0, 3, 1), 2), ((1, 2, 3), 1), ((2, 1, 1, 2), 2), ((1, 3, 1), 1), ((2, 2, 2), 1))
EPSILON = 0.8
ELSEWHERE = "the proof's pair is not a deletion: a 1 that becomes a -1 moves the sum by 2"
PRIVATE = "the sizes of the clusters are private: the bound grows with them, so it cannot be reported"
DIVIDED = "e^-(eps' - eps'') belongs in place of e^-eps': the proof divides by the wrong probability"
PRODUCT = "the members of a cluster are drawn together, and their number reveals the cluster"


def printed(epsilon: float, share: float, distance: int) -> float:
    """Theorems 5.1 (n_i + n_min) and 5.2 (n_i + n_max)."""
    return math.log1p(math.expm1(epsilon) * share / (share + (1.0 - share) * math.exp(-distance * epsilon)))


def between(sizes: Sequence[int], chosen: int) -> tuple[float, float, float]:
    """Lower bound, exact loss and upper bound when the first cluster gains a member."""
    share, others = chosen / len(sizes), sizes[1:]
    lower, upper = (printed(EPSILON, share, sizes[0] + n) for n in (min(others), max(others)))
    return lower, one_more_member(sizes, chosen, EPSILON), upper


def theorems_5_1_and_5_2() -> Iterator[Check]:
    """Compare with the linear program."""
    for sizes, chosen in POPULATIONS:
        lower, truth, upper = between(sizes, chosen)
        where = f"{chosen} of clusters {sizes}, epsilon {EPSILON:g}"
        told = f"{truth:.4f} exactly"
        yield said(f"Theorem 5.1, {where}: at least {shown_down(lower, 4)}", lower <= truth + 1e-9, told)
        yield said(f"Theorem 5.2, {where}: at most {shown_up(upper, 4)}", truth <= upper + 1e-9, told)
        if len(set(sizes)) == 1:
            yield said(f"the bounds match for equal sizes, {where}", abs(upper - lower) < 1e-12, f"{truth:.4f}")


def text() -> Iterator[Check]:
    """Check the sentences of sections 5.1 and 5.2."""
    grown = [printed(0.1, 0.1, 2 * n) / 0.1 for n in (1, 10, 50, 100)]
    shown = ", ".join(f"{g:.3f}" for g in grown)
    yield said("small clusters amplify, epsilon < 1 (1 of 10, epsilon 0.1, one member each)", grown[0] < 0.2,
               f"{grown[0]:.3f} epsilon")  # fmt: skip
    yield said("the lower bound converges to epsilon as clusters grow (1, 10, 50, 100 members)", grown[-1] > 0.999,
               f"{shown} epsilon")  # fmt: skip
    simple = math.log1p(0.5 * math.expm1(2 * EPSILON))
    single = one_more_member((1, 1), 1, EPSILON)
    yield said("clusters of one record: close to simple random sampling, up to the relation", single <= simple,
               f"{single:.4f} for a deletion, {simple:.4f} for a replacement")  # fmt: skip
    most = max(amplify(PureDP(1.0), ClusterSampling(2, 10, n)).epsilon() for n in (1, 5, 50))
    yield said("the release is at least as private as the mechanism (2 of 10, at most 50 members, epsilon 1)",
               most <= 1.0 + 1e-9, f"at most {most:.6f}")  # fmt: skip
    small, large = one_more_member((0, 1), 1, 1.0), one_more_member((2, 3), 1, 1.0)
    yield Check("Theorem 5.2 as a guarantee: sizes (0, 1) bound what sizes (2, 3) lose", f"{small:.4f}",
                f"{large:.4f}", large <= small, PRIVATE)  # fmt: skip
    of_the_proof = math.log(0.5 * math.exp(2.0) + 0.5)
    yield Check("the pair in the proof of Theorem 5.1 loses what the theorem says (sizes 1, 1, epsilon 1)",
                f"{printed(1.0, 0.5, 2):.4f}", f"{of_the_proof:.4f}", abs(of_the_proof - printed(1.0, 0.5, 2)) < 1e-3,
                ELSEWHERE)  # fmt: skip


def theorem_5_3() -> Iterator[Check]:
    """C_1 = {x}, C_2 = {z}, one drawn, against C_1 empty: eps' = 2, eps'' = 1."""

    def bound(exponent: float) -> float:
        return math.log1p(math.expm1(1.0) * 0.5 / (0.5 + 0.5 * math.exp(-exponent)))

    most = one_more_member((0, 1), 1, 1.0)
    yield Check("Theorem 5.3, lower bound, one of two single records, eps' = 2, eps'' = 1", f"{bound(2.0):.4f}",
                f"no 1-DP mechanism loses more than {most:.4f}", bound(2.0) <= most, DIVIDED)  # fmt: skip
    mended = bound(1.0)
    yield Check("Theorem 5.3 with e^-(eps' - eps'')", "-", f"{mended:.4f}, which is reached", abs(mended - most) < 1e-6)
    rising = [bound(x) for x in (0.0, 1.0, 4.0, 20.0)]
    yield said("eps-tilde approaches eps'' as the test gets better", rising == sorted(rising) and rising[-1] > 0.999,
               ", ".join(f"{x:.3f}" for x in rising))  # fmt: skip


def coins_within(clusters: Sequence[Sequence[int]]) -> Law:
    """One of the clusters, and a fair coin for each of its members."""
    laws = []
    for cluster in clusters:
        chance = Fraction(1, 2 ** len(cluster))
        kept = [units for size in range(len(cluster) + 1) for units in combinations(sorted(cluster), size)]
        laws.append((Fraction(1, len(clusters)), dict.fromkeys(kept, chance)))
    return mixed(laws)


def two_stages() -> Iterator[Check]:
    """Check the last paragraph of section 5.2."""
    truth = exact_epsilon_of_laws(coins_within([[0], [1]]), coins_within([[0, NEW], [1]]), 1.0, "add-remove")
    inner = math.log1p(0.5 * math.expm1(1.0))
    yield said(f"members at rate r: at most about r epsilon (r = 1/2, epsilon 1: {inner:.4f})", truth <= inner,
               f"{truth:.4f} exactly")  # fmt: skip
    product = math.log1p(0.25 * math.expm1(1.0))
    yield Check("as a product of the two rates", f"{product:.4f}", f"{truth:.4f}", truth <= product, PRODUCT)


def picture() -> "Figure":
    """Lower bound of Theorem 5.1 over the size of the clusters."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(7.2, 4.0), layout="constrained")
    ax = figure.subplots()
    for epsilon, colour, dash in ((0.01, "#0072B2", "-"), (0.1, "#D55E00", "--"), (1.0, "#009E73", "-.")):
        sizes = range(1, 201)
        ax.plot(sizes, [printed(epsilon, 0.1, 2 * n) / epsilon for n in sizes], dash, color=colour, lw=2,
                label=f"ε = {epsilon:g}")  # fmt: skip
    ax.set(xlabel="members of every cluster (1 of 10 clusters drawn)", ylabel="ε′/ε, exact for equal sizes")
    ax.legend(frameon=False)
    ax.spines[["top", "right"]].set_visible(False)
    return figure


def run(out_dir: Path) -> Outcome:
    """Compute, compare, draw and write the files."""
    found = [*theorems_5_1_and_5_2(), *text(), *theorem_5_3(), *two_stages()]
    rows = [(str(s), c, *(f"{x:.6f}" for x in between(s, c))) for s, c in POPULATIONS]
    header = ("sizes", "drawn", "Theorem 5.1", "exact", "Theorem 5.2")
    seen = Picture(picture(), "Amplification vanishes as clusters grow.", "Three curves rise from below 0.2 to 1.")
    return compared(out_dir, ENTRY, found, table=Table(header, rows, f"epsilon {EPSILON:g}"), picture=seen)


ENTRY = Entry(
    name="sd-clusters",
    paper=SD,
    title="Section 5: cluster sampling",
    summary="Theorems 5.1, 5.2 and 5.3 and every sentence about them, compared with exact losses",
    run=run,
    errata="sd-theorem-51-the-proof",
)
