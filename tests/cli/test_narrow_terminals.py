"""Tables on narrow terminals: whole words side by side, or a paragraph for each row."""

import io

import pytest
from rich.console import Console

from privamp.cli import console

HEADS = ["", "<design", "ε certified", "δ(1) cert.", "draws"]
ROWS = [["1", "Poisson 0.04", "0.03454", "5.528e-198", "400"], ["2", "WOR 400", "0.05383", "", "400"]]
LEAST = 1 + 7 + 9 + 10 + 5 + 3 * len(HEADS) - 1  # the longest words, and what stands between columns


@pytest.fixture
def printed(monkeypatch):
    """printed(width) is what a terminal of this width shows of the table."""

    def shown(width):
        screen = Console(file=io.StringIO(), width=width, highlight=False)
        monkeypatch.setattr(console, "console", lambda: screen)
        console.grid("Ranked", HEADS, ROWS, best=0)
        return screen.file.getvalue()

    return shown


def test_a_wide_terminal_has_a_table(printed) -> None:
    lines = printed(LEAST).splitlines()
    assert max(map(len, lines)) <= LEAST
    assert any("0.03454" in line and "5.528e-198" in line for line in lines)


def test_a_narrow_one_has_paragraphs_without_broken_words(printed) -> None:
    for width in (24, LEAST - 1):
        text = printed(width)
        lines = [line.rstrip() for line in text.splitlines()]
        assert max(map(len, lines)) <= width
        assert lines[:4] == ["Ranked", "", "1 Poisson 0.04", "  ε certified: 0.03454"]
        assert "  δ(1) cert.: 5.528e-198" in lines
        assert lines[-1] == "  draws: 400"


def test_an_empty_table_is_no_failure(monkeypatch) -> None:
    screen = Console(file=io.StringIO(), width=5, highlight=False)
    monkeypatch.setattr(console, "console", lambda: screen)
    console.grid("Nothing", ["<a", "b"], [])
    assert "Nothi" in screen.file.getvalue()
