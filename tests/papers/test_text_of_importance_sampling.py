"""The text of the two papers on importance sampling: every row comes out as it should; a planted slip is noticed."""

from privamp.papers.dpis import text as dpis_text
from privamp.papers.importance_sampling import text as is_text
from privamp.papers.printed import DIFFERS, ERRATUM, as_expected


def test_the_formulas_of_is():
    found = is_text.checks()
    assert as_expected(found), [c for c in found if c.kind == DIFFERS]
    assert sum(c.kind == ERRATUM for c in found) == 4


def test_the_sentences_of_dpis():
    found = dpis_text.checks()
    assert as_expected(found), [c for c in found if c.kind == DIFFERS]
    assert sum(c.kind == ERRATUM for c in found) == 3


def test_a_wrong_amplification_is_noticed(monkeypatch):
    monkeypatch.setattr(is_text, "psi", lambda q, loss: q * loss)
    assert not as_expected(is_text.theorem_6())
