"""The page with every verdict: honest counts, missing data as a sentence, links that lead somewhere."""

import csv
import re
from pathlib import Path

import pytest

from privamp.errors import InvalidInput
from privamp.numerics.roots import NumericalFailure
from privamp.papers.all_of_them import WHAT_DIFFERS, in_a_sentence, run_all, totals, write_report
from privamp.papers.files import compared
from privamp.papers.printed import AGREES, APART, DIFFERS, ERRATUM, INSIDE, OWN, Check, apart, counted, inside, said
from privamp.papers.registry import Entry, Outcome, entries
from privamp.report.html import Link, Report

ROOT = Path(__file__).parents[2]
CHECKS = (
    Check("a", "1", "1", True),
    Check("b", "1", "2", False, "a slip"),
    apart("c", "3", "another year"),
    Check("d", "1", "2", False),
    Check("e", "-", "yes", True),
    said("f", True, "0.1", better="ten times smaller"),
)


def made_up(folder: Path) -> Outcome:
    return compared(folder, ENTRY, CHECKS)


def without_data(folder: Path) -> Outcome:
    raise InvalidInput("this experiment needs the data file x")


ENTRY = Entry("a", "Paper (P)", "Table 1", "summary", made_up, errata="sd-lemma-b1-the-hypothesis")
MISSING = Entry("b", "Paper (P)", "Table 2", "summary", without_data)


@pytest.fixture(scope="module")
def results(tmp_path_factory):
    return run_all([ENTRY, MISSING], tmp_path_factory.mktemp("all"))


def test_every_check_is_of_one_kind(results):
    assert totals(results) == {AGREES: 2, INSIDE: 0, ERRATUM: 1, APART: 2, DIFFERS: 1, OWN: 1}
    assert in_a_sentence(results).startswith("6 printed statements: 2 agree with our results, 0 agree with the")
    assert "1 differ (1 of them without a known reason)" in in_a_sentence(results)
    assert [r.ok for r in results] == [False, True]


def test_what_is_known_to_differ_is_still_a_difference():
    check = said("a", False, "0.3", differs="another noise")
    assert check.kind == DIFFERS
    assert check.as_expected
    assert check.verdict == "DIFFERS: another noise"
    assert said("a", True, "0.1", differs="another noise").kind == AGREES
    assert counted([check]) == "0 of 1 agree with the paper, 0 known errata, 1 known to differ, 0 unexpected"


def test_agreement_inside_a_paper_is_counted_apart():
    assert [c.kind for c in inside(CHECKS)] == [INSIDE, ERRATUM, APART, DIFFERS, OWN, INSIDE]


def test_a_failed_search_is_not_hidden(tmp_path):
    def stops(folder: Path) -> Outcome:
        raise NumericalFailure("no root")

    (found,) = run_all([Entry("c", "Paper (P)", "Table 3", "summary", stops)], tmp_path)
    assert not found.ok
    assert [c.kind for c in found.checks] == [DIFFERS]


def test_the_page(results, tmp_path, monkeypatch):
    monkeypatch.chdir(ROOT)
    page, table = write_report(results, tmp_path)
    html = page.read_text(encoding="utf-8")
    assert WHAT_DIFFERS in html
    assert "ten times smaller" in html
    assert "not run: this experiment needs the data file x" in html
    link = re.search(r'href="([^"]*errata.md)#sd-lemma-b1-the-hypothesis"', html)
    assert link
    assert (tmp_path / link.group(1)).resolve() == ROOT / "docs" / "errata.md"
    assert len(list(csv.reader(table.read_text(encoding="utf-8").splitlines()))) == 1 + len(CHECKS) + 1


def slug(heading: str) -> str:
    kept = re.sub(r"[^\w\s-]", "", heading.lower())
    return re.sub(r"[\s]+", "-", kept.strip())


def test_every_entry_links_to_an_erratum_that_exists():
    page = (ROOT / "docs" / "errata.md").read_text(encoding="utf-8")
    anchors = {slug(heading) for heading in re.findall(r"^##+ (.+)$", page, re.MULTILINE)}
    for name, entry in entries().items():
        assert entry.errata in anchors | {""}, name


def test_links_stay_on_this_machine():
    report = Report("a", "b")
    with pytest.raises(InvalidInput, match="a path or an anchor"):
        report.add_table(["x"], [[Link("y", "https://example.org")]], "z")


@pytest.mark.slow
def test_everything_quick(tmp_path):
    """All entries as they ship, on the data at hand: nothing differs but what docs/reproductions.md lists."""
    results = run_all(entries().values(), tmp_path)
    write_report(results, tmp_path)
    assert [(r.entry.name, c) for r in results for c in r.checks if not c.as_expected] == []
    listed = {"dpis-table-3", "dpis-table-4", "must-figure-s5", "must-mnist"}
    assert {r.entry.name for r in results for c in r.checks if c.kind == DIFFERS} <= listed
    assert all(r.checks for r in results)
