"""What people read is true too: printed upper bounds are rounded up, lower bounds down, wherever they are printed."""

import ast
import math
import re
from decimal import Decimal
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from privamp import Poisson, PureDP, amplify
from privamp.cli import compare, console
from privamp.cli.amplify import findings
from privamp.cli.budget import manage as budget
from privamp.cli.demo.job import Result
from privamp.cli.survey import plan as survey_plan
from privamp.numerics.printing import as_asked, shown_down, shown_up
from privamp.report.advice import Advice
from privamp.report.html import _range
from privamp.report.pictures import _curve

SOURCE = Path(__file__).parents[1] / "src" / "privamp"
VALUES = [*np.random.default_rng(1).lognormal(-1, 3, 60).tolist(), 1 / 3, 0.1, 1.0, 1e-13, 123456.5, 1e-301, 5e-324]
NUMBER = r"(?:\d[\d.]*(?:e[-+]?\d+)?|∞)"


def read(text):
    return Decimal("Infinity") if text == "∞" else Decimal(text)


@given(st.floats(0.0, 1.7e308), st.integers(1, 12))
def test_texts_are_bounds(value, digits):
    assert read(shown_down(value, digits)) <= Decimal(value) <= read(shown_up(value, digits))
    assert read(shown_down(value, decimals=digits)) <= Decimal(value) <= read(shown_up(value, decimals=digits))
    if value >= 1e-290 and shown_up(value, digits) != "∞":
        assert float(shown_up(value, digits)) <= value * (1 + 10.0 ** (1 - digits) * 1.001)


@given(st.floats(0.0, 1.7e308), st.integers(1, 12))
def test_what_was_asked_reads_as_what_was_asked_or_more(value, digits):
    text = as_asked(value, digits)
    assert float(text) >= value
    assert math.isinf(float(text)) or float(text) <= float(shown_up(value, digits).replace("∞", "inf"))
    short = float(f"{value:.{digits}g}")
    assert math.isinf(short) or float(as_asked(short, digits)) == short
    assert as_asked(0.1) == "0.1"


def test_ends_of_the_doubles():
    assert [shown_up(x, 3) for x in (0.0, math.inf, 1.7976931348623157e308, 5e-324)] == ["0", "∞", "∞", "1e-300"]
    assert [shown_down(x, 3) for x in (0.0, 1.7976931348623157e308, 5e-324)] == ["0", "1.79e+308", "0"]
    assert math.isnan(float(shown_up(math.nan)))


def row(x):
    guarantee = SimpleNamespace(delta=lambda e: e, lower=None)
    return SimpleNamespace(
        epsilon_upper=x, epsilon_lower=x, delta_upper=x, delta_lower=x, label="d", guarantee=guarantee, failed=None,
        expected_size=1.0, expected_distinct=1.0, amplified_upper=x, amplified_lower=x, noise_scale=x, name="design",
        relation="add-remove", note="", standard_error_sampling=1.0, standard_error=1.0,
    )  # fmt: skip


def label_of_a_curve(x):
    """The legend of a picture."""
    said = []
    axes = SimpleNamespace(plot=lambda *_, label="", **__: said.append(label), plot_=None)
    axes.scatter = axes.annotate = axes.axvline = lambda *_, **__: None
    _curve(axes, row(x), np.ones(1), "black", 1e-6)
    return said[0].rpartition("≤")[2]


def plan_table(x, monkeypatch):
    """(upper, lower, noise) of the table of `survey plan`."""
    cells = []
    monkeypatch.setattr(survey_plan, "grid", lambda title, heads, rows, **_: cells.extend(next(iter(rows))))
    monkeypatch.setattr(survey_plan, "say", lambda *_: None)
    plan = SimpleNamespace(rows=[row(x)], recommendation="", reason="", notes=())
    survey_plan._print(plan, SimpleNamespace(size=9, roles={}), 1.0, 0.0, [])
    return cells[2:5]


@pytest.mark.parametrize("value", VALUES)
def test_every_place_that_prints_a_bound(value, monkeypatch):
    x = Decimal(value)
    answer = {"epsilon_upper": value, "epsilon_lower": value, "because": [], "assumes": [], "delta": 1e-6}
    (_, most), (_, least) = findings(answer)
    uppers, lowers = [re.search(NUMBER, most)[0]], [re.search(NUMBER, least)[0]]
    cells = compare._guarantee(1, row(value))
    uppers += [cells[2], cells[4]]
    lowers += [cells[3], cells[5]]
    uppers += [console.upper(value, 3), label_of_a_curve(value).strip()]
    lowers += [console.lower(value, 3)]
    certified, attack, noise = plan_table(value, monkeypatch)
    uppers += [certified, noise]
    lowers += [attack]
    uppers += [budget._amount({"epsilon": value}, console.upper).split()[-1]]
    lowers += [budget._amount({"epsilon": value}, console.lower).split()[-1]]
    page = _range(value, value)
    uppers += [re.search(rf"at most ({NUMBER})", page)[1]]
    lowers += [re.search(rf"reaches ({NUMBER})", page)[1]]
    uppers += [Result("", 1.0, 1.0, 1.0, 1.0, 1.0, value, None).interval]
    wide = Result("", 1.0, 1.0, 1.0, 1.0, 1.0, value + 1.0, value).interval
    lowers += [wide.partition(" to ")[0]]
    sentence = Advice("WR", value, None, 9.0, 8.0, 1.0, 8, value, value, 1.0).sentence()
    uppers += re.findall(rf"ε = ({NUMBER})", sentence)
    assert len(uppers) >= 11
    for text in uppers:
        assert read(text) >= x, text
    for text in lowers:
        assert read(text) <= x, text


