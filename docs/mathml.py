"""Formulas of the pages as MathML, when the site is built: no script is needed to show them.

pymdownx.arithmatex finds `$…$` and `$$…$$`; latex2mathml converts what stands between. Pages write signs in Unicode,
which latex2mathml would set as letters, so they become commands first.
"""

import re
from html import unescape
from typing import Any

from latex2mathml.converter import convert

_FOUND = re.compile(r'<(span|div) class="arithmatex">\\[(\[](.*?)\\[)\]]</\1>', re.S)
_SIGNS = {
    "−": "-",
    "·": r"\cdot ",
    "×": r"\times ",
    "±": r"\pm ",
    "≤": r"\le ",
    "≥": r"\ge ",
    "≠": r"\ne ",
    "≈": r"\approx ",
    "≪": r"\ll ",
    "≫": r"\gg ",
    "∼": r"\sim ",
    "~": r"\sim ",
    "∝": r"\propto ",
    "≡": r"\equiv ",
    "→": r"\to ",
    "↦": r"\mapsto ",
    "∈": r"\in ",
    "∉": r"\notin ",
    "∪": r"\cup ",
    "∩": r"\cap ",
    "∖": r"\backslash ",
    "⊆": r"\subseteq ",
    "⊂": r"\subset ",
    "⊇": r"\supseteq ",
    "∘": r"\circ ",
    "∗": r"\ast ",
    "⊗": r"\otimes ",
    "Σ": r"\sum ",
    "Π": r"\prod ",
    "∫": r"\int ",
    "∂": r"\partial ",
    "∇": r"\nabla ",
    "∞": r"\infty ",
    "∅": r"\emptyset ",
    "‖": r"\Vert ",
    "⌊": r"\lfloor ",
    "⌋": r"\rfloor ",
    "⌈": r"\lceil ",
    "⌉": r"\rceil ",
    "⟨": r"\langle ",
    "⟩": r"\rangle ",
    "…": r"\ldots ",
    "⋯": r"\cdots ",
    "½": r"\frac{1}{2}",
    "¼": r"\frac{1}{4}",
    "¾": r"\frac{3}{4}",
    "ℝ": r"\mathbb{R}",
    "ᵀ": r"^{\top}",
}
_SIGN = re.compile("|".join(_SIGNS))
_RAISED, _LOWERED = "⁰¹²³⁴⁵⁶⁷⁸⁹⁺⁻ⁿ", "₀₁₂₃₄₅₆₇₈₉₊₋ₙ"
_PLAIN = str.maketrans(_RAISED + _LOWERED, "0123456789+-n" * 2)
_LONG = 36  # characters; browsers do not break lines within a formula, so long ones scroll
_ROOT = re.compile(r"√(\w)")
_ACCENTED = re.compile("(\\w)([\u0302\u0303\u0304])")
_ACCENTS = {"\u0302": "hat", "\u0303": "tilde", "\u0304": "bar"}


def commands(formula: str) -> str:
    r"""Unicode signs as LaTeX commands.

    >>> commands("a² ≤ Σ_i x₁")
    'a^{2} \\le  \\sum _i x_{1}'
    """
    formula = _ACCENTED.sub(lambda found: rf"\{_ACCENTS[found[2]]}{{{found[1]}}}", formula)
    formula = _ROOT.sub(r"\\sqrt{\1}", formula)
    formula = re.sub(f"[{_RAISED}]+", lambda found: "^{" + found[0].translate(_PLAIN) + "}", formula)
    formula = re.sub(f"[{_LOWERED}]+", lambda found: "_{" + found[0].translate(_PLAIN) + "}", formula)
    return _SIGN.sub(lambda found: _SIGNS[found[0]], formula)


def mathml(formula: str, display: str = "inline") -> str:
    """A formula as <math>; ValueError where a command is unknown, instead of a page that shows a backslash."""
    found: str = convert(commands(formula), display=display)
    found = found.replace("<mo>&#x0002F;</mo>", '<mo lspace="0" rspace="0">/</mo>')
    if "\\" in found or ">&<" in found:
        raise ValueError(f"latex2mathml does not know a command of {formula!r}")
    return found


def on_page_content(html: str, **kwargs: Any) -> str:
    """MkDocs calls this with the HTML of every page."""

    def typeset(found: re.Match[str]) -> str:
        display = "block" if found[1] == "div" else "inline"
        math = mathml(unescape(found[2]).strip(), display)
        if display == "inline" and len(found[2]) < _LONG:
            return math
        return f'<{found[1]} class="formula">{math}</{found[1]}>'

    return _FOUND.sub(typeset, html)
