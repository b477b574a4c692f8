"""What a view shows: a sentence, a table and charts, as data. The page draws them, the report keeps them."""

from collections.abc import Sequence
from dataclasses import dataclass
from html import escape
from typing import Any

GREY = "#8a939c"  # readable on white and on black
POWERS = {":formatter": "value => value.toExponential(0)", "color": GREY, "hideOverlap": True}  # of a logarithmic axis
COLORS = ("#3b82c4", "#e07b39", "#3a9e6d", "#c2528b", "#8a6fd1", "#b08a1e", "#2aa3a3", "#d0555a", "#6b7f93", "#7aa33a")


@dataclass(frozen=True, slots=True)
class Chart:
    """A chart by ECharts' options, with a sentence for screen readers."""

    title: str
    description: str
    options: dict[str, Any]


@dataclass(frozen=True, slots=True)
class Detail:
    """What folds out under a row: a heading and its lines."""

    heading: str
    lines: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Table:
    """Rows of text under heads; a head that starts with '<' is set to the left. Each row may have details."""

    caption: str
    heads: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    details: tuple[tuple[Detail, ...], ...] = ()

    def html(self) -> str:
        """The table, escaped, for the page."""
        left = [head.startswith("<") for head in self.heads]
        head = "".join(
            f'<th scope="col"{_align(is_left)}>{escape(name.removeprefix("<"))}</th>'
            for name, is_left in zip(self.heads, left, strict=True)
        )
        body = "".join(self._row(index, row, left) for index, row in enumerate(self.rows))
        return (
            f'<div class="scroll" role="region" tabindex="0" aria-label="{escape(self.caption)}"><table>'
            f"<caption>{escape(self.caption)}</caption><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table></div>"
        )

    def _row(self, index: int, row: Sequence[str], left: Sequence[bool]) -> str:
        details = self.details[index] if index < len(self.details) else ()
        cells = []
        for column, (text, is_left) in enumerate(zip(row, left, strict=True)):
            tag, scope = ("th", ' scope="row"') if column == 0 else ("td", "")
            inside = escape(text)
            if column == 0 and details:
                lines = "".join(f"<p><b>{escape(d.heading)}</b></p>{_listed(d.lines)}" for d in details)
                inside = f"<details><summary>{inside}</summary>{lines}</details>"
            cells.append(f"<{tag}{scope}{_align(is_left)}>{inside}</{tag}>")
        return f"<tr>{''.join(cells)}</tr>"


@dataclass(frozen=True, slots=True)
class Shown:
    """One state of a view."""

    summary: str
    tables: tuple[Table, ...]
    charts: tuple[Chart, ...]
    notes: tuple[str, ...] = ()


def lines_chart(
    title: str, description: str, axes: tuple[dict[str, Any], dict[str, Any]], series: Sequence[dict[str, Any]]
) -> Chart:
    """A chart of lines: solid what is certified, dashed what an attack reaches."""
    options = {
        "animation": False,
        "textStyle": {"color": GREY},
        "aria": {"enabled": True, "description": description},
        "grid": {"left": 12, "right": 18, "top": 14, "bottom": 34, "containLabel": True},
        "tooltip": {"trigger": "axis", "confine": True, "order": "valueAsc"},
        "xAxis": _axis(axes[0], middle=True),
        "yAxis": _axis(axes[1], middle=False),
        "series": [{"type": "line", "showSymbol": False, "animation": False} | one for one in series],
    }
    return Chart(title, description, options)


def line(name: str, color: int, points: Sequence[tuple[float, float]], *, dashed: bool = False) -> dict[str, Any]:
    """One line of a chart."""
    shade = COLORS[color % len(COLORS)]
    style = {"color": shade, "width": 1.5 if dashed else 2.5, "type": "dashed" if dashed else "solid"}
    return {"name": name, "data": [list(p) for p in points], "lineStyle": style, "itemStyle": {"color": shade}}


def _axis(given: dict[str, Any], *, middle: bool) -> dict[str, Any]:
    named = {"nameLocation": "middle", "nameGap": 26} if middle else {"nameLocation": "end", "nameGap": 4}
    lines = {"splitLine": {"lineStyle": {"color": GREY, "opacity": 0.25}}}
    labels = {"axisLabel": {"color": GREY, "hideOverlap": True}, "nameTextStyle": {"color": GREY}}
    return {"type": "value", **named, **lines, **labels, **given}


def _align(is_left: bool) -> str:
    return "" if is_left else ' class="number"'


def _listed(lines: Sequence[str]) -> str:
    return f"<ul>{''.join(f'<li>{escape(line)}</li>' for line in lines)}</ul>" if lines else "<p>nothing further</p>"
