"""The report builder: whole, self-contained, escaped, and outward in every digit."""

import math
import re
import subprocess
import sys
from base64 import b64decode
from dataclasses import replace
from decimal import Decimal
from html.parser import HTMLParser
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from matplotlib.figure import Figure

from privamp import Gaussian, Laplace, MultiStage, Neighbors, Poisson, PureDP, WithoutReplacement, amplify
from privamp.atomic_files import write_atomically
from privamp.core.guarantee import NOT_PRIVATE, Guarantee
from privamp.errors import DegradingDesign, InvalidInput
from privamp.numerics.printing import shown_down, shown_up
from privamp.report.html import Report

RO = Neighbors.REPLACE_ONE
VOID = {"meta", "img", "br", "hr", "link", "input"}


class Page(HTMLParser):
    """Collects tags, attributes and text, and insists that every tag is closed in order."""

    def __init__(self, text: str) -> None:
        super().__init__(convert_charrefs=True)
        self.open: list[str] = []
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.text = ""
        self.feed(text)
        self.close()
        assert self.open == []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        assert len(dict(attrs)) == len(attrs), f"an attribute of <{tag}> is given twice"
        self.tags.append((tag, dict(attrs)))
        if tag not in VOID:
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        self.text += data if self.open[-1:] != ["style"] else ""

    def named(self, tag: str) -> list[dict[str, str | None]]:
        return [attrs for name, attrs in self.tags if name == tag]


def figure() -> Figure:
    made = Figure(figsize=(2, 1))
    made.subplots().plot([0, 1], [0, 1])
    return made


def full_report() -> Report:
    report = Report("A title", "A summary.")
    report.add_text("One.\n\nTwo.", heading="Words")
    report.add_table(["design", "epsilon"], [["wor", 3.79], ["wr", math.inf]], "A table.", marked=[1])
    report.add_figure(figure(), "A caption.", "What it shows.")
    report.add_guarantee(amplify(Gaussian(1.0), Poisson(0.1)), epsilon=1.0, delta=1e-6)
    return report


def test_page_is_well_formed_and_holds_everything():
    page = Page(full_report().html())
    assert page.named("html") == [{"lang": "en"}]
    assert [tag for tag, _ in page.tags].count("h1") == 1
    assert page.named("meta")[2]["name"] == "viewport"
    for words in ("A title", "A summary.", "One.", "Two.", "Words", "3.79", "∞", "A table.", "A caption."):
        assert words in page.text
    (picture,) = page.named("img")
    assert picture["alt"] == "What it shows."
    assert b64decode(str(picture["src"]).partition("base64,")[2]).startswith(b"\x89PNG")
    assert {attrs.get("scope") for attrs in page.named("th")} == {"col", "row"}
    assert "prefers-color-scheme: dark" in full_report().html()


def test_cells_of_a_wide_table_with_few_rows_carry_their_columns_names_for_phones():
    heads = ["name", "value", "noise <sd>", "interval"]
    report = Report("title", "summary")
    report.add_table(heads, [["a", 1.5, 0.1, "[1, 2]"]], "wide")
    assert '<table class="stacked">' in report.body()
    assert '<td data-label="noise &lt;sd&gt;" class="number">0.1</td>' in report.body()
    for rows, columns in ((7, 4), (1, 3)):  # many rows to compare, and few columns that fit
        report = Report("title", "summary")
        report.add_table(heads[:columns], [["a", 1.5, 0.1, "[1, 2]"][:columns]] * rows, "plain")
        assert "data-label" not in report.body()


def test_page_refers_to_nothing_outside():
    text = full_report().html()
    page = Page(text)
    assert not {tag for tag, _ in page.tags} & {"script", "link", "iframe", "object", "embed", "base", "form", "a"}
    for _, attrs in page.tags:
        for name, value in attrs.items():
            assert not name.startswith("on")
            assert name not in ("href", "srcset", "action")
            assert name != "src" or str(value).startswith("data:")
    without_pictures = re.sub(r"data:image/png;base64,[A-Za-z0-9+/=]+", "", text)
    assert not re.search(r"//|@import|url\(", without_pictures)
    assert page.named("meta")[1]["content"] == "default-src 'none'; img-src data:; style-src 'unsafe-inline'"


ATTACK = "</title><script>alert(1)</script>\"'&<img src=x onerror=y>"


