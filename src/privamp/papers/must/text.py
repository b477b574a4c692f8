"""MUST: statements in the text that belong to no figure, and the sentences about Tables 3 to 8 and S1.

The first are computed. The second are compared with the printed tables, whose cells are checked in their own entries.
"""

import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import pairwise
from pathlib import Path

import numpy as np
from scipy.integrate import quad
from scipy.stats import laplace, norm

from ...designs.multistage import MultiStage
from ...numerics.log_domain import log_mix
from ..files import compared
from ..printed import Check, agrees, inside, said
from ..registry import Entry, Outcome
from . import adult, mnist, table_3, table_4, table_5, table_7, table_8, table_s1
from . import setting as must
from .experiment import design
from .figure_4 import aligned

BS = (10, 20, 30, 50, 100)
NON_PRIVATE = (0.037, 0.034, 0.038)  # RMSE of the coefficients without noise, below Table S2
SINGLE, TWO = ("Poisson", "WOR", "WR"), ("MUSTow", "MUSTww")
WITH_M = "eta is the probability of being drawn, which grows with the number of draws"
CHANCE = "in its own table the standard deviations of the mean are 0.057 to 0.061 for MUST and 0.058 for the rest"


def section_1() -> Iterator[Check]:
    """Check what the paper says about earlier work."""
    rates = np.linspace(0.01, 1.0, 100)
    most = max(float(log_mix(rate, 1.0)) / (2.0 * rate) for rate in rates.tolist())
    yield said("section 1.2: a (1, 0)-DP mechanism on a Poisson sample is (2 gamma, 0)-DP", most <= 1.0,
               f"log(1 + gamma(e - 1)) is at most {most:.3f} times 2 gamma",
               better="the exact value is at most 0.86 times that")  # fmt: skip


def section_2() -> Iterator[Check]:
    """Check Theorem 1 and the group profiles."""
    for kind, law in (("Laplace", laplace), ("Gaussian", norm)):
        theorem = float(must.mechanism(kind, 1.0).profile(must.RO).delta(0.5))

        def excess(t: float, density: Callable[[float], float] = law.pdf) -> float:
            return max(float(density(t)) - math.exp(0.5) * float(density(t - 1.0)), 0.0)

        integral = sum(quad(excess, a, b)[0] for a, b in pairwise((-40.0, -1.0, 0.0, 0.25, 0.5, 1.0, 40.0)))
        what, shown = f"Theorem 1, {kind}, theta 1: delta at epsilon 0.5", f"{integral:.8f} by quadrature"
        yield Check(what, f"{theorem:.8f}", shown, abs(theorem - integral) < 1e-8)
    zero = float(must.mechanism("Laplace", 1.0).profile(must.RO).delta(1.0))
    yield said("Theorem 1: the Laplace mechanism has delta 0 at epsilon >= theta", zero == 0.0, f"{zero:g}")
    yield from group_privacy()


def group_privacy() -> Iterator[Check]:
    """Check delta_j of a group of j."""
    grown = [float(must.mechanism("Gaussian", float(j)).profile(must.RO).delta(1.0)) for j in range(1, 31)]
    yield said("delta_j increases with j and may reach 1", grown == sorted(grown) and grown[-1] > 0.999999,
               f"{grown[0]:.3f} to {grown[-1]:.7f} for j = 1 to 30")  # fmt: skip
    worst = 0.0
    for j in (2, 3, 5):
        for epsilon in (0.5, 1.0, 2.0):
            one = float(must.mechanism("Gaussian", 1.0).profile(must.RO).delta(epsilon / j))
            black = math.expm1(epsilon) / math.expm1(epsilon / j) * one
            worst = max(worst, float(must.mechanism("Gaussian", float(j)).profile(must.RO).delta(epsilon)) / black)
    yield said("the white-box group profile is below (e^eps - 1)/(e^(eps/j) - 1) delta(eps/j)", worst <= 1.0,
               f"at most {worst:.3f} times it (Gaussian, j = 2, 3, 5)")  # fmt: skip


