"""One report builder: text, tables, pictures and guarantees on one self-contained page.

The page loads nothing from outside (its content policy forbids it), runs no script, and escapes everything it
is given. Numbers of a guarantee are rounded outward: printed numbers are still bounds.
"""

import math
from base64 import b64encode
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from html import escape
from io import BytesIO
from pathlib import Path
from typing import TYPE_CHECKING

from .. import __version__
from ..atomic_files import write_atomically
from ..core.guarantee import Guarantee
from ..core.profile import Profile
from ..errors import InvalidInput
from ..numerics.printing import DOWN, UP, as_asked, shown, shown_down, shown_up

if TYPE_CHECKING:
    from matplotlib.figure import Figure

_DIGITS = 6
_PHONE = 4.5  # inches
_WIDE, _FEW = 3, 6  # columns that fit on a phone, rows that may be stacked there

_STYLE = """
:root { color-scheme: light dark; --ink: #1c2126; --soft: #57616b; --paper: #ffffff; --line: #d5dbe1;
  --band: #f3f6f9; --accent: #0b5cad; --alarm: #a4161a; --alarm-band: #fdecec; --note: #fff5d6; }
@media (prefers-color-scheme: dark) { :root { --ink: #e6eaee; --soft: #a3adb7; --paper: #14181c;
  --line: #353d45; --band: #1d2329; --accent: #7db8f5; --alarm: #ff8f8f; --alarm-band: #3a1a1c; --note: #3a321a; } }
* { box-sizing: border-box; }
body { margin: 0; background: var(--paper); color: var(--ink); line-height: 1.55;
  font: 1rem/1.55 system-ui, -apple-system, "Segoe UI", Roboto, sans-serif; }
main { max-width: 60rem; margin: 0 auto; padding: 1.5rem 1rem 3rem; }
h1 { font-size: clamp(1.4rem, 5vw, 2rem); line-height: 1.2; margin: 0 0 .5rem; }
h2 { font-size: 1.2rem; margin: 2rem 0 .5rem; }
p { max-width: 46rem; overflow-wrap: anywhere; }
.summary { font-size: 1.1rem; color: var(--soft); }
.scroll { overflow-x: auto; margin: 1rem 0; }
.scroll:focus-visible { outline: 2px solid var(--accent); }
table { border-collapse: collapse; font-variant-numeric: tabular-nums; font-size: .92rem; }
caption span { position: sticky; left: 0; display: inline-block; max-width: calc(100vw - 3.5rem); }
caption, figcaption { text-align: left; color: var(--soft); padding: .25rem 0 .5rem;
  font-size: .92rem; max-width: 46rem; }
th, td { padding: .3rem .7rem; border-bottom: 1px solid var(--line); text-align: left; vertical-align: top; }
thead th { border-bottom: 2px solid var(--ink); }
tbody th { font-weight: 600; }
.number { text-align: right; white-space: nowrap; }
td:last-child:not(.number) { min-width: 11rem; }
.marked { background: var(--note); }
figure { margin: 1.5rem 0; }
figure img { display: block; width: 100%; min-width: 34rem; height: auto; background: #ffffff; padding: .5rem;
  border-radius: .4rem; border: 1px solid var(--line); }
figure img.narrow { width: auto; min-width: 0; max-width: 100%; }
.guarantee { border: 1px solid var(--line); border-left: .4rem solid var(--accent); border-radius: .4rem;
  background: var(--band); padding: .25rem 1rem .75rem; margin: 1.5rem 0; }
.guarantee.alarmed { border-color: var(--alarm); }
.guarantee h2 { margin-top: .75rem; }
.alarm { color: var(--alarm); background: var(--alarm-band); border: 2px solid var(--alarm);
  border-radius: .4rem; padding: .5rem .8rem; font-weight: 700; font-size: 1.1rem; }
dl { display: grid; grid-template-columns: minmax(7rem, max-content) 1fr; gap: .3rem 1rem; margin: .5rem 0; }
dt { color: var(--soft); } dd { margin: 0; overflow-wrap: anywhere; }
dd ul { margin: 0; padding-left: 1.1rem; }
footer { margin-top: 3rem; color: var(--soft); font-size: .85rem; }
@media (max-width: 30rem) { dl { grid-template-columns: 1fr; gap: 0; } dd { margin-bottom: .5rem; } }
@media screen and (max-width: 30rem) { .stacked, .stacked :is(caption, tbody, tr, th, td) { display: block; }
  .stacked thead { position: absolute; clip-path: inset(50%); } .stacked td { text-align: left; border: 0; }
  .stacked td::before { content: attr(data-label); display: inline-block; width: 9rem; color: var(--soft); }
  .stacked tr { border-bottom: 1px solid var(--line); padding-bottom: .4rem; }
  .stacked .number { white-space: normal; } }
@media print { .scroll { overflow: visible; } }
"""
_POLICY = "default-src 'none'; img-src data:; style-src 'unsafe-inline'"


