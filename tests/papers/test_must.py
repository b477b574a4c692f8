"""MUST's tables and claims, each with a control that must fail."""

import csv
import os
from dataclasses import replace
from itertools import pairwise
from pathlib import Path

import pytest

from privamp import MultiStage, WithReplacement
from privamp.papers.must import (
    eta as must_eta,
)
from privamp.papers.must import (
    figure_4 as must_figure_4,
)
from privamp.papers.must import (
    order_reverses as must_order_reverses,
)
from privamp.papers.must import (
    setting as must_setting,
)
from privamp.papers.must import (
    table_s1 as must_table_s1,
)
from privamp.papers.printed import as_expected

CORRECT_LAST_ROW = (0.128820, 0.105179, 0.0827572, 0.0534365, 0.0373932, 0.0227611)


@pytest.fixture(scope="module")
def values() -> dict[must_table_s1.Cell, must_table_s1.Value]:
    return must_table_s1.recomputed()


def test_table_s1_reproduces_114_of_120_cells(values):
    checks = must_table_s1.compared(values)
    assert len(checks) == 120
    assert sum(c.agrees for c in checks) == 114
    assert as_expected(checks)


def test_table_s1_last_row_is_detected_as_a_copy(values):
    wrong = [cell for cell, check in zip(values, must_table_s1.compared(values), strict=True) if not check.agrees]
    assert {(c.ratio, c.mechanism, c.design) for c in wrong} == {(1.0, "Gaussian", "MUSTww")}
    assert len(wrong) == 6
    assert must_table_s1.copied(values)
    assert [values[c].delta for c in wrong] == pytest.approx(CORRECT_LAST_ROW, rel=5e-6)


def with_another(values, name, design):
    """The table with the rows of one design recomputed for another."""
    rows = dict.fromkeys((c.ratio, c.mechanism) for c in values if c.design == name)
    again = iter([v for row in rows for v in must_table_s1._row(*row, name, must_setting.DESIGNS | {name: design})])
    return {cell: next(again) if cell.design == name else value for cell, value in values.items()}


def test_table_s1_notices_a_wrong_eta(values):
    """Negative control: one draw more (eta 0.3305 instead of 0.3298), or stages in the wrong order."""
    assert with_another(values, "WR", must_setting.DESIGNS["WR"]) == values
    one_more = with_another(values, "WR", WithReplacement(401, 1000))
    assert not as_expected(must_table_s1.compared(one_more))
    swapped = with_another(values, "MUSTow", MultiStage((("wr", 500), ("wor", 400)), 1000))
    assert not as_expected(must_table_s1.compared(swapped))


def test_table_s1_certificate_is_never_worse_than_the_print(values):
    for value in values.values():
        assert value.certified <= value.delta * (1 + 1e-9) + 1e-13


def shared_table() -> Path | None:
    roots = [os.environ.get("PRIVAMP_SHARED"), *(p / "shared" for p in Path(__file__).parents[2:5])]
    tables = (Path(r) / "reference" / "must_table_s1.csv" for r in roots if r)
    return next((table for table in tables if table.exists()), None)


def test_table_s1_against_the_reference_file(values):
    path = shared_table()
    if path is None:
        pytest.skip("no reference/must_table_s1.csv: set PRIVAMP_SHARED or put the shared folder beside the repository")
    names = {
        "lap": "Laplace",
        "gau": "Gaussian",
        "base": "base",
        "wor": "WOR",
        "wr": "WR",
        "ow": "MUSTow",
        "ww": "MUSTww",
    }
    rows = list(csv.DictReader(path.read_text().splitlines()))
    assert len(rows) == 120
    for row, (cell, value) in zip(rows, values.items(), strict=True):
        key = (float(row["Delta_over_sigma"]), names[row["mechanism"]], names[row["sampling"]], float(row["eps_base"]))
        assert key == (cell.ratio, cell.mechanism, cell.design, cell.epsilon)
        assert value.epsilon == pytest.approx(float(row["eps_prime"]), rel=1e-7)
        assert value.delta == pytest.approx(float(row["delta_prime"]), rel=1e-7, abs=0)
        assert float(cell.printed_epsilon) == float(row["printed_eps"])
        assert float(cell.printed_delta) == float(row["printed_delta"])
        assert bool(cell.erratum) == (row["verdict"] == "DIFF")


