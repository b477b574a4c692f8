"""Intervals as an inline SVG: for notebooks and pages, without a plotting library."""

from collections.abc import Sequence
from html import escape

import numpy as np

from ..numerics.log_domain import FloatArray

_MOST = 50  # lines
_LEFT, _WIDE, _HIGH = 190, 640, 26  # pixels: of the names, of all, of a line
_LETTERS = 26  # of a name that are shown


def lines_of(names: Sequence[str], value: FloatArray, low: FloatArray, high: FloatArray, what: str) -> str:
    """One line per number, from the lower end of its interval to the upper, with a dot at the value.

    It scales with the page; an interval with an infinite end is not drawn.
    """
    ends = np.concatenate([value, low, high])
    if not (0 < value.size <= _MOST and np.all(np.isfinite(ends))):
        return ""
    least, most = float(ends.min()), float(ends.max())
    room = (most - least) or abs(most) or 1.0

    def at(x: float) -> float:
        return round(_LEFT + 12 + (_WIDE - _LEFT - 24) * (x - least) / room, 1)

    rows = "".join(
        _line(name, at(float(v)), at(float(a)), at(float(b)), _HIGH * k + _HIGH // 2)
        for k, (name, v, a, b) in enumerate(zip(names, value, low, high, strict=True))
    )
    bottom = _HIGH * value.size + 16
    marks = "".join(
        f'<text x="{x}" y="{bottom}" text-anchor="{where}" font-size="12">{number:.4g}</text>'
        for x, number, where in ((_LEFT + 12, least, "start"), (_WIDE - 12, most, "end"))
    )
    return (
        f'<svg role="img" aria-label="{escape(what)}" viewBox="0 0 {_WIDE} {bottom + 8}" fill="currentColor" '
        f'style="width:100%;max-width:{_WIDE}px;height:auto">{rows}{marks}</svg>'
    )


def _line(name: str, value: float, low: float, high: float, y: int) -> str:
    shown = name if len(name) <= _LETTERS else name[: _LETTERS - 1] + "…"
    return (
        f'<text x="{_LEFT}" y="{y + 4}" text-anchor="end" font-size="13">{escape(shown)}</text>'
        f'<line x1="{low}" x2="{high}" y1="{y}" y2="{y}" stroke="#0072B2" stroke-width="3"/>'
        f'<circle cx="{value}" cy="{y}" r="4" fill="#D55E00"/>'
    )
