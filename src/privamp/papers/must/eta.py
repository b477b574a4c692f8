"""MUST Tables 1 and 2: the probability eta that a record is drawn at all, and the weights p_u of delta'.

Table 2 prints eta = (1 - 1/n)^m for sampling with replacement: that is the probability of *not* being drawn. Every
other formula of the two tables is right; each is compared with the enumerated law of tiny cases and with the library.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from fractions import Fraction
from math import comb, fsum
from pathlib import Path

from ...core.design import Design
from ...core.population import Population
from ...designs.multistage import MultiStage
from ...designs.simple_random import WithoutReplacement
from ...designs.with_replacement import WithReplacement
from ...report.html import Report
from ..files import columns, csv_of, publish
from ..printed import HEADER, Check, agrees, counted
from ..registry import Entry, Outcome
from . import setting as must

Weight = Callable[[int, int, int, int], Fraction]  # (n, b, m, u) -> p_u

COMPLEMENT = "this is the probability of never being drawn; eta is 1 minus it"
SETTINGS = {"S1": (1000, 500, 400), "S2": (10_000, 118, 200)}  # n, b, m
TINY = ((4, 3, 2), (5, 3, 3), (3, 3, 1))


def _binomial(draws: int, chance: Fraction, hits: int) -> Fraction:
    return comb(draws, hits) * chance**hits * (1 - chance) ** (draws - hits)


def _wor_eta(n: int, b: int, m: int) -> Fraction:
    return Fraction(m, n)


def _wor(n: int, b: int, m: int, u: int) -> Fraction:
    return Fraction(m, n) if u == 1 else Fraction(0)


def _wr_eta(n: int, b: int, m: int) -> Fraction:
    return (1 - Fraction(1, n)) ** m  # as printed


def _wr(n: int, b: int, m: int, u: int) -> Fraction:
    return _binomial(m, Fraction(1, n), u)


def _wo_eta(n: int, b: int, m: int) -> Fraction:
    return 1 - (1 - Fraction(1, n)) ** m


def _wo(n: int, b: int, m: int, u: int) -> Fraction:
    after = (Fraction(comb(j, u) * comb(b - j, m - u), comb(b, m)) for j in range(u, b + 1))
    return sum((_binomial(b, Fraction(1, n), j) * p for j, p in enumerate(after, u)), Fraction(0))


def _ow_eta(n: int, b: int, m: int) -> Fraction:
    return Fraction(b, n) * (1 - (1 - Fraction(1, b)) ** m)


def _ow(n: int, b: int, m: int, u: int) -> Fraction:
    return Fraction(b, n) * _binomial(m, Fraction(1, b), u)


def _ww_eta(n: int, b: int, m: int) -> float:
    terms = (_binomial(b, Fraction(1, n), j) * (1 - (1 - Fraction(j, b)) ** m) for j in range(1, b + 1))
    return fsum(float(term) for term in terms)


def _ww(n: int, b: int, m: int, u: int) -> Fraction:
    terms = (_binomial(b, Fraction(1, n), j) * _binomial(m, Fraction(j, b), u) for j in range(1, b + 1))
    return sum(terms, Fraction(0))


@dataclass(frozen=True, slots=True)
class Row:
    """One row of Table 1 or 2: the design, and its formulas exactly as printed."""

    table: int
    name: str
    formula: str
    design: Callable[[int, int, int], Design]  # (n, b, m)
    eta: Callable[[int, int, int], Fraction | float]
    weight: Weight
    erratum: str = ""


ROWS = (
    Row(2, "WOR", "m/n", lambda n, b, m: WithoutReplacement(m, n), _wor_eta, _wor),
    Row(2, "WR", "(1-1/n)^m", lambda n, b, m: WithReplacement(m, n), _wr_eta, _wr, COMPLEMENT),
    Row(1, "MUSTwo", "1-(1-1/n)^m", lambda n, b, m: MultiStage((("wr", b), ("wor", m)), n), _wo_eta, _wo),
    Row(
        1,
        "MUSTow",
        "(b/n)(1-(1-1/b)^m)",
        lambda n, b, m: MultiStage((("wor", b), ("wr", m)), n),
        _ow_eta,
        _ow,
    ),
    Row(
        1,
        "MUSTww",
        "sum_j Bin(j;b,1/n)(1-(1-j/b)^m)",
        lambda n, b, m: MultiStage((("wr", b), ("wr", m)), n),
        _ww_eta,
        _ww,
    ),
)

# Six-digit reference values from outside this library.
REFERENCE: tuple[tuple[str, Design, str], ...] = (
    ("WR S1", WithReplacement(400, 1000), "0.329814"),
    ("MUSTow S1", MultiStage((("wor", 500), ("wr", 400)), 1000), "0.275515"),
    ("MUSTww S1", MultiStage((("wr", 500), ("wr", 400)), 1000), "0.240908"),
    ("MUSTow S2", MultiStage((("wor", 118), ("wr", 200)), 10_000), "0.00964894"),
    ("MUSTww S2", MultiStage((("wr", 118), ("wr", 200)), 10_000), "0.00960296"),
    ("WR600 WR400 WR200 of 1000", MultiStage((("wr", 600), ("wr", 400), ("wr", 200)), 1000), "0.129509"),
    ("WOR500 WR300 WOR100 of 1000", MultiStage((("wor", 500), ("wr", 300), ("wor", 100)), 1000), "0.0907166"),
)


def enumerated(design: Design, population: int, most: int) -> list[Fraction]:
    """Pr[record 0 appears u times], u = 0..most, by enumerating all samples."""
    chances = [Fraction(0)] * (most + 1)
    for units, chance in design.law(Population(population)):
        chances[units.count(0)] += chance
    return chances


def tiny_checks() -> Iterator[Check]:
    """Compare the printed formulas with enumeration, exactly."""
    for row in ROWS:
        for n, b, m in TINY:
            law = enumerated(row.design(n, b, m), n, m)
            eta, weights = row.eta(n, b, m), [row.weight(n, b, m, u) for u in range(1, m + 1)]
            where = f"Table {row.table}, {row.name} {n}, {b}, {m}"
            true = 1 - law[0]
            yield Check(f"{where}: eta", f"{float(eta):.6g}", str(true), abs(float(eta - true)) < 1e-15, row.erratum)
            yield Check(f"{where}: weights", "sum p_u delta_u", "same p_u", weights == law[1:])


def setting_checks() -> Iterator[Check]:
    """Compare the printed formulas with the designs' own laws, at the paper's two settings."""
    for row in ROWS:
        for name, (n, b, m) in SETTINGS.items():
            if row.name == "MUSTwo" and m > b:
                continue  # cannot draw m of b without replacement
            printed, ours = float(row.eta(n, b, m)), row.design(n, b, m).appearances().eta
            near = abs(printed - ours) <= 1e-12
            what = f"Table {row.table}, {row.name} {name}: {row.formula}"
            yield Check(what, f"{printed:.9g}", f"{ours:.9g}", near, row.erratum)


def reference_checks() -> Iterator[Check]:
    """Compare eta, and one epsilon' and delta' of a three-stage chain, with the reference values."""
    for name, design, value in REFERENCE:
        eta = design.appearances().eta
        yield Check(f"reference, {name}: eta", value, f"{eta:.9g}", agrees(eta, value))
    chain = REFERENCE[5][1]
    epsilon = must.amplified(chain, 1.0)
    yield Check("reference, three stages: epsilon'", "0.200925", f"{epsilon:.9g}", agrees(epsilon, "0.200925"))
    for name, design, value in (
        ("three stages", chain, "0.0399211"),
        ("MUSTww S1", REFERENCE[2][1], "0.0827572"),
    ):
        gaussian = must.mechanism("Gaussian", 1.0)
        delta = float(must.printed_bound(design, gaussian).delta(must.amplified(design, 1.0)))
        yield Check(f"reference, {name}: delta'", value, f"{delta:.9g}", agrees(delta, value))


def run(out_dir: Path) -> Outcome:
    """Compare all formulas and write the files."""
    checks = [*setting_checks(), *reference_checks(), *tiny_checks()]
    text = "\n".join([columns(HEADER, (c.row for c in checks)), "", f"{counted(checks)}."])
    csv = csv_of(HEADER, (c.row for c in checks))
    return publish(out_dir, ENTRY.name, text, checks, _report(checks), {".csv": csv})


def _report(checks: list[Check]) -> Report:
    report = Report("MUST Tables 1 and 2: eta and the weights", f"{counted(checks)}.")
    report.add_text(
        "eta is the probability that a record is in the sample at all. Table 2 prints (1-1/n)^m for sampling with "
        "replacement, which is the probability that it is not: at n = 1000, m = 400 that is 0.670 instead of 0.330. "
        "The paper's own Table S1 and figures use the right value, and so does its Corollary 5."
    )
    marked = [i for i, check in enumerate(checks) if not check.agrees]
    caption = "S1: n, b, m = 1000, 500, 400. S2: 10000, 118, 200. Small n, b, m: enumerated exactly."
    report.add_table(HEADER, (c.row for c in checks), caption, marked)
    return report


ENTRY = Entry(
    name="must-eta",
    paper=must.MUST,
    title="Tables 1 and 2: eta and the weights of delta'",
    summary="every printed formula compared with exact enumeration; Table 2 prints 1 - eta for WR",
    run=run,
    errata="2-must-table-2-eta-of-sampling-with-replacement",
)
