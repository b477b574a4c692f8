"""Guarantees and designs in notebooks show the numbers that they state, and nothing as zero that is not."""

import pytest

from balanced_tags import is_balanced
from privamp import Gaussian, Laplace, Poisson, Stratified, WithoutReplacement, amplify, compose
from privamp.numerics.printing import shown_down, shown_up


@pytest.mark.parametrize(
    ("guarantee", "delta"),
    [
        (amplify(Laplace(1.0), Poisson(0.1)), 0.0),
        (compose(amplify(Gaussian(1.0), Poisson(0.01)), 100), 1e-6),
    ],
)
def test_a_guarantee_shows_its_numbers(guarantee, delta) -> None:
    shown = guarantee._repr_html_()
    assert shown_up(guarantee.epsilon(delta)) in shown
    assert shown_down(guarantee.lower.epsilon(delta)) in shown
    assert "add-remove" in shown
    assert "<details>" in shown
    assert is_balanced(shown)
    for line in guarantee.because:
        assert line.split("(")[0].split("[")[0].strip() in shown


def test_a_picture_holds_both_curves() -> None:
    pytest.importorskip("matplotlib")
    (axes,) = amplify(Gaussian(1.0), Poisson(0.01)).plot().axes
    upper, lower = (line.get_ydata() for line in axes.lines)
    assert (upper >= lower).all()
    assert upper[0] > upper[-1]


@pytest.mark.parametrize("design", [Poisson(0.1), Stratified({"<b>": WithoutReplacement(3, 10), "c": Poisson(0.2)})])
def test_a_design_shows_its_facts_and_escapes_names(design) -> None:
    shown = design._repr_html_()
    assert type(design).__name__ in shown
    assert is_balanced(shown)
    assert "<b>" not in shown


def test_test_mode_is_said() -> None:
    from privamp import Population
    from privamp.testing import seeded_key

    sample = Poisson(0.1).draw(Population(100), seeded_key(7))
    sample.release(Laplace(1.0), [1.0] * 100)
    assert "NOT PRIVATE" in sample.guarantee()._repr_html_()
