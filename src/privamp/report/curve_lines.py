"""delta(epsilon) as an inline SVG: for notebooks and pages, without a plotting library.

Text and axes have the colour of the text around them, so the picture is readable on light and on dark pages.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from html import escape

import numpy as np

from ..numerics.log_domain import FloatArray

_LEFT, _WIDE, _TOP, _HIGH, _ROW = 76, 480, 14, 220, 20  # pixels: of the labels, of all, above, of the axes, of a name
_LEAST = -12  # the power of ten of the smallest delta that is shown
_COLORS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9")  # Okabe & Ito's, without black


@dataclass(frozen=True, slots=True)
class Curve:
    """One line: the certified curve and, if known, that of an attack."""

    name: str
    certified: FloatArray
    attacked: FloatArray | None


def curves_of(epsilons: FloatArray, curves: Sequence[Curve], what: str, *, log: bool = False) -> str:
    """A picture of the curves over these epsilons; solid lines are certified, dashed ones are attacks.

    It scales with the page. If there are several names, they are below it.
    """
    across = np.log10(epsilons) if log else epsilons
    x = _LEFT + (_WIDE - _LEFT - 12) * (across - across[0]) / (across[-1] - across[0])
    lines = [
        part
        for k, curve in enumerate(curves)
        for part in (
            _line(x, curve.certified, _COLORS[k % len(_COLORS)], "2.5"),
            "" if curve.attacked is None else _line(x, curve.attacked, _COLORS[k % len(_COLORS)], "1.5", "6 4"),
        )
    ]
    names = "".join(_named(k, curve.name) for k, curve in enumerate(curves)) if len(curves) > 1 else ""
    high = _TOP + _HIGH + 44 + (_ROW * len(curves) if names else 0)
    return (
        f'<svg role="img" aria-label="{escape(what)}" viewBox="0 0 {_WIDE} {high}" fill="currentColor" '
        f'style="width:100%;max-width:{_WIDE}px;height:auto">{_axes(epsilons, x)}{"".join(lines)}{names}</svg>'
    )


def _height(delta: FloatArray) -> FloatArray:
    power = np.log10(np.maximum(delta, 10.0**_LEAST))
    return np.asarray(_TOP + _HIGH * power / _LEAST)


def _line(x: FloatArray, delta: FloatArray, color: str, width: str, dashes: str = "") -> str:
    points = " ".join(f"{a:.1f},{b:.1f}" for a, b in zip(x, _height(delta), strict=True))
    dashed = f' stroke-dasharray="{dashes}"' if dashes else ""
    return f'<polyline points="{points}" fill="none" stroke="{color}" stroke-width="{width}"{dashed}/>'


def _axes(places: FloatArray, x: FloatArray) -> str:
    bottom = _TOP + _HIGH
    text = '<text x="{}" y="{}" text-anchor="{}" font-size="13">{}</text>'
    rule = '<line x1="{}" x2="{}" y1="{}" y2="{}" stroke="currentColor" stroke-width="1" stroke-opacity="{}"/>'
    marks = [rule.format(_LEFT, _LEFT, _TOP, bottom, 1), rule.format(_LEFT, _WIDE - 12, bottom, bottom, 1)]
    for power in range(0, _LEAST - 1, -3):
        y = round(_TOP + _HIGH * power / _LEAST, 1)
        marks.append(text.format(_LEFT - 6, y + 4, "end", f"1e{power}" if power else "1"))
        marks.append(rule.format(_LEFT, _WIDE - 12, y, y, 0.2) if y < bottom else "")
    for part in range(5):
        at = round((places.size - 1) * part / 4)
        where, anchor = (float(x[at]), "middle") if part < 4 else (_WIDE, "end")  # the last one would be cut off
        marks.append(text.format(round(where, 1), bottom + 16, anchor, f"{places[at]:.3g}"))
    middle = (_LEFT + _WIDE - 12) // 2
    return "".join((*marks, text.format(middle, bottom + 34, "middle", "ε"), text.format(18, 75, "middle", "δ(ε)")))


def _named(k: int, name: str) -> str:
    y = _TOP + _HIGH + 54 + _ROW * k
    color = _COLORS[k % len(_COLORS)]
    return (
        f'<line x1="{_LEFT}" x2="{_LEFT + 24}" y1="{y - 4}" y2="{y - 4}" stroke="{color}" stroke-width="3"/>'
        f'<text x="{_LEFT + 32}" y="{y}" font-size="13">{escape(name)}</text>'
    )
