"""The text of MUST: every row comes out as it should, and a planted slip is noticed."""

import pytest

from privamp.papers.must import composed_delta, table_3, table_5, text
from privamp.papers.printed import DIFFERS, ERRATUM, INSIDE, as_expected


def test_what_is_computed():
    found = text.computed()
    assert as_expected(found), [c for c in found if c.kind == DIFFERS]
    assert [c.what for c in found if c.kind == ERRATUM] == [
        "section 4: amplification in epsilon grows with m for MUSTow"
    ]


def test_sentences_about_tables_are_never_counted_as_computed():
    found = list(text.about_tables())
    assert as_expected(found), [c for c in found if c.kind == DIFFERS]
    assert {c.kind for c in found} == {INSIDE, ERRATUM}


def test_a_wrong_digit_is_noticed(monkeypatch):
    monkeypatch.setitem(table_3.PRINTED, ("MUSTow", 50), ("0.11", "0.94", "5.0"))
    assert not as_expected(text.table_3_and_4())
    row = table_5.PRINTED[0.001, "MUSTww"]
    monkeypatch.setitem(table_5.PRINTED, (0.001, "MUSTww"), (*row[:2], 1.037, *row[3:]))
    assert not as_expected(text.table_5_and_s2())


def test_a_wrong_formula_is_noticed(monkeypatch):
    monkeypatch.setattr(text, "_eta_ow", lambda n, b, m: m / n)
    assert not as_expected(text.section_3())


@pytest.mark.slow
def test_losses_too_large_to_compose_are_attacked_in_the_first_step():
    found = composed_delta.line("WR")
    assert found.certified == 1.0
    assert found.attack > 1000 * composed_delta.UPPER["WR"]