def test_eta_notices_the_printed_complement_and_a_perturbation(monkeypatch: pytest.MonkeyPatch):
    wrong = [c.what for c in must_eta.setting_checks() if not c.agrees]
    assert wrong == ["Table 2, WR S1: (1-1/n)^m", "Table 2, WR S2: (1-1/n)^m"]
    assert all("WR" in c.what and "eta" in c.what for c in must_eta.tiny_checks() if not c.agrees)
    name, _, value = must_eta.REFERENCE[0]
    monkeypatch.setattr(must_eta, "REFERENCE", ((name, WithReplacement(401, 1000), value), *must_eta.REFERENCE[1:]))
    assert not as_expected(must_eta.reference_checks())


def test_eta_notices_a_repaired_table(monkeypatch: pytest.MonkeyPatch):
    """If the printed formula were right, the erratum would have to go."""
    repaired = [replace(r, eta=must_eta.ROWS[2].eta) if r.name == "WR" else r for r in must_eta.ROWS]
    monkeypatch.setattr(must_eta, "ROWS", tuple(repaired))
    assert not as_expected(must_eta.setting_checks())
    assert not as_expected(must_eta.tiny_checks())


@pytest.fixture(scope="module")
def curves() -> must_figure_4.Curves:
    return must_figure_4.aligned()


def test_once_weak_always_weak(curves):
    for panel in curves.values():
        for name, curve in panel.items():
            if name != "WOR":
                assert curve.weak_from is not None
                assert (curve.change[curve.weak_from :] > 0).all()


def test_the_exact_crossings_lie_below_the_printed_ones(curves):
    """The print is a reading on a grid; the root of delta' = delta, found apart from it, is lower."""
    exact = [0.03760, 0.05720, 0.06420, 0.03535, 0.05957, 0.06908]  # by Brent's method on the same two curves
    names = ("WR", "MUSTow", "MUSTww")
    found = [must_figure_4._crossing(curves[kind, 1.0][name]) for kind in ("Laplace", "Gaussian") for name in names]
    assert found == pytest.approx(exact, abs=2e-5)
    printed = [float(delta) for row in must_figure_4.THRESHOLDS.values() for delta in row.values()]
    assert all(ours < delta for ours, delta in zip(found, printed, strict=True))


def test_figure_4_notices_wrong_curves(curves):
    panel = curves["Gaussian", 1.0]
    swapped = panel | {"WR": panel["MUSTow"], "MUSTow": panel["WR"]}
    assert as_expected(must_figure_4.checks(curves))
    assert not as_expected(must_figure_4.checks(curves | {("Gaussian", 1.0): swapped}))


@pytest.fixture(scope="module")
def lines() -> list[must_order_reverses.Line]:
    return must_order_reverses.lines()


def test_the_order_reverses_beyond_doubt(lines):
    four = lines[:4]
    assert [line.name for line in four] == ["WOR", "WR", "MUSTow", "MUSTww"]
    assert sorted(four, key=lambda x: -x.amplified) == four
    assert all(a.upper < b.lower for a, b in pairwise(four))
    assert four[0].upper == pytest.approx(3.79, abs=5e-3)
    assert [line.lower for line in four[1:]] == pytest.approx([14.972, 24.950, 54.706], abs=1.5e-3)
    assert as_expected(must_order_reverses.checks(lines))


def test_sampling_in_two_stages_can_lose_privacy(lines):
    ww = lines[3]
    assert 1.0 < ww.pure_lower <= ww.pure_upper
    assert not must_order_reverses.guarantee(must_setting.DESIGNS["WOR"], "Laplace").degrades
    assert must_order_reverses.guarantee(must_setting.DESIGNS["MUSTww"], "Laplace").degrades


def test_the_reversal_is_not_claimed_from_overlapping_intervals(lines):
    """Negative control: with WR's attack below WOR's certificate nothing is proved, and the entry says so."""
    blurred = [lines[0], replace(lines[1], lower=3.0), *lines[2:]]
    assert not as_expected(must_order_reverses.checks(blurred))
