"""Formulas of the pages: typeset on the site, plain text in a terminal."""

import re
from pathlib import Path
from types import ModuleType

import pytest

from privamp.proofs import proofs
from privamp.proofs.terminal import plain_formula, plain_maths
from scripts import script

ROOT = Path(__file__).parents[1]
PAGES = sorted((ROOT / "docs").rglob("*.md"))
CODE = re.compile(r"^ *```.*?^ *```|`[^`\n]*`", re.M | re.S)
FORMULA = re.compile(r"\$\$(.+?)\$\$|\$(?!\s)([^$]+?)(?<!\s)\$", re.S)


def formulas(page: Path) -> list[str]:
    text = CODE.sub("", page.read_text(encoding="utf-8"))
    return [display or inline for display, inline in FORMULA.findall(text)]


def hook_of_the_site() -> ModuleType:
    pytest.importorskip("latex2mathml", reason="latex2mathml is part of the extra [docs]")
    return script("docs/mathml.py")


def test_no_theorem_shows_latex_in_a_terminal() -> None:
    for each in proofs().values():
        text = CODE.sub("", each.plain)
        assert "$" not in text, each.id
        assert not re.findall(r"\\[A-Za-z,;{}]\w*", text), each.id
        assert "$" not in each.title, "a heading is also an anchor and an entry of a list"


@pytest.mark.parametrize(
    ("latex", "plain"),
    [
        (r"\frac{a}{b+c}", "a/(b+c)"),
        (r"\frac{a+1}{b}", "(a+1)/b"),
        (r"\frac{qr(a−1)}{q + (1−q)b^{−c}}", "qr(a−1)/(q + (1−q)b^{−c})"),
        (r"\frac{1}{\frac{a}{b}}", "1/(a/b)"),
        (r"\frac{x}{2σ²}", "x/(2σ²)"),
        (r"\frac{x}{t(j)}", "x/(t(j))"),
        (r"\frac{α−1}{q_K}", "(α−1)/q_K"),
        (r"\log\left(1 + \frac{1}{n}\right)", "log(1 + 1/n)"),
        (r"\sqrt{x}\,\sqrt{x+1}", "√x √(x+1)"),
        (r"w_{\text{hi}}, E_{l−1}, e^{ε'}", "w_hi, E_{l−1}, e^ε'"),
        (r"\{x \mid x ≤ \max(a, b)\}", "{x | x ≤ max(a, b)}"),
        (r"e^{uε} ≤ 10{,}000 · e^{2}", "e^{uε} ≤ 10,000 · e^2"),
        (r"\frac{1}{t} Σ_i x_i + \frac{1}{n}", "(1/t) Σ_i x_i + 1/n"),
        (r"\lvert x−y \rvert + 1", "|x−y| + 1"),
        (r"\binom{n}{k}", "C(n, k)"),
    ],
)
def test_plain_text_of_a_formula(latex: str, plain: str) -> None:
    assert plain_formula(latex) == plain


def test_a_display_is_indented_and_code_stays() -> None:
    assert plain_maths("So\n\n$$\na ≤ b\n$$\n\n`$x$`") == "So\n\n    a ≤ b\n\n`$x$`"


def test_no_formula_looks_like_a_link() -> None:
    """`privamp theorem` writes [text](address) as text."""
    assert not [formula for page in PAGES for formula in formulas(page) if re.search(r"\]\(", formula)]


def test_every_formula_becomes_mathml() -> None:
    hook = hook_of_the_site()
    found = [(page, formula) for page in PAGES for formula in formulas(page)]
    assert len(found) > 1000
    for page, formula in found:
        math = hook.mathml(formula.strip())
        assert "$" not in math, f"{page.name}: {formula}"
        signs = re.findall(r"<mi>([^<&\w′%:.;∂]+)</mi>", math)
        assert not signs, f"{page.name}: {formula} sets {signs} as letters; add them to docs/mathml.py"
    with pytest.raises(ValueError, match="does not know a command"):
        hook.mathml(r"\unknown{x}")


def test_the_hook_replaces_what_arithmatex_marks() -> None:
    pytest.importorskip("pymdownx", reason="pymdownx is part of the extra [docs]")
    markdown = pytest.importorskip("markdown", reason="markdown is part of the extra [docs]")
    hook = hook_of_the_site()
    options = {"pymdownx.arithmatex": {"generic": True}}
    page = "*if $a < b_i$*, from $5 to $6\n\n$$\nx ≤ y\n$$\n\n| $q$ |\n| --- |\n| $‖w‖_2$ |\n"
    html = hook.on_page_content(markdown.markdown(page, extensions=[*options, "tables"], extension_configs=options))
    assert html.count("<math") == 4
    assert "from $5 to $6" in html
    assert '<div class="formula"><math' in html
    assert "arithmatex" not in html
    long = hook.on_page_content(f'<span class="arithmatex">\\({" + ".join("abcdefghijkl")}\\)</span>')
    assert long.startswith('<span class="formula"><math'), "it scrolls on a phone"