@dataclass(frozen=True, slots=True)
class Link:
    """A cell of a table that leads to another page; `to` is a path or an anchor, not an address of the web."""

    text: str
    to: str

    def __str__(self) -> str:
        return self.text


class Report:
    """A page that is filled from top to bottom and then written at once.

    >>> report = Report("Two designs", "Which one is more private?")
    >>> report.add_table(["design", "epsilon"], [["wor", 3.79], ["wr", 14.97]], "At delta 1e-6.")
    >>> "<td class=\\"number\\">14.97</td>" in report.html()
    True
    """

    def __init__(self, title: str, summary: str) -> None:
        self._title = title
        self._summary = summary
        self._parts: list[str] = []

    def add_text(self, text: str, heading: str = "") -> None:
        """Paragraphs, split at blank lines, under an optional heading."""
        if heading:
            self._parts.append(f"<h2>{escape(heading)}</h2>")
        self._parts.append(_paragraphs(text))

    def add_code(self, code: str, heading: str) -> None:
        """Code as it is written, under a heading."""
        self._parts.append(f"<h2>{escape(heading)}</h2>")
        self._parts.append(f'<pre class="scroll" tabindex="0" aria-label="{escape(heading)}">{escape(code)}</pre>')

    def add_table(
        self,
        header: Sequence[str],
        rows: Iterable[Sequence[object]],
        caption: str,
        marked: Collection[int] = (),
    ) -> None:
        """A table whose first column names its rows; `marked` rows (by position) are highlighted.

        On a phone, the cells of a wide table with few rows stand below each other, each after its column's name.
        """
        rows = [tuple(row) for row in rows]
        for row in rows:
            if len(row) != len(header):
                raise InvalidInput(f"a row must have the header's {len(header)} cells, got {len(row)} instead")
        labels = list(header) if len(header) > _WIDE and len(rows) <= _FEW else None
        numeric = [i > 0 and all(_reads_as_number(row[i]) for row in rows) for i in range(len(header))]
        head = "".join(_cell("th", name, right, ' scope="col"') for name, right in zip(header, numeric, strict=True))
        body = "".join(_row(row, numeric, labels, marked=i in marked) for i, row in enumerate(rows))
        stacked = ' class="stacked"' if labels else ""
        self._parts.append(
            f'<div class="scroll" role="region" tabindex="0" aria-label="{escape(caption)}">'
            f"<table{stacked}><caption><span>{escape(caption)}</span></caption>"
            f"<thead><tr>{head}</tr></thead><tbody>{body}</tbody></table></div>"
        )

    def add_figure(self, figure: "Figure", caption: str, description: str = "") -> None:
        """A matplotlib figure, embedded now; `description` is the text for screen readers."""
        data = b64encode(png_of(figure)).decode("ascii")
        self._parts.append(
            f'<figure><div class="scroll" role="region" tabindex="0" aria-label="{escape(caption)}">'
            f'<img{_narrow(figure)} alt="{escape(description or caption)}" src="data:image/png;base64,{data}"></div>'
            f"<figcaption>{escape(caption)}</figcaption></figure>"
        )

    def add_guarantee(
        self,
        guarantee: Guarantee,
        *,
        epsilon: float | None = None,
        delta: float | None = None,
        heading: str = "Guarantee",
    ) -> None:
        """The numbers at `epsilon` and/or `delta` (neither: pure epsilon), relation, reasons, assumptions."""
        alarms = _alarms(guarantee)
        facts = [
            ("Neighbours", escape(str(guarantee.neighbors))),
            ("Fresh draws", str(guarantee.steps)),
            *_numbers(guarantee, epsilon, delta),
            ("Because", _list(guarantee.because)),
            ("Assumes", _list(guarantee.assumes)),
        ]
        shouts = "".join(f'<p class="alarm" role="alert">{escape(alarm)}</p>' for alarm in alarms)
        listed = "".join(f"<dt>{name}</dt><dd>{value}</dd>" for name, value in facts)
        self._parts.append(
            f'<section class="guarantee{" alarmed" if alarms else ""}"><h2>{escape(heading)}</h2>{shouts}'
            f"<dl>{listed}</dl></section>"
        )

    def html(self) -> str:
        """The page as one file, pictures included."""
        return (
            '<!DOCTYPE html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
            f'<meta http-equiv="Content-Security-Policy" content="{_POLICY}">\n'
            '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
            f'<meta name="generator" content="privamp {escape(__version__)}">\n'
            f"<title>{escape(self._title)}</title>\n<style>{_STYLE}</style>\n</head>\n<body>\n<main>\n"
            f'<header><h1>{escape(self._title)}</h1><p class="summary">{escape(self._summary)}</p></header>\n'
            + self.body()
            + f"\n<footer>Made by privamp {escape(__version__)}.</footer>\n</main>\n</body>\n</html>\n"
        )

    def body(self) -> str:
        """What was added, without the page around it."""
        return "\n".join(self._parts)

    def write(self, path: Path | str) -> Path:
        """Write the page to `path`, atomically."""
        return write_atomically(Path(path), self.html().encode("utf-8"))


