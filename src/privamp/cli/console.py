"""Printing: tables and lines for people, JSON for machines, progress bars on terminals.

In untrusted text, characters that would move the cursor, colour the terminal or reverse lines are escaped.
"""

import json
import math
import re
import sys
import warnings
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from threading import Timer
from typing import Any

SCHEMA = 1
_WIDE = 120  # for files and pipes, which have no width of their own
_BROKEN = 16  # letters from which on a word in a table may be broken
_PATIENCE = 1.0  # seconds before a progress bar appears
# C0 and C1 controls, DEL, the marks that change the direction of text, and halves of characters
_ACTIVE = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u200e\u200f\u202a-\u202e\u2066-\u2069\ud800-\udfff]")

Advance = Callable[[int, int], None]  # done, in all


def visible(text: str) -> str:
    r"""The same text with such characters escaped; newlines and tabs stay.

    >>> visible("\x1b[2Jstudy")
    '\\x1b[2Jstudy'
    """
    return _ACTIVE.sub(lambda found: found.group().encode("unicode_escape").decode("ascii"), text)


def one_line(text: str) -> str:
    r"""`visible` with newlines and tabs escaped too, for labels and cells of tables."""
    return visible(text).replace("\n", "\\n").replace("\t", "\\t")


def console(*, err: bool = False) -> Any:
    """A rich console on the current stdout or stderr."""
    from rich.console import Console

    stream = sys.stderr if err else sys.stdout
    width = None if stream.isatty() else _WIDE
    return Console(file=stream, width=width, highlight=False)


def say(text: str = "", style: str | None = None) -> None:
    """One paragraph on stdout; brackets are text."""
    console().print(visible(text), style=style, markup=False, soft_wrap=not sys.stdout.isatty())


def warn(text: str) -> None:
    """One highlighted line on stderr."""
    console(err=True).print(f"Warning: {visible(text)}", style="bold yellow", markup=False, soft_wrap=True)


def emit(answer: dict[str, Any]) -> None:
    """One JSON object on stdout, schema version first, infinities as null."""
    print(json.dumps(_finite({"schema": SCHEMA} | answer), ensure_ascii=False, allow_nan=False))


def facts(rows: Iterable[tuple[str, str]], title: str | None = None) -> None:
    """Two columns: what, and how much."""
    from rich.box import SIMPLE
    from rich.table import Table

    heading = None if title is None else _plain(title)
    table = Table(title=heading, title_justify="left", show_header=False, box=SIMPLE, pad_edge=False)
    table.add_column(style="bold", no_wrap=True)
    table.add_column(overflow="fold")
    for what, value in rows:
        table.add_row(_plain(what), _plain(value))
    console().print(table)


def grid(title: str, heads: list[str], rows: Iterable[list[str]], best: int | None = None) -> None:
    """A table with a heading; words left, numbers right; row `best` stands out.

    Where a terminal is too narrow for whole words side by side, each row is a paragraph.
    """
    from rich.box import SIMPLE_HEAD
    from rich.table import Table

    rows, screen = list(rows), console()
    least = _least_widths(heads, rows)
    if sum(least) + 3 * len(least) - 1 > screen.width:  # three signs stand between columns
        _paragraphs(screen, title, [head.lstrip("<") for head in heads], rows, best)
        return
    table = Table(title=_plain(title), title_justify="left", title_style="bold", box=SIMPLE_HEAD, pad_edge=False)
    for head, width in zip(heads, least, strict=True):
        side: Any = "left" if head.startswith("<") else "right"
        table.add_column(head.lstrip("<"), justify=side, overflow="fold", min_width=width)
    for index, row in enumerate(rows):
        table.add_row(*map(_plain, row), style="bold green" if index == best else None)
    screen.print(table)


def _least_widths(heads: list[str], rows: list[list[str]]) -> list[int]:
    """Of the columns of a table that breaks only long words."""
    columns = zip((head.lstrip("<") for head in heads), *rows, strict=True)
    longest = (max((len(word) for cell in column for word in cell.split()), default=0) for column in columns)
    return [min(_BROKEN, width) for width in longest]


def _paragraphs(screen: Any, title: str, heads: list[str], rows: list[list[str]], best: int | None) -> None:
    screen.print(_plain(title), style="bold")
    ranks = 0 if heads[0] else 1  # a column without a head has the ranks
    for index, row in enumerate(rows):
        screen.print()
        screen.print(_plain(" ".join(row[: ranks + 1])), style="bold green" if index == best else "bold")
        for head, cell in zip(heads[ranks + 1 :], row[ranks + 1 :], strict=True):
            if cell:
                screen.print(_plain(f"  {head}: {cell}" if head else f"  {cell}"))


def number(value: float | None, digits: int = 4) -> str:
    """A number for people: '0.0538', '1.2e-07', '∞', '—' when unknown."""
    if value is None:
        return "—"
    if math.isinf(value):
        return "∞" if value > 0 else "-∞"
    return f"{value:.{digits}g}"


def upper(value: float | None, digits: int = 4) -> str:
    """An upper bound for people, rounded up."""
    from ..numerics.printing import shown_up

    return "—" if value is None else shown_up(value, digits)


def lower(value: float | None, digits: int = 4) -> str:
    """A lower bound for people, rounded down."""
    from ..numerics.printing import shown_down

    return "—" if value is None else shown_down(value, digits)


@contextmanager
def waiting(what: str, *, quiet: bool = False) -> Iterator[Advance]:
    """A progress bar on stderr for work of more than a second, on a terminal only. Yields its `advance`."""
    screen = console(err=True)
    if quiet or not screen.is_terminal:
        yield lambda done, total: None
        return
    from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn

    progress = Progress(
        TextColumn("{task.description}"), BarColumn(), TimeElapsedColumn(), console=screen, transient=True
    )
    task = progress.add_task(what, total=None)
    timer = Timer(_PATIENCE, progress.start)
    timer.start()
    try:
        yield lambda done, total: progress.update(task, completed=done, total=total)
    finally:
        timer.cancel()
        timer.join()  # it may be starting the bar right now
        progress.stop()


@contextmanager
def degrading() -> Iterator[None]:
    """Turn the library's warning about a degrading design into one highlighted line."""
    from ..errors import DegradingDesign

    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", DegradingDesign)
        yield
    for sentence in dict.fromkeys(str(w.message) for w in caught if issubclass(w.category, DegradingDesign)):
        warn(sentence)


def _plain(text: str) -> Any:
    from rich.text import Text

    return Text(visible(text))


def _finite(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _finite(entry) for key, entry in value.items()}
    if isinstance(value, (list, tuple)):
        return [_finite(entry) for entry in value]
    if isinstance(value, float) and not math.isfinite(value):
        return None
    return value