@pytest.mark.parametrize("epsilon", [0.1, 0.7, 1.3, 2.9, 7.7])
def test_a_guarantee_shows_itself_rounded_up(epsilon):
    for rate in (0.01, 0.123, 0.77):
        found = amplify(PureDP(epsilon), Poisson(rate))
        assert float(re.search(r"epsilon=([\d.e-]+)", repr(found))[1]) >= found.epsilon()


# Words in a name that make it the name of a bound, or of the epsilon or delta that a bound is stated at.
BOUNDS = re.compile(
    r"(?:^|_)(?:epsilons?|eps|deltas?|upper|lower|amplified|attack(?:ed)?|certified|claim(?:ed)?|largest_loss|spent)(?:$|_)"
)
# Rooms that print something else: checks that compare two numbers to nine digits, and say which is larger.
COMPARES = {"verify"}
# Numbers of papers, or by their formulas, beside the numbers that the papers print: they bound nothing.
OF_PAPERS = re.compile(
    r"printed|task\.epsilon|few\.|many\.|p\.printed|line\.epsilon|c\.epsilon|c\.reached|value\.(?:epsilon|delta)|"
    r"self\.epsilon|(?:line|fewer)\.amplified|^(?:epsilon|delta)$"
)


def words_of(node):
    """Every name that a printed expression is made of, text keys included."""
    for part in ast.walk(node):
        if isinstance(part, ast.Name):
            yield part.id
        elif isinstance(part, ast.Attribute):
            yield part.attr
        elif isinstance(part, ast.Constant) and isinstance(part.value, str):
            yield part.value


def nearest(tree):
    """What is rounded to nearest: a format of digits, `round`, `format`, `number`; not what an error repeats."""
    repeated = {id(part) for one in ast.walk(tree) if isinstance(one, ast.Raise) for part in ast.walk(one)}
    for node in ast.walk(tree):
        if isinstance(node, ast.FormattedValue) and node.format_spec is not None and id(node) not in repeated:
            ends = node.format_spec.values[-1]
            if isinstance(ends, ast.Constant) and ends.value[-1:] in tuple("gfe%"):
                yield node.value
        elif isinstance(node, ast.Call) and ast.unparse(node.func).split(".")[-1] in ("number", "round", "format"):
            yield from node.args[:1]


def bounds_to_nearest(text):
    """Expressions with the name of a bound that a module prints rounded to nearest."""
    found = (node for node in nearest(ast.parse(text)) if any(map(BOUNDS.search, words_of(node))))
    return [(node.lineno, ast.unparse(node)) for node in found]


def test_no_bound_is_rounded_to_nearest_in_what_people_read():
    """What prints an epsilon, a delta, something called upper or lower uses shown_up, shown_down, upper or lower."""
    files = [path for path in SOURCE.rglob("*.py") if path.relative_to(SOURCE).parts[0] not in COMPARES]
    assert len(files) > 300
    found = [
        f"{path.relative_to(SOURCE)}:{line}: {what}"
        for path in files
        for line, what in bounds_to_nearest(path.read_text())
        if not ("papers" in path.parts and OF_PAPERS.search(what))
    ]
    assert not found, "\n".join(found)


@pytest.mark.parametrize(
    "line",
    [
        'f"at most {row.epsilon_upper:.3g}"', "number(row.amplified_upper)", 'f"ε = {asked.epsilon:g}"',
        "f\"{limits['false_claim']:.2f}\"", 'f"{guarantee.epsilon(1e-6):.{digits}g}"', "round(found.delta(1.0), 3)",
        'f"at least {line.attacked:.4g}"', 'format(profile.largest_loss, ".3g")', 'f"{ceil(10 * line.upper) / 10:.1f}"',
    ],
)  # fmt: skip
def test_such_lines_are_found(line):  # each of them was there, or was like one that was
    assert bounds_to_nearest(line)
    assert not bounds_to_nearest('f"{shown_up(row.epsilon_upper, 3)} of {row.standard_error:.3g}"')