def _narrow(figure: "Figure") -> str:
    """Narrow pictures fit on a phone; wider ones scroll in their frame."""
    return ' class="narrow"' if figure.get_size_inches()[0] <= _PHONE else ""


def png_of(figure: "Figure", dpi: int = 150) -> bytes:
    """A matplotlib figure as PNG, the same bytes every time."""
    buffer = BytesIO()
    figure.savefig(buffer, format="png", dpi=dpi, metadata={"Software": None})
    return buffer.getvalue()


def _paragraphs(text: str) -> str:
    return "".join(f"<p>{escape(p.strip())}</p>" for p in text.split("\n\n") if p.strip())


def _row(row: Sequence[object], numeric: Sequence[bool], labels: Sequence[str] | None, *, marked: bool) -> str:
    first = _cell("th", row[0], False, ' scope="row"')
    named = [f' data-label="{escape(label)}"' for label in labels] if labels else [""] * len(row)
    rest = "".join(_cell("td", *cell) for cell in zip(row[1:], numeric[1:], named[1:], strict=True))
    return f'<tr class="marked">{first}{rest}</tr>' if marked else f"<tr>{first}{rest}</tr>"


def _cell(tag: str, value: object, right: bool, attributes: str = "") -> str:
    text = f"{value:.{_DIGITS}g}" if isinstance(value, float) and math.isfinite(value) else str(value)
    number = ' class="number"' if right else ""
    if isinstance(value, Link):
        return f'<{tag}{attributes}{number}><a href="{escape(_local(value.to))}">{escape(text)}</a></{tag}>'
    return f"<{tag}{attributes}{number}>{'∞' if value == math.inf else escape(text)}</{tag}>"


def _local(to: str) -> str:
    if ":" in to or to.startswith("//"):
        raise InvalidInput(f"a link must be a path or an anchor, got {to!r} instead")
    return to


def _reads_as_number(value: object) -> bool:
    try:
        float(str(value))
    except ValueError:
        return value in ("∞", "-", "")
    return True


def _alarms(guarantee: Guarantee) -> list[str]:
    alarms = []
    if not guarantee.is_private:
        alarms.append("NOT PRIVATE: made in test mode with a known seed. Do not release.")
    if guarantee.degrades:
        alarms.append("LOSES PRIVACY: the certified epsilon is larger than that of the mechanism on all the data.")
    return alarms


def _numbers(guarantee: Guarantee, epsilon: float | None, delta: float | None) -> list[tuple[str, str]]:
    """(name, text) of every requested number; by default pure epsilon, or else delta at 1."""
    lower = guarantee.lower
    if epsilon is None and delta is None:
        if math.isfinite(guarantee.epsilon()):
            return [("Epsilon (pure)", _range(guarantee.epsilon(), lower.epsilon() if lower else None))]
        epsilon = 1.0
    numbers = []
    if epsilon is not None:
        below = _shown_delta(lower.profile, epsilon, DOWN) if lower else None
        shown = _between(_shown_delta(guarantee.upper, epsilon, UP), below)
        numbers.append((f"Delta at epsilon {as_asked(epsilon)}", shown))
    if delta is not None:
        found = _range(guarantee.epsilon(delta), lower.epsilon(delta) if lower else None)
        numbers.append((f"Epsilon at delta {as_asked(delta)}", found))
    return numbers


def _shown_delta(profile: Profile, epsilon: float, rounding: str) -> str:
    """A delta too small for a double is not printed as zero when it is an upper bound."""
    value = float(profile.delta(epsilon))
    vanished = value == 0.0 and float(profile.log_delta(epsilon)) > -math.inf
    return shown(math.ulp(0.0) if vanished and rounding == UP else value, rounding)


def _range(upper: float, lower: float | None) -> str:
    return _between(shown_up(upper), shown_down(lower) if lower is not None else None)


def _between(upper: str, lower: str | None) -> str:
    known = f"the strongest known attack reaches {lower}" if lower is not None else "no attack is known"
    return f"<strong>at most {escape(upper)}</strong>; {escape(known)}"


def _list(lines: Sequence[str]) -> str:
    return f"<ul>{''.join(f'<li>{escape(line)}</li>' for line in lines)}</ul>" if lines else "nothing further"
