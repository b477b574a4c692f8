"""Comparisons and plans in notebooks show the numbers that they hold, escape names, and draw themselves."""

import re

import numpy as np
import pytest

from balanced_tags import is_balanced
from privamp import Gaussian, Laplace, MultiStage, Neighbors, Poisson, WithoutReplacement, amplify, bootstrap, survey
from privamp.numerics.printing import shown_down, shown_up
from privamp.report.comparison import Question, compare_designs
from privamp.report.curve_lines import Curve, curves_of

RO = Neighbors.REPLACE_ONE
OF_TEN = [WithoutReplacement(40, 100), MultiStage([("wr", 50), ("wr", 40)], 100), Poisson(0.4)]
LEVEL = ["<b>"] * 60 + ["M"] * 40
STRATA = [survey.Stratum("<b>", 600, 10.0, 3.0), survey.Stratum("M", 400, 50.0, 12.0)]


def compared():
    return compare_designs(OF_TEN, Question(Gaussian(1.0, neighbors=RO)))


def test_a_comparison_shows_both_sides_of_every_design() -> None:
    found = compared()
    shown = found._repr_html_()
    assert is_balanced(shown)
    for row in found.rows:
        assert row.label in shown
        if row.epsilon_upper is not None:
            assert shown_up(row.epsilon_upper) in shown
            assert shown_down(row.epsilon_lower) in shown
    certified = [row for row in found.rows if row.guarantee is not None]
    assert shown.count("<polyline") == 2 * len(certified)
    assert "no theorem" in shown, "Poisson is not stated for a mechanism under replace-one"
    assert "designs that repeat records" in shown


def test_a_comparison_of_nothing_certified_has_no_curves() -> None:
    found = compare_designs([Poisson(0.4)], Question(Gaussian(1.0, neighbors=RO)))
    assert "<svg" not in found._repr_html_()


def test_a_survey_plan_shows_every_candidate() -> None:
    bounds = {"<b>": (0, 10), "M": (0, 50)}
    plan = survey.plan({"level": LEVEL}, size=20, epsilon=1.0, bounds=bounds, strata="level", overall_sd=5.0)
    shown = plan._repr_html_()
    assert is_balanced(shown)
    assert "<b>" not in shown
    assert all(row.name in shown and shown_up(row.amplified_upper, 4) in shown for row in plan.rows)
    assert f"Recommended: {plan.recommendation}" in shown


def test_an_allocation_shows_its_sizes() -> None:
    found = survey.allocate(STRATA, 100, epsilon=1.0)
    shown = found._repr_html_()
    assert is_balanced(shown)
    assert "<b>" not in shown
    assert all(f">{size}<" in shown for size in found.sizes.values())


def test_a_bootstrap_plan_shows_its_guarantee() -> None:
    plan = bootstrap.plan(1000, epsilon=1.0, resamples=10)
    shown = plan._repr_html_()
    assert is_balanced(shown)
    assert "subsampling" in shown
    assert shown_up(plan.guarantee.epsilon(1e-6)) in shown


def test_a_training_plan_shows_its_guarantee() -> None:
    from privamp.torch.plan import Plan

    plan = Plan(sampler="uniform", steps=20, noise_multiplier=1.0, clip=1.0, population=1000, rate=0.01)
    shown = plan._repr_html_()
    assert is_balanced(shown)
    assert "noise multiplier" in shown
    assert shown_up(plan.guarantee().epsilon(1e-6)) in shown


def test_a_plan_of_questions_lists_them() -> None:
    pa = pytest.importorskip("pyarrow")
    from privamp import open_table

    table = open_table(pa.table({"<i>": [1.0, 2.0]})).sample(Poisson(0.5))
    plan = table.plan([table.count(), table.mean("<i>", bounds=(0, 3)).weighing(4.0)])
    shown = plan._repr_html_()
    assert is_balanced(shown)
    assert "<i>" not in shown
    assert ">4<" in shown
    pytest.importorskip("matplotlib")
    assert [bar.get_width() for bar in plan.plot().axes[0].patches] == [1.0, 4.0]


def test_every_picture_is_shown_by_a_notebook() -> None:
    pytest.importorskip("matplotlib")
    plan = survey.plan({"level": LEVEL}, size=20, epsilon=1.0, bounds=(0, 50))
    for each in (amplify(Laplace(1.0), Poisson(0.1)), compared(), plan, survey.allocate(STRATA, 100, epsilon=1.0)):
        assert each.plot()._repr_png_().startswith(b"\x89PNG")


def test_curves_stay_within_their_picture_and_have_the_colour_of_the_text() -> None:
    from numpy import array, zeros

    shown = curves_of(array([0.0, 1.0, 2.0]), [Curve("<b>", array([1.0, 1e-3, 0.0]), zeros(3))], "<two>")
    assert 'aria-label="&lt;two&gt;"' in shown
    assert "currentColor" in shown
    assert "#000" not in shown
    points = [tuple(map(float, p.split(","))) for line in re.findall('points="(.*?)"', shown) for p in line.split()]
    width, height = map(float, re.findall(r'viewBox="0 0 (\d+) (\d+)"', shown)[0])
    assert points[0][1] < points[1][1] < points[2][1], "a smaller delta is further down"
    assert all(0 <= x <= width and 0 <= y <= height for x, y in points)


def test_the_last_number_of_the_axis_ends_inside_the_picture() -> None:
    epsilons = np.linspace(0.0, 0.123456, 9)
    picture = curves_of(epsilons, [Curve("one", np.full(9, 1e-3), None)], "a curve")
    width = re.search(r'viewBox="0 0 (\d+)', picture)
    assert width is not None
    assert re.search(rf'<text x="{width[1]}(?:\.0)?" [^>]*text-anchor="end"[^>]*>0.123</text>', picture)
