"""Formulas of the documentation as plain text, for a terminal.

The pages mark maths as `$…$` and `$$…$$`, in LaTeX that keeps Unicode letters and signs. Here the marks are removed and
the few commands that the pages use are written out; code is left as it is.
"""

import re

_MATHS = re.compile(r"(?P<code>```.*?```|`[^`\n]*`)|\$\$(?P<display>.*?)\$\$|\$(?=\S)(?P<inline>[^$]*?[^\s$])\$", re.S)
_ARGUMENT = r"\{((?:[^{}]|\{(?:[^{}]|\{(?:[^{}]|\{[^{}]*\})*\})*\})*)\}"
_FRACTION = re.compile(r"\\frac" + _ARGUMENT + _ARGUMENT)
_FACTOR = re.compile(r"\s*(?:[^\W\d]|[(\[√∫]|\\(?:frac|left|sqrt))")
_BINOMIAL = re.compile(r"\\binom" + _ARGUMENT + _ARGUMENT)
_ROOT = re.compile(r"\\sqrt" + _ARGUMENT)
_WORDS = re.compile(r"\\(?:text|mathrm|operatorname)\{((?:[^{}\\]|\\.)*)\}")
_ACCENT = re.compile(r"\\(hat|bar|tilde)\{(\w)\}")
_ACCENTS = {"hat": "\u0302", "bar": "\u0304", "tilde": "\u0303"}
_ARRAY = re.compile(r"\s*\\begin\{array\}\{[lcr]*\}\s*(.*?)\s*\\end\{array\}", re.S)
_FUNCTION = re.compile(r"\\(log|max|min|exp|sup|inf|Pr|sin|cosh|cos|ln)(?![A-Za-z])")
_SPACES = {r"\,": " ", r"\;": " ", r"\quad": "    ", r"\qquad": "        ", r"\left": "", r"\right": "", r"\mid": "|"}
_BAR = re.compile(r"\\lvert |\\lvert(?![A-Za-z])| ?\\rvert(?![A-Za-z])")
_SPACE = re.compile(r"\\(?:[,;]|(?:quad|qquad|left|right|mid)(?![A-Za-z]))")
_SIMPLE = re.compile(r"([_^])\{([^\W\d_]['′]*|\d+|\*)\}")  # n_{i}: no braces needed
_NAMED = re.compile(r"([_^])\{\\text\{(\w+)\}\}")
_SCRIPT = r"(?:['′²³₀-₉]|[_^](?:\{[^{}]*\}|\w+))*"
_ATOM = re.compile(rf"(?:\d+|d?[^\W\d_]|[a-z_]{{4,}}){_SCRIPT}")  # a number, a letter or a word: no brackets needed


def plain_maths(text: str) -> str:
    r"""The text with every formula as plain text.

    >>> plain_maths(r"at most $\log(1 + \frac{a}{b+c})$, with $w_{\text{hi}} = \sqrt{x+1}$")
    'at most log(1 + a/(b+c)), with w_hi = √(x+1)'
    >>> plain_maths("costs `$5`")
    'costs `$5`'
    """

    def written(found: re.Match[str]) -> str:
        if found["code"] is not None:
            return found["code"]
        if found["display"] is not None:
            return "\n".join("    " + line for line in plain_formula(found["display"].strip("\n")).splitlines())
        return plain_formula(found["inline"])

    return _MATHS.sub(written, text)


def plain_formula(latex: str) -> str:
    r"""One formula, without its dollar signs.

    >>> plain_formula(r"\{d^{n_h}\},\quad \frac{q(a−1)}{q + (1−q)\,a^{−c}}")
    '{d^{n_h}},     q(a−1)/(q + (1−q) a^{−c})'
    >>> print(plain_formula(r"\begin{array}{ll} \text{one more} & x \\ \text{less} & \max(x, y) \end{array}"))
    one more    x
    less        max(x, y)
    """
    latex = _FUNCTION.sub(r"\1", latex.replace(r"\{", "\ue000").replace(r"\}", "\ue001"))
    latex = _SPACE.sub(lambda found: _SPACES[found[0]], _BAR.sub("|", latex))
    latex = _ACCENT.sub(lambda found: found[2] + _ACCENTS[found[1]], _WORDS.sub(r"\1", _NAMED.sub(r"\1\2", latex)))
    before = None
    while latex != before:
        before = latex
        latex = _SIMPLE.sub(r"\1\2", latex)
        latex = _FRACTION.sub(_slashed, latex)
        latex = _BINOMIAL.sub(r"C(\1, \2)", latex)
        latex = _ROOT.sub(lambda found: "√" + _grouped(found[1], False), latex)
    latex = _ARRAY.sub(lambda found: _columns(found[1]), latex)
    latex = latex.replace("^*", "*").replace("{,}", ",").replace(r"\_", "_").replace(r"\%", "%")
    return latex.replace("\ue000", "{").replace("\ue001", "}")


def _slashed(found: re.Match[str]) -> str:
    """A fraction on one line, in brackets where a factor follows: (1/t) Σ_i x_i."""
    line = f"{_grouped(found[1], True)}/{_grouped(found[2], False)}"
    return f"({line})" if _FACTOR.match(found.string, found.end()) else line


def _grouped(part: str, products: bool) -> str:
    """In brackets, unless it is one factor or, above a line, a product of factors without a sign outside brackets."""
    part = part.strip()
    if _ATOM.fullmatch(part):
        return part
    outside, previous = part, ""
    while outside != previous:  # nested brackets, from the inside
        previous, outside = outside, re.sub(r"\([^()]*\)|\[[^\[\]]*\]|[_^]\{[^{}]*\}", "", outside)
    free = not re.search(r"[-+−/±\s]|[()\[\]]", outside)
    return part if products and free else f"({part})"


def _columns(rows: str) -> str:
    cells = [[cell.strip() for cell in row.split("&")] for row in rows.split(r"\\") if row.strip()]
    width = max(len(row[0]) for row in cells)
    return "\n".join("    ".join([row[0].ljust(width), *row[1:]]).rstrip() for row in cells)
