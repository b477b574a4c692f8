"""What people read is true too: printed upper bounds are rounded up, lower bounds down, wherever they are printed."""

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
from privamp.numerics.printing import shown_down, shown_up
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
    survey_plan._tell(plan, SimpleNamespace(size=9, roles={}), 1.0, 0.0, [])
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


NEAREST = re.compile(
    r"\{[^{}]*(?:_upper|_lower|\bupper|\blower|epsilon\([^)]*\))[^{}]*:[,+]?\.\d+[gfe]\}|number\([^()]*_(?:upper|lower)\b"
)


def test_no_bound_is_rounded_to_nearest_in_what_people_read():
    """A line that prints something called upper or lower goes through shown_up, shown_down, upper or lower."""
    files = [*(SOURCE / "cli").rglob("*.py"), *(SOURCE / "report").glob("*.py"), SOURCE / "core" / "guarantee.py"]
    assert len(files) > 40
    found = [
        f"{path.name}: {line.strip()}"
        for path in files
        for line in path.read_text().splitlines()
        if NEAREST.search(line)
    ]
    assert not found, "\n".join(found)
    assert NEAREST.search('f"at most {row.epsilon_upper:.3g}"')
    assert NEAREST.search("number(row.amplified_upper)")
