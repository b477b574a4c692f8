"""The text of the paper on sampling designs: every row comes out as it should, and a planted slip is noticed."""

import os
from pathlib import Path

import pytest

from privamp.papers.printed import DIFFERS, as_expected
from privamp.papers.registry import entry
from privamp.papers.sampling_designs import clusters, sizes, strata, unequal
from privamp.papers.sampling_designs.count_error import least_squared_error

ROOT = Path(__file__).parents[2]
SHARED = Path(os.environ.get("PRIVAMP_SHARED", ROOT.parent / "shared"))
CBP = "cbp2010_size_classes.csv.gz"


def test_sections_2_to_4():
    found = sizes.checks()
    assert as_expected(found), [c for c in found if c.kind == DIFFERS]
    assert sum(bool(c.erratum) for c in found) == 5


def test_section_5():
    found = [*clusters.theorems_5_1_and_5_2(), *clusters.text(), *clusters.theorem_5_3(), *clusters.two_stages()]
    assert as_expected(found), [c for c in found if c.kind == DIFFERS]


def test_section_6():
    found = [*unequal.proposition_6_1(), *unequal.section_6_1(), *unequal.section_6_2(), *unequal.section_6_3()]
    assert as_expected(found), [c for c in found if c.kind == DIFFERS]


def test_section_7():
    found = [*strata.definition_7_1(), *strata.theorem_7_2(), *strata.section_7_2(), *strata.printed_allocations()]
    assert as_expected(found), [c for c in found if c.kind == DIFFERS]


def test_a_bound_with_the_wrong_exponent_is_noticed(monkeypatch):
    right = clusters.printed
    monkeypatch.setattr(clusters, "printed", lambda epsilon, share, distance: right(epsilon, share, distance + 2))
    assert not as_expected(clusters.theorems_5_1_and_5_2())


def test_a_lost_draw_is_noticed(monkeypatch):
    monkeypatch.setattr(strata, "AFTER", (*strata.AFTER[:-1], 243))
    assert not as_expected(strata.printed_allocations())


def test_no_private_count_is_as_good_as_the_paper_assumes():
    assert 4.0 < least_squared_error(0.5, 16) <= 8.0
    assert least_squared_error(4.0, 6) < least_squared_error(1.0, 6)


@pytest.mark.skipif(not (SHARED / "data" / CBP).is_file(), reason=f"{CBP} is not here; set PRIVAMP_SHARED")
def test_appendix_e_1_from_the_file(monkeypatch, tmp_path):
    monkeypatch.setenv("PRIVAMP_SHARED", str(SHARED))
    outcome = entry("sd-strata").run(tmp_path)
    assert outcome.ok, outcome.text
    assert "0.105 of every class" in outcome.text
    assert "350" in outcome.text