def test_everything_given_is_escaped():
    report = Report(ATTACK, ATTACK)
    report.add_text(ATTACK, heading=ATTACK)
    report.add_table([ATTACK, "b"], [[ATTACK, ATTACK]], ATTACK)
    report.add_figure(figure(), ATTACK, ATTACK)
    honest = amplify(PureDP(1.0), Poisson(0.5))
    made = replace(honest, reasons=lambda: (ATTACK,), assumes=(ATTACK,))
    report.add_guarantee(made, heading=ATTACK)
    text = report.html()
    assert "<script" not in text
    page = Page(text)
    assert len(page.named("img")) == 1
    assert page.text.count(ATTACK) == 13  # twice the title, eight in the parts, three in the guarantee


def test_write_is_whole_or_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    target = tmp_path / "report.html"
    assert full_report().write(target) == target
    assert target.read_text(encoding="utf-8").startswith("<!DOCTYPE html>")
    monkeypatch.setattr("os.replace", _fails)
    with pytest.raises(OSError, match="disk"):
        Report("other", "").write(target)
    assert [p.name for p in tmp_path.iterdir()] == ["report.html"]
    assert "A title" in target.read_text(encoding="utf-8")


def _fails(*args: object, **kwargs: object) -> None:
    raise OSError("disk full")


def test_a_failing_figure_leaves_no_file(tmp_path: Path):
    class Broken(Figure):
        def savefig(self, *args: object, **kwargs: object) -> None:
            raise RuntimeError("no picture today")

    def make() -> None:
        report = Report("t", "s")
        report.add_figure(Broken(), "c")
        report.write(tmp_path / "report.html")

    with pytest.raises(RuntimeError, match="no picture"):
        make()
    assert list(tmp_path.iterdir()) == []


def test_bad_targets_and_tables_are_refused(tmp_path: Path):
    with pytest.raises(InvalidInput, match="must exist"):
        write_atomically(tmp_path / "none" / "x.html", b"")
    with pytest.raises(InvalidInput, match="must be a file"):
        write_atomically(tmp_path, b"")
    with pytest.raises(InvalidInput, match="2 cells, got 1"):
        Report("t", "s").add_table(["a", "b"], [["only one"]], "c")


@given(st.floats(min_value=1e-320, max_value=1e300))
def test_printed_bounds_are_bounds(value: float):
    low, high = Decimal(shown_down(value)), Decimal(shown_up(value))
    assert low <= Decimal(value) <= high
    assert high - low <= Decimal(value) * Decimal("1e-4") or value < 1e-300
    assert high > 0


def shown(guarantee: Guarantee, **at: float) -> str:
    report = Report("t", "s")
    report.add_guarantee(guarantee, **at)
    return Page(report.html()).text


def test_guarantee_shows_relation_numbers_and_reasons():
    guarantee = amplify(Gaussian(1.0, neighbors=RO), WithoutReplacement(400, 1000))
    text = shown(guarantee, delta=1e-6)
    assert "replace-one" in text
    assert f"at most {shown_up(guarantee.epsilon(1e-6))}" in text
    assert guarantee.lower is not None
    assert f"attack reaches {shown_down(guarantee.lower.epsilon(1e-6))}" in text
    assert all(reason in text for reason in (*guarantee.because, *guarantee.assumes))
    assert "NOT PRIVATE" not in text
    assert "LOSES" not in text
    assert "Delta at epsilon 1" in shown(guarantee)  # nothing asked, not pure
    assert "Epsilon (pure)" in shown(amplify(PureDP(1.0), Poisson(0.5)))


def test_a_delta_too_small_for_a_double_is_not_shown_as_zero():
    guarantee = amplify(Gaussian(4.0, neighbors=RO), WithoutReplacement(400, 1000))
    assert "at most 1e-300" in shown(guarantee, epsilon=100.0)
    pure = amplify(Laplace(1.0, neighbors=RO), WithoutReplacement(400, 1000))
    assert "at most 0;" in shown(pure, epsilon=2.0)


def test_not_private_and_degrading_are_loud():
    honest = amplify(PureDP(1.0), Poisson(0.5))
    tested = replace(honest, assumes=(*honest.assumes, NOT_PRIVATE))
    assert "NOT PRIVATE: made in test mode" in shown(tested)
    with pytest.warns(DegradingDesign):
        worse = amplify(Laplace(1.0, neighbors=RO), MultiStage((("wr", 500), ("wr", 400)), 1000))
    report = Report("t", "s")
    report.add_guarantee(worse)
    assert "LOSES PRIVACY" in Page(report.html()).text
    assert {"class": "alarm", "role": "alert"} in Page(report.html()).named("p")


def test_matplotlib_loads_only_for_a_figure():
    code = "import sys, privamp.papers.registry as r; r.entries(); print('matplotlib' in sys.modules)"
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=120)
    assert run.stdout.strip() == "False", run.stderr