def section_3() -> Iterator[Check]:
    """Check Proposition 6 and section 3.4."""
    several = [(n, b, m) for n in (5, 30, 300) for b in {1, 2, n // 2, n - 1, n} for m in {1, 2, n // 2, n}]
    holds, equal = True, True
    for n, b, m in several:
        ow, wr, wor = _eta_ow(n, b, m), -math.expm1(m * math.log1p(-1.0 / n)), m / n
        holds &= ow <= wr * (1 + 1e-12) and wr <= wor * (1 + 1e-12)
        equal &= (abs(wr - wor) < 1e-12) == (m == 1) and (m == 1 or (abs(ow - wr) < 1e-12) == (b == n))
    yield said("Proposition 6: eta of MUSTow <= WR <= WOR", holds, f"at {len(several)} triples n, b, m")
    yield said("Proposition 6: equal only for b = n, and for m = 1", equal, "at the same triples")
    stages = [MultiStage(tuple(("wr", 400) for _ in range(k)), must.N) for k in (1, 2, 3, 4)]
    unique = [must.N * of.appearances().eta for of in stages]
    yield said("section 3.4: the more stages, the fewer distinct records (400 of 1000 with replacement)",
               all(a > b for a, b in pairwise(unique)), ", ".join(f"{u:.0f}" for u in unique))  # fmt: skip
    base = must.mechanism("Gaussian", 1.0)
    deltas = [float(must.printed_bound(of, base).delta(must.amplified(of, 2.0))) for of in stages]
    yield said("section 3.4: the weak amplification gets weaker with more stages (delta' at base epsilon 2)",
               deltas == sorted(deltas), ", ".join(f"{d:.4f}" for d in deltas))  # fmt: skip


def _eta_ow(n: int, b: int, m: int) -> float:
    return b / n * (1.0 if b == 1 else -math.expm1(m * math.log1p(-1.0 / b)))


def section_4() -> Iterator[Check]:
    """Check the list of findings, and what Figure 4 shows."""
    for name, goes in (("MUSTow", "grows"), ("MUSTww", "falls")):
        etas = [design(name, must.N, m, 150).appearances().eta for m in (100, 125, 150)]
        stronger = etas == sorted(etas, reverse=True)
        yield Check(f"section 4: amplification in epsilon {goes} with m for {name}", "yes",
                    f"eta {etas[0]:.4f} to {etas[-1]:.4f}", stronger == (goes == "grows"),
                    WITH_M if goes == "grows" else "")  # fmt: skip
        by_b = [design(name, must.N, 100, b).appearances().eta for b in (150, 175, 200)]
        yield said(f"section 5: the larger b, the weaker the amplification of {name} in epsilon", by_b == sorted(by_b),
                   f"eta {by_b[0]:.4f} to {by_b[-1]:.4f}")  # fmt: skip
    curves = aligned()
    for kind in must.MECHANISMS:
        spread, ends = {}, {}
        for ratio in (1.0, 0.25):
            panel = curves[kind, ratio]
            shares = [float(np.mean(panel[name].change > 0)) for name in ("WR", "MUSTow", "MUSTww")]
            spread[ratio] = max(shares) - min(shares)
            ends[ratio] = float(np.max(np.abs(panel["MUSTww"].change[300:])))
        yield said(f"Figure 4, {kind}: smaller Delta/sigma, smaller differences in how long curves are weak",
                   spread[0.25] < spread[1.0], f"{spread[0.25]:.1%} against {spread[1.0]:.1%}")  # fmt: skip
        yield said(f"Figure 4, {kind}: smaller Delta/sigma, quicker convergence to delta' = delta",
                   ends[0.25] < ends[1.0], f"{ends[0.25]:.1e} against {ends[1.0]:.1e} above epsilon 3")  # fmt: skip
    kinks = {kind: _kink(curves[kind, 1.0]["MUSTww"].change) for kind in must.MECHANISMS}
    shown = ", ".join(f"{kind} {kink:.1e}" for kind, kink in kinks.items())
    yield said("Figure 4: the Gaussian mechanism has the smoother peaks", kinks["Gaussian"] < kinks["Laplace"],
               f"{shown}, the largest change of slope")  # fmt: skip


def _kink(change: "np.ndarray[tuple[int, ...], np.dtype[np.float64]]") -> float:
    return float(np.max(np.abs(np.diff(change, 2))))


def supplement() -> Iterator[Check]:
    """Section S12."""
    inside_range = norm.cdf(4.0) - norm.cdf(-4.0)
    yield said("S12: more than 99.99% of normal values lie in [-4, 4]", inside_range > 0.9999, f"{inside_range:.6%}")
    yield Check("S12: 1/n on Adult", "3.2e-5", f"{1 / adult.TRAINING:.3e}", agrees(1 / adult.TRAINING, "3.2e-5"))
    yield Check("section 4.2.3: training and test records of Adult", "41292", f"{adult.TRAINING + 10323}",
                adult.TRAINING + 10323 == 41292)  # fmt: skip
    count = 10 + (4 - 1) + 1  # ten features of one column, an occupation of four kinds, and the intercept
    yield Check("S12: parameters of the logistic model", "14", f"{count}", count == 14)


def table_3_and_4() -> Iterator[Check]:
    """The bootstrap."""
    sigmas = {key: float(row[1]) for key, row in table_3.PRINTED.items()}
    largest = max(sigmas["MUSTow", b] for b in BS)
    least = min(sigmas[name, 0] for name in SINGLE)
    yield said("Table 3: MUSTow has a smaller sigma than Poisson, WOR and WR", largest < least, f"{largest} < {least}")
    less = [b for b in BS if sigmas["MUSTww", b] < sigmas["MUSTow", b]]
    yield said("Table 3: MUSTww has a smaller sigma than MUSTow in some cases", bool(less), f"at b = {less}")
    for name in TWO:
        row = [sigmas[name, b] for b in BS]
        yield said(f"Table 3: sigma of {name} increases with b", row == sorted(row), _listed(row))
    found = table_4.PRINTED
    bias = max(abs(row[0]) for row in found.values())
    yield said("Table 4: means are close to 0", bias < 0.01, f"at most {bias}")
    low = {key: 1.0 - row[2] for key, row in found.items()}
    small = max(value for (_, b), value in low.items() if b == 0)
    large = min(value for (_, b), value in low.items() if 0 < b <= 30)
    yield said("Table 4: variances of MUST are too small where b <= m", large > 2.0 * small,
               f"by at least {large:.3f}, single-step designs at most {small:.3f}")  # fmt: skip
    for at, what in ((1, "the mean"), (3, "the variance")):
        ours = float(np.mean([row[at] for (name, _), row in found.items() if name in TWO]))
        theirs = float(np.mean([found[name, 0][at] for name in SINGLE]))
        yield Check(f"Table 4: MUST has a smaller SD of {what}", "yes", f"{ours:.4f} against {theirs:.4f} on average",
                    ours < theirs, CHANCE if at == 1 else "")  # fmt: skip
    for name in TWO:
        row = [found[name, b][3] for b in BS]
        yield said(f"Table 4: the SD of {name}'s variance grows with b (first to last)", row[-1] > row[0], _listed(row))


def table_5_and_s2() -> Iterator[Check]:
    """The regression."""
    rows = table_5.PRINTED
    for epsilon in (0.01, 0.001):
        order = [float(rows[epsilon, name][0]) for name in ("MUSTww", "MUSTow", "WR", "WOR")]
        yield said(f"Table 5, eps' {epsilon:g}: sigma grows from MUSTww through MUSTow and WR to WOR",
                   order == sorted(set(order)), _listed(order))  # fmt: skip
        copies = min(float(rows[epsilon, name][1]) for name in ("WR", *TWO))
        yield said(f"Table 5, eps' {epsilon:g}: delta' of multisets is larger than that of Poisson and WOR",
                   copies > float(rows[epsilon, "WOR"][1]), f"at least {copies} against 0.0001")  # fmt: skip
    apart = [float(rows[e, "WOR"][0]) - float(rows[e, "MUSTww"][0]) for e in (0.01, 0.001)]
    yield said("Table 5: differences in sigma are more pronounced at eps' 0.001", apart[1] > apart[0], _listed(apart))
    errors = {name: rows[0.001, name][2] for name in (*SINGLE, *TWO)}
    best = min(errors, key=lambda n: errors[n])
    yield said("Table 5: MUSTww has the lowest mean RMSE at eps' 0.001", best == "MUSTww", f"{errors[best]}")
    bias = max(abs(x) for row in rows.values() for x in row[4])
    yield said("Table S2: biases are close to 0", bias < 0.05, f"at most {bias}")
    two = max(max(rows[0.001, name][5]) for name in TWO)
    single = min(min(rows[0.001, name][5]) for name in SINGLE)
    yield said("Table S2, eps' 0.001: RMSE of both MUST is noticeably smaller", two < single,
               f"at most {two}, the rest at least {single}")  # fmt: skip
    gaps = [a - b for row in rows.values() for a, b in zip(row[5], NON_PRIVATE, strict=True)]
    yield said("Table S2: RMSE is larger than the non-private one", min(gaps) > 0.0, f"by at least {min(gaps):.3f}")


def table_6() -> Iterator[Check]:
    """The classifiers."""
    best = max(adult.TASK.printed, key=lambda n: adult.TASK.printed[n])
    yield said("Table 6, Adult: MUSTow is the best", best == "MUSTow", f"{best} {adult.TASK.printed[best]}")
    off = max(abs(x - adult.NON_PRIVATE) for x in adult.TASK.printed.values())
    yield said("Table 6, Adult: similar to the non-private one (within 1 point)", off < 1.0, f"within {off:.2f}")
    row = mnist.TASK.printed
    two, single = min(row[name] for name in TWO), max(row[name] for name in SINGLE)
    yield said("Table 6, MNIST: MUST is more accurate than WR, WOR and Poisson", two > single,
               f"at least {two} against at most {single}")  # fmt: skip


def table_7_and_8() -> Iterator[Check]:
    """Check distinct records and time."""
    for where, row in table_7.PRINTED.items():
        means = {name: row[name][1] for name in row}
        order = means["MUSTww"] <= means["MUSTow"] < means["WR"] <= means["WOR"] == means["Poisson"]
        yield said(f"Table 7, {where}: distinct records grow: MUSTww, MUSTow, WR, then WOR and Poisson", order,
                   ", ".join(f"{n} {m}" for n, m in means.items()))  # fmt: skip
        slowest = max(row, key=lambda n: row[n][3])
        yield said(f"Table 7, {where}: Poisson takes the longest", slowest == "Poisson", f"{row[slowest][3]}% over WR")
        yield said(f"Table 7, {where}: the time of MUST is between WR and Poisson",
                   all(0.0 < row[n][3] < row["Poisson"][3] for n in TWO),
                   ", ".join(f"{n} {row[n][3]}%" for n in TWO))  # fmt: skip
    mnist_row = table_8.PRINTED["MNIST"]
    saved = 1.0 - max(mnist_row[n] for n in TWO) / min(v for n, v in mnist_row.items() if n not in TWO)
    yield said("Table 8, MNIST: MUST saves time against every other run, with or without privacy", saved > 0.2,
               f"at least {saved:.0%}")  # fmt: skip


def table_s1_text() -> Iterator[Check]:
    """Check what section 4.1 says about Table S1."""
    cells = {(c.ratio, c.mechanism, c.design, c.epsilon): c for c in table_s1.cells()}
    places = sorted({(c.ratio, c.mechanism, c.epsilon) for c in cells.values()})

    def printed(at: tuple[float, str, float], name: str) -> tuple[float, float]:
        cell = cells[at[0], at[1], name, at[2]]
        return float(cell.printed_epsilon), float(cell.printed_delta)

    falls = all(
        printed(at, "MUSTww")[0] < printed(at, "MUSTow")[0] < printed(at, "WR")[0] < printed(at, "WOR")[0]
        for at in places
    )
    yield said("Table S1: epsilon' of MUSTww < MUSTow < WR < WOR in all cases", falls, f"in {len(places)} columns")
    strong = all(printed(at, "WOR")[1] <= printed(at, "base")[1] for at in places)
    yield said("Table S1: WOR always amplifies strongly", strong, "delta' <= delta in every column")
    ends = [at for at in places if at[2] in (0.05, 4.5)]
    shift = all((printed(at, n)[1] < printed(at, "base")[1]) == (at[2] == 0.05) for at in ends for n in ("WR", *TWO))
    yield said("Table S1: WR and MUST are strong at the smallest epsilon and weak at the largest", shift,
               f"in {len(ends)} columns")  # fmt: skip
    exceptions = [at for at in places if min(printed(at, n)[1] for n in TWO) < printed(at, "WOR")[1]]
    yield said("Table S1: MUST has the larger delta' except for small epsilon at Delta/sigma = 1",
               all(at[0] == 1.0 and at[2] <= 0.5 for at in exceptions),
               ", ".join(f"{kind} {ratio:g} at {epsilon:g}" for ratio, kind, epsilon in exceptions))  # fmt: skip


def _listed(numbers: Sequence[float]) -> str:
    return ", ".join(f"{x:.3g}" for x in numbers)


def computed() -> list[Check]:
    """The statements that we compute."""
    return [*section_1(), *section_2(), *section_3(), *section_4(), *supplement()]


def about_tables() -> Iterable[Check]:
    """The sentences compared with the printed tables."""
    return inside([*table_3_and_4(), *table_5_and_s2(), *table_6(), *table_7_and_8(), *table_s1_text()])


def run(out_dir: Path) -> Outcome:
    """Compute, compare and write the files."""
    return compared(out_dir, ENTRY, [*computed(), *about_tables()])


ENTRY = Entry(
    name="must-text",
    paper=must.MUST,
    title="The text: statements outside the figures, and sentences about the tables",
    summary="earlier work, Theorem 1, Proposition 6, the findings of section 4, and every sentence about a table",
    run=run,
    errata="smaller-slips-in-the-experiments",
)
