"""The picture of a release in a notebook: one line per interval, names escaped, nothing where an end is not known."""

import xml.etree.ElementTree as ElementTree

import numpy as np
import pyarrow as pa

from privamp import open_table
from privamp.report.interval_lines import lines_of


def test_lines_reach_from_end_to_end_and_names_are_escaped():
    value = np.array([2.0, 5.0])
    drawn = ElementTree.fromstring(lines_of(["<b>&", "y" * 60], value, value - 1.0, value + 3.0, "a 'picture'"))
    first, second = drawn.findall("line")
    one = (float(first.get("x2")) - float(first.get("x1"))) / 4.0
    assert np.isclose(float(second.get("x1")) - float(first.get("x1")), 3.0 * one, atol=0.2)
    dots = [float(dot.get("cx")) for dot in drawn.findall("circle")]
    assert np.isclose(dots[0] - float(first.get("x1")), one, atol=0.2)
    assert [text.text for text in drawn.findall("text")][:2] == ["<b>&", "y" * 25 + "…"]


def test_what_cannot_be_drawn_is_left_out():
    one = np.ones(1)
    assert lines_of(["a"], one, np.array([-np.inf]), one, "") == ""
    assert lines_of(["a"] * 51, np.ones(51), np.ones(51), np.ones(51), "") == ""
    assert "<line" in lines_of(["a"], one, one, one, "")
    assert "<line" in lines_of(["a"], 0 * one, 0 * one, 0 * one, "")


def test_a_notebook_shows_the_groups_of_a_question():
    table = open_table(pa.table({"x": [1.0, 2.0] * 200, "g": ["a", "b"] * 200}))
    shown = table.mean("x", (0, 3)).by("g", ["a", "b"]).run(epsilon=1.0)._repr_html_()
    assert shown.startswith("<svg")
    assert shown.partition("</svg>")[0].count("<line ") == 2
    assert "δ(ε): certified (solid)" in shown  # the guarantee's curve
    assert "<summary>Theorems</summary>" in shown
    assert "<summary>Assumptions</summary>" in shown
